#!/bin/bash
# pypi.sh PACKAGE VERSION: installs one package from PyPI into a Python environment of its own, once, and prints the
# environment's bin directory. Environments live under ${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}.
#
# Exit 3: it cannot be had here (no Python 3.10 with venv, or PyPI out of reach); stderr says which.
set -euo pipefail

[ $# = 2 ] || { echo "usage: pypi.sh PACKAGE VERSION" >&2; exit 2; }
PACKAGE=$1 VERSION=$2
CACHE=${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}
ENVIRONMENT=$CACHE/$PACKAGE-$VERSION

unavailable() { rm -rf "$ENVIRONMENT"; echo "pypi.sh: $*" >&2; exit 3; }

# Programs in an environment name its directory, so it is made where it stays; the mark says that it is whole.
make_environment() {
  command -v python3 >/dev/null || unavailable "no python3"
  mkdir -p "$CACHE" || unavailable "cannot write $CACHE"
  exec 9>"$CACHE/lock"; flock 9
  [ ! -e "$ENVIRONMENT/.whole" ] || return 0
  rm -rf "$ENVIRONMENT"
  python3 -m venv "$ENVIRONMENT" >&2 || unavailable "python3 -m venv failed: apt-get install python3-venv"
  "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check "$PACKAGE==$VERSION" >&2 \
    || unavailable "pip install $PACKAGE==$VERSION failed"
  touch "$ENVIRONMENT/.whole"
}

[ -e "$ENVIRONMENT/.whole" ] || make_environment
echo "$ENVIRONMENT/bin"
