#!/bin/bash
# bench-negotiator.sh [SIZE...]: compares a cycle of the real condor_negotiator with one of ours, and prints a table.
#
# A SIZE is SLOTS,JOBS,AUTOCLUSTERS,SUBMITTERS[,interleaved][,alone]. Without a SIZE, measures all sizes of
# docs/reference/performance.md and replaces the table there; this takes about 20 minutes, most of them for HTCondor.
#
# HTCondor runs in the chroot that hack/condor.sh makes, and needs root. Without HTCondor, only our side is measured, and the
# document stays as it is. /tmp/condor.lock keeps two runs from measuring at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."

SIZES=("10000,10000,1,10" "10000,10000,100,10" "10000,10000,1000,10" "10000,10000,1000,10,interleaved,alone"
       "1000,1000,100,10" "1000,1000,100,10,interleaved" "50000,50000,1000,10" "25000,10000,1000,10,alone"
       "50000,10000,1000,10,alone" "100000,10000,1000,10,alone" "100000,10000,2000,10,alone"
       "100000,10000,4000,10,alone" "100000,1000000,10000,1000,alone")
[ $# = 0 ] || SIZES=("$@")

CARGO=${CARGO:-cargo}
"$CARGO" build --quiet --release --bin slotwright
SLOTWRIGHT=${CARGO_TARGET_DIR:-target}/release/slotwright
CONDOR=()
if [ "$(id -u)" = 0 ] && CHROOT=$(hack/condor.sh) && [ -n "$CHROOT" ]; then CONDOR=(--condor "$CHROOT" --write docs/reference/performance.md); fi
[ $# = 0 ] || CONDOR=("${CONDOR[@]:0:2}")
exec flock /tmp/condor.lock python3 benches/negotiator/compare.py --slotwright "$SLOTWRIGHT" "${CONDOR[@]}" "${SIZES[@]}"
