#!/bin/bash
# oracle-config.sh [SEED] [COUNT]: makes configuration files with about COUNT values, asks condor_config_val for the values, and
# compares our answers. Prints each difference with its file. Exits with 1 if there is a difference that
# tests/oracle/config-differences.txt does not list.
#
# hack/condor.sh provides HTCondor's tools. If they cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-5000}
CARGO=${CARGO:-cargo}
PYTHON=${CONFIG_PYTHON:-python3}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  echo "oracle: configuration is not asked about: HTCondor's tools cannot be had here"
  exit 0
}
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: configuration, seed $SEED, $COUNT values"
"$PYTHON" tests/oracle/config.py --seed "$SEED" --count "$COUNT" >"$RECORDED"
CONFIG_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet -p slotwright-config --test configuration -- --nocapture --exact oracle::recorded_answers_of_condor_config_val
