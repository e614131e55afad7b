//! How many pods of a namespace are asked for at a time.

use super::world::World;
use crate::pool::Slot;

/// How many slots have procs whose pods are not asked for, are asked for, and run.
fn counts(world: &World) -> [usize; 3] {
    let count = |is: fn(&Slot) -> bool| world.pool.slots().values().filter(|slot| is(slot)).count();
    [count(Slot::is_assigned), count(Slot::is_requested), count(|slot| slot.active().is_some())]
}

/// The API server answers no creation in one namespace. Five of its pods are asked for, the other procs wait in their claims, and the pods
/// of another namespace start.
#[test]
fn pods_of_a_namespace_wait_for_others_of_that_namespace_alone() {
    let mut world = World::new();
    world.pool.create_at_once(5);
    world.fate = |_| (600, 0);
    world.hangs = Some("hung");
    world.node("n1", 40, 0);
    world.submit_in("hung", "alice", 12);
    world.submit_in("goes", "bob", 12);
    world.pass(20);
    assert_eq!(counts(&world), [7, 5, 12]);
    // Nobody wants the procs that wait any more: they leave their claims at once, since they have no pods.
    world.edit("hung", "alice", |job| job.count = 5);
    world.pass(1);
    assert_eq!(counts(&world), [0, 5, 12]);
}

/// After half a minute without an answer, the procs whose pods are not asked for leave their claims to others. The five pods may be created
/// yet, and keep theirs.
#[test]
fn claims_of_a_job_that_lacks_pods_go_to_others() {
    let mut world = World::new();
    world.pool.create_at_once(5);
    world.fate = |_| (36_000, 0);
    world.hangs = Some("hung");
    world.node("n1", 12, 0);
    world.submit_in("hung", "alice", 20);
    world.pass(25);
    assert_eq!(counts(&world), [7, 5, 0]);
    world.submit_in("goes", "bob", 20);
    world.pass(60);
    assert_eq!(counts(&world), [0, 5, 7]);
}

/// As soon as a pod is created, the next is asked for.
#[test]
fn all_pods_are_created_in_the_end() {
    let mut world = World::new();
    world.pool.create_at_once(2);
    world.fate = |_| (600, 0);
    world.node("n1", 40, 0);
    world.submit("sweep", "alice", 40, |_| {});
    world.pass(10);
    assert_eq!(counts(&world), [0, 0, 40]);
}
