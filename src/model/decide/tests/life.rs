//! The life of a proc: held, released, removed and vacated by people.

use super::world::World;
use crate::pool::{Act, Event, Job, Verb, Whom};
use crate::schedd::Submission;

/// A node of `cpus` CPUs, and a job of so many procs that run for 30 s each.
pub(super) fn world(cpus: i64, procs: i64) -> World {
    let mut world = World::new();
    world.node("n1", cpus, 0);
    world.submit("sweep", "alice", procs, |_| ());
    world.settle();
    world
}

pub(super) fn of<'a>(world: &'a World, name: &str) -> &'a Job {
    world.pool.jobs().values().find(|job| &*job.key.name == name).unwrap()
}

/// A job in short: how many procs are idle, running, held, completed, failed and removed.
pub(super) fn counts(world: &World) -> [u64; 6] {
    let job = of(world, "sweep");
    [
        job.idle.len(),
        job.running() as u64,
        job.on_hold.len() as u64,
        job.succeeded.len(),
        job.failed.len(),
        job.removed.len(),
    ]
}

pub(super) fn hold_of(world: &World, proc: u32) -> (i64, i64, String) {
    let hold = &of(world, "sweep").on_hold[&proc];
    (hold.code, hold.subcode, hold.reason.to_string())
}

/// A job with these attributes.
pub(super) fn acting(attributes: &[(&str, &str)]) -> impl FnOnce(&mut Submission) {
    let attributes: Vec<_> =
        attributes.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    move |submission| submission.attributes.extend(attributes)
}

/// Very many acts on a large job do not keep the operator from other jobs: further acts wait until the job's status has recorded
/// the first, which is a change of the job.
#[test]
fn acts_on_very_many_procs_are_carried_out_a_few_at_a_time() {
    let mut world = world(1, 60_000);
    let facts = world.jobs.get_mut("uid-sweep").unwrap();
    for (id, verb) in
        [Verb::Hold, Verb::Release, Verb::Hold, Verb::Release, Verb::Hold].into_iter().enumerate()
    {
        let id = u64::try_from(id).unwrap() + 1;
        facts.life.acts.push(Act { id, verb, whom: Whom::All, reason: "x".into(), subcode: 0 });
    }
    let facts = facts.clone();
    for expected in [2, 4, 5, 5] {
        world.pool.apply(Event::Job(facts.clone()), world.now);
        assert_eq!(of(&world, "sweep").last_act, expected);
    }
    assert_eq!(of(&world, "sweep").on_hold.len(), 60_000);
}

#[test]
fn a_held_proc_leaves_its_slot_and_does_not_run_until_it_is_released() {
    let mut world = world(2, 3);
    world.act("sweep", Verb::Hold, "0", "via condor_hold");
    assert_eq!(counts(&world), [1, 1, 1, 0, 0, 0], "at once, as in HTCondor");
    world.pass(5);
    assert_eq!(hold_of(&world, 0), (1, 0, "via condor_hold".to_owned()));
    assert!(!world.pods.contains_key("sweep-0"), "{:?}", world.pods.keys());
    world.pass(100);
    assert_eq!(counts(&world), [0, 0, 1, 2, 0, 0]);
    world.act("sweep", Verb::Release, "0", "via condor_release");
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 3, 0, 0]);
    assert_eq!(of(&world, "sweep").last_act, 2);
}

#[test]
fn a_removed_proc_never_runs_again_and_the_job_completes_without_it() {
    let mut world = world(1, 3);
    // One runs, and one waits.
    world.act("sweep", Verb::Remove, "0,2", "via condor_rm");
    world.pass(100);
    assert_eq!(counts(&world), [0, 0, 0, 1, 0, 2]);
    assert_eq!((of(&world, "sweep").removed.to_string(), world.runs.len()), ("0,2".to_owned(), 1));
    assert!(of(&world, "sweep").completed_at.is_some(), "the job is complete");
    world.act("sweep", Verb::Release, "0", "via condor_release");
    world.act("sweep", Verb::Hold, "2", "via condor_hold");
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 1, 0, 2]);
}

#[test]
fn a_vacated_proc_is_idle_and_runs_again() {
    let mut world = world(1, 1);
    world.pass(5);
    world.act("sweep", Verb::Vacate, "", "");
    world.pass(2);
    assert_eq!((counts(&world), world.pods.len()), ([1, 0, 0, 0, 0, 0], 0));
    assert_eq!(of(&world, "sweep").history_of(0).starts, 1);
    world.pass(60);
    assert_eq!((counts(&world), world.runs["sweep-0"]), ([0, 0, 0, 1, 0, 0], 1));
}

/// `condor_vacate_job -fast` kills.
#[test]
fn a_proc_that_is_vacated_fast_has_no_time() {
    for (verb, grace) in [(Verb::Vacate, None), (Verb::VacateFast, Some(1))] {
        let mut world = world(1, 1);
        world.pass(5);
        world.act("sweep", verb, "", "");
        world.settle();
        assert_eq!(world.graces.last(), Some(&grace), "{verb:?}");
    }
}

/// `actOnJobs`: who is held for another reason than a person's is held again by a person; who is held by a person stays so.
#[test]
fn a_hold_by_a_person_counts_more_than_another() {
    let mut world = world(1, 1);
    let uid = of(&world, "sweep").key.uid.clone();
    world.pass(40);
    world.submit("other", "alice", 1, acting(&[("OnExitHold", "true")]));
    world.pass(80);
    let other = of(&world, "other").on_hold[&0].clone();
    assert_eq!(
        (other.code, &*other.reason),
        (3, "The job attribute OnExitHold expression 'true' evaluated to TRUE")
    );
    world.act("other", Verb::Hold, "", "mine");
    world.act("other", Verb::Hold, "", "mine again");
    assert_eq!(&*of(&world, "other").on_hold[&0].reason, "mine");
    assert!(world.pool.jobs().contains_key(&uid));
}

