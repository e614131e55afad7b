//! Cron jobs: what agents are asked to run, and what follows from what the programs say.

use super::policy::configure;
use super::world::World;
use crate::pool::{Event, ReportFacts, SlotOutput, State};
use classad::Expr;

const JOBS: &str = "STARTD_CRON_JOBLIST = check
STARTD_CRON_check_EXECUTABLE = /opt/cron/check
STARTD_CRON_check_PERIOD = 5m
";

/// The agent of a node reports this.
fn report(world: &mut World, change: impl FnOnce(&mut ReportFacts)) {
    let mut facts = world.reports.get("n1").cloned().unwrap_or_else(|| ReportFacts::of("n1".into()));
    change(&mut facts);
    world.reports.insert("n1".to_owned(), facts.clone());
    world.pool.apply(Event::Report(facts), world.now);
    world.settle();
}

fn asked(world: &World) -> Vec<&str> {
    let lines = world.log.iter().filter(|line| line.starts_with("the agent of n1 is to run"));
    lines.map(|line| line.rsplit("run ").next().unwrap_or_default()).collect()
}

#[test]
fn an_agent_is_asked_once_whenever_its_policy_says_something_else() {
    let mut world = World::new();
    configure(&mut world, JOBS);
    world.node("n1", 4, 0);
    world.pass(600);
    assert!(asked(&world).is_empty(), "a node without a report has no agent");
    report(&mut world, |_| {});
    world.pass(600);
    assert_eq!(asked(&world), ["[check]"]);
    configure(&mut world, &JOBS.replace("5m", "1h"));
    world.pass(600);
    assert_eq!(asked(&world), ["[check]", "[check]"]);
    configure(&mut world, "START = true\n");
    world.pass(600);
    assert_eq!(asked(&world), ["[check]", "[check]", "[]"]);
    assert_eq!(world.reports["n1"].cron, None);
}

#[test]
fn an_agent_is_asked_again_after_a_minute_if_the_report_does_not_show_it() {
    let mut world = World::new();
    configure(&mut world, JOBS);
    world.node("n1", 4, 0);
    // The write is lost: the report that the pool sees stays as it was.
    world.pool.apply(Event::Report(ReportFacts::of("n1".into())), world.now);
    world.settle();
    world.pass(59);
    assert_eq!(asked(&world).len(), 1);
    world.pass(2);
    assert_eq!(asked(&world).len(), 2);
    world.pass(600);
    assert_eq!(asked(&world).len(), 12);
}

#[test]
fn a_job_starts_while_its_condition_is_true_of_the_machine() {
    let starts = |world: &World| world.reports["n1"].cron.as_ref().unwrap().jobs[0].may_start;
    let mut world = World::new();
    configure(
        &mut world,
        &format!("{JOBS}STARTD_CRON_check_CONDITION = TotalCpus >= 4 && HasGpu =?= true\n"),
    );
    world.node("n1", 4, 0);
    report(&mut world, |_| {});
    assert!(!starts(&world));
    report(&mut world, |facts| facts.attributes = vec![("HasGpu".into(), Expr::literal(true))]);
    assert!(starts(&world));
    // Time passes: the condition is looked at each UPDATE_INTERVAL.
    let later = world.now.secs() + 400;
    configure(&mut world, &format!("{JOBS}STARTD_CRON_check_CONDITION = time() > {later}\n"));
    world.settle();
    assert!(!starts(&world));
    world.pass(390);
    assert!(!starts(&world));
    world.pass(300);
    assert!(starts(&world));
}

/// How many pods have not ended.
fn running(world: &World) -> usize {
    world.pods.values().filter(|pod| pod.facts.end.is_none()).count()
}

#[test]
fn a_broken_slot_takes_no_further_jobs_and_what_runs_goes_on() {
    let mut world = World::new();
    configure(&mut world, "START = true\n");
    world.node("n1", 2, 0);
    world.fate = |_| (600, 0);
    world.submit("work", "alice", 4, |job| job.request.cpus = 1);
    world.pass(10);
    assert_eq!(running(&world), 2, "both CPUs are in use");
    let broken = |facts: &mut ReportFacts| {
        facts.attributes = vec![("SlotBrokenReason".into(), Expr::literal("the GPU has gone"))];
    };
    report(&mut world, broken);
    world.pass(300);
    assert_eq!(running(&world), 2, "what runs goes on");
    world.pass(400);
    assert_eq!(running(&world), 0, "no proc follows, neither on the claims nor on new ones");
    assert!(world.pool.slots().is_empty(), "the claims are given back");
    let slot = &world.pool.machines()[&"n1".into()].machine_slots[&1];
    assert!(matches!(slot.state(), State::Unclaimed(_)), "as in HTCondor: {:?}", slot.state());
    report(&mut world, |facts| facts.attributes.clear());
    world.pass(60);
    assert_eq!(running(&world), 2, "the slot is mended");
}

#[test]
fn of_two_static_slots_the_other_takes_jobs() {
    let mut world = World::new();
    configure(
        &mut world,
        "NUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=1\nSLOT_TYPE_1_PARTITIONABLE = false\nSTART = true\n",
    );
    world.node("n1", 2, 0);
    report(&mut world, |facts| {
        let says = [("SlotId", Expr::literal(1_i64)), ("SlotBrokenReason", Expr::literal("hot"))];
        let attributes = says.into_iter().map(|(name, expr)| (name.into(), expr)).collect();
        facts.slot_ads = vec![SlotOutput { slots: Vec::new(), attributes }];
    });
    world.fate = |_| (600, 0);
    world.submit("work", "alice", 2, |job| job.request.cpus = 1);
    world.pass(60);
    let claimed: Vec<String> = world.pool.slots().keys().map(ToString::to_string).collect();
    assert_eq!(claimed, ["slot2@n1"]);
}
