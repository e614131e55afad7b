//! Patches of pods: requests to agents, and the reason of an eviction.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use api::labels;
use model::pool::{PodRef, Vacate};

/// The condition that Kubernetes sets on a pod that is ended from outside, and not by its own program. Job failure
/// policies read the condition.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Annotations that ask the agent to suspend a pod's processes, or to continue them.
pub fn suspend(suspended: bool) -> Value {
    json!({ labels::SUSPEND: suspended.then_some("true") })
}

/// Annotations that ask the agent to kill a pod's processes.
pub fn kill() -> Value {
    json!({ labels::KILL: "true" })
}

/// A strategic merge patch of the pod's status that says why the pod is evicted. Because of the uid the API server
/// refuses the patch for a pod made later under the same name. Other conditions stay.
pub fn disruption_target(pod: &PodRef, why: &Vacate, now: Timestamp) -> Value {
    let message: String = why.message.chars().take(1024).collect();
    json!({
        "metadata": {"uid": pod.uid.as_str()},
        "status": {"conditions": [{
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": why.reason.name(),
            "message": message,
            "lastTransitionTime": Time(now),
        }]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::VacateReason;

    #[test]
    fn an_agent_is_asked_by_annotation() {
        assert_eq!(suspend(true), json!({"slotwright.dev/suspend": "true"}));
        assert_eq!(suspend(false), json!({"slotwright.dev/suspend": null}), "a merge patch takes it away");
        assert_eq!(kill(), json!({"slotwright.dev/kill": "true"}));
    }

    #[test]
    fn a_pod_says_why_it_is_evicted() {
        let pod = PodRef { namespace: "alice".into(), name: "sweep-3".into(), uid: "u1".into() };
        let reason = VacateReason::StartdPreemptExpression;
        let why = Vacate { reason, message: "PREEMPT became true: the owner is back".into() };
        insta::assert_yaml_snapshot!(disruption_target(&pod, &why, Timestamp::UNIX_EPOCH));
    }
}
