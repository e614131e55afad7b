#!/usr/bin/env python3
"""What the real condor_negotiator decides in one cycle: which job it matches with which slot, and whom that throws out.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/cycles.py [--seed N] [--count N] [--only N] > tests/oracle/cycles.json

Needs the chroot of the oracle (hack/condor.sh) and root. Some ten seconds a case: slots' ads are injected into a real
collector, jobs are really submitted, the accountant's log is written, one cycle runs, and the negotiator's log tells.

Output, a list of cases: `name`; `config`, text; `slots`, `jobs`, ads by attribute, the jobs' as the schedd has them, in two
parts: what they have in common (`all`) and what `each` has besides, where `procs` is how many jobs of a cluster there are;
`priorities` as for `slotwright negotiate`; `unique`, whether no two slots are the same to a job; `matches`, in order, of
`job` (the first of its request), `slot`, `submitter` and `reason`, as `slotwright negotiate --matches` writes them.

Submitters have different priorities: the real one breaks ties by the time at which it heard of them.
"""
import argparse
import contextlib
import fcntl
import json
import random
import re
import socket
import sys
import time
from pathlib import Path

from condor_pool import ANCHOR, Pool, wait_until

HERE = Path(__file__).resolve().parent
STATE = "/srv/condor"
CYCLE_SECONDS = 120
# Where the machines would listen.
PORT = 29618
PREEMPTING = re.compile(r"Preempting \S+ \(user prio=\S+, startd rank=(\S+)\) on (\S+) for \S+ \(user prio=\S+, startd rank=(\S+)\)")
# Priorities stay what they are while the pool starts.
CASE_CONFIG = "NEGOTIATOR_DEBUG = D_FULLDEBUG D_MATCH\nPRIORITY_HALFLIFE = 1000000000000\n"
MATCH = re.compile(r"Matched (\d+\.\d+) (\S+) <[^>]*> preempting (\S+)(?: \(\S*\))? <[^>]*> (\S+)")
# Attributes of jobs that a negotiation may read; the rest is left out.
JOB_ATTRIBUTES = ("ClusterId", "ProcId", "JobStatus", "JobPrio", "JobUniverse", "User", "Owner", "AccountingGroup",
                  "Requirements", "Rank", "RequestCpus", "RequestMemory", "RequestDisk", "DiskUsage", "ImageSize",
                  "ConcurrencyLimits", "Dept", "WantSite", "FileSystemDomain")
# Attributes of slots that none does.
UNREAD = ("MyType", "Machine", "MyAddress", "StartdIpAddr", "Activity", "JobId")
SITES = ("a", "b", "c")
DEPARTMENTS = ("physics", "chemistry")


def s(text):
    """A ClassAd string literal."""
    return f'"{text}"'


# ---- cases

def slot(rng, index, unique, users, kind):
    """A machine's ad, as attribute and expression; claimed now and then, where there are users."""
    cpus = rng.choice((1, 1, 1, 2, 4)) if kind["wide"] else 1
    host = f"node{index:03d}.local"
    address = f"<127.9.0.{index}:{PORT}>"
    ad = {
        "MyType": s("Machine"), "Name": s(f"slot1@{host}"), "Machine": s(host),
        "MyAddress": s(address), "StartdIpAddr": s(address),
        "CondorVersion": s("$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1 $"),
        "Arch": s("X86_64"), "OpSys": s("LINUX"), "State": s("Unclaimed"), "Activity": s("Idle"),
        "SlotID": "1", "Cpus": str(cpus), "Disk": "100000000",
        "Memory": str(2048 + 128 * index if unique else rng.choice((2048, 4096))),
        "KFlops": str(1000000 + 1000 * rng.randrange(100) + index if unique else 1000000),
        "Mips": str(10000 + 10 * rng.randrange(100) + index if unique else 10000),
        "Site": s(rng.choice(SITES)), "HasFileTransfer": "true", "FileSystemDomain": s("local"),
        "CurrentRank": "0.0",
        "Rank": rng.choice(kind["slot_ranks"]),
        "SlotWeight": kind["weight"],
        "Start": rng.choice(kind["starts"]),
        "Requirements": "Start && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory",
    }
    if users and rng.random() < kind["claimed"]:
        user = rng.choice(users)
        ad.update({
            "State": s("Claimed"), "Activity": s("Busy"), "RemoteUser": s(user), "RemoteOwner": s(user),
            "CurrentRank": rng.choice(("0.0", "0.0", "1.0", "5.0")), "JobId": s(f"900.{index}"),
            "TotalJobRunTime": str(rng.choice((60, 7200, 86400 + index))),
            "RetirementTimeRemaining": rng.choice(("0", "0", "0", "600")),
        })
        if kind["limits"] and rng.random() < 0.5:
            ad["ConcurrencyLimits"] = ad["MatchedConcurrencyLimits"] = s("lic")
    return ad


