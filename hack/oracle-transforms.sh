#!/bin/bash
# oracle-transforms.sh [SEED] [COUNT]: makes COUNT cases of job transforms and job ads, asks condor_transform_ads about them, and
# compares our answers. Prints each difference with its rules. Exits with 1 if there is a difference that
# tests/oracle/transform-differences.txt does not list.
#
# hack/condor.sh provides HTCondor's tools. If they cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-2000}
CARGO=${CARGO:-cargo}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  echo "oracle: job transforms are not asked about: HTCondor's tools cannot be had here"
  exit 0
}
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: job transforms, seed $SEED, $COUNT cases"
python3 tests/oracle/transform.py --seed "$SEED" --count "$COUNT" >"$RECORDED"
TRANSFORM_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet -p slotwright-transform --test transforms -- --nocapture --exact oracle::recorded_answers_of_condor_transform_ads
