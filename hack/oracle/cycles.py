#!/usr/bin/env python3
"""The decisions of the real condor_negotiator in one cycle: which job it matches with which slot, and whom that throws out.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/cycles.py [--seed N] [--count N] [--named] > tests/oracle/cycles.json

Needs the chroot of the oracle (hack/condor.sh) and root. Some ten seconds a case: slots' ads are injected into a real
collector, jobs are really submitted, the accountant's log is written, one cycle runs, and the negotiator's log tells.

Output, a list of cases: `name`; `config`, text; `slots`, `jobs`, ads by attribute, the jobs' as the schedd has them, in two
parts: what they have in common (`all`) and what `each` has besides, where `procs` is how many jobs of a cluster there are;
`priorities` as for `slotwright negotiate`; `unique`, whether no two slots are the same to a job; `ordered`, whether the order
in which the jobs are matched counts; `matches`, in order, of
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
                  "ConcurrencyLimits", "Dept", "WantSite", "FileSystemDomain", "PreJobPrio1", "PreJobPrio2", "PostJobPrio1",
                  "PostJobPrio2")
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


def account(description):
    """Under which name the accountant charges the jobs of a submission."""
    group = description.get("accounting_group")
    return f"{group}.{description['accounting_group_user']}@local" if group else f"{description['accounting_group_user']}@local"


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


# ---- groups: who may preempt whom where a quota is used up

# The parts of each case: the configuration, who uses how many slots, who submits how many jobs, and the real priority of each.
# `h`, whose quota is beside that of `g`, uses the rest of the pool.
FLAT = {"GROUP_NAMES": "g, h", "GROUP_QUOTA_g": "4", "GROUP_QUOTA_h": "4"}
TREE = {"GROUP_NAMES": "p, p.a, p.b, h", "GROUP_QUOTA_p": "4", "GROUP_QUOTA_p.a": "4", "GROUP_QUOTA_p.b": "4", "GROUP_QUOTA_h": "4"}
SPLIT = {**TREE, "GROUP_QUOTA_p.a": "2", "GROUP_QUOTA_p.b": "2"}
FULL = {"g.alice": 4, "h.carol": 4}
TREE_FULL = {"p.a.alice": 4, "h.carol": 4}
WORSE = {"alice": 1000.0, "carol": 1000.0, "bob": 0.5, "dave": 1.0}
GROUPS = (
    ("within a full group", FLAT, FULL, {"g.bob": 4}),
    ("within a full group, one who wants less", FLAT, FULL, {"g.bob": 2}),
    ("within a full group, two who want", FLAT, FULL, {"g.bob": 4, "g.dave": 4}),
    ("within a full group, his own", FLAT, FULL, {"g.alice": 4}),
    ("within a group that is not full", FLAT, {"g.alice": 3, "h.carol": 5}, {"g.bob": 4}),
    ("within a group over its quota", FLAT, {"g.alice": 6, "h.carol": 2}, {"g.bob": 4}),
    ("within a full group that accepts surplus", {**FLAT, "GROUP_ACCEPT_SURPLUS": "True"}, FULL, {"g.bob": 8}),
    ("within a group, surplus in use", {**FLAT, "GROUP_ACCEPT_SURPLUS": "True"}, {"g.alice": 8}, {"g.bob": 8}),
    ("within a full group, beside one that waits", FLAT, FULL, {"g.bob": 4, "h.dave": 4}),
    ("within a full group below another", TREE, TREE_FULL, {"p.a.bob": 4}),
    ("within a full group, its own quota less", SPLIT, {"p.a.alice": 2, "p.b.carol": 2, "h.carol": 4}, {"p.a.bob": 4, "p.b.dave": 4}),
    ("within the full group above", TREE, {"p.alice": 4, "h.carol": 4}, {"p.bob": 4}),
    ("of no group, beside full groups", FLAT, FULL, {"bob": 4}),
)


def of_groups(name, config, using, wanting, by_rank):
    """A case of slots in use by submitters of groups, with one core each."""
    users = [user for user, count in using.items() for _ in range(count)]
    kind = {"wide": False, "slot_ranks": ("0.0",), "weight": "Cpus", "starts": ("true",), "claimed": 1.0, "limits": False}
    rng, slots = random.Random(0), []
    for index, user in enumerate(users):
        ad = slot(rng, index + 1, True, [f"{user}@local"], kind)
        ad.update(CurrentRank="0.0", TotalJobRunTime=str(3600 + index), RetirementTimeRemaining="0")
        ad["Rank"] = '(TARGET.Dept =?= "physics") * 5' if by_rank else "0.0"
        # A job's rank is compared where its submitter's group is that of the slot's user.
        ad["Start"] = f'TARGET.AccountingGroup isnt undefined && split(TARGET.AccountingGroup, ".")[0] == "{user.split(".")[0]}"'
        slots.append(ad)
    submissions = []
    for wants, count in wanting.items():
        group, _, user = wants.rpartition(".")
        description = {"accounting_group_user": user, "requirements": "true", "rank": "0", "request_cpus": "1",
                       "request_memory": "512", "priority": "0", "My.Dept": s("physics")}
        submissions.append(({**description, "accounting_group": group} if group else description, count))
    names = sorted({f"{name}@local" for name in (*using, *wanting)})
    rups = [WORSE[name.split("@")[0].split(".")[-1]] * (1 + place / 32) for place, name in enumerate(names)]
    priorities = {name: {"rup": rup, "factor": 1000.0, "floor": 0.0, "ceiling": None} for name, rup in zip(names, rups)}
    config = {"NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION": "False", **config,
              "PREEMPTION_REQUIREMENTS": "False" if by_rank else "True"}
    return {"name": f"{name}, {'by rank' if by_rank else 'by priority'}", "config": config, "slots": slots,
            "submissions": submissions, "priorities": priorities, "unique": False}


# With its list of matches kept, the real one refuses beyond the submitter's share what a machine ranks higher, too.
FRESH = {"NEGOTIATOR_MATCHLIST_CACHING": "False"}


def group_cases():
    cases = [of_groups(*GROUPS[0], True), *(of_groups(*each, False) for each in GROUPS)]
    return cases + [of_groups(f"{name}, fresh lists", {**config, **FRESH}, *rest, True) for name, config, *rest in GROUPS]


# ---- slots whose weight is no number

WEIGHTS = ("error", "undefined", None, s("3"), s("many"), "-2", "2.7", "true", "Memory / 1024", "NotThere * 2", "1.0/0", "{ 3 }")


def of_weight(weight, config):
    """A group with a quota of 8, and ten slots of 4 cores and this SlotWeight: how many it gets says what a slot weighs."""
    kind = {"wide": False, "slot_ranks": ("0.0",), "weight": weight, "starts": ("true",), "claimed": 0.0, "limits": False}
    slots = [slot(random.Random(0), index, True, [], kind) for index in range(1, 11)]
    for ad in slots:
        ad.update(Cpus="4", Memory="2048")
        if weight is None:
            del ad["SlotWeight"]
    description = {"accounting_group": "g", "accounting_group_user": "bob", "requirements": "true", "rank": "0", "request_cpus": "1",
                   "request_memory": "512", "priority": "0"}
    rup = {"rup": 0.5, "factor": 1000.0, "floor": 0.0, "ceiling": None}
    knobs = {"NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION": "False", "GROUP_NAMES": "g", "GROUP_QUOTA_g": "8", **config}
    said = "unset" if weight is None else weight
    return {"name": f"a slot that weighs {said}, {config.get('SLOT_WEIGHT', 'by default')}", "config": knobs, "slots": slots,
            "submissions": [(description, 12)], "priorities": {"g.bob@local": rup}, "unique": False}


def weight_cases():
    configs = ({}, {"SLOT_WEIGHT": "2"}, {"SLOT_WEIGHT": "NotThere"})
    return [of_weight(weight, config) for weight in WEIGHTS for config in configs[:1 if weight in WEIGHTS[3:5] + WEIGHTS[6:] else 3]]


# ---- the order of a submitter's jobs

ORDERS = (
    ("PreJobPrio1", ({}, {"PreJobPrio1": "-1"}, {"PreJobPrio1": "1"}, {"PreJobPrio1": "0"}, {"PreJobPrio1": "-5"})),
    ("PreJobPrio2", ({}, {"PreJobPrio2": "-1"}, {"PreJobPrio2": "1"}, {"PreJobPrio1": "-1", "PreJobPrio2": "9"}, {"PreJobPrio1": "1"})),
    ("PostJobPrio1", ({}, {"PostJobPrio1": "-1"}, {"PostJobPrio1": "1"}, {"PostJobPrio1": "0"}, {"JobPrio": "1"})),
    ("PostJobPrio2", ({}, {"PostJobPrio2": "-1"}, {"PostJobPrio2": "1"}, {"PostJobPrio1": "-1", "PostJobPrio2": "9"},
                      {"PostJobPrio1": "1"})),
    ("values that are no integers", ({}, {"PreJobPrio1": "undefined"}, {"PreJobPrio1": s("7")}, {"PreJobPrio1": "1.9"},
                                     {"PreJobPrio1": "true"}, {"PreJobPrio1": "-0.5"})),
    ("JobPrio", ({}, {"JobPrio": "-1"}, {"JobPrio": "3"}, {"JobPrio": "-3"})),
)


def of_order(name, jobs):
    """A submitter with jobs that no slot treats alike, and a slot for each: the order of the matches is that of the queue."""
    kind = {"wide": False, "slot_ranks": ("0.0",), "weight": "1", "starts": ("true",), "claimed": 0.0, "limits": False}
    slots = [slot(random.Random(0), index + 1, True, [], kind) for index in range(len(jobs))]
    submissions = []
    for index, attributes in enumerate(jobs):
        extra = {f"My.{attribute}": value for attribute, value in attributes.items() if attribute != "JobPrio"}
        submissions.append(({"accounting_group_user": "u0", "requirements": "true", "rank": "0", "request_cpus": "1",
                             "request_memory": str(512 + index), "priority": attributes.get("JobPrio", "0"), **extra}, 1))
    rup = {"rup": 0.5, "factor": 1000.0, "floor": 0.0, "ceiling": None}
    return {"name": f"the order by {name}", "config": {}, "slots": slots, "submissions": submissions,
            "priorities": {"u0@local": rup}, "unique": False, "ordered": True}


def order_cases():
    return [of_order(*each) for each in ORDERS]


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
    waiting = {account(description) for description, _ in case["submissions"]}
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
            "priorities": case["priorities"], "unique": case["unique"], "ordered": case.get("ordered", False),
            "matches": matches}, log


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
    parser.add_argument("--named", action="store_true", help="also the cases of groups, weights and orders that are not random")
    parser.add_argument("--only", type=int, help="one case, with the negotiator's log on standard error")
    args = parser.parse_args()
    separator = "[\n"
    cases = [case(random.Random(args.seed * 1000 + number), number) for number in range(args.count)]
    cases += [*group_cases(), *weight_cases(), *order_cases()] if args.named else []
    for made in cases if args.only is None else [cases[args.only]]:
        with alone():
            done, log = ask(made)
        print(separator + json.dumps(done, separators=(",", ":")), end="", flush=True)
        separator = ",\n"
        if args.only is not None:
            print(log, file=sys.stderr)
    print("\n]")


if __name__ == "__main__":
    main()
