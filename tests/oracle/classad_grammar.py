"""Random ClassAd expressions and ads as text, by grammar, everything drawn from one seeded source.

Each function has its likely arguments; now and then one is replaced by a value of another type, left out or
added, and now and then the text is broken. Text that depends on time, place or luck is left out.
"""
import random
import re

INTS = ["0", "1", "2", "3", "-1", "-7", "5", "8", "10", "63", "64", "65", "100", "1024", "-100", "4294967296",
        "2147483647", "-2147483648", "9223372036854775807", "-9223372036854775808", "9007199254740993",
        "9223372036854775808"]
REALS = ["0.0", "1.0", "1.5", "-2.5", ".5", "3.5", "1e3", "1e308", "-1e308", "1e400", "2.5", "0.1", "-0.0", "1e-320",
         "1e19", "9007199254740992.0", "1.5e-3", 'real("NaN")', 'real("-INF")', "123456.789", "-.5", "1E+5", "2e-5",
         "9223372036854775807.0", "-0.5", "4.5"]
STRINGS = ["", "a", "A", "abc", "ABC", "b", "1", "1.5", "-3", "12abc", "1e3", " 7", "0x10", "true", "FALSE",
           "inf", "nan", "a,b", "a, b ,c", "1,2,3", "1 2,x", "slot1@host", "alice@example.org@x", "x y", "Zz", "_",
           "a\\\"b", "a\\\\b", "tab\\there", "é", "line\\nbreak", "8.9.11", "8.10.0", "aaa", "it's", "\\303\\251", "\\x",
           "\\101", "+5", "0x1p3", "1e", "-", ".", "infinity1", "5.", "É", "Straße", "日本", "\\a\\b\\f\\v\\r", "\\'", "\\?"]
LISTS = ["1,2,3", "a,b,c", "a b c", "", " ", "a,,b", "3,-1,2", "1.5,2,-3", "A,B", "x", "1x,2", "a;b;c", "-3,-1",
         "-3.5,-1", "b, c", "c,a,b", "10 20 30", "1,2,", ",1", "+1,2", "1e2,5", ".5,1", "a\\tb", "host1.org host2.org",
         "1, ,2", " a , b ", "A a", "a.b,c", "nan,1", "inf", "0x10,1", "9223372036854775807,1", "1e400", "é,ü", ",,"]
SEPS = [",", ", ", ";", " ", "", ":", "ab", ", \\t", ".", "\\n", "  "]
PATTERNS = ["a", "^a", "b$", "[a-c]+", "(a)(b)?", "a|b", ".", "", "x*", "[", "(", "A", "\\\\d+", "^\\\\s*$", "a.c",
            "(?i)ABC", "[[:alpha:]]+", "h.*t", "\\\\bb", "a{2}", "a{,2}", "[]a]", "(.)(.)", "slot(\\\\d+)@(.*)", "é", "^$",
            "(?<n>a)b", "(?:ab|a)(c|bcd)", "a+?", "(a*)*", "[^b]", "\\\\w+", "\\\\.", "a\\\\", ")", "*a", "a**", "x{2,1}"]
ATOMS = ["a", "b", "A", "1", ".", "[ab]", "[^a]", "[a-z]", "(a)", "(?:b)", "(a|b)", "\\\\d", "\\\\w", "\\\\s", "\\\\S", "@", ",",
         "\\\\.", "[[:digit:]]", " ", "(?i:a)", "[-a]", "\\\\W", "(b|)"]
