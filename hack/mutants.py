#!/usr/bin/env python3
"""mutants.py [--write PAGE] [NAME...]: breaks one guard after another on purpose, and demands that chaos notices each.

Each file of tests/mutations names a guard, and says by which snippet of the code it stands and how that snippet reads with
a switch in it. One scratch copy of what is committed gets all switches and is built once; MUTATED=7 in the environment then
turns on mutation 7. Each mutation is shown to the stories of tests/chaos; a mutation that the stories do not notice is shown
to seeds, up to SEEDS of them (150), which end with the first finding. Before that, stories and seeds have to find nothing
with all switches off.

Prints the table of the page about chaos, and with --write puts it into that page. Status 1 if a mutation is not noticed, 2
if nothing could be shown. Several mutations run at a time, one for each core.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
TREE = PLACE / "tree"
SEEDS = os.environ.get("SEEDS", "150")
WHOLE = "whatever_happens_the_invariants_hold_and_everything_settles"
# A run that takes so many seconds of processor time counts as endless.
PATIENCE = 900
# The test's name is on the line of the first.
FINDING = r"^(?:test .* \.\.\. )?seed (\d+): (?:at [0-9.]+ s: )?(.*)"
HEADER = "| mutation | the guard that it breaks | noticed by | as |"

SWITCH = """//! Which mutation is on. Only in the scratch copy of hack/mutants.py.

pub(crate) fn is(mutation: u32) -> bool {
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ON.get_or_init(|| std::env::var("MUTATED").ok().and_then(|n| n.parse().ok()).unwrap_or_default()) == mutation
}
"""


def give_up(why):
    print(f"mutants.py: {why}", file=sys.stderr)
    sys.exit(2)


def mutations():
    """All mutations by number: its name, its guard, its edits."""
    found = {}
    for path in sorted((TREE / "tests/mutations").glob("*.toml")):
        found[int(path.stem.split("-")[0])] = (path.stem, tomllib.loads(path.read_text()))
    return found


def spot(text, snippet):
    """Where a snippet stands in a text: one run of white space is as good as another."""
    words = r"\s+".join(re.escape(word) for word in snippet.split())
    found = [match.span() for match in re.finditer(words, text)]
    return found[0] if len(found) == 1 else None


def put_switches(all_mutations):
    """Puts every switch into the scratch copy. Spots are looked up in the files as they were."""
    edits = {}
    for number, (name, mutation) in all_mutations.items():
        for edit in mutation["edit"]:
            span = spot((TREE / edit["file"]).read_text(), edit["original"])
            if span is None:
                give_up(f"{name}: {edit['file']} does not hold the snippet once")
            switched = re.sub(r"\bMUTATED\b", f"crate::mutated::is({number})", edit["switched"])
            edits.setdefault(edit["file"], []).append((span, switched.strip()))
    for file, spots in edits.items():
        text = (TREE / file).read_text()
        for (start, end), switched in sorted(spots, reverse=True):
            text = text[:start] + switched + text[end:]
        (TREE / file).write_text(text)
    for crate in {pathlib.Path(*pathlib.Path(file).parts[:2]) for file in edits}:
        (TREE / crate / "mutated.rs").write_text(SWITCH)
        with (TREE / crate / "lib.rs").open("a") as lib:
            lib.write("\nmod mutated;\n")


def copy():
    """A scratch copy of what is committed. All its files are new: what an earlier call built of them is no longer good."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-xm", "-C", TREE], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        give_up("git archive failed")


