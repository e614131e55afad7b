//! The Helm chart, rendered by Helm's own SDK (`hack/helm.sh`): every object is what Kubernetes takes, the operator may
//! do what is listed here and nothing else, and the output changes only on purpose.
//!
//! Where the SDK cannot be had (no Python, no package index) these tests say so and pass; with `CI=true` they fail.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use k8s_openapi::Resource;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::admissionregistration::v1alpha1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolumeClaim, PodSpec, ResourceQuota, Secret, Service, ServiceAccount, Volume,
};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Exit code of `hack/helm.sh` when there is no Helm here.
const UNAVAILABLE: i32 = 3;

/// Runs `hack/helm.sh`. If there is no Helm and this is not CI, prints a notice and returns `None`.
pub(super) fn helm(arguments: &[&str]) -> Option<Output> {
    let output =
        Command::new(root().join("hack/helm.sh")).args(arguments).current_dir(root()).output().unwrap();
    if output.status.code() != Some(UNAVAILABLE) {
        return Some(output);
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must render the chart: {why}");
    println!("SKIPPED: no Helm here: {why}");
    None
}

/// The rendered text of the chart; panics with Helm's message when it does not render.
pub(super) fn render(arguments: &[&str]) -> Option<String> {
    let output = helm(&[&["render", "charts/slotwright"], arguments].concat())?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The documents of a YAML stream that are objects.
pub(super) fn objects(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple::<Value>(yaml)
        .unwrap()
        .into_iter()
        .filter(|object| !object.is_null())
        .collect()
}

/// Reads an object as its Kubernetes type. Fields that the type does not know, such as a misspelled one, are lost on
/// the way, so the result, written again, must hold all that was there.
fn typed<T: Resource + DeserializeOwned + Serialize>(object: &Value) -> T {
    assert_eq!(object["apiVersion"], T::API_VERSION, "{}", object["kind"]);
    let value: T = serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{} {}: {error}", object["kind"], object["metadata"]["name"]));
    lost(object, &serde_json::to_value(&value).unwrap(), T::KIND);
    value
}

fn lost(written: &Value, understood: &Value, path: &str) {
    match (written, understood) {
        (Value::Object(fields), Value::Object(known)) => {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                assert!(known.contains_key(name), "{path} is no field that Kubernetes knows");
                lost(field, &known[name], &path);
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            assert_eq!(items.len(), known.len(), "{path}");
            items.iter().zip(known).for_each(|(item, known)| lost(item, known, path));
        }
        _ => {}
    }
}

/// An object of a kind that k8s-openapi does not have. `Spec` lists the fields that the chart may use; another field is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Object<Spec> {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Spec,
}

pub(super) fn find<T: Resource + DeserializeOwned + Serialize>(objects: &[Value], name: &str) -> T {
    let found = objects.iter().find(|object| object["kind"] == T::KIND && object["metadata"]["name"] == name);
    typed(found.unwrap_or_else(|| panic!("no {} {name}", T::KIND)))
}

/// Parses every object as the type that its kind says, and returns how many there are.
pub(super) fn check_types(objects: &[Value]) -> usize {
    for object in objects {
        match object["kind"].as_str().unwrap() {
            "ClusterRole" => drop(typed::<ClusterRole>(object)),
            "ClusterRoleBinding" => drop(typed::<ClusterRoleBinding>(object)),
            "CustomResourceDefinition" => drop(typed::<CustomResourceDefinition>(object)),
            "DaemonSet" => drop(typed::<DaemonSet>(object)),
            "Deployment" => drop(typed::<Deployment>(object)),
            "FlowSchema" => drop(typed::<FlowSchema>(object)),
            "Namespace" => drop(typed::<Namespace>(object)),
            "NetworkPolicy" => drop(typed::<NetworkPolicy>(object)),
            "ResourceQuota" => drop(typed::<ResourceQuota>(object)),
            "PodDisruptionBudget" => drop(typed::<PodDisruptionBudget>(object)),
            "PriorityClass" => drop(typed::<PriorityClass>(object)),
            "PersistentVolumeClaim" => drop(typed::<PersistentVolumeClaim>(object)),
            "Role" => drop(typed::<Role>(object)),
            "RoleBinding" => drop(typed::<RoleBinding>(object)),
            "Secret" => drop(typed::<Secret>(object)),
            "Service" => drop(typed::<Service>(object)),
            "ServiceAccount" => drop(typed::<ServiceAccount>(object)),
            "ValidatingAdmissionPolicy" => drop(typed::<ValidatingAdmissionPolicy>(object)),
            "ValidatingAdmissionPolicyBinding" => drop(typed::<ValidatingAdmissionPolicyBinding>(object)),
            "MutatingAdmissionPolicy" => drop(typed::<MutatingAdmissionPolicy>(&of_alpha(object))),
            "MutatingAdmissionPolicyBinding" => {
                drop(typed::<MutatingAdmissionPolicyBinding>(&of_alpha(object)));
            }
            "MutatingWebhookConfiguration" => drop(typed::<MutatingWebhookConfiguration>(object)),
            "ValidatingWebhookConfiguration" => drop(typed::<ValidatingWebhookConfiguration>(object)),
            "Certificate" | "Issuer" => super::cert_manager::check(object),
            "ServiceMonitor" | "PrometheusRule" => super::metrics_chart::check(object),
            other => panic!("the chart has a {other}: add the kind to this test"),
        }
    }
    objects.len()
}

/// An object of v1 as one of v1alpha1, which has the same fields: the types here are those of an older Kubernetes.
fn of_alpha(object: &Value) -> Value {
    assert_eq!(object["apiVersion"], "admissionregistration.k8s.io/v1");
    let mut object = object.clone();
    object["apiVersion"] = MutatingAdmissionPolicy::API_VERSION.into();
    object
}

#[test]
fn default_values() {
    let Some(text) = render(&[]) else { return };
    insta::assert_snapshot!("default_values", text);
    assert_eq!(check_types(&objects(&text)), 19);
}

#[test]
fn every_value() {
    let Some(text) =
        render(&["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"])
    else {
        return;
    };
    insta::assert_snapshot!("every_value", text);
    assert_eq!(check_types(&objects(&text)), 56);
}

#[test]
fn notes() {
    let Some(text) = render(&["--notes"]) else { return };
    insta::assert_snapshot!("notes", text);
}

#[test]
fn helm_finds_nothing_to_say() {
    let Some(output) = helm(&["lint", "charts/slotwright"]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn one_replica_has_no_disruption_budget_and_nothing_is_made_that_is_off() {
    let off = "replicas=1,history.enabled=true,history.tokenSecret=x,serviceAccount.create=false,serviceAccount.name=mine,rbac.create=false,rbac.aggregate=false,rbac.poolView=false,backfill.priorityClass=false,networkPolicy.enabled=false,admissionPolicy.enabled=false,flowSchema.enabled=false";
    let Some(text) = render(&["--set", off]) else { return };
    let objects = objects(&text);
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Deployment", "Service"], "the history is on");
    assert_eq!(objects[0]["spec"]["template"]["spec"]["serviceAccountName"], "mine");
}

/// Kubernetes never keeps a node from its own pods, so that the health port needs no rule.
#[test]
fn nobody_but_the_node_reaches_the_health_port() {
    let Some(text) = render(&[]) else { return };
    let policy: NetworkPolicy = find(&objects(&text), "slotwright");
    let spec = policy.spec.unwrap();
    assert_eq!(spec.policy_types.as_deref(), Some(&["Ingress".to_owned()][..]));
    let rules = spec.ingress.unwrap();
    let ports: Vec<_> = rules.iter().flat_map(|rule| rule.ports.iter().flatten()).collect();
    assert_eq!(ports.len(), 1);
    assert_eq!(ports[0].port, Some(IntOrString::String("metrics".to_owned())));
}

#[test]
fn backfill_pods_have_the_priority_class_that_the_operator_gives_them() {
    let Some(text) = render(&[]) else { return };
    let class: PriorityClass = find(&objects(&text), api::labels::BACKFILL_PRIORITY);
    assert!(class.value < 0, "every pod that says nothing goes before it");
    assert_eq!(class.preemption_policy.as_deref(), Some("Never"));
}

// --- permissions ---------------------------------------------------------------------------------------------------

/// The operator's permissions in the whole cluster, with a reason for each. The chart grants these and no others.
const PERMISSIONS: &[(&str, &[&str], &str)] = &[
    // (group/resource, verbs, reason)
    (
        "/nodes",
        &["get", "list", "watch"],
        "machines; get: whether one is gone before its pods are deleted by force",
    ),
    (
        "/pods",
        &["get", "list", "watch", "create", "patch", "delete"],
        "jobs run as pods; patch: the tracking finalizer, what the agent is to do",
    ),
    ("/pods/status", WRITE_STATUS, "a pod that is evicted says why: DisruptionTarget"),
    (
        "slotwright.dev/pods",
        &["mark"],
        "asked for by the admission policy: our labels, annotations, finalizers",
    ),
    ("events.k8s.io/events", &["create", "patch"], "an object's story; patch counts what is said again"),
    (
        "slotwright.dev/htcjobs",
        &["get", "list", "watch", "patch", "record"],
        "what to run; patch: the finalizer that holds a job until its claims are released; record: asked for by the admission policy",
    ),
    ("slotwright.dev/concurrencylimits", READ, "the admins' own"),
    ("slotwright.dev/drainrequests", READ, "the admins' own"),
    ("slotwright.dev/groupquotas", READ, "the admins' own"),
    ("slotwright.dev/nodepolicies", READ, "the admins' own"),
    ("slotwright.dev/negotiators", READ, "the admins' own"),
    ("slotwright.dev/submitpolicies", READ, "the admins' own"),
    (
        "slotwright.dev/nodereports",
        &["get", "list", "watch", "patch"],
        "the agents' own; patch: asking for a benchmark run",
    ),
    (
        "slotwright.dev/submitters",
        &["get", "list", "watch", "create", "delete"],
        "made when first seen, deleted when nothing needs them; the factors are the admins'",
    ),
    ("slotwright.dev/slots", OWN, "the operator's own"),
    ("slotwright.dev/partitionableslots", OWN, "the operator's own"),
    ("slotwright.dev/absentmachines", OWN, "the operator's own"),
    ("slotwright.dev/absentmachines/status", WRITE_STATUS, ""),
    ("slotwright.dev/concurrencylimits/status", WRITE_STATUS, ""),
    ("slotwright.dev/drainrequests/status", WRITE_STATUS, ""),
    ("slotwright.dev/groupquotas/status", WRITE_STATUS, ""),
    ("slotwright.dev/htcjobs/status", WRITE_STATUS, ""),
    ("slotwright.dev/negotiators/status", WRITE_STATUS, ""),
    ("slotwright.dev/nodepolicies/status", WRITE_STATUS, ""),
    ("slotwright.dev/partitionableslots/status", WRITE_STATUS, ""),
    ("slotwright.dev/slots/status", WRITE_STATUS, ""),
    ("slotwright.dev/submitpolicies/status", WRITE_STATUS, ""),
    ("slotwright.dev/submitters/status", WRITE_STATUS, ""),
];

/// Beside the above, in one namespace each: the leader's lease; the nodes' heartbeats and the mark of who owns the pool.
const LEADER: [(&str, &[&str]); 2] = [
    ("coordination.k8s.io/leases", &["create"]),
    ("coordination.k8s.io/leases/slotwright-operator", &["get", "update"]),
];
const HEARTBEATS: (&str, &[&str]) = ("coordination.k8s.io/leases", &["get", "list", "watch", "create"]);
const MARK: (&str, &[&str]) = ("coordination.k8s.io/leases/pool.slotwright.dev", &["update"]);

const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
const WRITE_STATUS: &[&str] = &["patch"];

/// The granted permissions, each as `group/resource verb`, or as `group/resource/name verb` if a rule names its
/// objects.
pub(super) fn granted(rules: Option<Vec<PolicyRule>>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for rule in rules.unwrap_or_default() {
        assert!(rule.non_resource_urls.is_none(), "{rule:?}: not in the list's form");
        let names = rule.resource_names.map_or_else(
            || vec![String::new()],
            |names| names.into_iter().map(|name| format!("/{name}")).collect(),
        );
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in &names {
                    all.extend(rule.verbs.iter().map(|verb| format!("{group}/{resource}{name} {verb}")));
                }
            }
        }
    }
    all
}

pub(super) fn listed<'a>(
    permissions: impl IntoIterator<Item = (&'a str, &'a [&'a str])>,
) -> BTreeSet<String> {
    permissions
        .into_iter()
        .flat_map(|(resource, verbs)| verbs.iter().map(move |verb| format!("{resource} {verb}")))
        .collect()
}

#[test]
fn the_operator_may_do_what_is_listed_and_nothing_else() {
    let Some(text) = render(&[]) else { return };
    let objects = objects(&text);
    let cluster: ClusterRole = find(&objects, "slotwright");
    assert_eq!(granted(cluster.rules), listed(PERMISSIONS.iter().map(|&(what, verbs, _)| (what, verbs))));
    let leader: Role = find(&objects, "slotwright-leader");
    assert_eq!(leader.metadata.namespace.as_deref(), Some("slotwright-system"));
    assert_eq!(granted(leader.rules), listed(LEADER));
    let heartbeats: Role = find(&objects, "slotwright-heartbeats");
    assert_eq!(heartbeats.metadata.namespace.as_deref(), Some("kube-node-lease"));
    assert_eq!(granted(heartbeats.rules), listed([HEARTBEATS, MARK]));
    assert!(MARK.0.ends_with(api::labels::POOL_LEASE));
}

/// The operator's rights on pods, in the namespaces of `rbac.jobNamespaces` alone.
const PODS: [(&str, &[&str]); 2] =
    [("/pods", &["create", "patch", "delete"]), ("/pods/status", WRITE_STATUS)];

#[test]
fn the_operator_may_write_pods_in_the_namespaces_alone_that_are_listed() {
    let arguments = ["--set", "rbac.jobNamespaces={alice,bob}"];
    let (Some(everywhere), Some(listed_only)) = (render(&[]), render(&arguments)) else { return };
    let (everywhere, listed_only) = (objects(&everywhere), objects(&listed_only));
    let cluster = |objects: &[Value]| granted(find::<ClusterRole>(objects, "slotwright").rules);
    let in_each = granted(find::<ClusterRole>(&listed_only, "slotwright-pods").rules);
    assert_eq!(in_each, listed(PODS));
    assert_eq!(cluster(&everywhere), cluster(&listed_only).union(&in_each).cloned().collect());
    assert!(cluster(&listed_only).is_disjoint(&in_each));
    let bindings = listed_only.iter().filter(|object| object["kind"] == "RoleBinding");
    let bindings = bindings.filter(|object| object["metadata"]["name"] == "slotwright-pods");
    let namespaces: Vec<&str> =
        bindings.filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    assert_eq!(namespaces, ["alice", "bob"]);
}

#[test]
fn bindings_name_the_account_that_runs() {
    let own_certificate = ["--set", "webhook.certManager.enabled=false"];
    let arguments = ["--values", "charts/slotwright/ci/all-values.yaml", "--namespace", "hpc"];
    let Some(text) = render(&[&arguments[..], &own_certificate].concat()) else { return };
    let objects = objects(&text);
    let subjects = objects
        .iter()
        .filter(|object| object["kind"].as_str().is_some_and(|kind| kind.ends_with("RoleBinding")))
        .filter(|object| object["metadata"]["name"] != "physics-pool-pool-view")
        .filter(|object| object["metadata"]["name"] != "physics-pool-agent")
        .filter(|object| object["metadata"]["name"] != "physics-pool-history-reader")
        .map(|object| &object["subjects"][0]);
    let mut count = 0;
    for subject in subjects {
        assert_eq!((&subject["name"], &subject["namespace"]), (&"pool-operator".into(), &"hpc".into()));
        count += 1;
    }
    assert_eq!(count, 8);
}

// --- the pod -------------------------------------------------------------------------------------------------------

/// The points of Pod Security "restricted" that concern this pod.
fn assert_restricted(pod: &PodSpec) {
    let security = pod.security_context.as_ref().unwrap();
    assert_eq!(security.run_as_non_root, Some(true));
    assert!(security.run_as_user.is_some_and(|user| user > 0));
    assert_eq!(security.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault");
    assert!(pod.host_network.is_none() && pod.host_pid.is_none());
    let takes = |volume: &Volume| {
        volume.secret.is_some() || volume.empty_dir.is_some() || volume.persistent_volume_claim.is_some()
    };
    assert!(pod.volumes.iter().flatten().all(takes));
    let container = pod.containers[0].security_context.as_ref().unwrap();
    assert_eq!(container.allow_privilege_escalation, Some(false));
    assert_eq!(container.read_only_root_filesystem, Some(true));
    assert_eq!(container.capabilities.as_ref().unwrap().drop.as_deref(), Some(&["ALL".to_owned()][..]));
}

#[test]
fn the_pod_is_restricted_and_probed() {
    for arguments in
        [&[][..], &["--values", "charts/slotwright/ci/all-values.yaml", "--name", "physics-pool"]]
    {
        let Some(text) = render(arguments) else { return };
        let name = if arguments.is_empty() { "slotwright" } else { "physics-pool" };
        let deployment: Deployment = find(&objects(&text), name);
        let spec = deployment.spec.unwrap();
        let labels = spec.template.metadata.unwrap().labels.unwrap();
        assert!(
            spec.selector.match_labels.unwrap().iter().all(|(key, value)| labels.get(key) == Some(value))
        );
        let pod = spec.template.spec.unwrap();
        assert_restricted(&pod);
        let container = &pod.containers[0];
        for (probe, path) in [(&container.liveness_probe, "/livez"), (&container.readiness_probe, "/readyz")]
        {
            let get = probe.as_ref().unwrap().http_get.as_ref().unwrap();
            assert_eq!(get.path.as_deref(), Some(path));
        }
        assert!(
            container
                .args
                .iter()
                .flatten()
                .any(|argument| argument == "--leader-elect-namespace=$(POD_NAMESPACE)")
        );
    }
}

/// Two pods cannot write one history, nor mount a volume that is one pod's.
#[test]
fn a_history_on_one_pods_volume_has_one_pod_at_a_time() {
    let set = |more: &str| format!("history.enabled=true,history.tokenSecret=token,replicas=1{more}");
    let claimed = ",history.persistence.enabled=true,history.persistence.existingClaim=mine";
    for (set, strategy, claim) in
        [(set(""), Some("RollingUpdate"), None), (set(claimed), Some("Recreate"), Some("mine"))]
    {
        let Some(text) = render(&["--set", &set]) else { return };
        let objects = objects(&text);
        assert!(objects.iter().all(|object| object["kind"] != "PersistentVolumeClaim"));
        let spec = find::<Deployment>(&objects, "slotwright").spec.unwrap();
        assert_eq!(spec.strategy.and_then(|strategy| strategy.type_).as_deref(), strategy);
        let volumes = spec.template.spec.unwrap().volumes.unwrap();
        let history = volumes.iter().find(|volume| volume.name == "history").unwrap();
        let found = history.persistent_volume_claim.as_ref().map(|found| found.claim_name.as_str());
        assert_eq!((found, history.empty_dir.is_some()), (claim, claim.is_none()));
        let reader: Role = find(&objects, "slotwright-history-reader");
        let proxy = ("/services/proxy/slotwright-history:history", &["get"][..]);
        assert_eq!(granted(reader.rules), listed([proxy, ("/secrets/token", &["get"][..])]));
    }
}

// --- what is derived -----------------------------------------------------------------------------------------------

#[test]
fn kustomize_base_is_the_chart() {
    let base = objects(&read("deploy/base/slotwright.yaml"));
    check_types(&base);
    let Some(text) = render(&[]) else { return };
    let mut chart = objects(&text);
    for object in &mut chart {
        strip_helm_labels(object);
    }
    assert_eq!(base, chart, "run make crds");
}

fn strip_helm_labels(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "helm.sh/chart" && name != "app.kubernetes.io/managed-by");
            fields.values_mut().for_each(strip_helm_labels);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_helm_labels),
        _ => {}
    }
}

