//! Slot: a static or dynamic slot with its claim.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{SlotActivity, SlotResources, SlotState, Transition};
use super::schema;

/// A slot that runs one job at a time: resources carved from a node, and the claim on them. Written by the operator.
/// A plain claim has a Slot once its proc has run for five seconds; other claims have one before their pods are made. The Slot
/// stays until the claim is over.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "Slot",
    plural = "slots",
    singular = "slot",
    category = "slotwright",
    doc = "A slot that runs one job at a time: resources carved from a node, and the claim on them.",
    status = "SlotStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Slot",
        type_ = "string",
        json_path = ".spec.name",
        priority = 1,
        description = "HTCondor's name of the slot."
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Activity", type_ = "string", json_path = ".status.activity"),
    printcolumn(
        name = "Job",
        type_ = "string",
        json_path = ".status.running.jobId",
        description = "ClusterId.ProcId of the proc that it runs."
    ),
    printcolumn(name = "Submitter", type_ = "string", json_path = ".spec.claim.submitter"),
    printcolumn(name = "Cpus", type_ = "integer", json_path = ".spec.resources.cpus"),
    printcolumn(name = "MemMiB", type_ = "integer", json_path = ".spec.resources.memoryMiB"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node", priority = 1),
    printcolumn(name = "Pod", type_ = "string", json_path = ".status.running.pod", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SlotSpec {
    /// HTCondor's name of the slot, such as slot1_3@node7.
    pub name: String,
    /// The node that the slot was carved from.
    pub node: String,
    /// Static or Dynamic.
    pub slot_type: SlotType,
    /// The object name of the PartitionableSlot that a dynamic slot was carved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitionable_slot: Option<String>,
    /// The resources of the slot.
    pub resources: SlotResources,
    /// The claim on the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<SlotClaim>,
}

/// How a slot came to be.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum SlotType {
    /// Made by configuration.
    Static,
    /// Carved from a partitionable slot for a job, and returned to it when the claim ends.
    Dynamic,
}

/// A submitter's claim on a slot, and the proc for which the claim was last written.
///
/// A claim that is used again for another proc of the same job is not written again, unless one of the two procs takes
/// concurrency limits: the proc's pod names the claim, and status.running names the proc.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotClaim {
    /// The claim's id. It stays the same when the claim is used for another proc.
    pub id: String,
    /// The submitter that is charged for the claim.
    pub submitter: String,
    /// The accounting group that is charged, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting_group: Option<String>,
    /// The Negotiator that made the match, and with which the submitter is charged. Once that object is gone, the
    /// submitter is charged with the first Negotiator by name. Unset if there was no Negotiator object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negotiator: Option<String>,
    /// Whether the claim comes from GROUP_AUTOREGROUP: matched in the turn of submitters without a group, though it is
    /// charged to a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub autoregroup: bool,
    /// The cost of the claim: SLOT_WEIGHT of the slot.
    pub weight: f64,
    /// The units of concurrency limits that the claim took, MatchedConcurrencyLimits, such as xsw and fileserver:3. Every claim
    /// has the list, even if empty, so that a merge patch replaces an earlier claim's list.
    #[serde(default)]
    pub matched_concurrency_limits: Vec<String>,
    /// When the claim was made; CLAIM_WORKLIFE counts from here.
    #[schemars(schema_with = "schema::time")]
    pub claimed_at: Option<Time>,
    /// ClusterId.ProcId of the proc for which the claim was last written.
    pub job_id: String,
    /// The HTCJob.
    pub job: JobReference,
    /// The number, within the job, of the proc for which the claim was last written.
    pub proc: i64,
    /// The name of that proc's pod, in the job's namespace.
    pub pod: String,
}

/// Names one HTCJob for good: a job of the same name made later has another uid.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
pub struct JobReference {
    /// The job's namespace.
    pub namespace: String,
    /// The job's name.
    pub name: String,
    /// The job's uid.
    pub uid: String,
}

/// The slot's state and activity.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotStatus {
    /// The slot's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SlotState>,
    /// The slot's activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SlotActivity>,
    /// When the state was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub entered_current_state: Option<MicroTime>,
    /// When the activity was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub entered_current_activity: Option<MicroTime>,
    /// The last change, with its number in the manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition: Option<Transition>,
    /// The job that runs in the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<SlotRunning>,
    /// Claimed, or Offered of a static slot that nobody has claimed; and EndConfirmed, while nobody knows whether a pod that
    /// was killed has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Which proc runs in a slot, and what an operator that takes over has to know of the job: what was promised to the job,
/// and for how long the job was suspended. This is written once the proc has run for five seconds, or has waited to start for ten.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotRunning {
    /// ClusterId.ProcId of the proc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The name of the proc's pod, in the job's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The uid of the proc's pod.
    pub pod_uid: String,
    /// MachineMaxVacateTime when the job began, in seconds. Later changes of the policy do not affect the job.
    pub max_vacate_seconds: i64,
    /// For how many seconds the job has been suspended, without the present suspension. This does not count as run time,
    /// which MAXJOBRETIREMENTTIME limits.
    #[serde(default)]
    pub suspended_seconds: i64,
    /// When the present suspension began; unset if the job is not suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub suspended_since: Option<Time>,
}
