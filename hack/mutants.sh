#!/bin/bash
# mutants.sh [NAME...]: breaks one guard after another on purpose (tests/mutations), and demands that chaos notices each.
#
# Each patch is applied to a scratch copy of what is committed, built as tests are, and shown to the stories; where they notice
# nothing, to up to SEEDS seeds (150), which end with the first finding. First of all both have to find nothing in what is
# committed. Prints the table of docs/reference/chaos.md; status 1 if a mutation is not noticed. About a minute for each.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-150}
mutations=$PWD/tests/mutations
mutants=${CARGO_TARGET_DIR:-$PWD/target}/mutants
# A place of its own: cargo takes what it built of a copy elsewhere for what it built here.
export CARGO_TARGET_DIR=$mutants/target
scratch=$mutants/tree
rm -rf "$scratch"
mkdir -p "$scratch"
# All files as new: what an earlier call left built may be a mutation.
git archive HEAD | tar -xm -C "$scratch"
whole=whatever_happens_the_invariants_hold_and_everything_settles
export RUST_BACKTRACE=0 CHAOS_NO_STORY=1 CHAOS_FINDINGS=1

build() {
  (cd "$scratch" && cargo test -q -p slotwright-controller --test chaos --no-run >/dev/null 2>build.log) && return
  grep -A12 '^error' "$scratch/build.log" | head -40 >&2
  echo "mutants.sh: $1 does not build" >&2
  exit 2
}

# What is printed goes to the log. No patch applies where it is applied already.
chaos() { # log ARGUMENT...
  (cd "$scratch" && timeout 600 cargo test -q -p slotwright-controller --test chaos -- --skip every_mutation_still_applies "${@:2}") >"$scratch/$1" 2>&1
}
stories() { CHAOS_SEEDS=10 chaos stories.log --skip "$whole"; }
seeds() { CHAOS_SEEDS=$seeds chaos seeds.log --exact "$whole" --nocapture; }

# What failed: of the stories all, of the seeds the first; a run without an end says nothing.
failed() { sed -nE 's/^---- (.*) stdout ----$/\1/p' "$scratch/stories.log"; }

found() { grep -oP '^seed \d+(?=:)' "$scratch/seeds.log" | sort -k2n | sed -n 1p || echo 'seeds that do not end'; }

# What is wrong first of all; where a story says nothing but that it failed, its name.
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
