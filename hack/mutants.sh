#!/bin/bash
# mutants.sh [NAME...]: breaks one guard after another (tests/mutations), and checks that the chaos tests notice each.
#
# Works on a scratch copy of the committed files. First the chaos tests must find nothing in it. Then each patch is applied,
# and the stories run; if they notice nothing, up to SEEDS seeds (150) run, until the first finding. Prints the table of
# docs/reference/chaos.md. Exits with 1 if a mutation is not noticed. Takes about a minute for each mutation.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-150}
mutations=$PWD/tests/mutations
mutants=${CARGO_TARGET_DIR:-$PWD/target}/mutants
# The copy has a target directory of its own, because cargo would take files that it built from another copy for up to date.
export CARGO_TARGET_DIR=$mutants/target
scratch=$mutants/tree
rm -rf "$scratch"
mkdir -p "$scratch"
# -m gives all files the current time, so that cargo builds them again: the last build may be one of a mutation.
git archive HEAD | tar -xm -C "$scratch"
whole=whatever_happens_the_invariants_hold_and_everything_settles
export RUST_BACKTRACE=0 CHAOS_NO_STORY=1 CHAOS_FINDINGS=1

build() {
  (cd "$scratch" && cargo test -q -p slotwright-controller --test chaos --no-run >/dev/null 2>build.log) && return
  grep -A12 '^error' "$scratch/build.log" | head -40 >&2
  echo "mutants.sh: $1 does not build" >&2
  exit 2
}

# Runs the chaos tests, with their output in the log. Skips the test that applies each patch: one is applied already.
chaos() { # log ARGUMENT...
  (cd "$scratch" && timeout 600 cargo test -q -p slotwright-controller --test chaos -- --skip every_mutation_still_applies "${@:2}") >"$scratch/$1" 2>&1
}
stories() { CHAOS_SEEDS=10 chaos stories.log --skip "$whole"; }
seeds() { CHAOS_SEEDS=$seeds chaos seeds.log --exact "$whole" --nocapture; }

# Prints the stories that failed.
failed() { sed -nE 's/^---- (.*) stdout ----$/\1/p' "$scratch/stories.log"; }

# Prints the first seed with a finding; says so if there is none because the timeout stopped the run.
found() { grep -oP '^seed \d+(?=:)' "$scratch/seeds.log" | sort -k2n | sed -n 1p || echo 'seeds that do not end'; }

# Prints the first finding; or, if the story that failed says no more than that, its name.
said() {
  local text
  text=$(sed -nE 's/^seed [0-9]+: (at [0-9.]+ s: )?//p' "$scratch/stories.log" "$scratch/seeds.log" | cut -c1-100 | sed -n 1p)
  echo "${text:-$(failed | sed -n '1 { s/.*:://; s/_/ /g; p }')}"
}

build 'what is committed'
if ! stories || ! seeds; then
  tail -40 "$scratch/stories.log" "$scratch/seeds.log" >&2
  echo 'mutants.sh: chaos finds something in what is committed' >&2
  exit 2
fi

missed=0
echo '| mutation | noticed by | as |'
echo '| --- | --- | --- |'
for patch in "$mutations"/*.patch; do
  name=$(basename "$patch" .patch)
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  patch -s -p1 -d "$scratch" <"$patch"
  build "$name"
  by=
  : >"$scratch/seeds.log"
  stories || by="$(failed | wc -l) of the stories"
  [ -n "$by" ] || seeds || by=$(found)
  patch -s -R -p1 -d "$scratch" <"$patch"
  if [ -n "$by" ]; then
    echo "| ${name/-/ } | $by | $(said) |"
  else
    echo "| ${name/-/ } | **not noticed** in $seeds seeds | |"
    missed=1
  fi
done
exit "$missed"
