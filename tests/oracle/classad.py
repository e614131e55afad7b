#!/usr/bin/env python3
"""Random ClassAd expressions, and what HTCondor's own library makes of them.

    pip install htcondor
    tests/oracle/classad.py --seed 1 --count 20000 > tests/oracle/classad.jsonl
    tests/oracle/classad.py --seed 7 --count 20000 > /tmp/c.jsonl
    CLASSAD_ORACLE=/tmp/c.jsonl cargo test --test classad_oracle

Output, a JSON array a line: ["ads", MY, TARGET] sets the ads (null: none) of the lines that follow, and
["EXPRESSION", TYPE, VALUE] is a case, with types and values as `slotwright classad eval --batch` prints
them. The same seed gives the same cases. Everything that depends on time, place or luck is left out.
Evaluation runs in a child process: what crashes HTCondor's library is left out too, and counted.
"""
import argparse
import datetime
import json
import multiprocessing
import os
import random
import sys

# ---- the grammar -------------------------------------------------------------------------------------

INTS = ["0", "1", "2", "3", "-1", "-7", "5", "8", "10", "63", "64", "65", "100", "1024", "-100", "4294967296",
        "9223372036854775807", "-9223372036854775808", "9007199254740993", "9223372036854775808"]
REALS = ["0.0", "1.0", "1.5", "-2.5", ".5", "3.5", "1e3", "1e308", "-1e308", "1e400", "2.5", "0.1", "-0.0",
         "1e19", "9007199254740992.0", "1.5e-3", 'real("NaN")', 'real("-INF")', "123456.789"]
STRINGS = ["", "a", "A", "abc", "ABC", "b", "1", "1.5", "-3", "12abc", "1e3", " 7", "0x10", "true", "FALSE",
           "inf", "nan", "a,b", "a, b ,c", "1,2,3", "1 2,x", "slot1@host", "alice@example.org@x", "x y", "Zz", "_",
           "a\\\"b", "a\\\\b", "tab\\there", "é", "line\\nbreak", "8.9.11", "8.10.0", "aaa", "it's"]
LISTS = ["1,2,3", "a,b,c", "a b c", "", " ", "a,,b", "3,-1,2", "1.5,2,-3", "A,B", "x", "1x,2", "a;b;c", "-3,-1",
         "-3.5,-1", "b, c", "c,a,b", "10 20 30", "1,2,", ",1", "+1,2", "1e2,5", ".5,1", "a\\tb", "host1.org host2.org"]
SEPS = [",", ", ", ";", " ", "", ":", "ab", ", \\t"]
PATTERNS = ["a", "^a", "b$", "[a-c]+", "(a)(b)?", "a|b", ".", "", "x*", "[", "(", "A", "\\\\d+", "^\\\\s*$", "a.c",
            "(?i)ABC", "[[:alpha:]]+", "h.*t", "\\\\bb", "a{2}", "a{,2}", "[]a]", "(.)(.)", "slot(\\\\d+)@(.*)", "é", "^$"]
REPLACEMENTS = ["", "-", "\\\\0", "<\\\\1>", "\\\\2\\\\1", "x\\\\9", "\\\\a"]
OPTIONS = ["", "i", "I", "m", "s", "x", "g", "f", "fg", "ig", "im", "q"]
VERSIONS = ["1", "1.0", "1.10", "1.9", "1.09", "1.010", "8.9.11", "8.10.0", "10.0", "v1", "V1", "", "a", "a1", "a01",
            "a001", "a10", "0", "00", "01", "1.2.3-rc1", "1.2.3", "007"]
ENVS = ["A=1 B=2", "A=1;B=2", "A", "", "A='x y'", "B=3", "A='it''s'", "A=1 'B=2", "=1", "A=", "X=1 A=5", "A=1;;B=2",
        "A=x y;B='q'", "'A=1 B=2'"]
