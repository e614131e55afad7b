#!/usr/bin/env python3
"""submit_files.py: asks condor_submit -dry-run about each file in tests/submit/files, and prints the answers as JSON.

CONDOR_CHROOT names a chroot with HTCondor's tools (hack/condor.sh makes one); empty: the tools are installed here. The files run
beside a copy of tests/submit/place, as the user who runs this script, with a small environment of its own.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHROOT = os.environ.get("CONDOR_CHROOT", "")
PLACE = "/var/tmp/submit-oracle"
ENVIRONMENT = {
    "HOME": "/home/ada",
    "PATH": "/usr/bin:/bin",
    "CONDA_PREFIX": "/opt/conda",
    "CONDA_EXE": "/opt/conda/bin/conda",
    "ODD": "semi;colon",
}
# Several queue statements are refused by default since 25.
SETTINGS = {"_CONDOR_SUBMIT_PREVENT_MULTI_QUEUE": "false", "_CONDOR_FILESYSTEM_DOMAIN": "example.org"}


def run(words):
    clean = ["env", "-i", "-C", PLACE] + [f"{name}={value}" for name, value in {**ENVIRONMENT, **SETTINGS}.items()]
    command = (["chroot", CHROOT] if CHROOT else []) + clean + words
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def inside(path):
    return Path(CHROOT or "/") / path.lstrip("/")


def size(path):
    """The size in bytes of a file of the chroot; of a directory, that of the files in it."""
    place = inside(path)
    if place.is_dir():
        return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return place.stat().st_size if place.exists() else None


def ads(text):
    """The ads of -dry-run's file: the lines of each, sorted."""
    found = []
    for block in text.split("\n\n"):
        lines = sorted(line for line in block.split("\n") if "=" in line)
        if lines:
            found.append(lines)
    return found


def ask(name):
    out = inside(PLACE + "/dry-run.ads")
    out.unlink(missing_ok=True)
    status, said, complaints = run(["condor_submit", "-dry-run", "dry-run.ads", name])
    answer = {"status": status, "said": said, "complaints": complaints}
    if status == 0 and out.exists():
        answer["ads"] = ads(out.read_text())
    return answer


def main():
    place = inside(PLACE)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "tests/submit/place", place)
    for file in sorted((ROOT / "tests/submit/files").glob("*.sub")):
        shutil.copy(file, place)
    for image in ("sandbox", "output"):
        (place / image).mkdir()
    (place / "image.sif").write_text("image\n")
    answers = {file.stem: ask(file.name) for file in sorted(place.glob("*.sub"))}
    sizes = {path: size(path) for path in ("/bin/sleep", "/bin/cat", "/bin/sh", "/usr/bin/python3", PLACE + "/image.sif")}
    record = {
        "version": run(["condor_submit", "-version"])[1].splitlines(),
        "directory": PLACE,
        "environment": ENVIRONMENT | {name: value for name, value in SETTINGS.items()},
        "sizes": {path: bytes for path, bytes in sizes.items() if bytes is not None},
        "answers": answers,
    }
    json.dump(record, sys.stdout, indent=1, sort_keys=True)
    print()
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
