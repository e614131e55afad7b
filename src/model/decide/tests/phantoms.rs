//! Matches that a claim would refuse: the negotiator makes none, so that no job waits for a slot that nobody gets.

use super::world::World;
use crate::kit;
use crate::schedd::Submission;

/// Ten nodes of 8 CPUs. One has a GPU.
fn pool() -> World {
    let mut world = World::new();
    for n in 0..10 {
        world.node(&format!("n{n}"), 8, i64::from(n == 4));
    }
    world.fate = |_| (86_400, 0);
    world
}

fn running(world: &World, job: &str) -> usize {
    world.pool.jobs().values().filter(|found| &*found.key.name == job).map(|found| found.active.len()).sum()
}

/// Procs that request what no node has, or only one node has, leave the other nodes to others.
#[test]
fn what_no_machine_has_leaves_the_machines_to_others() {
    let gpu = |job: &mut Submission| job.request.gpus = 1;
    let typo = |job: &mut Submission| {
        job.request.extended.insert("example.com/typo".into(), 1);
    };
    let maker = |job: &mut Submission| {
        job.request.extended.insert("amd.com/gpu".into(), 1);
    };
    for (name, ask, expected) in
        [("gpu", &gpu as &dyn Fn(&mut Submission), 1), ("typo", &typo, 0), ("another maker", &maker, 0)]
    {
        let mut world = pool();
        world.submit("phantom", "alice", 100, ask);
        world.submit("plain", "bob", 1000, |_| {});
        world.pass(130);
        assert_eq!(
            (running(&world, "phantom"), running(&world, "plain")),
            (expected, 80 - expected),
            "{name}"
        );
    }
}

/// Two resources of one machine have the same name in ads. Only the larger is counted, and no job is matched for the
/// other.
#[test]
fn of_two_resources_of_a_name_one_is_counted() {
    for (resource, expected) in [("a.com/fpga", 4), ("b.com/fpga", 0), ("fpga", 0)] {
        let mut world = World::new();
        let mut facts = kit::machine("n1", 8, 32);
        facts.allocatable.extended = [("a.com/fpga".into(), 4), ("b.com/fpga".into(), 2)].into();
        world.set_node(facts);
        world.fate = |_| (86_400, 0);
        world.submit("phantom", "alice", 10, |job| {
            job.request.extended.insert(resource.into(), 1);
        });
        world.submit("plain", "bob", 10, |_| {});
        world.pass(130);
        assert_eq!(
            (running(&world, "phantom"), running(&world, "plain")),
            (expected, 8 - expected),
            "{resource}"
        );
    }
}
