#!/bin/bash
# oracle.sh [SEED] [COUNT]: makes COUNT cases, asks HTCondor's own library about them, and compares our answers. Prints each
# difference with its ads. Exits with 1 if there is a difference that docs/reference/differences.md does not explain.
#
# HTCondor's library comes from PyPI (hack/pypi.sh), its tools from Debian (hack/condor.sh). The same SEED makes the same
# cases. PYTHON may name another interpreter that has the library.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-20000}
HTCONDOR=25.14.1
CARGO=${CARGO:-cargo}
PYTHON=${PYTHON:-$(hack/pypi.sh htcondor $HTCONDOR)/python}
WORK=$(mktemp -d); trap 'rm -rf "$WORK"' EXIT
FAILED=0

# Evaluation and parsing: records the library's answers, and compares ours by the test that CI runs on its own recording.
classads() {
  echo "oracle: ClassAds, seed $SEED, $COUNT cases"
  "$PYTHON" tests/oracle/classad.py --seed "$SEED" --count "$COUNT" >"$WORK/classad.jsonl"
  CLASSAD_ORACLE=$WORK/classad.jsonl RUST_BACKTRACE=0 \
    "$CARGO" test --quiet --test commands -- --nocapture --exact classad_oracle::recorded_answers_of_htcondor
}

# Printing: the library reads what we print.
printing() {
  "$CARGO" build --quiet --bin slotwright
  "$PYTHON" tests/oracle/classad.py --seed "$SEED" --count $((COUNT / 4)) \
    --reads-back "${CARGO_TARGET_DIR:-target}/debug/slotwright"
}

# Configuration files, which condor_config_val reads too.
configuration() {
  CARGO=$CARGO hack/oracle-config.sh "$SEED" "$COUNT"
}

# Job transforms, which condor_transform_ads carries out too.
transforms() {
  CARGO=$CARGO hack/oracle-transforms.sh "$SEED" $((COUNT / 10))
}

# Submit files, which condor_submit reads too.
submit_files() {
  CARGO=$CARGO hack/oracle-submit.sh
}

# Ads, which condor_q and condor_status print too.
tools() {
  CARGO=$CARGO hack/oracle-queue.sh
}

# Slot types, which condor_startd lays out too.
slots() {
  CARGO=$CARGO hack/oracle-slots.sh "$SEED" $((COUNT / 20))
}

# Negotiation cycles, which condor_negotiator runs too.
cycles() {
  CARGO=$CARGO hack/oracle-cycles.sh "$SEED" $((COUNT / 1000))
}

classads || FAILED=1
printing || FAILED=1
configuration || FAILED=1
transforms || FAILED=1
submit_files || FAILED=1
tools || FAILED=1
slots || FAILED=1
cycles || FAILED=1
exit $FAILED