REQUIREMENTS = ("true", 'TARGET.Site == "a"', 'TARGET.Site != "b"', "TARGET.Memory >= 3000", "TARGET.Cpus >= 2",
                'TARGET.Site == "nowhere"')
RANKS = ("0", "TARGET.Mips", "TARGET.Memory", '(TARGET.Site == "a") * 10', "-TARGET.Memory", "TARGET.NotThere")


def submission(rng, submitter, kind):
    """What one condor_submit says, and how many jobs of it there are."""
    description = {
        "accounting_group_user": submitter,
        "requirements": rng.choice(REQUIREMENTS),
        "rank": rng.choice(RANKS),
        "request_cpus": str(rng.choice((1, 1, 1, 2)) if kind["wide"] else 1),
        "request_memory": str(rng.choice((512, 1024, 3072))),
        "priority": str(rng.choice((0, 0, 0, 5, -5))),
        "My.Dept": s(rng.choice(DEPARTMENTS)),
    }
    if rng.random() < 0.3:
        description["My.WantSite"] = s(rng.choice(SITES))
    if kind["limits"] and rng.random() < 0.7:
        description["concurrency_limits"] = rng.choice(("lic", "lic:2", "other", "lic, other"))
    return description, rng.randrange(1, 17)


def priority(rng, place, kind):
    """What the accountant knows of somebody: no two have the same."""
    known = {"rup": rng.choice((0.5, 0.5, 1.0, 2.5, 10.0, 40.0)) * (1 + place / 32), "factor": rng.choice((1000.0, 1000.0, 100.0)),
             "floor": 0.0, "ceiling": None}
    if kind["ceilings"] and rng.random() < 0.6:
        known["ceiling"] = float(rng.randrange(0, 8))
    if kind["floors"] and rng.random() < 0.5:
        known["floor"] = float(rng.randrange(1, 6))
    return known


POLICIES = ("False", "True", "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2",
            "TotalJobRunTime > 3600 && RemoteUserPrio > SubmitterUserPrio",
            "MY.RemoteUserResourcesInUse > TARGET.SubmitterUserResourcesInUse")
RANDOM_SUBJECTS = ("plain", "plain", "weights", "startd rank", "priorities", "both", "ceilings", "floors", "limits",
                   "no preemption", "ranks", "ties")


