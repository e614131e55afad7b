#!/bin/bash
# oracle-slots.sh [SEED] [COUNT]: makes COUNT configurations of slot types, gives them to the real condor_startd, and compares
# our slots. Prints each difference. Exits with 1 if there is one that tests/oracle/slot_types-differences.txt does not list.
#
# hack/condor.sh provides HTCondor in a chroot, which needs root. If it cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-1000}
CARGO=${CARGO:-cargo}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  CONDOR_CHROOT=
}
if [ -z "$CONDOR_CHROOT" ] || [ "$(id -u)" != 0 ]; then
  echo "oracle: slots are not asked about: no chroot with HTCondor, or not root"
  exit 0
fi
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: slots, seed $SEED, $COUNT machines"
hack/oracle/slot_types.py --seed "$SEED" --count "$COUNT" >"$RECORDED"
SLOT_TYPES_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet --test commands -- --nocapture --exact slot_types_oracle::recorded_slots_of_condor_startd
