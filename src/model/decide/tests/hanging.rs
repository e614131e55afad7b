//! Jobs whose pods the API server does not create, because a webhook of their namespace hangs.

use super::world::World;

/// How many claims a job has.
fn claims(world: &World, name: &str) -> usize {
    world.pool.jobs().values().find(|job| &*job.key.name == name).unwrap().active.len()
}

/// The job keeps what it holds. Machines that are added go to other jobs.
#[test]
fn a_job_whose_pods_are_not_made_gets_no_more_machines() {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    world.hangs = Some("hung");
    world.node("n1", 2, 0);
    world.submit("hung", "mallory", 10, |_| {});
    world.pass(10);
    assert_eq!(claims(&world, "hung"), 2);
    world.node("n2", 2, 0);
    world.pass(18);
    assert_eq!(claims(&world, "hung"), 4, "28 s are no reason yet");
    world.pass(30);
    world.node("n3", 4, 0);
    world.pass(60);
    assert_eq!(claims(&world, "hung"), 4);
    world.submit("plain", "alice", 10, |_| {});
    world.pass(60);
    assert_eq!((claims(&world, "hung"), claims(&world, "plain")), (4, 4));
}
