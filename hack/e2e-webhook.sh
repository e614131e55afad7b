#!/bin/bash
# e2e-webhook.sh: the admission webhook before a real kube-apiserver, as people with kubectl meet it.
#
# Checks the manual's examples of transforms, submit requirements and warnings with the very text that kubectl prints; ways to cheat
# about who submits, each tried as a tenant; applies while the webhook is down, slow, not believed, and served by another replica
# than the one that leads; and a certificate that others make. Starts a control plane of its own, and operators with the rights that the chart grants.
#
#   e2e-webhook.sh           all of this
#   e2e-webhook.sh latency   how long 1,000 applies take without webhooks and with them (docs/how-to/admission.md)
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck disable=SC1091  # both are linted by themselves
. "$ROOT/hack/kube/chart.sh"
# shellcheck disable=SC1091
. "$ROOT/hack/kube/people.sh"

# --- the cluster and the operators -------------------------------------------------------------------------------------

cluster() {
  control_plane webhook cleanup
  kubectl create namespace "$NAMESPACE"
  definitions >/dev/null
  render --set webhook.enabled=true
  kubectl apply -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" >/dev/null
  kubectl -n "$NAMESPACE" delete deployment slotwright >/dev/null
  operator_kubeconfig
}

# Starts an operator. Sets PORT, where it serves reviews.
operator() { # name [argument...]
  local name=$1; shift
  PORT=$(free_port)
  start_operator "$name" --webhook-port "$PORT" "$@"
}

# Sends reviews to a port. There is no network of Services here.
point_to() { # port
  local kind path
  for kind in validating:validate mutating:mutate; do
    path="https://127.0.0.1:$1/${kind#*:}"
    kubectl patch "${kind%:*}webhookconfiguration" slotwright --type=json -p "[{\"op\":\"remove\",\"path\":\"/webhooks/0/clientConfig/service\"},
      {\"op\":\"add\",\"path\":\"/webhooks/0/clientConfig/url\",\"value\":\"$path\"}]" >/dev/null 2>&1 \
      || kubectl patch "${kind%:*}webhookconfiguration" slotwright --type=json \
        -p "[{\"op\":\"replace\",\"path\":\"/webhooks/0/clientConfig/url\",\"value\":\"$path\"}]" >/dev/null
  done
}

# Writes an authority into the configurations.
bundle() { # PEM-file
  local kind
  for kind in validating mutating; do
    kubectl patch ${kind}webhookconfiguration slotwright --type=json \
      -p "[{\"op\":\"replace\",\"path\":\"/webhooks/0/clientConfig/caBundle\",\"value\":\"$(base64 -w0 <"$1")\"}]" >/dev/null
  done
}

# Whether the webhook answers: a job that cannot be accepted is refused.
serves() { ! job probe '{"requirements": "1 +"}' | kubectl apply --dry-run=server -f - 2>/dev/null; }

# --- what people do ----------------------------------------------------------------------------------------------------

# The manual's policy, with an owner, and with one requirement more if it is named.
policy() { # owner [Known]
  kubectl apply -f - >/dev/null <<YAML
apiVersion: slotwright.dev/v1alpha1
kind: SubmitPolicy
metadata: {name: site}
spec:
  owner: $1
$(sed -n '/^  config:/,$p' "$ROOT/examples/submit/10-submitpolicy.yaml")
    SUBMIT_REQUIREMENT_Known = !regexp("^namespace:", Owner)
    SUBMIT_REQUIREMENT_NAMES = \$(SUBMIT_REQUIREMENT_NAMES) ${2:-}
YAML
}

# --- the parts ---------------------------------------------------------------------------------------------------------

REFUSED='The request is invalid: error when creating "STDIN": admission webhook "validate.slotwright.dev" denied the request: '

people() {
  kubectl create namespace lab
  kubectl -n lab create rolebinding edits --clusterrole=edit --user=alice --user=mallory --user=chris --user=carol
  kubectl -n lab create rolebinding edits-too --clusterrole=edit --serviceaccount=lab:ci --user=physics.alice --user=namespace:lab
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: List
items:
  - {apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: physics}, spec: {quota: 1, owners: [carol]}}
  - {apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: chemistry}, spec: {quota: 1}}
