#!/usr/bin/env python3
"""Random job transforms and job ads, and what condor_transform_ads makes of them.

    export CONDOR_CHROOT=/var/tmp/condor          # where Debian's condor package is; empty: on this machine
    tests/oracle/transform.py --seed 1 --count 5000 > tests/oracle/transforms.jsonl

Output, a JSON array a line: ["rules", TEXT] is a file of rules and ["policy", TEXT, NAMES] a configuration and the transforms
that are applied; each line ["ad", AD, STATUS, OUTPUT] behind it is a job ad and what HTCondor makes of it. STATUS is 0 if the ad is
printed, 1 if the transform fails, and 2 if the ad is printed although HTCondor calls the rules invalid. OUTPUT has the printed
ads. Cases in which the tool crashes are left out. The same seed gives the same cases.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ATTRIBUTES = ["A", "B", "C", "D", "Owner", "RequestMemory", "RequestCpus", "RequestDisk", "JobUniverse", "Cmd", "Args", "Foo_1",
              "foo_2", "MaxX", "MaxY", "MaxMemoryX", "Rank", "Environment", "WantDocker", "Project", "x", "Requirements"]
# HTCondor does not keep a value that is the default of a knob, case aside, so that only these are assigned to.
ASSIGNED = ["V", "W", "v1", "name_2", "Mem", "XFORM.P", "P"]
VARIABLES = ASSIGNED + ["START", "MINUTE"]
NUMBERS = ["0", "1", "2", "7", "-3", "100", "2048", "1.5", "-0.25", "1e3", "3.0", "1024 * 2", "0x10"]
STRINGS = ['""', '"x"', '"alice"', '"a b"', '"/usr/bin/a.out"', r'"c:\\dir\\f.txt"', r'"q \"in\" q"', '"a,b , c"', '"7"', '"A + 1"',
           '"$x"', '"é"', '"#no"', '"a=b:c"', "\"it's\""]
OTHERS = ["true", "FALSE", "undefined", "error", "{ 1,2 }", '{ "a",B }', "[ p = 1; q = A ]", "{  }"]
FUNCTIONS = ["size(%s)", "strcat(%s,%s)", "isUndefined(%s)", "ifThenElse(%s,%s,%s)", "int(%s)", "string(%s)", "toUpper(%s)", "min({%s,%s})",
             "regexp(\"^a\",%s)", "substr(%s,1)", "split(%s)", "unparse(A)", "isString(%s)", "floor(%s)", "stringListMember(%s,\"a,b\")",
             "join(\"-\",%s,%s)", "real(%s)", "member(%s,{1,2,\"x\"})", "quantize(%s,16)", "debug(%s)"]
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "=?=", "=!=", "&&", "||", "is", "isnt", "&", "<<"]
PATTERNS = ["^Max(.+)", "^(.)$", "(.*)", "^Request(.*)", "o", "^(.)(.).*$", "[A-C]", "Request(Mem|Cp)(ory|us)", "^(x)|(Owner)$", "_\\d$", "^$",
            "(?:Foo)_(.)", "(M)?ax(.)(.*)", ".+?", "^\\w+$", "nothing", "^.{3,5}$", "a|b", "(O)(w)(n)(e)(r)", "max"]
BROKEN_PATTERNS = ["(a", "*", "[a", "a)", "a{2,1}"]
REPLACEMENTS = ["New\\0", "Z\\1", "\\1_\\2", "Old_\\0", "\\2\\1x", "Same", "Y\\3", "\\0", "9\\0", "a\\\\1", "Pre\\1Post", "\\1", "$(V)_\\0"]
CONDITIONS = ["true", "false", "yes", "no", "1", "0", "defined MY.%A", "! defined MY.%A", "defined %V", "!defined %V", "$(%V)", "! $(%V)",
              "defined $(MY.%A)", "$(MY.WantDocker)", "version >= 8.9", "version < 9.0", "$(MY.A:0)", "$(%V:1)", "defined MY.%A", "$(IsLinux)",
              "$(Iterating)", "defined START", "$INT(MY.A:0)"]
TRUE_CONDITIONS = ["1 < 2", "true || %A", "$(MY.A:1) =?= $(MY.A:1)", "size(\"abc\") == 3"]
BROKEN_CONDITIONS = ["foo bar", "", "$(MY.NOPE) &&", "\"x\"", "defined a b", "version > x"]
JUNK = ["FOO a b", "SET", "SET a", "COPY A", "RENAME B", "DELETE", "word", "X := 3", "X : 3", "X+=3", "use feature:GPUs", "error : no $(V)",
        "EVALSET q", "EVALMACRO V", "DELETE /a", "COPY /a/q b", "DELETE /a/x", "endif", "else", "elif true", "if true", "X @ = 3", "X @=end",
        "-= 3", "SETT a 1", "DEFAULT a", "a.b.c", "[section]", "= 3", "queue = 3", "queue 1"]
FORMATS = {"INT": ["", "", ",%d", ",%05d", ",%x"], "REAL": ["", "", ",%.2f", ",%e"], "STRING": ["", "", ",%s", ",%5s"]}


class Gen:
    """Rules and ads as text; everything drawn from one seeded source."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def attribute(self):
        name = self.r.choice(ATTRIBUTES)
        kind = self.r.random()
        return name if kind < 0.8 else name.lower() if kind < 0.9 else name.upper() if kind < 0.95 else "New" + name

    def cased(self, word):
        kind = self.r.random()
        return word if kind < 0.8 else word.lower() if kind < 0.9 else word.capitalize()

    def literal(self):
        return self.r.choice(self.r.choice([NUMBERS, NUMBERS, STRINGS, STRINGS, OTHERS]))

    def expression(self, depth=0):
        r, kind = self.r, self.r.random()
        if depth > 2 or kind < 0.3:
            return self.literal()
        if kind < 0.5:
            return r.choice(["", "", "MY.", "TARGET."]) + self.attribute()
        if kind < 0.68:
            return "%s %s %s" % (self.expression(depth + 1), r.choice(OPERATORS), self.expression(depth + 1))
        if kind < 0.76:
            return "(%s)" % self.expression(depth + 1)
        if kind < 0.8:
            return "%s ? %s : %s" % (self.expression(depth + 1), self.expression(depth + 1), self.expression(depth + 1))
        if kind < 0.83:
            return r.choice(["!", "-", "+"]) + self.expression(depth + 1)
        function = r.choice(FUNCTIONS)
        return function.replace("%s", "\0").replace("\0", "%s") % tuple(self.expression(depth + 1) for _ in range(function.count("%s")))

    def reference(self):
        r, kind = self.r, self.r.random()
        if kind < 0.35:
            return "$(%s)" % r.choice(VARIABLES)
        if kind < 0.6:
            return "$(%s%s)" % (r.choice(["MY.", "My.", "my."]), self.attribute())
        if kind < 0.72:
            return "$(%s:%s)" % (r.choice(["MY." + self.attribute(), r.choice(VARIABLES)]), r.choice(["0", "z", "$(V)", "a b", ""]))
        name = r.choice(["MY." + self.attribute(), r.choice(VARIABLES), r.choice(["3", "A", "2*3", "\"s\""])])
        if kind < 0.88:
            function = r.choice(["INT", "INT", "REAL", "STRING"])
            return "$%s(%s%s)" % (function, name, r.choice(FORMATS[function]))
        if kind < 0.94:
            return "$EVAL(%s)" % name
        if kind < 0.97:
            return "$F%s(%s)" % (r.choice(["", "n", "p", "x", "nx", "q", "pn", "d", "qa"]), name)
        return r.choice(["$$(%s)", "$(DOLLAR)(%s)", "$SUBSTR(%s,1)", "$SUBSTR(%s,0,2)", "$CHOICE(1,%s,b)", "$BASENAME(%s)", "$DIRNAME(%s)",
                         "$(%s", "$ENV(%s:none)"]) % name

    def value(self):
        """An expression, perhaps with macros in it."""
        r, kind = self.r, self.r.random()
        if kind < 0.5:
            return self.expression()
        if kind < 0.65:
            return self.reference()
        if kind < 0.8:
            return '"%s%s%s"' % (r.choice(["", "a ", "/x/"]), self.reference(), r.choice(["", " b", ".txt"]))
        if kind < 0.97:
            return "%s %s %s" % (self.reference(), r.choice(OPERATORS), self.expression(1))
        return r.choice(["1 +", "(2", '"x" y', "A B", "a = 1", "{1", "= 1", '"unclosed', "1 2"])

    def command(self):
        r, kind = self.r, self.r.random()
        equals = r.choice([" ", " ", " ", " = ", "  ", "\t", " , ", " ="])
        attribute = self.attribute()
        if r.random() < 0.04:
            attribute = r.choice(['"%s"', "'%s'"]) % attribute
        if kind < 0.22:
            return "%s %s%s%s" % (self.cased("SET"), attribute, equals, self.value())
        if kind < 0.34:
            return "%s %s%s%s" % (self.cased("EVALSET"), attribute, equals, self.value())
        if kind < 0.42:
            return "%s %s%s%s" % (self.cased("DEFAULT"), attribute, equals, self.value())
        if kind < 0.5:
            return "%s %s%s%s" % (self.cased("EVALMACRO"), r.choice(ASSIGNED), equals, self.value())
        word = r.choice(["COPY", "RENAME", "DELETE"])
        if kind < 0.63:
            if word == "DELETE":
                return "%s %s" % (self.cased(word), attribute)
            target = r.choice([self.attribute(), self.attribute(), "Was" + self.attribute(), "$(V)x", "1x", "a b", "\"%s\"" % self.attribute()])
            return "%s %s%s%s" % (self.cased(word), attribute, equals, target)
        if kind < 0.76:
            pattern = r.choice(PATTERNS) if r.random() < 0.95 else r.choice(BROKEN_PATTERNS)
            options = r.choice(["", "", "", "", "i", "U", "g", "m", "gU"])
            if word == "DELETE":
                return "%s /%s/%s" % (self.cased(word), pattern, options)
            return "%s /%s/%s%s%s" % (self.cased(word), pattern, options, equals, r.choice(REPLACEMENTS))
        variable = r.choice(ASSIGNED)
        if kind < 0.92:
            value = r.choice([self.literal(), self.reference(), self.value(), "$(%s) x" % variable, "word", "two words", "", "1", "0", "true"])
            return "%s%s%s" % (variable, r.choice([" = ", "=", " =", " = ", " += ", " +,= ", " +&&= "]), value)
        if kind < 0.94:
            return "%s%s = %s" % (r.choice("+-"), self.attribute(), self.literal())
        if kind < 0.96:
            return "$(V)x = %s" % self.literal()
        return r.choice(["# a comment", "", "NAME some name", "UNIVERSE vanilla", "warning : careful $(V)", "TRANSFORM", "   # indented",
                         "%s @=end\n# no\n  2\n@end" % variable, "%s = one \\\n   two" % variable, "SET %s \\\n  1 + \\\n  2" % attribute])

    def lines(self, depth, most):
        r, out = self.r, []
        for _ in range(r.randint(1, most)):
            if depth < 3 and r.random() < 0.13:
                out += self.conditional(depth)
            else:
                out.append(r.choice(["", "", "", "  ", "\t"]) + self.command())
        return out

    def condition(self):
        r = self.r
        pool = TRUE_CONDITIONS if r.random() < 0.1 else BROKEN_CONDITIONS if r.random() < 0.02 else CONDITIONS
        return r.choice(pool).replace("%A", self.attribute()).replace("%V", r.choice(VARIABLES))

    def conditional(self, depth):
        r = self.r
        out = ["%s %s" % (self.cased("if"), self.condition())] + self.lines(depth + 1, 3)
        for _ in range(r.choice([0, 0, 0, 1, 2])):
            out += ["%s %s" % (self.cased("elif"), self.condition())] + self.lines(depth + 1, 2)
        if r.random() < 0.5:
            out += [self.cased("else")] + self.lines(depth + 1, 2)
        return out + [self.cased("endif")]

    def rules(self, iterate):
        r = self.r
        lines = self.lines(0, 9)
        if r.random() < 0.3:
            lines.insert(r.randint(0, len(lines)), "%s %s" % (self.cased("REQUIREMENTS"), self.expression().replace("0x10", "16")))
        elif r.random() < 0.06:
            # Within a conditional, HTCondor may never see it.
            lines.insert(r.choice([0, len(lines)]), r.choice(JUNK))
        if iterate and r.random() < 0.15:
            lines.append("SET It \"$(Item) $(n) $(m) $(Step) $(Row) $(ItemIndex) $(XFormId) $(Iterating)\"")
            lines.append(self.cased("TRANSFORM") + " " + r.choice([
                "1", "0", "2", "3", "1+1", "in (a, b c)", "in a b", "2 in (x,y)", "n in (1,2,3)", "n,m in (a b, c)", "n, m from (\na 1\nb 2 3\n)",
                "from (\nx y\n\n# no\nz\n)", "2 n from (\n1\n2\n) ", "n m from (a b c)", "$(NOPE) n in ($(IsLinux) b)", "foo", "-1", "n in (", "from (\na",
                "n in ()", "0 n in (a b)", "2 n in ()", "x from nope.txt", "n,m from (\na,1\nb , 2\n)"]))
            lines.append("SET Behind 1")
        # The tool drops rules in which it sees no command without looking at an ad.
        return "\n".join(["DELETE Nothing"] + lines) + "\n"

    def policy(self):
        names = ["One", "Two", "Three"][:self.r.randint(1, 3)]
        text = "V = 5\nProject = physics\nJOB_TRANSFORM_NAMES = %s\n" % " ".join(names)
        for name in names:
            body = self.rules(False)
            text += "JOB_TRANSFORM_%s @=endtransform\n%s@endtransform\n" % (name, body)
        return text, names

    def ad(self):
        r = self.r
        # The tool prints no ad in which it cannot read a line.
        lines = ["%s = %s" % (name, self.expression(r.choice([1, 2, 3])).replace("0x10", "16")) for name in r.sample(ATTRIBUTES, r.randint(1, 9))]
        return "\n".join(["Q = 1"] * (r.random() < 0.2) + lines) + "\n"


