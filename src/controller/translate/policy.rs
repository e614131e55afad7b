//! What admins write: `NodePolicy`, `GroupQuota`.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;

use super::job::{NO_CONTAINERS, NO_SPEC};
use super::tolerations::tolerations;
use super::zone::zone;
use api::{GroupQuota, NodePolicy, NodePolicySpec};
use classad::Expr;
use model::pool::{
    BackfillTemplate, ByMachine, ClaimWorklife, Group, Policy, PolicyFacts, Problem, Quota, Selector,
    SelectorTerm, SlotConfig, StartdConfig,
};
use model::schedd::{bad_expression, is_attribute_name};
use model::startd::config::{self as startd, Remark, Severity, Understood};

/// What the pool knows of a `GroupQuota`. A group with neither quota has none to use.
pub fn group(object: &GroupQuota) -> Group {
    let spec = &object.spec;
    Group {
        object: object.name_any().into(),
        generation: object.metadata.generation.unwrap_or(1),
        name: spec.group.clone().unwrap_or_else(|| object.name_any()).into(),
        quota: match (spec.quota, spec.dynamic_quota) {
            (Some(quota), _) => Quota::Static(quota.max(0.0)),
            (None, Some(share)) => Quota::Dynamic(share.clamp(0.0, 1.0)),
            (None, None) => Quota::Static(0.0),
        },
        accept_surplus: spec.accept_surplus,
        autoregroup: spec.autoregroup,
        priority_factor: spec.priority_factor.filter(|factor| *factor >= 1.0),
    }
}

/// What the pool knows of a `NodePolicy`. Where its spec cannot be used: also of the one that its status records.
pub fn node_policy(object: &NodePolicy) -> PolicyFacts {
    let mut facts = policy_facts(object, &object.spec);
    if facts.config.is_err() {
        let recorded = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
        let spec = recorded.and_then(|text| serde_json::from_str::<NodePolicySpec>(text).ok());
        let recorded = spec.map(|spec| policy_facts(object, &spec)).filter(|facts| facts.config.is_ok());
        facts.recorded = recorded.map(Box::new);
    }
    facts
}

fn policy_facts(object: &NodePolicy, spec: &NodePolicySpec) -> PolicyFacts {
    let mut problems = Vec::new();
    let selector = selector(spec.node_selector.as_ref(), &mut problems);
    let mut config = startd_config(spec, &mut problems);
    let warnings = spec.config.as_deref().map(|text| {
        let understood = startd::understand(text);
        said_twice(spec, &understood, &mut problems);
        take_text(text, understood, &mut config, &mut problems)
    });
    let warnings = match half_said_backfill(&config).filter(|_| problems.is_empty()) {
        Some(warning) => Some(warnings.into_iter().flatten().chain([warning]).collect()),
        None => warnings,
    };
    PolicyFacts {
        name: object.name_any().into(),
        uid: object.uid().unwrap_or_default().into(),
        generation: object.metadata.generation.unwrap_or(1),
        selector,
        precedence: spec.precedence,
        spec: serde_json::to_string(spec).unwrap_or_default().into(),
        recorded: None,
        config: if problems.is_empty() { Ok(Arc::new(config)) } else { Err(problems) },
        warnings,
    }
}

/// Puts what the text says into the configuration, and its errors among the problems; the rest are warnings.
fn take_text(
    text: &str,
    understood: Understood,
    config: &mut StartdConfig,
    problems: &mut Vec<Problem>,
) -> Vec<Problem> {
    let (errors, warnings) = problems_of(&understood.remarks);
    problems.extend(errors);
    if let Some(said) = understood.config {
        let fields = config.clone();
        said.put_into(config);
        config.by_machine = understood.by_machine.then(|| Arc::new(ByMachine { text: text.into(), fields }));
    }
    warnings
}

/// What is to be said of a text: its errors, and the rest.
pub(super) fn problems_of(remarks: &[Remark]) -> (Vec<Problem>, Vec<Problem>) {
    let problem = |remark: &Remark| Problem {
        reason: remark.reason,
        field: "spec.config".to_owned(),
        message: remark.to_string(),
    };
    let (errors, warnings): (Vec<&Remark>, Vec<&Remark>) =
        remarks.iter().partition(|remark| remark.severity == Severity::Error);
    (errors.into_iter().map(problem).collect(), warnings.into_iter().map(problem).collect())
}