def build():
    """Builds tests/chaos of the scratch copy, and says where it is."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--profile", "chaos", "-p", "slotwright-controller"]
    command += ["--test", "chaos", "--no-run", "--message-format", "json-render-diagnostics"]
    # A place of its own: cargo takes what it built of a copy elsewhere for what it built here.
    env = dict(os.environ, CARGO_TARGET_DIR=str(PLACE / "target"), RUSTFLAGS="--cap-lints allow")
    built = subprocess.run(command, cwd=TREE, env=env, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        give_up("the copy with its switches does not build")
    messages = map(json.loads, built.stdout.splitlines())
    programs = [message["executable"] for message in messages if message.get("executable")]
    return programs[-1]


def chaos(program, mutation, log, seeds, *arguments):
    """Runs some of tests/chaos under a mutation: whether all went well, whether there was an end, and what was printed."""
    env = dict(os.environ, MUTATED=str(mutation), CHAOS_SEEDS=str(seeds), CHAOS_FINDINGS="1")
    env.update(CHAOS_NO_STORY="1", RUST_BACKTRACE="0")
    with open(PLACE / "logs" / log, "w+") as out:
        command = [program, "--test-threads", "1", *arguments]
        code = subprocess.run(
            command, cwd=TREE / "src/controller", env=env, stdout=out, stderr=out, preexec_fn=limit
        ).returncode
        out.seek(0)
        return code == 0, code != -signal.SIGXCPU, out.read()


def limit():
    """Limits the processor time of this process. The time on the clock says little on a busy computer."""
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE + 10))


def stories(program, mutation, log):
    return chaos(program, mutation, log + ".stories", 10, "--skip", WHOLE)


def seeds(program, mutation, log):
    return chaos(program, mutation, log + ".seeds", SEEDS, "--exact", WHOLE, "--nocapture")


def said(text):
    """What is wrong first of all; where a story says nothing but that it failed, its name."""
    finding = re.search(FINDING, text, re.MULTILINE)
    if finding:
        return finding[2][:100]
    failed = re.findall(r"^---- (?:.*::)?(.*) stdout ----$", text, re.MULTILINE)
    return failed[0].replace("_", " ") if failed else ""


def row(program, number, name, guard):
    """Shows a mutation to the stories and, if need be, to seeds: its row of the table, and whether it was noticed."""
    title = f"| {name.replace('-', ' ', 1)} | {guard} |"
    well, ended, text = stories(program, number, name)
    if not well:
        failed = len(re.findall(r"^---- .* stdout ----$", text, re.MULTILINE))
        by = f"{failed} of the stories" if ended else "stories that do not end"
        return f"{title} {by} | {said(text)} |", True
    well, ended, text = seeds(program, number, name)
    if not well:
        first = min((int(finding[0]) for finding in re.findall(FINDING, text, re.MULTILINE)), default=None)
        by = f"seed {first}" if ended and first is not None else "seeds that do not end"
        return f"{title} {by} | {said(text)} |", True
    return f"{title} **not noticed** in {SEEDS} seeds | |", False


def write(page, table):
    """Puts the table in the place of the one that the page has."""
    text = page.read_text()
    new, count = re.subn(r"^\| mutation \|.*\n(?:\|.*\n)*", lambda _: table, text, count=1, flags=re.MULTILINE)
    if count != 1:
        give_up(f"{page} has no table of mutations")
    page.write_text(new)


def main():
    parser = argparse.ArgumentParser(description="Breaks guards on purpose, and demands that chaos notices each.")
    parser.add_argument("--write", metavar="PAGE", type=pathlib.Path, help="put the table into this page, too")
    parser.add_argument("names", nargs="*", help="the mutations to make; all where none is named")
    asked = parser.parse_args()
    if asked.write and asked.names:
        give_up("a page has the table of all mutations")
    copy()
    found = mutations()
    put_switches(found)
    program = build()
    shutil.rmtree(PLACE / "logs", ignore_errors=True)
    (PLACE / "logs").mkdir()
    cores = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        nothing = [pool.submit(shown, program, 0, "nothing") for shown in (stories, seeds)]
        for well, _, text in (job.result() for job in nothing):
            if not well:
                print(text[-4000:], file=sys.stderr)
                give_up("chaos finds something in what is committed")
        table = [HEADER, "| --- | --- | --- | --- |"]
        print("\n".join(table), flush=True)
        chosen = [
            (number, name, mutation["guard"])
            for number, (name, mutation) in found.items()
            if not asked.names or name in asked.names
        ]
        missed = 0
        for line, noticed in pool.map(lambda mutation: row(program, *mutation), chosen):
            table.append(line)
            missed += not noticed
            print(line, flush=True)
    if asked.write:
        write(asked.write, "\n".join(table) + "\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
