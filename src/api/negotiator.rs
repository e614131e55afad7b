//! Negotiator: how often matches are made, and by which ranks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{RejectionStatus, schema};

/// A negotiator's configuration and statistics. Without an object of this kind HTCondor's defaults are in force. Several
/// Negotiators share the pool by slotConstraint, and each has its own accounts of the submitters.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "Negotiator",
    plural = "negotiators",
    singular = "negotiator",
    shortname = "neg",
    category = "slotwright",
    doc = "A negotiator's configuration and statistics. Several share the pool by slotConstraint, each with accounts of its own.",
    status = "NegotiatorStatus",
    derive = "PartialEq",
    printcolumn(name = "Cycles", type_ = "integer", json_path = ".status.cycles"),
    printcolumn(
        name = "Matches",
        type_ = "integer",
        json_path = ".status.lastCycle.matches",
        description = "Matches of the last cycle."
    ),
    printcolumn(name = "Submitters", type_ = "integer", json_path = ".status.lastCycle.submitters"),
    printcolumn(
        name = "Millis",
        type_ = "integer",
        json_path = ".status.lastCycle.durationMillis",
        description = "How long the last cycle took."
    ),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastCycle.startTime"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(
        name = "Overlaps",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Overlaps\")].status",
        priority = 1,
        description = "Whether slots are within another Negotiator's slotConstraint, too."
    ),
    printcolumn(
        name = "Uncovered",
        type_ = "integer",
        json_path = ".status.uncoveredSlots",
        priority = 1,
        description = "Slots that no Negotiator matches."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct NegotiatorSpec {
    /// The negotiator's and the accountant's configuration in HTCondor's own configuration language, as in a
    /// condor_config file: PREEMPTION_REQUIREMENTS, PREEMPTION_RANK, NEGOTIATOR_CONSIDER_PREEMPTION,
    /// NEGOTIATOR_JOB_CONSTRAINT and the knobs of the fields below, with macros, if and use. If a field and the text give
    /// the same knob, the field counts. Other knobs are checked, and the condition FullyApplied names those that nothing
    /// acts on yet. If the text has errors, the condition Accepted gives line and column of each, and the last accepted
    /// spec stays in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub config: Option<String>,
    /// NEGOTIATOR_INTERVAL: the period of cycles while jobs wait, in seconds. Unset means 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86400))]
    pub interval_seconds: Option<i64>,
    /// NEGOTIATOR_CYCLE_DELAY: the least time between the end of a cycle and the start of the next, in seconds. If neither
    /// this nor NEGOTIATOR_MIN_INTERVAL is set, the pause is ten times as long as the cycle took: at least 1, and at most 20.
    /// If only the other is set, unset means 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub cycle_delay_seconds: Option<i64>,
    /// NEGOTIATOR_MIN_INTERVAL: the least time between the starts of two cycles, in seconds. If NEGOTIATOR_CYCLE_DELAY is set,
    /// unset means 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub min_interval_seconds: Option<i64>,
    /// PRIORITY_HALFLIFE: the seconds in which half of a submitter's past usage is forgotten. Unset means 86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000_000_i64))]
    pub priority_halflife_seconds: Option<i64>,
    /// DEFAULT_PRIO_FACTOR: the priority factor of submitters that have none of their own. Unset means 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub default_priority_factor: Option<f64>,
    /// NEGOTIATOR_SLOT_CONSTRAINT: a ClassAd expression; only slots that make it true are this negotiator's. MY is the
    /// slot. If several negotiators' constraints are true of a slot, the slot is the first one's by name, and the
    /// condition Overlaps says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub slot_constraint: Option<String>,
    /// NEGOTIATOR_PRE_JOB_RANK: a ClassAd expression that counts before the job's own Rank. MY is the slot, TARGET the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub pre_job_rank: Option<String>,
    /// NEGOTIATOR_POST_JOB_RANK: a ClassAd expression that counts among machines that the job's own Rank likes equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub post_job_rank: Option<String>,
}

/// The spec in force, and the figures of the negotiator's cycles.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NegotiatorStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The spec in force, as JSON: the last one that was accepted. An operator that starts reads it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_spec: Option<String>,
    /// Cycles of this negotiator since the operator started.
    #[serde(default)]
    pub cycles: i64,
    /// The last cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_cycle: Option<CycleStatistics>,
    /// Partitionable and static slots that are within no Negotiator's slotConstraint: no job is matched with them. Shown
    /// only if there are several Negotiators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered_slots: Option<i64>,
    /// Accepted and FullyApplied; and Overlaps, if there are several Negotiators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// One negotiation cycle.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CycleStatistics {
    /// When the cycle started.
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<Time>,
    /// How long the cycle took, in milliseconds.
    #[serde(default)]
    pub duration_millis: i64,
    /// Matches made.
    #[serde(default)]
    pub matches: i64,
    /// Requests that found no match.
    #[serde(default)]
    pub rejects: i64,
    /// Submitters that had idle jobs.
    #[serde(default)]
    pub submitters: i64,
    /// Slots considered.
    #[serde(default)]
    pub slots: i64,
    /// Procs that waited.
    #[serde(default)]
    pub idle_procs: i64,
    /// Pie spins.
    #[serde(default)]
    pub pies: i64,
    /// Why procs were left without a slot: at most ten reasons, those of most procs first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub rejections: Vec<RejectionStatus>,
    /// Procs that were left without a slot for other reasons.
    #[serde(default)]
    pub other_rejected_procs: i64,
}
