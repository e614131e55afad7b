//! How a pod ended: by its own program, or by something else.
//!
//! `docs/reference/pods.md` has the rules as a table, with what real kubelets write.

use std::sync::Arc;

use kube::ResourceExt;

use super::{SlimCondition, SlimContainerStatus, SlimPod, SlimTerminated};
use crate::convert::SlimContainer;
use crate::render::DISRUPTION_TARGET;
use api::labels;
use model::pool::{
    End, FAILED_TO_CREATE_PROCESS, Forced, HoldReason, JOB_OUT_OF_RESOURCES, OUT_OF_DISK, OUT_OF_MEMORY,
    Remains,
};

/// How the proc of a pod ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ending {
    /// How the proc ended.
    pub(super) end: End,
    /// The reason for which the proc is held, if it would end in the same way again.
    pub(super) hold: Option<HoldReason>,
    /// Whether the proc counts as evicted for no other reason than that its pod was asked to go.
    pub(super) told: bool,
}

impl Ending {
    fn held(code: i64, subcode: i64, reason: String) -> Self {
        let reason: Arc<str> = reason.into();
        Self {
            end: End::Evicted { why: Arc::clone(&reason) },
            hold: Some(HoldReason { code, subcode, reason }),
            told: false,
        }
    }
}

impl From<End> for Ending {
    fn from(end: End) -> Self {
        Self { end, hold: None, told: false }
    }
}

