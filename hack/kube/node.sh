#!/bin/bash
# node.sh COMMAND NUMBER [...]: runs a real node of the cluster that `up.sh start --nodes` has started: containerd, runc, a
# bridge for the pods' network, and the kubelet. The node's name is node<NUMBER>, and the number is between 1 and 7, so that
# several nodes can run beside each other. Needs root.
#
#   start N                starts what does not run, and waits until the node is Ready
#   stop N                 ends everything of the node, its containers included, and removes what it left on this computer
#   kill N PROGRAM         kills kubelet or containerd with SIGKILL; containers go on. start starts the program again
#   power-cut N [--wipe]   kills everything of the node at once, its containers included. start then boots the node: with
#                          --wipe, with an empty disk
#   clear N                kills the processes of all containers; the kubelet sees them end
#   import N FILE          gives the node the image of a file that mkimage.py has made
#   api N                  prints where the node's pods reach the API server: ADDRESS:PORT
#
#   SLOTWRIGHT_KUBE_STATE  the directory of the cluster, as for up.sh
#   SLOTWRIGHT_NODE_CPUS   how many CPUs the node claims to have (default: those of this computer)
#
# The node has the image localhost/busybox:1, made from Debian's busybox-static, so that nothing is pulled from a network.
#
# containerd and the kubelet share a mount namespace of their own: what they mount goes when they end, and several kubelets
# can have paths that Kubernetes does not let us choose, such as /var/log/pods.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(realpath -m "${SLOTWRIGHT_KUBE_STATE:-${TMPDIR:-/tmp}/slotwright-kube-state}")
PKI=$STATE/pki

# shellcheck disable=SC1091  # common.sh is linted by itself
. "$HERE/common.sh"

usage() { die "usage: node.sh start N | stop N | kill N kubelet|containerd | power-cut N [--wipe] | clear N | import N FILE | api N"; }

# --- names, all of which differ between clusters and between nodes -------------------------------------------------------

names() { # number
  [[ ${1:-} =~ ^[1-7]$ ]] || usage
  [ -s "$STATE/port" ] || die "no cluster in $STATE: up.sh start --nodes"
  API=$(<"$STATE/port")
  NODE=node$1
  DIR=$STATE/$NODE                                # the disk of the node
  RUN=/run/slotwright-kube/$API-$1                # sockets need a short path
  SOCKET=$RUN/containerd.sock
  GROUP=slotwright-$API-$1                        # the cgroup around everything of the node
  BRIDGE=sw$API-$1
  NET=$(pod_network "$API" "$1")
  ADDRESS=$NET.1                                  # of the node, and of the kubelet
}

# Runs a command in the mount namespace of the node.
inside() {
  local id; read -r id _ <"$STATE/pid/$NODE-mounts"
  nsenter --mount="/proc/$id/ns/mnt" "$@"
}

# Starts a program in the mount namespace of the node, and waits until the program is what the process runs.
spawn_inside() { # name program argument...
  local name=$1 program id; program=$(readlink -f "$2"); shift 2
  alive "$name" && return
  read -r id _ <"$STATE/pid/$NODE-mounts"
  setsid nsenter --mount="/proc/$id/ns/mnt" "$program" "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null &
  started "$name" "$!" "$program"
}

containers() { ctr -a "$SOCKET" -n k8s.io "$@"; }

# --- start ---------------------------------------------------------------------------------------------------------------

# A computer with SLOTWRIGHT_NODE_CPUS CPUs, as the kubelet reads it from /sys/devices/system/node. The programs of tests mostly
# sleep, so that a node can run more of them than this computer has CPUs.
topology() {
  local cpu node=$DIR/topology/node0
  mkdir -p "$node"
  cat /sys/devices/system/node/node0/meminfo >"$node/meminfo"
  for cpu in $(seq 0 $((CPUS - 1))); do
    mkdir -p "$node/cpu$cpu/topology"
    echo 1 >"$node/cpu$cpu/online"
    echo "$cpu" >"$node/cpu$cpu/topology/core_id"
    echo 0 >"$node/cpu$cpu/topology/physical_package_id"
  done
}

