//! Agents of simulated machines: a suspended pod stands still.

use std::time::Duration;

use super::{hours, machines, scenario, source};
use crate::decide::{Decision, conclude, decide};
use crate::negotiator::negotiate;
use crate::pool::{Activation, PodRef, Pool, Time};
use crate::sim::queue::Happening;
use crate::sim::world::World;
use crate::sim::{Arrivals, OwnerActivity, Scenario, Spread};

/// One machine and one proc of an hour.
fn one(agent: bool) -> Scenario {
    let owner = OwnerActivity {
        windows: Vec::new(),
        vary: 0.0,
        visits: None,
        load: 0.0,
        pods: crate::pool::Capacity::default(),
    };
    let mut machine = machines("a", 1, 4);
    machine.owner = agent.then_some(owner);
    let mut alice = source("alice", Arrivals::Poisson { every: 60.0 });
    (alice.most, alice.count, alice.runtime) = (Some(1), Spread::always(1.0), Spread::always(3600.0));
    scenario(vec![machine], vec![alice])
}

/// Lets a scenario run until something is so of the pool, and gives when.
fn run_until(world: &mut World<'_>, pool: &mut Pool, met: impl Fn(&Pool) -> bool) -> Time {
    let mut now = Time::default();
    let mut wanted = None;
    while !met(pool) {
        now = world.queue.next().into_iter().chain(wanted).min().expect("it goes on").max(now);
        while let Some(what) = world.queue.take(now) {
            world.happen(what, pool, now);
        }
        loop {
            let Decision { effects, negotiation, next } = decide(pool, now);
            wanted = next;
            for effect in effects {
                world.perform(effect, now);
            }
            for document in pool.take_stale() {
                if let crate::pool::Document::Job(uid) = document {
                    world.mark_status(&uid, pool, now);
                }
            }
            let Some(negotiation) = negotiation else { break };
            let outcome = negotiate(&negotiation.cycle);
            conclude(pool, &negotiation, &outcome, now);
        }
    }
    now
}

fn running(pool: &Pool) -> Option<PodRef> {
    pool.slots.values().find_map(|slot| match &slot.activation {
        Activation::Active { pod, running: true, .. } => Some(pod.clone()),
        _ => None,
    })
}

fn ended(pool: &Pool) -> bool {
    pool.slots.values().any(|slot| matches!(slot.activation, Activation::Ended { .. } | Activation::Vacant))
}

/// When the proc ends whose pod is suspended for this long, half an hour after it started.
fn end(agent: bool, suspended_for: Duration) -> Time {
    let scenario = one(agent);
    let (mut world, mut pool) = (World::new(&scenario), Pool::default());
    world.begin(&mut pool);
    let started = run_until(&mut world, &mut pool, |pool| running(pool).is_some());
    let pod = running(&pool).unwrap();
    let at = started + Duration::from_mins(30);
    world.queue.say(at, Happening::Suspend(pod.clone(), true));
    world.queue.say(at + suspended_for, Happening::Suspend(pod.clone(), false));
    if agent && !suspended_for.is_zero() {
        let suspends = |pool: &Pool| pool.machines.values().any(|machine| machine.suspends(&pod.uid));
        assert_eq!(run_until(&mut world, &mut pool, suspends), at, "the report says so");
    }
    let end = run_until(&mut world, &mut pool, ended);
    assert!(pool.machines.values().all(|machine| !machine.suspends(&pod.uid)));
    end
}

#[test]
fn a_suspended_pod_ends_later_by_as_long_as_it_stood_still() {
    let undisturbed = end(true, Duration::ZERO);
    assert_eq!(end(true, hours(10)), undisturbed + hours(10));
    assert_eq!(end(false, hours(10)), end(false, Duration::ZERO), "where there is no agent nobody suspends");
}
