#!/bin/bash
# assets.sh [--nodes] [--check]: provides the binaries of a real Kubernetes cluster, and prints the directory that they are in.
#
# The directory has etcd, kube-apiserver and kube-controller-manager. With --nodes it also has kube-scheduler and kubelet. It is
# the first of these that has them:
#   1. $KUBEBUILDER_ASSETS, if it is set (the layout of envtest; the controller manager may be missing without --nodes, and with
#      --nodes the directory must hold all five programs);
#   2. the cache, ${SLOTWRIGHT_KUBE_CACHE:-/var/tmp/slotwright-kube}/bin;
#   3. the cache, after this script has built the binaries that it lacks from the source package of Debian bookworm: Kubernetes
#      1.20.2, the newest version in the Debian archive. This needs Debian 12 and root (apt-get), and takes 3 to 10 minutes once.
# With --nodes, also installs the Debian packages that hack/kube/node.sh needs for a node, such as containerd, if it is root.
# With --check, builds and installs nothing: prints the directory if 1 or 2 has the binaries, and exits with 1 otherwise.
#
# Prints nothing but the directory to stdout; progress goes to stderr. If two callers build at once, the second waits.
set -euo pipefail

CACHE=${SLOTWRIGHT_KUBE_CACHE:-/var/tmp/slotwright-kube}
VERSION=1.20.2
SOURCE='1.20.5+really1.20.2-1.1+deb12u1'       # the version of the package, so that each build uses the same source
COMPONENTS=(kube-apiserver kube-controller-manager)
STAMP="$CACHE/bin/.stamp-$SOURCE"
BUILD_PACKAGES=(golang-go etcd-server golang-github-modern-go-reflect2-dev dpkg-dev)
NODE_PACKAGES=(containerd runc containernetworking-plugins busybox-static iproute2 iptables openssl curl python3)

say() { echo "assets: [${SECONDS}s] $*" >&2; }
die() { echo "assets: $*" >&2; exit 1; }

# Prints the directory and exits, if the directory has all these programs.
take() { # dir program...
  local dir=$1 program; shift
  for program in "$@"; do [ -x "$dir/$program" ] || return 0; done
  (cd "$dir" && pwd); exit 0
}

take_cache() { [ ! -e "$STAMP" ] || take "$CACHE/bin" etcd "${COMPONENTS[@]}"; }

# Installs packages. Meanwhile a policy-rc.d, unless there is one already, keeps daemons that apt installs from starting.
install_packages() { # package...
  local package missing=() policy=/usr/sbin/policy-rc.d own_policy=
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  apt-get update -qq >&2 || say "apt-get update failed; going on with the lists at hand"
  if [ ! -e "$policy" ]; then printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; own_policy=yes; fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >"$CACHE/apt.log" 2>&1 </dev/null || { tail -5 "$CACHE/apt.log" >&2; rm -f ${own_policy:+"$policy"}; die "apt-get install failed: see $CACHE/apt.log"; }
  [ -z "$own_policy" ] || rm -f "$policy"
}

