//! What a Negotiator says acts on cycles, each a short story.

use super::world::World;
use crate::classad::Expr;
use crate::negotiator::Config;
use crate::pool::{Event, GoverningFacts, NegotiatorConfig};

fn world(config: Config) -> World {
    let mut world = World::new();
    for node in ["n1", "n2"] {
        world.node(node, 4, 0);
    }
    let facts = GoverningFacts {
        name: "n".into(),
        uid: "n".into(),
        generation: 1,
        config: Ok(NegotiatorConfig::from(config).into()),
        warnings: None,
        spec: "".into(),
        recorded: None,
    };
    world.pool.apply(Event::Negotiator(facts), world.now);
    world.pool.apply(Event::Synced, world.now);
    world
}

/// Who has which slot.
fn claims(world: &World) -> Vec<(String, String)> {
    let claim = |slot: &crate::pool::Slot| (slot.name.to_string(), slot.claim.job.name.to_string());
    world.pool.slots.values().map(claim).collect()
}

#[test]
fn only_slots_and_jobs_within_the_constraints_are_matched() {
    let expr = |text: &str| Some(Expr::parse(text).unwrap());
    let mut world = world(Config {
        slot_constraint: expr("Machine == \"n2\""),
        job_constraint: expr("JobPrio >= 0 && Group isnt \"others\""),
        ..Config::default()
    });
    world.submit("ours", "alice", 1, |_| ());
    world.submit("low", "alice", 1, |job| job.priority = -1);
    world.submit("theirs", "bob", 1, |job| {
        job.attributes.insert("Group".to_owned(), "\"others\"".to_owned());
    });
    world.settle();
    assert_eq!(claims(&world), [("slot1_1@n2".to_owned(), "ours".to_owned())]);
}
