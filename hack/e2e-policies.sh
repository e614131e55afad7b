#!/bin/bash
# e2e-policies.sh: the admission policies by which the API server stamps into a job who creates it, on a real kube-apiserver of 1.36 or
# later, as people with kubectl meet them. On an older server says that it is skipped.
#
# Checks ways to pass for somebody else, each tried as a tenant, with the operator under the rights that the chart grants: before the
# policies are there, while API servers take them up, while they are in force, with one of them alone, and after an edit. Starts a control
# plane of its own.
#
#   e2e-policies.sh           all of this
#   e2e-policies.sh latency   how long 1,000 creations take without the policies and with them (docs/how-to/admission.md)
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck disable=SC1091  # both are linted by themselves
. "$ROOT/hack/kube/chart.sh"
# shellcheck disable=SC1091
. "$ROOT/hack/kube/people.sh"

STAMP=slotwright.dev/created-by
FORGED='{"annotations": {"slotwright.dev/created-by": "alice\nowner:physics\nsystem:authenticated"}}'
# The margin of src/controller/creators/stamp.rs, and a second for rounding.
MARGIN=61

# --- the cluster ---------------------------------------------------------------------------------------------------------

cluster() {
  control_plane policies cleanup
  if [ "$MINOR" -lt 36 ]; then say "SKIPPED: this server has no MutatingAdmissionPolicy of v1, which is there from 1.36"; exit 0; fi
  kubectl create namespace "$NAMESPACE" >/dev/null
  definitions >/dev/null
  kubectl create namespace lab >/dev/null
  kubectl -n lab create rolebinding edits --clusterrole=edit --user=alice --user=mallory --user=bob --serviceaccount=lab:ci \
    --user=physics.alice --user=namespace:lab --user='alice ' >/dev/null
  # Until the controller manager has joined the chart's role to the cluster's role edit.
  kubectl -n lab create role jobs --verb=get,list,create,update,patch,delete --resource=htcjobs.slotwright.dev >/dev/null
  kubectl -n lab create rolebinding jobs --role=jobs --user=alice --user=mallory --user=bob --serviceaccount=lab:ci \
    --user=physics.alice --user=namespace:lab --user='alice ' >/dev/null
  install
  kubectl -n "$NAMESPACE" delete deployment slotwright >/dev/null
  operator_kubeconfig
}

# Installs the chart, with the policies if the argument is given.
install() { # [owner]
  render --set "admissionPolicy.owner=$([ -n "${1:-}" ] && echo true || echo false)" 2>/dev/null
  kubectl apply -f "$SLOTWRIGHT_KUBE_STATE/chart.yaml" >/dev/null
}

policy() { # owner
  kubectl apply -f - >/dev/null <<YAML
apiVersion: slotwright.dev/v1alpha1
kind: SubmitPolicy
metadata: {name: site}
spec:
  owner: $1
YAML
}

# --- what people do ----------------------------------------------------------------------------------------------------

annotations() { field "$1" .metadata.annotations; }
stamp() { field "$1" '.metadata.annotations.slotwright\.dev/created-by'; }
is_stamped() { [ "$(stamp "$1" | head -1)" = "$2" ]; }
create() { local who=$1; shift; job "$@" | as "$who" create -f -; }

# Checks who is stamped, and who the operator takes for the owner.
stamped() { # job user owner
  is_stamped "$1" "$2" || die "job $1 is stamped $(annotations "$1"), and not $2"
  owned "$1" "$3"
}

says() { field "$1" '.status.conditions[?(@.type=="FullyApplied")].message' | grep -F -- "$2"; }

# Checks why a job is charged to its namespace.
charged_because() { # job text
  owned "$1" namespace:lab
  until_true "job $1 says \"$2\", and not \"$(says "$1" '')\"" says "$1" "$2"
}

is_gone() { [ -z "$(kubectl -n lab get htcjob "$1" --ignore-not-found -o name)" ]; }

# Puts an object as it is after a change by Python, in which the object is `o`.
put() { # who job change [subresource]
  kubectl -n lab get htcjob "$2" -o json | python3 -c "import json, sys; o = json.load(sys.stdin); $3; json.dump(o, sys.stdout)" \
    | as "$1" replace --raw "/apis/slotwright.dev/v1alpha1/namespaces/lab/htcjobs/$2${4:+/$4}" -f -
}

# --- the parts ---------------------------------------------------------------------------------------------------------

