//! What a `SubmitPolicy`'s status says.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::of_policy;
use crate::api::SubmitPolicyStatus;
use crate::pool::{Governing, Pool, Problem, SubmitConfig, Time};

/// The status of a policy: of several the first by name counts, and the others say so.
pub(super) fn submit_policy(
    pool: &Pool,
    name: &Arc<str>,
    policy: &Governing<SubmitConfig>,
    old: &[Condition],
    now: Time,
) -> SubmitPolicyStatus {
    let first = pool.submit_policies.keys().next().filter(|first| *first != name);
    let conditions = match first {
        None => of_policy(
            old,
            (&policy.problems, policy.meanwhile()),
            policy.warnings.as_deref(),
            policy.generation,
            now,
        ),
        Some(first) => {
            let another = Problem {
                reason: "AnotherSubmitPolicy",
                field: "metadata.name".to_owned(),
                message: format!(
                    "the SubmitPolicy {first} is in force, the first by name; delete one of the two"
                ),
            };
            let problems = [policy.problems.clone(), vec![another]].concat();
            of_policy(old, (&problems, ""), None, policy.generation, now)
        }
    };
    SubmitPolicyStatus {
        observed_generation: Some(policy.generation),
        accepted_spec: policy.accepted.as_deref().map(str::to_owned),
        conditions,
    }
}
