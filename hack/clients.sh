#!/bin/bash
# clients.sh [parsl|dask|snakemake|events]...: runs others' clients of HTCondor, unmodified, against Slotwright. All, if none is named.
#
# The clients are those of PyPI (tests/clients/requirements.txt). They call condor_submit, condor_q, condor_rm and condor_wait, which
# are links to kubectl-slotwright. An embedded API server and the operator run; a node whose pods are processes of this computer
# (tests/clients/processes.py) runs what the clients submit, so that their workers really compute.
#
# Exits with 3 if PyPI cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD CARGO=${CARGO:-cargo}
CACHE=${SLOTWRIGHT_TOOLS_CACHE:-/var/tmp/slotwright-tools}
REQUIREMENTS=tests/clients/requirements.txt
ENVIRONMENT=$CACHE/clients-$(sha256sum $REQUIREMENTS | cut -c 1-12)
TOOLS="condor_hold condor_q condor_release condor_rm condor_status condor_submit condor_vacate_job condor_wait"

unavailable() { rm -rf "$ENVIRONMENT"; echo "clients.sh: $*" >&2; exit 3; }

make_environment() {
  mkdir -p "$CACHE"
  exec 9>"$CACHE/lock"; flock 9
  if [ ! -e "$ENVIRONMENT/.whole" ]; then
    rm -rf "$ENVIRONMENT"
    python3 -m venv "$ENVIRONMENT" >&2 || unavailable "python3 -m venv failed: apt-get install python3-venv"
    "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check -r $REQUIREMENTS >&2 || unavailable "pip install failed"
    touch "$ENVIRONMENT/.whole"
  fi
  exec 9>&-
}

# Starts a command in the background, and waits until its output has a line.
begin() { # log line command...
  local log=$1 line=$2; shift 2
  "$@" >"$log" 2>&1 &
  started+=($!)
  for _ in $(seq 300); do
    if grep -q "$line" "$log"; then return; fi
    kill -0 $! 2>/dev/null || break
    sleep 0.2
  done
  echo "clients.sh: $* does not start:" >&2; cat "$log" >&2; exit 1
}

# Runs a client in a process group of its own. Whatever the client leaves behind when it fails (Parsl's interchange, say) is
# killed, and does not hold the output open, for whose end the caller of this script waits.
run() { # script
  local code=0
  timeout -k 10 300 python3 "$1" & client=$!
  wait "$client" || code=$?
  [ "$code" != 124 ] || echo "clients.sh: $1 did not end in 300 s" >&2
  kill -KILL -- "-$client" 2>/dev/null || true
  client=
  return "$code"
}

started=() client=
finish() {
  local code=$?
  [ -z "$client" ] || kill -KILL -- "-$client" 2>/dev/null || true
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  if [ "$code" != 0 ] && [ -d "$directory" ]; then
    for log in operator nodes; do echo "--- $log"; tail -n 40 "$directory/$log.log"; done >&2
    KEEP=${KEEP:-}
  fi
  [ -n "${KEEP:-}" ] || rm -rf "$directory"
  exit "$code"
}

make_environment
[ -n "${SLOTWRIGHT_BIN:-}" ] || { $CARGO build --locked --bins --test commands; SLOTWRIGHT_BIN=${CARGO_TARGET_DIR:-target}/debug; }
BIN=$(cd "$SLOTWRIGHT_BIN" && pwd)
directory=$(mktemp -d)
trap finish EXIT
mkdir "$directory/bin" "$directory/work" "$directory/manifests"
cp tests/clients/pool.yaml "$directory/manifests"
for tool in $TOOLS kubectl-slotwright; do ln -s "$BIN/kubectl-slotwright" "$directory/bin/$tool"; done
export PATH=$directory/bin:$ENVIRONMENT/bin:$PATH KUBECONFIG=$directory/kubeconfig
export PYTHONPATH=$ROOT/tests/clients XDG_CACHE_HOME=$directory/cache TMPDIR=$directory/work PYTHONWARNINGS=ignore

begin "$directory/cluster.log" "There is no operator" "$BIN/slotwright" demo --cluster-only --nodes 1 \
  --examples "$directory/manifests" --kubeconfig "$KUBECONFIG"
begin "$directory/operator.log" "the operator begins" "$BIN/slotwright" operator --no-leader-elect --health-addr 127.0.0.1:0 --metrics-addr 127.0.0.1:0
server=$(awk '/server:/ { print $2 }' "$KUBECONFIG")
begin "$directory/nodes.log" "runs processes" python3 tests/clients/processes.py "$server" processes "$directory/pods"

# The node runs whatever image a pod names; the clients' jobs name none.
export SLOTWRIGHT_IMAGE=none
cd "$directory/work"
[ $# != 0 ] || set -- parsl dask snakemake events
for name; do run "$ROOT/tests/clients/${name}_client.py"; done
