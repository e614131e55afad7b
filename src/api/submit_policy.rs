//! `SubmitPolicy`: what is done with jobs when they are submitted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// The rules for jobs when they are submitted: the schedd's and condor_submit's part of the configuration. Without an object of
/// this kind HTCondor's defaults are in force. If there are several, the first by name is in force.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "SubmitPolicy",
    plural = "submitpolicies",
    singular = "submitpolicy",
    shortname = "spol",
    category = "slotwright",
    doc = "The rules that jobs meet when they are submitted.",
    status = "SubmitPolicyStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"FullyApplied\")].reason",
        description = "Whether everything that the text says is acted on."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.status==\"False\")].message",
        priority = 1,
        description = "The errors of the policy, and the knobs on which nothing acts."
    )
)]
#[serde(rename_all = "camelCase")]
pub struct SubmitPolicySpec {
    /// The schedd's and condor_submit's configuration in HTCondor's own configuration language, as in a condor_config
    /// file: JOB_DEFAULT_REQUESTCPUS, JOB_DEFAULT_REQUESTMEMORY (MiB), JOB_DEFAULT_REQUESTDISK (KiB) and
    /// JOB_DEFAULT_LEASE_DURATION (seconds), with macros, if and use. Each is an expression of the job's ad. A job keeps
    /// the values from when it was submitted. Other knobs are checked, and the condition FullyApplied names those that
    /// nothing acts on yet. If the text has errors, the condition Accepted gives line and column of each, and the last
    /// accepted spec stays in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub config: Option<String>,
    /// Whose a job is: whom its usage is charged to, and who must be named in a GroupQuota's owners. Unset means the job's
    /// namespace. A job's owner is decided when the operator first sees the job, and stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<JobOwner>,
}

/// How the owner of a job is found. User and Group need the admission webhook, which seals into each new job who created it, or
/// the chart's admission policies, by which the API server stamps that. A job whose owner cannot be found is charged to its
/// namespace, by the owner namespace:NAME, and its condition FullyApplied says why.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOwner {
    /// The source of the owner's name: the job's Namespace, the User who created the job, or a Group of this user.
    pub from: OwnerSource,
    /// With from: Group, a pattern for the name of a group, such as owner:*. The first group that is like the pattern counts, and
    /// the part that the * stands for is the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub group: Option<String>,
    /// A user map of the config text (SCHEDD_CLASSAD_USER_MAP_NAMES), which gives the owner of the user or of the group's part; the
    /// first if the map gives several. Without a map the name itself is the owner, which may have letters, digits, _, - and @.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub map: Option<String>,
}

/// The source of the name of a job's owner.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum OwnerSource {
    /// The job's namespace.
    #[default]
    Namespace,
    /// The user who created the job.
    User,
    /// A group of the user who created the job.
    Group,
}

/// Whether the policy is in force.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmitPolicyStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The spec in force, as JSON: the last one that was accepted. An operator that starts reads it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_spec: Option<String>,
    /// Accepted and FullyApplied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
