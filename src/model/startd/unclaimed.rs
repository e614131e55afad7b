//! Drives unclaimed slots: evaluates their policies, and takes the transitions that follow.

use std::sync::Arc;
use std::time::Duration;

use super::ad::{broken, unclaimed_slot_ad};
use super::backfill;
use super::policy::{Answer, Question};
use super::transitions::{BENCHMARKING_TO_IDLE, IDLE_TO_BENCHMARKING, Transition, take};
use super::view::Pace;
use super::without_claim::{Surroundings, Wanted, without_claim};
use crate::pool::{
    Backfill, Effect, Machine, MachineName, MachineSlot, Noted, Offer, Pool, SlotKind, SlotName,
    StartdConfig, State, Time, Unclaimed,
};
use classad::{Env, Expr};

/// How long benchmarks may take. An agent that has not answered by then has not heard of the request.
const BENCHMARKS: Duration = Duration::from_mins(10);

/// More transitions than an unclaimed slot can take at one time.
const MOST: usize = 8;

/// Lets the unclaimed slots of a machine take all transitions that they can take now.
pub(super) fn step(pool: &mut Pool, name: &MachineName, offer: &Offer, now: Time, effects: &mut Vec<Effect>) {
    pool.edit_machine(name, |machine| {
        // A slot that was claimed meanwhile no longer runs benchmarks.
        let measures = |id: u32| {
            let slot = machine.machine_slots.get(&id).filter(|slot| !slot.claimed);
            slot.is_some_and(|slot| slot.state() == State::Unclaimed(Unclaimed::Benchmarking))
        };
        machine.benchmarking = machine.benchmarking.filter(|(id, _)| measures(*id));
    });
    for _ in 0..MOST {
        let Some(machine) = pool.machines().get(name) else { return };
        let config = pool.startd(machine);
        let taken: Vec<(u32, &Transition, &str)> = machine
            .slots()
            .filter(|slot| !slot.claimed)
            .filter_map(|slot| {
                let (transition, why) =
                    without_claim(slot.state(), &surroundings(pool, machine, slot, &config, offer, now))?;
                Some((slot.id, transition, why))
            })
            .collect();
        if taken.is_empty() {
            return;
        }
        for (id, transition, why) in taken {
            let offered = *offer == Offer::Offered || transition.to != State::Owner;
            let why = if offered { Arc::from(why) } else { Arc::from(offer.message()) };
            advance(pool, name, id, (transition, why), now, effects);
        }
    }
}

fn advance(
    pool: &mut Pool,
    name: &MachineName,
    id: u32,
    (transition, why): (&Transition, Arc<str>),
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let Some(machine) = pool.machines().get(name) else { return };
    // One slot runs benchmarks for the whole machine.
    let busy = machine.benchmarking.is_some_and(|(other, _)| other != id);
    if transition.number == IDLE_TO_BENCHMARKING.number && busy {
        return;
    }
    let so_far = machine.report.as_ref().and_then(|report| report.benchmarks);
    let slot = SlotName { machine: name.clone(), slot: id, dynamic: None };
    if !advance_slot(pool, &slot, transition, why, now) {
        return;
    }
    if transition.number == IDLE_TO_BENCHMARKING.number {
        pool.edit_machine(name, |machine| machine.benchmarking = Some((id, now)));
        effects.push(Effect::Benchmark { machine: name.clone(), asked: now, so_far });
    } else if transition.number == BENCHMARKING_TO_IDLE.number {
        pool.edit_machine(name, |machine| machine.benchmarking = None);
    }
}

/// Lets an unclaimed slot take a transition. False if the transition does not begin in the slot's state.
fn advance_slot(
    pool: &mut Pool,
    name: &SlotName,
    transition: &Transition,
    why: impl Into<Arc<str>>,
    now: Time,
) -> bool {
    let taken = pool.edit_machine_slot(name, |slot| {
        let taken = !slot.claimed && take(&mut *slot, transition, why, now);
        taken.then(|| Noted::of_machine_slot(slot, &name.machine, transition.from))
    });
    let Some(noted) = taken.flatten() else { return false };
    pool.note(noted);
    true
}

/// Ends benchmarks on a static slot that is about to be claimed (4): the manual's arrows to Matched and Claimed start
/// from Unclaimed/Idle only. Carving a dynamic slot does not change the state of its partitionable slot, and so ends no
/// benchmarks.
pub fn end_benchmarks(pool: &mut Pool, name: &SlotName, now: Time) {
    let kind = pool
        .machines()
        .get(&name.machine)
        .and_then(|machine| machine.machine_slots.get(&name.slot))
        .map(|slot| slot.kind);
    let own = SlotName { dynamic: None, ..name.clone() };
    if kind == Some(SlotKind::Static)
        && advance_slot(pool, &own, &BENCHMARKING_TO_IDLE, "the slot is wanted for something else", now)
    {
        pool.edit_machine(&name.machine, |machine| {
            machine.benchmarking = machine.benchmarking.filter(|(id, _)| *id != name.slot);
        });
    }
}

