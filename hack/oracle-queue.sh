#!/bin/bash
# oracle-queue.sh [--record]: asks condor_q, condor_status and condor_history about the ads in tests/tools/ads, by each command line in
# tests/tools/cases.txt, and compares what they print with ours. Prints each difference that tests/tools/main.rs does not list,
# and exits with 1 if there is one. With --record, the answers replace tests/tools/recorded.json.
#
# hack/condor.sh provides HTCondor's tools. If they cannot be had, this script says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
CONDOR_CHROOT=$(hack/condor.sh) || {
  [ $? = 3 ] || exit 1
  echo "oracle: condor_q, condor_status and condor_history are not asked: HTCondor's tools cannot be had here"
  exit 0
}
export CONDOR_CHROOT
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: condor_q, condor_status and condor_history"
python3 tests/oracle/tools.py >"$RECORDED"
if [ "${1:-}" = --record ]; then cp "$RECORDED" tests/tools/recorded.json; exit; fi
TOOLS_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet -p slotwright-tools --test tools -- --nocapture --exact what_is_printed_is_what_the_tools_print
