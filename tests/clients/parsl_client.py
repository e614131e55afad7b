"""Parsl's CondorProvider, unmodified: it submits pilots, which compute; it sees them run and end; it cancels them."""
import os
import time

import parsl
from condor import queue, until
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.jobs.states import JobState
from parsl.launchers import SimpleLauncher
from parsl.providers import CondorProvider


@parsl.python_app
def square(number):
    import os
    return number * number, os.environ["_CONDOR_SLOT"]


def provider(directory):
    # Parsl names its script without a directory, and has HTCondor move it. Here the directory is shared, and the job begins in it.
    return CondorProvider(init_blocks=2, max_blocks=2, launcher=SimpleLauncher(),
                          scheduler_options=f"remote_initialdir = {directory}")


def computes():
    scripts = os.path.abspath("runinfo/000/submit_scripts")
    executor = HighThroughputExecutor(label="pilots", address="127.0.0.1", max_workers_per_node=1, cores_per_worker=1,
                                      provider=provider(scripts))
    parsl.load(Config(run_dir="runinfo", executors=[executor]))
    found = [future.result(timeout=90) for future in [square(number) for number in range(10)]]
    assert [result for result, _ in found] == [number * number for number in range(10)], found
    assert all(slot.endswith("@processes") for _, slot in found), found
    # Parsl submits one pilot after the other, and the first may do all the work before the second is in the queue.
    until(lambda: len(executor.provider.resources) == len(queue("-af:j", "JobStatus")) == 2, "two pilots are in the queue")
    parsl.dfk().cleanup()
    until(lambda: queue("-af:j", "JobStatus") == [], "the pilots leave the queue")


def is_watched_and_cancelled():
    scripts = os.path.abspath("scripts")
    os.makedirs(scripts, exist_ok=True)
    condor = provider(scripts)
    condor.script_dir = scripts
    states = (JobState.PENDING, JobState.RUNNING)
    short, long, failing = (condor.submit(command, 1) for command in ("sleep 1", "sleep 600", "exit 3"))
    until(lambda: condor.status([long])[0].state == JobState.RUNNING, "a job runs", 60)
    # leave_in_queue, which Parsl sets, keeps what has ended in the queue, where Parsl sees that it has.
    until(lambda: condor.status([short])[0].state == JobState.COMPLETED, "a job is seen to end", 60)
    until(lambda: condor.status([failing])[0].state == JobState.COMPLETED, "a job that fails is seen to end", 60)
    assert condor.status([long])[0].state in states
    assert condor.cancel([short, long, failing]) == [True, True, True]
    assert condor.status([long])[0].state == JobState.CANCELLED
    until(lambda: queue("-af:j", "JobStatus") == [], "nothing is left in the queue", 60)


if __name__ == "__main__":
    begin = time.monotonic()
    computes()
    is_watched_and_cancelled()
    print(f"parsl {parsl.__version__}: computed, watched, cancelled in {time.monotonic() - begin:.0f} s")
