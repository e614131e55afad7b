#!/usr/bin/env python3
"""tools.py: asks HTCondor's condor_q, condor_status and condor_history about each command line in tests/tools/cases.txt, and prints the answers.

CONDOR_CHROOT names a chroot with HTCondor's tools (hack/condor.sh makes one); empty: the tools are installed here. The tools read
the ads in tests/tools/ads, and no daemon runs.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHROOT = os.environ.get("CONDOR_CHROOT", "")
PLACE = "/var/tmp/tools-oracle"
# The header of condor_q has the time of the ads, or else the present time, which no recording can hold.
NOW = re.compile(r"^(-- .* @ )(?!01/0[12]/30 ).*$", re.MULTILINE)


def run(words):
    clean = ["env", "-i", "-C", PLACE, "TZ=UTC", "PATH=/usr/bin:/bin", "CONDOR_CONFIG=/dev/null"]
    command = (["chroot", CHROOT] if CHROOT else []) + clean + words
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return {"status": done.returncode, "said": NOW.sub(r"\1NOW", done.stdout), "complaints": done.stderr}


def main():
    place = Path(CHROOT or "/") / PLACE.lstrip("/")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "tests/tools/ads", place)
    lines = (ROOT / "tests/tools/cases.txt").read_text().splitlines()
    cases = [line for line in lines if line and not line.startswith("#")]
    words = [shlex.split(line) for line in cases]
    answers = [{"words": one, **run(one)} for one in words]
    version = run(["condor_q", "-version"])["said"].splitlines()
    print(json.dumps({"version": version, "answers": answers}, indent=1))


main()
