#!/bin/bash
# up.sh start [--nodes]|stop|status: runs a real control plane on 127.0.0.1, from the binaries that assets.sh provides: etcd,
# kube-apiserver and, if it is there, kube-controller-manager. There is no scheduler and no node, so that pods never run. With
# --nodes there is also kube-scheduler, node.sh can start nodes, and the API server listens on all addresses of this computer,
# so that the nodes' pods reach it; it answers nobody without a certificate or a token.
#
#   SLOTWRIGHT_KUBE_STATE  directory of certificates, kubeconfig, logs, process ids and data
#                          (default ${TMPDIR:-/tmp}/slotwright-kube-state)
#   SLOTWRIGHT_KUBE_UNTHROTTLED  if set, the controller manager and the scheduler make as many calls as they like
#   SLOTWRIGHT_KUBE_PORT   the first of 5 ports in a row, for API server, etcd, etcd's peers, controller manager and scheduler
#                          (default: free ports)
#
# start prints `export KUBECONFIG=...` once the server accepts pods, after 3 to 10 s. If the control plane runs already, start
# only prints. stop stops the processes and, unless SLOTWRIGHT_KUBE_KEEP is set, removes the directory. Nodes must be stopped
# before.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(realpath -m "${SLOTWRIGHT_KUBE_STATE:-${TMPDIR:-/tmp}/slotwright-kube-state}")
PKI=$STATE/pki

# shellcheck disable=SC1091  # common.sh is linted by itself
. "$HERE/common.sh"

usage() { die "usage: up.sh start [--nodes]|stop|status"; }

# --- ports -------------------------------------------------------------------------------------------------------------

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Prints the first of five ports on which nobody listens. An outgoing connection or a program that starts at the same time may
# still take one of them: the start is then tried again.
choose_port() {
  local port offset
  for _ in $(seq 50); do
    port=$((20000 + RANDOM % 1250 * 8))
    for offset in 0 1 2 3 4; do port_is_free $((port + offset)) || continue 2; done
    echo "$port"; return
  done
  die "no five free ports in a row between 20000 and 30000"
}

credentials() {
  authority ca
  authority front-proxy-ca
  certificate apiserver ca /CN=kube-apiserver serverAuth "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1$ADDRESSES"
  certificate front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
  certificate admin ca /O=system:masters/CN=admin clientAuth
  certificate controller-manager ca /CN=system:kube-controller-manager clientAuth
  if [ ! -s "$PKI/sa.key" ]; then
    openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$PKI/sa.key" 2>/dev/null
    openssl pkey -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub"
  fi
  certificate scheduler ca /CN=system:kube-scheduler clientAuth
  certificate apiserver-kubelet-client ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
  kubeconfig admin "$API"
  kubeconfig controller-manager "$API"
  kubeconfig scheduler "$API"
}

# --- the programs --------------------------------------------------------------------------------------------------------

# How many calls a second the controller manager and the scheduler may make. Their defaults are 20 and 50.
CALLS=()
[ -z "${SLOTWRIGHT_KUBE_UNTHROTTLED:-}" ] || CALLS=(--kube-api-qps=10000 --kube-api-burst=10000)

# etcd needs no fsync, because its data is removed at the end.
start_etcd() {
  spawn etcd "$BIN/etcd" --name=default --data-dir="$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls="http://127.0.0.1:$ETCD" --advertise-client-urls="http://127.0.0.1:$ETCD" \
    --listen-peer-urls="http://127.0.0.1:$PEER" --initial-advertise-peer-urls="http://127.0.0.1:$PEER" \
    --initial-cluster="default=http://127.0.0.1:$PEER"
  await etcd curl -sf "http://127.0.0.1:$ETCD/health"
}

start_apiserver() {
  local old=()
  [ "$MINOR" -ge 24 ] || old=(--insecure-port=0)     # older servers also listen on port 8080, without authentication
  spawn kube-apiserver "$BIN/kube-apiserver" --etcd-servers="http://127.0.0.1:$ETCD" --bind-address="$BIND" --secure-port="$API" \
    --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/16 \
    --authorization-mode=Node,RBAC --anonymous-auth=false --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
    --cert-dir="$STATE/certs" --service-account-issuer=https://kubernetes.default.svc \
    --api-audiences=https://kubernetes.default.svc --service-account-key-file="$PKI/sa.pub" \
    --service-account-signing-key-file="$PKI/sa.key" --requestheader-client-ca-file="$PKI/front-proxy-ca.crt" \
    --kubelet-client-certificate="$PKI/apiserver-kubelet-client.crt" --kubelet-client-key="$PKI/apiserver-kubelet-client.key" \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --requestheader-allowed-names=front-proxy-client --requestheader-username-headers=X-Remote-User \
    --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$PKI/front-proxy-client.crt" --proxy-client-key-file="$PKI/front-proxy-client.key" \
    --shutdown-delay-duration=0s "${old[@]}"
  await kube-apiserver api_get /readyz
}

