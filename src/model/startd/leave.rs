//! The end of a claim: Preempting, and then either Owner or the claim that waited.
//!
//! Source: the manual's policy chapter, "Preempting State". Vacating is a deletion of the pod with the vacating time as
//! grace period; killing is a deletion with the shortest grace period. A kubelet that has begun to end a pod ignores a
//! shorter grace period (kubernetes#83916). The node's agent, if there is one, is then asked to kill at once. If the
//! pod has not ended after `KILLING_TIMEOUT`, the agent is asked as well. The slot stays until the pod's end is
//! certain, however long that takes.

use super::policy::Question;
use super::transitions::{
    KILLING_TO_CLAIMED, KILLING_TO_OWNER, Transition, VACATING_TO_CLAIMED, VACATING_TO_KILLING,
    VACATING_TO_OWNER,
};
use super::view::{Change, Chore, Grace, Off, Pace, Step, View};
use crate::pool::{Activation, Fence, Forced, KUBELET_SLACK, Record, Remains, Removal, Running, Slot};

/// The reason of a claim that ends because its machine has been silent for too long.
pub(super) const LEASE_EXPIRED: &str = "the claim's lease has expired: nothing was heard of the node";

pub(super) fn owner(slot: &Slot) -> Step {
    match slot.record() {
        // A match that failed before anybody wrote its claim has left no object.
        Record::Due if !slot.may_have_object() => Step::Do(Chore::ReturnSlot),
        Record::Unwritten => Step::Do(Chore::ReturnSlot),
        Record::Deleting => Step::Rest,
        Record::Due | Record::Writing | Record::Refused { .. } | Record::Written => {
            Step::Do(Chore::DeleteClaim)
        }
    }
}

/// The job is gone: the slot goes to the claim that waited, or to its owner.
fn over(slot: &Slot, view: &View, to_owner: &'static Transition, to_claimed: &'static Transition) -> Step {
    let gone = slot.removal() == Some(Removal::MachineGone) || !view.offered || view.draining.is_some();
    let awaited = slot.preemptor().is_some_and(|next| !next.part);
    if awaited && !gone && view.holds(Question::StartNext) {
        return Step::Take(to_claimed, "the claim that waited takes the slot", Change::Succeed);
    }
    Step::Take(to_owner, "the claim is over", Change::None)
}

/// The step that a pod needs while its claim ends, in whichever activity.
fn of_pod(slot: &Slot, view: &View) -> Option<Step> {
    match slot.activation() {
        Activation::Assigned => Some(Step::Do(Chore::Withdraw)),
        Activation::Ended(pod, remains) => Some(ended(pod, view, *remains)),
        Activation::Requested { .. } => Some(Step::Rest),
        // A pod that was created after all, and runs on a machine that is back, ends like any other.
        Activation::Active(pod) if slot.removal() == Some(Removal::MachineGone) && view.off != Off::No => {
            Some(of_pod_on_a_machine_that_is_off(pod, view))
        }
        Activation::Active(pod) if is_over_unsaid(pod, view) => Some(Step::Do(Chore::LosePod)),
        // A suspended job cannot shut down.
        Activation::Active(pod) => {
            let still = pod.frozen.unwrap_or(view.stands_still || pod.found_suspended);
            still.then_some(Step::Do(Chore::Suspend(false)))
        }
        Activation::Vacant => None,
    }
}

/// The step for a pod whose proc has ended. Other containers that still run are ended once the proc's end is recorded,
/// and the pod's finalizer is taken off once nothing of the pod is left.
pub(super) fn ended(pod: &Running, view: &View, remains: Remains) -> Step {
    let gone = match view.off {
        Off::No => is_over_unsaid(pod, view) || view.fence == Fence::Held,
        Off::NodeGone => pod.granted.is_some_and(|granted| granted.is_gone(view.now)),
        Off::OutOfService => true,
    };
    match remains {
        _ if !view.settled => Step::Rest,
        Remains::Nothing => Step::Do(Chore::UntrackPod),
        // Nobody else deletes pods on a machine that is off. So the operator deletes the pod by force first, as it
        // deletes a pod whose proc runs.
        _ if gone && view.off != Off::No && pod.forced == Forced::No => by_force(pod),
        _ if gone => Step::Do(Chore::UntrackPod),
        _ if pod.deleting => Step::Rest,
        Remains::Ending if view.off == Off::No => Step::Rest,
        Remains::Others | Remains::Ending => Step::Do(Chore::DeletePod(Grace::Others)),
        Remains::Program => Step::Do(Chore::DeletePod(Grace::Own)),
    }
}

