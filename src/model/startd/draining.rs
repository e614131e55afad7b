//! Drains machines: decides which drain is in force, when it begins, when all slots are drained, and what happens then.
//!
//! Source: the manual's "Drained State", and `condor_drain`. If the policy says `drainCordoned`, a cordoned node is
//! drained gracefully, and uncordoning cancels that drain.

use std::sync::Arc;

use super::ad::{claimed_slot_ad, unclaimed_slot_ad};
use super::policy::{Answers, Asker};
use super::retirement::Terms;
use super::view::{seconds, span};
use crate::pool::{
    Drain, DrainPhase, DrainSchedule, DrainSpec, Drained, DrainedFor, Draining, Machine, MachineName,
    MachineSlot, Pool, Problem, State, Time, UnclaimedTime,
};
use classad::{Env, Value};

/// Reviews a machine's drain. The machine's policy and layout have been reviewed before.
pub(super) fn review(pool: &mut Pool, name: &MachineName, now: Time) {
    cancel_what_is_over(pool, name, now);
    begin(pool, name, now);
    go_on(pool, name, now);
    keep_deadline(pool, name, now);
}

/// Ends a drain that nobody wants any more.
fn cancel_what_is_over(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name) else { return };
    let Some(draining) = &machine.draining else { return };
    let wanted = match &draining.why {
        DrainedFor::Cordon => drains_for_cordon(pool, machine) && next_request(pool, name).is_none(),
        DrainedFor::Request(request) => pool.drains().get(request).is_some_and(|drain| {
            !drain.phase.is_over() && drain.spec.as_ref().is_some_and(|spec| is_of(draining, machine, spec))
        }),
    };
    if !wanted {
        end(pool, name, now);
    }
}

/// Whether a machine is to be drained because its node is cordoned. By default a cordon evicts nobody: `kubectl drain`
/// cordons a node first, and then evicts by the eviction API, which respects `PodDisruptionBudget`s.
fn drains_for_cordon(pool: &Pool, machine: &Machine) -> bool {
    machine.facts.cordoned && pool.startd(machine).drain_cordoned
}

/// Whether the drain that is under way still agrees with the request's spec.
fn is_of(draining: &Draining, machine: &Machine, spec: &DrainSpec) -> bool {
    spec.machine == machine.facts.name && spec.schedule == draining.schedule && spec.resume == draining.resume
}

/// Ends the drain: the machine takes jobs again.
fn end(pool: &mut Pool, name: &MachineName, now: Time) {
    pool.edit_machine(name, |machine| {
        machine.count_unclaimed(now);
        if let Some(draining) = machine.draining.take() {
            machine.drains.cost.add(draining.cost());
            machine.drains.stopped = Some(now);
        }
    });
}

/// The earliest request for a machine that is not over.
fn next_request(pool: &Pool, name: &MachineName) -> Option<(Arc<str>, Arc<DrainSpec>)> {
    requests(pool, name)
        .min_by(|(a, one, _), (b, other, _)| (one.created, a).cmp(&(other.created, b)))
        .map(|(request, _, spec)| (Arc::clone(request), Arc::clone(spec)))
}

fn requests<'a>(
    pool: &'a Pool,
    name: &MachineName,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Drain, &'a Arc<DrainSpec>)> {
    let open = pool.drains_of(name).filter(|(_, drain)| !drain.phase.is_over());
    open.filter_map(|(request, drain)| Some((request, drain, drain.spec.as_ref()?)))
}

/// Begins the next drain, or continues a drain that a former leader had begun.
fn begin(pool: &mut Pool, name: &MachineName, now: Time) {
    begin_requested(pool, name, now);
    tell_waiting(pool, name);
    drain_cordoned(pool, name, now);
}

/// Begins the drain of the earliest request that is not refused.
fn begin_requested(pool: &mut Pool, name: &MachineName, now: Time) {
    while pool.machines().get(name).is_some_and(|machine| machine.draining.is_none()) {
        let Some((request, spec)) = next_request(pool, name) else { break };
        let began = pool.drains().get(&request).and_then(|drain| drain.phase.began());
        if began.is_none()
            && let Err(why) = check(pool, name, &spec, now)
        {
            set_phase(pool, &request, DrainPhase::Refused(why));
            continue;
        }
        let since = began.unwrap_or(now);
        let draining = requested(pool, &request, &spec, since, now);
        drain(pool, name, draining, now);
        if began.is_none() {
            set_phase(pool, &request, DrainPhase::Draining { since });
        }
    }
}