# A process that does nothing but hold the mount namespace.
mounts() {
  local name=$NODE-mounts sleep; sleep=$(readlink -f "$(command -v sleep)")
  alive "$name" && return
  CPUS=${SLOTWRIGHT_NODE_CPUS:-$(nproc)}
  topology
  mkdir -p /run/netns /var/lib/kubelet/device-plugins /var/log/pods /var/log/containers /var/lib/cni
  mkdir -p "$DIR"/{kubelet,device-plugins,pods,containers,cni,cni-state}
  # shellcheck disable=SC2016  # the inner shell expands these
  setsid unshare --mount --propagation private /bin/sh -ec '
      mount --make-rshared /
      mount -t tmpfs netns /run/netns
      mount --bind "$0/device-plugins" /var/lib/kubelet/device-plugins
      mount --bind "$0/pods" /var/log/pods
      mount --bind "$0/containers" /var/log/containers
      mount --bind "$0/cni-state" /var/lib/cni
      [ ! -d /sys/devices/system/node ] || mount --bind "$0/topology" /sys/devices/system/node
      exec "$@"' "$DIR" "$sleep" infinity >>"$STATE/log/$name.log" 2>&1 </dev/null &
  echo "$! $sleep" >"$STATE/pid/$name"
  for _ in $(seq 50); do ! alive "$name" || return 0; sleep .1; done
  die "no mount namespace: see $STATE/log/$name.log"
}

network() {
  ip link show "$BRIDGE" >/dev/null 2>&1 || { ip link add "$BRIDGE" type bridge; ip addr add "$ADDRESS/24" dev "$BRIDGE"; }
  ip link set "$BRIDGE" up
  cat >"$DIR/cni/10-bridge.conflist" <<END
{"cniVersion": "0.4.0", "name": "$BRIDGE", "plugins": [
  {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$DIR/cni-state/ipam", "ranges": [[{"subnet": "$NET.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "loopback"}]}
END
}

# The cgroup of the node, in each hierarchy of version 1, or in the one of version 2.
cgroups() {
  local hierarchy cpuset=/sys/fs/cgroup/cpuset
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$GROUP"
    sed 's/\b./+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
    return
  fi
  for hierarchy in /sys/fs/cgroup/{cpu,cpuacct,cpuset,memory,devices,freezer,blkio,pids,hugetlb,systemd}; do
    [ ! -d "$hierarchy" ] || mkdir -p "$hierarchy/$GROUP"
  done
  if [ -d "$cpuset/$GROUP" ]; then
    cat "$cpuset/cpuset.cpus" >"$cpuset/$GROUP/cpuset.cpus"
    cat "$cpuset/cpuset.mems" >"$cpuset/$GROUP/cpuset.mems"
  fi
}

containerd_config() {
  cat >"$DIR/containerd.toml" <<END
version = 2
root = "$DIR/containerd"
state = "$RUN/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "$SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true             # for computers where root lacks CAP_SYS_RESOURCE
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$DIR/cni"
END
}

start_containerd() {
  containerd_config
  spawn_inside "$NODE-containerd" "$(command -v containerd)" --config "$DIR/containerd.toml"
  await "$NODE-containerd" containers version
  if ! containers images ls -q | grep -q '^localhost/busybox:1$'; then
    python3 "$HERE/mkimage.py" "$DIR/image.tar" localhost/pause:1 /bin/sleep 2147483647
    containers images import "$DIR/image.tar" >/dev/null
    python3 "$HERE/mkimage.py" "$DIR/image.tar" localhost/busybox:1 /bin/sh
    containers images import "$DIR/image.tar" >/dev/null
    rm "$DIR/image.tar"
  fi
}

kubelet_config() {
  cat >"$DIR/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $ADDRESS
port: 10250
healthzBindAddress: $ADDRESS
healthzPort: 10248
readOnlyPort: 0
tlsCertFile: $PKI/$NODE-server.crt
tlsPrivateKeyFile: $PKI/$NODE-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$GROUP
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
failSwapOn: false
resolvConf: ""
clusterDNS: [127.0.0.1]
makeIPTablesUtilChains: false
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
volumePluginDir: $DIR/volume-plugins
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 50
kubeAPIBurst: 100
maxPods: 250
nodeStatusUpdateFrequency: 5s
runtimeRequestTimeout: 2m
END
  [ "$MINOR" -lt 27 ] || cat >>"$DIR/kubelet.yaml" <<END
containerRuntimeEndpoint: unix://$SOCKET
END
  [ "$MINOR" -lt 31 ] || echo "failCgroupV1: false" >>"$DIR/kubelet.yaml"      # some computers still have version 1
}