/// The texts of the manifests in `crds/`, by file name.
fn definitions() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(root().join("crds")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name != "Kustomization")
        .map(|name| {
            let text = read(&format!("crds/{name}"));
            (name, text)
        })
        .collect()
}

/// The resources that a kustomization lists.
fn resources(kustomization: &str) -> Vec<String> {
    let kustomization = objects(&read(kustomization)).pop().unwrap();
    serde_json::from_value(kustomization["resources"].clone()).unwrap()
}

#[test]
fn kustomize_takes_every_definition_from_where_it_is_generated() {
    let definitions = definitions();
    assert!(resources("crds/Kustomization").iter().eq(definitions.keys()));
    for text in definitions.values() {
        check_types(&objects(text));
    }
    assert_eq!(
        resources("deploy/base/kustomization.yaml"),
        ["namespace.yaml", "../../crds", "slotwright.yaml"]
    );
    check_types(&objects(&read("deploy/base/namespace.yaml")));
}

/// The chart's `crds` is a link, which Helm follows. kustomize's file in there is no definition.
#[test]
fn a_package_of_the_chart_has_every_definition_and_no_link() {
    let Some(output) = helm(&["package", "charts/slotwright"]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let packed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected: BTreeMap<String, String> =
        definitions().into_iter().map(|(name, text)| (format!("crds/{name}"), text)).collect();
    let files: BTreeMap<String, String> = serde_json::from_value(packed["files"].clone()).unwrap();
    assert!(files.into_iter().filter(|(name, _)| name.starts_with("crds/")).eq(expected.clone()));
    let installed: BTreeSet<String> = serde_json::from_value(packed["definitions"].clone()).unwrap();
    assert!(installed.iter().eq(expected.keys()), "{installed:?}");
}

#[test]
fn versions_agree() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = read("charts/slotwright/Chart.yaml");
    assert!(chart.contains(&format!("appVersion: \"{version}\"")), "Chart.yaml: appVersion is not {version}");
    let toolchain = read("rust-toolchain.toml");
    let channel =
        toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
    assert!(
        read("Dockerfile").contains(&format!("ARG RUST_VERSION={channel}\n")),
        "Dockerfile: not Rust {channel}"
    );
}