/// The drain of a request that began at `since`.
fn requested(pool: &Pool, request: &Arc<str>, spec: &DrainSpec, since: Time, now: Time) -> Draining {
    let known = pool.drains().get(request);
    let cost = known.map(|drain| drain.cost).unwrap_or_default();
    Draining {
        why: DrainedFor::Request(Arc::clone(request)),
        schedule: spec.schedule,
        resume: spec.resume,
        start: spec.start.clone(),
        reason: spec.reason.clone().unwrap_or_else(|| format!("DrainRequest {request}").into()),
        since,
        done: known.and_then(|drain| drain.phase.completed()),
        deadline: None,
        badput: cost.badput,
        unclaimed: UnclaimedTime::new(cost.unclaimed, 0, now),
    }
}

/// Tells the requests that wait for what they wait now.
fn tell_waiting(pool: &mut Pool, name: &MachineName) {
    let waiting: Vec<Arc<str>> = requests(pool, name)
        .filter(|(_, drain, _)| matches!(drain.phase, DrainPhase::Waiting(_)))
        .map(|(request, ..)| Arc::clone(request))
        .collect();
    for request in waiting {
        set_phase(pool, &request, DrainPhase::Waiting(why_waiting(pool.machines().get(name))));
    }
}

/// Drains a machine whose node is cordoned, if the machine's policy says so and no request drains the machine.
fn drain_cordoned(pool: &mut Pool, name: &MachineName, now: Time) {
    let cordoned = |machine: &Machine| drains_for_cordon(pool, machine) && machine.draining.is_none();
    if !pool.machines().get(name).is_some_and(cordoned) {
        return;
    }
    let draining = Draining {
        why: DrainedFor::Cordon,
        schedule: DrainSchedule::Graceful,
        resume: false,
        start: None,
        reason: "the node is cordoned".into(),
        since: now,
        done: None,
        deadline: None,
        badput: 0,
        unclaimed: UnclaimedTime::new(0, 0, now),
    };
    drain(pool, name, draining, now);
}

fn drain(pool: &mut Pool, name: &MachineName, draining: Draining, now: Time) {
    let default = pool.machines().get(name).and_then(|machine| pool.startd(machine).draining_start.clone());
    pool.edit_machine(name, |machine| {
        machine.drains.started = Some(draining.since);
        machine.draining = Some(Draining { start: draining.start.clone().or(default), ..draining });
        machine.count_unclaimed(now);
    });
}

fn why_waiting(machine: Option<&Machine>) -> Problem {
    let (reason, message) = match machine
        .and_then(|machine| machine.draining.as_ref())
        .map(|draining| &draining.why)
    {
        Some(DrainedFor::Request(other)) => (
            "AlreadyDraining",
            format!(
                "the node is drained for DrainRequest {other}; this one is next once that is deleted or over"
            ),
        ),
        Some(DrainedFor::Cordon) | None => ("Waiting", "the drain has not begun".to_owned()),
    };
    Problem { reason, field: "spec.node".to_owned(), message }
}

/// Evaluates `condor_drain -check`, which must be true of every slot, without a job.
fn check(pool: &Pool, name: &MachineName, spec: &DrainSpec, now: Time) -> Result<(), Problem> {
    let (Some(check), Some(machine)) = (&spec.check, pool.machines().get(name)) else { return Ok(()) };
    let config = pool.startd(machine);
    let env = Env::at(now.secs());
    let machine_slot = machine.slots().filter(|slot| !slot.claimed);
    let machine_slot = machine_slot.map(|slot| (slot.name(name), unclaimed_slot_ad(machine, slot, &config)));
    let claimed = machine.claimed_slots().filter_map(|name| {
        let slot = pool.slots().get(&name)?;
        let job = pool.spec_of(&slot.claim().last);
        Some((name, claimed_slot_ad(machine, &config, slot, job.map(|spec| &spec.ad), &env)))
    });
    for (slot, ad) in machine_slot.chain(claimed) {
        let value = check.eval(Some(&ad), None, &env);
        if value != Value::from(true) {
            let message =
                format!("{check} is {value}, not true, of {slot}; make another DrainRequest when it is");
            return Err(Problem { reason: "Refused", field: "spec.check".to_owned(), message });
        }
    }
    Ok(())
}

