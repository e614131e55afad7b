"""Measures the real negotiator on the reference workload, by its own statistics of one cycle of a fresh pool in a chroot.

While the negotiator is off, this advertises the slots' ads and submits the jobs. Then it turns the negotiator on, with an
empty accountant, and reads the first cycle from its statistics. A cycle of ours does the work of the phases 2 to 4. Phase 1
fetches and parses the ads and optimizes Requirements; 2 counts usage and collects significant attributes; 3 sorts submitters;
4 matches and talks to the schedd.
"""
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORACLE = HERE.parent.parent / "hack/oracle"
sys.path.insert(0, str(ORACLE))

import workload  # noqa: E402
from condor_pool import ANCHOR, Pool, wait_until  # noqa: E402

STATE = "/srv/condor"
SETTLE_SECONDS = 180
CYCLE_SECONDS = 1800
QUEUE_TOTALS = re.compile(r"all users: \d+ jobs;.* (\d+) idle, \d+ running")



def load(pool, size):
    """Advertises the slots and submits the jobs."""
    pool.write(f"{STATE}/slots.ads", "".join(workload.long_form(workload.slot(i)) for i in range(size.slots)))
    # The negotiator skips a machine without a claim id. The option makes up the private ads that have the claim ids.
    pool.advertise("UPDATE_STARTD_AD", f"{STATE}/slots.ads", "-fake-private-ad")
    sizes = [str(number) for number in (size.jobs, size.autoclusters, size.submitters)]
    pool.tool_as_user("python3", f"{ANCHOR}/submit.py", *sizes, *(["--interleaved"] if size.interleaved else []))

    def settled():
        totals = QUEUE_TOTALS.search(pool.tool("condor_q", "-all", "-total"))
        return totals and int(totals[1]) == size.jobs and pool.idle_jobs_advertised() == size.jobs
    if not wait_until(settled, SETTLE_SECONDS, every=1):
        raise RuntimeError("the queue did not settle:\n" + pool.tool("condor_q", "-all", "-total"))


def negotiator_ad(pool, since):
    """Waits until the negotiator's ad has a cycle that began at `since` or later, and returns the ad."""
    ad = {}

    def fresh():
        said = pool.tool("condor_status", "-negotiator", "-l")
        ad.update(line.split(" = ", 1) for line in said.splitlines() if " = " in line)
        return int(ad.get("LastNegotiationCycleTime0", 0)) >= since
    if not wait_until(fresh, 60, every=0.5):
        raise RuntimeError("the negotiator advertised no statistics of the cycle")
    return ad


def measure(size):
    """Runs one cycle, and returns the CPU seconds of its phases 2 to 4 and its matches."""
    pool = Pool("pool/condor_config", STATE)
    pool.install(ORACLE, "pool/condor_config", "pool/config.d/10-cycle")
    pool.install(HERE, "workload.py", "submit.py")
    pool.outside(f"{ANCHOR}/pool/config.d/20-case").unlink(missing_ok=True)
    with pool.running():
        load(pool, size)
        since = int(time.time())
        pool.run_cycle(CYCLE_SECONDS)
        ad = negotiator_ad(pool, since)
    cpu = sum(float(ad[f"LastNegotiationCyclePhase{phase}CpuTime0"]) for phase in (2, 3, 4))
    return {"cpu_s": cpu, "matches": int(ad["LastNegotiationCycleMatches0"])}