YAML
  policy '{from: User}'
  sleep 1
}

manual() {
  local warning='Warning: As of <date>, the minimum requested memory will be 1024. (OneGig)'
  prints 'htcjob.slotwright.dev/large created' submit alice large "$LARGE"
  prints "$warning
htcjob.slotwright.dev/middle created" submit alice middle '{"requests": {"memory": "1Gi"}}'
  prints "${REFUSED}The job only requested 256 Megabytes.  If that small amount is really enough, please contact ... (MinimalRequestMemory)" \
    submit alice small '{"requests": {"memory": "256Mi"}}'
  prints "${REFUSED}Chris, you may only submit jobs to the instructional pool. (NotChris)" submit chris chris "$LARGE"
  prints "${REFUSED}spec.requirements: not a ClassAd expression: line 1, column 4: expected an operand after '+', found end of input; correct it and apply the object again" \
    submit alice broken '{"requirements": "1 +"}'
  owned large alice
  until_true "AssignGroup charges physics" has large .status.submitter physics.alice
  prints 'htcjob.slotwright.dev/sl6 created' submit alice sl6 '{"requests": {"memory": "2Gi"}, "attributes": {"WantSL6": "true"}}'
  until_true "SL6ToDocker sets the image" has sl6 .status.policy.attributes.DockerImage '"SL6"'
  say "the manual's examples: kubectl prints what the policy says"
}

# Each field of a spec has its effect, is refused, or has a warning that says what happens otherwise.
newcomers() {
  local spec
  template() { printf '{"requests": {"memory": "2Gi"}, "template": {"spec": %s}}' "$1"; }
  spec='{"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "4"}}}]}'
  prints 'Warning: spec.template.spec.containers[0].resources: the cpu of requests is replaced: the main container gets what its slot holds; say it in spec.requests
htcjob.slotwright.dev/n1 created' submit alice n1 "$(template "$spec")"
  spec='{"containers": [{"name": "main", "image": "busybox"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}}}'
  prints "${REFUSED}spec.template.spec.affinity.nodeAffinity: is not honored; say it in spec.requirements, for example TARGET.NodeLabels.'disktype' == \"ssd\"" \
    submit alice n2 "$(template "$spec")"
  spec='{"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Always"}'
  prints "${REFUSED}spec.template.spec.restartPolicy: must be Never or left out: whether a proc runs again is the operator's decision" \
    submit alice n3 "$(template "$spec")"
  prints "Warning: spec.attributes.MaxRetries: nothing acts on it: condor_submit turns this command of submit files into OnExitRemove; give OnExitRemove instead
htcjob.slotwright.dev/n4 created" submit alice n4 '{"requests": {"memory": "2Gi"}, "attributes": {"MaxRetries": "3"}}'
  # From 1.25 the server checks for unknown fields; before, kubectl does.
  spec='error: error validating "STDIN": error validating data: ValidationError(HTCJob.spec): unknown field "retries" in dev.slotwright.v1alpha1.HTCJob.spec; if you choose to ignore these errors, turn validation off with --validate=false'
  [ "$MINOR" -lt 25 ] || spec='Error from server (BadRequest): error when creating "STDIN": HTCJob in version "v1alpha1" cannot be handled as a HTCJob: strict decoding error: unknown field "spec.retries"'
  prints "$spec" submit alice n5 '{"requests": {"memory": "2Gi"}, "retries": 3}'
  say "newcomers: nothing is replaced or ignored in silence"
}

