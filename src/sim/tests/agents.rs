//! Agents of simulated machines: a suspended pod makes no progress.

use std::sync::Arc;
use std::time::Duration;

use super::{hours, machines, scenario, source};
use crate::world::World;
use crate::{Arrivals, OwnerActivity, Scenario, Spread};
use classad::Expr;
use model::decide::{Decision, conclude, decide};
use model::negotiator::negotiate;
use model::pool::{Event, PodRef, Policy, PolicyFacts, Pool, Selection, Slot, SlotConfig, Time};

/// A scenario of one machine and one proc of an hour.
fn one(agent: bool) -> Scenario {
    let owner = OwnerActivity {
        windows: Vec::new(),
        vary: 0.0,
        visits: None,
        load: 0.0,
        pods: model::pool::Capacity::default(),
    };
    let mut machine = machines("a", 1, 4);
    machine.owner = agent.then_some(owner);
    let mut alice = source("alice", Arrivals::Poisson { every: 60.0 });
    (alice.most, alice.count, alice.runtime) = (Some(1), Spread::always(1.0), Spread::always(3600.0));
    scenario(vec![machine], vec![alice])
}

/// Runs a scenario until a condition of the pool is met, and returns when that was.
fn run_until(world: &mut World<'_>, pool: &mut Pool, met: impl Fn(&Pool) -> bool) -> Time {
    let mut now = Time::default();
    let mut wanted = pool.next_look();
    while !met(pool) {
        now = world.queue.next().into_iter().chain(wanted).min().expect("it goes on").max(now);
        while let Some(what) = world.queue.take(now) {
            world.happen(what, pool, now);
        }
        loop {
            let Decision { effects, negotiation, next, .. } = decide(pool, now);
            wanted = next;
            for effect in effects {
                world.perform(effect, now);
            }
            for document in pool.take_statuses() {
                if let model::pool::Document::Job(uid) = document {
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
    let running = pool.slots().values().filter_map(Slot::active).find(|running| running.runs);
    running.map(|running| running.pod.clone())
}

fn ended(pool: &Pool) -> bool {
    pool.slots().values().any(|slot| slot.has_ended() || slot.is_vacant())
}

/// A policy that suspends each job after half an hour, for ten hours.
fn suspends() -> Event {
    let expr = |text: &str| Expr::parse(text).unwrap().into();
    let policy = Policy {
        want_suspend: expr("true"),
        suspend: expr("TotalJobSuspendTime == 0 && TotalJobRunTime >= 1800"),
        resume: expr("TotalJobSuspendTime >= 36000"),
        ..Policy::default()
    };
    Event::Policy(PolicyFacts {
        name: "p".into(),
        uid: "u".into(),
        generation: 1,
        selection: Selection::default(),
        config: Ok(Arc::new(SlotConfig { policy, ..SlotConfig::default() }.into())),
        warnings: None,
        spec: "".into(),
        recorded: None,
    })
}

/// When the proc ends, and whether its machine's agent ever reported it as suspended.
fn end(agent: bool, policy: Option<Event>) -> (Time, bool) {
    let scenario = Scenario { objects: policy.into_iter().collect(), ..one(agent) };
    let (mut world, mut pool) = (World::new(&scenario), Pool::default());
    world.begin(&mut pool);
    run_until(&mut world, &mut pool, |pool| running(pool).is_some());
    let pod = running(&pool).unwrap();
    let suspends = |pool: &Pool| pool.machines().values().any(|machine| machine.suspends(&pod.uid));
    let mut end = run_until(&mut world, &mut pool, |pool| suspends(pool) || ended(pool));
    let said = suspends(&pool);
    if said {
        end = run_until(&mut world, &mut pool, ended);
    }
    assert!(!suspends(&pool));
    (end, said)
}

#[test]
fn a_suspended_pod_ends_later_by_as_long_as_it_stood_still() {
    let undisturbed = end(true, None);
    assert!(!undisturbed.1);
    let (late, said) = end(true, Some(suspends()));
    assert!(said, "the report says so");
    let later = late.since(undisturbed.0);
    // The policy is evaluated every five seconds.
    assert!(hours(10) <= later && later <= hours(10) + Duration::from_secs(6), "{later:?}");
    assert_eq!(end(false, Some(suspends())), undisturbed, "where there is no agent nobody suspends");
}
