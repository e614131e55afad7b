//! Why a negotiation cycle left procs without a slot: a part of the Negotiator's status.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Procs that a cycle left without a slot, for one reason.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectionStatus {
    /// The reason in one word, as in the jobs' condition Matchable.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// The object of the reason: the concurrency limit that is reached, the group whose quota is used up, the submitter
    /// whose ceiling is reached, the clause that is not true on most slots, or the request that is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub of: Option<String>,
    /// How many procs wait for this reason.
    #[serde(default)]
    pub procs: i64,
    /// How many jobs these procs are of.
    #[serde(default)]
    pub jobs: i64,
    /// One of these jobs, as namespace/name.
    #[serde(default)]
    #[schemars(length(max = 320))]
    pub example: String,
    /// The clauses of Requirements that keep that job from every machine, those first that are not true on most slots;
    /// five at the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub clauses: Vec<FailedClauseStatus>,
}

/// A clause of Requirements that is not true.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedClauseStatus {
    /// Whose Requirements the clause is in: the job's, or the machine's, which are START and what else its policy
    /// requires of jobs.
    pub of: RequirementsOf,
    /// The clause, cut after 256 bytes.
    #[schemars(length(max = 256))]
    pub clause: String,
    /// On how many slots the clause is not true. At most 1000 slots are looked at.
    pub slots: i64,
}

/// Whose Requirements.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RequirementsOf {
    /// The job's.
    Job,
    /// The machine's.
    Machine,
}