cheats() {
  local seal forged
  seal=$(field large '.metadata.annotations.slotwright\.dev/submitted-by')
  forged=$(python3 -c 'import json, sys; print(json.dumps({"annotations": {"slotwright.dev/submitted-by": sys.argv[1]}}))' "$seal")

  submit mallory forged "$LARGE" "$forged" >/dev/null; owned forged mallory
  in_vain "create with the seal of alice's job" "the webhook seals for mallory"
  as mallory -n lab annotate --overwrite htcjob forged "slotwright.dev/submitted-by=$seal" >/dev/null
  [ "$(field forged '.metadata.annotations.slotwright\.dev/submitted-by')" != "$seal" ] || die "an edit changed a seal"
  in_vain "put the seal of alice's job on a job of one's own" "an edit keeps the seal"
  as mallory -n lab annotate htcjob forged slotwright.dev/submitted-by- >/dev/null
  [ -n "$(field forged '.metadata.annotations.slotwright\.dev/submitted-by')" ] || die "an edit removed a seal"
  in_vain "take the seal off" "an edit keeps the seal"
  refused "write status.owner" 'cannot patch resource "htcjobs/status"' \
    as mallory -n lab patch htcjob forged --subresource=status --type=merge -p '{"status":{"owner":"alice"}}'
  job with-status "$LARGE" | sed 's/}$/, "status": {"owner": "alice", "observedGeneration": 1}}/' | as mallory apply -f - >/dev/null
  owned with-status mallory
  in_vain "create with a status that names alice" "the API server drops it"
  refused "say Owner in attributes" 'spec.attributes[Owner]' submit mallory a1 '{"requests": {"memory": "2Gi"}, "attributes": {"Owner": "\"alice\""}}'
  refused "say AccountingGroup in attributes" 'spec.attributes[AccountingGroup]' \
    submit mallory a2 '{"requests": {"memory": "2Gi"}, "attributes": {"AccountingGroup": "\"physics.alice\""}}'
  submit mallory a3 '{"requests": {"memory": "2Gi"}, "accountingGroup": "physics"}' >/dev/null
  until_true "AssignGroup decides about the group" has a3 .status.submitter mallory
  in_vain "charge a group that the policy's map does not give mallory" "AssignGroup takes the group away"
  refused "charge a group through a group's name with a dot" 'spec.accountingGroup' \
    submit mallory a4 '{"requests": {"memory": "2Gi"}, "accountingGroup": "physics..alice"}'
  refused "edit the spec of alice's job" "the job is alice's, and mallory may not edit its spec" \
    as mallory -n lab patch htcjob large --type=merge -p '{"spec":{"count":9}}'
  refused "pass for alice by impersonation" no as mallory auth can-i impersonate users
  submit mallory final "$LARGE" '{"finalizers": ["slotwright.dev/release-claims"]}' >/dev/null; owned final mallory
  in_vain "create with the operator's finalizer, to look accepted" "the job is mallory's"
  submit mallory child "$LARGE" "{\"ownerReferences\": [{\"apiVersion\": \"slotwright.dev/v1alpha1\", \"kind\": \"HTCJob\", \"name\": \"large\", \"uid\": \"$(field large .metadata.uid)\"}]}" >/dev/null
  owned child mallory
  in_vain "be a child of alice's job" "the job is mallory's"
  submit mallory dated "$LARGE" '{"creationTimestamp": "2020-01-01T00:00:00Z", "uid": "x", "generation": 7}' >/dev/null; owned dated mallory
  in_vain "create with a uid and an early creationTimestamp" "the API server sets its own"
  submit physics.alice dotted "$LARGE" >/dev/null; owned dotted namespace:lab
  in_vain "be a user named physics.alice" "charged to the namespace: a dot is in no owner"
  submit namespace:lab colon "$LARGE" >/dev/null; owned colon namespace:lab
  in_vain "be a user named namespace:lab" "charged to the namespace, as every unknown user's"
  job account "$LARGE" | as system:serviceaccount:lab:ci apply -f - >/dev/null; owned account namespace:lab
  in_vain "submit through a service account" "charged to the namespace"
  job account-child "$LARGE" "{\"ownerReferences\": [{\"apiVersion\": \"slotwright.dev/v1alpha1\", \"kind\": \"HTCJob\", \"name\": \"large\", \"uid\": \"$(field large .metadata.uid)\", \"controller\": true}]}" \
    | as system:serviceaccount:lab:ci apply -f - >/dev/null; owned account-child namespace:lab
  in_vain "let a controller submit it as a child of alice's job" "charged to the namespace: an ownerReference proves nothing"
  refused "make a SubmitPolicy of one's own" 'cannot create resource "submitpolicies"' as mallory create --validate=false -f - <<<'{"apiVersion": "slotwright.dev/v1alpha1", "kind": "SubmitPolicy", "metadata": {"name": "a"}, "spec": {}}'
  refused "give oneself a better priority factor" 'cannot get resource "submitters"' as mallory patch submitter mallory --type=merge -p '{"spec":{"priorityFactor":1}}'
  refused "open a group to oneself" 'cannot get resource "groupquotas"' as mallory patch groupquota physics --type=merge -p '{"spec":{"owners":["*"]}}'
  refused "write a Slot" 'cannot create resource "slots"' as mallory create --validate=false -f - <<<'{"apiVersion": "slotwright.dev/v1alpha1", "kind": "Slot", "metadata": {"name": "s"}, "spec": {"node": "n"}}'
  refused "read the key of seals" 'cannot get resource "secrets"' as mallory -n "$NAMESPACE" get secret slotwright-webhook-cert
  refused "send reviews elsewhere" 'cannot get resource "mutatingwebhookconfigurations"' \
    as mallory patch mutatingwebhookconfiguration slotwright --type=merge -p '{"webhooks":[]}'

  # While nobody answers.
  stop_operator first
  submit mallory down "$LARGE" "$forged" >/dev/null
  submit mallory down-bare "$LARGE" >/dev/null
  local generated; generated=$(python3 -c 'import json, sys; print(json.dumps({"name": None, "generateName": "large"} | json.loads(sys.argv[1])))' "$forged")
  job x "$LARGE" "$generated" | as mallory create -f - >/dev/null
  kubectl -n lab annotate --overwrite htcjob final "slotwright.dev/submitted-by=$seal" >/dev/null
  as mallory -n lab delete htcjob large --wait=false >/dev/null
  as mallory -n lab patch htcjob large --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
  sleep 61
  submit mallory large "$LARGE" "$forged" >/dev/null
  operator first; point_to "$PORT"; until_true "the webhook serves again" serves
  owned down namespace:lab
  in_vain "create with alice's seal while no operator runs" "charged to the namespace: the seal is for another name"
  owned down-bare namespace:lab
  in_vain "create while no operator runs" "charged to the namespace"
  owned "$(kubectl -n lab get htcjobs -o name | sed -n 's|.*/\(large.....\)$|\1|p' | head -1)" namespace:lab
  in_vain "create with generateName and alice's seal, while no operator runs" "charged to the namespace"
  owned large namespace:lab
  in_vain "replace alice's job by one of its name and seal, a minute later" "charged to the namespace: the seal is old"
  owned final mallory
  in_vain "change the seal of a job that the operator knows" "the owner is recorded"
  # A policy that is made stricter while a job is on its way.
  stop_operator first
  submit chris race "$LARGE" >/dev/null
  policy '{from: User}' Known
  operator first; point_to "$PORT"; until_true "the webhook serves again" serves
  until_true "a job that was stored before the policy changed is judged by the policy" \
    has race '.status.conditions[?(@.type=="Accepted")].reason' SubmitRequirement
  in_vain "be kept out by name, and submit while no operator runs" "a requirement keeps out whom nobody knows"

  table
}