/// Whether the pod's phase is a last one.
pub(super) fn is_terminal(pod: &SlimPod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// Whether a kubelet has confirmed, by a last phase, that all containers of the pod have ended. The pod garbage collector
/// writes the phase Failed too, for pods whose Node is gone, and leaves what the pod says of its containers.
fn is_confirmed(pod: &SlimPod) -> bool {
    is_terminal(pod) && (!is_collected(pod) || others(pod) == Some(false))
}

/// Whether a container of the pod runs, as far as its kubelet said.
fn runs(pod: &SlimPod) -> bool {
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    all.into_iter().any(|container| container.state.running.is_some())
}

/// Whether the pod garbage collector declared the pod over.
fn is_collected(pod: &SlimPod) -> bool {
    disrupted(pod).is_some_and(|disrupted| disrupted.reason.as_deref() == Some("DeletionByPodGC"))
}

/// Whether the pod was taken off its kubelet: deleted with grace period 0, or declared over by the pod garbage collector. The kubelet's own
/// last deletion has grace period 0, too, and comes after a last phase. A kubelet older than 1.27 also deletes in this way a pod without a
/// last phase if the main container never ran.
pub(super) fn forced(pod: &SlimPod) -> Forced {
    let by_force =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    if is_confirmed(pod) || !(by_force || is_terminal(pod)) {
        Forced::No
    } else if runs(pod) || main_exit(pod).is_some() {
        Forced::Running
    } else {
        Forced::Idle
    }
}

/// How the proc of a pod ended, if it has: the main container's end is the proc's, whatever else runs in the pod. The end of a
/// pod of which only the last phase is to come ([`Remains::Ending`]) is not certain: a kubelet that evicts a pod says so with
/// that phase. `since` is the earliest second since which the pod was seen to be asked to go.
pub(super) fn ending(pod: &SlimPod, since: Option<i64>) -> Option<Ending> {
    if is_confirmed(pod) {
        return Some(of_confirmed(pod, since));
    }
    // A pod that is being deleted will have a last phase, which tells more. A pod that was only marked with the
    // condition `DisruptionTarget` may never be deleted: the end of its main container counts now.
    let exit = main_exit(pod).filter(|exit| asked_by_deletion(pod).is_none() && !never_started(exit))?;
    Some(of_exit(pod, exit, since).unwrap_or_else(|| exited(pod, exit).into()))
}

/// Which containers of a pod are left after its proc has ended.
pub(super) fn remains(pod: &SlimPod) -> Remains {
    if is_confirmed(pod) {
        return Remains::Nothing;
    }
    if others(pod) == Some(false) { Remains::Ending } else { Remains::Others }
}

/// Whether containers besides the main one have not ended yet, as far as the kubelet says; none while the main one has not.
fn others(pod: &SlimPod) -> Option<bool> {
    let main = main_of_spec(pod)?;
    main_exit(pod)?;
    let mut others = pod.status.container_statuses.iter().filter(|status| status.name != main.name);
    Some(others.any(|status| status.state.terminated.is_none()))
}

fn of_confirmed(pod: &SlimPod, since: Option<i64>) -> Ending {
    // A pod has a reason if something else than its own program ended it. `DeadlineExceeded` is an exception: the job set
    // that deadline itself.
    if let Some(reason) = pod.status.reason.as_deref().filter(|reason| *reason != DEADLINE_EXCEEDED) {
        let message = pod.status.message.as_deref().unwrap_or("the node gave no message");
        let text = format!("{reason}: {message}");
        return match asked_by_deletion(pod) {
            None if is_over_its_disk(reason, message) => {
                Ending::held(JOB_OUT_OF_RESOURCES, OUT_OF_DISK, text)
            }
            _ => evicted(&text).into(),
        };
    }
    if let Some(exit) = main_exit(pod) {
        return of_exit(pod, exit, since).unwrap_or_else(|| exited(pod, exit).into());
    }
    if let Some((container, exit)) = failed_init(pod) {
        let end = || End::InitFailed { container: container.into(), code: exit.exit_code };
        return of_exit(pod, exit, since).unwrap_or_else(|| end().into());
    }
    if asked(pod).is_some() {
        return deleted(pod).into();
    }
    match (pod.status.phase.as_str(), pod.status.reason.as_deref()) {
        ("Succeeded", _) => End::Exited { code: 0 }.into(),
        (_, Some(DEADLINE_EXCEEDED)) => End::Exited { code: 1 }.into(),
        _ => evicted("the node lost the pod's containers: nobody knows how the containers ended").into(),
    }
}

/// The reason of a pod that ran for longer than its own `activeDeadlineSeconds`.
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// The reasons that kubelet and runtime give for a container from before a restart of the node, or for a container that they
/// cannot find. Nobody knows how such a container ended: its exit code, 255 or 137, is made up.
const LOST: [&str; 2] = ["Unknown", "ContainerStatusUnknown"];

/// The reasons that runtimes give for a container whose program could not be started. Its exit code is made up.
const NOT_STARTED: [&str; 2] = ["StartError", "ContainerCannotRun"];

/// Whether a runtime's message says that the program is at fault, and not the node: a runtime that is itself killed while it
/// starts a container reports the same reason.
fn names_the_program(message: &str) -> bool {
    const PROGRAM: [&str; 6] = [
        "exec:",
        "executable file",
        "no such file or directory",
        "permission denied",
        "exec format error",
        "not a directory",
    ];
    let message = message.to_ascii_lowercase();
    PROGRAM.iter().any(|text| message.contains(text))
}

/// Whether a container was created and never started: its node lost power in between. Kubelets count such a container as ended,
/// with exit code 0, and give neither a reason nor a time; the pod's phase is then Succeeded.
fn never_started(exit: &SlimTerminated) -> bool {
    let has_no_time = exit.finished_at.as_ref().is_none_or(|at| at.0.as_second() <= 0);
    exit.exit_code == 0 && has_no_time && exit.reason.as_deref().unwrap_or_default().is_empty()
}

/// How the end of a container ends its proc, if the container's end is not an exit by the program itself.
fn of_exit(pod: &SlimPod, exit: &SlimTerminated, since: Option<i64>) -> Option<Ending> {
    let reason = exit.reason.as_deref();
    let is = |known: &[&str]| reason.is_some_and(|reason| known.contains(&reason));
    let said = exit.message.as_deref().unwrap_or_default();
    if said.starts_with(labels::FENCED) {
        let why = "the node's agent could not renew its Lease for as long as the lease of the claim, and the node's guard ended the pod";
        return Some(evicted(why).into());
    }
    if is(&LOST) {
        let (reason, code) = (reason.unwrap_or_default(), exit.exit_code);
        let why = format!(
            "the node lost the container, as happens when a node restarts: {reason} (exit code {code})"
        );
        return Some(evicted(&why).into());
    }
    if never_started(exit) {
        let why = "the node lost the container after creating it and before the program started";
        return Some(evicted(why).into());
    }
    if was_told(pod, exit, since) {
        return Some(Ending { told: true, ..deleted(pod).into() });
    }
    if is(&NOT_STARTED) {
        let reason = reason.unwrap_or_default();
        if !names_the_program(said) {
            let why = format!("its node could not start its container: {reason}: {said}");
            return Some(evicted(&why).into());
        }
        let why = format!("the program of its container cannot be started: {reason}: {said}");
        return Some(Ending::held(FAILED_TO_CREATE_PROCESS, 0, why));
    }
    // The runtime reports OOMKilled also if another process of the container was killed. The program may have gone
    // on, and may have ended well.
    if is(&["OOMKilled"]) && exit.exit_code != 0 {
        let limit = main_of_spec(pod).and_then(SlimContainer::memory_limit);
        let limit = limit.map_or_else(String::new, |bytes| format!(" of {} MiB", bytes >> 20));
        let why = format!(
            "the program went over its memory limit{limit} and was killed: raise memory in spec.requests"
        );
        return Some(Ending::held(JOB_OUT_OF_RESOURCES, OUT_OF_MEMORY, why));
    }
    None
}

/// The end of a program that ended by itself.
fn exited(pod: &SlimPod, exit: &SlimTerminated) -> End {
    // A program that ends well because its own deadline stopped it has not done its work.
    let late = pod.status.reason.as_deref() == Some(DEADLINE_EXCEEDED) && exit.exit_code == 0;
    End::Exited { code: if late { 1 } else { exit.exit_code } }
}

/// Whether a kubelet evicted a pod because the pod used more disk than its own limits allow. A pod that is evicted
/// because its node is low on a resource has done nothing wrong.
fn is_over_its_disk(reason: &str, message: &str) -> bool {
    const OWN_LIMIT: [&str; 3] = [
        "exceeded its local ephemeral storage limit",
        "ephemeral local storage usage exceeds the total limit of containers",
        "exceeds the limit",
    ];
    reason == "Evicted" && OWN_LIMIT.iter().any(|text| message.contains(text))
}

/// By how many seconds the clocks of a node, of the operator and of the API server may differ.
const SKEW: i64 = 60;

/// Since when a pod is asked to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    /// Nobody knows: earlier than the pod shows.
    Earlier,
    /// Since this second.
    At(i64),
}

