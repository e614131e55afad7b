#!/bin/bash
# lint.sh: the checks of `make lint` that are not cargo's own: scripts, and cargo-deny and shellcheck where installed.
# Says which were left out. That licenses, sources and versions are in order is also a test (tests/deps.rs), which needs neither.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts=(.ci/run hack/*.sh hack/kube/*.sh)
for script in "${scripts[@]}"; do
  bash -n "$script"
  [ -x "$script" ] || { echo "lint: $script is not executable" >&2; exit 1; }
done
if command -v shellcheck >/dev/null; then shellcheck "${scripts[@]}"; else echo "lint: shellcheck is not installed: left out"; fi

if cargo deny --version >/dev/null 2>&1; then
  cargo deny --offline check bans licenses sources
  echo "lint: cargo deny check advisories left out: its database does not come from a package registry"
else
  echo "lint: cargo-deny is not installed: left out (tests/deps.rs checks licenses, sources and versions)"
fi
