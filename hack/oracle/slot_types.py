#!/usr/bin/env python3
"""How the real condor_startd divides machines: random configurations, and the slots that it makes of them.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/slot_types.py --seed 1 --count 600 > tests/oracle/slot_types.jsonl
    CONDOR_CHROOT=/var/tmp/condor hack/oracle/slot_types.py --seed 7 --count 3000 > /tmp/s.jsonl
    SLOT_TYPES_ORACLE=/tmp/s.jsonl cargo test --test commands slot_types_oracle

Needs the chroot of the oracle (hack/condor.sh) and root. Each configuration is given to a startd of its own, without a
pool, which is ended as soon as its log says what slots it made: 30 ms a case. CPUs, memory and disk are the
configuration's, so that answers do not depend on the machine; swap is what the startd found, and recorded.

Output, a JSON object a line: `config`, the text; `swap`, KiB; `gpus`, devices in their order with their properties, if
there are any; and either `slots`, each [ID, TYPE, PARTITIONABLE, CPUS with two digits, MEMORY, SWAP, DISK, {RESOURCE:
COUNT}, {RESOURCE: [DEVICE, ...]}], or `refused`, what the log says. The same seed gives the same cases.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

ROOT = os.environ.get("CONDOR_CHROOT") or "/var/tmp/condor"
HOME = "/srv/slot-types"    # in the chroot
TOO_LONG = 20               # seconds
BASE = f"""
LOCAL_DIR = {HOME}
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
COLLECTOR_HOST = 127.0.0.1:9
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
USE_SHARED_PORT = False
NO_DNS = True
DEFAULT_DOMAIN_NAME = oracle
SEC_DEFAULT_AUTHENTICATION = NEVER
SEC_DEFAULT_ENCRYPTION = NEVER
SEC_DEFAULT_INTEGRITY = NEVER
STARTER = /bin/false
STARTD_LOG = /dev/stderr
STARTD_DEBUG = D_FULLDEBUG
STARTD_DETECT_GPUS = False
SLOT_CONFIG_FAILURE_MODE = ABORT
"""
# After one of these messages, the startd says nothing more of slots, even if a configuration makes none.
DONE = ("Instantiating a StartdHookMgr", "EXITING WITH", "CronJobMgr: Doing config")
REFUSALS = ["Ran out of system resources in auto allocation", "Ran out of system resources", "Can't parse attribute",
            "Bad description of slot type", "Unknown attribute", "Failed to bind local resource", "reserved resource name",
            "Can't define", "Invalid result", "Can't compute physical memory"]

# The manual's examples, and what we do otherwise on purpose: tests/oracle/slot_types-differences.txt lists those.
FIXED = [
    "SLOT_TYPE_1 = cpus=2, ram=128, swap=25%, disk=1/2", "SLOT_TYPE_1 = cpus=1/2, memory=128, virt=25%, disk=50%",
    "SLOT_TYPE_1 = c=1/2, m=50%, v=1/4, disk=1/2", "SLOT_TYPE_1 = c=25%, m=64, v=1/4, d=25%", "SLOT_TYPE_1 = 25%",
    "SLOT_TYPE_1 = 1/4", "SLOT_TYPE_1 = cpus=1, ram=1/2, swap=50%", "SLOT_TYPE_1 = cpus=1, disk=auto, 50%",
    "SLOT_TYPE_1 = mem=64", "SLOT_TYPE_1 = mem=auto", "SLOT_TYPE_1 = cpus=1.95, mem=1", "SLOT_TYPE_1 = cpus=4.5",
    "SLOT_TYPE_1 = 0", "SLOT_TYPE_1 = nogpus=0, cpus=1", "SLOT_TYPE_1 = nogpus=1, cpus=1", "SLOT_TYPE_1 = 150%",
    "SLOT_TYPE_1 = 2", "SLOT_TYPE_1 = cpus=", "SLOT_TYPE_1 = cpus=1/0", "SLOT_TYPE_1 = Cogs = 1", "SLOT_TYPE_1 = cpuss=1",
    "SLOT_TYPE_1 = cpus=two", "SLOT_TYPE_1 = cpus=-1", "SLOT_TYPE_1 = mem=-50%", "SLOT_TYPE_1 = -1/2",
    "SLOT_TYPE_1 = disk=1.5M", "SLOT_TYPE_1 = mem=100X", "SLOT_TYPE_1 = mem=100K", "SLOT_TYPE_1 = cpus=2K",
    "SLOT_TYPE_1 = cpus=0x2", "SLOT_TYPE_1 = =1", "SLOT_TYPE_1 = 1/4/2", "SLOT_TYPE_1 = 25%x", "SLOT_TYPE_1 = foo",
    "SLOT_TYPE_1 = nogpus=1K%", "SLOT_TYPE_1 = disk=1 : foo(", "SLOT_TYPE_1 = swap=2 T", "SLOT_TYPE_1 = c = 2, mem = 25 %, 1 / 4",
    "SLOT_TYPE_0 = cpus=1", "NUM_SLOTS_TYPE_0 = 1",
]
FIXED = ["NUM_CPUS = 4\nMEMORY = 256\nDISK = 1000000\n%s\nNUM_SLOTS_TYPE_1 = 1\n" % text for text in FIXED]

# The last slot type that counts is MAX_SLOT_TYPES, 10 by default.
for most, number in [(None, 10), (None, 11), (20, 11), (20, 20), (20, 21), (100, 70), (5, 7)]:
    limit = "" if most is None else "MAX_SLOT_TYPES = %d\n" % most
    FIXED.append("NUM_CPUS = 4\nMEMORY = 256\nDISK = 1000000\n%sNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 25%%\n"
                 "NUM_SLOTS_TYPE_%d = 1\nSLOT_TYPE_%d = 50%%\n" % (limit, number, number))


class Gen:
    """Configurations as text; everything drawn from one seeded source."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def case(self):
        """A configuration, and the GPUs of its machine."""
        r = self.r
        cpus = r.choice([1, 2, 3, 4, 5, 6, 7, 8, 8, 10, 12, 16, 24, 29, 32, 48, 64, 96, 128])
        memory = r.choice([10, 128, 1000, 1001, 1024, 4096, 7777, 16384, 65536, 257000, 257001, 1048576, 4194304])
        disk = r.choice([1000, 5000, 100003, 1000000, 52428800, 999999999, 999999999, 4000000000])
        lines = [f"NUM_CPUS = {cpus}", f"MEMORY = {memory}", f"DISK = {disk}"]
        if r.random() < 0.1:
            lines.append(f"RESERVED_MEMORY = {r.choice([1, 10, 100, 1000])}")
        custom = self.custom(lines)
        gpus = self.gpus(lines, custom)
        kind = r.random()
        if kind < 0.12:
            self.even(lines, cpus)
        elif kind < 0.2:
            self.templates(lines, cpus)
        else:
            for number in sorted(r.sample([1, 2, 3, 4, 5, 9, 10], r.choice([1, 1, 2, 2, 3, 4]))):
                self.slot_type(lines, number, cpus, custom, gpus)
        if r.random() < 0.2:
            r.shuffle(lines)
        return "\n".join(lines) + "\n", gpus

    def custom(self, lines):
        """Custom resources: name -> how many."""
        r, found = self.r, {}
        for name in r.sample(["Cogs", "actuator", "bogs", "Disks"], r.choice([0, 0, 1, 1, 2])):
            if r.random() < 0.5:
                found[name] = r.choice([0, 1, 2, 3, 4, 7, 8, 16, 100])
                lines.append(f"MACHINE_RESOURCE_{name} = {found[name]}")
            else:
                ids = [f"{name.lower()}{n}" for n in range(r.randint(1, 8))]
                off = [i for i in ids if r.random() < 0.1]
                lines.append(f"MACHINE_RESOURCE_{name} = {r.choice([', ', ' ', ','] ).join(ids)}")
                if off:
                    lines.append(f"OFFLINE_MACHINE_RESOURCE_{name} = {' '.join(off)}")
                found[name] = len(ids) - len(off)
        if found and r.random() < 0.1:
            keep = r.choice(list(found))
            lines.append(f"MACHINE_RESOURCE_NAMES = {keep.lower()} other")
            return {keep: found[keep]}
        return found

    def gpus(self, lines, custom):
        r = self.r
        if r.random() < 0.6 or any("RESOURCE_NAMES" in line for line in lines):
            return []
        makes = r.sample([("A", 7.0), ("B", 8.0), ("C", 8.6), ("D", 9.0)], r.randint(1, 3))
        gpus = []
        for n in range(r.randint(1, 8)):
            name, capability = r.choice(makes)
            gpus.append([f"GPU-{n}{name.lower()}6a96bd", {"Capability": capability, "DeviceName": f"Maker {name}",
                                                         "GlobalMemoryMb": r.choice([16000, 40000, 80000])}])
        lines.append(f"MACHINE_RESOURCE_INVENTORY_GPUs = /bin/cat {HOME}/gpus.ad")
        custom["GPUs"] = len(gpus)
        return gpus

    def even(self, lines, cpus):
        """No type is defined."""
        r = self.r
        if r.random() < 0.5:
            lines.append(f"NUM_SLOTS = {r.choice([1, 2, 3, cpus, cpus, max(1, cpus // 2), cpus + 1])}")
        if r.random() < 0.5:
            lines.append(f"SLOT_TYPE_0_PARTITIONABLE = {r.choice(['True', 'False'])}")

    def templates(self, lines, cpus):
        r = self.r
        lines.append(r.choice(["use FEATURE : StaticSlots", f"use feature : StaticSlots(1, {max(1, cpus // 2)})",
                               "use FEATURE : PartitionableSlot", "use FEATURE : PartitionableSlot(1, 50%)",
                               "use FEATURE : StaticSlots(2, 2, cpus=1)", "use FEATURE : PartitionableSlot(3, mem=1/2, 1/4)"]))
        if r.random() < 0.3:
            lines.append("NUM_SLOTS_TYPE_4 = 1\nSLOT_TYPE_4 = minimal")

    def slot_type(self, lines, number, cpus, custom, gpus):
        r = self.r
        lines.append(f"NUM_SLOTS_TYPE_{number} = {r.choice([1, 1, 1, 1, 1, 1, 2, 2, 3, 4, max(1, cpus // 4), cpus, 0])}")
        if r.random() < 0.5:
            lines.append(f"SLOT_TYPE_{number}_PARTITIONABLE = {r.choice(['True', 'False', 'TRUE', 'false', '1'])}")
        if r.random() < 0.1:
            return
        items = [self.item(resource, cpus, custom, gpus) for resource in
                 r.sample(["cpus", "mem", "disk", "swap", *custom, "nogpus"], r.choice([0, 1, 1, 2, 3, 3, 4]))]
        if not items or r.random() < 0.5:
            items.insert(r.randint(0, len(items)), self.blanket())
        if any(":" in item for item in items) or r.random() < 0.2:
            # One line alone is none: blanks would divide it.
            items += ["auto"] * (len(items) == 1)
            text = "\n   ".join(items)
            lines.append(f"SLOT_TYPE_{number} @=slot\n   {text}\n@slot")
        else:
            lines.append(f"SLOT_TYPE_{number} = {r.choice([', ', ','] ).join(items)}")

    def blanket(self):
        return self.r.choice(["auto", "auto", "auto", "minimal", "1/2", "50%", "25%", "1/4", "10%", "1/3", "33.3%", "100%",
                              "12.5%", "5%", "90%", "min", "Automatic", "1/10", "1/16", "2%"])

    def item(self, resource, cpus, custom, gpus):
        r = self.r
        name = {"cpus": ["cpus", "c", "CPU"], "mem": ["mem", "ram", "Memory", "m", "R"], "disk": ["disk", "d"],
                "swap": ["swap", "v", "VirtualMemory"]}.get(resource, [resource, resource.lower()])
        share = self.share(resource, cpus, custom)
        constraint = ""
        if resource == "GPUs" and r.random() < 0.6:
            share = r.choice(["1", "1", "2", "3", share])
            constraint = " : " + r.choice(["Capability >= 8.0", "Capability < 8.6", "GlobalMemoryMb >= 40000", f'"{r.choice(gpus)[0]}"',
                                           f'"{r.choice(gpus)[0].upper()}"', str(r.randint(0, 4)), "True", "False", "NoSuch > 1",
                                           'DeviceName == "Maker B" || Capability > 8.5', "Capability", "1.5"])
        elif resource in custom and r.random() < 0.15:
            constraint = " : " + r.choice([f'"{resource.lower()}{r.randint(0, 4)}"', str(r.randint(0, 4)), "True", "Foo == 1"])
        return r.choice([name[0], name[0], r.choice(name)]) + r.choice(["=", "=", " = "]) + share + constraint

    def share(self, resource, cpus, custom):
        r = self.r
        if r.random() < 0.45:
            return r.choice(["auto", "auto", "1/2", "50%", "25%", "1/4", "10%", "1/3", "33.3%", "12.5%", "minimal", "0%", "100%", "1/8",
                             "0", "0.5%", "66%", "1/5", "20%", "5%", "1/20"])
        if resource == "cpus":
            return r.choice(["1", "1", "2", "3", "1.5", "2.25", "0.7", "0.3", str(cpus), str(max(1, cpus // 2)), str(max(1, cpus // 3)),
                             "1.95"])
        if resource == "mem":
            return r.choice(["1", "10", "64", "100", "128", "512M", "1G", "2GB", "1000", "33.7", "4GB", "1T"])
        if resource in ("disk", "swap"):
            return r.choice(["1", "1000", "5000K", "1M", "10MB", "1G", "100000", "20G", "2T"])
        if resource == "nogpus":
            return r.choice(["0", "10%", "auto", "minimal", "2", "0%"])
        return r.choice(["0", "1", "1", "2", "2", "3", "4", "8", "1.5", "2.5"])


def write(path, text):
    target = Path(ROOT + path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def inventory(gpus):
    """What condor_gpu_discovery prints."""
    lines = ['DetectedGPUs="%s"' % ", ".join(gpu for gpu, _ in gpus)]
    for gpu, properties in gpus:
        inner = " ".join("%s=%s;" % (name, json.dumps(value)) for name, value in properties.items())
        lines.append('%s=[ id="%s"; %s ]' % (gpu.replace("-", "_"), gpu, inner))
    return "\n".join(lines) + "\n"


def startd(config, gpus):
    """The log of a startd with that configuration, up to where its slots are made."""
    write(f"{HOME}/config", BASE + config)
    write(f"{HOME}/gpus.ad", inventory(gpus))
    command = ["chroot", ROOT, "env", f"CONDOR_CONFIG={HOME}/config", "condor_startd", "-f", "-t"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    watch = threading.Timer(TOO_LONG, process.kill)
    watch.start()
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if any(done in line for done in DONE):
            break
    process.kill()
    process.wait()
    watch.cancel()
    return "\n".join(lines)


SLOT = re.compile(r"slot(\d+): New (p?)Slot (?:of type (\d+) )?allocated")
HAS = re.compile(r"slot(\d+): \tCpus: ([\d.]+), Memory: (\d+), Swap: (\d+), Disk: (\d+)(.*)")
BOUND = re.compile(r"bind DevIds for slot(\d+)\.0 bound (\S+) \d+")
TAG = re.compile(r"bind slot(\d+)\.0 DevIds tag=(\S+) contraint=")


def answer(config, gpus):
    log = startd(config, gpus)
    swap = re.search(r"Swap space: (\d+)", log)
    case = {"config": config, "swap": int(swap[1]) if swap else 0}
    if gpus:
        case["gpus"] = gpus
    slots, devices, tag = {}, {}, None
    for line in log.split("\n"):
        if found := TAG.search(line):
            tag = found[2]
        elif found := BOUND.search(line):
            devices.setdefault(int(found[1]), {}).setdefault(tag, []).append(found[2])
        elif found := SLOT.search(line):
            slots[int(found[1])] = [int(found[1]), int(found[3] or 0), found[2] == "p"]
        elif found := HAS.search(line):
            custom = dict(part.strip().split(": ") for part in found[6].split(",") if part.strip())
            slots[int(found[1])] += [found[2], int(found[3]), int(found[4]), int(found[5]),
                                     {name: int(count) for name, count in custom.items()}, devices.get(int(found[1]), {})]
    # That an attribute is unknown is told also where nothing is asked of it.
    refused = next((text for text in REFUSALS if text in log and not (slots and text == "Unknown attribute")), None)
    if refused:
        case["refused"] = refused
    elif "Instantiating a StartdHookMgr" in log or "CronJobMgr: Doing config" in log:
        case["slots"] = list(slots.values())
    else:
        sys.exit(f"the startd says nothing of slots:\n{config}\n{log}")
    return case


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=600)
    options = arguments.parse_args()
    for name in ("log", "spool", "execute", "lock"):
        Path(f"{ROOT}{HOME}/{name}").mkdir(parents=True, exist_ok=True)
    subprocess.run(["chroot", ROOT, "chown", "-R", "condor:condor", HOME], check=True)
    gen = Gen(options.seed)
    cases = [(text, []) for text in FIXED] + [gen.case() for _ in range(options.count)]
    for config, gpus in cases:
        print(json.dumps(answer(config, gpus), separators=(",", ":")))


if __name__ == "__main__":
    main()
