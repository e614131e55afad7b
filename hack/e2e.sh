#!/bin/bash
# e2e.sh [chart|tests|all [FILTER]]: runs tests against a real kube-apiserver with etcd and the controller manager. Without an argument,
# runs both parts. With FILTER runs only tests with this part in their names, and shows what they print.
#
#   chart  checks the chart: a dry run, an apply, another apply (which would change nothing), what the operator's account may
#          and may not do, the examples, and the pods of the Deployment.
#   tests  runs tests/e2e, which also run against the embedded server. They read:
#            SLOTWRIGHT_TEST_KUBECONFIG           this cluster, with the rights of its administrator
#            SLOTWRIGHT_TEST_OPERATOR_KUBECONFIG  this cluster, with the rights that the chart grants the operator
#            SLOTWRIGHT_TEST_ATTACKS              a file that the attacks write the rows of their table into, which is printed
#                                                 at the end
#
# Each run starts a control plane in a directory and on ports of its own, and stops it at the end. hack/kube/assets.sh provides
# the binaries.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
PART=${1:-all}
FILTER=${2:-}

# shellcheck disable=SC1091  # chart.sh is linted by itself
. "$ROOT/hack/kube/chart.sh"

# --- chart -------------------------------------------------------------------------------------------------------------

apply() {
  kubectl apply --dry-run=server -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" >/dev/null
  kubectl apply -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml"
  # kubectl calls an object "configured" for every patch that it sends, such as one that replaces a selector by itself.
  kubectl diff -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" || die "a second apply would change something"
  kubectl kustomize "$ROOT/deploy/base" >"$SLOTWRIGHT_KUBE_STATE/kustomize.yaml"
  if [ "$MINOR" -ge 30 ]; then kubectl apply --dry-run=server -f "$SLOTWRIGHT_KUBE_STATE/kustomize.yaml" >/dev/null; fi
}

# Checks the answer of the server's authorizer.
may() { # expected-answer namespace verb resource
  local expected=$1 namespace=$2 answer; shift 2
  answer=$(kubectl auth can-i --as="$ACCOUNT" -n "$namespace" "$@" 2>/dev/null || true)
  [ "$answer" = "$expected" ] || die "may the operator $* in $namespace? expected $expected, the server says $answer"
}

permissions() {
  may yes default list nodes
  may yes default create pods
  may yes default delete pods
  may yes default patch htcjobs.slotwright.dev --subresource=status
  may yes default create slots.slotwright.dev
  may yes default create events.events.k8s.io
  may no default create events
  may yes kube-node-lease watch leases.coordination.k8s.io
  may yes "$NAMESPACE" create leases.coordination.k8s.io
  may yes "$NAMESPACE" update leases.coordination.k8s.io/slotwright-operator
  may no "$NAMESPACE" update leases.coordination.k8s.io
  may no kube-node-lease update leases.coordination.k8s.io
  may yes kube-node-lease update leases.coordination.k8s.io/pool.slotwright.dev
  may no default get leases.coordination.k8s.io
  may no default get secrets
  may no default update slots.slotwright.dev
  may no default create pods --subresource=exec
  may no default patch nodes
  may no default delete htcjobs.slotwright.dev
  may no default update groupquotas.slotwright.dev
  may no default create clusterroles.rbac.authorization.k8s.io
  say "the operator's account may do what it needs, and nothing of what it must not"
}

# Checks that with rbac.jobNamespaces the operator's account may write pods in those namespaces alone.
job_namespaces() {
  local file=$SLOTWRIGHT_KUBE_STATE/chart.yaml
  kubectl create namespace listed
  render --set 'rbac.jobNamespaces={listed}'
  kubectl apply -f "$file" >/dev/null
  for verb in create patch delete; do
    may yes listed "$verb" pods
    may no default "$verb" pods
  done
  may no default patch pods --subresource=status
  may yes default list pods
  kubectl delete -f "$file" >/dev/null
  # shellcheck disable=SC2119  # no arguments of its own
  render
  kubectl create namespace "$NAMESPACE" 2>/dev/null || true
  kubectl apply -f "$file" >/dev/null
  may yes default create pods
  kubectl delete --wait=false namespace listed
  say "rbac.jobNamespaces: the operator writes pods in those namespaces alone"
}

