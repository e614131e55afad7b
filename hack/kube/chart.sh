#!/bin/bash
# chart.sh: functions that start a cluster of up.sh, and install the chart there. The e2e scripts source this file. They set ROOT,
# the repository.

NAMESPACE=slotwright-system
ACCOUNT=system:serviceaccount:$NAMESPACE:slotwright

say() { echo "$(basename "$0" .sh): [${SECONDS}s] $*"; }
die() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }
kubectl() { timeout 120 "$KUBECTL" "$@"; }

# Sets MINOR, Kubernetes' minor version.
server_version() {
  MINOR=$(kubectl get --raw /version | sed -nE 's/.*"minor": *"([0-9]+).*/\1/p')
}

# Starts a control plane in a directory and on ports of its own. It is stopped at the end, by the function if one is named.
control_plane() { # name [function]
  local exports
  KUBECTL=$("$ROOT/hack/kube/kubectl.sh")
  SLOTWRIGHT_KUBE_STATE=$(mktemp -d "${TMPDIR:-/tmp}/slotwright-$1-XXXXXX"); export SLOTWRIGHT_KUBE_STATE
  # shellcheck disable=SC2064  # the name, now
  trap "${2:-'$ROOT/hack/kube/up.sh' stop}" EXIT
  exports=$("$ROOT/hack/kube/up.sh" start); eval "$exports"
  server_version
  say "Kubernetes 1.$MINOR is up"
}

definitions() {
  # Servers before 1.25 drop validation rules, which they do not know; kubectl would refuse to send them.
  local flags=(); [ "$MINOR" -ge 25 ] || flags=(--validate=false)
  kubectl apply "${flags[@]}" -f "$ROOT/crds/"
  kubectl wait --for=condition=Established --timeout=60s -f "$ROOT/crds/"
}

# The arguments are more arguments for Helm.
# shellcheck disable=SC2120  # e2e.sh gives none
render() { # [argument...]
  # Servers before 1.21 do not serve policy/v1.
  local fitting=(); [ "$MINOR" -ge 21 ] || { fitting=(--set podDisruptionBudget.enabled=false); say "no policy/v1 here: without the PodDisruptionBudget"; }
  # Validating policies are there from 1.30. Helm's SDK renders for the newest server.
  [ "$MINOR" -ge 30 ] || { fitting+=(--set admissionPolicy.enabled=false); say "no admission policies here"; }
  [ "$MINOR" -ge 29 ] || { fitting+=(--set flowSchema.enabled=false); say "no flowcontrol/v1 here: without the FlowSchema"; }
  # Helm's SDK does not ask the server for its kinds.
  [ "$MINOR" -lt 36 ] || fitting+=(--set admissionPolicy.leanPods=true)
  "$ROOT/hack/helm.sh" render "$ROOT/charts/slotwright" --namespace "$NAMESPACE" "${fitting[@]}" "$@" >"$SLOTWRIGHT_KUBE_STATE/chart.yaml"
  # Helm leaves the field out for servers before 1.31.
  [ "$MINOR" -ge 31 ] || sed -i '/recursiveReadOnly: /d' "$SLOTWRIGHT_KUBE_STATE/chart.yaml"
}

# Writes a kubeconfig with the administrator's credentials that acts as the operator's account, so that the server grants only
# what the chart grants.
operator_kubeconfig() {
  sed "s|client-key-data: [^}]*|&, as: \"$ACCOUNT\"|" "$KUBECONFIG" >"$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig"
  chmod 600 "$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig"
  [ "$(KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig kubectl auth can-i get secrets 2>/dev/null)" = no ] \
    || die "the operator's kubeconfig does not act as $ACCOUNT"
}

# Writes a kubeconfig for the agent of each of these nodes, with the rights of the chart's account of agents. Servers since 1.33
# give a token that names a node, as the token of an agent's pod does: the admission policy reads the name.
agent_kubeconfigs() { # node...
  local node token
  for node in "$@"; do
    if [ "$MINOR" -ge 33 ]; then
      token=$(kubectl -n "$NAMESPACE" create token slotwright-agent --bound-object-kind Node --bound-object-name "$node" --duration 8h)
      sed "s|client-certificate-data: [^,}]*, *client-key-data: [^}]*|token: \"$token\"|" "$KUBECONFIG"
    else
      sed "s|client-key-data: [^}]*|&, as: \"$ACCOUNT-agent\"|" "$KUBECONFIG"
    fi >"$SLOTWRIGHT_KUBE_STATE/agent-$node.kubeconfig"
    chmod 600 "$SLOTWRIGHT_KUBE_STATE/agent-$node.kubeconfig"
    [ "$(KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/agent-$node.kubeconfig kubectl auth can-i get secrets 2>/dev/null)" = no ] \
      || die "the kubeconfig of the agent on $node does not act as the account of agents"
  done
}