# The parts of patterns, one after another, whether the whole makes sense or not. Parts that docs/reference/differences.md lists are
# left out.
SCRAPS = list("abcxyzAB01 _-.,:#@&~=<>!/%'^$|()[]{}*?") + [
    "\\\\d", "\\\\w", "\\\\s", "\\\\D", "\\\\b", "\\\\[", "\\\\]", "\\\\-", "\\\\\\\\", "\\\\n", "\\\\x41", "[a-c]", "[^a]", "(?:", "(?i)", "{1,2}", "{2}", "{,3}",
    "[[:alpha:]]", "[[:^digit:]]", "[[:space:]x]", "[]x]", "[^]x]", "[a-]", "[--a]", "[a b]", "[#x]", "--", "&&", "~~", "||", "*?", "+?", "??",
    "\\\\A", "\\\\z", "\\\\h", "\\\\H", "\\\\e", "\\\\Q", "\\\\E", "\\\\R", "\\\\v", "\\\\V", "\\\\N", "\\\\X", "(?<n>", "(?P<n>", "(?'n'", "\\\\x{41}", "\\\\cA", "\\\\0",
    "\\\\07", "\\\\o{7}", "(?#c)", "(?x)", "(?s:", "(?-i)", "\\t", "\\n"]
QUANTIFIERS = ["", "", "", "", "*", "+", "?", "{2}", "{1,}", "{0,1}", "*?", "+?", "??"]
REPLACEMENTS = ["", "-", "\\\\0", "<\\\\1>", "\\\\2\\\\1", "x\\\\9", "\\\\a", "$1", "\\\\", "\\\\\\\\1", "é", "\\\\0\\\\0"]
OPTIONS = ["", "i", "I", "m", "s", "x", "g", "f", "fg", "ig", "im", "q", "F", "gf", "imsx", "u", " i"]
VERSIONS = ["1", "1.0", "1.10", "1.9", "1.09", "1.010", "8.9.11", "8.10.0", "10.0", "v1", "V1", "", "a", "a1", "a01",
            "a001", "a10", "0", "00", "01", "1.2.3-rc1", "1.2.3", "007", "1.2.3.4", "1..2", "é", "1 2", "000", "0a", "1.00.1",
            "$CondorVersion: 25.1.0 2025-01-01 $", "23.0.0", "100", "99"]
ENVS = ["A=1 B=2", "A=1;B=2", "A", "", "A='x y'", "B=3", "A='it''s'", "A=1 'B=2", "=1", "A=", "X=1 A=5", "A=1;;B=2",
        "A=x y;B='q'", "'A=1 B=2'", "a=1 A=2", "A=1\\nB=2", "A=1\\tB=2", " A=1 ", "A==1", "$$(X)", "A=\\\"q\\\"", "A=1;B", "é=ü",
        "A=1|B=2", "\\\"A=1\\\""]
ARGS = ["a b c", "a 'b c' d", "a 'b", "", "''", "a  b", "it''s", "'it''s'", "\\\"x\\\"", " a ", "a'b c'd", "a\\tb\\nc", "é ü",
        "'a''b'", "a ''''", "\\\"a b\\\" c", "a\\\\b"]
ATTRS = ["A", "b", "C", "Memory", "Name", "L", "N", "Undef", "Err", "Ads", "Expr", "T", "R", "missing", "Both", "K", "P",
         "Q", "Self1", "D"]
SCOPES = ["MY.", "TARGET.", "my.", "target.", "", "", "", ""]
WORDS = ["MY", "TARGET", "parent", "self", "other", "root", "toplevel", "PARENT", "Root", "TopLevel", "OTHER", "Self"]
STAMPS = ["0", "86399", "1582934400", "1769860800", "-86400", "951782400", "4102444800", "1.5e9", "1234567890.75", "-1",
          "-0.5", "59", "3600", "2147483647", "946684799", "1e10"]
FORMATS = ["%Y-%m-%d", "%H:%M:%S", "%c", "%j %U %W %V %G", "%a %A %b %B %e %I %p", "", "%%", "x", "%D %T %R %y %C", "%s",
           "%g|%h|%n|%t|%u|%w|%x|%X|%r|%F", "%z %Z", "%k %l %P", "%Ey %Od", "100%", "%Q", "%é", "%5Y", "%-d", "%_H"]
BINARY = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", " is ", " isnt ", "&&", "||", "&", "|",
          "^", "<<", ">>", ">>>"]