# Checks that the admission policy keeps the operator's marks on pods from a tenant who may edit pods and their subresources, and not
# from the operator and from cluster-admins.
marks() {
  if [ "$MINOR" -lt 30 ]; then say "marks on pods: not looked at, since this server has no admission policies"; return; fi
  local tenant=system:serviceaccount:tenant:default pod refused change
  pod='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","labels":{"app":"x"MARK}},"spec":{"containers":[{"name":"c","image":"busybox"}]}}'
  local mark=',"slotwright.dev/job-uid":"u"'
  kubectl create namespace tenant
  kubectl -n tenant create rolebinding edits --clusterrole=edit --serviceaccount=tenant:default
  kubectl -n tenant create serviceaccount default >/dev/null 2>&1 || true
  kubectl -n tenant create role subresources --verb=get,create,update,patch \
    --resource=bindings,pods/binding,pods/ephemeralcontainers,pods/resize,pods/status
  kubectl -n tenant create rolebinding subresources --role=subresources --serviceaccount=tenant:default
  create() { sed "s|NAME|$2|; s|MARK|$3|" <<<"$pod" | kubectl -n tenant --as="$1" create -f - 2>&1; }
  # The server takes a policy into account a moment late.
  for attempt in $(seq 50); do
    refused=$(create "$tenant" "forged-$attempt" "$mark" || true)
    grep -q "written by Slotwright's operator only" <<<"$refused" && break
    sleep .3
  done
  grep -q "written by Slotwright's operator only" <<<"$refused" || die "a tenant may forge a label: $refused"
  # All rights in a namespace are not the right to mark pods in all namespaces.
  kubectl -n tenant create rolebinding owner --clusterrole=cluster-admin --serviceaccount=tenant:default
  ! create "$tenant" forged-by-owner "$mark" || die "a namespace's owner may forge a label"
  create "$tenant" plain '' || die "a tenant may not make a pod"
  kubectl -n tenant --as="$tenant" label pod plain app=y --overwrite || die "a tenant may not label a pod"
  create "$ACCOUNT" marked "$mark" || die "the operator may not mark a pod"
  lean "$mark"
  for change in 'label pod marked slotwright.dev/job-uid-' 'annotate pod plain slotwright.dev/kill=true'; do
    # shellcheck disable=SC2086  # words
    ! kubectl -n tenant --as="$tenant" $change 2>/dev/null || die "a tenant may $change"
  done
  ! kubectl -n tenant --as="$tenant" patch pod plain --type=merge -p '{"metadata":{"finalizers":["slotwright.dev/tracking"]}}' 2>/dev/null \
    || die "a tenant may set our finalizer"
  kubectl -n tenant --as="$tenant" label pod marked app=y --overwrite || die "a tenant may not label a pod of ours"
  kubectl -n tenant --as="$ACCOUNT" patch pod marked --type=merge -p '{"metadata":{"labels":{"slotwright.dev/job-uid":null}}}' \
    || die "the operator may not take its label off"
  marks_by_subresources "$tenant"
  marks_by_controller "$tenant"
  sizes "$tenant"
  records "$tenant"
  # Whoever has all rights may mark: by a certificate of system:masters, and by the role cluster-admin.
  kubectl -n tenant annotate pod plain slotwright.dev/kill=true || die "system:masters may not mark a pod"
  kubectl create clusterrolebinding root --clusterrole=cluster-admin --user=root
  kubectl -n tenant --as=root annotate pod plain slotwright.dev/kill- || die "a cluster-admin may not mark a pod"
  kubectl delete clusterrolebinding root
  kubectl delete --wait=false namespace tenant
  say "marks on pods: the operator's only"
}

# Checks that the server keeps no record of who wrote which field of a proc's pod, and keeps that of other pods.
lean() { # mark
  local attempt found
  if [ "$MINOR" -lt 36 ]; then say "lean pods: not looked at, since this server has no MutatingAdmissionPolicy of v1"; return; fi
  fields() { kubectl -n tenant get pod "$1" --show-managed-fields -o 'jsonpath={.metadata.managedFields}'; }
  # The server takes a policy into account a moment late.
  for attempt in $(seq 50); do
    create "$ACCOUNT" "lean-$attempt" "$1" || die "the operator may not make a pod"
    found=$(fields "lean-$attempt")
    [ -n "$found" ] || break
    sleep .3
  done
  [ -z "$found" ] || die "a proc's pod has managedFields: $found"
  [ -n "$(fields plain)" ] || die "a tenant's pod has no managedFields"
  say "lean pods: procs' only"
}

