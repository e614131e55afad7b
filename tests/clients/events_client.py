"""The job event log, read by HTCondor's own library: each event once, whoever brings the log up to date."""
import os
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import htcondor2
from condor import queue, until

SUBMIT, EXECUTE, EVICTED, TERMINATED, ABORTED, HELD, RELEASED = 0, 1, 4, 5, 9, 12, 13
JOB = """
executable          = /bin/sh
transfer_executable = false
arguments           = "-c '{command}'"
request_memory      = 100 MB
log                 = {log}
submit_event_notes  = of the test
{more}
queue {count}
"""


def submit(log, command, count=1, more="", **environment):
    Path("job.sub").write_text(JOB.format(command=command, log=log, count=count, more=more))
    words = ["condor_submit", "-terse", "job.sub"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout
    return said.split(" ", maxsplit=1)[0]


def tool(*words, status=0):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout


def events(log):
    """The number of each event of each proc, in the order of the log."""
    found = {}
    with htcondor2.JobEventLog(str(log)) as reader:
        for event in reader.events(stop_after=0):
            found.setdefault((event.cluster, event.proc), []).append(event)
    return found


def numbers(log):
    return {job: [int(event.type) for event in all_of] for job, all_of in events(log).items()}


def brought(log, programs=1):
    """Has so many programs bring a log up to date at once."""
    together = [subprocess.Popen(["kubectl-slotwright", "userlog", str(log)]) for _ in range(programs)]
    assert [process.wait() for process in together] == [0] * programs
    return numbers(log)


def main():
    begin = time.monotonic()
    log = Path("several.log").resolve()
    first = int(submit(log, "exit $_CONDOR_PROC", 3).split(".", maxsplit=1)[0])
    assert numbers(log) == {(first, proc): [SUBMIT] for proc in range(3)}
    second = submit(log, "sleep 600")
    job = (int(second.split(".", maxsplit=1)[0]), 0)
    tool("condor_wait", "-wait", "90", str(log), str(first))
    found = events(log)
    for proc in range(3):
        submitted, executed, ended = found[first, proc]
        assert (submitted["SubmitHost"].count("htcjob="), submitted["LogNotes"]) == (1, "of the test"), dict(submitted)
        assert executed["SlotName"].endswith("@processes"), dict(executed)
        assert (ended.type, ended["TerminatedNormally"], ended["ReturnValue"]) == (TERMINATED, True, proc), dict(ended)
    until(lambda: queue(second, "-af", "JobStatus") == ["2"], "the second job runs", 60)
    # The queue says that a proc runs once it has its slot, and the log once its pod runs.
    until(lambda: brought(log)[job][-1] == EXECUTE, "the log tells that the second job runs", 60)
    tool("condor_hold", "-reason", "look first", second)
    until(lambda: brought(log)[job][-1] == HELD, "the log tells that the second job is held", 60)
    tool("condor_release", second)
    until(lambda: queue(second, "-af", "JobStatus") == ["2"], "the second job runs again", 60)
    until(lambda: brought(log, 4)[job][-1] == EXECUTE, "the log tells that the second job runs again", 60)
    assert numbers(log)[job] == [SUBMIT, EXECUTE, EVICTED, HELD, RELEASED, EXECUTE], numbers(log)
    held = events(log)[job][3]
    assert (held["HoldReason"], held["HoldReasonCode"]) == ("look first", 1), dict(held)
    tool("condor_wait", "-wait", "1", str(log), status=1)
    tool("condor_rm", second)
    assert "All jobs done." in tool("condor_wait", "-wait", "60", str(log))
    assert numbers(log)[job][-2:] == [EVICTED, ABORTED], numbers(log)
    before = log.read_text()
    assert before.count("\n...\n") == tool("condor_wait", "-all", "-echo", str(log)).count("\n...\n")
    assert log.read_text() == before

    # With a process that stays behind, nobody need ask.
    log = Path("followed.log").resolve()
    submit(log, "exit 7", SLOTWRIGHT_USERLOG="follow")
    submit(log, "kill -9 $$", SLOTWRIGHT_USERLOG="follow")
    until(lambda: list(numbers(log).values()) == [[SUBMIT, EXECUTE, TERMINATED]] * 2, "the log is followed", 60)
    ends = [dict(all_of[-1]) for all_of in events(log).values()]
    assert (ends[0]["ReturnValue"], ends[1]["TerminatedBySignal"]) == (7, 9), ends
    print(f"htcondor {version('htcondor')} reads the job event logs; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