ARGS = ["a b c", "a 'b c' d", "a 'b", "", "''", "a  b", "it''s", "'it''s'", "\\\"x\\\""]
ATTRS = ["A", "b", "C", "Memory", "Name", "L", "N", "Undef", "Err", "Ads", "Expr", "T", "R", "missing", "Both", "K"]
SCOPES = ["MY.", "TARGET.", "my.", "target.", "", "", "", ""]
STAMPS = ["0", "86399", "1582934400", "1769860800", "-86400", "951782400", "4102444800", "1.5e9", "1234567890.75"]
FORMATS = ["%Y-%m-%d", "%H:%M:%S", "%c", "%j %U %W %V %G", "%a %A %b %B %e %I %p", "", "%%", "x", "%D %T %R %y %C", "%s"]
BINARY = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", " is ", " isnt ", "&&", "||", "&", "|",
          "^", "<<", ">>", ">>>"]
COMPARE = ["<", "<=", "==", "!=", ">=", ">", "is", "isnt", "=?=", "x"]

# What each function takes: a letter an argument, after ? optional ones. See Gen.arg.
FUNCTIONS = {
    "isUndefined": "x", "isError": "x", "isString": "x", "isInteger": "x", "isReal": "x", "isBoolean": "x",
    "isList": "x", "isClassAd": "x", "isAbsTime": "x", "isRelTime": "x", "ifThenElse": "cxx", "eval": "E",
    "unparse": "N", "unresolved": "N?p", "debug": "x", "hasAttr": "x", "sqrt": "n", "nosuch": "x",
    "size": "y", "sum": "l", "avg": "l", "min": "l", "max": "l", "anyCompare": "klx", "allCompare": "klx",
    "member": "xl", "identicalMember": "xl", "split": "S?d", "splitUserName": "s", "splitSlotName": "s",
    "join": "dl", "Join": "?dxxx", "evalInEachContext": "xa", "countMatches": "xa",
    "strcat": "?xxx", "toUpper": "x", "toLower": "s", "substr": "si?i", "strcmp": "ss", "stricmp": "ss",
    "string": "x", "int": "x", "real": "x", "bool": "x",
    "stringListSize": "S?d", "stringListSum": "S?d", "stringListAvg": "S?d", "stringListMin": "S?d",
    "stringListMax": "S?d", "stringListMember": "sS?d", "stringListIMember": "sS?d",
    "stringListSubsetMatch": "SS?d", "stringListISubsetMatch": "SS?d", "stringListsIntersect": "SS?d",
    "stringList_regexpMember": "pS?do",
    "regexp": "ps?o", "regexpMember": "pl?o", "regexps": "psR?o", "replace": "psR?o", "replaceall": "psR?o",
    "versioncmp": "vv", "versionLT": "vv", "versionLE": "vv", "versionGT": "vv", "versionGE": "vv", "versionEQ": "vv",
    "version_in_range": "vvv", "interval": "n", "envV1ToV2": "e", "mergeEnvironment": "?eee",
    "listToArgs": "l?i", "argsToList": "g?i", "userMap": "ss?sx",
    "floor": "n", "ceil": "n", "ceiling": "n", "round": "n", "pow": "nn", "quantize": "nq",
    "absTime": "T?i", "relTime": "n", "getYear": "t", "getMonth": "t", "getDayOfYear": "t", "getDayOfMonth": "t",
    "getDayOfWeek": "t", "getDays": "t", "getHours": "t", "getMinutes": "t", "getSeconds": "t", "splitTime": "t",
    "formatTime": "t?F",
}
NAMES = sorted(FUNCTIONS)


