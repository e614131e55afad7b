//! Sends a slot's pod away: with a grace period, without one, or through the agent; and suspends pods.

use std::time::Duration;

use crate::pool::{
    Cause, Effect, Granted, KILL_GRACE, KUBELET_SLACK, Pool, Slot, SlotName, Time, Vacate, VacateReason,
};
use crate::startd::{Grace, Off, off};

/// The grace period, in seconds, for containers that still run after their proc has ended. HTCondor's starter kills
/// what is left of a job at once; here a log shipper has a moment.
const OTHERS_GRACE: u32 = 10;

/// Vacates the pod: deletes it with the rest of its vacating time as grace period. If `KILL` is foreseen to be true at
/// `killed`, the grace period ends then, since a kubelet ignores a grace period that is shortened later.
pub(super) fn vacate_pod(
    pool: &mut Pool,
    name: &SlotName,
    killed: Option<Time>,
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let left = pool.slots().get(name).map(|slot| {
        let until = slot.eviction().map_or(now, |eviction| eviction.until);
        whole_seconds(killed.map_or(until, |killed| killed.min(until)).since(now))
    });
    delete_with(pool, name, Grace::Vacating, left, now, effects);
}

/// Deletes the pod. If that is an eviction, the pod says why.
pub(super) fn delete_pod(
    pool: &mut Pool,
    name: &SlotName,
    grace: Grace,
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let seconds = match grace {
        Grace::Own => None,
        Grace::Others => Some(OTHERS_GRACE),
        Grace::Force => Some(0),
        Grace::Vacating | Grace::AtOnce => Some(KILL_GRACE),
    };
    delete_with(pool, name, grace, seconds, now, effects);
}

fn delete_with(
    pool: &mut Pool,
    name: &SlotName,
    grace: Grace,
    seconds: Option<u32>,
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let off = is_for_off(pool, name, grace, now).then(|| name.machine.clone());
    let asked = pool.step_slot(name, |slot| {
        // If the job was removed, its user wants the pod to end, and the pod gives no reason. Neither does a pod whose
        // proc has ended.
        let evicts = matches!(grace, Grace::Vacating | Grace::Force);
        let why = if evicts { why_evicted(slot) } else { None };
        let pod = match grace {
            Grace::Force => slot.delete_pod_by_force(now),
            Grace::Own | Grace::AtOnce | Grace::Vacating | Grace::Others => slot.delete_pod(seconds, now),
        };
        (pod, why)
    });
    if let Some((Some(pod), why)) = asked {
        let slot = Some(name.clone());
        effects.push(Effect::DeletePod { pod, slot, grace: seconds, granted: None, off, why });
    }
}

/// Why the pod must leave, unless the pod says so already. A hold is written in any case, since the next leader reads
/// from the pod that the proc is held.
fn why_evicted(slot: &Slot) -> Option<Vacate> {
    let deleting = slot.active().is_some_and(|pod| pod.deleting);
    let disrupted = slot.running().is_some_and(|pod| pod.disrupted);
    let holds = slot.eviction().is_some_and(|eviction| eviction.hold.is_some());
    (!deleting && (holds || !disrupted)).then(|| vacate(slot))
}

/// Whether a pod is deleted by force because its machine is off; otherwise because its agent has ended it.
fn is_for_off(pool: &Pool, name: &SlotName, grace: Grace, now: Time) -> bool {
    let machine = pool.machines().get(&name.machine);
    grace == Grace::Force && machine.is_none_or(|machine| off(pool, machine, now) != Off::No)
}

/// A span in whole seconds; at least [`KILL_GRACE`].
fn whole_seconds(left: Duration) -> u32 {
    u32::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(KILL_GRACE)
}

/// Deletes a pod that cannot start. Its proc is held once the pod has gone.
pub(super) fn give_up(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let given_up = pool.step_slot(name, |slot| slot.give_up_pod(now));
    if let Some((pod, hold)) = given_up.flatten() {
        let slot = Some(name.clone());
        let reason = VacateReason::of_hold(hold.code).unwrap_or(VacateReason::FailedToCreateProcess);
        let why = Some(Vacate { reason, message: hold.reason });
        effects.push(Effect::DeletePod { pod, slot, grace: None, granted: None, off: None, why });
    }
}

