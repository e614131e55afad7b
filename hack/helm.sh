#!/bin/bash
# helm.sh render|lint CHART [option...]: renders or lints a chart without a helm binary (options: hack/helm.py --help).
#
# Helm's own SDK comes from PyPI into a Python environment of its own under
# ${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}, once (4 s). Needs Python 3.10 or later with venv.
# Exit 3: the environment cannot be made here (no Python, no venv, PyPI out of reach). Other codes are the chart's.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
CACHE=${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}
VERSION=0.2.2
ENVIRONMENT=$CACHE/helm-$VERSION

unavailable() { echo "helm.sh: $*" >&2; exit 3; }

# Made aside and moved into place, so that a broken attempt is never taken for a good one. Console scripts in it would
# still name the old place; we call the interpreter only.
make_environment() {
  local fresh
  command -v python3 >/dev/null || unavailable "no python3"
  mkdir -p "$CACHE" || unavailable "cannot write $CACHE"
  exec 9>"$CACHE/helm.lock"; flock 9
  [ ! -x "$ENVIRONMENT/bin/python" ] || return 0
  fresh=$(mktemp -d "$CACHE/helm-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  python3 -m venv "$fresh" >&2 || unavailable "python3 -m venv failed: apt-get install python3-venv"
  "$fresh/bin/python" -m pip install --quiet --disable-pip-version-check "helm-python-sdk==$VERSION" >&2 \
    || unavailable "pip install helm-python-sdk==$VERSION failed"
  mv "$fresh" "$ENVIRONMENT"
  trap - EXIT
}

[ -x "$ENVIRONMENT/bin/python" ] || make_environment
exec "$ENVIRONMENT/bin/python" "$HERE/helm.py" "$@"
