#!/bin/bash
# oracle-cycles.sh [SEED] [COUNT]: makes COUNT pools with queues, gives them to the real condor_negotiator, and compares our
# matches. Prints each cycle in which they differ, and exits with 1 if there is one. Takes eight seconds for each cycle.
#
# hack/condor.sh provides HTCondor in a chroot, which needs root. If it cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-22}
CARGO=${CARGO:-cargo}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  CONDOR_CHROOT=
}
if [ -z "$CONDOR_CHROOT" ] || [ "$(id -u)" != 0 ]; then
  echo "oracle: cycles are not asked about: no chroot with HTCondor, or not root"
  exit 0
fi
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: cycles, seed $SEED, $COUNT pools"
hack/oracle/cycles.py --named --seed "$SEED" --count "$COUNT" >"$RECORDED"
CYCLES_ORACLE=$RECORDED RUST_BACKTRACE=0 "$CARGO" test --quiet --test commands -- --nocapture negotiation_oracle
