//! Nodes into machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeCondition, Taint as KubeTaint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};

use super::sighting::told;
use super::{Names, News, Stage, Watched};
use crate::cache::Kind;
use crate::convert::millis;
use answers::Item;
use model::pool::{Capacity, Event, MachineFacts, PODS, System, Taint};

/// The part of a node that the operator reads. Whole nodes are many times larger.
#[derive(kube::Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = "k8s_openapi::api::core::v1::Node")]
pub struct SlimNode {
    /// Standard metadata.
    pub metadata: ObjectMeta,
    /// The settings of admins.
    #[serde(default)]
    pub spec: SlimNodeSpec,
    /// The state that the kubelet reports.
    #[serde(default)]
    pub status: SlimNodeStatus,
}

/// The part of a node's spec that the operator reads.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub struct SlimNodeSpec {
    /// Cordoned.
    #[serde(default)]
    pub unschedulable: bool,
    /// Taints.
    #[serde(default)]
    pub taints: Vec<KubeTaint>,
}

/// The part of a node's status that the operator reads.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub struct SlimNodeStatus {
    /// The resources that pods may use.
    #[serde(default)]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Conditions, among them Ready.
    #[serde(default)]
    pub conditions: Vec<NodeCondition>,
    /// The operating system of the node.
    #[serde(default, rename = "nodeInfo")]
    pub node_info: SlimNodeInfo,
}

/// The part of a node's system information that the operator reads.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct SlimNodeInfo {
    /// The name of the operating system, such as `Ubuntu 24.04.1 LTS`.
    #[serde(default)]
    pub os_image: String,
    /// The version of the kernel, such as `6.8.0-45-generic`.
    #[serde(default)]
    pub kernel_version: String,
}

impl Watched for SlimNode {
    type Object = Self;
    type Kept = ();
    const KIND: Kind = Kind::of(&("Node", "nodes"));
    const STAGE: Stage = Stage::Machines;

    fn api(client: Client) -> Api<Item<Self>> {
        Api::all(client)
    }

    fn keep(_: &Self, _: Option<&()>) {}

    /// A node that a new leader cannot decode is there, and its pods may run: the node counts as a machine that has nothing
    /// to offer.
    fn taken_for(metadata: ObjectMeta) -> Option<Self> {
        Some(Self { metadata, spec: SlimNodeSpec::default(), status: SlimNodeStatus::default() })
    }

    fn there(node: Self, (): &()) -> Vec<News> {
        told(facts(&node).map(Event::Machine))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::MachineGone(names.name.as_str().into()))
    }
}

/// Taints that only repeat the node's conditions and its cordon.
const IMPLIED: &[&str] =
    &["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"];

/// The beginnings of names of resources that Kubernetes counts itself, and that slots do not have.
pub(super) const NOT_OFFERED: [&str; 3] = ["attachable-volumes-", "hugepages-", "kubernetes.io/"];

/// Whether a resource is one besides CPU, memory and storage: a device, or the number of pods that the kubelet takes.
fn is_extended(name: &str) -> bool {
    if name == PODS {
        return true;
    }
    name.contains('/') && !NOT_OFFERED.iter().any(|beginning| name.starts_with(beginning))
}

/// The pool's facts of a node. Amounts that cannot be read count as nothing.
pub fn facts(node: &SlimNode) -> Option<MachineFacts> {
    let name = node.metadata.name.clone()?;
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let amount = |key: &str| node.status.allocatable.get(key).and_then(|q| millis(q).ok()).unwrap_or(0);
    let extended = node
        .status
        .allocatable
        .keys()
        .filter(|name| is_extended(name))
        .map(|name| (Arc::from(name.as_str()), amount(name) / 1000))
        .collect();
    let label = |key: &str, otherwise: &str| labels.get(key).map_or(otherwise, String::as_str).into();
    Some(MachineFacts {
        name: name.into(),
        arch: label("kubernetes.io/arch", "amd64"),
        os: label("kubernetes.io/os", "linux"),
        allocatable: Capacity {
            milli_cpu: amount("cpu"),
            memory: amount("memory") / 1000,
            disk: amount("ephemeral-storage") / 1000,
            extended,
        },
        ready: node.metadata.deletion_timestamp.is_none()
            && node.status.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        cordoned: node.spec.unschedulable,
        taints: node.spec.taints.iter().filter(|taint| keeps_away(taint)).map(taint).collect(),
        labels: Arc::new(labels),
        system: System {
            image: node.status.node_info.os_image.as_str().into(),
            kernel: node.status.node_info.kernel_version.as_str().into(),
        },
    })
}

fn keeps_away(taint: &KubeTaint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !IMPLIED.contains(&taint.key.as_str())
}

fn taint(taint: &KubeTaint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: taint.effect.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_cannot_be_decoded_is_there_and_offers_nothing() {
        let metadata = ObjectMeta { name: Some("n1".into()), ..ObjectMeta::default() };
        let facts = SlimNode::taken_for(metadata).as_ref().and_then(facts).unwrap();
        assert_eq!((&facts.name, facts.ready), (&"n1".into(), false));
        assert_eq!(facts.allocatable, Capacity::default());
    }

    #[test]
    fn a_node_becomes_a_machine() {
        let object = serde_json::json!({
            "metadata": {"name": "n1", "labels": {"kubernetes.io/arch": "arm64", "zone": "a"}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
                {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "7900m", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110",
                                "nvidia.com/gpu": "4", "hugepages-2Mi": "0"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"osImage": "Ubuntu 24.04.1 LTS", "kernelVersion": "6.8.0-45-generic", "bootID": "x"}}
        });
        let facts = facts(&serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!(facts.allocatable.milli_cpu, 7900);
        assert_eq!(facts.allocatable.memory, 32 << 30);
        assert_eq!(
            facts.allocatable.extended.iter().map(|(k, v)| (&**k, *v)).collect::<Vec<_>>(),
            [("nvidia.com/gpu", 4), ("pods", 110)]
        );
        assert!(facts.ready && facts.cordoned);
        assert_eq!(facts.taints.iter().map(|t| t.key.as_str()).collect::<Vec<_>>(), ["dedicated"]);
        assert_eq!(&*facts.arch, "arm64");
        assert_eq!((&*facts.system.image, &*facts.system.kernel), ("Ubuntu 24.04.1 LTS", "6.8.0-45-generic"));
    }

    #[test]
    fn a_node_without_a_ready_condition_is_not_ready() {
        let facts =
            super::facts(&serde_json::from_value(serde_json::json!({"metadata": {"name": "n1"}})).unwrap())
                .unwrap();
        assert!(!facts.ready);
        assert_eq!(facts.allocatable, Capacity::default());
    }
}