# Checks that nobody but the operator and cluster-admins writes the status of a job. The tenant may do everything in the namespace.
records() { # tenant
  local refused attempt
  write() { kubectl -n tenant --as="$1" patch htcjob records --subresource=status --type=merge -p "{\"status\":{\"$2\":\"$3\"}}" 2>&1; }
  kubectl -n tenant --as="$1" create -f - <<<'{"apiVersion":"slotwright.dev/v1alpha1","kind":"HTCJob","metadata":{"name":"records"},
    "spec":{"hold":true,"template":{"spec":{"containers":[{"name":"c","image":"busybox"}]}}}}' >/dev/null || die "a tenant may not make a job"
  for attempt in $(seq 50); do
    refused=$(write "$1" owner "forged-$attempt" || true)
    grep -q "written by Slotwright's operator only" <<<"$refused" && break
    sleep .3
  done
  grep -q "written by Slotwright's operator only" <<<"$refused" || die "a tenant may write a job's status: $refused"
  # kubectl reads a status before it patches one; the operator does not.
  kubectl -n tenant create role reads --verb=get --resource=htcjobs.slotwright.dev/status >/dev/null
  kubectl -n tenant create rolebinding reads --role=reads --serviceaccount="${ACCOUNT#system:serviceaccount:}" >/dev/null
  refused=$(write "$ACCOUNT" summary Held) || die "the operator may not write a job's status: $refused"
  kubectl -n tenant --as="$1" label htcjob records app=y >/dev/null || die "a tenant may not label a job"
  kubectl create clusterrolebinding root --clusterrole=cluster-admin --user=root >/dev/null
  refused=$(write root summary Idle) || die "a cluster-admin may not write a job's status: $refused"
  kubectl delete clusterrolebinding root >/dev/null
  say "statuses of jobs: the operator's only"
}

# Tries to mark the pod `plain` by each other way to write a pod's metadata. An attempt that is not refused must change nothing.
marks_by_subresources() { # tenant
  local way path found
  for way in status ephemeralcontainers resize; do
    found=$(kubectl -n tenant get pod plain -o json | python3 -c "
import json, sys
pod = json.load(sys.stdin)
pod['metadata'].setdefault('annotations', {})['slotwright.dev/kill'] = 'true'
pod['metadata']['labels']['slotwright.dev/job-uid'] = 'u'
pod['metadata']['finalizers'] = ['slotwright.dev/tracking']
json.dump(pod, sys.stdout)" | kubectl --as="$1" replace --raw "/api/v1/namespaces/tenant/pods/plain/$way" -f - 2>&1 || true)
    tried "pods/$way" "$found"
  done
  for path in pods/plain/binding bindings; do
    found=$(kubectl --as="$1" create --raw "/api/v1/namespaces/tenant/$path" -f - 2>&1 <<<'{"apiVersion":"v1","kind":"Binding",
      "metadata":{"name":"plain","annotations":{"slotwright.dev/kill":"true"}},"target":{"kind":"Node","name":"n"}}' || true)
    tried "$path" "$found"
  done
}

# Checks that a tenant may resize a pod of their own, and none that has a claim.
sizes() { # tenant
  local of answer
  if [ "$MINOR" -lt 33 ]; then say "sizes of pods: not looked at, since this server resizes none"; return; fi
  pod='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","annotations":{"a":"b"MARK}},"spec":{"containers":
    [{"name":"c","image":"busybox","resources":{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Mi"}}}]}}'
  create "$1" sized '' || die "a tenant may not make a pod"
  create "$ACCOUNT" claimed ',"slotwright.dev/claim":"c"' || die "the operator may not make a pod with a claim"
  for of in sized claimed; do
    answer=$(kubectl -n tenant --as="$1" patch pod "$of" --subresource resize --type=strategic \
      -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}}' 2>&1 || true)
    case $of in
      sized) [ "$(kubectl -n tenant get pod sized -o 'jsonpath={.spec.containers[0].resources.requests.cpu}')" = 2 ] \
        || die "a tenant may not resize a pod of their own: $answer" ;;
      claimed) grep -q "has the resources of its slot" <<<"$answer" || die "a tenant may resize a pod under a claim: $answer" ;;
    esac
  done
  kubectl -n tenant patch pod claimed --subresource resize --type=strategic \
    -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}}' \
    || die "who may mark pods may not resize one"
  say "sizes of pods: those under claims are their slots'"
}

