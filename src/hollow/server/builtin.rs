//! The table of the built-in kinds.

use kube::core::GroupVersionKind;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use kube_schema::{Columns, Shape};

use k8s_openapi::api as k;

use super::resource::{Normalize, Resource, ScalePaths, StorageId};
use super::selectors::SelectableField;

/// The properties of a kind in the table.
#[allow(clippy::struct_excessive_bools, reason = "five independent yes-or-no columns of a table")]
#[derive(Default, Clone, Copy)]
struct Traits {
    cluster: bool,
    status: bool,
    generation: bool,
    scale: bool,
    all: bool,
}

const NAMESPACED: Traits =
    Traits { cluster: false, status: false, generation: false, scale: false, all: false };
const CLUSTER: Traits = Traits { cluster: true, ..NAMESPACED };
const CLUSTER_STATUS: Traits = Traits { status: true, ..CLUSTER };
const STATUS: Traits = Traits { status: true, ..NAMESPACED };
const COUNTED: Traits = Traits { generation: true, ..STATUS };
const IN_ALL: Traits = Traits { all: true, ..COUNTED };
const SCALED: Traits = Traits { scale: true, ..IN_ALL };

struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    traits: Traits,
    normalize: Option<Normalize>,
}

fn normalize<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let typed = T::deserialize(value).map_err(|e| e.to_string())?;
    serde_json::to_value(&typed).map_err(|e| e.to_string())
}

fn row<T: DeserializeOwned + Serialize>(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    traits: Traits,
) -> Row {
    Row { group, kind, plural, short, traits, normalize: Some(normalize::<T>) }
}

fn rows() -> Vec<Row> {
    use k::{apps::v1 as apps, batch::v1 as batch, core::v1 as core, rbac::v1 as rbac};
    vec![
        row::<core::ConfigMap>("", "ConfigMap", "configmaps", &["cm"], NAMESPACED),
        row::<core::Endpoints>("", "Endpoints", "endpoints", &["ep"], NAMESPACED),
        row::<core::Event>("", "Event", "events", &["ev"], NAMESPACED),
        row::<core::LimitRange>("", "LimitRange", "limitranges", &["limits"], NAMESPACED),
        row::<core::Namespace>("", "Namespace", "namespaces", &["ns"], CLUSTER_STATUS),
        row::<core::Node>("", "Node", "nodes", &["no"], CLUSTER_STATUS),
        row::<core::PersistentVolumeClaim>(
            "",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            &["pvc"],
            STATUS,
        ),
        row::<core::Pod>("", "Pod", "pods", &["po"], IN_ALL),
        row::<core::ResourceQuota>("", "ResourceQuota", "resourcequotas", &["quota"], STATUS),
        row::<core::Secret>("", "Secret", "secrets", &[], NAMESPACED),
        row::<core::ServiceAccount>("", "ServiceAccount", "serviceaccounts", &["sa"], NAMESPACED),
        row::<core::Service>("", "Service", "services", &["svc"], Traits { all: true, ..STATUS }),
        row::<k::events::v1::Event>("events.k8s.io", "Event", "events", &["ev"], NAMESPACED),
        row::<k::coordination::v1::Lease>("coordination.k8s.io", "Lease", "leases", &[], NAMESPACED),
        row::<apps::DaemonSet>("apps", "DaemonSet", "daemonsets", &["ds"], IN_ALL),
        row::<apps::Deployment>("apps", "Deployment", "deployments", &["deploy"], SCALED),
        row::<apps::ReplicaSet>("apps", "ReplicaSet", "replicasets", &["rs"], SCALED),
        row::<apps::StatefulSet>("apps", "StatefulSet", "statefulsets", &["sts"], SCALED),
        row::<batch::CronJob>("batch", "CronJob", "cronjobs", &["cj"], IN_ALL),
        row::<batch::Job>("batch", "Job", "jobs", &[], IN_ALL),
        row::<rbac::ClusterRole>("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", &[], CLUSTER),
        row::<rbac::ClusterRoleBinding>(
            "rbac.authorization.k8s.io",
            "ClusterRoleBinding",
            "clusterrolebindings",
            &[],
            CLUSTER,
        ),
        row::<rbac::Role>("rbac.authorization.k8s.io", "Role", "roles", &[], NAMESPACED),
        row::<rbac::RoleBinding>("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", &[], NAMESPACED),
        row::<k::policy::v1::PodDisruptionBudget>(
            "policy",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            &["pdb"],
            COUNTED,
        ),
        row::<k::scheduling::v1::PriorityClass>(
            "scheduling.k8s.io",
            "PriorityClass",
            "priorityclasses",
            &["pc"],
            CLUSTER,
        ),
        row::<k::networking::v1::NetworkPolicy>(
            "networking.k8s.io",
            "NetworkPolicy",
            "networkpolicies",
            &["netpol"],
            Traits { generation: true, ..NAMESPACED },
        ),
        row::<k::admissionregistration::v1::MutatingWebhookConfiguration>(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            &[],
            Traits { generation: true, ..CLUSTER },
        ),
        row::<k::admissionregistration::v1::ValidatingWebhookConfiguration>(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            &[],
            Traits { generation: true, ..CLUSTER },
        ),
        // crd.rs checks CRDs. They are not normalized: the Rust type does not have everything that a schema may have.
        Row {
            group: "apiextensions.k8s.io",
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
            short: &["crd", "crds"],
            traits: Traits { generation: true, ..CLUSTER_STATUS },
            normalize: None,
        },
    ]
}