class Tool:
    """condor_transform_ads, in the chroot that CONDOR_CHROOT names."""

    def __init__(self):
        self.root = os.environ.get("CONDOR_CHROOT", "")
        self.dir = tempfile.mkdtemp(prefix="transform-oracle-", dir=(self.root or "") + "/tmp")

    def inside(self, path):
        return path[len(self.root):]

    def ask(self, number, kind, text, names, ad):
        files = {"rules": text, "ad": ad}
        paths = {}
        for name, content in files.items():
            paths[name] = os.path.join(self.dir, "%s.%d" % (name, number))
            with open(paths[name], "w", encoding="utf-8") as file:
                file.write(content)
        config = "/dev/null" if kind == "rules" else self.inside(paths["rules"])
        which = ["-rules", self.inside(paths["rules"])] if kind == "rules" else ["-jobtransforms", ",".join(names)]
        command = (["chroot", self.root] if self.root else []) + ["env", "-i", "PATH=/usr/bin:/bin", "CONDOR_CONFIG=" + config,
                   "condor_transform_ads"] + which + ["-in:long", self.inside(paths["ad"])]
        try:
            done = subprocess.run(command, capture_output=True, timeout=2, check=False)
        except subprocess.TimeoutExpired:
            return None
        finally:
            for path in paths.values():
                os.remove(path)
        if done.returncode not in (0, 1, 255):
            return None
        output = done.stdout.decode("utf-8", "replace")
        # HTCondor prints the attributes of nested ads in an order of its own, and ends of lines in strings as they are.
        if re.search(r"\[ [^]]*;[^]]*;", output) or any(line and not re.match(r"[\w$]+ = ", line) for line in output.splitlines()):
            return None
        failed = done.returncode == 255
        # HTCondor fails if a condition that is an expression is false. A reference may stand for an expression.
        if failed and re.search(r"^\s*(el)?if .*\$\((?!IsLinux|Iterating)", text, re.I | re.M):
            return None
        invalid = b"Invalid rules file" in done.stderr
        return [1 if failed else 2 if invalid else 0, output.strip("\n")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    args = parser.parse_args()
    gen, tool = Gen(args.seed), Tool()
    cases = []
    while len(cases) < args.count * 1.1 + 10:
        kind = "policy" if gen.r.random() < 0.25 else "rules"
        text, names = gen.policy() if kind == "policy" else (gen.rules(True), None)
        for _ in range(2):
            cases.append((kind, text, names, gen.ad()))
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        answers = pool.map(lambda item: tool.ask(item[0], *item[1]), enumerate(cases))
        last, count = None, 0
        for (kind, text, names, ad), answer in zip(cases, answers):
            if answer is None or count >= args.count:
                continue
            if text != last:
                print(json.dumps(["rules", text] if kind == "rules" else ["policy", text, names], ensure_ascii=False))
                last = text
            print(json.dumps(["ad", ad] + answer, ensure_ascii=False))
            count += 1
    os.rmdir(tool.dir)
    print("%d cases of %d" % (count, len(cases)), file=sys.stderr)


main()
