#!/bin/bash
# manifests.sh [--check]: writes deploy/base/slotwright.yaml, which is the chart with its default values, without Helm's own
# labels. With --check, writes nothing, and fails if the file is out of date.
#
# The custom resource definitions are in crds/ alone. deploy/base/kustomization.yaml names that directory, and the chart's crds
# is a link to it, which Helm follows: packages of the chart have real files.
#
# Without Python or PyPI the file is left as it is, and a line on stderr says so; with CI=true this is an error.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
CHECK=${1:-}
fresh=$(mktemp -d); trap 'rm -rf "$fresh"' EXIT
stale=0

# Copies a fresh file into the repository, or with --check compares it with the one there.
place() { # fresh-file path-in-the-repository
  if cmp -s "$1" "$ROOT/$2"; then return; fi
  if [ "$CHECK" = --check ]; then echo "manifests: $2 is out of date: run make crds" >&2; stale=1; return; fi
  mkdir -p "$(dirname "$ROOT/$2")"; cp "$1" "$ROOT/$2"; echo "manifests: wrote $2"
}

rendered() {
  local code=0
  "$ROOT/hack/helm.sh" render "$ROOT/charts/slotwright" >"$fresh/chart.yaml" || code=$?
  if [ "$code" = 3 ] && [ "${CI:-}" != true ]; then echo "manifests: deploy/base/slotwright.yaml not looked at (no Helm)" >&2; return; fi
  [ "$code" = 0 ] || exit "$code"
  { echo "# The chart with its default values. Written by hack/manifests.sh: edit charts/slotwright, then run make crds."
    grep -v -E '^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): |^# Source: ' "$fresh/chart.yaml"
  } >"$fresh/slotwright.yaml"
  place "$fresh/slotwright.yaml" deploy/base/slotwright.yaml
}

# A clone without symbolic links (git on Windows, core.symlinks=false) has a small text file instead.
[ -d "$ROOT/charts/slotwright/crds" ] || { echo "manifests: charts/slotwright/crds is no link to ../../crds: git config core.symlinks true, then check it out again" >&2; exit 1; }
rendered
exit "$stale"
