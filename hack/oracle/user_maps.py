#!/usr/bin/env python3
"""What HTCondor's userMap() makes of maps of users.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/user_maps.py [--seed N] [--count N] > tests/oracle/user_maps.json

Needs the chroot of the oracle (hack/condor.sh) and root. condor_status reads the map as a tool does (TOOL_CLASSAD_USER_MAP_NAMES)
and evaluates userMap() for each user; no pool runs. A tenth of a second a case.

Output, a JSON object a line in a list: `map`, `prefix` (CLASSAD_USER_MAP_PREFIX), and `users`: for each what it is mapped to, null
for nothing, and what of that is chosen where "cms" is preferred.

The cases of the rules come first, then COUNT random ones.
"""
import argparse
import json
import os
import random
import subprocess
from pathlib import Path

CHROOT = os.environ.get("CONDOR_CHROOT", "/var/tmp/condor")
PLACE = "tmp/user_maps"
AD = 'MyType = "Machine"\nName = "x"\n'

OF_THE_RULES = [
    ("# of physics\n* Alice\tgroup_physics\n\n  * Bob group_atlas,cms\n* /^student_(.*)/ students.\\1\n", False),
    ("* /a$/ re\n* zeta lit\n* /b/ rb\n* abc lit2\n", False),
    ("* zeta lit\n* /a$/ re\n* zeta lit2\n", False),
    ("* /^ci/i caseless\n* /^bo/ case\n", False),
    ('* "quo ted" "gr, cms"\n* "q\\"uote" x\n* alice "a \\"b\\" c"\n', False),
    ("* alice g # comment\n* bob # g\n*carol g5\n* dave\n* dave later\nX erin g\n* zed a b c\n", False),
    ("* /^(a)(b)?(c)$/ x\\1y\\2z\\3-\\0\n* abd \\0-\\0\n", False),
    ("* /a b/ space\n* /c\\/d/ slash\n* / none\n* /open none\n", False),
    ("* ali pre\n* alice exact\n* /^bo/ re\n", True),
    ("* al z\n* alice y\n* /^ali/ re\n", True),
    ("* * star\n* @ at\n* a@b.c at2\n* /@b\\.c$/ at3\n", False),
    ('* alice trail,\n* bob ,lead\n* zeta a,,CMS\n* abc ""\n', False),
]
USERS = ["Alice", "alice", "alice2", "ali", "Bob", "bob", "student_1", "xstudent_1", "zeta", "eta", "abc", "ac", "abd", "CIa", "cib",
         "quo ted", 'q"uote', "carol", "dave", "erin", "zed", "a b", "c/d", "*", "@", "a@b.c", "x@b.c", "none"]


def random_map(draw):
    lines, seen, prefix = [], set(), draw.random() < 0.25
    for _ in range(draw.randint(1, 8)):
        user = draw.choice(["alice", "al", "ali", "bob", "zeta", "abc", "a@b.c", "/^a/", "/b/i", "/(.)(e)/", "/^(ali)?ce?/", "/z|b/"])
        result = draw.choice(["g1", "g2,cms", "g3,CMS,x", "\\1.\\2", "u_\\0", '"g4, cms"', ",g5"])
        # HTCondor's own tool crashes on two literal lines of one user in a map of prefixes.
        if prefix and user in seen:
            continue
        seen.add(user)
        lines.append(draw.choice(["* ", "*\t", "  *  ", "* "]) + user + draw.choice([" ", "\t", "   "]) + result)
    return "\n".join(lines) + "\n", prefix


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def said(expression):
    """An expression as text, with something that no map says where it is undefined."""
    return f'ifThenElse(isUndefined({expression}), "<nothing>", {expression})'


def ask(text, prefix):
    place = Path(CHROOT) / PLACE
    place.mkdir(parents=True, exist_ok=True)
    (place / "map").write_text(text)
    (place / "ad").write_text(AD)
    (place / "config").write_text(
        f"TOOL_CLASSAD_USER_MAP_NAMES = G\nCLASSAD_USER_MAPFILE_G = /{PLACE}/map\nCLASSAD_USER_MAP_PREFIX_G = {prefix}\n"
    )
    calls = [f'userMap("G", {quoted(user)}{more})' for user in USERS for more in ("", ', "cms"')]
    argv = ["chroot", CHROOT, "env", f"CONDOR_CONFIG=/{PLACE}/config", "condor_status", "-ads", f"/{PLACE}/ad", "-af:ln"]
    lines = subprocess.run(argv + [said(call) for call in calls], capture_output=True, text=True, check=True).stdout
    values = [line.split(" = ", 1)[1] for line in lines.splitlines() if " = " in line]
    assert len(values) == len(calls), lines
    values = [None if value == "<nothing>" else value for value in values]
    return {user: [values[2 * at], values[2 * at + 1]] for at, user in enumerate(USERS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    cases = OF_THE_RULES + [random_map(draw) for _ in range(given.count)]
    rows = [{"map": text, "prefix": prefix, "users": ask(text, prefix)} for text, prefix in cases]
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")


if __name__ == "__main__":
    main()
