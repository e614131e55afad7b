#!/bin/bash
# people.sh: functions that play operators, and people with kubectl, in a cluster of up.sh. e2e-webhook.sh and e2e-policies.sh source
# this file after chart.sh.

# --- operators ---------------------------------------------------------------------------------------------------------

declare -A OPERATORS=()

cleanup() {
  local name
  for name in "${!OPERATORS[@]}"; do kill -KILL "${OPERATORS[$name]}" || true; wait "${OPERATORS[$name]}" || true; done 2>/dev/null
  "$ROOT/hack/kube/up.sh" stop
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Starts an operator with the rights that the chart grants.
start_operator() { # name argument...
  local name=$1; shift
  KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig "${CARGO_TARGET_DIR:-$ROOT/target}/debug/slotwright" operator --identity "$name" --pod-uid "$name" \
    --leader-elect-namespace "$NAMESPACE" --health-addr "127.0.0.1:$(free_port)" --metrics-addr "127.0.0.1:$(free_port)" "$@" \
    >>"$SLOTWRIGHT_KUBE_STATE/$name.log" 2>&1 &
  OPERATORS[$name]=$!
}

signal() { kill "-$2" "${OPERATORS[$1]}"; }
stop_operator() { signal "$1" TERM; wait "${OPERATORS[$1]}" || true; unset "OPERATORS[$1]"; }

# Waits until a command succeeds.
until_true() { # what command...
  local what=$1 _; shift
  for _ in $(seq 200); do if "$@" >/dev/null 2>&1; then return; fi; sleep .1; done
  tail -5 "$SLOTWRIGHT_KUBE_STATE"/*.log >&2
  die "$what: not within 20 s"
}

# --- what people do ----------------------------------------------------------------------------------------------------

# A job with enough of everything for the manual's policy.
# shellcheck disable=SC2034  # the scripts that source this file use it
LARGE='{"requests": {"memory": "2Gi"}}'

# A job with these further fields of the spec and of the metadata, each as JSON.
job() { # name [spec [metadata]]
  python3 - "$1" "${2:-{\}}" "${3:-{\}}" <<'PY'
import json, sys
name, spec, metadata = sys.argv[1], *map(json.loads, sys.argv[2:])
container = {"name": "main", "image": "busybox", "command": ["sleep", "1"]}
print(json.dumps({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                  "metadata": {"name": name, "namespace": "lab"} | metadata,
                  "spec": {"template": {"spec": {"containers": [container]}}} | spec}))
PY
}

as() { local who=$1; shift; kubectl --as="$who" --as-group=system:authenticated "$@" 2>&1 || true; }

# Checks what a command prints, to the letter.
prints() { # expected command...
  local expected=$1 found; shift
  found=$("$@")
  [ "$found" = "$expected" ] || die "$*
prints:   $found
expected: $expected"
}

field() { kubectl -n lab get htcjob "$1" -o "jsonpath={$2}"; }
has() { [ "$(field "$1" "$2")" = "$3" ]; }

owned() { # job owner
  until_true "job $1 is $2's, and not \"$(field "$1" .status.owner)\"'s" has "$1" .status.owner "$2"
}

ROWS=()
row() { ROWS+=("$(printf '%-66s %s' "$1" "$2")"); }

# A way to cheat that is refused. The answer has to have a text in it.
refused() { # what text command...
  local what=$1 text=$2 found; shift 2
  found=$("$@")
  grep -qF -- "$text" <<<"$found" || die "$what: not refused with \"$text\", but: $found"
  row "$what" "refused: $text"
}

# A way to cheat without effect.
in_vain() { row "$1" "in vain: $2"; }

submit() { # who name [spec [metadata]]
  local who=$1; shift
  job "$@" | as "$who" apply -f -
}

# Prints the ways to cheat that were tried.
table() {
  echo; printf '%s\n' "${ROWS[@]}"; echo
  say "cheats: ${#ROWS[@]}, each refused or in vain"
}
