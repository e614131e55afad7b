#!/usr/bin/env python3
"""Record what HTCondor's configuration templates set, as tests/oracle/templates.json.

Needs the chroot of the oracle (shared/oracle/htcondor-chroot.sh) and root:

    CONDOR_CHROOT=/var/tmp/condor tests/oracle/templates.py

Each case is a text that uses a template, alone or after definitions that it builds on, with several arguments. The
answer is every name that the text leaves with another raw value than HTCondor without configuration has, and its
expanded value; or that the text is an error. The text fixes the facts about the host. tests/config_templates.rs
reads the same cases with our reader and our templates.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = os.environ.get("CONDOR_CHROOT", "/var/tmp/condor")
FOLDER = "srv/cknobs"
TARGET = pathlib.Path(__file__).parent / "templates.json"
# Values that would otherwise be the host's.
HOST = """\
DETECTED_CORES = 4
NUM_CPUS = 4
FULL_HOSTNAME = node.example
CONDOR_HOST = manager.example
IPV4_ADDRESS = 192.0.2.1
IPV6_ADDRESS = 2001:db8::1
USERNAME = ann
CondorIsAdmin = false
"""
BEFORE = """\
PREEMPT = LoadAvg > 5
START = TARGET.Owner == "ann"
WANT_SUSPEND = TARGET.Small
MAXJOBRETIREMENTTIME = 3600
WANT_HOLD = TARGET.Bad =?= True
WANT_HOLD_SUBCODE = 7
WANT_HOLD_REASON = "bad"
STARTD_ATTRS = Rack
Rack = "r1"
STARTD_LATCH_EXPRS = Hot
JOB_TRANSFORM_NAMES = First
SUBMIT_REQUIREMENT_NAMES = Zero
IMMUTABLE_JOB_ATTRS = Owner
SCHEDD_CLASSAD_USER_MAP_NAMES = projects
MY_TEST = (ImageSize > 5)
HighLoad = 0.9
MINUTE = 61
DAEMON_LIST = MASTER
STARTD_CRON_JOBLIST = old
NUM_SLOTS_TYPE_1 = 3
SLOT_TYPE_1 = 1/8
DEFAULT_CHECKPOINT_DESTINATION_PREFIX = osdf://store
"""
ARGUMENTS = {
    "DESKTOP_HOURS": ["", "(9, 18)", "(9, 17+1, 1, 5)", "(22,6,0)"],
    "DESKTOP_IDLE": ["", "(9, 18)", "(9, 18, 1, 5)"],
    "LIMIT_JOB_RUNTIMES": ["", "(3600)", "(2*3600)"],
    "PREEMPT_IF": ["", "(MY_TEST)"],
    "WANT_HOLD_IF": ["", "(MY_TEST)", "(MY_TEST, 5, too large)", "(MY_TEST, 5, too large, by far)"],
    "PREEMPT_IF_RUNTIME_EXCEEDS": ["", "(60)"],
    "HOLD_IF_RUNTIME_EXCEEDS": ["", "(60)"],
    "POLICY_HOURS_TO_START": ["", "(7)", "(7,19)", "(7,19,1,5)", "(7, 19, 2)", "(7.5,19)"],
    "PartitionableSlot": ["", "(2)", "(1, 50%)", "(3, cpus=2, memory=25%, 10%)"],
    "StaticSlots": ["", "(1, 2)", "(2, 4, 25%)", "(2, 4, cpus=1, memory=25%)"],
    "GPUs": ["", "(-extra)"],
    "Monitor": ["", "(Disks, Periodic, 60, /opt/disks, SUM:Io, PEAK:Rate)", "(a,b,c,d)"],
    "AssignAccountingGroup": ["", "(/etc/groups.map)", "(/etc/groups.map, False)", "(/etc/groups.map, True)"],
    "SetJobAttrFromUsermap": ["", "(Project, Owner, projects)", "(Project, Owner, projects, /etc/p.map)"],
    "ScheddUsermapFile": ["", "(projects)", "(projects, /etc/p.map)"],
    "AssignProjectName": ["", "(projects)", "(projects, /etc/p.map)"],
    "ContinuousCronHook": ["", "(STARTD_CRON, tag, /bin/x)", "(STARTD_CRON, tag, /bin/x, -a -b)"],
    "OneShotCronHook": ["", "(STARTD_CRON, tag, /bin/x)", "(SCHEDD_CRON, tag, /bin/x, -a -b)"],
    "PeriodicCronHook": ["", "(STARTD_CRON, tag, 60, /bin/x)", "(STARTD_CRON, tag, 60, /bin/x, -a)"],
    "StartdCronContinuous": ["(tag, /bin/x)"],
    "StartdCronOneShot": ["(tag, /bin/x, -a)"],
    "StartdCronPeriodic": ["(tag, 5m, /bin/x)"],
    "ScheddCronContinuous": ["(tag, /bin/x)"],
    "ScheddCronOneShot": ["(tag, /bin/x)"],
    "ScheddCronPeriodic": ["(tag, 5m, /bin/x)"],
    "CommonCloudAttributesAWS": ["", "(-x)"],
    "ChildCollector": ["(1)", "(2, 9620)"],
    "LIBRARIAN": ["", "(5, /tmp/db)"],
    "PelicanCache": ["", "(1GB, /tmp/c, fed.example)"],
    "REMOTE_RUNTIME_CONFIG": ["", "(START, RANK)"],
    "REMOTE_CONFIG": ["", "(START, RANK)"],
    "recommended": ["", "(ann)", "(ann, bob@here, cy@there, di@there)"],
    "recommended_v9_0": ["", "(ann, bob@here)"],
}
# The first sets a single name here: see src/config/templates/daemons.rs. The other depends on who asks.
LEFT_OUT = {"HPC_ANNEX", "USER_BASED"}
# What HTCondor detects stands above the text: answers that hold it are brought back to what the text says.
DETECTED = ("FULL_HOSTNAME", "IPV4_ADDRESS", "IPV6_ADDRESS")
# Expands to another number each time.
RANDOM = {"PERIODIC_CHECKPOINT", "UWCS_PERIODIC_CHECKPOINT"}


def condor(config, *arguments):
    command = ["chroot", ROOT, "env", f"CONDOR_CONFIG={config}", "_CONDOR_AUTO_USE_FEATURE_PelicanRetryPolicy=false",
               "condor_config_val", "-subsystem", "SCHEDD", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@functools.cache
def unconfigured():
    return table("/dev/null")


def table(config, *options):
    """NAME -> value, or nothing where the text is an error."""
    answer = condor(config, "-dump", *options)
    if answer.returncode != 0 or "Configuration Error" in answer.stderr:
        return None
    found, lines = {}, iter(answer.stdout.splitlines())
    for line in lines:
        name, equals, value = line.partition(" =")
        if not line or line.startswith("#"):
            continue
        if line.endswith(" @=end"):
            inner = iter(lambda: next(lines), "@end")
            found[line.removesuffix(" @=end")] = "\n".join(text.strip() for text in inner)
        elif equals:
            found[name] = value.strip()
    return found


def neutral(value):
    """The value, with what the text says of the host."""
    said = dict(line.split(" = ") for line in HOST.splitlines())
    for name in DETECTED if value else ():
        found = condor("/dev/null", name).stdout.strip()
        value = re.sub(rf"(?<![\w.:/-]){re.escape(found)}(?![\w.:/-])", said[name], value)
    return value


def ask(use, before):
    text = f"{HOST}{BEFORE if before else ''}{use}\n"
    path = pathlib.Path(ROOT, FOLDER, "case.config")
    path.write_text(text, encoding="utf-8")
    inside = f"/{FOLDER}/{path.name}"
    raw, expanded, bare = table(inside), table(inside, "-expanded"), unconfigured()
    if raw is None or expanded is None:
        return {"use": use, "before": before, "error": True}
    changed = {name for name, value in raw.items() if bare.get(name) != value or name not in bare}
    removed = {name for name in bare if name not in raw}
    values = {name: "" if name in removed else expanded.get(name, "") for name in changed | removed if name not in RANDOM
              and name not in ("PID", "PPID", "CONFIG_ROOT")}
    if use.startswith("use SECURITY"):
        values = {name: neutral(value) for name, value in values.items()}
    return {"use": use, "before": before, "values": dict(sorted(values.items()))}


def names(category):
    return [line.strip() for line in condor("/dev/null", "use", category).stdout.splitlines() if line.startswith("  ")]


def main():
    pathlib.Path(ROOT, FOLDER).mkdir(parents=True, exist_ok=True)
    cases = []
    for category in ("POLICY", "FEATURE", "ROLE", "SECURITY"):
        for name in names(category):
            if name in LEFT_OUT:
                continue
            for arguments in ARGUMENTS.get(name, [""]):
                cases += [ask(f"use {category} : {name}{arguments}", before) for before in (False, True)]
    with open(TARGET, "w", encoding="utf-8") as out:
        lines = ",\n".join("  " + json.dumps(case) for case in cases)
        out.write(f'{{"host": {json.dumps(HOST)},\n "before": {json.dumps(BEFORE)},\n "cases": [\n{lines}\n]}}\n')
    errors = sum("error" in case for case in cases)
    print(f"{TARGET}: {len(cases)} cases, {errors} of them errors", file=sys.stderr)


if __name__ == "__main__":
    main()
