//! NodePolicies: which nodes, and their startd's configuration.

mod doubts;
mod selector;
mod tolerations;
mod zone;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use self::selector::selector;
use self::tolerations::tolerations;
use self::zone::zone;
use super::conditions::{Says, condition, of_policy};
use super::document::count;
use super::governing::{self, Read, expression, problems_of};
use super::job::{NO_CONTAINERS, NO_SPEC};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use api::{NodePolicy, NodePolicySpec, NodePolicyStatus, condition as types, fnv};
use model::pool::{
    BackfillTemplate, ByMachine, ClaimWorklife, Document, Event, Fallback, NodePolicy as KnownPolicy, Policy,
    PolicyFacts, PolicyName, Pool, Problem, Selection, SlotConfig, StartdConfig, Time,
};
use model::schedd::{given_twice, is_attribute_name};
use model::startd::config::{self as startd, Understood};
use model::startd::overlap;

impl Custom for NodePolicy {
    type Kept = ();
    const KIND: Kind = Kind::of(&("NodePolicy", "nodepolicies"));
    const STAGE: Stage = Stage::Policies;

    fn keep(_: &Self) {}

    fn there(policy: Self, (): &()) -> Vec<News> {
        told(Event::Policy(facts(&policy)))
    }

    fn document(policy: &Self, (): &()) -> Option<Document> {
        Some(Document::Policy(policy.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::PolicyGone(names.name.as_str().into()))
    }
}

impl Shown for NodePolicy {
    type Subject = PolicyName;

    fn subject(document: &Document) -> Option<&PolicyName> {
        match document {
            Document::Policy(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &PolicyName) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.to_string()))
    }

    fn render(pool: &Pool, name: &PolicyName, old: &[Condition], now: Time) -> Rendered {
        let policy = pool.policies().get(name);
        policy.map_or(Rendered::Nothing, |policy| Rendered::status(&status(pool, name, policy, old, now)))
    }
}

/// The status of a `NodePolicy`.
fn status(
    pool: &Pool,
    name: &PolicyName,
    policy: &KnownPolicy,
    old: &[Condition],
    now: Time,
) -> NodePolicyStatus {
    let nodes = pool.machines().values().filter(|machine| machine.policy.as_ref() == Some(name)).count();
    let problems = (policy.problems.as_slice(), policy.meanwhile(Fallback::NoOffers));
    let several = pool.policies().len() > 1;
    NodePolicyStatus {
        observed_generation: Some(policy.generation),
        nodes: count(nodes),
        accepted_spec: policy.accepted.as_deref().map(str::to_owned),
        conditions: {
            let own = of_policy(old, problems, policy.warnings.as_deref(), policy.generation, now);
            let shared = several.then(|| condition(old, overlaps(pool, name), Some(policy.generation), now));
            own.into_iter().chain(shared).collect()
        },
    }
}

/// `Overlaps`: whether a policy and another get into each other's way.
fn overlaps(pool: &Pool, name: &PolicyName) -> Says<'static> {
    let found = overlap(pool, name);
    let (status, reason) =
        (Some(found.is_some()), found.as_ref().map_or("NoneShared", |problem| problem.reason));
    let none = "no node is selected by another NodePolicy of the same precedence, too";
    let message = found.map_or_else(|| none.to_owned(), |problem| problem.message);
    Says { type_: types::OVERLAPS, status, reason, message }
}

/// The pool's facts of a `NodePolicy`. If the spec cannot be used, the facts include the spec that the status records as
/// accepted.
pub fn facts(object: &NodePolicy) -> PolicyFacts {
    let accepted = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
    governing::facts(object, &object.spec, accepted, read)
}

