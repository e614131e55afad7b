#!/bin/bash
# e2e-nodes.sh [FILTER...]: runs tests/nodes on real nodes: three kubelets with containerd and runc on this computer, a control
# plane, and the chart's permissions. The tests run the operator as a process that may do what the chart lets it do. A filter
# selects tests by a part of their names. Needs root and Debian 12, or the programs in KUBEBUILDER_ASSETS.
#
#   e2e-nodes.sh start   starts the cluster without running tests, and prints what to export for `cargo test --test nodes`
#   e2e-nodes.sh stop    stops the cluster that start has started
#
#   PROCS                how many procs the large test has (default 60)
#   SHARDS               how many clusters of three nodes share the tests (default 1). The tests wait most of the time: with
#                        two clusters they take half as long, even on two cores
#   SLOTWRIGHT_KUBE_STATE  the directory of a cluster that start starts (default ${TMPDIR:-/tmp}/slotwright-nodes)
#
# Each run without start has a directory, ports, bridges and cgroups of its own, and removes them at the end, also after a
# failure. A failed test prints its objects and the operator's log.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
NODES=(1 2 3)
export SLOTWRIGHT_NODE_CPUS=${SLOTWRIGHT_NODE_CPUS:-12}

# shellcheck disable=SC1091  # chart.sh is linted by itself
. "$ROOT/hack/kube/chart.sh"

# Whether this computer has cgroup v1, where an agent needs more rights to kill.
v1() { if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo false; else echo true; fi; }

# Starts everything. The output of the programs goes to stderr, so that stdout is for start's exports.
cluster() {
  local exports node
  [ "$(id -u)" = 0 ] || die "nodes need root"
  exports=$("$ROOT/hack/kube/up.sh" start --nodes); eval "$exports"
  KUBECTL=$("$ROOT/hack/kube/kubectl.sh")
  server_version
  say "Kubernetes 1.$MINOR is up"
  kubectl create namespace "$NAMESPACE" --dry-run=client -o yaml | kubectl apply -f -
  definitions >/dev/null
  render --set agent.enabled=true --set agent.inputDirectory="$SLOTWRIGHT_KUBE_STATE/input" \
    --set agent.cronDirectory="$SLOTWRIGHT_KUBE_STATE/cron" --set agent.diskUsage=true --set agent.cgroupV1Kill="$(v1)"
  kubectl apply -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" >/dev/null
  # The tests run the operator and the agents themselves, and one of them the DaemonSet.
  kubectl -n "$NAMESPACE" get daemonset/slotwright-agent -o json >"$SLOTWRIGHT_KUBE_STATE/daemonset.json"
  kubectl -n "$NAMESPACE" delete deployment/slotwright daemonset/slotwright-agent
  operator_kubeconfig
  mkdir -p "$SLOTWRIGHT_KUBE_STATE/proof"
  local starting=()
  for node in "${NODES[@]}"; do "$ROOT/hack/kube/node.sh" start "$node" & starting+=($!); done
  for node in "${starting[@]}"; do wait "$node" || die "a node did not start"; done
  agent_kubeconfigs "${NODES[@]/#/node}"
  say "${#NODES[@]} nodes are up"
}

down() {
  local node
  for node in "${NODES[@]}"; do "$ROOT/hack/kube/node.sh" stop "$node" || true; done
  "$ROOT/hack/kube/up.sh" stop
}

# The tests are ignored where there are no nodes.
run() {
  export SLOTWRIGHT_NODES=$SLOTWRIGHT_KUBE_STATE
  cd "$ROOT"
  # The plugin, with which a test submits, is of another package than the tests. Naming a test chooses the tests' features, for
  # which everything is built already.
  cargo build -q --locked --bin kubectl-slotwright --test nodes
  if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --test nodes --run-ignored all -j 1 --no-fail-fast ${SHARD:+--partition "slice:$SHARD"} "$@"
  else
    cargo test --test nodes -- --include-ignored --test-threads 1 "$@"
  fi
}

# Runs each share of the tests on a cluster of its own, and prints what each share printed once all have ended.
shards() { # count [filter...]
  local count=$1 shard running=() failed=0 logs; shift
  cargo nextest --version >/dev/null 2>&1 || die "SHARDS needs cargo-nextest"
  # Built once, before the shards wait for each other's builds.
  cargo build -q --locked --bin slotwright --bin kubectl-slotwright --test nodes
  logs=$(mktemp -d)
  for shard in $(seq "$count"); do
    SHARDS=1 SHARD=$shard/$count "$0" "$@" >"$logs/$shard" 2>&1 & running+=($!)
  done
  for shard in $(seq "$count"); do
    wait "${running[$((shard - 1))]}" || failed=1
    say "shard $shard of $count:"; cat "$logs/$shard"
  done
  rm -rf "$logs"
  return "$failed"
}

if [ "${SHARDS:-1}" -gt 1 ] && [[ ! ${1:-} =~ ^(start|stop)$ ]]; then shards "$SHARDS" "$@"; exit; fi

case ${1:-} in
  start)
    export SLOTWRIGHT_KUBE_STATE=${SLOTWRIGHT_KUBE_STATE:-${TMPDIR:-/tmp}/slotwright-nodes}
    cluster >&2
    echo "export SLOTWRIGHT_NODES=$SLOTWRIGHT_KUBE_STATE KUBECONFIG=$KUBECONFIG" ;;
  stop)
    export SLOTWRIGHT_KUBE_STATE=${SLOTWRIGHT_KUBE_STATE:-${TMPDIR:-/tmp}/slotwright-nodes}
    down ;;
  *)
    SLOTWRIGHT_KUBE_STATE=$(mktemp -d "${TMPDIR:-/tmp}/slotwright-nodes-XXXXXX"); export SLOTWRIGHT_KUBE_STATE
    trap down EXIT
    cluster
    run "$@" ;;
esac
