//! Which recorded numbers of jobs an operator believes.

use super::world::World;
use crate::pool::{Event, JobFacts};

/// The numbers of the jobs, in the order of their names.
fn numbers(world: &World) -> Vec<i64> {
    world.pool.jobs().values().map(|job| job.cluster_id).collect()
}

/// A tenant whose Role allows everything in one namespace may write the statuses of its jobs. Found by a reviewer on a real API server:
/// with the highest number there is, no job of anybody got a number any more.
#[test]
fn no_job_s_status_uses_up_the_numbers_of_the_pool() {
    // The number that the Lease names, the number that the status says, and the job's number under the next leader.
    for (lease, forged, number) in [
        (7, i64::MAX, 8),
        (7, i64::MIN, 8),
        (7, 0, 8),
        (7, 1_000_008, 8),
        (7, 1_000_007, 1_000_007),
        (0, i64::MAX, 1),
        (0, 1 << 30, 1 << 30),
    ] {
        let mut world = World::new();
        world.submit("a", "alice", 1, |_| {});
        world.settle();
        world.jobs.get_mut("uid-a").unwrap().cluster_id = Some(forged);
        world.given = lease;
        world.restart();
        world.settle();
        world.submit("b", "bob", 1, |_| {});
        assert_eq!(numbers(&world), [number, number + 1], "{lease} {forged}");
        let recorded = world.jobs["uid-a"].cluster_id;
        assert_eq!(recorded, Some(number), "the status says the number that counts");
    }
}

/// An operator that runs has given all numbers but those that an earlier one gave.
#[test]
fn a_new_job_that_says_that_it_has_a_number_gets_its_own() {
    let mut world = World::new();
    world.submit("a", "alice", 1, |_| {});
    world.settle();
    let facts = world.jobs["uid-a"].clone();
    for (name, said) in [("b", 99), ("c", i64::MAX)] {
        let mut key = facts.key.clone();
        (key.uid, key.name) = (format!("uid-{name}").into(), name.into());
        let new = JobFacts { key, cluster_id: Some(said), ..facts.clone() };
        world.pool.apply(Event::Job(new), world.now);
    }
    assert_eq!(numbers(&world), [1, 2, 3]);
}