fn read(spec: &NodePolicySpec) -> Read<StartdConfig, Selection> {
    let mut problems = Vec::new();
    let selector = selector(spec.node_selector.as_ref(), &mut problems);
    let mut config = startd_config(spec, &mut problems);
    let warnings = spec.config.as_deref().map(|text| {
        let understood = understand(spec, text);
        said_twice(spec, &understood, &mut problems);
        take_text(text, understood, &mut config, &mut problems)
    });
    let of_fields = half_said_backfill(&config).filter(|_| problems.is_empty());
    let of_fields: Vec<Problem> =
        of_fields.into_iter().chain(doubts::of_fields(spec, &config)).chain(in_vain(spec)).collect();
    let warnings = if of_fields.is_empty() {
        warnings
    } else {
        Some(warnings.into_iter().flatten().chain(of_fields).collect())
    };
    Read {
        selection: Selection { selector, precedence: spec.precedence },
        config: if problems.is_empty() { Ok(Arc::new(config)) } else { Err(problems) },
        warnings,
    }
}

/// Reads the configuration text of a spec.
fn understand(spec: &NodePolicySpec, text: &str) -> Understood {
    let attributes: Vec<&str> = spec.attributes.keys().map(String::as_str).collect();
    startd::understand_beside(&attributes, text)
}

/// Adds the text's configuration to `config`, and its errors to `problems`. Returns its warnings: those about slot types first, which
/// decide whether the nodes have slots at all.
fn take_text(
    text: &str,
    understood: Understood,
    config: &mut StartdConfig,
    problems: &mut Vec<Problem>,
) -> Vec<Problem> {
    let (errors, mut warnings) = problems_of(&understood.remarks);
    problems.extend(errors);
    warnings.sort_by_key(|warning| warning.reason != "SlotType");
    if let Some(said) = understood.config {
        let fields = config.clone();
        said.put_into(config);
        config.by_machine = understood.by_machine.then(|| Arc::new(ByMachine { text: text.into(), fields }));
    }
    warnings
}

/// The fields of a NodePolicy's spec that stand for knobs, each with its knob.
pub const KNOBS_OF_FIELDS: [(&str, &str); 3] =
    [("start", "START"), ("slotWeight", "SLOT_WEIGHT"), ("claimWorklifeSeconds", "CLAIM_WORKLIFE")];

/// Adds a problem for each knob and attribute that both a field of the spec and the text give. Neither counts, since
/// whoever reads only one of the two would be misled.
fn said_twice(spec: &NodePolicySpec, understood: &Understood, problems: &mut Vec<Problem>) {
    let set = [spec.start.is_some(), spec.slot_weight.is_some(), spec.claim_worklife_seconds.is_some()];
    let own = KNOBS_OF_FIELDS.iter().zip(set);
    let mut fields: Vec<_> = own.map(|((field, knob), set)| (format!("spec.{field}"), *knob, set)).collect();
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

/// The template of backfill pods, as `spec.backfill` gives it.
fn backfill(spec: &NodePolicySpec, problems: &mut Vec<Problem>) -> Option<Arc<BackfillTemplate>> {
    let said = spec.backfill.as_ref()?;
    let mut problem = |field: &str, message: String| {
        let field = format!("spec.backfill.template{field}");
        problems.push(Problem { reason: "InvalidTemplate", field, message });
    };
    match serde_json::from_value::<PodTemplateSpec>(said.template.clone()) {
        Err(error) => {
            problem(
                "",
                format!("not a pod template: {error}; a pod template has metadata and spec, as in a Job"),
            );
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
    // Each part ends with a byte 0. Pods carry this mark.
    let parts = said.namespace.bytes().chain([0]).chain(template.bytes()).chain([0]);
    let mark = format!("{:016x}", fnv(parts));
    let namespace = said.namespace.as_str().into();
    Some(Arc::new(BackfillTemplate { namespace, template, mark: mark.into() }))
}

/// Warnings about attributes that each slot sets itself.
fn in_vain(spec: &NodePolicySpec) -> impl Iterator<Item = Problem> {
    let warning = |name: &String| {
        let field = format!("spec.attributes[{name}]");
        Some(Problem { reason: "ConfigurationWarning", field, message: startd::in_vain(name)? })
    };
    spec.attributes.keys().filter_map(warning)
}

/// The warning that a policy gives only one of a template and ENABLE_BACKFILL, which does nothing without the other.
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
    problems.extend(given_twice(spec.attributes.keys()));
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
        drain_cordoned: spec.drain_cordoned,
        ..SlotConfig { policy, slot_weight, attributes, ..SlotConfig::default() }.into()
    }
}

#[cfg(test)]
mod tests;
