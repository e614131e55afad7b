#!/usr/bin/env python3
"""Random HTCondor configuration files, and what condor_config_val makes of them.

    export CONDOR_CHROOT=/var/tmp/condor          # where Debian's condor package is; empty: on this machine
    tests/oracle/config.py --seed 2 --count 3300 > tests/oracle/config.jsonl
    tests/oracle/config.py --seed 7 --count 4000 > /tmp/c.jsonl
    CONFIG_ORACLE=/tmp/c.jsonl cargo test --test config_oracle

Output, a JSON array a line: ["file", TEXT, SUBSYSTEM, LOCAL NAME or null, STATUS, MESSAGE] is a file and whether it can
be read (STATUS 0), and ["NAME", RAW, VALUE] is the value of a name in it as it is written and expanded: null where it
is not defined, false where HTCondor complains, crashes or does not finish. The same seed gives the same cases.
"""
import argparse
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

NAMES = ["A", "B", "C", "D", "E", "Foo", "BAR", "x_1", "N1", "N2", "L1", "L2", "S1", "P1", "Q", "R"]
KNOBS = ["START", "PREEMPT", "UPDATE_INTERVAL", "MINUTE", "HOUR", "SLOT_WEIGHT", "MaxJobRetirementTime", "CLAIM_WORKLIFE"]
PREFIXES = ["STARTD.", "SCHEDD.", "LN.", "STARTD.LN.", "TOOL.", "SLOT1_", "SLOT_TYPE_1_"]
WORDS = ["one", "two words", "a,b,c", "a b c", '"quoted"', "TARGET.Owner == \"x\"", "1", "42", "-7", "3.5", "true", "False",
         "$", "$$(Name)", "$$([Cpus * 2])", "x:y", "# not a comment", "é", "/a/b/c.tar.gz", "dir/file", "\\", "a\\b",
         "(Memory > 1024) && (Cpus >= 2)", "undefined", "{1, 2}", "=", "1K", "two  blanks", "$(DOLLAR)", "0x10", "1e3",
         "$(", "$(NOPE", ")", "(C)", "$(A B)", "$INT(", "$(NOPE:", "$(DOLLAR)(NOPE)", "$(DOLLAR:x)", "$ (A)", "$(NOPE:(x", "$$$(NOPE)"]
DEFAULTS = ["z", "", "a:b", "1 2", "$(B)", "$(C:y)", "a,b", "x.y/z", "\\", "$", "$(NOPE:$(A))", "(p)", "-", "\"q\"", "$INT(N1)"]
NUMBERS = ["0", "1", "2", "3", "-1", "-3", "7", "100", "1.5", "2*3", "7/2", "$(N1)+1", "$(NOPE)", "foo", "", "N1", " 2", "1 + "]
CONDITIONS = ["true", "false", "yes", "NO", "1", "0", "3", "0.0", "-1", "defined A", "defined NOPE", "defined START", "defined x_1",
              "defined $(A)", "!defined B", "! true", "version >= 8.1.2", "version > 99.1", "version == 25.14", "version < 30.0.0",
              "$(N1)", "$(NOPE)", "! $(NOPE)", "$(A)", "$(N1:0)", "defined use ROLE", "defined use POLICY:Desktop",
              "defined use FEATURE:Nope", "T", "f", "1.", ".5", "$(TF)", "DEFINED Foo", "version != 25.14.1", "version <= 24.0.1"]
BROKEN_CONDITIONS = ["A == B", "true && true", "foo", "", "!!true", "version 8.1", "version > 8", "defined A B", "(true)", "+1", "0x1"]
TEMPLATES = ["POLICY:Always_Run_Jobs", "POLICY:Limit_Job_Runtimes(3600)", "POLICY : Limit_Job_Runtimes", "FEATURE:PartitionableSlot",
             "FEATURE:PartitionableSlot(2, cpus=50%, mem=1/2)", "FEATURE : StaticSlots(3,4)", "POLICY:Preempt_If(A)",
             "POLICY:Want_Hold_If(B, 42, too bad)", "ROLE : Execute, Submit", "ROLE:CentralManager Personal",
             "POLICY:Hold_If_Memory_Exceeded", "POLICY:Preempt_If_Cpus_Exceeded", "FEATURE:Policy_Expr_Fragments", "POLICY:Desktop",
             "policy:desktop_hours(8,17)", "POLICY:Desktop_Idle(8, 17, 1, 5)", "POLICY:UWCS_Desktop", "POLICY:Hold_If_Runtime_Exceeds(60)",
             "FEATURE:GPUs", "FEATURE:AssignAccountingGroup(/etc/map)", "POLICY:Hold_If_Disk_Exceeded, Hold_If_Cpus_Exceeded"]
