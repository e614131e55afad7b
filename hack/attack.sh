#!/bin/bash
# attack.sh [real]: tries what a tenant with the role `edit` in one namespace may try against the pool (tests/e2e/attack.rs),
# and prints a table of what came of it. Without an argument the embedded server is used; with `real`, a real kube-apiserver
# with the chart's permissions (hack/e2e.sh). Status 1 if an attack has an effect on others.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
log=$(mktemp); trap 'rm -f "$log"' EXIT
status=0
if [ "${1:-}" = real ]; then
  hack/e2e.sh all attack:: >"$log" 2>&1 || status=$?
else
  cargo test -q --test e2e -- --nocapture --test-threads 1 attack:: >"$log" 2>&1 || status=$?
fi
{ echo "ATTACK|attack|tried|what came of it"; grep -ao 'ATTACK|.*' "$log" | sort -t'|' -k2n; } \
  | cut -d'|' -f2- | column -t -s'|'
[ "$status" = 0 ] || { tail -40 "$log" >&2; echo "attack.sh: an attack had an effect, or could not be tried" >&2; exit 1; }
