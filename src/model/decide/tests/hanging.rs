//! Jobs whose pods the API server does not create, or creates slowly, because a webhook of their namespace hangs or is slow.

use std::time::Duration;

use super::world::World;
use crate::pool::{Event, Outcome};

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

/// A webhook hangs from some time on. A claim whose proc ends goes to another job, and not to the next proc of the job that lacks pods.
#[test]
fn a_claim_that_ends_is_not_given_to_a_job_whose_pods_are_not_made() {
    let mut world = World::new();
    world.fate = |pod| match pod {
        "slow-0" => (20, 0),
        "slow-1" => (100, 0),
        _ => (36_000, 0),
    };
    world.node("n1", 3, 0);
    world.submit("slow", "mallory", 10, |_| {});
    world.pass(10);
    world.hangs = Some("slow");
    world.pass(60);
    assert_eq!(claims(&world, "slow"), 3, "the pod of the fourth proc has waited for more than 30 s");
    world.submit("plain", "mallory", 5, |_| {});
    world.pass(60);
    assert_eq!((claims(&world, "slow"), claims(&world, "plain")), (2, 1));
}

/// A webhook takes 10 s for each pod of mallory's, one after another. Whatever has waited for 15 s when a pod is made is turned away.
fn webhook(world: &mut World, second: u64) {
    if !second.is_multiple_of(10) || world.hung.is_empty() {
        return;
    }
    let (_, made) = world.hung.remove(0);
    world.create_pod(made);
    let now = world.now;
    let late = |asked| now.since(asked) >= Duration::from_secs(15);
    for (_, plan) in world.hung.extract_if(.., |(asked, _)| late(*asked)).collect::<Vec<_>>() {
        let (slot, claim) = (plan.slot, plan.claim.id);
        let refused =
            Outcome::PodRefused { slot, claim, proc: plan.claim.last.proc_id(), why: "slow".to_owned() };
        world.pool.apply(Event::Outcome(refused), now);
    }
}

/// The job has as many pods as its webhook lets pass, and few machines wait for them. Others have the rest.
#[test]
fn a_job_whose_pods_are_made_slowly_keeps_few_machines_from_others() {
    let mut world = World::new();
    world.fate = |_| (5, 0);
    world.hangs = Some("slow");
    world.node("n1", 40, 0);
    world.submit("slow", "mallory", 200, |_| {});
    world.pass(1);
    assert_eq!(claims(&world, "slow"), 40);
    world.submit("plain", "alice", 400, |_| {});
    let mut most = 0;
    for second in 1..=600 {
        webhook(&mut world, second);
        world.pass(1);
        if second > 30 {
            most = most.max(claims(&world, "slow"));
        }
    }
    assert!(most <= 10, "{most} machines at a time");
    let done = |name: &str| world.runs.keys().filter(|pod| pod.starts_with(name)).count();
    assert!(done("slow") >= 50, "one each ten seconds, but for pauses: {}", done("slow"));
    assert_eq!(done("plain"), 400);
}