/// What a field and the text both say: neither wins, since whoever reads only one of them would be misled.
fn said_twice(spec: &NodePolicySpec, understood: &Understood, problems: &mut Vec<Problem>) {
    let mut fields = vec![
        ("spec.start".to_owned(), "START", spec.start.is_some()),
        ("spec.slotWeight".to_owned(), "SLOT_WEIGHT", spec.slot_weight.is_some()),
        ("spec.claimWorklifeSeconds".to_owned(), "CLAIM_WORKLIFE", spec.claim_worklife_seconds.is_some()),
    ];
    fields
        .extend(spec.attributes.keys().map(|name| (format!("spec.attributes[{name}]"), name.as_str(), true)));
    for (field, name, _) in fields.into_iter().filter(|(_, _, set)| *set) {
        let said = understood.said.iter().find(|(said, ..)| said.eq_ignore_ascii_case(name));
        if let Some((_, line, column)) = said {
            let message = format!(
                "spec.config says {name} too, at line {line}, column {column}; say it in one of the two"
            );
            problems.push(Problem { reason: "SaidTwice", field, message });
        }
    }
}

/// What idle slots do, as the field says it.
fn backfill(spec: &NodePolicySpec, problems: &mut Vec<Problem>) -> Option<Arc<BackfillTemplate>> {
    let said = spec.backfill.as_ref()?;
    let mut problem = |field: &str, message: String| {
        let field = format!("spec.backfill.template{field}");
        problems.push(Problem { reason: "InvalidTemplate", field, message });
    };
    match serde_json::from_value::<PodTemplateSpec>(said.template.clone()) {
        Err(error) => {
            problem("", format!("not a pod template: {error}; it takes metadata and spec, as in a Job"));
        }
        Ok(PodTemplateSpec { spec: None, .. }) => problem(".spec", NO_SPEC.to_owned()),
        Ok(PodTemplateSpec { spec: Some(pod), .. }) => {
            if pod.containers.is_empty() {
                problem(".spec.containers", NO_CONTAINERS.to_owned());
            }
            if pod.node_name.is_some() {
                problem(".spec.nodeName", "is set by the operator; leave it out".to_owned());
            }
            if pod.resources.is_some() {
                problem(".spec.resources", "is not honored: the pod has what its slot holds".to_owned());
            }
        }
    }
    let template: Arc<str> = said.template.to_string().into();
    let mark = format!("{:016x}", fnv(&[said.namespace.as_bytes(), template.as_bytes()]));
    let namespace = said.namespace.as_str().into();
    Some(Arc::new(BackfillTemplate { namespace, template, mark: mark.into() }))
}

