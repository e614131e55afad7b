//! `AbsentMachine`: a machine whose node went, and that stays listed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A machine whose node was deleted, and that its NodePolicy wants to see in the list of absent machines
/// (ABSENT_REQUIREMENTS). The object has the name of the node. The operator makes the object, and deletes it when the node is
/// back or after ABSENT_EXPIRE_ADS_AFTER. Whoever deletes the object earlier has the machine forgotten.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "AbsentMachine",
    plural = "absentmachines",
    singular = "absentmachine",
    shortname = "absent",
    category = "slotwright",
    doc = "A machine whose node was deleted, and that stays listed.",
    status = "AbsentMachineStatus",
    derive = "PartialEq",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node"),
    printcolumn(
        name = "Absent",
        type_ = "date",
        json_path = ".status.since",
        description = "How long ago the node went."
    ),
    printcolumn(
        name = "Until",
        type_ = "string",
        json_path = ".status.until",
        description = "When the machine is forgotten."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AbsentMachineSpec {
    /// The node.
    #[schemars(length(min = 1, max = 253))]
    pub node: String,
}

/// Since when the machine is absent, and the last ads of its slots.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbsentMachineStatus {
    /// When the node went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub since: Option<Time>,
    /// When the machine is forgotten. Unset: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub until: Option<Time>,
    /// The machine's slots, as they were when the node went: up to 1 MiB of ads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<AbsentSlot>,
}

/// A slot of an absent machine.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct AbsentSlot {
    /// HTCondor's name of the slot, such as slot1@node7.
    pub name: String,
    /// The slot's last ad, as condor_status -long prints an ad.
    pub ad: String,
}