COMPARE = ["<", "<=", "==", "!=", ">=", ">", "is", "isnt", "=?=", "=!=", "x", "", "IS", "<>"]
# A value of each type, and the edges of each.
ODD = ["undefined", "error", "true", "false", "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "0.0",
       "-0.0", 'real("NaN")', 'real("INF")', 'real("-INF")', '""', '"a"', '"1"', '"é"', "{}", "{1,2}", '{"a",undefined}', "[]",
       "[A = 1]", "absTime(0)", "absTime(1582934400,3600)", "relTime(5)", "relTime(-90061.5)", "missing", "MY", "TARGET",
       'relTime("1+00:00:01")', 'absTime("2020-02-29T12:30:45+05:30")', '{{1},{2}}', "{[A = 1]}", "split(\"a b\")",
       "Ads", "N", "L", "1/0", "splitTime(relTime(100))"]

# What each function takes: a letter an argument, after ? optional ones. See Gen.simple.
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
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|=\?=|=!=|>>>|&&|\|\||[<>=!]=|<<|>>|\?:|\s+|.', re.DOTALL)
NOISE = ["(", ")", "[", "]", "{", "}", ",", ";", ".", "=", "==", "!", "?", ":", "?:", "-", "+", "~", "&", "|", "\"", "'", "\\",
         "1", "a", "0x1F", "017", "10K", "2.5G", "1.", "1e", ".", "1..2", "true", "is", "isnt", "undefined", "error", "parent",
         "'a b'", "''", "/*", "*/", "//", "#", "$", "@", "`", "é", "1a", "a.1", "->", "===", "<>", "&&&", "TRUE", "\n", "08",
         "1e+", "0.", "00", "-0", "'\\101'", "\"\\400\"", "\"\\777\"", "\"\\08\"", "\"\n\"", "null", "and"]


