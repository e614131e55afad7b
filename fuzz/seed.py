#!/usr/bin/env python3
"""seed.py RECORDING CORPORA: makes inputs for the fuzz targets from the oracle's recording."""
import hashlib
import json
import pathlib
import sys

KEPT = 400


def write(directory, text):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / hashlib.sha1(text.encode()).hexdigest()).write_text(text)


def main():
    corpora = pathlib.Path(sys.argv[2])
    lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    every, my, target, seen = max(1, len(lines) // KEPT), None, None, 0
    for line in lines:
        if line[0] == "ads":
            my, target = line[1], line[2]
            continue
        seen += 1
        if seen % every:
            continue
        write(corpora / "classad_lexer", line[0])
        write(corpora / "classad_parser", line[0] if seen % 2 else my)
        if my and len(my) + len(target or "") < 900:
            write(corpora / "classad_eval", "%s\n---\n%s\n---\n%s" % (my, target or "[]", line[0]))


main()
