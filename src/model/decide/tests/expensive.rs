//! Jobs whose expressions cost much to evaluate: they are held, and explained piece by piece.

use super::static_slots::divide;
use super::world::World;
use crate::pool::{Event, JOB_POLICY_UNDEFINED, Job, LastInput, Matchable, ReportFacts, Sensed, Time};
use crate::schedd::{Explained, Offers, Submission};

fn job<'a>(world: &'a World, name: &str) -> &'a Job {
    world.pool.jobs().values().find(|job| &*job.key.name == name).unwrap()
}

fn pool() -> World {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    for node in ["n1", "n2", "n3", "n4", "n5"] {
        world.node(node, 4, 0);
    }
    world
}

#[test]
fn a_job_of_which_no_evaluation_ends_is_held() {
    let mut world = pool();
    world.submit("hostile", "mallory", 3, |job| {
        job.requirements = Some("regexp(\"(a{1,110}){1,110}b\", B)".to_owned());
        job.attributes.insert("B".to_owned(), format!("\"{}\"", "a".repeat(11_000)));
    });
    world.submit("plain", "alice", 3, |_| {});
    world.settle();
    let held = job(&world, "hostile");
    assert_eq!((held.idle.len(), held.on_hold.len()), (0, 3));
    assert!(held.on_hold.values().all(|hold| hold.code == JOB_POLICY_UNDEFINED));
    assert_eq!(job(&world, "plain").active.len(), 3);
    world.pass(600);
    assert_eq!(job(&world, "hostile").on_hold.len(), 3, "nothing releases the procs but an edit");
}

#[test]
fn an_explanation_that_goes_on_comes_to_the_same() {
    let mut world = pool();
    world.submit("never", "alice", 1, |job| {
        job.requirements = Some("TARGET.Cpus > 100 && TARGET.Name != \"\" && TARGET.Memory < 0".to_owned());
    });
    world.settle();
    let (offers, now) = (Offers::of(&world.pool), Time::default());
    let spec = job(&world, "never").spec.clone().unwrap();
    let whole = offers.explain(&spec, None, now, &mut u64::MAX.clone());
    let is_whole = matches!(
        &whole,
        Explained::Whole { matchable: Matchable::No(_), clauses, .. } if clauses.len() == 2
    );
    assert!(is_whole, "{whole:?}");
    let (mut looks, mut begun) = (0, None);
    let pieced = loop {
        looks += 1;
        match offers.explain(&spec, begun.as_ref(), now, &mut 1) {
            Explained::Part(explaining) => begun = Some(explaining),
            pieced @ Explained::Whole { .. } => break pieced,
        }
    };
    assert_eq!((pieced, looks), (whole, 5));
}

/// A pool of 990 slots on one node with an agent, whose load changes before each cycle. The explanation of a job, which takes more than
/// one cycle, goes on all the same.
#[test]
fn an_explanation_ends_though_the_ads_of_slots_change() {
    let mut world = World::new();
    divide(&mut world, "NUM_SLOTS = 990\n");
    world.node("n1", 990, 0);
    world.pass(5);
    world.submit("never", "alice", 1, |job| {
        job.requirements = Some("TARGET.Memory < 0 && TARGET.Cpus > 0 && TARGET.Name != \"\"".to_owned());
    });
    for load in 1..8 {
        let nobody = LastInput::At(Time::from_secs(0));
        let sensed = Sensed { keyboard: nobody, console: nobody, owner_load: f64::from(load) };
        let report = ReportFacts { sensed: Some(sensed), ..ReportFacts::of("n1".into()) };
        world.pool.apply(Event::Report(report), world.now);
        world.pass(60);
    }
    let matchable = &job(&world, "never").matchable;
    assert!(matches!(matchable, Matchable::No(_)), "{matchable:?}");
}

/// The job wants the last of 1,200 slots of one kind. A look at the first 1,000 is no reason to say that no node matches.
#[test]
fn a_job_that_wants_one_of_very_many_equal_slots_is_not_told_that_none_matches() {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    divide(&mut world, "NUM_SLOTS = 600\n");
    world.node("n1", 600, 0);
    world.node("n2", 600, 0);
    world.submit("filler", "bob", 1200, |_| {});
    world.pass(60);
    let want = |job: &mut Submission| job.requirements = Some("TARGET.Name == \"slot600@n2\"".to_owned());
    world.submit("picky", "alice", 1, want);
    world.pass(300);
    assert_eq!(job(&world, "picky").matchable, Matchable::Yes);
}
