#!/usr/bin/env python3
"""Random ClassAd expressions and ads, and what HTCondor's own library makes of them.

    pip install htcondor                                                (or: make oracle, which does all of it)
    tests/oracle/classad.py --seed 1 --count 20000 > tests/oracle/classad.jsonl
    tests/oracle/classad.py --seed 7 --count 20000 > /tmp/c.jsonl
    CLASSAD_ORACLE=/tmp/c.jsonl cargo test --test classad_oracle
    tests/oracle/classad.py --seed 7 --count 2000 --reads-back target/debug/slotwright

A line of the output is one of

    ["ads", MY, TARGET]         the ads (null: none) of the expressions that follow
    ["EXPRESSION", TYPE, VALUE] a case; types and values as `slotwright classad eval --batch` prints them
    {"new": TEXT, "ad": AD}     an ad in the new syntax, and the library's print of it; null: it does not parse
    {"long": TEXT, "ad": AD}    the same in the long form

The same seed gives the same cases. Text that depends on time, place or luck is left out. The library
runs in a child process: text that crashes the process is left out too, and counted.

--reads-back prints nothing but disagreements: it has our program print expressions, and the library read them.
"""
import argparse
import datetime
import json
import multiprocessing
import os
import re
import subprocess
import sys

from classad_grammar import Gen

PER_ADS = 50  # cases that share a pair of ads
TIMELESS = re.compile(r"(?i)\b(time|currenttime|daytime|timezoneoffset|random|userhome)'?\s*\(|currenttime|(abstime|formattime)(\s|//.*?\n|/\*.*?\*/)*\((\s|//.*?\n|/\*.*?\*/)*\)")


def fails(classad2, text, ads):
    """Whether it is HTCondor that has no value."""
    try:
        return classad2.ExprTree("isError(%s)" % text).eval(*ads) is True
    except classad2.ClassAdException:
        return True


def describe(classad2, text, ads, depth=0):
    """The type and the printed value of an expression."""
    try:
        value = classad2.ExprTree(text).eval(*ads)
    except classad2.ClassAdException as exception:
        if "parse" in str(exception):
            return ("parse-error", "")
        # An evaluation that fails is an error; a value that Python cannot hold is none.
        # In a list it says nothing of the list: lists are lazy.
        return ("error", "") if depth == 0 and fails(classad2, text, ads) else ("skip", "")
    except UnicodeDecodeError:
        return ("skip", "")
    if isinstance(value, bool):
        return ("boolean", str(value).lower())
    if value is classad2.Value.Undefined:
        return ("undefined", "")
    if value is classad2.Value.Error:
        return ("error", "")
    if isinstance(value, int):
        return ("integer", str(value))
    if isinstance(value, float):
        relative = classad2.ExprTree("isRelTime(%s)" % text).eval(*ads)
        return ("reltime" if relative is True else "real", repr(value))
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, datetime.datetime):
        return ("abstime", classad2.ExprTree("string(%s)" % text).eval(*ads))
    if isinstance(value, list):
        if depth > 3 or len(value) > 20:
            return ("skip", "")
        items = [describe(classad2, "(%s)[%d]" % (text, place), ads, depth + 1) for place in range(len(value))]
        if any(kind in ("skip", "parse-error") for kind, _ in items):
            return ("skip", "")
        return ("list", json.dumps(items, ensure_ascii=False, separators=(",", ":")))
    if isinstance(value, classad2.ClassAd):
        return ("classad", repr(value))
    return ("skip", "")


def read_ad(classad2, text, parser):
    """The library's print of an ad; None: it does not parse."""
    try:
        ad = classad2.ClassAd(text) if parser is None else classad2.parseOne(text, parser)
        return ("ad", repr(ad))
    except (classad2.ClassAdException, SyntaxError, ValueError):
        return ("ad", None)
    except UnicodeDecodeError:
        return ("skip", "")


def same_print(classad2, ours, theirs):
    """Whether the library prints both ads the same."""
    return read_ad(classad2, ours, None) == read_ad(classad2, theirs, None)


