#!/bin/bash
# helm.sh render|lint CHART [option...]: renders or lints a chart without a helm binary (options: helm.sh --help).
# Helm's own SDK comes from PyPI. Exit 3: it cannot be had here (see pypi.sh). Other codes are the chart's.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
tools=$("$HERE/pypi.sh" helm-python-sdk 0.2.2)
exec "$tools/python" "$HERE/helm.py" "$@"
