#!/usr/bin/env python3
"""seed.py CORPORA: makes inputs for the fuzz targets from the examples, the tests and the oracles' recordings. Needs PyYAML.

The inputs of the targets config_read, config_expand and classad_grammar are those that the fuzzer found.
"""
import hashlib
import json
import pathlib
import struct
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORACLE = ROOT / "tests/oracle"
# How many inputs of a recording are kept, and how many bytes of an input, as hack/fuzz.sh has them.
KEPT = 400
MOST = 4096
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "uid": "u", "labels": {"kubernetes.io/arch": "arm64", "pool": "desktop"}},
    "spec": {"unschedulable": True, "taints": [{"key": "owner", "value": "ada", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "3900m", "memory": "7.5Gi", "ephemeral-storage": "10Gi", "nvidia.com/gpu": "2", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
    },
}


class Corpora:
    def __init__(self, directory):
        self.directory = directory

    def write(self, target, data):
        data = data.encode() if isinstance(data, str) else data
        if len(data) > MOST:
            return
        directory = self.directory / target
        directory.mkdir(parents=True, exist_ok=True)
        (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)


def some(lines, most):
    return lines[:: max(1, len(lines) // most)]


def rows(name):
    return [json.loads(line) for line in open(ORACLE / name, encoding="utf-8")]


def classads(corpora):
    lines = rows("classad.jsonl")
    every, my, target, seen, number = max(1, len(lines) // KEPT), None, None, 0, 0
    for line in lines:
        if isinstance(line, dict):
            number += 1
            if number % 10 == 0:
                corpora.write("classad_parser", line.get("new") or line.get("long") or "")
            continue
        if line[0] == "ads":
            my, target = line[1], line[2]
            continue
        seen += 1
        if seen % every:
            continue
        corpora.write("classad_lexer", line[0])
        corpora.write("classad_parser", line[0] if seen % 2 else my)
        if my and len(my) + len(target or "") < 900:
            corpora.write("classad_eval", "%s\n---\n%s\n---\n%s" % (my, target or "[]", line[0]))


def policies(corpora):
    for row in some(rows("slot_types.jsonl"), 150):
        corpora.write("slot_types", struct.pack("<HII", 4, 256, 1000000) + row["config"].encode())
    for row in some(rows("transforms.jsonl"), 600):
        if row[0] in ("policy", "rules"):
            corpora.write("transform_rules", row[1])
    for case in json.load(open(ORACLE / "user_maps.json", encoding="utf-8")):
        for user in list(case["users"])[:2]:
            corpora.write("user_map", "%s\n%s" % (user, case["map"]))


def workloads(corpora):
    for path in sorted((ROOT / "tests/submit/files").glob("*.sub")):
        corpora.write("submit_file", path.read_bytes())
    for line in some((ROOT / "tests/tools/cases.txt").read_text().splitlines(), 150):
        words = line.split()
        if words and words[0] in ("condor_q", "condor_status"):
            corpora.write("tool_options", "\n".join(words[1:]))
    for path in sorted((ROOT / "tests/tools/ads").glob("history*")):
        data = path.read_bytes()
        for start in range(0, min(len(data), 5 * MOST), MOST):
            corpora.write("history_file", data[start:start + MOST])
            corpora.write("trace_history", data[start:start + MOST])
    swf = (ROOT / "examples/simulate/archive.swf").read_bytes()
    for start in range(0, min(len(swf), 10 * MOST), MOST):
        corpora.write("trace_swf", swf[start:start + MOST])


def objects(corpora):
    def text(value):
        return json.dumps(value, default=str)

    corpora.write("objects_nodes", text(NODE))
    found = []
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        if "simulate" not in path.parts:
            found += [one for one in yaml.safe_load_all(path.read_text()) if isinstance(one, dict) and one.get("kind")]
    for number, one in enumerate(found):
        if not str(one.get("apiVersion")).startswith("slotwright.dev/"):
            continue
        spec = one.get("spec") or {}
        # The target makes many reviews of each input, and jobs are alike.
        if one["kind"] != "HTCJob" or number % 4 == 0:
            corpora.write("webhook_review", text(spec))
            corpora.write("webhook_review", text(one))
        if one["kind"] != "HTCJob":
            continue
        status = {"phase": "Running", "clusterId": 7, "submitter": "alice", "completedIndexes": "0-2,5", "running": 2}
        corpora.write("objects_jobs", text(one))
        corpora.write("objects_jobs", text({**one, "status": status}))
        if number % 4 == 1:
            corpora.write("webhook_review", text({**one, "status": status}))
        template = spec.get("template") or {}
        metadata = {**(template.get("metadata") or {}), "name": "p", "namespace": "alice", "uid": "p"}
        corpora.write("objects_nodes", text({"kind": "Pod", "metadata": metadata, "spec": template.get("spec")}))
        kind = {"group": "slotwright.dev", "version": "v1alpha1", "kind": one["kind"]}
        request = {
            "uid": "u", "kind": kind, "resource": {**{k: kind[k] for k in ("group", "version")}, "resource": "htcjobs"},
            "name": "x", "namespace": "alice", "operation": "CREATE", "userInfo": {"username": "alice"}, "object": one,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        if number % 4 == 2:
            corpora.write("webhook_review", text(review))


def main():
    corpora = Corpora(pathlib.Path(sys.argv[1]))
    for seed in (classads, policies, workloads, objects):
        seed(corpora)


main()