def serve(pipe):
    """The child: answers until it is told to stop, or crashes."""
    os.environ["TZ"] = "UTC"
    os.environ["CONDOR_CONFIG"] = "/dev/null"
    import classad2
    classad2.parseOne("a = 1")
    texts, ads = None, []
    while True:
        kind, *message = pipe.recv()
        if kind == "new":
            pipe.send(read_ad(classad2, message[0], None))
        elif kind == "long":
            pipe.send(read_ad(classad2, message[0], classad2.ParserType.Old))
        elif kind == "same":
            pipe.send(same_print(classad2, *message))
        else:
            if message[:2] != texts:
                texts = message[:2]
                try:
                    ads = [classad2.ClassAd(text) for text in texts if text is not None]
                except classad2.ClassAdException:
                    ads = None
            try:
                pipe.send(("skip", "") if ads is None else describe(classad2, message[2], ads))
            except classad2.ClassAdException:
                # The library reads the text alone, but not as an argument.
                pipe.send(("skip", ""))


class Oracle:
    """A child process with the library, replaced when it dies."""

    def __init__(self):
        self.child = None
        self.crashes = 0

    def ask(self, *question):
        if self.child is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.child = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            self.child.start()
            theirs.close()
        try:
            self.pipe.send(question)
            if self.pipe.poll(20):
                return self.pipe.recv()
            self.child.kill()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass
        self.child.join()
        self.child = None
        self.crashes += 1
        print("htcondor crashes: %r" % (question,), file=sys.stderr)
        return ("skip", "")


def record(gen, oracle, count):
    """Writes so many answers."""
    done = 0
    out = lambda line: print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
    while done < count:
        my, target = gen.my(), gen.target() if gen.r.random() < 0.6 else None
        texts = [("new", my), ("new", target or "[]"), ("new", gen.broken(my)), ("long", gen.long_form()), ("long", gen.long_form())]
        ads = [(kind, text, *oracle.ask(kind, text)) for kind, text in texts]
        for kind, text, what, ad in ads:
            if what != "skip":
                out({kind: text, "ad": ad})
                done += 1
        if any(ad is None for *_, ad in ads[:2]):
            continue
        out(["ads", my, target])
        for _ in range(PER_ADS):
            text = gen.case()
            if len(text) > 400 or TIMELESS.search(re.sub(r"/\*.*?\*/|//.*", "", text)):
                continue
            kind, value = oracle.ask("eval", my, target, text)
            if kind == "skip" or len(value) > 500:
                continue
            out([text, kind, value])
            done += 1
            if done >= count:
                break
    print("%d answers of HTCondor's library, which crashed %d times" % (done, oracle.crashes), file=sys.stderr)


def read_back(gen, oracle, count, program):
    """Compares what our program prints with what it read, by the library's eyes."""
    texts = []
    while len(texts) < count:
        text = "[x = %s]" % gen.expr(gen.r.choice([1, 2, 3]))
        if oracle.ask("new", text)[1]:
            texts.append(text)
    cases = "".join(json.dumps({"id": text, "my": None, "target": None, "expr": text}) + "\n" for text in texts)
    run = subprocess.run([program, "classad", "eval", "--batch"], input=cases, capture_output=True, text=True, check=True)
    wrong = 0
    for answer in map(json.loads, run.stdout.splitlines()):
        if answer["type"] != "classad" or not oracle.ask("same", answer["value"], answer["id"]):
            wrong += 1
            print("printed differently: %s\n    as %s %s" % (answer["id"], answer["type"], answer["value"]))
    print("%d printed expressions read by HTCondor, %d of them differently" % (count, wrong))
    sys.exit(1 if wrong else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--reads-back", metavar="SLOTWRIGHT", help="check what this program prints")
    options = parser.parse_args()
    gen, oracle = Gen(options.seed), Oracle()
    if options.reads_back:
        read_back(gen, oracle, options.count, options.reads_back)
    else:
        record(gen, oracle, options.count)


if __name__ == "__main__":
    main()