/// Kills the job. The API server shortens the grace period of a pod that is being deleted already. A kubelet that has
/// not begun to end the pod keeps to the shorter period. A kubelet that has begun ignores it, so that the pod may run
/// for as long as it was granted first.
pub(super) fn kill_pod(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let killed = pool.step_slot(name, |slot| {
        let why = why_evicted(slot);
        let granted = slot.running().and_then(|pod| pod.granted);
        let granted = granted.filter(|granted| granted.ends_by() > now + KUBELET_SLACK);
        slot.kill(now);
        (slot.delete_pod(Some(KILL_GRACE), now), granted.map(Granted::grace), why)
    });
    if let Some((Some(pod), granted, why)) = killed {
        let slot = Some(name.clone());
        effects.push(Effect::DeletePod { pod, slot, grace: Some(KILL_GRACE), granted, off: None, why });
    }
}

/// Asks the agent to kill a pod that its kubelet would let run for much longer.
pub(super) fn kill_by_agent(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let pod = pool.step_slot(name, |slot| {
        slot.kill_by_agent();
        Some(slot.active()?.pod.clone())
    });
    if let Some(pod) = pod.flatten() {
        effects.push(Effect::KillByAgent { pod, slot: name.clone() });
    }
}

/// `KILLING_TIMEOUT` has passed: something is seriously wrong with the kubelet. Warns people, and asks the agent.
pub(super) fn ask_agent_to_kill(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let silent = pool.heartbeats().is_silent(&name.machine, now);
    let agent = pool.machines().get(&name.machine).is_some_and(|machine| machine.agent);
    let asked = pool.step_slot(name, |slot| {
        slot.killing_takes_too_long();
        let running = slot.active()?;
        let granted = running.granted.map(Granted::ends_by).filter(|until| *until > now);
        Some((running.pod.clone(), slot.claim().last.job.clone(), granted))
    });
    let Some((pod, job, granted)) = asked.flatten() else { return };
    let next = match granted {
        _ if agent => "the node's agent is asked to kill it".to_owned(),
        Some(until) => format!(
            "its kubelet had begun to end it with a longer grace period, and lets it run for {} s more; the node has no agent that could kill it",
            until.since(now).as_secs()
        ),
        None => "the node has no agent that could kill it; look at the node's kubelet".to_owned(),
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

/// Asks the agent to suspend the job, or to let it continue.
pub(super) fn suspend(pool: &mut Pool, name: &SlotName, suspended: bool, effects: &mut Vec<Effect>) {
    let pod = pool.step_slot(name, |slot| slot.ask_to_freeze(suspended));
    if let Some(pod) = pod.flatten() {
        effects.push(Effect::Suspend { pod, slot: name.clone(), suspended });
    }
}

/// The advice for a proc whose end nobody can be certain of: how long the proc waits, and what people can do.
pub const PROC_WAITS: &str = "its proc waits until the node is back or an agent that promised it has ended the pod; if the node is lost, delete the Node, or taint it node.kubernetes.io/out-of-service once it is off";

/// The reason for which the pod must leave.
fn vacate(slot: &Slot) -> Vacate {
    // The next leader reads from the pod that the proc is held, and why.
    let hold = slot.eviction().and_then(|eviction| eviction.hold.as_ref());
    if let Some(hold) = hold {
        return Vacate { reason: VacateReason::StartdHeldJob, message: hold.reason.clone() };
    }
    let machine = &slot.name().machine;
    let (reason, message) = match slot.retires_for() {
        Some(Cause::Preempt) => {
            (VacateReason::StartdPreemptExpression, format!("PREEMPT is true on {}", slot.name()))
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
    match slot.preemptor() {
        Some(next) if next.rank > slot.rank() => (
            VacateReason::StartdPreemptingClaimRank,
            format!("{} prefers a job of {}", slot.name(), next.claim.submitter),
        ),
        Some(next) => (
            VacateReason::StartdPreemptingClaimUserPrio,
            format!("{}, who has the better priority, takes {}", next.claim.submitter, slot.name()),
        ),
        None => (VacateReason::StartdPreemptingClaimUserPrio, format!("a better claim took {}", slot.name())),
    }
}
