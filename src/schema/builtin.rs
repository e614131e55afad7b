//! The schemas of the built-in kinds, from k8s-openapi, with the merge rules of the Kubernetes API added.
//!
//! The schemas of k8s-openapi have fields and descriptions, but not the extensions `x-kubernetes-list-*` and
//! `x-kubernetes-patch-*`. [`MERGE_RULES`] adds these for the types that are served here. The schemas are built once, on
//! first use.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::Resource;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schemas of the built-in kinds.
pub(super) struct BuiltIns {
    /// The definitions by k8s-openapi's name, such as `io.k8s.api.core.v1.Pod`. References have the form
    /// `#/definitions/<name>`.
    pub(super) definitions: BTreeMap<String, Value>,
    /// The names of the definitions by group, version and kind.
    kinds: BTreeMap<(&'static str, &'static str, &'static str), String>,
}

impl BuiltIns {
    /// The name of the definition of a kind; `None` if the kind is not built in.
    pub(super) fn name(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        let mut all = self.kinds.iter();
        all.find(|(id, _)| **id == (group, version, kind)).map(|(_, name)| name.as_str())
    }
}

/// All built-in schemas.
pub(super) static BUILT_INS: LazyLock<BuiltIns> = LazyLock::new(build);

/// The name of the definition of a list's `metadata`.
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// The name of the definition of an object's `metadata`.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

struct Builder {
    generator: schemars::SchemaGenerator,
    kinds: BTreeMap<(&'static str, &'static str, &'static str), String>,
}

impl Builder {
    fn kind<T: JsonSchema + Resource>(&mut self) {
        self.generator.subschema_for::<T>();
        self.kinds.insert((T::GROUP, T::VERSION, T::KIND), T::schema_name().into_owned());
    }
}

macro_rules! kinds {
    ($builder:ident: $($module:path { $($kind:ident),* $(,)? })*) => {
        $({ use $module as module; $($builder.kind::<module::$kind>();)* })*
    };
}

fn build() -> BuiltIns {
    let mut settings = SchemaSettings::openapi3();
    settings.definitions_path = "/definitions".into();
    settings.transforms.clear();
    let mut builder = Builder { generator: settings.into_generator(), kinds: BTreeMap::new() };
    add_kinds(&mut builder);
    let mut definitions: BTreeMap<String, Value> =
        builder.generator.take_definitions(false).into_iter().collect();
    for (name, rules) in MERGE_RULES {
        if let Some(definition) = definitions.get_mut(&full_name(name)) {
            rules.iter().for_each(|(field, rule)| rule.add_to(definition, field));
        }
    }
    for name in ATOMIC_TYPES {
        if let Some(Value::Object(definition)) = definitions.get_mut(&full_name(name)) {
            definition.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
    }
    for port in ["core.v1.ContainerPort", "core.v1.ServicePort"] {
        let protocol =
            definitions.get_mut(&full_name(port)).and_then(|d| d.pointer_mut("/properties/protocol"));
        if let Some(Value::Object(protocol)) = protocol {
            protocol.insert("default".into(), "TCP".into());
        }
    }
    // A value of this type may be any JSON value, but k8s-openapi says that it is an object.
    let any = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";
    if let Some(Value::Object(definition)) = definitions.get_mut(any) {
        definition.remove("type");
    }
    BuiltIns { definitions, kinds: builder.kinds }
}

fn add_kinds(b: &mut Builder) {
    use k8s_openapi::{api, apiextensions_apiserver};
    kinds! { b:
        api::core::v1 {
            Binding, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume,
            PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service,
            ServiceAccount,
        }
        api::apps::v1 { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet }
        api::authentication::v1 { SelfSubjectReview, TokenReview }
        api::authorization::v1 {
            LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
        }
        api::autoscaling::v1 { HorizontalPodAutoscaler, Scale }
        api::batch::v1 { CronJob, Job }
        api::coordination::v1 { Lease }
        api::discovery::v1 { EndpointSlice }
        api::networking::v1 { Ingress, NetworkPolicy }
        api::policy::v1 { Eviction, PodDisruptionBudget }
        api::rbac::v1 { ClusterRole, ClusterRoleBinding, Role, RoleBinding }
        api::scheduling::v1 { PriorityClass }
        api::storage::v1 { CSINode, StorageClass }
        api::admissionregistration::v1 { MutatingWebhookConfiguration, ValidatingWebhookConfiguration }
        apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
    }
    b.kind::<api::events::v1::Event>();
    b.generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta>();
}

fn full_name(short: &str) -> String {
    if short.starts_with("meta.") {
        format!("io.k8s.apimachinery.pkg.apis.{short}")
    } else if short.starts_with("apiextensions.") {
        format!("io.k8s.apiextensions-apiserver.pkg.apis.{short}")
    } else {
        format!("io.k8s.api.{short}")
    }
}

/// How a field merges.
enum Rule {
    /// An associative list, with the keys for server-side apply and the key for strategic merge patch.
    Map(&'static [&'static str], &'static str),
    /// As `Map`; in addition, a strategic merge patch may say which fields of an item to keep (`merge,retainKeys`).
    MapRetain(&'static [&'static str], &'static str),
    /// A list that is associative in server-side apply only, with its keys.
    ApplyMap(&'static [&'static str]),
    /// A list that is atomic in server-side apply, and that a strategic merge patch merges by this key.
    PatchMap(&'static str),
    /// A list of distinct scalars, which both merge.
    Set,
    /// An object of which a strategic merge patch may say which fields to keep.
    RetainKeys,
    /// An object that a manager owns as a whole.
    AtomicMap,
}

impl Rule {
    fn add_to(&self, definition: &mut Value, field: &str) {
        let Some(Value::Object(schema)) = definition.pointer_mut(&format!("/properties/{field}")) else {
            return;
        };
        match self {
            Self::Map(keys, key) => {
                list_map(schema, keys);
                patch(schema, "merge", Some(key));
            }
            Self::MapRetain(keys, key) => {
                list_map(schema, keys);
                patch(schema, "merge,retainKeys", Some(key));
            }
            Self::ApplyMap(keys) => list_map(schema, keys),
            Self::PatchMap(key) => {
                schema.insert("x-kubernetes-list-type".into(), "atomic".into());
                patch(schema, "merge", Some(key));
            }
            Self::Set => {
                schema.insert("x-kubernetes-list-type".into(), "set".into());
                patch(schema, "merge", None);
            }
            Self::RetainKeys => patch(schema, "retainKeys", None),
            Self::AtomicMap => drop(schema.insert("x-kubernetes-map-type".into(), "atomic".into())),
        }
    }
}

fn list_map(schema: &mut Map<String, Value>, keys: &[&str]) {
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
}

fn patch(schema: &mut Map<String, Value>, strategy: &str, key: Option<&str>) {
    schema.insert("x-kubernetes-patch-strategy".into(), strategy.into());
    if let Some(key) = key {
        schema.insert("x-kubernetes-patch-merge-key".into(), key.into());
    }
}

use Rule::{ApplyMap, AtomicMap, Map as M, MapRetain, PatchMap, RetainKeys, Set};

type Rules = (&'static str, &'static [(&'static str, Rule)]);

/// The rules of containers and of ephemeral containers.
macro_rules! container {
    ($name:literal) => {
        (
            $name,
            &[
                ("env", M(&["name"], "name")),
                ("ports", M(&["containerPort", "protocol"], "containerPort")),
                ("volumeMounts", M(&["mountPath"], "mountPath")),
                ("volumeDevices", M(&["devicePath"], "devicePath")),
            ],
        )
    };
}

/// The rule of `status.conditions`.
macro_rules! conditions {
    ($name:literal) => {
        ($name, &[("conditions", M(&["type"], "type"))])
    };
}

/// The merge rules of fields of built-in types, from the OpenAPI document that Kubernetes publishes. Lists without a rule
/// are atomic; maps without a rule are granular.
const MERGE_RULES: &[Rules] = &[
    ("meta.v1.ObjectMeta", &[("finalizers", Set), ("ownerReferences", M(&["uid"], "uid"))]),
    (
        "core.v1.PodSpec",
        &[
            ("containers", M(&["name"], "name")),
            ("initContainers", M(&["name"], "name")),
            ("ephemeralContainers", M(&["name"], "name")),
            ("volumes", MapRetain(&["name"], "name")),
            ("imagePullSecrets", M(&["name"], "name")),
            ("hostAliases", M(&["ip"], "ip")),
            ("topologySpreadConstraints", M(&["topologyKey", "whenUnsatisfiable"], "topologyKey")),
            ("schedulingGates", M(&["name"], "name")),
            ("resourceClaims", MapRetain(&["name"], "name")),
            ("nodeSelector", AtomicMap),
        ],
    ),
    container!("core.v1.Container"),
    container!("core.v1.EphemeralContainer"),
    ("core.v1.ResourceRequirements", &[("claims", ApplyMap(&["name"]))]),
    (
        "core.v1.PodStatus",
        &[
            ("conditions", M(&["type"], "type")),
            ("podIPs", M(&["ip"], "ip")),
            ("hostIPs", PatchMap("ip")),
            ("resourceClaimStatuses", MapRetain(&["name"], "name")),
        ],
    ),
    ("core.v1.NodeSpec", &[("podCIDRs", Set)]),
    ("core.v1.NodeStatus", &[("conditions", M(&["type"], "type")), ("addresses", M(&["type"], "type"))]),
    conditions!("core.v1.NamespaceStatus"),
    conditions!("core.v1.PersistentVolumeClaimStatus"),
    conditions!("core.v1.ReplicationControllerStatus"),
    ("core.v1.ServiceSpec", &[("ports", M(&["port", "protocol"], "port")), ("selector", AtomicMap)]),
    conditions!("core.v1.ServiceStatus"),
    ("core.v1.ServiceAccount", &[("secrets", M(&["name"], "name"))]),
    ("apps.v1.DeploymentSpec", &[("strategy", RetainKeys)]),
    conditions!("apps.v1.DeploymentStatus"),
    conditions!("apps.v1.DaemonSetStatus"),
    conditions!("apps.v1.ReplicaSetStatus"),
    conditions!("apps.v1.StatefulSetStatus"),
    ("batch.v1.JobStatus", &[("conditions", PatchMap("type"))]),
    conditions!("policy.v1.PodDisruptionBudgetStatus"),
    ("storage.v1.CSINodeSpec", &[("drivers", M(&["name"], "name"))]),
    ("apiextensions.v1.CustomResourceDefinitionStatus", &[("conditions", ApplyMap(&["type"]))]),
    ("admissionregistration.v1.MutatingWebhookConfiguration", &[("webhooks", M(&["name"], "name"))]),
    ("admissionregistration.v1.ValidatingWebhookConfiguration", &[("webhooks", M(&["name"], "name"))]),
];

/// The types whose values a manager owns as a whole (`+structType=atomic`).
const ATOMIC_TYPES: &[&str] = &[
    "core.v1.ConfigMapKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.ScopeSelector",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TopologySelectorTerm",
    "core.v1.TypedLocalObjectReference",
    "meta.v1.LabelSelector",
    "meta.v1.OwnerReference",
    "networking.v1.IngressClassParametersReference",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_names_a_type_and_a_field_that_exist() {
        for (name, rules) in MERGE_RULES {
            let definition = BUILT_INS.definitions.get(&full_name(name)).unwrap_or_else(|| panic!("{name}"));
            for (field, _) in *rules {
                assert!(definition.pointer(&format!("/properties/{field}")).is_some(), "{name}.{field}");
            }
        }
        let absent: Vec<_> = ATOMIC_TYPES
            .iter()
            .filter(|name| !BUILT_INS.definitions.contains_key(&full_name(name)))
            .collect();
        assert!(
            absent.iter().all(|name| name.contains("IngressClass") || name.contains("TopologySelectorTerm")),
            "{absent:?}"
        );
    }

    #[test]
    fn kinds_are_found_by_group_version_kind() {
        assert_eq!(BUILT_INS.name("", "v1", "Pod"), Some("io.k8s.api.core.v1.Pod"));
        assert_eq!(BUILT_INS.name("events.k8s.io", "v1", "Event"), Some("io.k8s.api.events.v1.Event"));
        assert_eq!(BUILT_INS.name("", "v1", "Nonsense"), None);
    }
}
