//! Submitter: who is charged, with a priority that decays.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::schema;

/// A submitter as the accountant knows it. The operator creates one for each user that submits; admins edit the spec.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "Submitter",
    plural = "submitters",
    singular = "submitter",
    shortname = "subm",
    category = "slotwright",
    doc = "A submitter as the accountant knows it: who is charged, and a priority that decays.",
    status = "SubmitterStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Submitter",
        type_ = "string",
        json_path = ".status.name",
        priority = 1,
        description = "The accountant's name."
    ),
    printcolumn(
        name = "EffPrio",
        type_ = "number",
        json_path = ".status.effectivePriority",
        description = "Effective user priority: lower is better."
    ),
    printcolumn(
        name = "RealPrio",
        type_ = "number",
        json_path = ".status.realPriority",
        description = "Real user priority: weighted usage that decays."
    ),
    printcolumn(name = "Factor", type_ = "number", json_path = ".status.priorityFactor"),
    printcolumn(
        name = "InUse",
        type_ = "number",
        json_path = ".status.weightedResourcesUsed",
        description = "Slot weight in use."
    ),
    printcolumn(
        name = "Idle",
        type_ = "integer",
        json_path = ".status.idle",
        description = "Procs that wait."
    ),
    printcolumn(
        name = "Running",
        type_ = "integer",
        json_path = ".status.running",
        description = "Procs that run."
    ),
    printcolumn(
        name = "UsageHours",
        type_ = "number",
        json_path = ".status.weightedUsageHours",
        description = "Accumulated weighted usage, in hours."
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(name = "LastUsage", type_ = "date", json_path = ".status.lastUsageTime", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct SubmitterSpec {
    /// The accountant's name of the submitter, OWNER or GROUP.OWNER, where no object may have that name: group_physics.alice, for
    /// example. The object's name follows from this one, and only that object is the submitter's: condor_userprio -setfactor and
    /// slotwright config manifests make it, and slotwright lint and the condition Accepted say how it must be named. Unset means the
    /// object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub name: Option<String>,
    /// The priority factor: effective priority is real priority times this. A factor of 2000 gives half the share of
    /// 1000. Unset means the negotiator's default, 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub priority_factor: Option<f64>,
    /// The most slot weight that the submitter may have claimed at once, in all negotiators' slots together. Unset means
    /// no ceiling. The ceiling of OWNER holds for all submitters of this owner together, whatever groups they charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub ceiling: Option<f64>,
    /// The slot weight that the submitter gets, if it has jobs, before any submitter gets more than its floor; in all
    /// negotiators' slots together. Unset means no floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub floor: Option<f64>,
    /// Corrects the account once: condor_userprio -setprio, -setaccum, -setbegin, -setlast and, with usage 0, -resetusage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<AccountCorrection>,
}

/// A correction of the accountant's record: each field sets the field of the same name in status. A field that is left out
/// changes nothing.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountCorrection {
    /// Any text. The correction is made once, when this text differs from status.corrected: give each correction a new
    /// one.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,
    /// The Negotiator whose account is corrected: condor_userprio -name. Unset means the Negotiator that the status
    /// names, the first by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub negotiator: Option<String>,
    /// Real user priority. Unset changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.5, max = 1e12))]
    pub real_priority: Option<f64>,
    /// Accumulated usage in slot-seconds. Unset changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e15))]
    pub accumulated_usage: Option<f64>,
    /// Accumulated usage in weighted slot-seconds. Unset changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e15))]
    pub weighted_accumulated_usage: Option<f64>,
    /// When the submitter first used a slot. Unset changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub begin_usage_time: Option<Time>,
    /// When the submitter last used a slot. Unset changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_usage_time: Option<Time>,
}

/// The accountant's record: the submitter's use of the slots of the Negotiator that the field negotiator names, as of
/// updateTime. Between two updates the resources in use do not change, so that the record at any time follows from the
/// last one.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmitterStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The accountant's name of the submitter: OWNER or GROUP.OWNER.
    #[serde(default)]
    pub name: String,
    /// The Negotiator that this account is with: the first by name. Unset if there is no Negotiator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negotiator: Option<String>,
    /// The accounts with other Negotiators, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, AccountStatus>,
    /// Real user priority (RUP): weighted usage, smoothed by the half-life; at least 0.5.
    #[serde(default)]
    pub real_priority: f64,
    /// Effective user priority (EUP): real priority times factor. Lower is better.
    #[serde(default)]
    pub effective_priority: f64,
    /// The factor in force.
    #[serde(default)]
    pub priority_factor: f64,
    /// Slots in use.
    #[serde(default)]
    pub resources_used: i64,
    /// Slot weight in use.
    #[serde(default)]
    pub weighted_resources_used: f64,
    /// Accumulated usage in slot-seconds.
    #[serde(default)]
    pub accumulated_usage: f64,
    /// Accumulated usage in weighted slot-seconds.
    #[serde(default)]
    pub weighted_accumulated_usage: f64,
    /// Accumulated weighted usage in hours.
    #[serde(default)]
    pub weighted_usage_hours: f64,
    /// When the submitter first used a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub begin_usage_time: Option<Time>,
    /// When the submitter last used a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_usage_time: Option<Time>,
    /// The moment at which the record was true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub update_time: Option<MicroTime>,
    /// The id of the last correction that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<String>,
    /// Procs that wait.
    #[serde(default)]
    pub idle: i64,
    /// Procs that run.
    #[serde(default)]
    pub running: i64,
    /// Accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The account with one of several Negotiators: the submitter's use of its slots, as of updateTime.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountStatus {
    /// Real user priority (RUP).
    #[serde(default)]
    pub real_priority: f64,
    /// Effective user priority (EUP).
    #[serde(default)]
    pub effective_priority: f64,
    /// The factor in force.
    #[serde(default)]
    pub priority_factor: f64,
    /// Slots in use.
    #[serde(default)]
    pub resources_used: i64,
    /// Slot weight in use.
    #[serde(default)]
    pub weighted_resources_used: f64,
    /// Accumulated usage in slot-seconds.
    #[serde(default)]
    pub accumulated_usage: f64,
    /// Accumulated usage in weighted slot-seconds.
    #[serde(default)]
    pub weighted_accumulated_usage: f64,
    /// When the submitter first used a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub begin_usage_time: Option<Time>,
    /// When the submitter last used a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_usage_time: Option<Time>,
    /// The moment for which the numbers hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub update_time: Option<MicroTime>,
}
