//! Pods that the kubelet cannot start: their procs are held, and their slots go to others.

use super::world::World;
use crate::decide;
use crate::pool::{Effect, End, Event, HoldReason, Obstacle, PodFacts, PodRef, Problem, START_PATIENCE};

fn missing(name: &str) -> Option<Obstacle> {
    name.starts_with("train").then(|| {
        Obstacle::of("main", "ImagePullBackOff", "Back-off pulling image \"nowhere/nothing\"").unwrap()
    })
}

/// A node of one CPU, and two procs of a job whose image does not exist.
fn world() -> World {
    let mut world = World::new();
    world.obstacle = missing;
    world.node("n1", 1, 0);
    world.submit("train", "alice", 2, |_| ());
    world.settle();
    world
}

fn held(world: &World) -> Vec<HoldReason> {
    let train = world.pool.jobs().values().find(|job| &*job.key.name == "train").unwrap();
    train.on_hold.values().cloned().collect()
}

#[test]
fn a_proc_is_held_once_the_kubelet_has_tried_for_long_enough() {
    let mut world = world();
    world.pass(START_PATIENCE.as_secs() - 10);
    assert_eq!((held(&world).len(), world.pods.len()), (0, 1), "it may still come");
    world.pass(20);
    let told = "container main cannot start: ImagePullBackOff: Back-off pulling image \"nowhere/nothing\"";
    assert_eq!(held(&world)[0], HoldReason { code: 35, subcode: 0, reason: told.into() });
    // The other proc, which has the claim next, meets the same obstacle, and gets no time of its own.
    world.pass(5);
    assert_eq!((held(&world).len(), world.pods.len(), world.slots.len()), (2, 0, 0));
}

#[test]
fn what_cannot_start_is_in_nobodys_way() {
    let mut world = world();
    world.submit("sweep", "bob", 1, |_| ());
    world.pass(START_PATIENCE.as_secs() + 120);
    assert_eq!(world.runs.get("sweep-0"), Some(&1));
}

#[test]
fn what_starts_late_is_not_held() {
    let mut world = world();
    world.pass(200);
    world.obstacle = |_| None;
    let mut facts = world.pods.values().next().unwrap().facts.clone();
    (facts.obstacle, facts.running, facts.started) = (None, true, Some(world.now));
    world.pods.get_mut("train-0").unwrap().facts = facts.clone();
    world.pool.apply(Event::Pod(facts.clone()), world.now);
    world.pass(600);
    assert_eq!((held(&world), world.pods.len()), (vec![], 1));
    world.end_pod(&facts.pod, Some(0));
    world.pass(600);
    assert_eq!((world.runs.get("train-0"), world.runs.get("train-1")), (Some(&1), Some(&1)));
}

/// A ResourceQuota admits three pods of a job of 40 procs, which run for 100 s each, and the pool has slots for 30.
#[test]
fn a_job_that_a_quota_bounds_keeps_few_slots_from_others_and_few_of_its_own_empty() {
    let mut world = World::new();
    world.node("n1", 30, 0);
    world.fate = |_| (100, 0);
    world.quota = Some(3);
    world.submit("sweep", "alice", 40, |_| {});
    world.pass(60);
    world.log.clear();
    let (mut run, mut most) = (0, 0);
    for _ in 0..1000 {
        world.pass(1);
        run += world.pods.values().filter(|pod| pod.facts.running).count();
        most = most.max(world.pool.slots().len());
    }
    let refused = world.log.iter().filter(|told| told.ends_with("is refused")).count();
    assert!(most <= 6, "{most} slots at a time");
    assert!(run >= 2550, "{run} of 3000 seconds");
    assert!(refused <= 100, "{refused} pods are refused");
}

/// A webhook lets no pod of alice's pass. Her procs are tried one at a time, so that others have the machines meanwhile.
#[test]
fn a_job_whose_pods_are_refused_tries_with_one_proc_after_each_pause() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.pods_refused = Some("denied by a webhook");
    world.submit("sweep", "alice", 4, |_| {});
    let mut tries = Vec::new();
    for _ in 0..30 {
        world.pass(10);
        let told = std::mem::take(&mut world.log);
        tries
            .extend(Some(told.iter().filter(|told| told.ends_with("is refused")).count()).filter(|n| *n > 0));
    }
    assert_eq!(tries, [4, 1, 1, 1, 1]);
    world.pods_refused = None;
    world.pass(200);
    assert_eq!(world.runs.len(), 4, "once a pod is accepted, all are tried");
}

/// A job's condition says why its pods are refused, until one is accepted.
#[test]
fn a_refusal_is_over_once_a_pod_is_there() {
    for watches_first in [false, true] {
        let mut world = World::new();
        world.watches_first = watches_first;
        world.node("n1", 2, 0);
        world.pods_refused = Some("denied by a webhook");
        world.submit("sweep", "alice", 2, |_| {});
        world.pass(1);
        let refused = |world: &World| world.pool.jobs().values().next().unwrap().refused.clone();
        assert_eq!(refused(&world).as_deref(), Some("denied by a webhook"));
        world.pods_refused = None;
        world.pass(60);
        assert_eq!(refused(&world), None, "watches first: {watches_first}");
    }
}