def case(rng, number):
    """A random case. Its name says what it is about."""
    subject = RANDOM_SUBJECTS[number % len(RANDOM_SUBJECTS)]
    preempts = subject in ("startd rank", "priorities", "both", "no preemption")
    ranked = subject in ("startd rank", "both")
    kind = {
        "wide": subject == "weights" or rng.random() < 0.2,
        "weight": "Cpus" if subject == "weights" or rng.random() < 0.7 else rng.choice(("1", "2.5", "Cpus * 0.5")),
        "slot_ranks": ('(TARGET.Dept =?= "physics") * 5', "TARGET.RequestMemory >= 1024", "0.0") if ranked else ("0.0",),
        "starts": ("true",) if rng.random() < 0.5 else
                  ("true", "TARGET.WantSite =?= undefined || TARGET.WantSite == MY.Site", 'TARGET.Dept == "physics"'),
        "claimed": rng.choice((0.6, 0.8, 1.0)) if preempts else rng.choice((0.0, 0.3)),
        "limits": subject == "limits", "ceilings": subject == "ceilings", "floors": subject == "floors",
    }
    submitters = [f"u{n}" for n in range(rng.randrange(1, 6))]
    users = [f"{name}@local" for name in (*submitters[:2], "gone", "gone")]
    unique = subject != "ties"
    slots = [slot(rng, n + 1, unique, users, kind) for n in range(rng.randrange(5, 41))]
    submissions = [submission(rng, name, kind) for name in submitters for _ in range(rng.randrange(1, 4))]
    config = {}
    if preempts:
        config["PREEMPTION_REQUIREMENTS"] = rng.choice(POLICIES[:1] if subject == "startd rank" else POLICIES[1:])
    if preempts and rng.random() < 0.3:
        config["NEGOTIATOR_CONSIDER_EARLY_PREEMPTION"] = "True"
    if preempts and rng.random() < 0.4:
        config["PREEMPTION_RANK"] = rng.choice(("-TotalJobRunTime", "MY.Memory", "RemoteUserPrio"))
    if subject == "ranks":
        config["NEGOTIATOR_PRE_JOB_RANK"] = rng.choice(("0", "MY.Mips", "MY.Memory * (TARGET.RequestMemory > 600)"))
        config["NEGOTIATOR_POST_JOB_RANK"] = rng.choice(("MY.Memory", "-MY.Mips"))
    if subject == "no preemption":
        config["NEGOTIATOR_CONSIDER_PREEMPTION"] = "False"
    if kind["limits"]:
        config.update(LIC_LIMIT=str(rng.randrange(1, 8)), CONCURRENCY_LIMIT_DEFAULT=str(rng.randrange(2, 12)))
    names = [f"{name}@local" for name in submitters] + ["gone@local"]
    priorities = {name: priority(rng, place, kind) for place, name in enumerate(rng.sample(names, len(names)))}
    if preempts and rng.random() < 0.7:
        priorities["gone@local"]["rup"] *= 100      # what it has goes first
    return {"name": f"{number} {subject}", "config": config, "slots": slots, "submissions": submissions,
            "priorities": priorities, "unique": unique}


# ---- the pool

def long_form(ads):
    """Ads as `Attr = value` lines, blank lines between."""
    return "".join("".join(f"{name} = {value}\n" for name, value in ad.items()) + "\n" for ad in ads)


def accountant_log(priorities):
    """What the accountant remembers of everybody, in the form in which it keeps it."""
    now = int(time.time())
    # Without the time of the last update all that was used is forgotten.
    lines = [f"107 1 CreationTimestamp {now}", "101 Accountant. * *", f"103 Accountant. LastUpdateTime {now}"]
    for name, known in priorities.items():
        key = f"Customer.{name}"
        values = {"Priority": known["rup"], "PriorityFactor": known["factor"]}
        if known["ceiling"] is not None:
            values["Ceiling"] = int(known["ceiling"])
        if known["floor"]:
            values["Floor"] = int(known["floor"])
        lines.append(f"101 {key} * *")
        lines += [f"103 {key} {attribute} {value}" for attribute, value in values.items()]
    return "\n".join(lines) + "\n"


def who_only_runs(case):
    """Submitters' ads of those who use slots and have no jobs in the queue."""
    waiting = {f"{description['accounting_group_user']}@local" for description, _ in case["submissions"]}
    running = [ad["RemoteUser"].strip('"') for ad in case["slots"] if "RemoteUser" in ad]
    address = s("<127.9.255.1:1>")
    return [{"MyType": s("Submitter"), "Name": s(name), "ScheddName": s("s@gone"), "ScheddIpAddr": address,
             "Machine": s("gone"), "MyAddress": address, "IdleJobs": "0", "RunningJobs": str(running.count(name)),
             "WeightedIdleJobs": "0.0", "WeightedRunningJobs": str(float(running.count(name))), "HeldJobs": "0",
             "SubmitterTag": '""'} for name in sorted(set(running) - waiting)]


