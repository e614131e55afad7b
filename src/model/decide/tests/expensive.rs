//! Jobs whose expressions cost much to evaluate: they are held, and explained piece by piece.

use super::world::World;
use crate::pool::{JOB_POLICY_UNDEFINED, Job, Matchable, Time};
use crate::schedd::{Explained, Offers};

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
    assert!(matches!(&whole, Explained::Whole(Matchable::No(_), clauses) if clauses.len() == 2), "{whole:?}");
    let (mut looks, mut begun) = (0, None);
    let pieced = loop {
        looks += 1;
        match offers.explain(&spec, begun.as_ref(), now, &mut 1) {
            Explained::Part(explaining) => begun = Some(explaining),
            pieced @ Explained::Whole(..) => break pieced,
        }
    };
    assert_eq!((pieced, looks), (whole, 5));
}