#[test]
fn who_edits_a_job_that_has_ended_is_told_that_nothing_runs() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (20, 0);
    world.submit("sweep", "alice", 1, |_| {});
    let told = |world: &World| world.log.iter().filter(|line| line.starts_with("NothingToRun")).count();
    world.pass(5);
    world.edit("sweep", "alice", |submission| submission.priority = 1);
    world.pass(60);
    assert_eq!((world.runs.len(), told(&world)), (1, 0), "{:?}", world.log);
    world.edit("sweep", "alice", |submission| submission.priority = 2);
    world.pass(1);
    assert_eq!(told(&world), 1);
    world.edit("sweep", "alice", |submission| submission.count = 2);
    world.pass(60);
    assert_eq!((world.runs.len(), told(&world)), (2, 1));
}

#[test]
fn what_a_person_holds_no_edit_releases() {
    let mut world = world(1, 2);
    world.act("sweep", Verb::Hold, "", "not now");
    world.pass(5);
    world.edit("sweep", "alice", |submission| submission.count = 3);
    world.pass(100);
    assert_eq!(counts(&world), [0, 0, 2, 1, 0, 0], "only the new proc runs");
}

#[test]
fn a_job_whose_spec_holds_it_runs_nothing_until_the_spec_says_otherwise() {
    let mut world = world(2, 3);
    world.pass(5);
    world.edit("sweep", "alice", |submission| (submission.count, submission.hold) = (4, true));
    world.pass(40);
    assert_eq!((counts(&world), world.pods.len()), ([0, 0, 4, 0, 0, 0], 0));
    assert_eq!(hold_of(&world, 3), (1, 0, "spec.hold of the job is true".to_owned()));
    world.act("sweep", Verb::Release, "", "in vain");
    world.restart();
    world.pass(40);
    assert_eq!(counts(&world), [0, 0, 4, 0, 0, 0], "the spec still says so");
    world.edit("sweep", "alice", |submission| submission.count = 4);
    world.pass(100);
    assert_eq!(counts(&world), [0, 0, 0, 4, 0, 0]);
}

/// The pod of a proc that people ask for waits until what they asked for before is recorded.
#[test]
fn nothing_is_lost_or_doubled_wherever_the_operator_dies() {
    for n in 0..60 {
        for outlives in [|_| false, |_| true, |place| place % 2 == 0, |place| place % 2 == 1] {
            let mut world = world(3, 6);
            world.outlives = outlives;
            world.pass(5);
            world.calls_left = Some(n);
            world.act("sweep", Verb::Hold, "0,3", "a");
            world.act("sweep", Verb::Remove, "1,4", "b");
            world.act("sweep", Verb::Vacate, "2", "c");
            world.pass(3);
            world.act("sweep", Verb::Release, "3", "d");
            world.pass(300);
            assert_eq!(counts(&world), [0, 0, 1, 3, 0, 2], "{n}");
            assert_eq!(of(&world, "sweep").last_act, 4, "{n}");
            assert!(!world.runs.contains_key("sweep-0") && !world.runs.contains_key("sweep-1"), "{n}");
        }
    }
}

#[test]
fn an_operator_that_starts_ends_the_pod_of_a_proc_that_is_held_or_removed() {
    for verb in [Verb::Hold, Verb::Remove] {
        let mut world = world(1, 1);
        world.pass(5);
        world.calls_left = Some(0);
        world.outlives = |_| false;
        world.act("sweep", verb, "", "why");
        world.pass(60);
        assert_eq!((world.pods.len(), world.slots.len(), world.runs.len()), (0, 0, 0), "{verb:?}");
    }
}

/// The procs of such a job are not known, so that an act on all of them would be lost. Found by seed 420003290.
#[test]
fn an_act_waits_while_the_leader_has_never_understood_the_jobs_spec() {
    let mut world = world(2, 1);
    world.act("sweep", Verb::Hold, "", "to see");
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 1, 0, 0, 0]);
    world.edit("sweep", "alice", |job| job.requirements = Some("(".to_owned()));
    world.restart();
    let release = world.act("sweep", Verb::Release, "", "seen");
    world.pass(5);
    let job = of(&world, "sweep");
    assert_eq!((job.on_hold.len(), job.last_act < release), (1, true));
    world.edit("sweep", "alice", |_| ());
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 1, 0, 0]);
}

/// The count was lowered while a proc ran that it does not count any more. Whoever holds that proc can release it, and it is gone.
#[test]
fn a_held_proc_that_the_count_has_lost_can_be_released() {
    for verb in [Verb::Release, Verb::Remove] {
        let mut world = World::new();
        world.node("n1", 2, 0);
        world.fate = |_| (600, 0);
        world.submit("sweep", "alice", 2, |_| {});
        world.pass(5);
        world.edit("sweep", "alice", |submission| submission.count = 1);
        world.act("sweep", Verb::Hold, "1", "wait");
        world.pass(30);
        let held = |world: &World| world.pool.jobs().values().map(|job| job.on_hold.len()).sum::<usize>();
        assert_eq!((held(&world), world.pods.len()), (1, 1));
        world.act("sweep", verb, "", "go on");
        world.pass(5);
        assert_eq!(held(&world), 0, "{verb:?}");
    }
}
