"""Snakemake with its executor for clusters, unmodified, and the scripts of examples/clients/snakemake."""
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from condor import queue, until

WORKFLOW = """
rule all:
    input: "sum.txt"

rule square:
    output: "square-{n}.txt"
    resources: mem_mb=200
    shell: "echo $(( {wildcards.n} * {wildcards.n} )) $_CONDOR_SLOT > {output}"

rule sum:
    input: expand("square-{n}.txt", n=range(4))
    output: "sum.txt"
    resources: mem_mb=200
    shell: "cut -d ' ' -f 1 {input} | paste -s -d + | tr -d '\\\\n' > {output}"

rule fails:
    output: "never.txt"
    shell: "exit 3"

rule long:
    output: "late.txt"
    shell: "sleep 600"
"""
SCRIPTS = Path(__file__).resolve().parents[2] / "examples/clients/snakemake"


def snakemake(target):
    command = [sys.executable, "-m", "snakemake", "--executor", "cluster-generic", "--jobs", "4", "--latency-wait", "5",
               "--default-resources", "mem_mb=200", "disk_mb=100", "--seconds-between-status-checks", "1",
               "--cluster-generic-submit-cmd", f"{SCRIPTS}/submit.sh {{threads}} {{resources.mem_mb}}",
               "--cluster-generic-status-cmd", f"{SCRIPTS}/status.sh", "--cluster-generic-cancel-cmd", "condor_rm", target]
    # Who runs this script in the background has SIGINT ignored.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=heed)


def main():
    begin = time.monotonic()
    os.makedirs("workflow", exist_ok=True)
    os.chdir("workflow")
    Path("Snakefile").write_text(WORKFLOW)
    run = snakemake("all")
    said = run.communicate(timeout=150)[0]
    assert run.returncode == 0 and Path("sum.txt").read_text() == "0+1+4+9", said
    assert all("@processes" in Path(f"square-{n}.txt").read_text() for n in range(4)), said
    run = snakemake("fails")
    said = run.communicate(timeout=90)[0]
    assert run.returncode != 0 and "Error in rule fails" in said, said
    run = snakemake("long")
    until(lambda: "2" in queue("-af", "JobStatus"), "the long job runs", 60)
    # As Ctrl-C.
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[0]
    until(lambda: queue("-af", "JobStatus", "-constraint", "JobStatus < 4") == [], f"the long job is cancelled: {said}")
    print(f"snakemake {version('snakemake')}: a workflow, a failure, a cancellation in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
