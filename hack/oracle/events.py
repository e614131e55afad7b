#!/usr/bin/env python3
"""The job event log that HTCondor writes of jobs that end, are held, released, vacated and removed.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/events.py > tests/oracle/events.json

Needs the chroot of the oracle (hack/condor.sh) and root. A whole pool of one machine runs in the chroot; each case submits a job
with a log of its own, and acts on it once it has reached a state. Two minutes.

Output, a JSON object: for each case the submit description, the steps, and the log.
"""
import json
import sys

from devices import HOME, ROOT, USER, Pool, tool, wait_until, write

# Name, submit commands, and the steps: wait for a JobStatus, or call a tool.
CASES = [
    ("exits with 0", "arguments = \"-c 'exit 0'\"", []),
    ("exits with 3", "arguments = \"-c 'exit 3'\"", []),
    ("a signal ends it", "arguments = \"-c 'kill -9 $$'\"", []),
    ("is held while it runs, and released", "arguments = \"-c 'sleep 20'\"", [2, "hold", 5, "release", 2]),
    ("is held idle, and removed", "arguments = \"-c 'sleep 600'\"\nrequirements = false", [1, "hold", 5, "rm"]),
    ("is removed while it runs", "arguments = \"-c 'sleep 600'\"", [2, "rm"]),
    ("is vacated", "arguments = \"-c 'sleep 15'\"", [2, "vacate_job", 1, 2]),
    ("is held by on_exit_hold", "arguments = \"-c 'exit 5'\"\non_exit_hold = ExitCode == 5\non_exit_hold_reason = \"five\"\non_exit_hold_subcode = 7", [5, "rm"]),
    ("is submitted held", "arguments = \"-c 'exit 0'\"\nhold = true", [5, "release"]),
    ("runs again", "arguments = \"-c 'exit 1'\"\nmax_retries = 1", []),
    ("is removed by periodic_remove", "arguments = \"-c 'sleep 600'\"\nperiodic_remove = NumJobStarts > 0", []),
    ("has notes", "arguments = \"-c 'exit 0'\"\nsubmit_event_notes = some notes\nsubmit_event_user_notes = mine", []),
]


def status(job):
    return tool("condor_q", "-all", job, "-af", "JobStatus").strip()


def case(number, commands, steps):
    log = f"{HOME}/jobs/{number}.log"
    write(f"{HOME}/jobs/job.sub", "executable = /bin/sh\ntransfer_executable = False\nrequest_disk = 1000\nrequest_memory = 10\n"
          f"log = {log}\n{commands}\nqueue\n")
    said = tool("condor_submit", "-terse", f"{HOME}/jobs/job.sub", user=USER)
    job = said.split(" ", maxsplit=1)[0].strip()
    for step in steps:
        if isinstance(step, int):
            if not wait_until(lambda step=step: status(job) == str(step), 60):
                print(f"case {number}: {job} does not get to {step}, but is {status(job)}", file=sys.stderr)
        else:
            tool(f"condor_{step}", job, user=USER)
    if not wait_until(lambda: not status(job), 120):
        print(f"case {number}: {job} does not end", file=sys.stderr)
    return {"job": job, "commands": commands, "steps": steps, "log": (ROOT / log.lstrip("/")).read_text()}


def main():
    config = "PERIODIC_EXPR_INTERVAL = 5\nMachineMaxVacateTime = 5\nSHADOW_QUEUE_UPDATE_INTERVAL = 5\n"
    with Pool(config, []):
        found = {name: case(number, commands, steps) for number, (name, commands, steps) in enumerate(CASES)}
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
