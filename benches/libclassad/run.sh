#!/usr/bin/env bash
# run.sh SLOTS JOBS
# Compiles answer.cpp with HTCondor's library and runs it. The program gets this script's standard input and output.
#
# The library is in Debian's package condor-dev, which is installed here or in the chroot that CONDOR_CHROOT names. As root,
# this script installs compiler and library in the chroot if they are missing. Exits with 3 if neither can be used.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
slots=${1:?usage: run.sh SLOTS JOBS} jobs=${2:?usage: run.sh SLOTS JOBS}
flags=(-O2 -std=c++20)

if [ -e /usr/include/classad/classad.h ] && command -v g++ >/dev/null; then
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
  g++ "${flags[@]}" "$here/answer.cpp" -o "$build/answer" -lclassad
  "$build/answer" "$slots" "$jobs"
  exit
fi

chroot_dir=${CONDOR_CHROOT:-/var/tmp/condor}
if [ "$(id -u)" != 0 ] || [ ! -x "$chroot_dir/usr/bin/apt-get" ]; then
  echo "no condor-dev: install it, or name a Debian chroot of HTCondor's in CONDOR_CHROOT" >&2
  exit 3
fi
if [ ! -e "$chroot_dir/usr/include/classad/classad.h" ] || [ ! -x "$chroot_dir/usr/bin/g++" ]; then
  chroot "$chroot_dir" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends g++ condor-dev >/dev/null 2>&1
fi
work=/var/tmp/slotwright-bench
mkdir -p "$chroot_dir$work"
cp "$here/answer.cpp" "$slots" "$jobs" "$chroot_dir$work/"
chroot "$chroot_dir" env TMPDIR="$work" g++ "${flags[@]}" "$work/answer.cpp" -o "$work/answer" -lclassad
exec chroot "$chroot_dir" "$work/answer" "$work/$(basename "$slots")" "$work/$(basename "$jobs")"