/// Whether a pod is over although its kubelet, which works, will report nothing more about the pod: the pod was deleted
/// by force before a container was seen to run.
pub(super) fn is_over_unsaid(pod: &Running, view: &View) -> bool {
    pod.forced == Forced::Idle && view.off == Off::No && view.lease_ends.is_none()
}

/// The step for a pod whose machine is off, so that nobody confirms its end. If only the Node was deleted, a kubelet
/// may still be there, and lets the pod run for the time that the pod was granted.
fn of_pod_on_a_machine_that_is_off(pod: &Running, view: &View) -> Step {
    if view.off == Off::NodeGone {
        if !pod.deleting {
            return Step::Do(Chore::KillPod);
        }
        if !pod.granted.is_some_and(|granted| granted.is_gone(view.now)) {
            return Step::Rest;
        }
    }
    if pod.forced == Forced::No { by_force(pod) } else { Step::Do(Chore::LosePod) }
}

/// Deletes a pod by force, once.
fn by_force(pod: &Running) -> Step {
    if pod.asked_by_force { Step::Rest } else { Step::Do(Chore::DeletePod(Grace::Force)) }
}

pub(super) fn vacating(slot: &Slot, view: &View) -> Step {
    if slot.is_vacant() {
        return over(slot, view, &VACATING_TO_OWNER, &VACATING_TO_CLAIMED);
    }
    if let Some(step) = of_pod(slot, view) {
        return step;
    }
    if view.lease_is_over() {
        return Step::Take(&VACATING_TO_KILLING, LEASE_EXPIRED, Change::None);
    }
    if view.draining == Some(Pace::Fast) {
        return Step::Take(&VACATING_TO_KILLING, "the machine is drained fast", Change::None);
    }
    if view.holds(Question::Kill) {
        return Step::Take(&VACATING_TO_KILLING, "KILL is true", Change::None);
    }
    if slot.eviction().is_none_or(|eviction| eviction.until <= view.now) {
        return Step::Take(&VACATING_TO_KILLING, "the vacating time is over", Change::None);
    }
    match slot.active() {
        Some(pod) if !pod.deleting => Step::Do(Chore::DeletePod(Grace::Vacating)),
        _ => Step::Rest,
    }
}

pub(super) fn killing(slot: &Slot, view: &View) -> Step {
    if slot.is_vacant() {
        return over(slot, view, &KILLING_TO_OWNER, &KILLING_TO_CLAIMED);
    }
    if let Some(step) = of_pod(slot, view) {
        return step;
    }
    if let Some(chore) = of_fenced(slot, view) {
        return Step::Do(chore);
    }
    let killed = slot.eviction().and_then(|eviction| eviction.killed);
    let asked = slot.eviction().is_some_and(|eviction| eviction.agent_asked);
    let deleting = slot.active().is_none_or(|pod| pod.deleting);
    match killed.filter(|_| deleting) {
        None => Step::Do(Chore::KillPod),
        // An agent that is cut off hears nothing. The operator waits for what the agent promised.
        _ if is_fenced(view) => Step::Rest,
        _ if kubelet_is_late(slot, view) => Step::Do(Chore::KillByAgent),
        Some(at) if !asked && view.now.since(at) >= view.policy.killing_timeout => {
            Step::Do(Chore::AskAgentToKill)
        }
        Some(_) => Step::Rest,
    }
}

/// Whether the kubelet, which has begun to end the pod, will let it run for much longer, and an agent is there that can
/// kill it.
fn kubelet_is_late(slot: &Slot, view: &View) -> bool {
    let asked = slot.eviction().is_some_and(|eviction| eviction.by_agent);
    let granted = slot.running().and_then(|pod| pod.granted);
    let late = granted.is_some_and(|granted| granted.ends_by() > view.now + KUBELET_SLACK);
    late && view.agent && !asked
}

/// Whether machine and agent are silent, and the agent promised to end the pod.
fn is_fenced(view: &View) -> bool {
    view.fence != Fence::None && !view.agent && view.lease_ends.is_some()
}

/// The chore for a pod that its node's agent must have ended by now, as the agent promised. Nobody else confirms that.
fn of_fenced(slot: &Slot, view: &View) -> Option<Chore> {
    let pod = slot.active().filter(|pod| pod.deleting)?;
    match view.fence {
        Fence::Due => Some(Chore::ReadAgentLease),
        Fence::Held => match pod.forced {
            Forced::No => (!pod.asked_by_force).then_some(Chore::DeletePod(Grace::Force)),
            Forced::Idle | Forced::Running => Some(Chore::LosePod),
        },
        Fence::None | Fence::At(_) | Fence::Asked => None,
    }
}