/// Since when a pod is asked to go; `None` if nobody has asked. The earlier of the condition `DisruptionTarget` and
/// the deletion counts.
fn asked(pod: &SlimPod) -> Option<Asked> {
    let disruption = disrupted(pod).map(|disrupted| {
        disrupted.last_transition_time.as_ref().map_or(Asked::Earlier, |at| Asked::At(at.0.as_second()))
    });
    [disruption, asked_by_deletion(pod)].into_iter().flatten().min()
}

/// The earliest second since which a pod was seen to be asked to go: `before`, if earlier versions of the pod showed it. `None` if
/// nobody asks any more: an eviction that came to nothing takes its condition back.
pub(super) fn first_asked(pod: &SlimPod, before: Option<i64>) -> Option<i64> {
    let now = match asked(pod)? {
        Asked::Earlier => None,
        Asked::At(second) => Some(second),
    };
    now.into_iter().chain(before).min()
}

/// Since when a pod is deleted, if it is. A grace period of 0 tells nothing of that: the kubelet's own last deletion, after
/// the containers have ended, sets both the period and the time anew.
fn asked_by_deletion(pod: &SlimPod) -> Option<Asked> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?.0.as_second();
    match pod.metadata.deletion_grace_period_seconds.unwrap_or(0) {
        0 => Some(Asked::Earlier),
        grace => Some(Asked::At(deadline.saturating_sub(grace))),
    }
}

/// Whether a program was told to end: it may have been, unless it is certain that the program had ended by itself before.
///
/// An exit code tells nothing, since a program that is told to end may end as it likes. Times are in whole seconds, by the
/// clocks of three machines. So an end is the program's own only if nobody had asked the pod to go when the end was seen, or
/// if the end lies more than [`SKEW`] before the asking, as that of a program that ended while its kubelet was down.
fn was_told(pod: &SlimPod, exit: &SlimTerminated, since: Option<i64>) -> bool {
    let asked = asked(pod).map(|now| since.map_or(now, |since| now.min(Asked::At(since))));
    match (asked, &exit.finished_at) {
        (None, _) => false,
        (Some(Asked::At(asked)), Some(at)) => at.0.as_second().saturating_add(SKEW) >= asked,
        (Some(_), _) => true,
    }
}

/// Why a pod was disrupted, as its condition `DisruptionTarget` says; `None` without the condition. The operator, the
/// pod garbage collector, the eviction API and Kubernetes' eviction by taints set the condition before they delete.
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

/// The main container as the spec has it: the container that the operator's annotation names, since admission may have put
/// others before it; or the first, if the annotation is missing or names none.
fn main_of_spec(pod: &SlimPod) -> Option<&SlimContainer> {
    let all = &pod.spec.containers;
    let name = pod.annotations().get(labels::MAIN_CONTAINER);
    let named = name.and_then(|name| all.iter().find(|container| container.name == *name));
    named.or_else(|| all.first())
}

/// The main container as the status has it.
pub(super) fn main_container(pod: &SlimPod) -> Option<&SlimContainerStatus> {
    let main = main_of_spec(pod)?;
    pod.status.container_statuses.iter().find(|status| status.name == main.name)
}

fn main_exit(pod: &SlimPod) -> Option<&SlimTerminated> {
    main_container(pod)?.state.terminated.as_ref()
}

/// The init container that failed, so that the main container never ran. If an init container fails, the kubelet tells the sidecars
/// before it to end, which may then end with any code: a sidecar counts only if no other init container failed.
fn failed_init(pod: &SlimPod) -> Option<(&str, &SlimTerminated)> {
    let ended = pod.status.init_container_statuses.iter().filter_map(|status| {
        let exit = status.state.terminated.as_ref().filter(|exit| exit.exit_code != 0)?;
        Some((status.name.as_str(), exit))
    });
    // `min_by_key` returns the first of several equal containers.
    ended.min_by_key(|(name, _)| pod.spec.is_sidecar(name))
}

pub(super) fn evicted(why: &str) -> End {
    End::Evicted { why: Arc::from(why) }
}
