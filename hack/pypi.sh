#!/bin/bash
# pypi.sh PACKAGE VERSION: installs one package from PyPI into a Python environment of its own, unless it is installed there
# already, and prints the environment's bin directory. The environments are in
# ${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}.
#
# Exits with 3 if the package cannot be installed here, because there is no Python 3.10 with venv or PyPI cannot be reached;
# stderr says which.
set -euo pipefail

[ $# = 2 ] || { echo "usage: pypi.sh PACKAGE VERSION" >&2; exit 2; }
PACKAGE=$1 VERSION=$2
CACHE=${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}
ENVIRONMENT=$CACHE/$PACKAGE-$VERSION

unavailable() { rm -rf "$ENVIRONMENT"; echo "pypi.sh: $*" >&2; exit 3; }

# Makes the environment in its final directory, because the programs in it contain the directory's name. The file .whole says
# that the environment is complete.
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
