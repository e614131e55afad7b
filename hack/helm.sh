#!/bin/bash
# helm.sh render|lint|package CHART [option...]: renders, lints or packs a chart without a helm binary. `package` keeps no
# package, but prints what is in it. `helm.sh --help` lists the options.
#
# Uses Helm's own SDK from PyPI. Exits with 3 if the SDK cannot be installed here (see pypi.sh), and with another code if the
# chart has errors.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
tools=$("$HERE/pypi.sh" helm-python-sdk 0.2.2)
exec "$tools/python" "$HERE/helm.py" "$@"
