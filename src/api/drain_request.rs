//! `DrainRequest`: drain one node, as `condor_drain` does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// Drains one node, as condor_drain does: its slots accept no more jobs, running jobs leave as the schedule says, and
/// then the slots are Drained. Deleting the object cancels the drain. Where a NodePolicy says drainCordoned, a
/// cordoned node drains gracefully even without a DrainRequest.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "DrainRequest",
    plural = "drainrequests",
    singular = "drainrequest",
    shortname = "drain",
    category = "slotwright",
    doc = "Drains one node, as condor_drain does.",
    status = "DrainRequestStatus",
    derive = "PartialEq",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node"),
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Drained\")].reason",
        description = "Waiting, Refused, Draining, Drained or Resumed, or what is wrong with the spec."
    ),
    printcolumn(
        name = "Claims",
        type_ = "integer",
        json_path = ".status.claims",
        description = "Claims still on the node."
    ),
    printcolumn(
        name = "Lost",
        type_ = "integer",
        json_path = ".status.badputCpuSeconds",
        priority = 1,
        description = "CPU seconds of work that were lost."
    ),
    printcolumn(
        name = "Unclaimed",
        type_ = "integer",
        json_path = ".status.unclaimedCpuSeconds",
        priority = 1,
        description = "CPU seconds that nobody could claim."
    ),
    printcolumn(name = "Reason", type_ = "string", json_path = ".spec.reason", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DrainRequestSpec {
    /// The node.
    #[schemars(length(min = 1, max = 253))]
    pub node: String,
    /// How jobs leave. Graceful: with their retirement and vacating times. Quick: with their vacating time only. Fast: at
    /// once.
    #[serde(default)]
    pub schedule: DrainSchedule,
    /// The state of the node once all its slots are drained.
    #[serde(default)]
    pub on_completion: DrainCompletion,
    /// An expression that every slot of the node must make true when the drain begins, or the drain is refused:
    /// condor_drain -check. The expression sees the slot's ad and no job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub check: Option<String>,
    /// The START expression while the running jobs leave: condor_drain -start. Jobs that start by it have no retirement
    /// time. Unset means DEFAULT_DRAINING_START_EXPR of the node's policy; without that no job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub start: Option<String>,
    /// Why, for people and for expressions: DrainReason in the slots' ads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,
}

/// How jobs leave a node that is drained.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DrainSchedule {
    /// With their retirement and vacating times.
    #[default]
    Graceful,
    /// With their vacating time only.
    Quick,
    /// At once.
    Fast,
}

/// The state of a node once all its slots are drained.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DrainCompletion {
    /// The node stays drained until the DrainRequest is deleted.
    #[default]
    Stay,
    /// The node takes jobs again.
    Resume,
}

/// How far the drain has come.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRequestStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the drain began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<Time>,
    /// When all slots of the node were drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<Time>,
    /// Claims still on the node.
    #[serde(default)]
    pub claims: i64,
    /// The lost work: the CPU seconds that evicted jobs had run. As of the last claim that ended.
    #[serde(default)]
    pub badput_cpu_seconds: i64,
    /// The lost time: the CPU seconds of the node that nobody could claim until all slots were drained. As of the last
    /// claim that ended.
    #[serde(default)]
    pub unclaimed_cpu_seconds: i64,
    /// Accepted and Drained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
