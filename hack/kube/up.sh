#!/bin/bash
# up.sh start|stop|status: runs a real control plane on 127.0.0.1, from the binaries that assets.sh provides: etcd,
# kube-apiserver and, if it is there, kube-controller-manager. There is no scheduler and no node, so that pods never run.
#
#   SLOTWRIGHT_KUBE_STATE  directory of certificates, kubeconfig, logs, process ids and data
#                          (default ${TMPDIR:-/tmp}/slotwright-kube-state)
#   SLOTWRIGHT_KUBE_PORT   the first of 4 ports in a row, for API server, etcd, etcd's peers and controller manager
#                          (default: free ports)
#
# start prints `export KUBECONFIG=...` once the server accepts pods, after 3 to 10 s. If the control plane runs already, start
# only prints. stop stops the processes and, unless SLOTWRIGHT_KUBE_KEEP is set, removes the directory.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(realpath -m "${SLOTWRIGHT_KUBE_STATE:-${TMPDIR:-/tmp}/slotwright-kube-state}")
PKI=$STATE/pki

die() { echo "up: $*" >&2; exit 1; }

# --- processes ---------------------------------------------------------------------------------------------------------

# Whether the process still runs: a process with the recorded id that runs another program is not ours.
alive() { # name
  local id program
  [ -s "$STATE/pid/$1" ] && read -r id program <"$STATE/pid/$1" && [ "$(readlink "/proc/$id/exe" 2>/dev/null)" = "$program" ]
}

spawn() { # name program argument...
  local name=$1 program; program=$(readlink -f "$2"); shift 2
  alive "$name" && return
  setsid "$program" "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null &
  echo "$! $program" >"$STATE/pid/$name"
}

# Stops a process with SIGTERM, and after 10 s with SIGKILL.
reap() { # name
  local id
  if alive "$1"; then
    read -r id _ <"$STATE/pid/$1"
    kill "$id" 2>/dev/null || true
    for _ in $(seq 100); do alive "$1" || break; sleep .1; done
    ! alive "$1" || kill -9 "$id" 2>/dev/null || true
  fi
  rm -f "$STATE/pid/$1"
}

# Polls a command until it succeeds. Fails if the process ends, or after 90 s.
await() { # name command...
  local name=$1; shift
  for _ in $(seq 450); do
    "$@" >/dev/null 2>&1 && return
    alive "$name" || { tail -5 "$STATE/log/$name.log" >&2; die "$name ended: see $STATE/log/$name.log"; }
    sleep .2
  done
  die "$name is not ready after 90 s: see $STATE/log/$name.log"
}

# --- ports -------------------------------------------------------------------------------------------------------------

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Prints the first of four free ports. They are below the range that the kernel uses for outgoing connections, so that no
# connection uses them by chance.
choose_port() {
  local port offset
  for _ in $(seq 50); do
    port=$((20000 + RANDOM % 2500 * 4))
    for offset in 0 1 2 3; do port_is_free $((port + offset)) || continue 2; done
    echo "$port"; return
  done
  die "no four free ports in a row between 20000 and 30000"
}

# --- certificates (P-256 and PKCS#8, which both Go and rustls support) ------------------------------------------------------------

authority() { # name
  [ -s "$PKI/$1.crt" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$1" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
    -keyout "$PKI/$1.key" -out "$PKI/$1.crt" 2>/dev/null
}

certificate() { # name authority subject usage [alternative names]
  [ -s "$PKI/$1.crt" ] && return
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$3" -keyout "$PKI/$1.key" -out "$PKI/$1.csr" 2>/dev/null
  { echo basicConstraints=critical,CA:FALSE
    echo keyUsage=critical,digitalSignature
    echo "extendedKeyUsage=$4"
    if [ -n "${5:-}" ]; then echo "subjectAltName=$5"; fi
  } >"$PKI/$1.ext"
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/$2.crt" -CAkey "$PKI/$2.key" -CAcreateserial -days 3650 \
    -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null
}

# Writes $STATE/<name>.kubeconfig, with the credentials of the certificate of this name.
kubeconfig() { # name
  cat >"$STATE/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: e2e
clusters: [{name: e2e, cluster: {server: "https://127.0.0.1:$API", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$PKI/$1.crt"), client-key-data: $(base64 -w0 "$PKI/$1.key")}}]
contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
END
  chmod 600 "$STATE/$1.kubeconfig"
}

credentials() {
  authority ca
  authority front-proxy-ca
  certificate apiserver ca /CN=kube-apiserver serverAuth DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1
  certificate front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
  certificate admin ca /O=system:masters/CN=admin clientAuth
  certificate controller-manager ca /CN=system:kube-controller-manager clientAuth
  if [ ! -s "$PKI/sa.key" ]; then
    openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$PKI/sa.key" 2>/dev/null
    openssl pkey -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub"
  fi
  kubeconfig admin
  kubeconfig controller-manager
}

# --- the programs --------------------------------------------------------------------------------------------------------

api_get() { curl -sf --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "https://127.0.0.1:$API$1"; }

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
  spawn kube-apiserver "$BIN/kube-apiserver" --etcd-servers="http://127.0.0.1:$ETCD" --bind-address=127.0.0.1 --secure-port="$API" \
    --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/16 \
    --authorization-mode=Node,RBAC --anonymous-auth=false --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
    --cert-dir="$STATE/certs" --service-account-issuer=https://kubernetes.default.svc \
    --api-audiences=https://kubernetes.default.svc --service-account-key-file="$PKI/sa.pub" \
    --service-account-signing-key-file="$PKI/sa.key" --requestheader-client-ca-file="$PKI/front-proxy-ca.crt" \
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
    --cluster-signing-key-file="$PKI/ca.key" --bind-address=127.0.0.1 --secure-port="$MANAGER" --cert-dir="$STATE/certs" "${old[@]}"
  await kube-controller-manager api_get /api/v1/namespaces/default/serviceaccounts/default
}

start() {
  local program
  for program in openssl curl base64 setsid; do command -v "$program" >/dev/null || die "$program is missing: apt-get install openssl curl util-linux"; done
  BIN=$("$HERE/assets.sh")
  mkdir -p "$STATE"/{pki,log,pid,etcd}; chmod 700 "$STATE"
  API=${SLOTWRIGHT_KUBE_PORT:-}
  if [ -s "$STATE/port" ]; then API=$(<"$STATE/port"); fi
  [ -n "$API" ] || API=$(choose_port)
  echo "$API" >"$STATE/port"
  ETCD=$((API + 1)); PEER=$((API + 2)); MANAGER=$((API + 3))
  MINOR=$("$BIN/kube-apiserver" --version | sed -nE 's/.*v1\.([0-9]+).*/\1/p'); MINOR=${MINOR:-20}
  credentials
  start_etcd
  start_apiserver
  start_controller_manager
  echo "export KUBECONFIG=$STATE/admin.kubeconfig"
}

stop() {
  local name
  for name in kube-controller-manager kube-apiserver etcd; do reap "$name"; done
  [ -n "${SLOTWRIGHT_KUBE_KEEP:-}" ] || rm -rf "$STATE"
}

status() {
  local name
  for name in etcd kube-apiserver kube-controller-manager; do
    if alive "$name"; then echo "$name: process $(cut -d' ' -f1 "$STATE/pid/$name")"; else echo "$name: down"; fi
  done
  [ ! -s "$STATE/admin.kubeconfig" ] || echo "export KUBECONFIG=$STATE/admin.kubeconfig"
}

case ${1:-} in
  start|stop|status) "$1" ;;
  *) die "usage: up.sh start|stop|status" ;;
esac
