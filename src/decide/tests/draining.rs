//! Drains, each a short story. Source: the manual's "Drained State" and `condor_drain`.

use std::sync::Arc;

use super::world::World;
use crate::classad::Expr;
use crate::pool::{DrainFacts, DrainPhase, DrainSchedule, DrainSpec, Event, MachineFacts, Time};

fn spec(node: &str) -> DrainSpec {
    DrainSpec {
        machine: node.into(),
        schedule: DrainSchedule::Graceful,
        resume: false,
        check: None,
        start: None,
        reason: None,
    }
}

fn request(world: &mut World, name: &str, created: i64, spec: DrainSpec) {
    let created = Time::from_secs(created);
    let facts =
        DrainFacts { name: name.into(), generation: 1, created, spec: Ok(Arc::new(spec)), recorded: None };
    world.pool.apply(Event::Drain(facts), world.now);
    world.settle();
}

/// State, activity and the number of the transition that led there, of the first slot.
fn stands(world: &World, node: &str) -> (&'static str, &'static str, u8) {
    let slot = &world.pool.machines[&node.into()].standing[&1];
    (slot.state.state(), slot.state.activity(), slot.last.as_ref().map_or(0, |last| last.number))
}

fn phase(world: &World, name: &str) -> String {
    let drain = &world.pool.drains[name];
    match &drain.phase {
        DrainPhase::Waiting(why) | DrainPhase::Refused(why) => format!("{}: {}", why.reason, why.message),
        DrainPhase::Draining { .. } => "Draining".to_owned(),
        DrainPhase::Drained { .. } => "Drained".to_owned(),
        DrainPhase::Resumed { .. } => "Resumed".to_owned(),
    }
}

fn cordon(world: &mut World, node: &str, cordoned: bool) {
    let facts = MachineFacts { cordoned, ..world.machines[node].clone() };
    world.set_node(facts);
    world.settle();
}

#[test]
fn an_idle_node_is_drained_at_once_and_stays_so_until_the_request_is_deleted() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
    request(&mut world, "d", 1, spec("n1"));
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
    assert_eq!(phase(&world, "d"), "Drained");
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(60);
    assert!(world.pods.is_empty(), "nothing starts on a drained node");
    world.pool.apply(Event::DrainGone("d".into()), world.now);
    world.pass(60);
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn a_drain_may_end_by_itself() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "d", 1, DrainSpec { resume: true, ..spec("n1") });
    assert_eq!(phase(&world, "d"), "Resumed");
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
    world.pass(10);
    assert_eq!(phase(&world, "d"), "Resumed", "once");
}

#[test]
fn a_second_request_waits_for_the_first() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "first", 1, spec("n1"));
    request(&mut world, "second", 2, spec("n1"));
    request(&mut world, "elsewhere", 2, spec("n2"));
    assert_eq!(
        phase(&world, "second"),
        "AlreadyDraining: the node is drained for DrainRequest first; this one is next once that is deleted or over"
    );
    assert_eq!(
        phase(&world, "elsewhere"),
        "NoSuchNode: there is no node of this name; the drain begins when there is"
    );
    world.pool.apply(Event::DrainGone("first".into()), world.now);
    world.settle();
    assert_eq!(phase(&world, "second"), "Drained");
    world.node("n2", 4, 0);
    world.settle();
    assert_eq!(phase(&world, "elsewhere"), "Drained");
}

#[test]
fn a_check_that_is_not_true_of_every_slot_refuses_the_drain() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    for (name, check, expected) in [
        (
            "d1",
            "Cpus > 4",
            "Refused: Cpus > 4 is false, not true, of slot1@n1; make another DrainRequest when it is",
        ),
        (
            "d2",
            "TARGET.X",
            "Refused: TARGET.X is undefined, not true, of slot1@n1; make another DrainRequest when it is",
        ),
        ("d3", "1", "Refused: 1 is 1, not true, of slot1@n1; make another DrainRequest when it is"),
    ] {
        request(&mut world, name, 1, DrainSpec { check: Some(Expr::parse(check).unwrap()), ..spec("n1") });
        assert_eq!(phase(&world, name), expected);
        assert_eq!(stands(&world, "n1").0, "Unclaimed");
    }
    let check = Some(Expr::parse("Cpus == 4").unwrap());
    request(&mut world, "d4", 1, DrainSpec { check, ..spec("n1") });
    assert_eq!(phase(&world, "d4"), "Drained");
}

#[test]
fn a_cordoned_node_is_drained_and_an_uncordoned_one_is_not() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    cordon(&mut world, "n1", true);
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
    request(&mut world, "d", 1, DrainSpec { resume: true, ..spec("n1") });
    assert_eq!(phase(&world, "d"), "Resumed", "an admin's request goes before a cordon's drain");
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33), "the node is cordoned still");
    cordon(&mut world, "n1", false);
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
}

#[test]
fn a_new_leader_goes_on_with_a_drain() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "d", 1, spec("n1"));
    let phase_then = world.pool.drains["d"].phase.clone();
    world.restart();
    let facts = DrainFacts {
        name: "d".into(),
        generation: 1,
        created: Time::from_secs(1),
        spec: Ok(Arc::new(spec("n1"))),
        recorded: Some(phase_then.clone()),
    };
    world.pool.apply(Event::Drain(facts), world.now);
    world.settle();
    assert_eq!(world.pool.drains["d"].phase, phase_then);
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
}
