//! Decides whether a pod may run on a node by node selector, required node affinity and `NoExecute` taints, as kubelet
//! does.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// The demands of a pod's spec on its node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    selector: BTreeMap<String, String>,
    affinity: Option<NodeSelector>,
    tolerations: Vec<Toleration>,
}

impl Placement {
    /// Reads the demands from a pod's spec.
    pub fn of(spec: &PodSpec) -> Self {
        let node_affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
        Self {
            selector: spec.node_selector.clone().unwrap_or_default(),
            affinity: node_affinity
                .and_then(|a| a.required_during_scheduling_ignored_during_execution.clone()),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
        }
    }

    /// Whether `nodeSelector` and the required node affinity hold on the node.
    pub fn matches(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        let selected = self.selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        let wanted = |affinity: &NodeSelector| {
            affinity.node_selector_terms.iter().any(|t| term_holds(t, node, labels))
        };
        selected && self.affinity.as_ref().is_none_or(wanted)
    }

    /// The first `NoExecute` taint that the pod does not tolerate. Kubelet ignores taints with other effects.
    pub fn untolerated<'t>(&self, taints: &'t [Taint]) -> Option<&'t Taint> {
        let tolerated = |taint: &Taint| self.tolerations.iter().any(|t| tolerates(t, taint));
        taints.iter().find(|taint| taint.effect == "NoExecute" && !tolerated(taint))
    }
}

/// Whether a node selector term holds. A term without expressions and fields holds nowhere.
fn term_holds(term: &NodeSelectorTerm, node: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let name_holds = |r: &NodeSelectorRequirement| r.key == "metadata.name" && holds(r, Some(node));
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|r| holds(r, labels.get(&r.key).map(String::as_str)))
        && fields.iter().all(name_holds)
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = || requirement.values.iter().flatten().any(|v| Some(v.as_str()) == value);
    let numbers =
        || Some((value?.parse::<i64>().ok()?, requirement.values.as_ref()?.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(have, bound)| have > bound),
        "Lt" => numbers().is_some_and(|(have, bound)| have < bound),
        _ => false,
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let effect = text(&toleration.effect);
    let key = text(&toleration.key);
    if !(effect.is_empty() || effect == taint.effect) || !(key.is_empty() || key == taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        // The API server rejects a toleration that has the operator Equal and no key: it would tolerate every taint.
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn placement(spec: Value) -> Placement {
        let mut spec = spec;
        spec["containers"] = json!([]);
        Placement::of(&serde_json::from_value(spec).unwrap())
    }

    fn affinity(terms: impl Into<Value>) -> Placement {
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms.into()}});
        placement(json!({"affinity": {"nodeAffinity": required}}))
    }

    #[test]
    fn selector_and_affinity() {
        let labels = BTreeMap::from([("zone", "a"), ("gen", "7")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let expression = |key: &str, operator: &str, values: &[&str]| {
            affinity(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
        };
        let cases = [
            (placement(json!({})), true),
            (placement(json!({"nodeSelector": {"zone": "a"}})), true),
            (placement(json!({"nodeSelector": {"zone": "b"}})), false),
            (placement(json!({"nodeSelector": {"rack": ""}})), false),
            (expression("zone", "In", &["a", "b"]), true),
            (expression("zone", "NotIn", &["a"]), false),
            (expression("rack", "NotIn", &["a"]), true),
            (expression("rack", "Exists", &[]), false),
            (expression("rack", "DoesNotExist", &[]), true),
            (expression("gen", "Gt", &["6"]), true),
            (expression("gen", "Lt", &["7"]), false),
            (expression("zone", "Gt", &["6"]), false),
            (affinity(json!([])), false),
            (affinity(json!([{}])), false),
            (affinity(json!([{}, {"matchExpressions": [{"key": "gen", "operator": "Exists"}]}])), true),
            (
                affinity(
                    json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]),
                ),
                true,
            ),
            (
                affinity(
                    json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]),
                ),
                false,
            ),
        ];
        for (number, (placement, expected)) in cases.iter().enumerate() {
            assert_eq!(placement.matches("n1", &labels), *expected, "case {number}: {placement:?}");
        }
    }

    #[test]
    fn only_untolerated_no_execute_taints_reject() {
        let taint = |effect: &str| {
            [Taint { key: "k".into(), value: Some("v".into()), effect: effect.into(), time_added: None }]
        };
        let cases = [
            (json!([]), "NoSchedule", true),
            (json!([]), "NoExecute", false),
            (json!([{"operator": "Exists"}]), "NoExecute", true),
            (json!([{"key": "k", "operator": "Exists"}]), "NoExecute", true),
            (json!([{"key": "k", "value": "v"}]), "NoExecute", true),
            (json!([{"key": "k", "value": "w"}]), "NoExecute", false),
            (json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]), "NoExecute", false),
            (json!([{"key": "other", "operator": "Exists"}]), "NoExecute", false),
        ];
        for (tolerations, effect, admitted) in cases {
            let placement = placement(json!({"tolerations": tolerations}));
            assert_eq!(placement.untolerated(&taint(effect)).is_none(), admitted, "{tolerations} {effect}");
        }
    }
}