# Jobs of before the policies, and of the first minute of the policies.
early() {
  create mallory before "$LARGE" "$FORGED" >/dev/null
  is_stamped before alice || die "this server stamps without the policies"
  install owner
  NAME=$(kubectl get mutatingadmissionpolicies -o name | grep -v -- -lean-pods); NAME=${NAME#*/}
  # An API server that has read a part of the policies refuses jobs for a moment.
  local number=0
  until create mallory at-once "$LARGE" "$FORGED" | grep -q " created$"; do
    number=$((number + 1)); sleep .1
    [ "$number" -lt 100 ] || die "the API server takes no job"
  done
  # Until the API server acts on the policies.
  number=0
  until create mallory "early-$number" "$LARGE" "$FORGED" | grep -q " created$" && is_stamped "early-$number" mallory; do
    number=$((number + 1)); sleep .3
    [ "$number" -lt 60 ] || die "the API server does not stamp jobs"
  done
  say "the API server stamps jobs after $number jobs that it did not stamp"
  policy '{from: User}'
  start_operator first --owner-policy "$NAME"
  charged_because before "the job was created before the admission policies $NAME had been there for 60 s"
  in_vain "create with alice's stamp, before the policies are there" "charged to the namespace"
  owned at-once namespace:lab
  charged_because "early-$number" "the job was created before the admission policies $NAME had been there for 60 s"
  in_vain "create with alice's stamp, while API servers take the policies up" "charged to the namespace"
  sleep "$MARGIN"
}

creations() {
  create alice large "$LARGE" >/dev/null; stamped large alice alice
  [ "$(stamp large)" = "alice
system:authenticated" ] || die "the stamp is $(stamp large)"
  create mallory c1 "$LARGE" "$FORGED" >/dev/null; stamped c1 mallory mallory
  in_vain "create with alice's stamp" "the API server stamps mallory"
  submit mallory c2 "$LARGE" "$FORGED" >/dev/null; stamped c2 mallory mallory
  in_vain "apply a manifest with alice's stamp" "the API server stamps mallory"
  job c3 "$LARGE" "$FORGED" | as mallory apply --server-side --field-manager=own -f - >/dev/null; stamped c3 mallory mallory
  in_vain "apply a manifest with alice's stamp on the server's side" "the API server stamps mallory"
  local name
  name=$(job x "$LARGE" "$(python3 -c 'import json, sys; print(json.dumps({"name": None, "generateName": "large-"} | json.loads(sys.argv[1])))' "$FORGED")" \
    | as mallory create -f - -o name); name=${name#*/}
  stamped "$name" mallory mallory
  in_vain "create with generateName and alice's stamp" "the API server stamps mallory"
  job c4 "$LARGE" "$FORGED" | as mallory create --dry-run=server -f - >/dev/null
  is_gone c4 || die "a dry run stored a job"
  in_vain "create with alice's stamp in a dry run" "nothing is stored"
  create system:serviceaccount:lab:ci c5 "$LARGE" "$FORGED" >/dev/null; stamped c5 system:serviceaccount:lab:ci namespace:lab
  charged_because c5 "is no owner's name"
  in_vain "let a controller create it, with alice's stamp" "the service account is stamped, and the namespace charged"
  refused "pass for alice by impersonation" no as mallory auth can-i impersonate users
  refused "pass for a member of a group by impersonation" no as mallory auth can-i impersonate groups
  create mallory c6 "$LARGE" '{"creationTimestamp": "2020-01-01T00:00:00Z", "uid": "x", "generation": 7}' >/dev/null; stamped c6 mallory mallory
  in_vain "create with a uid and an early creationTimestamp" "the API server sets its own"
  create mallory c7 "$LARGE" '{"annotations": {"slotwright.dev/submitted-by": "{\"user\":\"alice\",\"at\":1,\"mac\":\"\"}"}}' >/dev/null
  stamped c7 mallory mallory
  in_vain "create with a seal that says alice" "no key made the seal, and the stamp counts"
  job c8 "$LARGE" | sed 's/}$/, "status": {"owner": "alice", "observedGeneration": 1}}/' | as mallory create -f - >/dev/null
  stamped c8 mallory mallory
  in_vain "create with a status that names alice" "the API server drops it"
  create mallory c9 "$LARGE" "{\"ownerReferences\": [{\"apiVersion\": \"slotwright.dev/v1alpha1\", \"kind\": \"HTCJob\", \"name\": \"large\", \"uid\": \"$(field large .metadata.uid)\"}]}" >/dev/null
  stamped c9 mallory mallory
  in_vain "be a child of alice's job" "the API server stamps mallory"
  create system:serviceaccount:lab:ci c10 "$LARGE" "{\"ownerReferences\": [{\"apiVersion\": \"slotwright.dev/v1alpha1\", \"kind\": \"HTCJob\", \"name\": \"large\", \"uid\": \"$(field large .metadata.uid)\", \"controller\": true}]}" >/dev/null
  stamped c10 system:serviceaccount:lab:ci namespace:lab
  in_vain "let a controller create it as a child of alice's job" "charged to the namespace: an ownerReference proves nothing"
  create 'alice ' spaced "$LARGE" >/dev/null; stamped spaced 'alice ' namespace:lab
  in_vain "be a user named \"alice \"" "charged to the namespace: a blank is in no owner"
  create physics.alice dotted "$LARGE" >/dev/null; stamped dotted physics.alice namespace:lab
  in_vain "be a user named physics.alice" "charged to the namespace: a dot is in no owner"
  create namespace:lab colon "$LARGE" >/dev/null; stamped colon namespace:lab namespace:lab
  in_vain "be a user named namespace:lab" "charged to the namespace, as every unknown user's"
  line_breaks
}

# A user whose name has a line break: only a certificate can say so, since a header of HTTP has none.
line_breaks() {
  local dir=$SLOTWRIGHT_KUBE_STATE
  # shellcheck disable=SC2034  # common.sh reads them
  (STATE=$dir PKI=$dir/pki; . "$ROOT/hack/kube/common.sh"
   certificate broken ca $'/O=x\nowner:physics/CN=alice\nowner:physics' clientAuth; kubeconfig broken "$(<"$dir/port")")
  local name; name=$(KUBECONFIG=$dir/broken.kubeconfig kubectl auth whoami -o 'jsonpath={.status.userInfo.username}')
  [ "$name" = $'alice\nowner:physics' ] || die "the API server calls the user $name"
  kubectl -n lab create rolebinding broken --role=jobs --user="$name" >/dev/null
  job broken "$LARGE" | KUBECONFIG=$dir/broken.kubeconfig kubectl create -f - >/dev/null
  [ "$(stamp broken)" = $'\nsystem:authenticated' ] || die "the stamp of a name with a line break is $(stamp broken)"
  owned broken namespace:lab
  in_vain "be a user or a group with a line break in the name" "stamped without a name and without the group; charged to the namespace"
}

# Changes of the stamp of a job of one's own.
stamps() {
  local kept='an edit keeps the stamp'
  as mallory -n lab annotate --overwrite htcjob c1 "$STAMP=alice" >/dev/null; stamped c1 mallory mallory
  in_vain "put alice's stamp on a job of one's own" "$kept"
  as mallory -n lab annotate htcjob c1 "$STAMP-" >/dev/null; stamped c1 mallory mallory
  in_vain "take the stamp off" "$kept"
  as mallory -n lab patch htcjob c1 --type=json -p '[{"op":"remove","path":"/metadata/annotations"}]' >/dev/null; stamped c1 mallory mallory
  in_vain "take all annotations off" "$kept"
  put mallory c1 'o["metadata"]["annotations"] = {"slotwright.dev/created-by": "alice"}; o["spec"]["count"] = 2' >/dev/null
  stamped c1 mallory mallory; has c1 .spec.count 2 || die "mallory may not edit mallory's job"
  in_vain "replace a job of one's own by one with alice's stamp" "$kept"
  job c3 "$LARGE" "$FORGED" | as mallory apply --server-side --force-conflicts --field-manager=other -f - >/dev/null; stamped c3 mallory mallory
  job c3 "$LARGE" | as mallory apply --server-side --force-conflicts --field-manager=other -f - >/dev/null; stamped c3 mallory mallory
  in_vain "own the annotation's field by applying it, and let go of it" "$kept"
  kubectl -n lab create role status --verb=update,patch --resource=htcjobs.slotwright.dev/status >/dev/null
  kubectl -n lab create rolebinding status --role=status --user=bob >/dev/null
  local records="the status of an HTCJob is written by Slotwright's operator only"
  refused "change the stamp through the status, as somebody whose Role allows that" "$records" \
    put bob c2 'o["metadata"]["annotations"] = {"slotwright.dev/created-by": "alice"}' status
  stamped c2 mallory mallory
  refused "write status.owner, as somebody whose Role allows that" "$records" put bob c2 'o["status"]["owner"] = "alice"' status
  refused "write status.clusterId, as somebody whose Role allows that" "$records" put bob c2 'o["status"]["clusterId"] = 2**62' status
  refused "edit the spec through the status" "$records" put bob c2 'o["spec"]["count"] = 9' status
  [ "$(field c2 .spec.count)" != 9 ] || die "the spec can be edited through the status"
}

# Edits of alice's job.
edits() {
  local no="the job is alice's, and mallory may not edit its spec; ask alice, or submit a job of your own" labeled
  refused "patch the spec of alice's job" "$no" as mallory -n lab patch htcjob large --type=merge -p '{"spec":{"count":9}}'
  refused "replace alice's job" "$no" put mallory large 'o["spec"]["count"] = 9'
  refused "replace alice's job, and its stamp by one's own" "$no" \
    put mallory large 'o["metadata"]["annotations"]["slotwright.dev/created-by"] = "mallory"; o["spec"]["count"] = 9'
  refused "apply over alice's job" "$no" submit mallory large '{"requests": {"memory": "3Gi"}}'
  refused "apply over alice's job on the server's side" "$no" \
    eval 'job large "{\"count\": 9}" | as mallory apply --server-side --force-conflicts -f -'
  refused "edit alice's job through a service account" "the job is alice's, and system:serviceaccount:lab:ci may not edit its spec" \
    as system:serviceaccount:lab:ci -n lab patch htcjob large --type=merge -p '{"spec":{"count":9}}'
  refused "write status.owner" 'cannot patch resource "htcjobs/status"' \
    as mallory -n lab patch htcjob large --subresource=status --type=merge -p '{"status":{"owner":"mallory"}}'
  refused "be an administrator of jobs" no as mallory -n lab auth can-i administer htcjobs.slotwright.dev
  refused "remove the policies" "cannot delete resource \"mutatingadmissionpolicies\"" as mallory delete mutatingadmissionpolicy "$NAME"
  refused "edit the policies" "cannot get resource \"validatingadmissionpolicybindings\"" \
    as mallory patch --type=merge validatingadmissionpolicybinding "$NAME" -p '{"spec":{"validationActions":["Audit"]}}'
  as mallory -n lab delete htcjob large --wait=false >/dev/null
  as mallory -n lab patch htcjob large --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
  create mallory large "$LARGE" "$FORGED" >/dev/null; stamped large mallory mallory
  in_vain "replace alice's job by one of its name and stamp" "the API server stamps mallory"

  # What must still be possible.
  create alice mine "$LARGE" >/dev/null; stamped mine alice alice
  as alice -n lab patch htcjob mine --type=merge -p '{"spec":{"count":2}}' >/dev/null; has mine .spec.count 2 || die "alice may not edit alice's job"
  submit alice mine '{"count": 3}' >/dev/null; has mine .spec.count 3 || die "alice may not apply over alice's job"
  labeled=$(as mallory -n lab label htcjob mine a=b); grep -q labeled <<<"$labeled" || die "mallory may not label alice's job: $labeled"
  kubectl -n lab patch htcjob mine --type=merge -p '{"spec":{"count":4}}' >/dev/null || die "system:masters may not edit alice's job"
  kubectl -n lab create role administer --verb=administer --resource=htcjobs.slotwright.dev >/dev/null
  kubectl -n lab create rolebinding administer --role=administer --user=bob >/dev/null
  until_true "whoever may administer jobs may edit alice's" \
    kubectl --as=bob -n lab patch htcjob mine --type=merge -p '{"spec":{"count":5}}'
  stamped mine alice alice
  as alice -n lab delete htcjob mine --wait=false >/dev/null
  until_true "the operator takes its finalizer off" is_gone mine
  say "the creator, system:masters and whoever may administer jobs edit a job; whoever may edit jobs labels it"
}

# Groups, and jobs that come while no operator runs.
groups_and_outages() {
  policy '{from: Group, group: "owner:*"}'
  sleep 1
  job member "$LARGE" | kubectl --as=alice --as-group=owner:physics --as-group=system:authenticated create -f - >/dev/null
  stamped member alice physics
  create mallory stranger "$LARGE" "$FORGED" >/dev/null; stamped stranger mallory namespace:lab
  in_vain "create with the stamp of a member of a group" "the API server stamps mallory, who is in no such group"
  policy '{from: User}'
  stop_operator first
  create mallory down "$LARGE" "$FORGED" >/dev/null
  create alice down-too "$LARGE" >/dev/null
  start_operator first --owner-policy "$NAME"
  stamped down mallory mallory; stamped down-too alice alice
  in_vain "create with alice's stamp while no operator runs" "the API server stamps mallory"
}

# Whether the API server takes a job of alice's.
taken() { create alice "$1" "$LARGE" | grep -q " created$"; }

# The guard without the policy that stamps: what that one makes vain, this one refuses.
guard() {
  local no="has to say who creates the job" never="is never changed" number
  kubectl get mutatingadmissionpolicybinding "$NAME" -o yaml >"$SLOTWRIGHT_KUBE_STATE/binding.yaml"
  kubectl delete mutatingadmissionpolicybinding "$NAME" >/dev/null
  for number in $(seq 100); do ! create alice "probe-$number" "$LARGE" | grep -qF "$no" || break; sleep .2; done
  refused "create with alice's stamp, without the policy that stamps" "$no" create mallory g1 "$LARGE" "$FORGED"
  refused "create without a stamp, without the policy that stamps" "$no" create mallory g2 "$LARGE"
  refused "change a stamp, without the policy that stamps" "$never" as mallory -n lab annotate --overwrite htcjob c1 "$STAMP=alice"
  refused "take a stamp off, without the policy that stamps" "$never" as mallory -n lab annotate htcjob c1 "$STAMP-"
  refused "stamp an old job" "$never" as mallory -n lab annotate --overwrite htcjob before "$STAMP=bob"
  # Made again, the policies count from then on.
  sed -i '/resourceVersion\|uid:\|creationTimestamp\|generation/d' "$SLOTWRIGHT_KUBE_STATE/binding.yaml"
  kubectl create -f "$SLOTWRIGHT_KUBE_STATE/binding.yaml" >/dev/null
  until_true "jobs are stamped again" taken again
  charged_because again "the job was created before the admission policies $NAME had been there for 60 s"
  in_vain "create while a policy is away for a moment" "charged to the namespace for a minute"
}

# Whether the API server takes alice's stamp from mallory.
forge() { # job
  create mallory "$1" "$LARGE" "$FORGED" >/dev/null
  is_stamped "$1" alice || { kubectl -n lab delete htcjob "$1" --wait=false; return 1; }
}

# Policies that an admin edits or takes away, and puts back.
edited() {
  sleep "$MARGIN"
  create alice good "$LARGE" >/dev/null; stamped good alice alice
  kubectl patch mutatingadmissionpolicybinding "$NAME" --type=merge \
    -p '{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"x":"y"}}}}}' >/dev/null
  kubectl patch validatingadmissionpolicybinding "$NAME" --type=merge -p '{"spec":{"validationActions":["Audit"]}}' >/dev/null
  until_true "a forged stamp passes" forge off
  kubectl patch mutatingadmissionpolicybinding "$NAME" --type=json -p '[{"op":"remove","path":"/spec/matchResources"}]' >/dev/null
  kubectl patch validatingadmissionpolicybinding "$NAME" --type=merge -p '{"spec":{"validationActions":["Deny"]}}' >/dev/null
  charged_because off "the spec of the MutatingAdmissionPolicyBinding $NAME was edited"
  owned good alice
  in_vain "create with alice's stamp while the policies' bindings are edited" "charged to the namespace, though they are edited back"
  kubectl delete mutatingadmissionpolicybinding,validatingadmissionpolicybinding "$NAME" >/dev/null
  until_true "a forged stamp passes" forge gone
  charged_because gone "there is no MutatingAdmissionPolicyBinding $NAME"
  in_vain "create with alice's stamp while the policies' bindings are gone" "charged to the namespace"
}

# Whether the API server stamps jobs now.
stamps_now() {
  [ -n "$(job probe "$LARGE" | as alice create --dry-run=server -f - -o 'jsonpath={.metadata.annotations.slotwright\.dev/created-by}')" ]
}
stamps_no_more() { ! stamps_now; }

latency() {
  local file=$SLOTWRIGHT_KUBE_STATE/apply.json round
  job NAME "$LARGE" >"$file"
  install owner
  NAME=$(kubectl get mutatingadmissionpolicies -o name | grep -v -- -lean-pods); NAME=${NAME#*/}
  start_operator first --owner-policy "$NAME"
  for round in 1 2 3; do
    kubectl delete mutatingadmissionpolicybinding,validatingadmissionpolicybinding "$NAME" >/dev/null
    until_true "the API server stamps no jobs" stamps_no_more
    python3 "$ROOT/hack/kube/applies.py" "$KUBECONFIG" "$file" "without-$round" 1000
    install owner
    until_true "the API server stamps jobs" stamps_now
    python3 "$ROOT/hack/kube/applies.py" "$KUBECONFIG" "$file" "with-$round" 1000
    kubectl -n lab delete htcjobs --all --wait=false >/dev/null
  done
}

# Naming a test chooses the tests' features, for which everything is built already.
(cd "$ROOT" && cargo build -q --locked --bin slotwright --test e2e)
cluster
case ${1:-all} in
  all) early; creations; stamps; edits; groups_and_outages; guard; edited; table; say "passed" ;;
  latency) latency ;;
  *) die "usage: e2e-policies.sh [latency]" ;;
esac
