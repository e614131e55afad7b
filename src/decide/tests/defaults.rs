//! What jobs get that do not say: the manual's "Defaults for Partitionable Slot Sizes", from the SubmitPolicy to the slot.

use super::world::World;
use crate::pool::{Event, GoverningFacts, Unsaid};
use crate::schedd::policy::understand;

/// Puts a policy of this name and text in force.
fn govern(world: &mut World, name: &str, text: &str) {
    let (config, remarks) = understand(text);
    assert_eq!(remarks, []);
    let facts = GoverningFacts {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        config: Ok(config.unwrap().into()),
        warnings: Some(Vec::new()),
        spec: text.into(),
        recorded: None,
    };
    world.pool.apply(Event::SubmitPolicy(facts), world.now);
}

/// Submits a job that asks for nothing, but for the CPUs that are given.
fn submit(world: &mut World, name: &str, cpus: Option<i64>) {
    world.submit(name, "alice", 1, |job| {
        job.request.cpus = cpus.unwrap_or_default();
        job.request.unsaid = Unsaid { cpus: cpus.is_none(), memory: true, disk: true };
    });
}

/// What the slots hold, in the order of their names: CPUs, MiB, KiB.
fn held(world: &World) -> Vec<(i64, i64, i64)> {
    let size =
        |slot: &crate::pool::Slot| (slot.resources.cpus, slot.resources.memory_mib, slot.resources.disk_kib);
    world.pool.slots.values().map(size).collect()
}

fn world() -> World {
    let mut world = World::new();
    world.node("n1", 16, 0);
    world.pool.apply(Event::Synced, world.now);
    world
}

#[test]
fn a_job_that_asks_for_nothing_gets_a_slot_of_htcondors_defaults() {
    let mut world = world();
    submit(&mut world, "plain", None);
    world.settle();
    assert_eq!(held(&world), [(1, 128, 1 << 20)]);
}

/// `condor_submit` writes them into the job's ad: what they say later is for later jobs.
#[test]
fn a_job_keeps_the_defaults_of_its_time() {
    let mut world = world();
    govern(&mut world, "p", "JOB_DEFAULT_REQUESTCPUS = 2\nJOB_DEFAULT_REQUESTMEMORY = 100 * RequestCpus\n");
    submit(&mut world, "early", None);
    submit(&mut world, "wide", Some(3));
    govern(&mut world, "p", "JOB_DEFAULT_REQUESTMEMORY = 1024\n");
    submit(&mut world, "late", None);
    world.settle();
    assert_eq!(held(&world), [(2, 256, 1 << 20), (3, 384, 1 << 20), (1, 1024, 1 << 20)]);
}

#[test]
fn another_leader_gives_a_job_what_it_was_given() {
    let mut world = world();
    govern(&mut world, "p", "JOB_DEFAULT_REQUESTCPUS = 20\n");
    submit(&mut world, "waits", None);
    world.settle();
    world.restart();
    world.settle();
    let waits = world.pool.jobs.values().next().unwrap();
    assert_eq!(waits.spec.as_ref().unwrap().request.cpus, 20, "there is no policy any more, and a record");
}

#[test]
fn the_first_policy_by_name_counts() {
    let mut world = world();
    govern(&mut world, "b", "JOB_DEFAULT_REQUESTMEMORY = 1024\n");
    govern(&mut world, "a", "JOB_DEFAULT_REQUESTMEMORY = 256\n");
    submit(&mut world, "first", None);
    world.pool.apply(Event::SubmitPolicyGone("a".into()), world.now);
    submit(&mut world, "second", None);
    world.settle();
    assert_eq!(held(&world).iter().map(|held| held.1).collect::<Vec<_>>(), [256, 1024]);
}

#[test]
fn a_default_that_is_no_amount_is_the_jobs_problem() {
    let mut world = world();
    govern(&mut world, "p", "JOB_DEFAULT_REQUESTMEMORY = MemoryUsage\n");
    submit(&mut world, "odd", None);
    world.settle();
    let job = world.pool.jobs.values().next().unwrap();
    assert_eq!(
        job.problems.first().map(|problem| (problem.reason, problem.field.as_str())),
        Some(("InvalidDefault", "spec.requests.memory"))
    );
    assert!(held(&world).is_empty());
}