# The controller manager collects garbage, empties namespaces, and runs ReplicaSets. It also creates the default service
# account, without which the server refuses pods.
start_controller_manager() {
  local old=() config=$STATE/controller-manager.kubeconfig
  [ -x "$BIN/kube-controller-manager" ] || { echo "up: no kube-controller-manager: no garbage collection" >&2; return 0; }
  [ "$MINOR" -ge 24 ] || old=(--port=0)
  spawn kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --use-service-account-credentials=true --leader-elect=false \
    --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" --cluster-signing-cert-file="$PKI/ca.crt" \
    --cluster-signing-key-file="$PKI/ca.key" --bind-address=127.0.0.1 --secure-port="$MANAGER" --cert-dir="$STATE/certs" \
    "${old[@]}" "${CALLS[@]}"
  await kube-controller-manager api_get /api/v1/namespaces/default/serviceaccounts/default
}

# Binds pods that name no node. Only nodes that node.sh starts can run them.
start_scheduler() {
  local old=() config=$STATE/scheduler.kubeconfig
  [ "$MINOR" -ge 24 ] || old=(--port=0)
  spawn kube-scheduler "$BIN/kube-scheduler" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --leader-elect=false --bind-address=127.0.0.1 --secure-port="$SCHEDULER" \
    --cert-dir="$STATE/certs" "${old[@]}" "${CALLS[@]}"
  await kube-scheduler curl -sfk "https://127.0.0.1:$SCHEDULER/healthz"
}

# Starts all programs on five ports in a row, from this one on.
programs() { # port
  local number
  API=$1 ETCD=$(($1 + 1)) PEER=$(($1 + 2)) MANAGER=$(($1 + 3)) SCHEDULER=$(($1 + 4))
  echo "$API" >"$STATE/port"
  # Pods of nodes reach the server at the address that their node has on its bridge.
  BIND=127.0.0.1 ADDRESSES=
  if [ -n "$NODES" ]; then
    BIND=0.0.0.0
    for number in 1 2 3 4 5 6 7; do ADDRESSES+=",IP:$(pod_network "$API" "$number").1"; done
  fi
  credentials
  start_etcd
  start_apiserver
  start_controller_manager
  [ -z "$NODES" ] || start_scheduler
}

# Whether somebody else took one of the ports before its program did.
port_was_taken() { grep -qs 'address already in use' "$STATE"/log/*.log; }

end_programs() {
  local name
  for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do reap "$name"; done
}

start() {
  local program port attempt code
  NODES=
  case ${1:-} in '') ;; --nodes) NODES=yes ;; *) usage ;; esac
  for program in openssl curl base64 setsid; do command -v "$program" >/dev/null || die "$program is missing: apt-get install openssl curl util-linux"; done
  BIN=$("$HERE/assets.sh" ${NODES:+--nodes})
  mkdir -p "$STATE"/{pki,log,pid,etcd}; chmod 700 "$STATE"
  MINOR=$(minor_version "$BIN/kube-apiserver")
  port=${SLOTWRIGHT_KUBE_PORT:-}
  if [ -s "$STATE/port" ]; then port=$(<"$STATE/port"); fi
  if [ -n "$port" ]; then programs "$port"; else
    for attempt in 1 2 3 4 5; do
      port=$(choose_port)
      # `set -e` has no effect in a condition: the programs start in a subshell, which ends at the first command that fails.
      set +e; (set -e; programs "$port"); code=$?; set -e
      if [ "$code" = 0 ]; then break; fi
      if [ "$attempt" = 5 ] || ! port_was_taken; then exit "$code"; fi
      echo "up: one of the ports from $port on was taken meanwhile: once more, with others" >&2
      end_programs
      # The server's certificate has addresses that follow from the port.
      rm -rf "$STATE"/etcd/* "$STATE"/log/* "$PKI"/apiserver.*
    done
  fi
  echo "export KUBECONFIG=$STATE/admin.kubeconfig"
}

stop() {
  end_programs
  [ -n "${SLOTWRIGHT_KUBE_KEEP:-}" ] || rm -rf "$STATE"
}

status() {
  local name
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    if alive "$name"; then echo "$name: process $(cut -d' ' -f1 "$STATE/pid/$name")"; else echo "$name: down"; fi
  done
  [ ! -s "$STATE/admin.kubeconfig" ] || echo "export KUBECONFIG=$STATE/admin.kubeconfig"
}

case ${1:-} in
  start|stop|status) "$@" ;;
  *) usage ;;
esac
