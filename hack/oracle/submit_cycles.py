"""Runs inside the chroot: submit_cycles.py FILE. Submits what the file says: a list of descriptions and counts."""
import json
import sys

import htcondor2

COMMON = {"executable": "/bin/sleep", "arguments": "600", "transfer_executable": "false", "should_transfer_files": "IF_NEEDED",
          "when_to_transfer_output": "ON_EXIT", "request_disk": "1048576"}

schedd = htcondor2.Schedd()
for description, count in json.load(open(sys.argv[1])):
    schedd.submit(htcondor2.Submit({**COMMON, **description}), count=count)
