#!/bin/bash
# bench-cluster.sh [--trouble] [--turns N] [--write PAGE] [WORKLOAD...]: measures what procs cost a real API server, with
# Slotwright and with batch/v1 Jobs, in turns on the same server. A WORKLOAD is PROCS,NODES,SECONDS; with 0 SECONDS procs run
# until the end of the turn. Without a WORKLOAD, measures those of docs/reference/performance.md, which takes about half an hour.
#
# With --trouble, measures instead what Slotwright alone does while the API server refuses calls, is slow, or is slow for one tenant.
#
# PROFILE names a profile of Cargo other than release: with a quicker build, only the server's figures count.
#
# hack/kube/assets.sh provides the control plane. The Job controller and kube-scheduler may make as many calls as they like. A server
# that has admission policies gets those of the chart, if Helm's SDK is there.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
# shellcheck disable=SC1091  # linted by itself
. hack/kube/chart.sh

WORKLOADS=("2000,100,2" "4000,500,0" "10000,2000,0")
OPTIONS=()
while [ $# -gt 0 ]; do
  case $1 in
    --trouble) OPTIONS+=("$1"); WORKLOADS=("1000,100,2"); shift ;;
    --*) OPTIONS+=("$1" "$2"); shift 2 ;;
    *) break ;;
  esac
done
[ $# = 0 ] || WORKLOADS=("$@")

CARGO=${CARGO:-cargo}
SLOTWRIGHT_KUBE_STATE=$(mktemp -d "${TMPDIR:-/tmp}/slotwright-bench.XXXXXX")
export SLOTWRIGHT_KUBE_STATE SLOTWRIGHT_KUBE_UNTHROTTLED=1
trap 'hack/kube/up.sh stop; rm -rf "$SLOTWRIGHT_KUBE_STATE"' EXIT
eval "$(hack/kube/up.sh start --nodes)"
export KUBECONFIG
KUBECTL=$(hack/kube/kubectl.sh)
server_version
# The chart's admission policies are a part of what pods cost the API server, whoever makes the pods.
if [ "$MINOR" -ge 30 ] && render; then
  awk 'BEGIN { RS = "---\n" } /\nkind: (Mutating|Validating)AdmissionPolicy/ { print "---\n" $0 }' "$SLOTWRIGHT_KUBE_STATE/chart.yaml" |
    kubectl apply -f - >&2
fi
"$CARGO" bench --quiet --profile "${PROFILE:-release}" --bench cluster -- "${OPTIONS[@]}" "${WORKLOADS[@]}"
