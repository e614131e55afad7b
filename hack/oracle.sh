#!/bin/bash
# oracle.sh [SEED] [COUNT]: asks HTCondor's own library about that many fresh cases, and compares our answers. Exit 1 when
# one differs that docs/reference/differences.md does not explain; each is printed with the ads it stood in.
#
# HTCondor's library comes from PyPI (hack/pypi.sh), its tools from Debian (hack/condor.sh). The same seed makes the same
# cases. PYTHON names another interpreter that has the library.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-20000}
HTCONDOR=25.14.1
CARGO=${CARGO:-cargo}
PYTHON=${PYTHON:-$(hack/pypi.sh htcondor $HTCONDOR)/python}
WORK=$(mktemp -d); trap 'rm -rf "$WORK"' EXIT
FAILED=0

# Evaluation and parsing: what the library answers, then the replay that CI runs on the recorded answers.
classads() {
  echo "oracle: ClassAds, seed $SEED, $COUNT cases"
  "$PYTHON" tests/oracle/classad.py --seed "$SEED" --count "$COUNT" >"$WORK/classad.jsonl"
  CLASSAD_ORACLE=$WORK/classad.jsonl RUST_BACKTRACE=0 \
    "$CARGO" test --quiet --test commands -- --nocapture --exact classad_oracle::recorded_answers_of_htcondor
}

# Printing: what we print, read by the library.
printing() {
  "$CARGO" build --quiet --bin slotwright
  "$PYTHON" tests/oracle/classad.py --seed "$SEED" --count $((COUNT / 4)) \
    --reads-back "${CARGO_TARGET_DIR:-target}/debug/slotwright"
}

# Configuration files, by condor_config_val.
configuration() {
  CARGO=$CARGO hack/oracle-config.sh "$SEED" "$COUNT"
}

# Machines divided into slots, by condor_startd.
slots() {
  CARGO=$CARGO hack/oracle-slots.sh "$SEED" $((COUNT / 20))
}

# Whole negotiation cycles, by condor_negotiator.
cycles() {
  CARGO=$CARGO hack/oracle-cycles.sh "$SEED" $((COUNT / 1000))
}

classads || FAILED=1
printing || FAILED=1
configuration || FAILED=1
slots || FAILED=1
cycles || FAILED=1
exit $FAILED
