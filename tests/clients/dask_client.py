"""dask-jobqueue's HTCondorCluster, unmodified: it submits workers, which compute; it removes them; it adapts their number."""
import os
import sys
import time

import dask_jobqueue
from condor import queue, until
from dask.distributed import Client


def square(number):
    return number * number, os.environ["_CONDOR_SLOT"]


def main():
    begin = time.monotonic()
    options = {"host": "127.0.0.1", "dashboard_address": ":0"}
    with dask_jobqueue.HTCondorCluster(cores=1, memory="512MB", disk="1GB", log_directory=os.path.abspath("dask"), python=sys.executable,
                                       scheduler_options=options, worker_extra_args=["--no-dashboard"]) as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=90)
            found = client.gather(client.map(square, range(10)))
            assert [result for result, _ in found] == [number * number for number in range(10)], found
            assert all(slot.endswith("@processes") for _, slot in found), found
            jobs = queue("-af:j", "DaskWorkerName", "RequestMemory", "RequestDisk")
            # dask-jobqueue puts the job's own number into an attribute.
            expected = [f"{job.split(' ')[0]} htcondor--{job.split(' ')[0]}-- 488 976562" for job in jobs]
            assert len(jobs) == 2 and jobs == expected, jobs
            cluster.scale(jobs=1)
            until(lambda: len(queue("-af:j", "JobStatus")) == 1, "one worker is removed")
            assert client.submit(square, 7).result(timeout=60)[0] == 49
            logs = sorted(os.listdir("dask"))
            assert [f"worker-{job.split('.', maxsplit=1)[0]}.log" for job in jobs] == logs, logs
    until(lambda: queue("-af:j", "JobStatus") == [], "all workers are removed")
    print(f"dask-jobqueue {dask_jobqueue.__version__}: computed, scaled, removed in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