# Checks that a controller makes no pod of a tenant's template that has a mark.
marks_by_controller() { # tenant
  kubectl -n tenant --as="$1" create -f - <<<'{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"forged"},"spec":{"selector":
    {"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b","slotwright.dev/job-uid":"u"}},"spec":{"containers":
    [{"name":"c","image":"busybox"}]}}}}'
  local events _
  for _ in $(seq 100); do
    events=$(kubectl -n tenant get events -o 'jsonpath={.items[*].message}')
    ! grep -q "written by Slotwright's operator only" <<<"$events" || break
    sleep .2
  done
  grep -q "written by Slotwright's operator only" <<<"$events" || die "a ReplicaSet with a marked template was not refused its pods: $events"
  [ -z "$(kubectl -n tenant get pods -l a=b -o name)" ] || die "a controller may mark a pod by a tenant's template"
  say "marks on pods: by a controller: refused"
}

# Checks that an attempt left the pod `plain` without a mark, and says how.
tried() { # way answer
  local pod how='in vain'
  pod=$(kubectl -n tenant get pod plain -o json)
  ! grep -q '"slotwright.dev/' <<<"$pod" || die "a tenant may mark a pod by $1: $2"
  ! grep -q "written by Slotwright's operator only" <<<"$2" || how=refused
  say "marks on pods: by $1: $how"
}

# Checks that the server creates the Deployment's pods. They never run, because there is no node.
pods() {
  local count
  for _ in $(seq 100); do
    count=$(kubectl -n "$NAMESPACE" get pods -o name | wc -l)
    if [ "$count" = 2 ]; then say "the Deployment made its 2 pods"; return; fi
    sleep .3
  done
  kubectl -n "$NAMESPACE" describe replicasets >&2
  die "the Deployment has $count pods, not 2"
}

# Applies the examples and lists objects, as a new user does.
examples() {
  local refused
  kubectl apply -f "$ROOT/examples/"
  # The API server refuses a count of zero. The operator explains the other three mistakes.
  refused=$(kubectl apply -f "$ROOT/examples/broken/" 2>&1 || true)
  grep -q 'spec.count: Invalid value: 0' <<<"$refused" || die "a job of zero procs was not refused: $refused"
  kubectl get htcjobs,groupquotas,submitters,partitionableslots,slots -A
  for _ in $(seq 50); do kubectl explain htcjob.spec >/dev/null 2>&1 && break; sleep .2; done    # the server publishes a schema a moment late
  kubectl explain htcjob.spec >/dev/null
  kubectl delete --wait=false --ignore-not-found -f "$ROOT/examples/" -f "$ROOT/examples/broken/"
}

# Checks that the server keeps what a pod has in a job's template, drops what no pod has, and refuses what is beyond a bound.
templates() {
  local job template refused
  job='{"apiVersion":"slotwright.dev/v1alpha1","kind":"HTCJob","metadata":{"name":"NAME"},"spec":{"template":TEMPLATE}}'
  make() { sed "s|NAME|$1|; s|TEMPLATE|$2|" <<<"$job" | kubectl -n default create --validate=false -f - 2>&1; }
  make junk '{"spec":{"junk":[{"":0}],"containers":[{"name":"main","image":"i","env":[{"name":"A","value":""}],"imagee":"x"}]}}'
  template=$(kubectl -n default get htcjob junk -o json)
  ! grep -q 'junk": \[\|imagee' <<<"$template" || die "the server keeps junk in a template: $template"
  grep -q '"env"' <<<"$template" || die "the server drops what pods have: $template"
  refused=$(make long "{\"spec\":{\"containers\":[$(yes '{"name":"c"},' | head -70 | tr -d '\n'){\"name\":\"c\"}]}}" || true)
  grep -q 'at most 64 items' <<<"$refused" || die "71 containers were not refused: $refused"
  kubectl -n default delete htcjob junk
  say "templates: junk is dropped, and lists are bounded"
}