class Gen:
    """Expressions as text; everything drawn from one seeded source."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def string(self, choices):
        return '"%s"' % self.r.choice(choices)

    def list(self, depth):
        kind = self.r.random()
        if kind < 0.35:
            items = [self.r.choice(INTS + REALS) for _ in range(self.r.randrange(5))]
        elif kind < 0.6:
            items = [self.string(STRINGS) for _ in range(self.r.randrange(4))]
        else:
            items = [self.expr(depth - 1) for _ in range(self.r.randrange(4))]
        return "{%s}" % ", ".join(items)

    def ad(self, depth):
        names = self.r.sample(ATTRS, self.r.randrange(4))
        return "[%s]" % "; ".join("%s = %s" % (name, self.expr(depth - 1)) for name in names)

    def reference(self):
        r = self.r
        kind = r.random()
        if kind < 0.85:
            return r.choice(SCOPES) + r.choice(ATTRS)
        return r.choice(["N.A", "N.b", "N.parent.A", "N.w", "parent.A", "root.A", "self.b", "my.N.A", "TARGET.N.A", ".A",
                         "Ads[0].A", "L[0]", "Ads.A", "TARGET.TARGET.A", "other.A", "N[\"a\"]", "toplevel.C", "MY.N.w"])

    def literal(self):
        r = self.r
        kind = r.random()
        if kind < 0.35:
            return r.choice(INTS)
        if kind < 0.55:
            return r.choice(REALS)
        if kind < 0.8:
            return self.string(STRINGS)
        return r.choice(["true", "false", "undefined", "error"])

    def arg(self, kind, depth):
        r = self.r
        if r.random() < 0.12:
            return self.expr(depth - 1)
        if kind == "x" or (kind in "cnil" and r.random() < 0.25):
            return self.expr(depth - 1)
        simple = {"s": STRINGS, "S": LISTS, "d": SEPS, "p": PATTERNS, "o": OPTIONS, "R": REPLACEMENTS, "v": VERSIONS,
                  "e": ENVS, "g": ARGS, "k": COMPARE, "F": FORMATS}
        if kind in simple:
            return self.string(simple[kind])
        if kind == "c":
            return r.choice(["true", "false", "1", "0", "A > 3", "undefined", "0.5"])
        if kind == "i":
            return r.choice(INTS[:10])
        if kind == "n":
            return r.choice(INTS + REALS + ['"%s"' % s for s in STRINGS[6:16]])
        if kind == "l":
            return self.list(depth)
        if kind == "y":
            return r.choice([self.list, self.ad])(depth)
        if kind == "a":
            return "{%s}" % ", ".join(self.ad(depth) for _ in range(r.randrange(4))) if r.random() < 0.6 else "Ads"
        if kind == "q":
            return r.choice(INTS[:14] + REALS + [self.list(depth), "{1,4,8}", "{2.5,10}"])
        if kind == "N":
            return r.choice(ATTRS)
        if kind == "E":
            return '"%s"' % self.expr(1).replace("\\", "\\\\").replace('"', '\\"')
        if kind == "T":
            return r.choice(STAMPS + ['"2020-02-29T12:30:45+05:30"', '"2020-01-01"'])
        if kind == "t":
            return r.choice(["absTime(%s)", "absTime(%s, 3600)", "relTime(%s)", "%s"]) % r.choice(STAMPS)
        raise ValueError(kind)

    def call(self, depth):
        name = self.r.choice(NAMES)
        needed, _, optional = FUNCTIONS[name].partition("?")
        kinds = needed + optional[: self.r.randrange(len(optional) + 1)]
        if self.r.random() < 0.03:
            kinds = kinds[:-1] if self.r.random() < 0.5 else kinds + "x"
        return "%s(%s)" % (name, ", ".join(self.arg(kind, depth) for kind in kinds))

    def expr(self, depth):
        r = self.r
        kind = r.random()
        if depth <= 0 or kind < 0.12:
            return self.literal() if r.random() < 0.6 else self.reference()
        if kind < 0.2:
            return self.reference()
        if kind < 0.45:
            return self.call(depth)
        if kind < 0.75:
            return "%s %s %s" % (self.operand(depth), r.choice(BINARY), self.operand(depth))
        if kind < 0.81:
            return r.choice("-+!~") + self.operand(depth)
        if kind < 0.86:
            return "%s ? %s : %s" % (self.operand(depth), self.expr(depth - 1), self.expr(depth - 1))
        if kind < 0.89:
            return "%s ?: %s" % (self.operand(depth), self.operand(depth))
        if kind < 0.93:
            return self.list(depth)
        if kind < 0.95:
            return "%s[%s]" % (r.choice([self.list(depth), "L", "Ads", "N"]), r.choice(["0", "1", "-1", "2", '"A"', "b"]))
        if kind < 0.97:
            return self.ad(depth)
        return "%s.%s" % (self.ad(depth), r.choice(ATTRS))

    def operand(self, depth):
        text = self.expr(depth - 1)
        return text if self.r.random() < 0.3 else "(%s)" % text

    def my(self):
        r = self.r
        entries = {
            "A": r.choice(INTS[:10]), "b": self.literal(), "C": self.expr(1), "Name": self.string(STRINGS),
            "L": self.list(1), "N": "[A = %s; w = b; Expr = A]" % r.choice(INTS), "Err": "error", "Undef": "undefined",
            "Ads": "{[A = 1; b = 2], [A = %s; C = A], [b = MY.b]}" % self.literal(), "Expr": self.expr(2),
            "Both": self.literal(), "T": "absTime(%s)" % r.choice(STAMPS), "R": r.choice(REALS), "K": "TARGET.K + 1",
        }
        for name in r.sample(sorted(entries), 3):
            del entries[name]
        return "[%s]" % "; ".join("%s = %s" % item for item in entries.items())

    def target(self):
        r = self.r
        entries = {
            "A": self.literal(), "Memory": r.choice(INTS), "Expr": self.expr(2), "Both": self.literal(),
            "N": "[A = b]", "K": r.choice(["3", "TARGET.A", "MY.A", "K"]),
        }
        for name in r.sample(sorted(entries), 1):
            del entries[name]
        return "[%s]" % "; ".join("%s = %s" % item for item in entries.items())


# ---- the oracle --------------------------------------------------------------------------------------

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
        if any(kind == "skip" for kind, _ in items):
            return ("skip", "")
        return ("list", json.dumps(items, ensure_ascii=False, separators=(",", ":")))
    if isinstance(value, classad2.ClassAd):
        return ("classad", repr(value))
    return ("skip", "")


def serve(pipe):
    """The child: answers cases until it is told to stop, or crashes."""
    os.environ["TZ"] = "UTC"
    os.environ["CONDOR_CONFIG"] = "/dev/null"
    import classad2
    classad2.parseOne("a = 1")
    texts, ads = None, []
    while True:
        message = pipe.recv()
        if message is None:
            return
        if message[:2] != texts:
            texts = message[:2]
            try:
                ads = [classad2.ClassAd(text) for text in texts if text is not None]
            except Exception:
                ads = None
        pipe.send(("skip", "") if ads is None else describe(classad2, message[2], ads))


class Oracle:
    """A child process with the library, replaced when it dies."""

    def __init__(self):
        self.child = None
        self.crashes = 0

    def ask(self, case):
        if self.child is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.child = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            self.child.start()
            theirs.close()
        try:
            self.pipe.send(case)
            if self.pipe.poll(20):
                return self.pipe.recv()
            self.child.kill()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass
        self.child.join()
        self.child = None
        self.crashes += 1
        print("crash: %r" % (case,), file=sys.stderr)
        return ("skip", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--per-ads", type=int, default=50, help="cases that share a pair of ads")
    options = parser.parse_args()
    gen, oracle, done = Gen(options.seed), Oracle(), 0
    out = lambda line: print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
    while done < options.count:
        my, target = gen.my(), gen.target() if gen.r.random() < 0.6 else None
        out(["ads", my, target])
        for _ in range(options.per_ads):
            text = gen.expr(gen.r.choice([1, 2, 2, 3])) if gen.r.random() < 0.6 else gen.call(2)
            if len(text) > 300 or "Time()" in text:
                continue
            kind, value = oracle.ask((my, target, text))
            if kind == "skip" or len(value) > 400:
                continue
            out([text, kind, value])
            done += 1
            if done >= options.count:
                break
    print("%d cases, %d crashes" % (done, oracle.crashes), file=sys.stderr)


if __name__ == "__main__":
    main()
