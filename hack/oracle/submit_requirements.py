#!/usr/bin/env python3
"""The answers of a real schedd to submit requirements.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/submit_requirements.py > tests/oracle/submit_requirements.json

Needs the chroot of the oracle (hack/condor.sh) and root. A minute: a pool of a master, a collector and a schedd runs in the chroot,
and condor_submit submits a job for each case. One configuration has the requirements of all cases; each looks at the job's `Case`.

Output, a list of cases: `requirements`, each a condition, a reason or null, and whether it only warns; `job`, the attributes of the
job; `refused`, the reason or null, and `warnings`, as condor_submit prints them; and whether the job was `accepted`.
"""
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from condor_pool import Pool, wait_until  # noqa: E402

STATE = "/srv/condor-requirements"
CONFIG = "requirements/condor_config"

# Condition, reason, whether it only warns.
VALUES = ["true", "false", "1", "0", "2.5", "0.0", "undefined", "error", '"true"', '""', "{ true }", "[ a = 1 ]", "NoSuchAttribute",
          "NoSuchAttribute > 1", "Foo == 3", "Foo == 4", "TARGET.Foo == 3", "MY.Foo == 3", "JOB.Foo == 3", "SCHEDD.Foo is undefined",
          'MY.MyType == "Scheduler"', 'SCHEDD.MyType == "Scheduler"', 'TARGET.MyType == "Job"', 'MyType == "Scheduler"', "Bar == 4",
          "JOB.Bar == 4", "ifThenElse(Foo == 3, 0, 1)", "time() > 0", "1/0", "relTime(5)", "absTime(0) is undefined", "Foo && true",
          "Foo || false", "! Foo", "size(\"x\")"]
CASES = [[(value, None, False)] for value in VALUES] + [[(value, None, True)] for value in VALUES] + [
    [("false", reason, warns)] for warns in (False, True) for reason in
    ['"because"', 'strcat("Foo is ", Foo)', "undefined", "error", "3", "Foo", "{ 1 }", "NoSuch", '""', 'strcat("a", JOB.Foo)', '"two words; and \'quotes\'"',
     'strcat("b", MY.Foo)', 'strcat("c", TARGET.Foo)']
] + [
    [("true", None, False), ("false", '"second"', False), ("false", '"third"', False)],
    [("false", '"w1"', True), ("false", '"w2"', True), ("true", None, False)],
    [("false", '"w1"', True), ("false", '"e2"', False), ("false", '"w3"', True)],
    [("undefined", '"w1"', True), ("false", '"e2"', False)],
    [("false", '"e1"', False), ("undefined", None, False)],
    [("Foo == 3", None, False), ("Foo == 3", None, True)],
]
JOB = {"Foo": "3", "Bar": "Foo + 1"}


def name(case, place):
    return f"Case{case}x{place}"


def config():
    lines, names = [], []
    for number, requirements in enumerate(CASES):
        for place, (condition, reason, warns) in enumerate(requirements):
            names.append(name(number, place))
            knob = f"SUBMIT_REQUIREMENT_{names[-1]}"
            lines.append(f"{knob} = TARGET.Case =!= {number} ? true : ({condition})")
            lines += [f"{knob}_REASON = {reason}"] if reason else []
            lines += [f"{knob}_IS_WARNING = True"] if warns else []
    lines.append("SUBMIT_REQUIREMENT_NAMES = " + " ".join(names))
    return "\n".join(lines) + "\n"


class Schedd(Pool):
    """A pool without a negotiator, whose schedd has the requirements."""

    def prepare(self):
        base = (Path(__file__).parent / "pool/condor_config").read_text()
        own = (f"LOCAL_DIR = {STATE}\nCOLLECTOR_PORT = 19718\nCOLLECTOR_HOST = 127.0.0.1:19718\nLOCAL_CONFIG_DIR =\n"
               "DAEMON_LIST = MASTER, COLLECTOR, SCHEDD\nSCHEDD_INTERVAL = 5\n")
        self.write(self.config, base + "\n" + own + config())

    def _up(self):
        return "Scheduler" in self.tool("condor_status", "-schedd", "-af", "MyType")

    def negotiator_off(self):
        pass

    def submit(self, number):
        """What condor_submit says of a job of this case."""
        description = "executable = /bin/sleep\narguments = 1\nhold = true\ntransfer_executable = false\nrequest_disk = 1\n"
        description += f"+Case = {number}\n" + "".join(f"+{name} = {value}\n" for name, value in JOB.items()) + "queue\n"
        self.write(f"{STATE}/job.sub", description)
        command = f"cd /tmp && CONDOR_CONFIG={self.config} condor_submit {STATE}/job.sub"
        said = self.tool("su", "alice", "-c", command)
        # Warnings stand in one line, the last first, each behind its subsystem and code.
        lines = [re.sub(r"Case\d+x", "R", line) for line in said.splitlines() if re.match("ERROR|WARNING", line)]
        said_of = {kind: [line.removeprefix(kind + ": ") for line in lines if line.startswith(kind) and "into the queue" not in line]
                   for kind in ("ERROR", "WARNING")}
        warnings = [warning.removeprefix("QMGMT:0:") for line in said_of["WARNING"] for warning in line.split("|QMGMT:0:")]
        return {"refused": said_of["ERROR"][0] if said_of["ERROR"] else None, "warnings": warnings[::-1],
                "accepted": "1 job(s) submitted" in said}


def main():
    pool = Schedd(CONFIG, STATE)
    pool.prepare()
    answers = []
    with pool.running():
        wait_until(pool._up, 30)
        time.sleep(1)
        for number, requirements in enumerate(CASES):
            answers.append({"requirements": requirements, "job": JOB, **pool.submit(number)})
    print("[\n" + ",\n".join(json.dumps(answer) for answer in answers) + "\n]")


main()
