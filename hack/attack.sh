#!/bin/bash
# attack.sh [real|load [PROFILE]]: tries what a tenant with the role `edit` in one namespace may try against the pool (tests/e2e/attack),
# and prints a table of what came of it. Without an argument the embedded server is used; with `real`, a real kube-apiserver
# with the chart's permissions (hack/e2e.sh). With `load`, measures instead what 500 hostile jobs cost others and the operator,
# on an embedded server with 500 nodes, with an optimized build or that of cargo's PROFILE (dev: the figures in
# docs/reference/performance.md). Status 1 if an attack has an effect on others.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
log=$(mktemp); rows=$(mktemp); trap 'rm -f "$log" "$rows"' EXIT
export SLOTWRIGHT_TEST_ATTACKS=$rows
status=0
case ${1:-} in
  '') cargo test -q --test e2e -- --test-threads 1 attack:: >"$log" 2>&1 || status=$? ;;
  real) hack/e2e.sh all attack:: >"$log" 2>&1 || status=$? ;;
  load) cargo test -q --profile "${2:-release}" --test e2e -- --nocapture --ignored attack::load >"$log" 2>&1 || status=$? ;;
  *) echo "usage: attack.sh [real|load [PROFILE]]" >&2; exit 2 ;;
esac
hack/attack-table.sh "$rows"
[ "$status" = 0 ] || { tail -40 "$log" >&2; echo "attack.sh: an attack had an effect, or could not be tried" >&2; exit 1; }
