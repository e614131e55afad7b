//! How a pod ended: by its own program, or by something else.

use std::sync::Arc;

use super::{SlimCondition, SlimContainerStatus, SlimPod, SlimTerminated};
use crate::render::DISRUPTION_TARGET;
use api::labels;
use model::pool::{End, VacateReason};

pub(super) fn is_terminal(pod: &SlimPod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// How a pod ended, if it has.
pub(super) fn end(pod: &SlimPod) -> Option<End> {
    match pod.status.phase.as_str() {
        // A program that ends well because it was told to stop has not done its work.
        "Succeeded" if finished(pod, After::Asked) => Some(deleted(pod)),
        "Succeeded" => Some(End::Exited { code: 0 }),
        "Failed" => Some(failed(pod)),
        // Only the tracking finalizer keeps the pod: the kubelet has confirmed its end, or somebody deleted the pod by
        // force.
        _ if pod.metadata.deletion_timestamp.is_some()
            && pod.metadata.deletion_grace_period_seconds == Some(0) =>
        {
            Some(deleted(pod))
        }
        _ => None,
    }
}

fn failed(pod: &SlimPod) -> End {
    // A pod has a reason if something else than its own program ended it. `DeadlineExceeded` is an exception: the job set
    // that deadline itself.
    if let Some(reason) = pod.status.reason.as_deref().filter(|reason| *reason != "DeadlineExceeded") {
        return evicted(&format!(
            "{reason}: {}",
            pod.status.message.as_deref().unwrap_or("the node gave no message")
        ));
    }
    let said = main_status(pod).and_then(|terminated| terminated.message.as_deref());
    if said.is_some_and(|said| said.starts_with(labels::FENCED)) {
        return evicted(
            "the node's agent could not reach the API server for the lease of the claim, and ended it",
        );
    }
    if let Some(lost) = lost_by_node(pod) {
        return evicted(&format!("its node lost it, as one does that starts again: {lost}"));
    }
    // The operator writes its own reason before it deletes a pod, and the pod may have ended by itself meanwhile: then
    // the time of the end decides, as below.
    let said_by_us =
        |disrupted: &&SlimCondition| disrupted.reason.as_deref().and_then(VacateReason::named).is_some();
    if disrupted(pod).is_some_and(|disrupted| !said_by_us(&disrupted)) {
        return deleted(pod);
    }
    // Times are in whole seconds: a program that ends in the second in which it is told to stop has most likely obeyed.
    if finished(pod, After::OrWhenAsked) || obeyed(pod) {
        return deleted(pod);
    }
    End::Exited { code: exit_code(pod).unwrap_or(1) }
}

/// The reasons that kubelet and runtime give for a container from before a restart of the node, or one that they cannot
/// find. Nobody knows how it ended: its exit code, 255 or 137, is made up.
const LOST: [&str; 2] = ["Unknown", "ContainerStatusUnknown"];

/// The reason and exit code of a pod whose node lost its main container, or an init container.
fn lost_by_node(pod: &SlimPod) -> Option<String> {
    let inits =
        pod.status.init_container_statuses.iter().filter_map(|status| status.state.terminated.as_ref());
    let ended = main_status(pod).into_iter().chain(inits);
    let lost = |ended: &&SlimTerminated| ended.reason.as_deref().is_some_and(|reason| LOST.contains(&reason));
    let lost = ended.into_iter().find(lost)?;
    Some(format!("{} (exit code {})", lost.reason.as_deref().unwrap_or_default(), lost.exit_code))
}

/// By how many seconds a node's clock may be behind the API server's clock.
const SKEW: i64 = 60;

/// Whether a program died of a signal that stops it, SIGTERM or SIGKILL, after its pod's deletion was asked for, or at
/// most [`SKEW`] before. The node's clock gives the time of the death, and the API server's the time of the deletion: the
/// two may differ.
fn obeyed(pod: &SlimPod) -> bool {
    let Some(ended) = main_status(pod) else { return false };
    let signal = [128 + 9, 128 + 15].contains(&ended.exit_code);
    let at = ended.finished_at.as_ref().map(|at| at.0.as_second());
    let about_then = || asked(pod).zip(at).is_some_and(|(asked, at)| at >= asked.saturating_sub(SKEW));
    signal && ended.reason.as_deref() != Some("OOMKilled") && about_then()
}

/// Why a pod was disrupted. The operator, the pod garbage collector, the eviction API and taints say so by a condition
/// before they delete.
fn disruption(pod: &SlimPod) -> Option<String> {
    let disrupted = disrupted(pod)?;
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "not said".to_owned());
    Some(format!("{}: {}", said(&disrupted.reason), said(&disrupted.message)))
}

pub(super) fn disrupted(pod: &SlimPod) -> Option<&SlimCondition> {
    pod.status.conditions.iter().find(|c| c.type_ == DISRUPTION_TARGET && c.status == "True")
}

/// A pod that was ended because it was deleted.
fn deleted(pod: &SlimPod) -> End {
    evicted(&disruption(pod).unwrap_or_else(|| "its pod was deleted".to_owned()))
}

/// How late a container must have ended to have been told to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Asked,
    OrWhenAsked,
}

/// Whether the main container ended after the pod's deletion was asked for, and so because it was told to stop. If no
/// time of its end is known, it did.
fn finished(pod: &SlimPod, after: After) -> bool {
    let Some(asked) = asked(pod) else { return false };
    let Some(at) = main_status(pod).and_then(|terminated| terminated.finished_at.as_ref()) else {
        return true;
    };
    at.0.as_second() > asked || (at.0.as_second() == asked && after == After::OrWhenAsked)
}

pub(super) fn main_container(pod: &SlimPod) -> Option<&SlimContainerStatus> {
    let main = pod.spec.containers.first()?;
    pod.status.container_statuses.iter().find(|status| status.name == main.name)
}

/// When the pod's deletion was asked for, by the API server's clock, in seconds.
fn asked(pod: &SlimPod) -> Option<i64> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    Some(deadline.0.as_second().saturating_sub(grace))
}

fn main_status(pod: &SlimPod) -> Option<&SlimTerminated> {
    main_container(pod)?.state.terminated.as_ref()
}

pub(super) fn evicted(why: &str) -> End {
    End::Evicted { why: Arc::from(why) }
}

/// The exit code of a pod that failed: the main container's; if that is 0, another container's.
fn exit_code(pod: &SlimPod) -> Option<i32> {
    let main = pod.spec.containers.first().map(|container| container.name.as_str());
    let mut codes: Vec<(bool, i32)> = pod
        .status
        .container_statuses
        .iter()
        .filter_map(|status| {
            Some((Some(status.name.as_str()) != main, status.state.terminated.as_ref()?.exit_code))
        })
        .filter(|(_, code)| *code != 0)
        .collect();
    codes.sort_by_key(|(other, _)| *other);
    codes.first().map(|(_, code)| *code)
}
