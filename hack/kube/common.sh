#!/bin/bash
# common.sh: functions that up.sh and node.sh share. The scripts source this file after they have set STATE, the
# directory of the cluster, and PKI, the directory of its certificates.

die() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }

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
  started "$name" "$!" "$program"
}

# Notes a process that was just started, and waits until it runs its program: on a busy computer that may take a while, and until
# then the process seems to have ended.
started() { # name id program
  echo "$2 $3" >"$STATE/pid/$1"
  for _ in $(seq 50); do ! alive "$1" || return 0; sleep .1; done
  tail -5 "$STATE/log/$1.log" >&2
  die "$1 did not start: see $STATE/log/$1.log"
}

# Stops a process with SIGTERM, and after 10 s with SIGKILL. With the signal KILL, waits until the process has ended.
reap() { # name [signal]
  local id
  if alive "$1"; then
    read -r id _ <"$STATE/pid/$1"
    kill "-${2:-TERM}" "$id" 2>/dev/null || true
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

# --- networks ------------------------------------------------------------------------------------------------------------

# Prints the first three numbers of the addresses of a node's pods. The node itself has the address that ends with 1.
pod_network() { # port number
  local place=$(($1 / 8 % 1024 * 8 + $2))
  echo "10.$((96 + place / 256)).$((place % 256))"
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
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/$2.crt" -CAkey "$PKI/$2.key" -CAserial "$PKI/$1.srl" -CAcreateserial -days 3650 \
    -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null
}

# Writes $STATE/<name>.kubeconfig, with the credentials of the certificate of this name.
kubeconfig() { # name port
  cat >"$STATE/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: e2e
clusters: [{name: e2e, cluster: {server: "https://127.0.0.1:$2", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$PKI/$1.crt"), client-key-data: $(base64 -w0 "$PKI/$1.key")}}]
contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
END
  chmod 600 "$STATE/$1.kubeconfig"
}

api_get() { # path
  curl -sf --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "https://127.0.0.1:$(<"$STATE/port")$1"
}

# The minor version of Kubernetes that a program reports; 20 if the program reports none.
minor_version() { # program
  local minor; minor=$("$1" --version | sed -nE 's/.*v1\.([0-9]+).*/\1/p'); echo "${minor:-20}"
}
