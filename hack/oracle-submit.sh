#!/bin/bash
# oracle-submit.sh [--record]: asks condor_submit -dry-run about each file in tests/submit/files, and compares the ads with ours.
# Prints each difference that tests/submit/oracle.rs does not list, and exits with 1 if there is one. With --record, the answers
# replace tests/submit/recorded.json.
#
# hack/condor.sh provides HTCondor's tools. If they cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  echo "oracle: submit files are not asked about: HTCondor's tools cannot be had here"
  exit 0
}
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: submit files"
python3 tests/oracle/submit_files.py >"$RECORDED"
if [ "${1:-}" = --record ]; then cp "$RECORDED" tests/submit/recorded.json; fi
SUBMIT_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet -p slotwright-submit --test submit -- --nocapture --exact oracle::ads_are_those_of_condor_submit
