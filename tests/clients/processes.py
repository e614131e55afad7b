#!/usr/bin/env python3
"""A node whose pods are processes of this computer, for tests that need programs to run and have no containers.

    processes.py SERVER NODE DIRECTORY

Registers the node at the API server SERVER (plain HTTP, as the embedded one), renews its Lease, and runs the first container of
each pod that is bound to it: command, arguments, environment and working directory are the pod's, files are those of this
computer, and the output goes to DIRECTORY/POD.log. A pod that is deleted gets SIGTERM and, after its grace period, SIGKILL.
Images, volumes, limits, probes and further containers are ignored. Ends at SIGTERM, with all its processes.
"""
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PAUSE = 0.2         # seconds between two looks at the pods
LEASE = 10          # seconds between two renewals of the node's Lease
CAPACITY = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "200Gi", "pods": "110"}
MERGE = "application/merge-patch+json"


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    def __init__(self, server):
        self.server = server.rstrip("/")

    def call(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, "User-Agent": "processes.py"}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def try_call(self, *words, **more):
        """The same; None if the API server refuses, as it does if the object is there already, or gone."""
        try:
            return self.call(*words, **more)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409):
                print(words[:2], error.code, error.read()[:300], file=sys.stderr)
            return None


def expanded(text, env):
    """`$(NAME)` and `$$`, as a kubelet replaces them."""
    def value(found):
        if found[0] == "$$":
            return "$"
        return env.get(found[1], found[0])
    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", value, text)


class Run:
    """A pod's process."""

    def __init__(self, pod, directory):
        meta, spec = pod["metadata"], pod["spec"]
        self.path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self.uid, self.kill_at, self.ended = meta["uid"], None, False
        container = spec["containers"][0]
        self.name, self.image = container["name"], container.get("image", "")
        own = {}
        for variable in container.get("env", []):
            own[variable["name"]] = expanded(variable.get("value", ""), own)
        words = [expanded(word, own) for word in container.get("command", []) + container.get("args", [])]
        self.started = now()
        where = container.get("workingDir") or str(directory)
        with open(directory / f"{meta['name']}.log", "ab") as log:
            try:
                self.process = subprocess.Popen(words, cwd=where, env={**os.environ, **own}, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log, start_new_session=True)
            except OSError as error:
                log.write(f"{error}\n".encode())
                self.process = None

    def signal(self, number):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def status(self):
        code = 127 if self.process is None else self.process.poll()
        if code is None:
            state, phase = {"running": {"startedAt": stamp(self.started)}}, "Running"
        else:
            # A shell's way to tell of signals, and a container runtime's.
            code = code if code >= 0 else 128 - code
            ended = {"exitCode": code, "reason": "Error" if code else "Completed",
                     "startedAt": stamp(self.started), "finishedAt": stamp(now())}
            state, phase = {"terminated": ended}, "Failed" if code else "Succeeded"
            self.ended = True
        ready = phase == "Running"
        container = {"name": self.name, "state": state, "ready": ready, "started": ready, "restartCount": 0,
                     "image": self.image, "imageID": self.image}
        return {"status": {"phase": phase, "startTime": stamp(self.started), "containerStatuses": [container]}}


class Node:
    def __init__(self, api, name, directory):
        self.api, self.name, self.directory = api, name, directory
        self.runs, self.renewed, self.stopped = {}, 0, False
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "runs processes",
                 "lastHeartbeatTime": stamp(now()), "lastTransitionTime": stamp(now())}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        api.call("POST", "/api/v1/nodes", node)
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready]}
        api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)
        print(f"{name} runs processes", flush=True)

    def renew(self):
        if time.monotonic() - self.renewed < LEASE:
            return
        path, time_of = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", stamp(now()).replace("Z", ".000000Z")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": time_of}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name}, "spec": spec}
        if not self.api.try_call("PATCH", f"{path}/{self.name}", {"spec": spec}, MERGE):
            self.api.try_call("POST", path, lease)
        self.renewed = time.monotonic()

    def look(self):
        pods = self.api.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.name}")["items"]
        for pod in pods:
            self.look_at(pod)
        gone = set(self.runs) - {pod["metadata"]["uid"] for pod in pods}
        for uid in gone:
            self.runs.pop(uid).signal(signal.SIGKILL)

    def look_at(self, pod):
        meta, uid = pod["metadata"], pod["metadata"]["uid"]
        run = self.runs.get(uid)
        if run is None:
            if pod.get("status", {}).get("phase", "Pending") != "Pending":
                return
            if "deletionTimestamp" in meta:
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                self.api.try_call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
                return
            run = self.runs[uid] = Run(pod, self.directory)
            self.api.try_call("PATCH", f"{run.path}/status", run.status(), MERGE)
        elif not run.ended and (run.process is None or run.process.poll() is not None):
            self.api.try_call("PATCH", f"{run.path}/status", run.status(), MERGE)
        if "deletionTimestamp" not in meta:
            return
        if run.ended:
            self.api.try_call("DELETE", run.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        elif run.kill_at is None:
            run.signal(signal.SIGTERM)
            run.kill_at = time.monotonic() + meta.get("deletionGracePeriodSeconds", 30)
        elif time.monotonic() > run.kill_at:
            run.signal(signal.SIGKILL)

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        while not self.stopped:
            try:
                self.renew()
                self.look()
            except OSError as error:
                print(f"{self.name}: {error}", file=sys.stderr)
            time.sleep(PAUSE)
        for run in self.runs.values():
            run.signal(signal.SIGKILL)

    def stop(self, *_):
        self.stopped = True


if __name__ == "__main__":
    where = Path(sys.argv[3])
    where.mkdir(parents=True, exist_ok=True)
    Node(Api(sys.argv[1]), sys.argv[2], where).run()
