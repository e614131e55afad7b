//! Decides whether the kubelet admits a pod, with the checks, reasons and messages of kubelet's predicate admission.
//!
//! Source: `pkg/kubelet/lifecycle/predicate.go` of Kubernetes. The messages have their current wording (Kubernetes
//! 1.20 wrote `Pod ` where newer versions write `Pod was rejected: `). There is one difference: a kubelet whose
//! device plugin has too few devices says `UnexpectedAdmissionError`; this one says `OutOfnvidia.com/gpu`, as a
//! kubelet says for extended resources in general.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;

use super::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};
use super::view::PodView;

/// Why the kubelet rejected a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// `status.reason`: one word for programs.
    pub reason: String,
    /// `status.message`: a sentence for people.
    pub message: String,
}

/// The facts about the node that admission needs.
#[derive(Debug, Clone, Copy)]
pub struct NodeFacts<'n> {
    /// The node's name.
    pub name: &'n str,
    /// The node's labels.
    pub labels: &'n BTreeMap<String, String>,
    /// The node's taints.
    pub taints: &'n [Taint],
    /// The node's `status.allocatable`.
    pub allocatable: &'n Resources,
}

/// Admits `pod` to a node on which `count` pods already use `used` together.
///
/// The error names the first check that fails, in kubelet's order: resources, then selector and affinity, then
/// taints. A pod whose annotations or quantities cannot be read fails before all of these.
pub fn admit(pod: &PodView, node: NodeFacts<'_>, used: &Resources, count: i64) -> Result<(), Rejection> {
    if let Some(problem) = &pod.problem {
        return Err(Rejection { reason: "HollowScript".to_owned(), message: problem.clone() });
    }
    if let Some(shortage) = shortage(&pod.requests, node.allocatable, used, count) {
        return Err(shortage);
    }
    if !pod.placement.matches(node.name, node.labels) {
        let why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        return Err(rejected("NodeAffinity", why));
    }
    if let Some(taint) = pod.placement.untolerated(node.taints) {
        let value = taint.value.as_deref().unwrap_or_default();
        let why = format!("Predicate TaintToleration failed: node(s) had taint {{{}: {value}}}", taint.key);
        return Err(rejected("TaintToleration", &why));
    }
    Ok(())
}

fn shortage(
    requests: &Resources,
    allocatable: &Resources,
    used: &Resources,
    count: i64,
) -> Option<Rejection> {
    if count + 1 > allocatable.get(PODS) {
        return Some(out_of(PODS, 1, count, allocatable.get(PODS)));
    }
    let others =
        requests.iter().map(|(name, _)| name).filter(|name| ![CPU, MEMORY, EPHEMERAL_STORAGE].contains(name));
    [CPU, MEMORY, EPHEMERAL_STORAGE].into_iter().chain(others).find_map(|name| {
        let (asked, taken, most) = (requests.get(name), used.get(name), allocatable.get(name));
        // The kubelet ignores extended resources that its node does not list: they are cluster-level resources,
        // which a scheduler extender counts.
        let counted = !name.contains('/') || allocatable.contains(name);
        (counted && asked > 0 && asked > most - taken).then(|| out_of(name, asked, taken, most))
    })
}

fn out_of(resource: &str, requested: i64, used: i64, capacity: i64) -> Rejection {
    let why = format!(
        "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    );
    rejected(&format!("OutOf{resource}"), &why)
}

fn rejected(reason: &str, why: &str) -> Rejection {
    Rejection { reason: reason.to_owned(), message: format!("Pod was rejected: {why}") }
}
