//! Tolerations of a NodePolicy.

use api::PolicyToleration;
use api::names::{is_label_key, is_label_name};
use model::pool::{Problem, Toleration};

/// Reads tolerations. A toleration that the API server would refuse is a problem here: it would refuse each pod on these
/// nodes.
pub(super) fn tolerations(said: &[PolicyToleration], problems: &mut Vec<Problem>) -> Vec<Toleration> {
    let all = said.iter().enumerate().map(|(at, said)| {
        let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let toleration =
            Toleration { key: set(&said.key), value: set(&said.value), effect: set(&said.effect) };
        let field = |name: &str| format!("spec.tolerations[{at}].{name}");
        let mut refuse = |field: String, message: String| {
            problems.push(Problem { reason: "InvalidToleration", field, message });
        };
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if let Some(effect) = toleration.effect.as_deref().filter(|effect| !effects.contains(effect)) {
            let known = effects.join(", ");
            let message =
                format!("{effect} is not the effect of a taint; write {known}, or leave it out for all effects");
            refuse(field("effect"), message);
        }
        match &toleration.key {
            None if toleration.value.is_some() => {
                refuse(
                    field("value"),
                    "means nothing without a key; say which taint's value it is".to_owned(),
                );
            }
            Some(key) if !is_label_key(key) => {
                let message = format!(
                    "{key} cannot be the key of a taint; write one such as example.com/dedicated, as for a label"
                );
                refuse(field("key"), message);
            }
            _ => {}
        }
        if let Some(value) = toleration.value.as_deref().filter(|value| !is_label_name(value)) {
            let message =
                format!("{value} cannot be the value of a taint; write one such as batch, as for a label");
            refuse(field("value"), message);
        }
        toleration
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_pod_may_have_is_refused_with_its_place() {
        let said = |key: &str, value: &str, effect: &str| {
            let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            PolicyToleration { key: set(key), value: set(value), effect: set(effect) }
        };
        for (toleration, told) in [
            (said("", "", ""), None),
            (said("dedicated", "", "NoSchedule"), None),
            (said("example.com/dedicated", "batch", "NoExecute"), None),
            (
                said("dedicated", "", "Noschedule"),
                Some(
                    "spec.tolerations[0].effect: Noschedule is not the effect of a taint; write NoSchedule, PreferNoSchedule, NoExecute, or leave it out for all effects",
                ),
            ),
            (
                said("", "db", ""),
                Some("spec.tolerations[0].value: means nothing without a key; say which taint's value it is"),
            ),
            (
                said("Example.com/x", "", ""),
                Some(
                    "spec.tolerations[0].key: Example.com/x cannot be the key of a taint; write one such as example.com/dedicated, as for a label",
                ),
            ),
            (
                said("a..b/x", "", ""),
                Some(
                    "spec.tolerations[0].key: a..b/x cannot be the key of a taint; write one such as example.com/dedicated, as for a label",
                ),
            ),
            (
                said("-x", "", ""),
                Some(
                    "spec.tolerations[0].key: -x cannot be the key of a taint; write one such as example.com/dedicated, as for a label",
                ),
            ),
            (
                said("x", "a b", ""),
                Some(
                    "spec.tolerations[0].value: a b cannot be the value of a taint; write one such as batch, as for a label",
                ),
            ),
        ] {
            let mut problems = Vec::new();
            tolerations(&[toleration], &mut problems);
            let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, told.into_iter().collect::<Vec<_>>());
        }
    }
}
