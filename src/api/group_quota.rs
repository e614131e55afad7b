//! `GroupQuota`: one accounting group and what it may use.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::schema;

/// One accounting group, declared with its quota. Groups nest by their names: physics.higgs is inside physics, which must
/// be declared too.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "GroupQuota",
    plural = "groupquotas",
    singular = "groupquota",
    shortname = "gq",
    category = "slotwright",
    doc = "One accounting group, declared with its quota.",
    status = "GroupQuotaStatus",
    derive = "PartialEq",
    printcolumn(name = "Group", type_ = "string", json_path = ".status.group", priority = 1),
    printcolumn(
        name = "Static",
        type_ = "number",
        json_path = ".spec.quota",
        description = "Quota in slot weight."
    ),
    printcolumn(
        name = "Dynamic",
        type_ = "number",
        json_path = ".spec.dynamicQuota",
        description = "Quota as a share of the parent."
    ),
    printcolumn(
        name = "Quota",
        type_ = "number",
        json_path = ".status.subtreeQuota",
        description = "Quota in force, in slot weight, groups inside included."
    ),
    printcolumn(
        name = "InUse",
        type_ = "number",
        json_path = ".status.weightedResourcesUsed",
        description = "Slot weight in use, groups inside included."
    ),
    printcolumn(
        name = "Allocated",
        type_ = "number",
        json_path = ".status.allocated",
        description = "Slot weight that the last cycle gave to the group itself, surplus included.",
        priority = 1
    ),
    printcolumn(name = "Idle", type_ = "integer", json_path = ".status.idle"),
    printcolumn(name = "Running", type_ = "integer", json_path = ".status.running"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct GroupQuotaSpec {
    /// The group's name, where it differs from the object's: group_physics.higgs, for example, is no valid object name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"))]
    pub group: Option<String>,
    /// Who may charge jobs to the group: owners of jobs. An entry may have one * for any characters, as in team-*; a * alone
    /// means everybody. Unset means those who may charge the group around this one; if no group around it names any, nobody.
    /// Owners whom the SubmitPolicy's map gives the group need not be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 253), regex(pattern = r"^[^*]*\*?[^*]*$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub owners: Option<Vec<String>>,
    /// A static quota in slot weight, which means cores unless SLOT_WEIGHT is set: GROUP_QUOTA_<group>. It is a quota of
    /// the whole pool, even if several Negotiators share the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub quota: Option<f64>,
    /// A dynamic quota: a share of the parent's quota, or, for a group without a parent, of the pool:
    /// GROUP_QUOTA_DYNAMIC_<group>. If several Negotiators share the pool, it is a share of each one's slots.
    /// A static quota wins where both are given; a group with neither has a quota of 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dynamic_quota: Option<f64>,
    /// Whether the group may use what other groups leave of their quotas. GROUP_ACCEPT_SURPLUS_<group>. Unset means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_surplus: Option<bool>,
    /// Whether the group's jobs, at the end of a cycle, also compete with jobs without a group for what is left, whatever
    /// the group's quota: GROUP_AUTOREGROUP_<group>. Unset means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoregroup: Option<bool>,
    /// The priority factor of the group's submitters that have none of their own: GROUP_PRIO_FACTOR_<group>. Unset means
    /// DEFAULT_PRIO_FACTOR. Groups inside this one do not inherit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1e12))]
    pub priority_factor: Option<f64>,
}

/// The group's quotas in force, and its use of them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupQuotaStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The group's name.
    #[serde(default)]
    pub group: String,
    /// The quota as configured: a slot weight, or a share.
    #[serde(default)]
    pub config_quota: f64,
    /// The quota in force for the group's own jobs, in slot weight: subtreeQuota less the quotas of the groups inside
    /// this one.
    #[serde(default)]
    pub effective_quota: f64,
    /// The quota in force for the group and the groups inside it, in slot weight.
    #[serde(default)]
    pub subtree_quota: f64,
    /// Slot weight that the group's own jobs requested in the last cycle, including what they use.
    #[serde(default)]
    pub requested: f64,
    /// Slot weight that the last cycle gave to the group's own jobs. Slot weight beyond effectiveQuota is surplus of
    /// other groups.
    #[serde(default)]
    pub allocated: f64,
    /// Slot weight in use by the group and the groups inside it.
    #[serde(default)]
    pub weighted_resources_used: f64,
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