# Applies a good job, and says for how long that took.
timed() { # name
  local start=$EPOCHREALTIME
  submit alice "$1" "$LARGE" >/dev/null
  python3 -c "print(f'{$EPOCHREALTIME - $start:.1f} s')"
}

# Prints how often the operator `first` has stopped deciding and served its webhook alone.
lingered() { grep -c 'the webhook answers for' "$SLOTWRIGHT_KUBE_STATE/first.log" || true; }

# Succeeds once the operator `first` has stopped deciding more often than `before` times.
lingered_since() { # before
  [ "$(lingered)" -gt "$1" ]
}

outages() {
  local broken='{"requests": {"memory": "2Gi"}, "requirements": "1 +"}' found
  local before; before=$(lingered)
  signal first TERM
  until_true "the operator has stopped deciding" lingered_since "$before"
  serves || die "an operator that was told to stop answers no review"
  stop_operator first
  submit alice while-down "$broken" | grep -q created || die "a webhook that is down keeps jobs out"
  say "down: a job is stored after $(timed down-good)"
  operator first; point_to "$PORT"; until_true "the webhook serves again" serves
  until_true "the operator says what is wrong" has while-down '.status.conditions[?(@.type=="Accepted")].status' False

  signal first STOP
  found=$(timed slow-good); say "an operator that hangs: a job is stored after $found"
  signal first CONT

  # An authority that did not sign the certificate.
  local other=$SLOTWRIGHT_KUBE_STATE/other.crt
  openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -subj /CN=other -days 1 -out "$other" 2>/dev/null
  bundle "$other"
  say "a certificate that is not believed: a job is stored after $(timed unbelieved)"
  # A certificate that has expired: no replica serves it for longer than it takes to look at the Secret.
  stop_operator first
  expired_certificate
  operator first; point_to "$PORT"; until_true "an expired certificate is replaced" serves
  submit alice renewed "$LARGE" >/dev/null; owned renewed alice
  say "an expired certificate is replaced when an operator starts, and the webhook serves"

  # Two replicas: one leads, and the other answers; then the leader goes, as in an upgrade.
  operator second; point_to "$PORT"; until_true "the replica that does not lead serves" serves
  submit alice by-second "$LARGE" >/dev/null; owned by-second alice
  stop_operator first
  submit alice by-second-too "$LARGE" >/dev/null; owned by-second-too alice
  say "two replicas: what one seals, the other believes"
}