#[test]
fn a_name_that_is_none_is_not_tried_twice_and_an_edit_releases() {
    let mut world = World::new();
    world.obstacle =
        |_| Obstacle::of("main", "InvalidImageName", "couldn't parse image name \"no:such:thing\"");
    world.node("n1", 2, 0);
    world.submit("train", "alice", 2, |_| ());
    world.pass(5);
    assert_eq!((held(&world).len(), world.pods.len()), (2, 0));
    world.restart();
    world.pass(60);
    assert_eq!((held(&world).len(), world.pods.len()), (2, 0), "a new leader knows");
    world.obstacle = |_| None;
    let edited = world.jobs.values_mut().next().unwrap();
    edited.generation += 1;
    let edited = edited.clone();
    world.pool.apply(Event::Job(edited), world.now);
    world.pass(120);
    assert_eq!((world.runs.get("train-0"), world.runs.get("train-1")), (Some(&1), Some(&1)));
}

#[test]
fn a_claim_that_outlives_the_hold_of_its_proc_does_not_run_it() {
    let mut world = world();
    let slots = world.slots.clone();
    world.pass(START_PATIENCE.as_secs() + 60);
    assert_eq!(held(&world).len(), 2);
    // The slot could not be deleted before the leader died.
    world.slots = slots;
    world.restart();
    world.pass(60);
    assert_eq!((held(&world).len(), world.pods.len(), world.slots.len()), (2, 0, 0));
}

/// A pod that was created late, and that nobody knew of, has done the work of a held proc: the proc is done.
#[test]
fn a_held_proc_that_ran_after_all_is_done() {
    let mut world = world();
    world.pass(1);
    let late = world.pods["train-0"].facts.clone();
    world.pass(START_PATIENCE.as_secs() + 60);
    assert_eq!(held(&world).len(), 2);
    let pod = PodRef { uid: "late".into(), ..late.pod.clone() };
    let ended = PodFacts { pod, obstacle: None, end: Some(End::Exited { code: 0 }), ..late };
    world.pool.apply(Event::Pod(ended), world.now);
    decide::decide(&mut world.pool, world.now);
    assert_eq!(held(&world).len(), 1);
}

/// A user edits the spec, after reading that the proc cannot start.
fn edit(world: &mut World, name: &str) {
    let edited = world.jobs.get_mut(&format!("uid-{name}")).unwrap();
    edited.generation += 1;
    let edited = edited.clone();
    world.pool.apply(Event::Job(edited), world.now);
}

#[test]
fn what_is_edited_is_not_held_for_what_it_was() {
    let mut world = world();
    world.pass(60);
    world.obstacle = |_| None;
    edit(&mut world, "train");
    world.pass(120);
    assert_eq!((world.runs.get("train-0"), world.runs.get("train-1")), (Some(&1), Some(&1)), "at once");
    assert_eq!(held(&world), []);
}

#[test]
fn an_edit_while_the_pod_goes_is_in_time() {
    let mut world = world();
    world.obeys = false;
    world.pass(START_PATIENCE.as_secs() + 5);
    let pod = world.pods["train-0"].facts.clone();
    assert!(pod.deleting);
    edit(&mut world, "train");
    world.end_pod(&pod.pod, None);
    world.pass(5);
    assert_eq!(held(&world), []);
}

#[test]
fn the_next_leader_reads_from_the_pod_that_its_proc_is_held() {
    let mut world = world();
    world.obeys = false;
    world.pass(START_PATIENCE.as_secs() + 5);
    let pod = world.pods["train-0"].facts.clone();
    assert!(pod.deleting && pod.obstacle.is_none(), "the kubelet says no longer why");
    world.restart();
    world.pass(5);
    world.end_pod(&pod.pod, None);
    world.pass(5);
    let told = "container main cannot start: ImagePullBackOff: Back-off pulling image \"nowhere/nothing\"";
    assert_eq!(held(&world)[0], HoldReason { code: 35, subcode: 0, reason: told.into() });
}

#[test]
fn a_pod_waits_until_it_is_recorded_that_its_proc_is_held() {
    let mut world = world();
    world.obeys = false;
    world.pass(START_PATIENCE.as_secs() + 5);
    let pod = world.pods["train-0"].facts.pod.clone();
    world.end_pod(&pod, None);
    let asked = decide::decide(&mut world.pool, world.now);
    let released = asked.effects.iter().any(|effect| matches!(effect, Effect::UntrackPod { .. }));
    assert!(!released && held(&world).len() == 1);
}

#[test]
fn a_correction_releases_though_a_new_leader_found_the_job_in_error() {
    let mut world = world();
    world.pass(START_PATIENCE.as_secs() + 60);
    assert_eq!(held(&world).len(), 2);
    let right = world.jobs["uid-train"].spec.clone();
    let wrong = Problem { reason: "Wrong", field: "spec".to_owned(), message: "wrong".to_owned() };
    world.jobs.get_mut("uid-train").unwrap().spec = Err(vec![wrong]);
    edit(&mut world, "train");
    world.restart();
    world.pass(5);
    assert_eq!(held(&world).len(), 2);
    world.obstacle = |_| None;
    world.jobs.get_mut("uid-train").unwrap().spec = right;
    edit(&mut world, "train");
    world.pass(120);
    assert_eq!((held(&world).len(), world.runs.get("train-1")), (0, Some(&1)));
}

#[test]
fn a_pod_that_its_user_deletes_is_no_reason_to_hold_its_proc() {
    let mut world = world();
    world.pass(60);
    let pod = world.pods["train-0"].facts.pod.clone();
    world.end_pod(&pod, None);
    world.pass(5);
    assert_eq!(held(&world), []);
}