fn set_phase(pool: &mut Pool, request: &Arc<str>, phase: DrainPhase) {
    pool.edit_drain(request, |drain| drain.phase = phase);
}

/// Updates a drain that is under way. As long as a claim from before the drain lives, `START` may let further jobs in;
/// after that, no more.
fn go_on(pool: &mut Pool, name: &MachineName, now: Time) {
    pool.edit_machine(name, |machine| machine.count_unclaimed(now));
    let Some(machine) = pool.machines().get(name) else { return };
    let Some(draining) = &machine.draining else { return };
    let (since, fills_in) = (draining.since, draining.start.is_some());
    let there_before = |slot| pool.slots().get(&slot).is_some_and(|slot| slot.claim().since <= since);
    let until_done = machine.claimed_slots().any(there_before);
    if let DrainedFor::Request(request) = draining.why.clone() {
        pool.drain_goes_on(&request, machine.claimed_slots().count(), draining.cost());
    }
    if fills_in && !until_done {
        pool.edit_machine(name, |machine| {
            if let Some(draining) = &mut machine.draining {
                draining.start = None;
            }
        });
    }
}

/// Computes when the retirement of the last job ends that ran before the drain. Computes it once for each `now`, however many slots ask,
/// unless a job of the machine ends in between. If the deadline changed, each claim is marked.
pub fn keep_deadline(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name) else { return };
    let Some(draining) = &machine.draining else { return };
    if draining.schedule != DrainSchedule::Graceful || machine.looked_at == Some(now) {
        return;
    }
    let config = pool.startd(machine);
    let original = machine.claimed_slots().filter_map(|slot| pool.slots().get(&slot));
    let deadlines = original.filter(|slot| slot.claim().since <= draining.since).filter_map(|slot| {
        let running = slot.active()?;
        let job = pool.spec_of(&slot.claim().last);
        let asker = Asker::new(machine, &config, slot, job.map(|spec| &spec.ad), None, now);
        let terms = Terms { machine: asker.retirement(), job: asker.job_retirement() };
        let left = terms.remaining(seconds(running.run_time(now)));
        // The deadline follows from when the job started, in whole seconds, so that it does not move as time
        // passes.
        (left > 0).then(|| now + span(left))
    });
    let deadline = deadlines.max();
    let before = draining.deadline;
    let same = match (before, deadline) {
        (Some(before), Some(deadline)) => before.since(deadline).max(deadline.since(before)) < SAME,
        (None, None) => true,
        _ => false,
    };
    pool.edit_machine(name, |machine| {
        machine.looked_at = Some(now);
        if let Some(draining) = machine.draining.as_mut().filter(|_| !same) {
            draining.deadline = deadline;
        }
    });
}

/// The least difference between two deadlines that counts. Run times are whole seconds.
const SAME: std::time::Duration = std::time::Duration::from_secs(1);

/// If all slots are drained, records that the drain is complete. Returns whether the machine takes jobs again.
pub(super) fn complete(pool: &mut Pool, name: &MachineName, now: Time) -> bool {
    let Some(machine) = pool.machines().get(name) else { return false };
    let Some(draining) = machine.draining.clone() else { return false };
    let drained = |slot: &MachineSlot| slot.state() == State::Drained(Drained::Idle);
    if machine.is_held() || !machine.slots().all(drained) {
        return false;
    }
    let at = draining.done.unwrap_or(now);
    pool.edit_machine(name, |machine| {
        if let Some(draining) = &mut machine.draining {
            draining.done = Some(at);
        }
    });
    let DrainedFor::Request(request) = &draining.why else { return false };
    let since = draining.since;
    // The cost is recorded once, when the machine is drained. CPUs that are idle after that are no cost of the drain:
    // the admin wants the machine to stay drained, or to take jobs again.
    if draining.done.is_none() {
        pool.edit_drain(request, |drain| drain.cost = draining.cost());
    }
    if draining.resume {
        set_phase(pool, request, DrainPhase::Resumed { since, at });
        end(pool, name, now);
        pool.next_drain(name);
    } else {
        set_phase(pool, request, DrainPhase::Drained { since, at });
    }
    draining.resume
}