start_kubelet() {
  local bin old=()
  bin=$("$HERE/assets.sh" --nodes)
  MINOR=$(minor_version "$bin/kubelet")
  certificate "$NODE" ca "/O=system:nodes/CN=system:node:$NODE" clientAuth
  certificate "$NODE-server" ca "/O=system:nodes/CN=system:node:$NODE" serverAuth "DNS:$NODE,IP:$ADDRESS"
  kubeconfig "$NODE" "$API"
  kubelet_config
  [ "$MINOR" -ge 27 ] || old=(--container-runtime=remote "--container-runtime-endpoint=unix://$SOCKET" --network-plugin=cni
                              "--cni-conf-dir=$DIR/cni" --cni-bin-dir=/usr/lib/cni)
  spawn_inside "$NODE-kubelet" "$bin/kubelet" --config="$DIR/kubelet.yaml" --kubeconfig="$STATE/$NODE.kubeconfig" \
    --hostname-override="$NODE" --node-ip="$ADDRESS" --root-dir="$DIR/kubelet" "${old[@]}"
  await "$NODE-kubelet" curl -sf "http://$ADDRESS:10248/healthz"
  await "$NODE-kubelet" is_ready
}

is_ready() { api_get "/api/v1/nodes/$NODE?pretty=false" | grep -q '"type":"Ready","status":"True"'; }

start() {
  local program
  for program in containerd ctr runc ip nsenter unshare python3 curl openssl; do
    command -v "$program" >/dev/null || die "$program is missing: assets.sh --nodes installs it"
  done
  mkdir -p "$DIR" "$RUN"
  mounts
  network
  cgroups
  start_containerd
  start_kubelet
  echo "$NODE is Ready"
}

# --- end -----------------------------------------------------------------------------------------------------------------

# Prints the processes of the node: those in its mount namespace, which are also in the namespaces of its containers, and those
# in its cgroup.
processes() {
  local hierarchy
  for hierarchy in /sys/fs/cgroup "/sys/fs/cgroup/pids" "/sys/fs/cgroup/systemd"; do
    [ ! -d "$hierarchy/$GROUP" ] || find "$hierarchy/$GROUP" -name cgroup.procs -exec cat {} + 2>/dev/null || true
  done
  grep -lsF -- "$SOCKET" /proc/[0-9]*/cmdline 2>/dev/null | sed -nE 's|/proc/([0-9]+)/.*|\1|p' || true
}

kill_shims_and_containers() {
  local id left
  for _ in $(seq 50); do
    left=
    for id in $(processes | sort -un); do
      [ "$id" = "$$" ] || [ "$id" = "$BASHPID" ] || { kill -9 "$id" 2>/dev/null && left=yes; } || true
    done
    [ -n "$left" ] || return 0
    sleep .1
  done
}

power-cut() {
  local program
  for program in kubelet containerd; do reap "$NODE-$program" KILL; done
  kill_shims_and_containers
  reap "$NODE-mounts" KILL
  rm -rf "$RUN"
  rm -rf "$DIR/cni-state"
  remove_cgroups
  [ "${1:-}" != --wipe ] || rm -rf "$DIR/containerd" "$DIR/kubelet" "$DIR/pods"
}

remove_cgroups() {
  local group
  for group in /sys/fs/cgroup/"$GROUP" /sys/fs/cgroup/*/"$GROUP"; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
}

stop() {
  power-cut
  ip link del "$BRIDGE" 2>/dev/null || true
  rm -rf "$DIR"
}

kill_program() { # program
  case ${1:-} in kubelet|containerd) reap "$NODE-$1" KILL ;; *) usage ;; esac
}

clear_containers() {
  local task
  for task in $(containers tasks ls -q); do containers tasks kill -s SIGKILL -a "$task" 2>/dev/null || true; done
}

names "${2:-}"
case ${1:-} in
  start|stop) "$1" ;;
  kill) kill_program "${3:-}" ;;
  power-cut) power-cut "${3:-}" ;;
  clear) clear_containers ;;
  import) containers images import "${3:?}" ;;
  api) echo "$ADDRESS:$API" ;;
  *) usage ;;
esac
