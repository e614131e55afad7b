//! Owners: which groups they may charge, and ceilings that hold whichever groups they charge.

use super::world::World;
use crate::kit;
use crate::pool::{Event, SubmitterFacts};

fn ceiling(world: &mut World, submitter: &str, ceiling: f64) {
    world.sees(Event::Submitter(SubmitterFacts { ceiling: Some(ceiling), ..kit::submitter(submitter) }));
}

fn running(world: &World, job: &str) -> usize {
    world.pool.jobs().values().filter(|found| &*found.key.name == job).map(|found| found.active.len()).sum()
}

/// A submitter with a ceiling cannot evade it by naming a group, nor by naming two.
#[test]
fn an_owners_ceiling_holds_across_groups() {
    for jobs in [vec![Some("g")], vec![None, Some("g")], vec![Some("g"), Some("h"), None]] {
        let mut world = World::new();
        world.node("n1", 64, 0);
        world.group("g", 20.0);
        world.group("h", 10.0);
        world.fate = |_| (86_400, 0);
        ceiling(&mut world, "alice", 2.0);
        ceiling(&mut world, "g.bob", 3.0);
        for group in &jobs {
            let name = format!("of-{}", group.unwrap_or("none"));
            world.submit(&name, "alice", 32, |job| job.group = group.map(str::to_owned));
        }
        world.submit("bobs", "bob", 32, |job| job.group = Some("g".to_owned()));
        world.pass(200);
        let all: usize =
            jobs.iter().map(|group| running(&world, &format!("of-{}", group.unwrap_or("none")))).sum();
        assert_eq!((all, running(&world, "bobs")), (2, 3), "{jobs:?}");
        // A job that waits for a ceiling says whose ceiling it is.
        let first = world.pool.jobs().values().find(|job| &*job.key.name == "of-g").unwrap();
        let waits = first.waits.as_ref().unwrap();
        assert_eq!(
            (waits.bar.word(), waits.bar.of().as_deref()),
            ("CeilingReached", Some("alice")),
            "{jobs:?}"
        );
    }
}

/// The group's list of owners says who may charge it, or else the list of the nearest group around it that has one.
#[test]
fn a_group_is_open_to_those_whom_it_names() {
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    for (outer, inner, expected) in [
        (None, None, false),
        (list(&["*"]), None, true),
        (list(&["alice"]), None, true),
        (list(&["bob", "ali*"]), None, true),
        (list(&["al*e"]), None, true),
        (list(&["alice*alice"]), None, false),
        (list(&["Alice", "alic", "alice2"]), None, false),
        (list(&["alice"]), list(&[]), false),
        (list(&["alice"]), list(&["bob"]), false),
        (list(&[]), list(&["alice"]), true),
    ] {
        let mut world = World::new();
        world.node("n1", 4, 0);
        world.group_with("physics", 4.0, |group| group.owners.clone_from(&outer));
        world.group_with("physics.higgs", 4.0, |group| group.owners.clone_from(&inner));
        world.submit("job", "alice", 1, |job| job.group = Some("Physics.Higgs".to_owned()));
        world.pass(60);
        let done = world.pool.jobs().values().all(|job| job.succeeded.len() == 1);
        assert_eq!(done, expected, "{outer:?} {inner:?}");
    }
}

/// An owner who is removed from the list keeps what runs, and starts nothing new.
#[test]
fn what_runs_goes_on_when_the_list_is_edited() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.group("physics", 4.0);
    world.submit("job", "alice", 2, |job| job.group = Some("physics".to_owned()));
    world.pass(10);
    assert_eq!(running(&world, "job"), 1);
    world.group_with("physics", 4.0, |group| group.owners = None);
    world.pass(600);
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!((job.succeeded.len(), job.idle.len()), (1, 1));
}