# Puts a certificate into the Secret that has the right names and expired in 2020. The key of seals stays.
expired_certificate() {
  local dir=$SLOTWRIGHT_KUBE_STATE/expired; mkdir -p "$dir"; : >"$dir/index"
  cat >"$dir/ca.conf" <<CONF
[ca]
default_ca = own
[own]
database = $dir/index
new_certs_dir = $dir
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = DNS:slotwright-webhook.$NAMESPACE.svc, DNS:slotwright-webhook.$NAMESPACE.svc.cluster.local, DNS:localhost, IP:127.0.0.1
CONF
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/key" -out "$dir/csr" -subj /CN=old 2>/dev/null
  openssl ca -batch -config "$dir/ca.conf" -selfsign -keyfile "$dir/key" -in "$dir/csr" -out "$dir/all" -notext \
    -startdate 20200101000000Z -enddate 20200102000000Z 2>/dev/null
  ! openssl x509 -checkend 0 -noout -in "$dir/all" >/dev/null || die "the certificate has not expired"
  local crt key; crt=$(base64 -w0 <"$dir/all"); key=$(base64 -w0 <"$dir/key")
  kubectl -n "$NAMESPACE" patch secret slotwright-webhook-cert --type=merge \
    -p "{\"data\":{\"tls.crt\":\"$crt\",\"tls.key\":\"$key\",\"ca.crt\":\"$crt\"}}" >/dev/null
}