def load(pool, case):
    """Advertises the slots and submits the jobs; waits until the schedd has told of all of them."""
    pool.write(f"{STATE}/slots.ads", long_form(case["slots"]))
    pool.advertise("UPDATE_STARTD_AD", f"{STATE}/slots.ads", "-fake-private-ad")
    if others := who_only_runs(case):
        pool.write(f"{STATE}/submitters.ads", long_form(others))
        pool.advertise("UPDATE_SUBMITTOR_AD", f"{STATE}/submitters.ads")
    pool.write(f"{ANCHOR}/submissions.json", json.dumps(case["submissions"]))
    pool.tool_as_user("python3", f"{ANCHOR}/submit_cycles.py", f"{ANCHOR}/submissions.json")
    jobs = sum(count for _, count in case["submissions"])
    if not wait_until(lambda: pool.idle_jobs_advertised() == jobs, 60, every=0.3):
        raise RuntimeError("the schedd did not tell of all jobs")


def parse_long(text):
    """Ads in the long form, as attribute and expression."""
    ads = [dict(line.split(" = ", 1) for line in block.splitlines() if " = " in line) for block in text.split("\n\n")]
    return [ad for ad in ads if "ClusterId" in ad]


def by_cluster(jobs):
    """The jobs with one ad a cluster, which says by `procs` how many there are: they differ in ProcId alone."""
    clusters = {}
    for job in jobs:
        ad = clusters.setdefault(job["ClusterId"], {**job, "procs": 0})
        ad["procs"] += 1
    return [{name: value for name, value in ad.items() if name != "ProcId"} for ad in clusters.values()]


def compact(ads):
    """What all ads have in common, and what each has besides."""
    ads = [{name: value for name, value in ad.items() if name not in UNREAD} for ad in ads]
    common = {name: value for name, value in ads[0].items() if name != "procs" and all(ad.get(name) == value for ad in ads)}
    return {"all": common, "each": [{name: value for name, value in ad.items() if name not in common} for ad in ads]}


def read_matches(log):
    """The matches that a log tells of. The machine's rank decides when the job's is above the running one's."""
    ranks = {found[2]: (float(found[1]), float(found[3])) for found in PREEMPTING.finditer(log)}
    matches = []
    for job, submitter, preempts, slot in (found.groups() for found in MATCH.finditer(log)):
        current, wanted = ranks.get(slot, (0.0, 0.0))
        reason = "NoPreemption" if preempts == "none" else "Rank" if wanted > current else "Priority"
        matches.append({"job": job, "slot": slot, "submitter": submitter, "reason": reason})
    return matches


def ask(case):
    """Runs one cycle over a case; the case with what came of it."""
    pool = Pool("pool/condor_config", STATE)
    pool.install(HERE, "pool/condor_config", "pool/config.d/10-cycle", "submit_cycles.py")
    config = "".join(f"{name} = {value}\n" for name, value in case["config"].items())
    pool.write(f"{ANCHOR}/pool/config.d/20-case", config + CASE_CONFIG)
    with pool.running(), silent_machines():
        load(pool, case)
        jobs = parse_long(pool.tool("condor_q", "-all", "-long"))
        pool.run_cycle(CYCLE_SECONDS, accountant_log(case["priorities"]))
        log = pool.log()
    jobs = [{name: job[name] for name in JOB_ATTRIBUTES if name in job} for job in jobs]
    matches = read_matches(log)
    print(f"{case['name']}: {len(case['slots'])} slots, {len(jobs)} jobs, {len(matches)} matches", file=sys.stderr)
    return {"name": case["name"], "config": config, "slots": compact(case["slots"]), "jobs": compact(by_cluster(jobs)),
            "priorities": case["priorities"], "unique": case["unique"], "matches": matches}, log


@contextlib.contextmanager
def silent_machines():
    """Machines that take connections and say nothing: where they refused them, the schedd would offer jobs that it just got
    matches for again in the next spin."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", PORT))
        listener.listen(4096)
        yield


@contextlib.contextmanager
def alone():
    """One who drives the chroot at a time."""
    with open("/tmp/condor.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--count", type=int, default=72)
    parser.add_argument("--only", type=int, help="one case, with the negotiator's log on standard error")
    args = parser.parse_args()
    separator = "[\n"
    for number in range(args.count) if args.only is None else [args.only]:
        made = case(random.Random(args.seed * 1000 + number), number)
        with alone():
            done, log = ask(made)
        print(separator + json.dumps(done, separators=(",", ":")), end="", flush=True)
        separator = ",\n"
        if args.only is not None:
            print(log, file=sys.stderr)
    print("\n]")


if __name__ == "__main__":
    main()