/// All built-in resources, each in version v1.
pub(super) fn resources() -> Vec<Resource> {
    rows().iter().map(resource).collect()
}

fn resource(row: &Row) -> Resource {
    let gvk = GroupVersionKind::gvk(row.group, "v1", row.kind);
    // Both Event APIs serve the same objects, which are stored in the form of the core API.
    let home = if row.kind == "Event" { "" } else { row.group };
    let storage_api_version = if home.is_empty() { "v1".to_owned() } else { format!("{home}/v1") };
    let path = |text: &str| -> Vec<String> { text.split('.').map(str::to_owned).collect() };
    let mut categories = Vec::new();
    if row.traits.all {
        categories.push("all".to_owned());
    }
    if row.group == "apiextensions.k8s.io" || row.group == "admissionregistration.k8s.io" {
        categories.push("api-extensions".to_owned());
    }
    Resource {
        group: row.group.to_owned(),
        version: "v1".to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: row.short.iter().map(|s| (*s).to_owned()).collect(),
        categories,
        namespaced: !row.traits.cluster,
        status: row.traits.status,
        generation: row.traits.generation,
        scale: row.traits.scale.then(|| ScalePaths {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: None,
        }),
        storage: StorageId::new(home, row.plural),
        storage_api_version,
        shape: Shape::built_in(&gvk),
        columns: Columns::built_in(&gvk),
        selectable: selectable(row.kind),
        custom: None,
        normalize: row.normalize,
    }
}

fn selectable(kind: &str) -> Vec<SelectableField> {
    let plain = |labels: &[&str]| labels.iter().map(|l| SelectableField::plain(l)).collect();
    match kind {
        "Pod" => plain(&[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ]),
        "Node" => plain(&["spec.unschedulable"]),
        "Namespace" => plain(&["status.phase"]),
        "Secret" => plain(&["type"]),
        "Job" => plain(&["status.successful"]),
        "ReplicaSet" => plain(&["status.replicas"]),
        "Service" => plain(&["spec.clusterIP", "spec.type"]),
        "Event" => event_fields(),
        _ => Vec::new(),
    }
}

fn event_fields() -> Vec<SelectableField> {
    let mut fields = Vec::new();
    for part in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] {
        let path = format!("involvedObject.{part}");
        fields.push(SelectableField::plain(&path));
        fields.push(SelectableField::renamed(&format!("regarding.{part}"), &[&path]));
    }
    fields.push(SelectableField::plain("reason"));
    fields.push(SelectableField::plain("type"));
    fields.push(SelectableField::renamed("source", &["source.component", "reportingComponent"]));
    fields.push(SelectableField::renamed("reportingComponent", &["reportingComponent"]));
    fields.push(SelectableField::renamed("reportingController", &["reportingComponent"]));
    fields
}