/// FNV-1a, which is the same in every build: pods carry it.
fn fnv(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Backfill work takes a template and ENABLE_BACKFILL: one of the two alone does nothing.
fn half_said_backfill(config: &StartdConfig) -> Option<Problem> {
    let mut all = [&config.slots].into_iter().chain(config.types.values()).chain(config.single.values());
    let enabled = all.any(|slot| slot.policy.enable_backfill);
    let (field, message) = match (enabled, config.backfill.is_some()) {
        (true, false) => (
            "spec.config",
            "ENABLE_BACKFILL is true, and there is no spec.backfill that says what idle slots are to run",
        ),
        (false, true) => ("spec.backfill", "does nothing without ENABLE_BACKFILL = true in spec.config"),
        _ => return None,
    };
    let (field, message) = (field.to_owned(), message.to_owned());
    Some(Problem { reason: "BackfillNotEnabled", field, message })
}

fn startd_config(spec: &NodePolicySpec, problems: &mut Vec<Problem>) -> StartdConfig {
    let mut attributes = Vec::new();
    for (name, text) in &spec.attributes {
        let field = format!("spec.attributes[{name}]");
        if !is_attribute_name(name) {
            problems.push(Problem {
                reason: "InvalidAttribute",
                field,
                message: "not an attribute name; use letters, digits and _, and no digit first".to_owned(),
            });
        } else if let Some(expr) = expression(&field, Some(text), problems) {
            attributes.push((name.clone(), expr));
        }
    }
    let policy = Policy {
        start: expression("spec.start", spec.start.as_ref(), problems),
        claim_worklife: spec.claim_worklife_seconds.map(|seconds| {
            u64::try_from(seconds).map_or(ClaimWorklife::Unlimited, |seconds| {
                ClaimWorklife::Limited(Duration::from_secs(seconds))
            })
        }),
        ..Policy::default()
    };
    let slot_weight = expression("spec.slotWeight", spec.slot_weight.as_ref(), problems);
    let backfill = backfill(spec, problems);
    StartdConfig {
        backfill,
        zone: spec
            .time_zone
            .as_deref()
            .and_then(|name| zone("spec.timeZone", name).map_err(|problem| problems.push(problem)).ok())
            .unwrap_or_default(),
        tolerations: tolerations(&spec.tolerations, problems),
        ..SlotConfig { policy, slot_weight, attributes, ..SlotConfig::default() }.into()
    }
}

pub(super) fn expression(field: &str, text: Option<&String>, problems: &mut Vec<Problem>) -> Option<Expr> {
    match Expr::parse(text?) {
        Ok(expr) => Some(expr),
        Err(error) => {
            problems.push(bad_expression(field, &error));
            None
        }
    }
}

fn selector(selector: Option<&LabelSelector>, problems: &mut Vec<Problem>) -> Selector {
    let mut terms = Vec::new();
    let Some(selector) = selector else { return Selector::default() };
    for (key, value) in selector.match_labels.iter().flatten() {
        terms.push(SelectorTerm::In(key.clone(), [value.clone()].into()));
    }
    for (at, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let values = || expression.values.iter().flatten().cloned().collect();
        let key = expression.key.clone();
        match expression.operator.as_str() {
            "In" => terms.push(SelectorTerm::In(key, values())),
            "NotIn" => terms.push(SelectorTerm::NotIn(key, values())),
            "Exists" => terms.push(SelectorTerm::Exists(key)),
            "DoesNotExist" => terms.push(SelectorTerm::DoesNotExist(key)),
            other => problems.push(Problem {
                reason: "InvalidSelector",
                field: format!("spec.nodeSelector.matchExpressions[{at}].operator"),
                message: format!("{other:?} is no operator; use In, NotIn, Exists or DoesNotExist"),
            }),
        }
    }
    Selector { terms }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_say_everything_that_is_wrong() {
        let object = json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p"},
            "spec": {"start": "TARGET.x ==", "slotWeight": "Cpus", "attributes": {"a b": "1"},
                     "nodeSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Is"}]}},
        });
        let facts = node_policy(&serde_json::from_value(object).unwrap());
        let problems: Vec<String> = facts.config.unwrap_err().iter().map(ToString::to_string).collect();
        insta::assert_yaml_snapshot!(problems);
    }

    fn with_text(name: &str, spec: serde_json::Value) -> PolicyFacts {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy",
                            "metadata": {"name": name, "uid": "u1"}, "spec": spec});
        node_policy(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_text_and_fields_go_together() {
        let facts = with_text(
            "p",
            json!({"config": "START = TARGET.a\nRack = 1\nSTARTD_ATTRS = Rack\n", "slotWeight": "Cpus * 2",
                   "attributes": {"Door": "2"}, "tolerations": [{"key": "k"}]}),
        );
        let config = facts.config.unwrap();
        assert_eq!(facts.warnings, Some(vec![]));
        let expr = |expr: &Option<Expr>| expr.as_ref().unwrap().to_string();
        assert_eq!(
            (expr(&config.slots.policy.start), expr(&config.slots.slot_weight)),
            ("TARGET.a".to_owned(), "Cpus * 2".to_owned())
        );
        let names: Vec<&str> = config.slots.attributes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, config.tolerations.len(), &config.by_machine), (vec!["Door", "Rack"], 1, &None));
        let typed_only = with_text("p", json!({"start": "true"}));
        assert_eq!(typed_only.warnings, None);
    }

    #[test]
    fn what_the_text_says_wrong_or_a_field_says_too_is_refused() {
        let facts = with_text(
            "p",
            json!({"config": "START = 1 +\nSLOT_WEIGHT = 2\nCLAIM_WORKLIFE = 1 h\nrack = 1\nSTARTD_ATTRS = rack\nSYSTEM_STARTD_LATCH_EXPRS = A\n",
                   "start": "true", "slotWeight": "1", "claimWorklifeSeconds": 3, "attributes": {"Rack": "2", "B": "3"}}),
        );
        let problems: Vec<String> = facts.config.unwrap_err().iter().map(ToString::to_string).collect();
        let warnings: Vec<String> = facts.warnings.unwrap().iter().map(ToString::to_string).collect();
        insta::assert_yaml_snapshot!((problems, warnings));
    }

    #[test]
    fn backfill_work_takes_a_template_and_a_policy_that_enables_it() {
        let spec = json!({"containers": [{"name": "boinc", "image": "boinc/client"}]});
        let backfill = |spec: &serde_json::Value| json!({"namespace": "fill", "template": {"spec": spec}});
        let enabled = "ENABLE_BACKFILL = true\nSTART_BACKFILL = true\n";
        for (given, problems, warnings) in [
            (json!({"config": enabled, "backfill": backfill(&spec)}), vec![], vec![]),
            (
                json!({"config": enabled}),
                vec![],
                vec![
                    "spec.config: ENABLE_BACKFILL is true, and there is no spec.backfill that says what idle slots are to run",
                ],
            ),
            (
                json!({"backfill": backfill(&spec)}),
                vec![],
                vec!["spec.backfill: does nothing without ENABLE_BACKFILL = true in spec.config"],
            ),
            (
                json!({"config": enabled, "backfill": backfill(&json!({"containers": [], "nodeName": "n1"}))}),
                vec![
                    "spec.backfill.template.spec.containers: is empty; give it at least one container",
                    "spec.backfill.template.spec.nodeName: is set by the operator; leave it out",
                ],
                vec![],
            ),
            (
                json!({"config": enabled, "backfill": {"namespace": "fill", "template": {}}}),
                vec!["spec.backfill.template.spec: is missing; give it at least one container"],
                vec![],
            ),
            (
                json!({"config": format!("{enabled}BACKFILL_SYSTEM = seti"), "backfill": backfill(&spec)}),
                vec![
                    "spec.config: line 3, column 19: BACKFILL_SYSTEM is seti, which is no backfill system: say BOINC, or leave it out",
                ],
                vec![],
            ),
        ] {
            let facts = with_text("p", given.clone());
            let shown = |all: &[Problem]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(facts.config.as_ref().map_or_else(|e| shown(e), |_| vec![]), problems, "{given}");
            assert_eq!(shown(&facts.warnings.unwrap_or_default()), warnings, "{given}");
        }
    }

    #[test]
    fn pods_of_one_template_bear_one_mark() {
        let mark = |namespace: &str, name: &str| {
            let template = json!({"spec": {"containers": [{"name": name}]}});
            let facts = with_text("p", json!({"backfill": {"namespace": namespace, "template": template}}));
            facts.config.unwrap().backfill.as_ref().unwrap().mark.to_string()
        };
        assert_eq!(mark("a", "b"), mark("a", "b"));
        assert!(mark("a", "b") != mark("a", "c") && mark("a", "b") != mark("b", "b"));
    }

    #[test]
    fn the_last_accepted_text_stays_in_force_and_events_say_what_is_wrong() {
        use model::pool::{Event, Notice, Pool, Subject, Time};
        let mut pool = Pool::default();
        let mut apply = |text: &str| {
            pool.apply(Event::Policy(with_text("p", json!({"config": text}))), Time::from_secs(1));
            let notices: Vec<Notice> = std::mem::take(&mut pool.notices);
            let policy = pool.policies.values().next().unwrap();
            let start = policy
                .config
                .as_ref()
                .and_then(|config| config.slots.policy.start.as_ref().map(ToString::to_string));
            let told: Vec<String> = notices
                .into_iter()
                .map(|notice| {
                    assert_eq!(notice.about, Subject::Policy { name: "p".into(), uid: "u1".into() });
                    format!("{} {}", notice.reason, notice.note)
                })
                .collect();
            (start, told)
        };
        let story: Vec<_> = [
            "START = (",
            "START = TARGET.a",
            "START = TARGET.b &&",
            "START = TARGET.b &&",
            "START = TARGET.c\nSYSTEM_STARTD_LATCH_EXPRS = A",
            "START = TARGET.d\nSYSTEM_STARTD_LATCH_EXPRS = A",
        ]
        .map(&mut apply)
        .into();
        insta::assert_yaml_snapshot!(story);
    }

    #[test]
    fn a_new_leader_knows_the_accepted_spec_by_the_record() {
        use model::pool::{Event, Pool, Time};
        let good = NodePolicySpec {
            config: Some("START = TARGET.a".to_owned()),
            precedence: 7,
            ..Default::default()
        };
        let bad = json!({"config": "START = (", "nodeSelector": {"matchLabels": {"a": "b"}}});
        for (record, in_force) in [
            (serde_json::to_string(&good).unwrap(), Some("TARGET.a")),
            ("{\"config\": \"START = (\"}".to_owned(), None),
            ("no JSON".to_owned(), None),
        ] {
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p"},
                                "spec": bad, "status": {"acceptedSpec": record}});
            let facts = node_policy(&serde_json::from_value(object).unwrap());
            let mut pool = Pool::default();
            pool.apply(Event::Policy(facts), Time::from_secs(1));
            let policy = pool.policies.values().next().unwrap();
            let start = policy
                .config
                .as_ref()
                .and_then(|config| config.slots.policy.start.as_ref().map(ToString::to_string));
            assert_eq!(start.as_deref(), in_force);
            assert_eq!(
                policy.accepted.as_deref(),
                in_force.map(|_| record.as_str()),
                "the record stays as it is"
            );
            assert_eq!(
                (policy.precedence, policy.selector.terms.len()),
                if in_force.is_some() { (7, 0) } else { (0, 1) }
            );
            assert_eq!(policy.problems.len(), 1);
        }
    }

    #[test]
    fn a_static_quota_wins_over_a_dynamic_one_and_none_is_nothing() {
        for (spec, quota) in [
            (json!({"quota": 3, "dynamicQuota": 0.5}), Quota::Static(3.0)),
            (json!({"dynamicQuota": 0.5}), Quota::Dynamic(0.5)),
            (json!({}), Quota::Static(0.0)),
        ] {
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "g"}, "spec": spec});
            assert_eq!(group(&serde_json::from_value(object).unwrap()).quota, quota);
        }
    }
}