# Plays an issuer: a new authority signs a certificate, and the files that a mounted Secret has are written.
issue() { # directory
  local dir=$1 ca=$SLOTWRIGHT_KUBE_STATE/issuer; mkdir -p "$dir" "$ca"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$ca/key" -out "$ca/crt" -subj /CN=ca -days 1 2>/dev/null
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/tls.key" -out "$ca/csr" -subj /CN=webhook 2>/dev/null
  openssl x509 -req -in "$ca/csr" -CA "$ca/crt" -CAkey "$ca/key" -CAcreateserial -days 1 -out "$dir/tls.crt" \
    -extfile <(echo "subjectAltName = DNS:slotwright-webhook.$NAMESPACE.svc, IP:127.0.0.1") 2>/dev/null
  cp "$ca/crt" "$dir/ca.crt"
}

operator_can() { KUBECONFIG=$SLOTWRIGHT_KUBE_STATE/operator.kubeconfig kubectl auth can-i "$@" 2>/dev/null || true; }

# A certificate that others write and renew, as cert-manager does, with the rights that the chart then grants.
mounted() {
  local dir=$SLOTWRIGHT_KUBE_STATE/mounted
  stop_operator second
  kubectl delete clusterrole,clusterrolebinding slotwright-webhook >/dev/null
  kubectl -n "$NAMESPACE" delete role,rolebinding slotwright-webhook >/dev/null
  kubectl -n "$NAMESPACE" delete secret slotwright-webhook-cert >/dev/null
  render --set webhook.enabled=true --set webhook.certManager.enabled=true
  # The kinds of cert-manager are not here.
  python3 - "$SLOTWRIGHT_KUBE_STATE/chart.yaml" <<'PY' | kubectl apply -f - >/dev/null
import pathlib, sys
wanted = ("kind: Secret\n", "kind: Role\n", "kind: RoleBinding\n")
print("\n---\n".join(part for part in pathlib.Path(sys.argv[1]).read_text().split("\n---\n") if any(kind in part for kind in wanted)))
PY
  [ "$(operator_can patch validatingwebhookconfigurations.admissionregistration.k8s.io/slotwright)" = no ] || die "the operator may still write configurations"
  [ "$(operator_can -n "$NAMESPACE" update secret/slotwright-webhook-seal)" = yes ] || die "the operator may not keep its key of seals"

  operator mounted --webhook-certificate-dir "$dir" --webhook-secret slotwright-webhook-seal; point_to "$PORT"
  submit alice before-any "$LARGE" | grep -q created || die "a missing certificate keeps jobs out"
  issue "$dir"; bundle "$dir/ca.crt"; until_true "the webhook serves the certificate of others" serves
  submit alice mounted "$LARGE" >/dev/null; owned mounted alice
  issue "$dir"; bundle "$dir/ca.crt"; until_true "the webhook serves a rotated certificate" serves
  submit alice rotated "$LARGE" >/dev/null; owned rotated alice
  say "a certificate of others is served and rotated without a restart, by an operator that may write no configuration"
}

latency() {
  local file=$SLOTWRIGHT_KUBE_STATE/apply.json
  job NAME "$LARGE" >"$file"
  for kind in validating mutating; do kubectl get ${kind}webhookconfiguration slotwright -o json >"$SLOTWRIGHT_KUBE_STATE/$kind.json"; done
  for round in 1 2 3; do
    kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration slotwright >/dev/null; sleep 1
    python3 "$ROOT/hack/kube/applies.py" "$KUBECONFIG" "$file" "without-$round" 1000
    for kind in validating mutating; do kubectl create -f "$SLOTWRIGHT_KUBE_STATE/$kind.json" >/dev/null; done
    until_true "the webhook serves" serves
    python3 "$ROOT/hack/kube/applies.py" "$KUBECONFIG" "$file" "with-$round" 1000
    kubectl -n lab delete htcjobs --all --wait=false >/dev/null
  done
}

# Naming a test chooses the tests' features, for which everything is built already.
(cd "$ROOT" && cargo build -q --locked --bin slotwright --test e2e)
cluster
operator first; point_to "$PORT"; people; until_true "the webhook serves" serves
case ${1:-all} in
  all) manual; newcomers; cheats; outages; mounted; say "passed" ;;
  latency) latency ;;
  *) die "usage: e2e-webhook.sh [latency]" ;;
esac
