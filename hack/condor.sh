#!/bin/bash
# condor.sh: sees to it that HTCondor's tools can be asked, and prints the chroot that they are in: nothing where they are
# installed on this machine, CONDOR_CHROOT where it is set, else /var/tmp/condor, which is made where it is missing (root,
# Debian; a minute or two, 700 MB; Debian's unstable, because older packages lack templates).
#
# Exit 3: they cannot be had here; stderr says why.
set -euo pipefail

CHROOT=${CONDOR_CHROOT:-/var/tmp/condor}
TOOL=usr/bin/condor_config_val
export DEBIAN_FRONTEND=noninteractive

unavailable() { echo "condor.sh: no HTCondor to ask: $*" >&2; exit 3; }

install_debootstrap() {
  command -v debootstrap >/dev/null && return
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >&2 || unavailable "apt-get install debootstrap failed"
}

# From the mirror that apt uses here, whatever it is.
make_chroot() {
  local mirror
  [ "$(id -u)" = 0 ] || unavailable "install Debian's package condor, or run this as root once to make a chroot"
  command -v apt-get >/dev/null || unavailable "this is no Debian; name a chroot that has it in CONDOR_CHROOT"
  install_debootstrap
  # shellcheck disable=SC2016  # apt's own word
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian/\?$') || unavailable "apt has no Debian mirror"
  debootstrap --variant=minbase sid "$CHROOT" "$mirror" >&2 || unavailable "debootstrap failed; see $CHROOT/debootstrap"
  # Nothing is to be started in it.
  printf '#!/bin/sh\nexit 101\n' >"$CHROOT/usr/sbin/policy-rc.d"; chmod +x "$CHROOT/usr/sbin/policy-rc.d"
  for shared in proc dev sys; do mountpoint -q "$CHROOT/$shared" || mount --bind "/$shared" "$CHROOT/$shared"; done
  chroot "$CHROOT" apt-get install -y -qq --no-install-recommends condor >&2 || unavailable "apt-get install condor failed in $CHROOT"
}

if [ -z "${CONDOR_CHROOT:-}" ] && command -v condor_config_val >/dev/null; then echo; exit; fi
[ -x "$CHROOT/$TOOL" ] || make_chroot
echo "$CHROOT"
