#!/bin/bash
# oracle-config.sh [SEED] [COUNT]: asks condor_config_val about fresh configuration files, about that many values, and compares
# our answers. Exit 1 when one differs that tests/oracle/config-differences.txt does not list; each is printed with its file.
#
# HTCondor is Debian's `condor` package on this machine, or in the chroot that CONDOR_CHROOT names (which needs root).
# Without either, says so and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

SEED=${1:-$RANDOM} COUNT=${2:-5000}
CARGO=${CARGO:-cargo}
PYTHON=${CONFIG_PYTHON:-python3}
export CONDOR_CHROOT=${CONDOR_CHROOT-}
if [ -z "$CONDOR_CHROOT" ] && ! command -v condor_config_val >/dev/null; then
  [ ! -x /var/tmp/condor/usr/bin/condor_config_val ] || CONDOR_CHROOT=/var/tmp/condor
  if [ -z "$CONDOR_CHROOT" ]; then
    echo "oracle: configuration is not asked about: no condor_config_val here, and CONDOR_CHROOT names no chroot with it" >&2
    exit 0
  fi
fi
RECORDED=$(mktemp); trap 'rm -f "$RECORDED"' EXIT

echo "oracle: configuration, seed $SEED, $COUNT values"
"$PYTHON" tests/oracle/config.py --seed "$SEED" --count "$COUNT" >"$RECORDED"
CONFIG_ORACLE=$RECORDED RUST_BACKTRACE=0 \
  "$CARGO" test --quiet --test config_oracle -- --nocapture --exact recorded_answers_of_condor_config_val