# Checks that an agent writes the report and the Lease of its own node, and nothing else.
agents() {
  local node attempt
  render --set agent.enabled=true
  kubectl apply -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" >/dev/null
  kubectl -n "$NAMESPACE" delete daemonset slotwright-agent
  flow slotwright-agents
  for node in node1 node2; do object v1 Node "$node" | kubectl create -f -; done
  agent_kubeconfigs node1
  as_agent may_create node1 || die "an agent may not create its report: $ANSWER"
  as_agent may_report node1 || die "an agent may not write its report: $ANSWER"
  as_agent may_renew slotwright-agent-node1 || die "an agent may not renew its Lease: $ANSWER"
  report node2 | kubectl create -f -
  as_agent delete nodereport node1 && die "an agent may delete reports"
  as_agent label node node1 a=b && die "an agent may label nodes"
  as_agent get pods -n kube-system -o name || die "an agent may not list pods: $ANSWER"
  if [ "$MINOR" -ge 33 ]; then
    for attempt in 'may_create node3' 'may_report node2' 'may_renew slotwright-agent-node2' 'may_renew node2' 'may_renew pool.slotwright.dev'; do
      # shellcheck disable=SC2086  # words
      as_agent $attempt && die "an agent succeeds with: $attempt"
      grep -q 'of its own node only' <<<"$ANSWER" || die "$attempt is refused for another reason: $ANSWER"
    done
    say "agents: each keeps to its own node"
  else
    say "agents: that each keeps to its own node is not looked at, since this server gives no tokens of nodes"
  fi
  kubectl delete node node1 node2
}

object() { printf 'apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n' "$@"; }

report() { object slotwright.dev/v1alpha1 NodeReport "$1"; echo 'spec: {}'; }

# Runs kubectl, or a function, as the agent of node1. Sets ANSWER to what it prints.
as_agent() { # argument...
  if [[ $1 == may_* ]]; then ANSWER=$(KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/agent-node1.kubeconfig "$@" 2>&1)
  else ANSWER=$(KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/agent-node1.kubeconfig kubectl "$@" 2>&1); fi
}
may_create() { # node
  local flags=(); [ "$MINOR" -ge 25 ] || flags=(--validate=false)
  report "$1" | kubectl create "${flags[@]}" -f -
}
may_report() { # node
  local flags=(); [ "$MINOR" -ge 25 ] || flags=(--validate=false)
  { report "$1"; printf 'status:\n  load: 1\n'; } | kubectl apply --server-side --subresource=status "${flags[@]}" -f -
}
may_renew() { # lease
  printf '%s\nspec:\n  holderIdentity: x\n' "$(object coordination.k8s.io/v1 Lease "$1")" \
    | kubectl -n kube-node-lease apply --server-side -f -
}

# Checks that the API server has the priority level that a FlowSchema of the chart names.
flow() { # name
  [ "$MINOR" -ge 29 ] || return 0
  kubectl wait --for=condition=Dangling=false --timeout=60s "flowschema/$1" || die "the FlowSchema $1 names no priority level"
}

chart() {
  kubectl create namespace "$NAMESPACE"
  definitions
  # shellcheck disable=SC2119  # no arguments of its own
  render
  apply
  permissions
  job_namespaces
  marks
  flow slotwright-leases
  templates
  examples
  if [ -n "$(kubectl -n default get serviceaccount default --ignore-not-found -o name)" ]; then pods; fi
  agents
  kubectl -n "$NAMESPACE" delete deployment slotwright
  say "chart: passed"
}

# --- tests -------------------------------------------------------------------------------------------------------------

tests() {
  export SLOTWRIGHT_TEST_KUBECONFIG=$KUBECONFIG
  if [ -e "$SLOTWRIGHT_KUBE_STATE/chart.yaml" ]; then
    operator_kubeconfig
    export SLOTWRIGHT_TEST_OPERATOR_KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig
  fi
  export SLOTWRIGHT_TEST_ATTACKS=${SLOTWRIGHT_TEST_ATTACKS:-$SLOTWRIGHT_KUBE_STATE/attacks}
  : >"$SLOTWRIGHT_TEST_ATTACKS"
  cd "$ROOT"
  local status=0
  if [ -n "$FILTER" ]; then cargo test --test e2e -- --nocapture --test-threads 1 "$FILTER" || status=$?
  elif cargo nextest --version >/dev/null 2>&1; then cargo nextest run --test e2e -j 1 --no-fail-fast || status=$?
  else cargo test --test e2e -- --test-threads 1 || status=$?; fi
  echo; say "what attacks came to:"
  "$ROOT/hack/attack-table.sh" "$SLOTWRIGHT_TEST_ATTACKS"
  return "$status"
}

control_plane e2e
case $PART in
  all) chart; tests ;;
  chart|tests) "$PART" ;;
  *) die "usage: e2e.sh [chart|tests|all [FILTER]]" ;;
esac
