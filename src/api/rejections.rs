//! Why a negotiation cycle left procs without a slot: a part of the Negotiator's status.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Procs that a cycle left without a slot, for one reason.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectionStatus {
    /// The reason in one word: that of the condition Matchable of the jobs.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What it is about: the concurrency limit that is reached, the group whose quota is used up, the submitter whose ceiling
    /// is reached, the clause that is not true on most slots, the request that is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub of: Option<String>,
    /// How many procs wait for it.
    #[serde(default)]
    pub procs: i64,
    /// Of how many jobs.
    #[serde(default)]
    pub jobs: i64,
    /// One of these jobs, as namespace/name.
    #[serde(default)]
    #[schemars(length(max = 320))]
    pub example: String,
    /// Which clauses of Requirements keep that job from every machine, those first that do so on most slots; five at the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub clauses: Vec<FailedClauseStatus>,
}

/// A clause of Requirements that is not true.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedClauseStatus {
    /// Whose Requirements: the job's or the machine's, which are START and what else its policy asks of jobs.
    pub of: RequirementsOf,
    /// The clause, cut after 256 bytes.
    #[schemars(length(max = 256))]
    pub clause: String,
    /// On how many slots it is not true, of those that were looked at: 1000 at the most.
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
