#!/bin/bash
# manifests.sh [--check]: writes the files that are derived from crds/ and the chart. With --check, writes nothing, and fails
# if a file is out of date.
#
#   charts/slotwright/crds/*.yaml     copies of crds/ (a link would not survive `helm package` on every system)
#   deploy/base/crds.yaml             all of crds/ in one file (kustomize reads no file outside its base)
#   deploy/base/slotwright.yaml       the chart with its default values, without Helm's own labels
#
# Without Python or PyPI the last file is left as it is, and a line on stderr says so; with CI=true this is an error.
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

crds() {
  local file name
  : >"$fresh/crds.yaml"
  for file in "$ROOT"/crds/*.yaml; do
    [ -e "$file" ] || { echo "manifests: no crds/*.yaml: run make crds" >&2; exit 1; }
    place "$file" "charts/slotwright/crds/$(basename "$file")"
    { echo ---; sed '1{/^---$/d}' "$file"; } >>"$fresh/crds.yaml"
  done
  for file in "$ROOT"/charts/slotwright/crds/*.yaml; do
    name=$(basename "$file")
    [ ! -e "$file" ] || [ -e "$ROOT/crds/$name" ] && continue
    if [ "$CHECK" = --check ]; then echo "manifests: charts/slotwright/crds/$name is not in crds/" >&2; stale=1; else rm "$file"; fi
  done
  place "$fresh/crds.yaml" deploy/base/crds.yaml
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

crds
rendered
exit "$stale"