ASKED_OF_TEMPLATES = ["START", "PREEMPT", "WANT_HOLD", "WANT_HOLD_REASON", "WANT_HOLD_SUBCODE", "WANT_SUSPEND", "SUSPEND", "CONTINUE",
                      "MaxJobRetirementTime", "MAX_JOB_RUNTIME", "SLOT_TYPE_1", "SLOT_TYPE_2", "SLOT_TYPE_3", "NUM_SLOTS_TYPE_3",
                      "STARTD_ATTRS", "DAEMON_LIST", "CLAIM_WORKLIFE", "IS_OWNER", "KILL"]
FORMATS = ["%d", "%05d", "x=%d y", "%x", "%-6d|", "%+d", "%s", "%.2f", "%e", "%g", "%10.3f", "", "%u", "%lld", "%d%%", "[%s]", "%5s"]
FILE_PARTS = ["", "p", "n", "x", "d", "pn", "nx", "px", "pnx", "dn", "dnx", "dd", "b", "bp", "bx", "bd", "q", "qn", "qa", "qan",
              "w", "u", "f", "dx", "qd", "qnx", "qpnx"]


class Gen:
    """Files as text; everything drawn from one seeded source."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.level = {}

    def name(self):
        r = self.r
        kind = r.random()
        if kind < 0.78:
            return r.choice(NAMES)
        if kind < 0.88:
            return r.choice(PREFIXES) + r.choice(NAMES[:6])
        return r.choice(KNOBS)

    def reference(self, below):
        """A reference to a name that stands lower, so that names do not lead back to themselves."""
        r = self.r
        lower = [name for name in NAMES if self.rank(name) < below] + ["NOPE", "UNSET", "MINUTE", "HOUR"]
        name = r.choice(lower)
        if r.random() < 0.15:
            name = r.choice([name.lower(), name.upper()])
        if r.random() < 0.3:
            default = r.choice([d for d in DEFAULTS if "$" not in d] + ["$(%s)" % r.choice(lower)])
            return "$(%s:%s)" % (name, default)
        return "$(%s)" % name

    def rank(self, name):
        return NAMES.index(name) if name in NAMES else len(NAMES)

    def function(self, below):
        """A function, with arguments that stand lower."""
        while True:
            text = self.any_function(below)
            if not any(name in text and self.rank(name) >= below for name in NAMES[6:]):
                return text

    def any_function(self, below):
        r = self.r
        arg = r.choice([name for name in NAMES if self.rank(name) < below] + ["NOPE"])
        kind = r.randrange(9)
        if kind <= 1:
            what = r.choice([arg, r.choice(NUMBERS), "N1", "N2", "x_1"])
            return "$%s(%s%s)" % (r.choice(["INT", "REAL"]), what, r.choice(["", "", "," + r.choice(FORMATS)]))
        if kind == 2:
            return "$STRING(%s%s)" % (r.choice([arg, '"lit"', "S1"]), r.choice(["", "", "," + r.choice(FORMATS)]))
        if kind == 3:
            return "$EVAL(%s)" % r.choice([arg, "1+2", "{1,2.5}", '"s"', "L1", "true", "1 +", "S1", "strcat(\"a\",\"b\""])
        if kind == 4:
            numbers = [r.choice(["0", "1", "2", "-1", "-2", "9", "-9", "N1", "1+1", "x"]) for _ in range(r.choice([1, 1, 2, 2, 0, 3]))]
            return "$SUBSTR(%s)" % ",".join([arg] + numbers)
        if kind == 5:
            index = r.choice(["0", "1", "2", "N1", "1+1", "-1", "x", " 1 "])
            return "$CHOICE(%s,%s)" % (index, r.choice(["L1", "L2", "a,b,c", " a , b ", "NOPE", "a,,b", arg]))
        if kind == 6:
            return r.choice(["$RANDOM_INTEGER(%s)" % r.choice(["5,5", "3,4,2", "2,1", "1", "a,b", "7, 7 ,1", "1,1,0"]),
                             "$RANDOM_CHOICE(%s)" % r.choice(["L3", "", "x,x", " y , y "])])
        if kind == 7:
            return "$F%s(%s)" % (r.choice(FILE_PARTS), r.choice(["P1", arg, "/lit/eral.x", "S1"]))
        return r.choice(["$BASENAME(P1)", "$DIRNAME(P1)", "$BASENAME(P1,.gz)", "$DIRNAME(%s)" % arg,
                         "$BASENAME(P1,%s)" % r.choice(SUFFIXES), "$BASENAME(%s,%s)" % (arg, r.choice(SUFFIXES)), "$ENV(NOPE)", "$ENV(NOPE:d e)",
                         "$ENV(ORACLE)", "$NOPE(x)", "$int(1)", "$BASENAME(/a/.gz,.gz)"])

    def value(self, name):
        r = self.r
        base = name.split(".")[-1]
        below = self.rank(base)
        if base in ("MINUTE", "HOUR"):
            # Others refer to these.
            return r.choice(["5", "$(NOPE)7", "1 + 1", ""])
        if name != base or base in KNOBS:
            below = min(below, 6)
        special = {"N1": ["0", "1", "2", "3"], "N2": ["5", "-2", "7/2", "$(N1)*2", "1.5"], "L1": ["a,b,c", "a b,c", "x"],
                   "L2": ["1,2,3", "$(A),q", "p , q"], "S1": ['"str"', '"a b"', "bare"],
                   "P1": ["/a/b/c.tar.gz", "c.txt", "b/c", '"/a b/c.d"', "/x/.rc", "/a/b/C.TAR.GZ", "x.Txt"]}
        if base in special and r.random() < 0.7:
            return r.choice(special[base])
        parts = []
        for _ in range(r.choice([1, 1, 1, 2, 2, 3])):
            kind = r.random()
            if kind < 0.4:
                parts.append(r.choice(WORDS))
            elif kind < 0.72:
                parts.append(self.reference(below))
            elif kind < 0.82:
                parts.append("$(%s%s)" % (r.choice([name, base, name.lower()]), r.choice(["", "", ":none"])))
            else:
                parts.append(self.function(below))
        return r.choice([" ", "", " + "]).join(parts)

    def fold(self, text):
        """Breaks a line in two, or leaves it."""
        r = self.r
        if r.random() > 0.08 or "\\" in text or len(text) < 6:
            return text
        at = r.randrange(3, len(text))
        comment = r.choice(["", "", "", "# note\\\n"])
        return text[:at] + "\\\n" + comment + r.choice(["", "   ", "\t"]) + text[at:]

    def assignment(self):
        r = self.r
        name = self.name()
        kind = r.random()
        if kind < 0.07:
            return "%s =" % name
        if kind < 0.2:
            return "%s += %s" % (name, self.value(name))
        if kind < 0.24:
            return "%s : %s" % (name, self.value(name))
        if kind < 0.3:
            lines = [r.choice(["", "  ", "\t"]) + self.value(name) for _ in range(r.randrange(4))]
            lines += r.choice([[], [], ["# comment"], [""], ["if false"], ["@other"]])
            r.shuffle(lines)
            tag = r.choice(["end", "x y", "", "="])
            return "\n".join(["%s @=%s" % (name, tag)] + lines + ["@" + tag])
        space = r.choice([" = ", "=", " =", "= ", "\t=\t", " word = "])
        return self.fold(r.choice(["", "", "  "]) + name + space + self.value(name) + r.choice(["", "", " "]))

    def conditional(self, depth):
        r = self.r
        lines = ["%s %s" % (r.choice(["if", "if", "IF"]), self.condition())]
        lines += self.statements(depth - 1, r.randrange(1, 4))
        for _ in range(r.choice([0, 0, 1, 2])):
            lines += ["elif %s" % self.condition()] + self.statements(depth - 1, r.randrange(1, 3))
        if r.random() < 0.5:
            lines += ["else"] + self.statements(depth - 1, r.randrange(1, 3))
        lines.append(r.choice(["endif", "EndIf", "endif"]))
        indent = r.choice(["", "  ", ":" if depth < 2 else ""])
        return [lines[0]] + [indent + line if "\n" not in line and "@" not in line else line for line in lines[1:-1]] + [lines[-1]]

    def condition(self):
        r = self.r
        return r.choice(BROKEN_CONDITIONS) if r.random() < 0.015 else r.choice(CONDITIONS)

    def statements(self, depth, count):
        r = self.r
        lines = []
        for _ in range(count):
            kind = r.random()
            if kind < 0.13 and depth > 0:
                lines += self.conditional(depth)
            elif kind < 0.16:
                lines.append("use %s" % r.choice(TEMPLATES))
            elif kind < 0.2:
                lines.append(r.choice(["# comment", "# comment \\", "", "   ", "[section]", "warning : careful $(A)", "#opt:newcomment"]))
            elif kind < 0.204:
                lines.append(r.choice(["word", "X-Y = 1", "error : stop $(A)", "[two words]", "use POLICY : Nope", "else", "endif", "A+=1",
                                       "A + = 1", "use NOPE : x", "A @x", "$(NOPE) = 1", "elif true", "include foo : x", "use : x",
                                       "A @=never", "if true"]))
            elif kind < 0.22:
                lines.append(r.choice(["V$(N1) = %s" % r.choice(WORDS), "include ifexist : /nope/$(A)", "use %s : %s" % tuple(
                    r.choice([t for t in TEMPLATES if "(" not in t]).split(":", 1)), "error = $(A)", "use = 1", "warning = w"]))
            else:
                lines.append(self.assignment())
        return lines

    def file(self):
        r = self.r
        count = r.randrange(4, 26)
        text = "\n".join(self.statements(3, count)) + r.choice(["\n", "\n", "\n", "\n\n", ""])
        subsystem = r.choice([None, None, "STARTD", "STARTD", "SCHEDD"])
        local = r.choice([None, None, None, "LN"])
        return text, subsystem, local


# ---- the oracle --------------------------------------------------------------------------------------

class Oracle:
    def __init__(self, chroot):
        self.chroot = chroot
        self.home = chroot + "/srv/config-oracle" if chroot else "/tmp/config-oracle"
        os.makedirs(self.home, exist_ok=True)

    def ask(self, place, text, options, names, seconds=4):
        """Status and output of one call, messages among the values where they belong."""
        path = "%s/%s.config" % (self.home, place)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        inside = path[len(self.chroot):]
        # What does not finish is ended by its processor time: on a busy machine the clock says nothing.
        command = ["prlimit", "--cpu=%d" % seconds] + (["chroot", self.chroot] if self.chroot else [])
        command += ["stdbuf", "-oL", "condor_config_val"] + options + names
        env = {"CONDOR_CONFIG": inside, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ORACLE": "from the environment"}
        try:
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * seconds)
            return done.returncode, done.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            return None, ""

    def values(self, place, text, options, names):
        """The value of each name: null not defined, false no answer."""
        # A name that cannot be in the file after each of them: values may have several lines.
        # Before the first, what there is to say of the file.
        marked = ["ZZEND"] + [name for name in names for name in (name, "ZZEND")]
        status, out = self.ask(place, "ZZEND = <<end>>\n" + text, options, marked)
        parts = out.split("<<end>>\n")
        if status not in (0, 1) or len(parts) != len(names) + 2:
            return [self.value(place, text, options, name) for name in names]
        return [self.answer(part) for part in parts[1:-1]]

    def value(self, place, text, options, name):
        status, out = self.ask(place, "ZZEND = <<end>>\n" + text, options, ["ZZEND", name], 2)
        return self.answer(out.split("<<end>>\n")[-1]) if status in (0, 1) else False

    @staticmethod
    def answer(out):
        lines = out.split("\n")
        if any(line.startswith("ERROR ") for line in lines):
            return False
        if len(lines) == 2 and lines[0].startswith("Not defined: "):
            return None
        return "\n".join(lines[:-1]) if not lines[-1] else False

    def file(self, place, case):
        text, subsystem, local = case
        options = (["-subsystem", subsystem] if subsystem else []) + (["-local-name", local] if local else [])
        status, out = self.ask(place, text, options, ["ARCH"])
        readable = status is not None and status == 0 and "Configuration Error" not in out and "ERROR" not in out
        message = "" if readable else (out.strip().splitlines() or ["no answer"])[-1]
        answers = [["file", text, subsystem, local, 0 if readable else 1, message]]
        if not readable:
            return answers
        names = NAMES + KNOBS[:4]
        names += [prefix + name for prefix in PREFIXES for name in NAMES[:4] if (prefix + name).lower() in text.lower()]
        names += ["V0", "V1", "V2", "V3"] if "V$(" in text else []
        names += ASKED_OF_TEMPLATES if "use " in text else []
        names = [name for name in names if name.lower() in text.lower() or name in KNOBS or name in ASKED_OF_TEMPLATES]
        raws = self.values(place, text, options + ["-raw"], names)
        values = self.values(place, text, options, names)
        return answers + [[name, raw, value] for name, raw, value in zip(names, raws, values)]

# Some are there in the other case, some are no suffix of any path.
SUFFIXES = [".gz", ".GZ", ".tar.gz", ".TAR.Gz", "gz", " .gz", ".gz ", ".txt", ".TXT", "c", "C.TXT", ".rc", "", '".gz"', ".d", "$(S1)", "é"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4000, help="how many values to ask for, about")
    args = parser.parse_args()
    oracle = Oracle(os.environ.get("CONDOR_CHROOT", ""))
    gen = Gen(args.seed)
    count = 0
    with ThreadPoolExecutor(2) as pool:
        while count < args.count:
            cases = [gen.file() for _ in range(20)]
            for lines in pool.map(oracle.file, ["%d-%d" % (os.getpid(), at) for at in range(20)], cases):
                for line in lines:
                    print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
                count += len(lines)
    for at in range(20):
        os.unlink("%s/%d-%d.config" % (oracle.home, os.getpid(), at))
    print("%d lines" % count, file=sys.stderr)


if __name__ == "__main__":
    main()
