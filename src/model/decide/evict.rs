//! Sending a slot's pod away: with grace, without, and by the agent; and having it stand still.

use std::time::Duration;

use crate::pool::{
    Activation, Cause, Effect, Eviction, PodRef, Pool, Slot, SlotName, Time, Vacate, VacateReason,
};
use crate::startd::{Grace, is_off};

/// The grace of a pod that is killed, in seconds. None at all would take it off the API server before its end is confirmed.
const KILL_GRACE: u32 = 1;

/// Deletes the pod. Where it is evicted, the pod says why.
pub(super) fn delete_pod(
    pool: &mut Pool,
    name: &SlotName,
    grace: Grace,
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let off = is_for_off(pool, name, grace, now).then(|| name.machine.clone());
    let asked = pool.step_slot(name, |slot| {
        let seconds = match grace {
            Grace::Own => None,
            Grace::Force => Some(0),
            Grace::Vacating => Some(vacating_left(slot, now)),
        };
        // Of one that goes because its job was removed there is nothing to say: that is what its user asked for.
        let said = matches!(slot.activation, Activation::Active { deleting: true, .. });
        let why = (grace != Grace::Own && !said).then(|| vacate(slot));
        if let (Grace::Force, Some(eviction)) = (grace, &mut slot.eviction) {
            eviction.forced = true;
        }
        (being_deleted(slot), seconds, why)
    });
    if let Some((Some(pod), seconds, why)) = asked {
        effects.push(Effect::DeletePod { pod, slot: Some(name.clone()), grace: seconds, off, why });
    }
}

/// Whether a pod is deleted by force since its machine is off; else its agent has ended it.
fn is_for_off(pool: &Pool, name: &SlotName, grace: Grace, now: Time) -> bool {
    let machine = pool.machines().get(&name.machine);
    grace == Grace::Force && machine.is_none_or(|machine| is_off(pool, machine, now))
}

/// What is left of the vacating time, in whole seconds; at least one.
fn vacating_left(slot: &Slot, now: Time) -> u32 {
    let left = slot.eviction.as_ref().map_or(Duration::ZERO, |eviction| eviction.until.since(now));
    u32::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(KILL_GRACE)
}

/// The pod, marked as one that was asked to go.
fn being_deleted(slot: &mut Slot) -> Option<PodRef> {
    let Activation::Active { pod, deleting, .. } = &mut slot.activation else { return None };
    *deleting = true;
    Some(pod.clone())
}

/// Deletes a pod that cannot start. Its proc is held once it has gone.
pub(super) fn give_up(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let given_up = pool.step_slot(name, |slot| {
        let stuck = slot.running.stuck.as_mut()?;
        stuck.given_up = true;
        let hold = &stuck.obstacle.hold;
        let reason = VacateReason::of_hold(hold.code).unwrap_or(VacateReason::FailedToCreateProcess);
        let why = Some(Vacate { reason, message: hold.reason.clone() });
        Some((being_deleted(slot)?, why))
    });
    if let Some((pod, why)) = given_up.flatten() {
        effects.push(Effect::DeletePod { pod, slot: Some(name.clone()), grace: None, off: None, why });
    }
}

/// Kills the job: Kubernetes shortens the grace of a pod that is being deleted already.
pub(super) fn kill_pod(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let killed = pool.step_slot(name, |slot| {
        let said = matches!(slot.activation, Activation::Active { deleting: true, .. });
        let why = (!said).then(|| vacate(slot));
        let eviction = slot.eviction.get_or_insert(Eviction {
            until: now,
            killed: None,
            agent_asked: false,
            forced: false,
            hold: None,
        });
        eviction.killed.get_or_insert(now);
        (being_deleted(slot), why)
    });
    if let Some((Some(pod), why)) = killed {
        effects.push(Effect::DeletePod {
            pod,
            slot: Some(name.clone()),
            grace: Some(KILL_GRACE),
            off: None,
            why,
        });
    }
}