pub(super) fn surroundings(
    pool: &Pool,
    machine: &Machine,
    slot: &MachineSlot,
    config: &StartdConfig,
    offer: &Offer,
    now: Time,
) -> Surroundings {
    let policy = &machine.slot_config(config, slot.id).policy;
    let asks = |expr: Option<&Expr>, question: Question| {
        expr.is_some_and(|expr| {
            let value = expr.as_literal().cloned().unwrap_or_else(|| {
                let env = Env::at(now.secs());
                expr.eval(Some(&unclaimed_slot_ad(machine, slot, config)), None, &env)
            });
            question.is_met_by(Answer::of(&value))
        })
    };
    let offered = *offer == Offer::Offered;
    // A cordon keeps new pods away, but evicts nobody.
    let goes_on = *offer == Offer::Cordoned && slot.state() == State::Backfill(Backfill::Busy);
    let idle = slot.state() == State::Unclaimed(Unclaimed::Idle);
    let undecided = matches!(slot.state(), State::Owner | State::Unclaimed(_) | State::Backfill(_));
    // Jobs may still start while others leave: then the slot is not drained yet.
    let draining = machine.draining.as_ref().filter(|draining| draining.start.is_none());
    let answered = |asked| {
        machine.report.as_ref().and_then(|report| report.benchmarks).is_some_and(|run| run.answers(asked))
    };
    let fills = backfill::fills(pool, machine, slot, config);
    let evicted = || asks(policy.evict_backfill.as_ref(), Question::EvictBackfill);
    Surroundings {
        owner: undecided && (!(offered || goes_on) || asks(policy.is_owner.as_ref(), Question::IsOwner)),
        draining: draining.map(|_| Pace::Graceful),
        all_drained: !machine.is_held()
            && pool.backfill().is_off(&machine.facts.name)
            && machine.slots().all(|slot| matches!(slot.state(), State::Drained(_))),
        benchmark: idle
            && offered
            && machine.agent
            && machine.benchmarking.is_none()
            && !just_benchmarked(slot)
            && match &policy.run_benchmarks {
                said @ Some(_) => asks(said.as_ref(), Question::RunBenchmarks),
                // The default is LastBenchmark == 0, which is true until there was a run.
                None => machine.report.as_ref().is_some_and(|report| report.benchmarks.is_none()),
            },
        benchmarking: machine.agent
            && machine.benchmarking.is_some_and(|(id, asked)| {
                id == slot.id && !answered(asked) && now.since(asked) < BENCHMARKS
            }),
        start_backfill: idle
            && offered
            && fills
            && broken(machine, slot, config).is_none()
            && asks(policy.start_backfill.as_ref(), Question::StartBackfill)
            && !evicted(),
        evict_backfill: matches!(slot.state(), State::Backfill(_)) && (!fills || evicted()),
        backfill: pool.backfill().stage(&slot.name(&machine.facts.name)),
        clear: matches!(slot.state(), State::Backfill(_))
            && backfill::is_in_the_way(pool, machine, slot, config),
        // A match is taken by the claimed slot that is made for it, not by the machine slot.
        wanted: Wanted::No,
    }
}

/// Whether the slot's last transition ended benchmarks. Then no others follow at once: a `RUNBENCHMARKS` that is always
/// true would leave no time for jobs.
fn just_benchmarked(slot: &MachineSlot) -> bool {
    slot.phase().last().is_some_and(|last| last.number == BENCHMARKING_TO_IDLE.number)
}

/// When the policy of a machine's unclaimed slots must next be evaluated, even if nothing happens.
pub(super) fn again(machine: &Machine, config: &StartdConfig, now: Time) -> Option<Time> {
    let changes = |expr: &Option<Expr>| expr.as_ref().is_some_and(|expr| expr.as_literal().is_none());
    let of = |slot: &MachineSlot| {
        let policy = &machine.slot_config(config, slot.id).policy;
        let fills = policy.enable_backfill && config.backfill.is_some();
        if matches!(slot.state(), State::Backfill(_)) {
            let polled = changes(&policy.is_owner) || changes(&policy.evict_backfill);
            return polled.then(|| now + policy.polling_interval);
        }
        let polled = changes(&policy.is_owner)
            || (machine.agent && changes(&policy.run_benchmarks))
            || (fills && (changes(&policy.start_backfill) || changes(&policy.evict_backfill)));
        polled.then(|| now + policy.update_interval)
    };
    let given_up = machine.benchmarking.map(|(_, asked)| asked + BENCHMARKS);
    machine.slots().filter(|slot| !slot.claimed).filter_map(of).chain(given_up).min()
}
