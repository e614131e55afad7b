#!/bin/bash
# fuzz.sh TARGET [SECONDS]: fuzzes one target of fuzz/ for so long (60 s), with one worker at the lowest priority.
# fuzz.sh --minimize TARGET: merges what was found into the kept corpus, as few and as small inputs as cover it.
# fuzz.sh --seed: adds inputs made from the examples, the tests and the recordings to the corpora that grow. Needs PyYAML.
# fuzz.sh --pack TARGET: makes the corpus that grows the kept one, as it is: for a target that nobody has fuzzed yet.
#
# fuzz/work/TARGET is the corpus that grows, and is not committed; fuzz/corpus/TARGET.tar.gz, with thousands of tiny inputs, is.
# A finding is written to fuzz/artifacts/TARGET and ends the run with status 1. Needs a nightly toolchain and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
DICTIONARY=$PWD/classad.dict
# Real policies are short, so inputs have at most 4096 bytes. The timeout is a whole minute, because at the lowest priority an
# input that takes seconds need not be slow.
OPTIONS=(-max_len=4096 -timeout=60 -rss_limit_mb=2048 -dict="$DICTIONARY" -use_value_profile=1 -print_final_stats=1)

need() {
  cargo +nightly fuzz --version >/dev/null 2>&1 \
    || { echo "fuzz.sh: needs rustup toolchain install nightly; cargo install cargo-fuzz --locked" >&2; exit 3; }
}

# Adds the inputs of the kept corpus to the corpus that grows.
unpack() { # target
  mkdir -p "work/$1"
  [ ! -e "corpus/$1.tar.gz" ] || tar -C "work/$1" -xzf "corpus/$1.tar.gz"
}

fuzz() {
  need
  unpack "$1"
  nice -n 19 cargo +nightly fuzz run "$1" "work/$1" -- "${OPTIONS[@]}" -max_total_time="$2"
}

minimize() {
  need
  unpack "$1"
  rm -rf "work/$1.kept"; mkdir -p "work/$1.kept"
  nice -n 19 cargo +nightly fuzz run "$1" "work/$1.kept" "work/$1" -- -merge=1 -max_len=1024 -timeout=10
  pack "$1" "work/$1.kept"
  rm -rf "work/$1.kept"
}

# These options make the archive a function of the inputs alone.
pack() { # target directory
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$2" -cf - . | gzip -n9 >"corpus/$1.tar.gz"
  ls -sh "corpus/$1.tar.gz"
}

case $1 in
  --minimize) minimize "$2" ;;
  --seed) python3 seed.py work ;;
  --pack) pack "$2" "work/$2" ;;
  *) fuzz "$1" "${2:-60}" ;;
esac
