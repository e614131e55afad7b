#!/bin/bash
# mutants.sh [NAME...]: breaks one guard after another on purpose (tests/mutations), and demands that chaos notices each.
#
# Each patch is applied to a scratch copy of what is committed, built, and run for up to SEEDS seeds (300), or until something
# is wrong. Prints a table; status 1 if a mutation is not noticed. Some minutes each: the library is built anew every time.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-300}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git archive HEAD | tar -x -C "$scratch"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/mutants}
export RUST_BACKTRACE=0 CHAOS_NO_STORY=1 CHAOS_FINDINGS=1 CHAOS_SEEDS=$seeds

missed=0
for patch in tests/mutations/*.patch; do
  name=$(basename "$patch" .patch)
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  patch -s -p1 -d "$scratch" <"$patch"
  if ! (cd "$scratch" && RUSTFLAGS="${RUSTFLAGS:-} -A warnings" cargo test -q --test chaos --no-run 2>"$scratch/build.log"); then
    tail -20 "$scratch/build.log" >&2
    echo "mutants.sh: $name does not build" >&2
    exit 2
  fi
  if (cd "$scratch" && cargo test -q --test chaos -- --nocapture >"$scratch/log" 2>&1); then
    printf '%-28s NOT NOTICED in %s seeds\n' "$name" "$seeds"
    missed=1
  else
    printf '%-28s %s\n' "$name" "$(grep -m1 -E '^(seed [0-9]+:|test .* FAILED|thread .* panicked)' "$scratch/log" | cut -c1-160)"
  fi
  patch -s -R -p1 -d "$scratch" <"$patch"
done
exit "$missed"
