#!/usr/bin/env python3
"""What HTCondor publishes of devices and of consumption policies, and what its condor_submit makes of require_gpus.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/devices.py > tests/oracle/devices.json

Needs the chroot of the oracle (hack/condor.sh) and root. A whole pool of one machine runs in the chroot for each scene, with
made-up GPUs; jobs are submitted, and the ads of its slots recorded once they run. Half a minute a scene.

Output, a JSON object: `submit`, for each submit description what condor_submit makes of it (RequestGPUs, RequireGPUs,
Requirements), or its error; `pools`, for each scene its configuration, its GPUs, its jobs, and the slots' attributes that have
to do with resources, by the slot's name.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("CONDOR_CHROOT") or "/var/tmp/condor")
HOME = "/srv/devices"    # in the chroot
USER = "alice"           # the daemons refuse jobs of root
PORT = 19831
BASE = f"""
LOCAL_DIR = {HOME}
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
RUN = $(LOCAL_DIR)/run
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:{PORT}
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
USE_SHARED_PORT = False
NO_DNS = True
DEFAULT_DOMAIN_NAME = oracle
UID_DOMAIN = oracle
TRUST_UID_DOMAIN = True
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, CLAIMTOBE
SEC_DEFAULT_ENCRYPTION = NEVER
SEC_DEFAULT_INTEGRITY = NEVER
ALLOW_WRITE = *
ALLOW_READ = *
ALLOW_ADMINISTRATOR = *
ALLOW_NEGOTIATOR = *
ALLOW_DAEMON = *
START = True
SUSPEND = False
PREEMPT = False
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 2
UPDATE_INTERVAL = 2
STARTD_DEBUG = D_FULLDEBUG
NUM_CPUS = 8
MEMORY = 8192
DISK = 100000000
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
STARTD_DETECT_GPUS = False
ENABLE_STARTD_DAEMON_AD = False
CLAIM_PARTITIONABLE_LEFTOVERS = False
BASE_CGROUP =
MOUNT_UNDER_SCRATCH =
"""
GPUS = f"MACHINE_RESOURCE_INVENTORY_GPUs = /bin/cat {HOME}/gpus.ad\n"


def gpu(name, capability, device="Maker A", memory=16000):
    return [name, {"Capability": capability, "DeviceName": device, "GlobalMemoryMb": memory}]


MIXED = [gpu("GPU-6a96bd13", 8.0), gpu("GPU-b", 7.0, "Maker B"), gpu("GPU-c", 8.6, "Maker C", 40000), gpu("GPU-d", 7.0, "Maker B")]
ALIKE = [gpu(f"GPU-{n}", 8.0) for n in range(3)]

# Name, configuration, GPUs, jobs.
SCENES = [
    ("nobody is there", GPUS, MIXED, []),
    ("all are alike", GPUS, ALIKE, ["request_gpus = 1"]),
    ("jobs that require", GPUS, MIXED,
     ["request_gpus = 1\nrequire_gpus = Capability >= 8.5", "request_gpus = 2\nrequire_gpus = Capability < 8.0", "request_cpus = 1"]),
    ("jobs that want at least", GPUS, MIXED,
     ["request_gpus = 1\ngpus_minimum_capability = 8.5", "request_gpus = 1\ngpus_maximum_capability = 7.5\nrequire_gpus = DeviceName == \"Maker B\"",
      "request_gpus = 1\ngpus_minimum_capability = 9.0"]),
    ("one job gets all", GPUS, MIXED, ["request_gpus = 4"]),
    ("named cogs", "MACHINE_RESOURCE_Cogs = cog0, cog1, cog-2\n", [], ["request_cogs = 1"]),
    ("named cogs required", "MACHINE_RESOURCE_Cogs = cog0, cog1, cog-2\n", [], ['request_cogs = 1\n+RequireCogs = "cog-2"']),
    ("counted cogs", "MACHINE_RESOURCE_Cogs = 3\n", [], ["request_cogs = 2"]),
    ("the manual's slot types", GPUS + "NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2_PARTITIONABLE = True\nSLOT_TYPE_1 @=slot\n   GPUs = 2 : Capability >= 8.0\n"
     "   25%\n@slot\nSLOT_TYPE_2 @=slot\n   GPUs = 1 : \"GPU-b\"\n   50%\n@slot\n", MIXED,
     ["request_gpus = 1\nrequire_gpus = Capability >= 8.5", "request_gpus = 1\nrequire_gpus = Capability < 8.0"]),
    ("static slots", GPUS + "SLOT_TYPE_1_PARTITIONABLE = False\nSLOT_TYPE_1 = 25%\nNUM_SLOTS_TYPE_1 = 2\n", MIXED, ["request_gpus = 1\nrequire_gpus = Capability >= 8.0"]),
    ("consumption", "CONSUMPTION_POLICY = True\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 3),
    ("consumption, two claims", "CONSUMPTION_POLICY = True\nNUM_CLAIMS = 2\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 4),
    ("consumption of the policy", "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 2\nCONSUMPTION_MEMORY = Memory / 4\nSLOT_WEIGHT = Memory / 1024\n", [],
     ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of fractions", "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 1.5\nCONSUMPTION_MEMORY = 100.5\nCONSUMPTION_DISK = 0.5\n", [],
     ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of fractions of CPUs", "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 1.5\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of fractions of memory", "CONSUMPTION_POLICY = True\nCONSUMPTION_MEMORY = 100.5\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of fractions of disk", "CONSUMPTION_POLICY = True\nCONSUMPTION_DISK = 1000.5\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of fractions of cogs", "MACHINE_RESOURCE_Cogs = 4\nCONSUMPTION_POLICY = True\nCONSUMPTION_COGS = 1.5\n", [],
     ["request_cpus = 1\nrequest_memory = 100\nrequest_cogs = 1"] * 3),
    ("consumption of half CPUs", "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 0.5\nCONSUMPTION_DISK = 0\n", [], ["request_cpus = 1\nrequest_memory = 100"] * 2),
    ("consumption of GPUs", GPUS + "CONSUMPTION_POLICY = True\n", ALIKE, ["request_gpus = 2", "request_gpus = 1", "request_gpus = 1"]),
    ("consumption without Cpus", "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 0\n", [], ["request_cpus = 1\nrequest_memory = 100"]),
]

SUBMITS = [
    "request_gpus = 1", "request_gpus = 0", "request_gpus = 2\nrequire_gpus = Capability >= 8.0", "require_gpus = Capability >= 8.0",
    "request_gpus = 1\ngpus_minimum_capability = 8.0", "request_gpus = 1\ngpus_maximum_capability = 8.6",
    "request_gpus = 1\ngpus_minimum_memory = 4000", "request_gpus = 1\ngpus_minimum_memory = 4G", "request_gpus = 1\ngpus_minimum_memory = 4.5G",
    "request_gpus = 1\ngpus_minimum_runtime = 12.1",
    "request_gpus = 1\ngpus_minimum_runtime = 12010", "request_gpus = 1\ngpus_minimum_runtime = 12", "request_gpus = 1\ngpus_minimum_runtime = 11.4.2",
    "request_gpus = 1\ngpus_minimum_capability = 7.5\ngpus_maximum_capability = 8.6\ngpus_minimum_memory = 2000\ngpus_minimum_runtime = 12.1",
    "request_gpus = 1\nrequire_gpus = DeviceName == \"x\"\ngpus_minimum_capability = 7.5",
    "request_gpus = 1\nrequire_gpus = Capability > 7 || DeviceName == \"x\"\ngpus_minimum_memory = 10",
    "request_gpus = 1\nrequire_gpus = Capability > 7\ngpus_minimum_capability = 7.5",
    "request_gpus = 1\nrequire_gpus = Capability > 7\ngpus_maximum_capability = 7.5\ngpus_minimum_memory = 10",
    "request_gpus = 1\nrequire_gpus = Capability > 7 && GlobalMemoryMb > 1 && DeviceName == \"x\"\ngpus_maximum_capability = 7.5\ngpus_minimum_memory = 10\ngpus_minimum_runtime = 12",
    "request_gpus = 1\ngpus_minimum_runtime = 12.10", "request_gpus = 1\ngpus_minimum_runtime = 999", "request_gpus = 1\ngpus_minimum_runtime = 1000",
    "gpus_minimum_capability = 7.5", "request_gpus = 1\ngpus_minimum_capability = x", "request_gpus = 1\ngpus_minimum_memory = x",
    "request_gpus = 1\nrequirements = TARGET.GPUs > 3", "request_gpus = 1\nrequire_gpus = Capability > 7\nrequirements = TARGET.AvailableGPUs isnt undefined",
    "request_gpus = 1\nrequire_gpus = Capability >", "request_cogs = 2", "request_cogs = 2\n+RequireCogs = \"cog-2\"", "request_cogs = 2\nrequire_cogs = Size > 2",
    "+RequestGPUs = 1\n+RequireGPUs = Capability > 7", "request_gpus = 1\n+RequireGPUs = Capability > 7", "request_gpus = undefined\nrequire_gpus = Capability > 7",
    "request_gpus = 1\ngpus_maximum_memory = 10", "request_gpus = 1\ngpus_maximum_runtime = 12.1", "request_gpus = 1\ngpus_minimum_capability =",
]
KEEP = re.compile(r"gpus|cogs|assigned|available|consum|numclaim|^(total|totalslot)?(cpus|memory|disk)$|machineresources|withinresource|"
                  r"^requirements$|^slotweight$|slottype$|numdynamic|^child(gpus|cpus|assigned|available)|^name$|^state$", re.I)
DROP = re.compile(r"usage|^recent|^offline|discovery|^total(job|claim|time)", re.I)


def write(path, text):
    target = ROOT / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def inventory(gpus):
    """What condor_gpu_discovery prints."""
    lines = ['DetectedGPUs="%s"' % ", ".join(name for name, _ in gpus)]
    for name, properties in gpus:
        inner = " ".join("%s=%s;" % (key, json.dumps(value)) for key, value in properties.items())
        lines.append('%s=[ id="%s"; %s ]' % (name.replace("-", "_"), name, inner))
    return "\n".join(lines) + "\n"


def tool(*command, user=None):
    inside = ["env", f"CONDOR_CONFIG={HOME}/config", *command]
    if user:
        inside = ["su", user, "-c", " ".join(inside)]
    done = subprocess.run(["chroot", ROOT, *inside], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.25)
    return False


def long_ads(text):
    """Ads in the long form, each a dict of the attributes that matter."""
    for block in text.strip().split("\n\n"):
        pairs = [line.split(" = ", 1) for line in block.split("\n") if " = " in line]
        if pairs:
            yield dict(sorted(pair for pair in pairs if KEEP.search(pair[0]) and not DROP.search(pair[0])))


class Pool:
    def __init__(self, config, gpus):
        shutil.rmtree(ROOT / HOME.lstrip("/"), ignore_errors=True)
        for name in ("log", "spool", "execute", "lock", "run", "jobs"):
            (ROOT / HOME.lstrip("/") / name).mkdir(parents=True)
        write(f"{HOME}/config", BASE + config)
        write(f"{HOME}/gpus.ad", inventory(gpus))
        subprocess.run(["chroot", ROOT, "chown", "-R", "condor:condor", HOME], check=True)
        if subprocess.run(["chroot", ROOT, "id", USER], capture_output=True, check=False).returncode:
            subprocess.run(["chroot", ROOT, "useradd", "--create-home", USER], check=True)
        subprocess.run(["chroot", ROOT, "chown", USER, f"{HOME}/jobs"], check=True)

    def __enter__(self):
        command = ["chroot", str(ROOT), "env", f"CONDOR_CONFIG={HOME}/config", "condor_master", "-f"]
        self.master = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_until(lambda: "slot1" in tool("condor_status", "-af", "Name") and "oracle" in tool("condor_status", "-schedd", "-af", "Name"), 60):
            self.__exit__()
            sys.exit(f"the pool does not start, see {ROOT}{HOME}/log")
        return self

    def __exit__(self, *_):
        self.master.send_signal(signal.SIGQUIT)
        self.master.wait(60)

    def submit(self, jobs):
        for job in jobs:
            write(f"{HOME}/jobs/job.sub", f"executable = /bin/sleep\narguments = 600\ntransfer_executable = False\nrequest_disk = 1000\n{job}\nqueue\n")
            said = tool("condor_submit", f"{HOME}/jobs/job.sub", user=USER)
            if "submitted" not in said:
                sys.exit(f"{job}\n{said}")

    def slots(self):
        return {ad["Name"].strip('"').split("@")[0]: ad for ad in long_ads(tool("condor_status", "-l"))}

    def settle(self, seconds):
        """The slots once nothing has changed for some updates."""
        last, since = None, time.monotonic()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            slots = self.slots()
            if slots != last:
                last, since = slots, time.monotonic()
            elif time.monotonic() - since > 10:
                break
            time.sleep(0.5)
        return last


def scene(name, config, gpus, jobs):
    with Pool(config, gpus) as pool:
        pool.submit(jobs)
        slots = pool.settle(60)
        running = tool("condor_q", "-all", "-af:j", "JobStatus", "RemoteHost", "AssignedGPUs", "HoldReason").strip().split("\n")
    return {"config": config, "gpus": gpus, "jobs": jobs, "slots": slots, "queue": sorted(running)}


def submit(description):
    write(f"{HOME}/jobs/dry.sub", f"executable = /bin/sleep\ntransfer_executable = False\n{description}\nqueue\n")
    said = tool("condor_submit", "-dry-run", "-", f"{HOME}/jobs/dry.sub", user=USER)
    keep = re.compile(r"^(Request(GPUs|Cogs)|Require(GPUs|Cogs)|Requirements|GPUsM\w+) *=", re.I)
    found = dict(line.split("=", 1) for line in said.split("\n") if keep.search(line))
    if found:
        return {"ad": found, "said": [line for line in said.split("\n") if "WARNING" in line]}
    return {"refused": said.strip()}


def main():
    only = sys.argv[1:]
    with Pool("", []):
        submits = {text: submit(text) for text in SUBMITS}
    pools = {name: scene(name, config, gpus, jobs) for name, config, gpus, jobs in SCENES if not only or name in only}
    json.dump({"submit": submits, "pools": pools}, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
