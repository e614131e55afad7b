//! Jobs that request nothing: the manual's "Defaults for Partitionable Slot Sizes", from the SubmitPolicy to the slot.

use super::governed::submit_by;
use super::world::World;
use crate::pool::{Event, Unsaid};

/// Submits a job that requests nothing, or only the given CPUs.
fn submit(world: &mut World, name: &str, cpus: Option<i64>) {
    world.submit(name, "alice", 1, |job| {
        job.request.cpus = cpus.unwrap_or_default();
        job.request.unsaid = Unsaid { cpus: cpus.is_none(), memory: true, disk: true };
    });
}

/// The sizes of the slots, in the order of their names: CPUs, MiB, KiB.
fn held(world: &World) -> Vec<(i64, i64, i64)> {
    let size = |slot: &crate::pool::Slot| {
        (slot.resources().cpus, slot.resources().memory_mib, slot.resources().disk_kib)
    };
    world.pool.slots().values().map(size).collect()
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

/// `condor_submit` writes the defaults into the job's ad. A later change of the defaults affects only later jobs.
#[test]
fn a_job_keeps_the_defaults_of_its_time() {
    let mut world = world();
    submit_by(
        &mut world,
        "p",
        "JOB_DEFAULT_REQUESTCPUS = 2\nJOB_DEFAULT_REQUESTMEMORY = 100 * RequestCpus\n",
    );
    submit(&mut world, "early", None);
    submit(&mut world, "wide", Some(3));
    submit_by(&mut world, "p", "JOB_DEFAULT_REQUESTMEMORY = 1024\n");
    submit(&mut world, "late", None);
    world.settle();
    assert_eq!(held(&world), [(2, 256, 1 << 20), (3, 384, 1 << 20), (1, 1024, 1 << 20)]);
}

#[test]
fn another_leader_gives_a_job_what_it_was_given() {
    let mut world = world();
    submit_by(&mut world, "p", "JOB_DEFAULT_REQUESTCPUS = 20\n");
    submit(&mut world, "waits", None);
    world.settle();
    world.restart();
    world.settle();
    let waits = world.pool.jobs().values().next().unwrap();
    assert_eq!(waits.spec.as_ref().unwrap().request.cpus, 20, "there is no policy any more, and a record");
}

#[test]
fn the_first_policy_by_name_counts() {
    let mut world = world();
    submit_by(&mut world, "b", "JOB_DEFAULT_REQUESTMEMORY = 1024\n");
    submit_by(&mut world, "a", "JOB_DEFAULT_REQUESTMEMORY = 256\n");
    submit(&mut world, "first", None);
    world.pool.apply(Event::SubmitPolicyGone("a".into()), world.now);
    submit(&mut world, "second", None);
    world.settle();
    assert_eq!(held(&world).iter().map(|held| held.1).collect::<Vec<_>>(), [256, 1024]);
}

#[test]
fn a_default_that_is_no_amount_is_the_jobs_problem() {
    let mut world = world();
    submit_by(&mut world, "p", "JOB_DEFAULT_REQUESTMEMORY = MemoryUsage\n");
    submit(&mut world, "odd", None);
    world.settle();
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!(
        job.problems.first().map(|problem| (problem.reason, problem.field.as_str())),
        Some(("InvalidDefault", "spec.requests.memory"))
    );
    assert!(held(&world).is_empty());
}

/// Applies a SubmitPolicy with `use FEATURE : AssignAccountingGroup` and these lines of the map.
fn assign(world: &mut World, lines: &str, check: &str) {
    let map = format!("CLASSAD_USER_MAPDATA_AssignAccountingGroup @=end\n{lines}@end\n");
    submit_by(world, "p", &format!("{map}use FEATURE : AssignAccountingGroup(groups.map, {check})\n"));
}

/// Submits a job of an owner that names a group or none. Returns the submitter who is charged, or why the job is not
/// accepted.
fn charged(world: &mut World, owner: &str, group: Option<&str>) -> Result<String, String> {
    let name = format!("job{}", world.pool.jobs().len());
    world.submit(&name, owner, 1, |job| job.group = group.map(str::to_owned));
    let job = world.pool.jobs().values().find(|job| *job.key.name == *name).unwrap();
    match &job.spec {
        Some(spec) => Ok(spec.submitter.as_str().to_owned()),
        None => Err(job.problems.iter().map(|problem| problem.message.clone()).collect()),
    }
}

const GROUPS: &str = "* alice physics\n* bob cms,Atlas\n* /^student_/ students\n";

#[test]
fn jobs_are_charged_to_the_groups_that_their_owners_are_mapped_to() {
    let mut world = world();
    assign(&mut world, GROUPS, "True");
    for (owner, group, who) in [
        ("alice", None, "physics.alice"),
        ("alice", Some("Physics"), "physics.alice"),
        ("bob", None, "cms.bob"),
        ("bob", Some("atlas"), "Atlas.bob"),
        ("student_7", None, "students.student_7"),
    ] {
        assert_eq!(charged(&mut world, owner, group).as_deref(), Ok(who), "{owner} {group:?}");
    }
    let denied = charged(&mut world, "alice", Some("cms")).unwrap_err();
    assert!(denied.ends_with("(CheckRequestedGroup)"), "{denied}");
    let unmapped = charged(&mut world, "carol", None).unwrap_err();
    assert!(unmapped.ends_with("(AssignAccountingGroup)"), "{unmapped}");
}

/// With the feature's second argument, a job that names another group is not refused.
#[test]
fn unchecked_a_job_that_names_anothers_group_is_charged_to_its_owners() {
    let mut world = world();
    assign(&mut world, GROUPS, "False");
    assert_eq!(charged(&mut world, "alice", Some("cms")).as_deref(), Ok("physics.alice"));
    let spec = world.pool.jobs().values().next().unwrap().spec.clone().unwrap();
    let said = |name: &str| spec.ad.eval_attr(name, None, &classad::Env::at(0)).as_str().map(str::to_owned);
    assert_eq!(
        ["RequestedAcctGroup", "AcctGroup", "AcctGroupUser", "AccountingGroup"]
            .map(|name| said(name).unwrap()),
        ["cms", "physics", "alice", "physics.alice"]
    );
    assert!(charged(&mut world, "carol", Some("cms")).is_err(), "who is in no group has none");
}

#[test]
fn a_job_keeps_the_groups_of_its_time_whoever_leads() {
    let mut world = world();
    assign(&mut world, GROUPS, "True");
    assert!(charged(&mut world, "alice", None).is_ok());
    assert!(charged(&mut world, "carol", None).is_err());
    world.settle();
    assign(&mut world, "* alice chemistry\n* carol chemistry\n", "True");
    world.settle();
    world.restart();
    world.settle();
    let of = |name: &str| world.pool.jobs().values().find(|job| *job.key.name == *name).unwrap();
    assert_eq!(of("job0").spec.as_ref().unwrap().submitter.as_str(), "physics.alice");
    // A job that was refused is judged by the policy that is in force now.
    assert_eq!(of("job1").spec.as_ref().unwrap().submitter.as_str(), "chemistry.carol");
}
