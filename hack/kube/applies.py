"""applies.py KUBECONFIG OBJECT NAME COUNT: creates COUNT objects over one connection, and prints how long the API server took.

OBJECT is a file with one object as JSON; each object gets the name NAME-<number>. The kubeconfig is one of up.sh.
"""

import base64
import http.client
import json
import re
import ssl
import statistics
import sys
import tempfile
import time


def connection(kubeconfig):
    text = open(kubeconfig).read()
    part = lambda key: base64.b64decode(re.search(key + r': "?([A-Za-z0-9+/=]+)', text)[1])
    context = ssl.create_default_context(cadata=part("certificate-authority-data").decode())
    with tempfile.NamedTemporaryFile() as both:
        both.write(part("client-certificate-data") + b"\n" + part("client-key-data"))
        both.flush()
        context.load_cert_chain(both.name)
    host, port = re.search(r"server: \"?https://([^:\"]+):(\d+)", text).groups()
    return http.client.HTTPSConnection(host, int(port), context=context)


def main():
    kubeconfig, file, name, count = sys.argv[1:]
    template = json.load(open(file))
    api = connection(kubeconfig)
    took = []
    for number in range(int(count)):
        template["metadata"]["name"] = f"{name}-{number}"
        body = json.dumps(template)
        start = time.perf_counter()
        namespace = template["metadata"]["namespace"]
        api.request("POST", f"/apis/slotwright.dev/v1alpha1/namespaces/{namespace}/htcjobs", body,
                    {"Content-Type": "application/json"})
        answer = api.getresponse()
        text = answer.read()
        took.append((time.perf_counter() - start) * 1000)
        if answer.status != 201:
            sys.exit(f"{answer.status}: {text[:500]}")
    took.sort()
    print(f"{name}: {count} creations, p50 {statistics.median(took):.1f} ms, p99 {took[int(len(took) * 0.99)]:.1f} ms, "
          f"most {took[-1]:.1f} ms", flush=True)


main()