class Gen:
    """The source of everything random."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def string(self, choices):
        return '"%s"' % self.r.choice(choices)

    def integer(self):
        r = self.r
        return r.choice(INTS) if r.random() < 0.8 else str(r.randrange(-(1 << r.randrange(1, 64)), 1 << r.randrange(1, 64)))

    def real(self):
        r = self.r
        if r.random() < 0.8:
            return r.choice(REALS)
        return "%s%d.%de%d" % (r.choice(["", "-"]), r.randrange(100), r.randrange(1000), r.randrange(-20, 20))

    def list(self, depth):
        kind = self.r.random()
        if kind < 0.35:
            items = [self.r.choice([self.integer, self.real])() for _ in range(self.r.randrange(5))]
        elif kind < 0.6:
            items = [self.string(STRINGS) for _ in range(self.r.randrange(4))]
        elif kind < 0.7:
            items = [self.r.choice(ODD) for _ in range(self.r.randrange(4))]
        else:
            items = [self.expr(depth - 1) for _ in range(self.r.randrange(4))]
        return "{%s}" % ", ".join(items)

    def ad(self, depth):
        names = self.r.sample(ATTRS, self.r.randrange(4))
        return "[%s]" % "; ".join("%s = %s" % (name, self.expr(depth - 1)) for name in names)

    def reference(self):
        r = self.r
        kind = r.random()
        if kind < 0.7:
            return r.choice(SCOPES) + r.choice(ATTRS)
        if kind < 0.85:
            chain = [r.choice(WORDS + ["N", "D", "D.E", "Ads", "L"]) for _ in range(r.randrange(1, 4))]
            return ".".join(chain + [r.choice(ATTRS + WORDS)])
        return r.choice(["N.A", "N.b", "N.parent.A", "N.w", "parent.A", "root.A", "self.b", "my.N.A", "TARGET.N.A", ".A",
                         "Ads[0].A", "L[0]", "Ads.A", "TARGET.TARGET.A", "other.A", "N[\"a\"]", "toplevel.C", "MY.N.w", "'A'",
                         "'a b'", "D.E.F", "D.E.up", "D.'a b'", ".D.E.F", "D.E.parent.G", "D.E.root", "D.E.my.F",
                         "MY", "TARGET", "toplevel", "CurrentTime =?= time()", "D.E.A", "D.missing", ".missing", ".N.A",
                         "Ads[1].C", "Ads[2].b", "MY.'A'", "'MY'.A", "parent", "D.E.t", "TARGET.D", "TARGET.N.b", "Both", "P", "Self1"])

    def literal(self):
        r = self.r
        kind = r.random()
        if kind < 0.35:
            return self.integer()
        if kind < 0.55:
            return self.real()
        if kind < 0.8:
            return self.string(STRINGS)
        if kind < 0.9:
            return r.choice(["true", "false", "undefined", "error", "TRUE", "False", "UNDEFINED"])
        return r.choice([self.moment, self.span, lambda: r.choice(ODD)])()

    def moment(self):
        """An absolute time as a literal, sometimes none."""
        r = self.r
        text = r.choice(["%04d-%02d-%02d", "%04d%02d%02d", "%d/%02d/%02d", "%04d-%02d", "%d-%d-%d"])
        text = text % tuple([r.choice([2020, 1999, 1970, 1, 9999, 2038]), r.randrange(1, 13), r.randrange(1, 32)][:text.count("%")])
        if r.random() < 0.7:
            text += r.choice(["T%02d:%02d:%02d", " %02d:%02d:%02d", "T%02d%02d%02d", "T%02d:%02d", "T%d:%02d:%02d"])
            text = text % tuple([r.randrange(25), r.randrange(60), r.randrange(62)][:text.count("%")])
        return 'absTime("%s%s")' % (text, r.choice(["", "Z", "+05:30", "-0800", "z", "+1", " Z", "-00:00", "+0100", "x", ".5"]))

    def span(self):
        """A relative time as a literal, sometimes none."""
        r = self.r
        number = lambda: r.choice(["0", "1", "02", "59", "100", "1.5", "", ".5", "86400", "2147483648"])
        units = r.choice([["+", ":", ":", ""], ["d", "h", "m", "s"], ["D", "H", "M", "S"]])
        parts = ["%s%s" % (number(), unit) for unit in units[r.randrange(4):]]
        return 'relTime("%s%s")' % (r.choice(["", "", "-", "+", " "]), r.choice(["", "", " "]).join(parts))

    def pattern(self):
        r = self.r
        chance = r.random()
        if chance < 0.4:
            return self.string(PATTERNS)
        if chance < 0.7:
            return '"%s"' % "".join(r.choice(SCRAPS) for _ in range(r.randrange(1, 8)))
        text = "".join(r.choice(ATOMS) + r.choice(QUANTIFIERS) for _ in range(r.randrange(1, 5)))
        return '"%s%s%s"' % (r.choice(["", "", "^"]), text, r.choice(["", "", "$", "|x"]))

    def simple(self, kind, depth):
        """A likely argument."""
        r = self.r
        tables = {"s": STRINGS, "S": LISTS, "d": SEPS, "o": OPTIONS, "R": REPLACEMENTS, "v": VERSIONS, "e": ENVS, "g": ARGS,
                  "k": COMPARE, "F": FORMATS}
        if kind in tables:
            return self.string(tables[kind])
        return {
            "x": lambda: self.expr(depth - 1),
            "p": self.pattern,
            "c": lambda: r.choice(["true", "false", "1", "0", "A > 3", "undefined", "0.5"]),
            "i": lambda: r.choice(INTS[:10]),
            "n": lambda: r.choice([self.integer(), self.real(), self.string(STRINGS)]),
            "l": lambda: self.list(depth),
            "y": lambda: r.choice([self.list, self.ad])(depth),
            "a": lambda: "{%s}" % ", ".join(self.ad(depth) for _ in range(r.randrange(4))) if r.random() < 0.6 else "Ads",
            "q": lambda: r.choice([self.integer(), self.real(), self.list(depth), "{1,4,8}", "{2.5,10}"]),
            "N": lambda: r.choice(ATTRS) if r.random() < 0.7 else self.reference(),
            "E": lambda: '"%s"' % self.text().replace("\\", "\\\\").replace('"', '\\"'),
            "T": lambda: r.choice(STAMPS + ['"2020-02-29T12:30:45+05:30"', '"2020-01-01"']),
            "t": lambda: r.choice(["absTime(%s)", "absTime(%s, 3600)", "relTime(%s)", "%s", "splitTime(%s)",
                                   "splitTime(absTime(%s, -18000))"]) % r.choice(STAMPS),
        }[kind]()

    def arg(self, kind, depth):
        chance = self.r.random()
        if chance < 0.1:
            return self.expr(depth - 1)
        return self.r.choice(ODD) if chance < 0.2 else self.simple(kind, depth)

    def call(self, depth):
        r = self.r
        name = r.choice(NAMES)
        needed, _, optional = FUNCTIONS[name].partition("?")
        kinds = needed + optional[: r.randrange(len(optional) + 1)]
        if r.random() < 0.05:
            kinds = kinds[:-1] if r.random() < 0.5 else kinds + "x"
        if r.random() < 0.1:
            name = r.choice([name.lower(), name.upper()])
        return "%s(%s)" % (name, r.choice([", ", ",", ";"] if r.random() < 0.05 else [", "]).join(self.arg(kind, depth) for kind in kinds))

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
            return r.choice(["%s %s %s", "%s %s %s", "%s%s%s"]) % (self.operand(depth), r.choice(BINARY), self.operand(depth))
        if kind < 0.81:
            return r.choice(["-", "+", "!", "~", "- ", "--", "!!"]) + self.operand(depth)
        if kind < 0.86:
            return "%s ? %s : %s" % (self.operand(depth), self.expr(depth - 1), self.expr(depth - 1))
        if kind < 0.89:
            return r.choice(["%s ?: %s", "%s?:%s", "%s ? : %s"]) % (self.operand(depth), self.operand(depth))
        if kind < 0.93:
            return self.list(depth)
        if kind < 0.95:
            base = r.choice([self.list(depth), "L", "Ads", "N", "D", r.choice(ODD), "(%s)" % self.expr(depth - 1)])
            return "%s[%s]" % (base, r.choice(["0", "1", "-1", "2", '"A"', "b", '"missing"', "4294967296", r.choice(ODD)]))
        if kind < 0.97:
            return self.ad(depth)
        return "%s.%s" % (r.choice([self.ad(depth), self.list(depth), "(%s)" % self.expr(depth - 1)]), r.choice(ATTRS + WORDS))

    def operand(self, depth):
        text = self.r.choice(ODD) if self.r.random() < 0.15 else self.expr(depth - 1)
        return text if self.r.random() < 0.3 else "(%s)" % text

    def text(self):
        """What eval() reads."""
        text = self.expr(1)
        return self.broken(text) if self.r.random() < 0.2 else text

    def broken(self, text):
        """The text with a token or two changed: most often no expression any more."""
        r = self.r
        tokens = TOKEN.findall(text)
        for _ in range(r.choice([1, 1, 2])):
            place = r.randrange(len(tokens) + 1)
            change = r.random()
            if change < 0.3:
                del tokens[place:place + 1]
            elif change < 0.5:
                tokens[place:place + 1] = [r.choice(NOISE)]
            elif change < 0.9:
                tokens.insert(place, r.choice(NOISE))
            else:
                tokens.insert(place, r.choice(["/* c */", "// c\n", " \t\n ", "/**/"]))
        return "".join(tokens)

    def chain(self):
        """Something long or deep."""
        r = self.r
        count = r.randrange(2, 60)
        kind = r.random()
        if kind < 0.4:
            return (" %s " % r.choice(["&&", "||", "+", "==", "?:", "-", "&"])).join(r.choice(ODD[:9] + ["A", "b"]) for _ in range(count))
        opened, closed = r.choice([("(", ")"), ("-(", ")"), ("{", "}"), ("[A = ", "]"), ("strcat(", ")"), ("!", ""), ("1 ? ", " : 2")])
        return opened * count + r.choice(["1", "A", "\"x\""]) + closed * count

    def case(self):
        """An expression to ask about."""
        r = self.r
        kind = r.random()
        if kind < 0.40:
            return self.expr(r.choice([1, 2, 2, 3]))
        if kind < 0.70:
            return self.call(2)
        if kind < 0.78:
            return r.choice(["%s %s %s", "(%s)%s(%s)"]) % (r.choice(ODD), r.choice(BINARY), r.choice(ODD))
        if kind < 0.82:
            name = r.choice(NAMES)
            return "%s(%s)" % (name, ", ".join(r.choice(ODD) for _ in range(r.randrange(5))))
        if kind < 0.85:
            return r.choice(["strcat({%s})", "string([A = %s])", "unparse(Expr) + (%s)", "string((%s))"]) % self.expr(2)
        if kind < 0.87:
            return self.chain()
        if kind < 0.90:
            return self.reference()
        return self.broken(self.expr(r.choice([0, 1, 2, 2])))

    def my(self):
        r = self.r
        entries = {
            "A": r.choice(INTS[:10]), "b": self.literal(), "C": self.expr(1), "Name": self.string(STRINGS),
            "L": self.list(1), "N": "[A = %s; w = b; Expr = A]" % r.choice(INTS), "Err": "error", "Undef": "undefined",
            "Ads": "{[A = 1; b = 2], [A = %s; C = A], [b = MY.b]}" % self.literal(), "Expr": self.expr(r.choice([2, 3])),
            "Both": self.literal(), "T": "absTime(%s)" % r.choice(STAMPS), "R": self.real(), "K": "TARGET.K + 1",
            "P": "Q", "Q": r.choice(["P", "1", "P ?: 2", "TARGET.P"]), "Self1": "Self1 + 1", "'a b'": "A",
            "D": "[G = 7; 'a b' = 1; E = [F = A; up = parent.G; t = TARGET.A; G = parent.parent.A; x = %s]]" % self.reference(),
        }
        for name in r.sample(sorted(entries), 4):
            del entries[name]
        return "[%s]" % "; ".join("%s = %s" % item for item in entries.items())

    def target(self):
        r = self.r
        entries = {
            "A": self.literal(), "Memory": r.choice(INTS), "Expr": self.expr(2), "Both": self.literal(),
            "N": "[A = b; w = TARGET.A]", "K": r.choice(["3", "TARGET.A", "MY.A", "K"]), "P": r.choice(["TARGET.P", "5"]),
            "Ads": "{[A = b], [A = 2; c = TARGET.A]}",
        }
        for name in r.sample(sorted(entries), 2):
            del entries[name]
        return "[%s]" % "; ".join("%s = %s" % item for item in entries.items())

    def long_form(self):
        """An ad in the long form, with its oddities."""
        r = self.r
        lines = []
        for _ in range(r.randrange(1, 7)):
            kind = r.random()
            name = r.choice(ATTRS + ["Requirements", "_x1", "a.b"])
            # The Python binding makes other values of times that are alone on a line than the daemons do.
            value = self.expr(r.choice([0, 1, 2]))
            value = "A" if re.search(r"(?i)(abs|rel)time\(", value) else value
            if kind < 0.1:
                value = self.broken(value).replace("\n", " ")
            elif kind < 0.2:
                value = '"%s"' % r.choice(["a\\b", "x\\\\", "C:\\dir\\", 'say \\"hi\\"', "tab\\t", "'q'", "é", "\\\\\\\\host\\share", "", "\\x"])
            elif kind < 0.25:
                value += r.choice([" # c", " // c", " /* c */", ";", " ,", " x", "  \t"])
            line = name + r.choice([" = ", "=", " =", "= ", "\t=\t", "  =  "]) + value
            if kind > 0.95:
                line = r.choice(["# comment", "#" + name, "", "   ", name, "= 1", name + " =", " " + line, "// " + line, "[", "\"" + line])
            lines.append(line)
        # The library does not read an ad whose text starts with none.
        while lines and (lines[0].startswith("#") or not lines[0].strip()):
            del lines[0]
        return r.choice(["\n", "\n", "\r\n"]).join(lines or ["A = 1"]) + r.choice(["\n", ""])
