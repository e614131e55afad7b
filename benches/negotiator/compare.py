#!/usr/bin/env python3
"""Compares a cycle of the real condor_negotiator with one of `slotwright negotiate`, on the same ads and the same computer.

    compare.py --slotwright PROGRAM [--condor CHROOT] [--rounds N] [--write FILE] SIZE...

A SIZE is SLOTS,JOBS,AUTOCLUSTERS,SUBMITTERS. With ",interleaved" behind it, neighboring jobs in the queue are of different
kinds; with ",alone", only our side is measured. Prints a Markdown table; --write also puts it between the marks of a document.

The two sides take turns: for each size the real negotiator runs once, and ours N times, of which the median counts. The
figures are CPU seconds, so that other work on the computer has little influence: phases 2 to 4 of the real negotiator, and
our `cpu_s`. Neither side parses or optimizes ads in that time.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import workload

HEADER = ("slots", "jobs", "autoclusters", "submitters", "order", "matches", "HTCondor, CPU s", "ours, CPU s", "times less",
          "slot classes", "ours, prepare CPU s", "ours, read CPU s", "ours, MiB")
BEGIN, END = "<!-- make bench writes cycles from here -->", "<!-- to here -->"


@dataclass(frozen=True)
class Size:
    """The size of a pool and of its queue."""
    slots: int
    jobs: int
    autoclusters: int
    submitters: int
    interleaved: bool = False
    alone: bool = False

    @classmethod
    def parse(cls, text):
        words = text.split(",")
        return cls(*map(int, words[:4]), interleaved="interleaved" in words, alone="alone" in words)

    def job_ads(self):
        """The jobs' ads, one after another."""
        for job in range(self.jobs):
            yield workload.long_form(workload.job(job, self.jobs, self.autoclusters, self.submitters, self.interleaved))


def ours(program, size, slots):
    """Runs `slotwright negotiate` once. The jobs go through a pipe, so that a million jobs need no disk space."""
    command = [program, "negotiate", "--slots", slots, "--jobs", "-", "--now", "1795100000", "-o", "json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for ad in size.job_ads():
            process.stdin.write(ad)
        process.stdin.close()
        figures = json.loads(process.stdout.read())
    if process.returncode != 0:
        sys.exit(f"{program} failed: {process.returncode}")
    return figures


def row(program, size, rounds, with_condor):
    """Measures one size, and returns its row of the table."""
    theirs = None
    if with_condor and not size.alone:
        import condor
        theirs = condor.measure(size)
    with tempfile.NamedTemporaryFile("w", suffix=".ads") as slots:
        for slot in range(size.slots):
            slots.write(workload.long_form(workload.slot(slot)))
        slots.flush()
        runs = [ours(program, size, slots.name) for _ in range(rounds)]
    cpu = median(run["cpu_s"] for run in runs)
    matches = runs[0]["matches"]
    if theirs and theirs["matches"] != matches:
        matches = f"{matches} (HTCondor {theirs['matches']})"
    return [size.slots, size.jobs, size.autoclusters, size.submitters, "interleaved" if size.interleaved else "blocked",
            matches, f"{theirs['cpu_s']:.2f}" if theirs else "-", f"{cpu:.3f}",
            f"{theirs['cpu_s'] / cpu:.0f}" if theirs else "-", runs[0]["slot_classes"],
            f"{median(run['prepare_cpu_s'] for run in runs):.3f}",
            f"{median(run['read_cpu_s'] for run in runs):.1f}",
            f"{max(run['peak_rss_kib'] or 0 for run in runs) / 1024:.0f}"]


def line(cells):
    """Cells as a Markdown row."""
    return "| " + " | ".join(map(str, cells)) + " |"


def write(path, table):
    """Puts the table between the marks of a document."""
    text = path.read_text()
    before, rest = text.split(BEGIN, 1)
    path.write_text(before + BEGIN + "\n" + table + "\n" + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slotwright", required=True)
    parser.add_argument("--condor", help="the chroot with HTCondor; without it our side is alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("sizes", nargs="+", type=Size.parse, metavar="SIZE")
    args = parser.parse_args()
    if args.condor:
        os.environ["CONDOR_CHROOT"] = args.condor
    table = [line(HEADER), "|" + " --- |" * len(HEADER)]
    print("\n".join(table), flush=True)
    for size in args.sizes:
        table.append(line(row(args.slotwright, size, args.rounds, bool(args.condor))))
        print(table[-1], flush=True)
    if args.write and args.condor:
        write(args.write, "\n".join(table))


if __name__ == "__main__":
    main()
