//! Does the kubelet take this pod? The checks, reasons and messages are those of kubelet's predicate admission.
//!
//! Source: `pkg/kubelet/lifecycle/predicate.go` of Kubernetes; messages in their current wording (1.20 wrote `Pod `
//! where newer ones write `Pod was rejected: `). One difference: a kubelet whose device plugin runs short says
//! `UnexpectedAdmissionError`; ours says `OutOfnvidia.com/gpu`, as a kubelet does for extended resources in general.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;

use super::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};
use super::view::PodView;

/// Why a pod was refused: `status.reason` and `status.message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// What admission needs to know of the node.
#[derive(Debug, Clone, Copy)]
pub struct NodeFacts<'n> {
    /// The node's name.
    pub name: &'n str,
    /// Its labels.
    pub labels: &'n BTreeMap<String, String>,
    /// Its taints.
    pub taints: &'n [Taint],
    /// What it offers to pods.
    pub allocatable: &'n Resources,
}

/// Admits `pod` beside `count` pods that use `used` together, or says why not: the first failing check in kubelet's
/// order (resources, then selector and affinity, then taints).
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
        // Extended resources that the node does not list are somebody else's business (cluster-level resources).
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
