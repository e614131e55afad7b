#!/usr/bin/env python3
"""Which slots the real condor_startd leaves to the machine's owner, by the two names of the expression, with and without a type.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/owners.py > tests/oracle/owners.json

Needs the chroot of the oracle (hack/condor.sh) and root. Each configuration is given to a startd of its own for six seconds. A
slot whose owner does not want it leaves the state Owner at once, and the log says so.

Output, a JSON list: `config`, the text; `owner`, the types (from 1) whose slot stays in the state Owner.
"""
import json
import re
import subprocess

import slot_types

SECONDS = 6
TWO = "NUM_CPUS = 4\nMEMORY = 4096\nSTART = True\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 50%\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = 50%\n"
CASES = [
    "IsOwner = True\n",
    "IS_OWNER = True\n",
    "IsOwner = True\nIS_OWNER = False\n",
    "IsOwner = False\nIS_OWNER = True\n",
    "SLOT_TYPE_1_IsOwner = True\n",
    "IS_OWNER = True\nSLOT_TYPE_1_IsOwner = False\n",
    "IsOwner = True\nSLOT_TYPE_1_IsOwner = False\n",
    "SLOT_TYPE_2_IsOwner = True\nIsOwner = False\n",
    "STARTD.IsOwner = True\nIS_OWNER = False\n",
    "STARTD.IS_OWNER = True\nIsOwner = False\n",
]


def owner(config):
    """The types whose slot stays in the state Owner."""
    slot_types.write(f"{slot_types.HOME}/config", slot_types.BASE + TWO + config)
    command = ["timeout", str(SECONDS), "chroot", slot_types.ROOT, "env",
               f"CONDOR_CONFIG={slot_types.HOME}/config", "condor_startd", "-f", "-t"]
    log = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace").stdout
    made = {int(number) for number in re.findall(r"slot(\d+): New Slot of type", log)}
    if made != {1, 2}:
        raise SystemExit(f"{config!r}: the startd made the slots {made}\n{log[-2000:]}")
    left = {int(number) for number in re.findall(r"slot(\d+): Changing state: Owner -> Unclaimed", log)}
    return sorted(made - left)


print(json.dumps([{"config": config, "owner": owner(config)} for config in CASES], indent=1))
