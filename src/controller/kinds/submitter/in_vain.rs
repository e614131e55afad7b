//! Parts of a Submitter's spec that have no effect.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use api::{AccountCorrection, SubmitterSpec};
use model::pool::Problem;

/// The parts of a spec that have no effect, or that contradict each other.
pub(super) fn found(spec: &SubmitterSpec) -> Vec<Problem> {
    let over = spec.ceiling.zip(spec.floor).filter(|(ceiling, floor)| floor > ceiling);
    let over = over.map(|(ceiling, floor)| {
        ("spec.floor".to_owned(), format!("{floor} is more than spec.ceiling, {ceiling}, which counts"))
    });
    let correction = spec.correction.as_ref().and_then(correction);
    let all = over.into_iter().chain(correction);
    all.map(|(field, message)| Problem { reason: "InVain", field, message }).collect()
}

/// Why a correction changes nothing, or makes an account that cannot be.
fn correction(said: &AccountCorrection) -> Option<(String, String)> {
    let AccountCorrection {
        id: _,
        negotiator: _,
        real_priority,
        accumulated_usage,
        weighted_accumulated_usage,
        begin_usage_time,
        last_usage_time,
    } = said;
    let numbers = [real_priority, accumulated_usage, weighted_accumulated_usage];
    let times = [begin_usage_time, last_usage_time];
    if numbers.iter().all(|number| number.is_none()) && times.iter().all(|time| time.is_none()) {
        let message = "changes nothing: give realPriority, or another field of the account";
        return Some(("spec.correction".to_owned(), message.to_owned()));
    }
    let (begin, last) = begin_usage_time.as_ref().zip(last_usage_time.as_ref())?;
    let message = || {
        let (begin, last) = (begin.0, last.0);
        ("spec.correction.beginUsageTime".to_owned(), format!("{begin} is after lastUsageTime, {last}"))
    };
    (begin.0 > last.0).then(message)
}

/// The condition Accepted of a Submitter: if the spec is in force, the message also tells what in the spec has no effect.
pub(super) fn told(mut accepted: Condition, in_vain: &[Problem]) -> Condition {
    for more in in_vain.iter().filter(|_| accepted.status == "True") {
        accepted.message = format!("{}; {more}", accepted.message);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::kit::{NOW, pool, status};
    use model::pool::{Document, Event, Time};

    /// The message of Accepted says what in a spec has no effect, until the spec is edited.
    #[test]
    fn what_has_no_effect_is_told_of() {
        let mut pool = pool(&[]);
        for (spec, told) in [
            (json!({"ceiling": 5, "floor": 5}), ""),
            (json!({"ceiling": 1, "floor": 5}), "; spec.floor: 5 is more than spec.ceiling, 1, which counts"),
            (
                json!({"correction": {"id": "1", "negotiator": null}}),
                "; spec.correction: changes nothing: give realPriority, or another field of the account",
            ),
            (json!({"correction": {"id": "2", "realPriority": 1}}), ""),
            (
                json!({"correction": {"id": "3", "beginUsageTime": "2026-01-02T00:00:00Z", "lastUsageTime": "2026-01-01T00:00:00Z"}}),
                "; spec.correction.beginUsageTime: 2026-01-02T00:00:00Z is after lastUsageTime, 2026-01-01T00:00:00Z",
            ),
            (json!({"correction": {"id": "3", "beginUsageTime": "2026-01-02T00:00:00Z"}}), ""),
        ] {
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter",
                                "metadata": {"name": "alice"}, "spec": spec});
            let facts = super::super::facts(&serde_json::from_value(object).unwrap()).unwrap();
            pool.apply(Event::Submitter(facts), Time::from_secs(NOW));
            let accepted = &status(&pool, &Document::Submitter("alice".into()))["conditions"][0];
            assert_eq!(accepted["message"], json!(format!("the spec is in force{told}")), "{spec}");
        }
    }
}
