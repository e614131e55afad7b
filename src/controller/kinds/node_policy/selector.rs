//! The node selector of a NodePolicy.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use api::names::{is_label_key, is_label_name};
use model::pool::{Problem, Selector, SelectorTerm};

/// Reads a selector. A problem is what Kubernetes refuses in a label selector of its own kinds: such a part selects other nodes than
/// its author means, or none.
pub(super) fn selector(said: Option<&LabelSelector>, problems: &mut Vec<Problem>) -> Selector {
    let mut terms = Vec::new();
    let Some(said) = said else { return Selector::default() };
    for (label, value) in said.match_labels.iter().flatten() {
        let field = format!("spec.nodeSelector.matchLabels[{label}]");
        problems.extend(key(label).map(|why| refused(&field, why)));
        problems.extend(bad_value(value).map(|why| refused(&field, why)));
        terms.push(SelectorTerm::In(label.clone(), [value.clone()].into()));
    }
    for (at, said) in said.match_expressions.iter().flatten().enumerate() {
        let field = format!("spec.nodeSelector.matchExpressions[{at}]");
        problems.extend(key(&said.key).map(|why| refused(&format!("{field}.key"), why)));
        match term(said) {
            Ok(term) => terms.push(term),
            Err(why) => problems.push(refused(&format!("{field}.operator"), why)),
        }
        problems.extend(values(said).map(|why| refused(&format!("{field}.values"), why)));
    }
    Selector { terms }
}

fn refused(field: &str, message: String) -> Problem {
    Problem { reason: "InvalidSelector", field: field.to_owned(), message }
}

/// The demand that an expression makes, or why it makes none.
fn term(said: &LabelSelectorRequirement) -> Result<SelectorTerm, String> {
    let key = said.key.clone();
    let values = || -> BTreeSet<String> { said.values.iter().flatten().cloned().collect() };
    match said.operator.as_str() {
        "In" => Ok(SelectorTerm::In(key, values())),
        "NotIn" => Ok(SelectorTerm::NotIn(key, values())),
        "Exists" => Ok(SelectorTerm::Exists(key)),
        "DoesNotExist" => Ok(SelectorTerm::DoesNotExist(key)),
        other => Err(format!("{other:?} is no operator; use In, NotIn, Exists or DoesNotExist")),
    }
}

/// Why no label can have this key.
fn key(key: &str) -> Option<String> {
    let message = || format!("{key:?} cannot be the key of a label; write one such as example.com/pool");
    (!is_label_key(key)).then(message)
}

/// Why no label can have this value.
fn bad_value(value: &str) -> Option<String> {
    let fits = value.is_empty() || is_label_name(value);
    let message = || {
        format!(
            "{value:?} cannot be the value of a label; values have at most 63 letters, digits, '-', '_' and '.', with a letter or digit \
             at either end"
        )
    };
    (!fits).then(message)
}

/// Why an expression cannot have the values that it has.
fn values(said: &LabelSelectorRequirement) -> Option<String> {
    let operator = said.operator.as_str();
    let values = said.values.as_deref().unwrap_or_default();
    match (operator, values) {
        ("In" | "NotIn", []) => {
            Some(format!("{operator} compares with values, and there are none; give some"))
        }
        ("Exists" | "DoesNotExist", [_, ..]) => {
            Some(format!("{operator} does not look at values; leave them out, or say In or NotIn"))
        }
        _ => values.iter().find_map(|value| bad_value(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_that_kubernetes_refuses_are_refused_with_their_place() {
        for (said, told) in [
            (
                json!({"matchLabels": {"kubernetes.io/arch": "amd64", "node-role.kubernetes.io/gpu": ""}}),
                &[][..],
            ),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", ""]}]}), &[]),
            (json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}), &[]),
            (
                json!({"matchLabels": {"a b": "c d"}}),
                &[
                    "spec.nodeSelector.matchLabels[a b]: \"a b\" cannot be the key of a label; write one such as example.com/pool",
                    "spec.nodeSelector.matchLabels[a b]: \"c d\" cannot be the value of a label; values have at most 63 letters, digits, '-', '_' and '.', with a letter or digit at either end",
                ],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "NotIn", "values": []}]}),
                &[
                    "spec.nodeSelector.matchExpressions[0].values: In compares with values, and there are none; give some",
                    "spec.nodeSelector.matchExpressions[1].values: NotIn compares with values, and there are none; give some",
                ],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}, {"key": "a/b/c", "operator": "DoesNotExist"}]}),
                &[
                    "spec.nodeSelector.matchExpressions[0].values: Exists does not look at values; leave them out, or say In or NotIn",
                    "spec.nodeSelector.matchExpressions[1].key: \"a/b/c\" cannot be the key of a label; write one such as example.com/pool",
                ],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "-"]}, {"key": "a", "operator": "Is"}]}),
                &[
                    "spec.nodeSelector.matchExpressions[0].values: \"-\" cannot be the value of a label; values have at most 63 letters, digits, '-', '_' and '.', with a letter or digit at either end",
                    "spec.nodeSelector.matchExpressions[1].operator: \"Is\" is no operator; use In, NotIn, Exists or DoesNotExist",
                ],
            ),
        ] {
            let mut problems = Vec::new();
            selector(Some(&serde_json::from_value(said.clone()).unwrap()), &mut problems);
            let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, told, "{said}");
        }
    }
}