# Fetches the source package. Uses an apt configuration of its own, so that the computer's list of sources stays as it is.
fetch_source() {
  local mirror options
  mkdir -p "$WORK"/{lists/partial,dl,gopath/src/k8s.io}
  # shellcheck disable=SC2016  # a placeholder of apt
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian/\?$') \
    || die "no Debian mirror is configured in apt"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$WORK/src.list"
  options=(-o Dir::Etc::sourcelist="$WORK/src.list" -o Dir::Etc::sourceparts=/dev/null
           -o Dir::State::lists="$WORK/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update -qq >&2
  (cd "$WORK/dl" && apt-get "${options[@]}" source -qq --download-only "kubernetes=$SOURCE" >&2)
  tar -xzf "$WORK"/dl/kubernetes_*.orig.tar.gz -C "$WORK"       # Debian's patches concern kubectl only
  mv "$(ls -d "$WORK"/kubernetes-*/)" "$KUBE"
  say "source unpacked"
}

# Kubernetes 1.20 vendors reflect2 1.0.1, which crashes with SIGSEGV at the first custom resource if it was built with Go 1.18
# or later. Debian's package has the fixed release, with the same API.
replace_reflect2() {
  local vendored=$KUBE/vendor/github.com/modern-go/reflect2
  rm -rf "$vendored"
  cp -rL /usr/share/gocode/src/github.com/modern-go/reflect2 "$vendored"
}

# Generates pkg/generated/openapi/zz_generated.openapi.go, the only generated file that the source package lacks.
generate_openapi() {
  local trees dirs
  trees=(pkg/apis vendor/k8s.io/{api,apiextensions-apiserver,apimachinery,apiserver,client-go,cloud-provider,controller-manager,kube-aggregator,kube-controller-manager,kube-proxy,kube-scheduler,kubelet,metrics})
  $GO build -o "$WORK/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
  dirs=$(grep -rl --include='*.go' '+k8s:openapi-gen=' "${trees[@]}" | xargs -n1 dirname | LC_ALL=C sort -u \
    | sed 's|^|k8s.io/kubernetes/|' | paste -sd,)
  "$WORK/openapi-gen" --logtostderr -i "$dirs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
    -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$WORK/violations.report" 2>"$WORK/openapi-gen.log" \
    || { tail -5 "$WORK/openapi-gen.log" >&2; die "openapi-gen failed"; }
  say "OpenAPI generated"
}

build_components() {
  local package flags="-s -w" component
  for package in component-base/version client-go/pkg/version; do
    flags+=" -X k8s.io/kubernetes/vendor/k8s.io/$package.gitVersion=v$VERSION"
    flags+=" -X k8s.io/kubernetes/vendor/k8s.io/$package.gitMajor=1 -X k8s.io/kubernetes/vendor/k8s.io/$package.gitMinor=20"
    flags+=" -X k8s.io/kubernetes/vendor/k8s.io/$package.gitTreeState=archive"
  done
  # One call builds all programs, so that common packages are compiled once, and one program links while the other compiles.
  $GO build -o "$WORK/out/" -ldflags "$flags" "${MISSING[@]/#/k8s.io/kubernetes/cmd/}" >&2
  for component in "${MISSING[@]}"; do
    mv "$WORK/out/$component" "$CACHE/bin/$component"
    say "$component: $(stat -c %s "$CACHE/bin/$component") bytes"
  done
}

build() {
  [ "$(id -u)" = 0 ] || die "no Kubernetes binaries: set KUBEBUILDER_ASSETS, or run this once as root on Debian 12"
  grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || die "no Kubernetes binaries: set KUBEBUILDER_ASSETS (the build needs Debian 12)"
  install_packages "${BUILD_PACKAGES[@]}"
  # Without the stamp, what is in the cache is of another version. Otherwise only what is missing is built.
  [ -e "$STAMP" ] || rm -f "$CACHE"/bin/kube*
  MISSING=(); local component
  for component in "${COMPONENTS[@]}"; do [ -x "$CACHE/bin/$component" ] || MISSING+=("$component"); done
  say "building ${MISSING[*]}"
  ln -sf "$(command -v etcd)" "$CACHE/bin/etcd"
  WORK=$CACHE/work KUBE=$CACHE/work/gopath/src/k8s.io/kubernetes GO=/usr/bin/go
  rm -rf "$WORK"; mkdir -p "$WORK/out"
  fetch_source
  export GOPATH=$WORK/gopath GO111MODULE=off CGO_ENABLED=0 GOCACHE=$WORK/gocache GOFLAGS=
  unset GOROOT || true
  cd "$KUBE"
  replace_reflect2
  generate_openapi
  build_components
  touch "$STAMP"
  cd /; chmod -R u+w "$WORK"; rm -rf "$WORK"
  say "built into $CACHE/bin"
}

# Installs the packages of a node. Another caller may be at apt too, so only one installs at a time.
node_packages() {
  [ "$(id -u)" = 0 ] || return 0
  mkdir -p "$CACHE/bin"
  (flock 8; install_packages "${NODE_PACKAGES[@]}") 8>"$CACHE/lock-packages"
}

main() {
  local option nodes='' check=''
  for option in "$@"; do
    case $option in
      --nodes) nodes=yes; COMPONENTS+=(kube-scheduler kubelet) ;;
      --check) check=yes ;;
      *) die "usage: assets.sh [--nodes] [--check]" ;;
    esac
  done
  if [ -n "$nodes" ] && [ -z "$check" ]; then node_packages; fi
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    if [ -n "$nodes" ]; then
      take "$KUBEBUILDER_ASSETS" etcd "${COMPONENTS[@]}"
      die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, but it lacks one of etcd ${COMPONENTS[*]}"
    fi
    take "$KUBEBUILDER_ASSETS" etcd kube-apiserver
    die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, but etcd or kube-apiserver is not in it"
  fi
  take_cache
  [ -z "$check" ] || exit 1
  mkdir -p "$CACHE/bin"
  exec 9>"$CACHE/lock"
  flock -n 9 || { say "another build runs: waiting for it"; flock 9; }
  take_cache
  build
  take_cache
  die "the build left $CACHE/bin incomplete"
}

main "$@"
