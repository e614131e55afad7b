"""The common part of the tests of clients: the queue, and waiting."""
import subprocess
import time


def queue(*options):
    """The lines of condor_q, which must say nothing else."""
    done = subprocess.run(["condor_q", *options], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def until(condition, what, seconds=30):
    """Waits until a condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}; the queue: {queue('-nobatch')}"
        time.sleep(0.5)
