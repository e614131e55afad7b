#!/bin/bash
# condor.sh: provides HTCondor's tools, and prints the chroot that they are in.
#
# Prints an empty line if the tools are installed on this computer, CONDOR_CHROOT if it is set, and else /var/tmp/condor. This
# script makes that chroot if it is missing, which needs root on Debian, a minute or two, and 700 MB. The chroot has Debian
# unstable, because older packages of HTCondor lack templates.
#
# Exits with 3 if the tools cannot be provided here; stderr says why.
set -euo pipefail

CHROOT=${CONDOR_CHROOT:-/var/tmp/condor}
TOOL=usr/bin/condor_config_val
export DEBIAN_FRONTEND=noninteractive

unavailable() { echo "condor.sh: no HTCondor to ask: $*" >&2; exit 3; }

install_debootstrap() {
  command -v debootstrap >/dev/null && return
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >&2 || unavailable "apt-get install debootstrap failed"
}

# Makes the chroot from the mirror that apt uses on this computer.
make_chroot() {
  local mirror
  [ "$(id -u)" = 0 ] || unavailable "install Debian's package condor, or run this as root once to make a chroot"
  command -v apt-get >/dev/null || unavailable "this is no Debian; name a chroot that has it in CONDOR_CHROOT"
  install_debootstrap
  # shellcheck disable=SC2016  # a placeholder of apt
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian/\?$') || unavailable "apt has no Debian mirror"
  debootstrap --variant=minbase sid "$CHROOT" "$mirror" >&2 || unavailable "debootstrap failed; see $CHROOT/debootstrap"
  # Packages must not start daemons in the chroot.
  printf '#!/bin/sh\nexit 101\n' >"$CHROOT/usr/sbin/policy-rc.d"; chmod +x "$CHROOT/usr/sbin/policy-rc.d"
  for shared in proc dev sys; do mountpoint -q "$CHROOT/$shared" || mount --bind "/$shared" "$CHROOT/$shared"; done
  chroot "$CHROOT" apt-get install -y -qq --no-install-recommends condor >&2 || unavailable "apt-get install condor failed in $CHROOT"
}

if [ -z "${CONDOR_CHROOT:-}" ] && command -v condor_config_val >/dev/null; then echo; exit; fi
[ -x "$CHROOT/$TOOL" ] || make_chroot
echo "$CHROOT"