/// `KILLING_TIMEOUT` is over: something is seriously wrong with the kubelet, and people should know.
pub(super) fn ask_agent_to_kill(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let silent = pool.heartbeats().is_silent(&name.machine, now);
    let agent = pool.machines().get(&name.machine).is_some_and(|machine| machine.agent);
    let asked = pool.step_slot(name, |slot| {
        if let Some(eviction) = &mut slot.eviction {
            eviction.agent_asked = true;
        }
        let Activation::Active { pod, .. } = &slot.activation else { return None };
        Some((pod.clone(), slot.claim.job.clone()))
    });
    let Some((pod, job)) = asked.flatten() else { return };
    let next = if agent {
        "the node's agent is asked to kill it"
    } else {
        "the node has no agent that could kill it; look at the node's kubelet"
    };
    if agent {
        effects.push(Effect::KillByAgent { pod: pod.clone(), slot: name.clone() });
    } else if silent {
        let note = format!(
            "whether pod {} still runs is not known, since nothing is heard of node {}: {}",
            pod.name, name.machine, PROC_WAITS
        );
        pool.warn(&job, "NodeSilent", "Kill", note);
        return;
    }
    let note = format!(
        "pod {} on node {} was killed and has not ended within KILLING_TIMEOUT: {next}; the slot stays claimed until it has",
        pod.name, name.machine
    );
    pool.warn(&job, "KillingTimeout", "Kill", note);
}

/// Asks the agent to suspend the job, or to let it go on.
pub(super) fn suspend(pool: &mut Pool, name: &SlotName, suspended: bool, effects: &mut Vec<Effect>) {
    let pod = pool.step_slot(name, |slot| {
        slot.frozen = Some(suspended);
        let Activation::Active { pod, .. } = &slot.activation else { return None };
        Some(pod.clone())
    });
    if let Some(pod) = pod.flatten() {
        effects.push(Effect::Suspend { pod, slot: name.clone(), suspended });
    }
}

/// What becomes of a proc of whose end nobody can be certain, and what people can do.
pub const PROC_WAITS: &str = "its proc waits until the node is back or an agent that promised it has ended the pod; if the node is lost, delete the Node, or taint it node.kubernetes.io/out-of-service once it is off";

/// Why the pod has to leave.
fn vacate(slot: &Slot) -> Vacate {
    // The next leader reads from it that the proc is held, and for what.
    let hold = slot.eviction.as_ref().and_then(|eviction| eviction.hold.as_ref());
    if let Some(hold) = hold {
        return Vacate { reason: VacateReason::StartdHeldJob, message: hold.reason.clone() };
    }
    let machine = &slot.name.machine;
    let (reason, message) = match slot.retirement {
        Some(Cause::Preempt) => {
            (VacateReason::StartdPreemptExpression, format!("PREEMPT is true on {}", slot.name))
        }
        Some(Cause::BetterClaim) => better_claim(slot),
        Some(Cause::Draining) => (VacateReason::StartdDraining, format!("node {machine} is being drained")),
        Some(Cause::LeaseExpired) => (
            VacateReason::ReconnectFailed,
            format!("nothing was heard of node {machine} for the lease of the claim"),
        ),
        Some(Cause::MachineGone) | None => {
            (VacateReason::StartdShutdown, format!("the node {machine} is gone"))
        }
    };
    Vacate { reason, message: message.into() }
}

fn better_claim(slot: &Slot) -> (VacateReason, String) {
    match &slot.preempting {
        Some(next) if next.rank > slot.rank => (
            VacateReason::StartdPreemptingClaimRank,
            format!("{} prefers a job of {}", slot.name, next.claim.submitter),
        ),
        Some(next) => (
            VacateReason::StartdPreemptingClaimUserPrio,
            format!("{}, who has the better priority, takes {}", next.claim.submitter, slot.name),
        ),
        None => (VacateReason::StartdPreemptingClaimUserPrio, format!("a better claim took {}", slot.name)),
    }
}
