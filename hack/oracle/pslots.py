#!/usr/bin/env python3
"""Which dynamic slots a real pool preempts for a wide job under ALLOW_PSLOT_PREEMPTION.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/pslots.py > tests/oracle/pslots.json

Needs the chroot of the oracle (hack/condor.sh) and root. Less than a minute a case: a whole pool of one machine runs in the
chroot, narrow jobs fill it, one wide job is submitted, and after the cycle that matches it the negotiator is stopped. Of
injected ads the negotiator would want claim ids that condor_advertise cannot say.

Output, a list of cases: `name`; `config`, text; `slots` and `jobs`, the ads before the wide job is matched, by attribute;
`matches`, none or one: `slot`, `reason`, and `preempts`, the names of the dynamic slots that went.
"""
import fcntl
import json
import re
import sys
import time

from devices import HOME, ROOT, Pool, tool, wait_until

BASE = """ALLOW_PSLOT_PREEMPTION = True
CLAIM_PARTITIONABLE_LEFTOVERS = True
NEGOTIATOR_DEBUG = D_FULLDEBUG D_MATCH
NEGOTIATOR_INTERVAL = 15
NEGOTIATOR_CYCLE_DELAY = 10
MACHINEMAXVACATETIME = 3
RANK = TARGET.MyRank
"""
BETTER = 'PREEMPTION_REQUIREMENTS = TARGET.AcctGroupUser =?= "high"\n'
NEVER = "PREEMPTION_REQUIREMENTS = False\n"
# Name, configuration, narrow jobs as cores, MiB and rank, and the wide job, which asks for more than is left.
CASES = [
    ("three of eight", BETTER, [(1, 512, 0)] * 8, (3, 512, 0)),
    ("one of eight", BETTER, [(1, 512, 0)] * 8, (1, 512, 0)),
    ("all of eight", BETTER, [(1, 512, 0)] * 8, (8, 512, 0)),
    ("not for priority", NEVER, [(1, 512, 0)] * 8, (3, 512, 0)),
    ("the lowest ranks", NEVER, [(1, 512, rank) for rank in (3, 1, 2, 9, 4, 6, 7, 8)], (2, 512, 5)),
    ("all ranks below", NEVER, [(1, 512, rank) for rank in (3, 1, 2, 9, 4, 6, 7, 8)], (5, 512, 5)),
    ("four ranks below", NEVER, [(1, 512, rank) for rank in (3, 1, 2, 9, 4, 6, 7, 8)], (4, 512, 5)),
    ("ranks below and beside", BETTER, [(1, 512, rank) for rank in (5, 5, 5, 9, 1, 9, 9, 9)], (4, 512, 5)),
    ("retirement", "MAXJOBRETIREMENTTIME = 3600\n" + BETTER, [(1, 512, 0)] * 8, (3, 512, 0)),
    ("memory", BETTER, [(1, 2048, 0)] * 4, (1, 3072, 0)),
    ("in vain", NEVER, [(1, 128, 0), (7, 7000, 1)], (3, 4096, 5)),
]
KEEP = re.compile(r"^(name|machine|slotid|dslotid|dynamicslot|partitionableslot|slottype|cpus|memory|disk|swap|machineresources|requirements|"
                  r"start|withinresourcelimits|rank|currentrank|slotweight|state|remoteuser|remoteowner|accountinggroup|retirementtimeremaining|"
                  r"totaljobruntime|kflops|arch|opsys|condorversion|hasfiletransfer|filesystemdomain|jobstatus|clusterid|procid|user|owner|acctgroupuser|request\w+|myrank|jobprio)$", re.I)


def ads(*command):
    """Ads in the long form, as attribute and expression."""
    blocks = tool(*command).strip().split("\n\n")
    found = [[line.split(" = ", 1) for line in block.split("\n") if " = " in line] for block in blocks]
    return [{name: value for name, value in pairs if KEEP.search(name)} for pairs in found if pairs]


def log():
    return (ROOT / HOME.lstrip("/") / "log/NegotiatorLog").read_text(errors="replace")


def description(user, job):
    cpus, memory, rank = job
    return f"accounting_group_user = {user}\nrequest_cpus = {cpus}\nrequest_memory = {memory}\n+MyRank = {rank}"


def ask(name, config, narrow, wide):
    """Runs one case."""
    with Pool(BASE + config, []) as pool:
        pool.submit([description("low", job) for job in narrow])
        running = lambda: tool("condor_q", "-all", "-af", "JobStatus").split().count("2") == len(narrow)
        if not wait_until(running, 90):
            sys.exit(f"{name}: the narrow jobs do not all run")
        time.sleep(5)       # until the collector knows of their ranks
        slots = [ad for ad in ads("condor_status", "-long") if "Cpus" in ad]
        cycles = log().count("Finished Negotiation Cycle")
        pool.submit([description("high", wide)])
        jobs = [ad for ad in ads("condor_q", "-all", "-long") if ad.get("JobStatus") == "1"]
        matched = re.compile(r"Matched pslot (\S+) by (startd rank|priority) preempting (\d+) dynamic slots")
        wait_until(lambda: matched.search(log()) or log().count("Finished Negotiation Cycle") > cycles + 1, 60)
        tool("condor_off", "-fast", "-daemon", "negotiator")
        found = matched.search(log())
        matches = []
        if found:
            names = lambda: set(tool("condor_status", "-af", "Name").split())
            before = {ad["Name"].strip('"') for ad in slots}
            wait_until(lambda: len(before - names()) == int(found[3]), 20)
            reason = "Rank" if found[2] == "startd rank" else "Priority"
            matches = [{"slot": found[1], "reason": reason, "preempts": sorted(before - names())}]
            if len(matches[0]["preempts"]) != int(found[3]):
                sys.exit(f"{name}: {found[0]}, and these are gone: {matches[0]['preempts']}")
    print(f"{name}: {matches}", file=sys.stderr, flush=True)
    return {"name": name, "config": BASE + config, "slots": slots, "jobs": jobs, "matches": matches}


def main():
    only = sys.argv[1:]
    with open("/tmp/condor.lock", "w") as lock:     # one who drives the chroot at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = [ask(*case) for case in CASES if not only or case[0] in only]
    print("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in done) + "\n]")


if __name__ == "__main__":
    main()
