//! `PartitionableSlot`: what a node offers, and what is left of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::common::{SlotActivity, SlotResources, SlotState};
use super::schema;

/// A partitionable slot: dynamic slots are carved from it for jobs and return to it. The operator writes one for each
/// node, unless a NodePolicy lays out other slots.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "PartitionableSlot",
    plural = "partitionableslots",
    singular = "partitionableslot",
    shortname = "pslot",
    shortname = "pslots",
    category = "slotwright",
    doc = "A partitionable slot: dynamic slots are carved from it for jobs and return to it.",
    status = "PartitionableSlotStatus",
    derive = "PartialEq",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(
        name = "Cpus",
        type_ = "integer",
        json_path = ".status.total.cpus",
        description = "CPUs of the whole slot."
    ),
    printcolumn(
        name = "Free",
        type_ = "integer",
        json_path = ".status.available.cpus",
        description = "CPUs not carved."
    ),
    printcolumn(name = "MemMiB", type_ = "integer", json_path = ".status.total.memoryMiB"),
    printcolumn(name = "FreeMiB", type_ = "integer", json_path = ".status.available.memoryMiB"),
    printcolumn(
        name = "Dynamic",
        type_ = "integer",
        json_path = ".status.dynamicSlots",
        description = "Dynamic slots carved from it."
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Offered\")].reason",
        description = "Why it is offered, or is not."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PartitionableSlotSpec {
    /// HTCondor's name of the slot, such as slot1@node7.
    pub name: String,
    /// The node.
    pub node: String,
}

/// The resources of the slot, and what is left of them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartitionableSlotStatus {
    /// The slot's state: Owner if its node starts no new jobs, Unclaimed otherwise. Only dynamic slots are claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SlotState>,
    /// The slot's activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SlotActivity>,
    /// The resources of the slot. With one slot for the whole node: the node's allocatable resources less what pods
    /// outside the pool request.
    #[serde(default)]
    pub total: SlotResources,
    /// The resources that no dynamic slot has.
    #[serde(default)]
    pub available: SlotResources,
    /// How many dynamic slots are carved from it.
    #[serde(default)]
    pub dynamic_slots: i64,
    /// Offered and AgentReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
