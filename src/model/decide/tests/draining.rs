//! Drains, each a short story. Source: the manual's "Drained State" and `condor_drain`.

use std::sync::Arc;

use super::world::World;
use crate::pool::{
    Claimed, DrainCost, DrainFacts, DrainPhase, DrainSchedule, DrainSpec, Event, MachineFacts, Policy,
    Preempting, SlotConfig, StartdConfig, State, Time, Verb,
};
use crate::schedd::bad_expression;
use classad::Expr;
use condor_config::{Host, Reader, Source};

fn spec(node: &str) -> DrainSpec {
    DrainSpec {
        machine: node.into(),
        schedule: DrainSchedule::Graceful,
        resume: false,
        check: None,
        start: None,
        reason: None,
    }
}

fn request(world: &mut World, name: &str, created: i64, spec: DrainSpec) {
    let created = Time::from_secs(created);
    let facts = DrainFacts {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        created,
        spec: Ok(Arc::new(spec)),
        recorded: None,
        cost: DrainCost::default(),
    };
    world.sees(Event::Drain(facts));
    world.settle();
}

/// State and activity of the first slot, and the number of the transition that led there.
fn stands(world: &World, node: &str) -> (&'static str, &'static str, u8) {
    let slot = &world.pool.machines()[&node.into()].machine_slots[&1];
    (
        slot.state().state(),
        slot.state().activity(),
        slot.phase().last().map_or(0, |last| last.number.whole().unwrap_or(0)),
    )
}

fn phase(world: &World, name: &str) -> String {
    let drain = &world.pool.drains()[name];
    match &drain.phase {
        DrainPhase::Waiting(why) | DrainPhase::Refused(why) => format!("{}: {}", why.reason, why.message),
        DrainPhase::Draining { .. } => "Draining".to_owned(),
        DrainPhase::Drained { .. } => "Drained".to_owned(),
        DrainPhase::Resumed { .. } => "Resumed".to_owned(),
    }
}

/// The reasons of the events about DrainRequests so far.
fn told(world: &World) -> Vec<&str> {
    let phases = ["Refused", "AlreadyDraining", "Draining", "Drained", "Resumed", "InvalidExpression"];
    world
        .log
        .iter()
        .filter_map(|line| line.split(": ").next())
        .filter(|reason| phases.contains(reason))
        .collect()
}

#[test]
fn a_request_tells_each_of_its_phases_once() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    let refused = Expr::parse("false").unwrap();
    request(&mut world, "refused", 1, DrainSpec { check: Some(refused), ..spec("n1") });
    request(&mut world, "first", 2, DrainSpec { resume: true, ..spec("n1") });
    request(&mut world, "stays", 3, spec("n1"));
    request(&mut world, "second", 4, spec("n1"));
    world.pass(5);
    let phases = ["Refused", "Draining", "Resumed", "Draining", "Drained", "AlreadyDraining"];
    assert_eq!(told(&world), phases);
}

#[test]
fn a_request_that_is_not_understood_says_so_instead_of_waiting() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    let wrong = |generation| DrainFacts {
        name: "d".into(),
        uid: "d".into(),
        generation,
        created: Time::from_secs(1),
        spec: Err(vec![bad_expression("spec.check", &Expr::parse("Cpus >").unwrap_err())]),
        recorded: None,
        cost: DrainCost::default(),
    };
    for generation in [1, 1, 2] {
        world.sees(Event::Drain(wrong(generation)));
        world.settle();
    }
    let said = phase(&world, "d");
    assert!(said.starts_with("InvalidExpression: spec.check: not a ClassAd expression: "), "{said}");
    assert_eq!(told(&world), ["InvalidExpression"]);
    request(&mut world, "d", 1, spec("n1"));
    assert_eq!(told(&world), ["InvalidExpression", "Draining", "Drained"]);
}

fn cordon(world: &mut World, node: &str, cordoned: bool) {
    let facts = MachineFacts { cordoned, ..world.machines[node].clone() };
    world.set_node(facts);
    world.settle();
}

#[test]
fn an_idle_node_is_drained_at_once_and_stays_so_until_the_request_is_deleted() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
    request(&mut world, "d", 1, spec("n1"));
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
    assert_eq!(phase(&world, "d"), "Drained");
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(60);
    assert!(world.pods.is_empty(), "nothing starts on a drained node");
    world.sees(Event::DrainGone("d".into()));
    world.pass(60);
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn a_drain_may_end_by_itself() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "d", 1, DrainSpec { resume: true, ..spec("n1") });
    assert_eq!(phase(&world, "d"), "Resumed");
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
    world.pass(10);
    assert_eq!(phase(&world, "d"), "Resumed", "once");
}

#[test]
fn a_second_request_waits_for_the_first() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "first", 1, spec("n1"));
    request(&mut world, "second", 2, spec("n1"));
    request(&mut world, "elsewhere", 2, spec("n2"));
    assert_eq!(
        phase(&world, "second"),
        "AlreadyDraining: the node is drained for DrainRequest first; this one is next once that is deleted or over"
    );
    assert_eq!(
        phase(&world, "elsewhere"),
        "NoSuchNode: there is no node of this name; the drain begins when there is"
    );
    world.sees(Event::DrainGone("first".into()));
    world.settle();
    assert_eq!(phase(&world, "second"), "Drained");
    world.node("n2", 4, 0);
    world.settle();
    assert_eq!(phase(&world, "elsewhere"), "Drained");
}

#[test]
fn a_check_that_is_not_true_of_every_slot_refuses_the_drain() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    for (name, check, expected) in [
        (
            "d1",
            "Cpus > 4",
            "Refused: Cpus > 4 is false, not true, of slot1@n1; make another DrainRequest when it is",
        ),
        (
            "d2",
            "TARGET.X",
            "Refused: TARGET.X is undefined, not true, of slot1@n1; make another DrainRequest when it is",
        ),
        ("d3", "1", "Refused: 1 is 1, not true, of slot1@n1; make another DrainRequest when it is"),
    ] {
        request(&mut world, name, 1, DrainSpec { check: Some(Expr::parse(check).unwrap()), ..spec("n1") });
        assert_eq!(phase(&world, name), expected);
        assert_eq!(stands(&world, "n1").0, "Unclaimed");
    }
    let on_claimed = |check: &str, expected: &str| {
        let mut world = World::new();
        world.node("n1", 4, 0);
        world.submit("sweep", "alice", 1, |_| {});
        world.pass(10);
        request(&mut world, "d", 1, DrainSpec { check: Some(Expr::parse(check).unwrap()), ..spec("n1") });
        assert_eq!(phase(&world, "d").split(';').next(), Some(expected), "{check}");
    };
    on_claimed("State != \"Claimed\"", "Refused: State != \"Claimed\" is false, not true, of slot1_1@n1");
    on_claimed("Cpus == 4", "Refused: Cpus == 4 is false, not true, of slot1@n1");
    on_claimed("Cpus < 4", "Drained");
    let check = Some(Expr::parse("Cpus == 4").unwrap());
    request(&mut world, "d4", 1, DrainSpec { check, ..spec("n1") });
    assert_eq!(phase(&world, "d4"), "Drained");
}

#[test]
fn a_cordoned_node_is_drained_where_its_policy_says_so_until_it_is_uncordoned() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.govern(StartdConfig { drain_cordoned: true, ..StartdConfig::default() }, "");
    cordon(&mut world, "n1", true);
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
    request(&mut world, "d", 1, DrainSpec { resume: true, ..spec("n1") });
    assert_eq!(phase(&world, "d"), "Resumed", "an admin's request goes before a cordon's drain");
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33), "the node is cordoned still");
    cordon(&mut world, "n1", false);
    assert_eq!(stands(&world, "n1"), ("Unclaimed", "Idle", 1));
}

/// `kubectl drain` cordons a node first, and then evicts by the eviction API, which respects `PodDisruptionBudget`s. A
/// cordon alone evicts nobody.
#[test]
fn a_cordon_takes_nothing_new_and_evicts_nobody() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.fate = |_| (1_000, 0);
    world.submit("sweep", "alice", 6, |_| {});
    world.pass(5);
    cordon(&mut world, "n1", true);
    world.pass(600);
    assert_eq!((world.pods.len(), world.graces.len()), (4, 0), "all of them run on");
    world.pass(600);
    assert_eq!((world.runs.len(), world.pool.slots().len()), (4, 0), "none follows them");
    assert_eq!(stands(&world, "n1").0, "Owner");
    cordon(&mut world, "n1", false);
    world.pass(5);
    assert_eq!(world.pool.slots().len(), 2);
}

/// The schedule is changed to a fast one: a job that vacates with a long grace period is killed.
#[test]
fn a_fast_drain_kills_what_a_graceful_one_vacates() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (10_000, 0);
    world.obeys = false;
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    request(&mut world, "d", 1, spec("n1"));
    world.pass(5);
    assert_eq!(world.graces, [Some(600)]);
    world.sees(Event::DrainGone("d".into()));
    request(&mut world, "fast", 2, DrainSpec { schedule: DrainSchedule::Fast, ..spec("n1") });
    world.pass(5);
    assert_eq!(world.graces, [Some(600), Some(1)]);
}

/// The user sends a program away that ignores SIGTERM, whose pod has a grace period of its user's choice. The drain
/// ends the claim like that of any other job.
#[test]
fn a_fast_drain_kills_a_job_that_its_user_sends_away_slowly() {
    for verb in [Verb::Hold, Verb::Remove, Verb::Vacate] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (100_000, 0);
        (world.obeys, world.agent_kills) = (false, false);
        world.submit("sweep", "alice", 1, |_| {});
        world.pass(5);
        world.act("sweep", verb, "", "");
        world.pass(5);
        assert_eq!(world.graces, [None], "{verb:?}: the pod's own");
        let state = |world: &World| world.pool.slots().values().next().unwrap().state();
        assert_eq!(state(&world), State::Claimed(Claimed::Busy), "{verb:?}");
        request(&mut world, "fast", 2, DrainSpec { schedule: DrainSchedule::Fast, ..spec("n1") });
        world.pass(5);
        assert_eq!(
            (state(&world), world.graces.last()),
            (State::Preempting(Preempting::Killing), Some(&Some(1)))
        );
    }
}

#[test]
fn a_new_leader_goes_on_with_a_drain() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    request(&mut world, "d", 1, spec("n1"));
    let phase_then = world.pool.drains()["d"].phase.clone();
    world.restart();
    let facts = DrainFacts {
        name: "d".into(),
        uid: "d".into(),
        generation: 1,
        created: Time::from_secs(1),
        spec: Ok(Arc::new(spec("n1"))),
        recorded: Some(phase_then.clone()),
        cost: DrainCost::default(),
    };
    world.sees(Event::Drain(facts));
    world.settle();
    assert_eq!(world.pool.drains()["d"].phase, phase_then);
    assert_eq!(stands(&world, "n1"), ("Drained", "Idle", 33));
}

/// A policy for all nodes.
fn govern(world: &mut World, text: &str) {
    let read = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::block("spec.config", text)]);
    let (policy, faults) = Policy::read(&read.config, None);
    assert!(faults.is_empty(), "{faults:?}");
    let config = SlotConfig { policy, ..SlotConfig::default() }.into();
    world.govern(config, text);
}

/// Retirement as long as the job says, and no time to vacate.
const BY_JOB: &str = "MAXJOBRETIREMENTTIME = TARGET.Retires\nMachineMaxVacateTime = 0\n";

fn retires(world: &mut World, name: &str, seconds: i64) {
    world.submit(name, "alice", 1, |job| {
        job.attributes.insert("Retires".to_owned(), seconds.to_string());
    });
}

/// Three jobs that run for ever, and whose retirement ends after 1000, 300 and 0 s.
fn three_jobs(text: &str) -> World {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.fate = |_| (100_000, 0);
    govern(&mut world, text);
    for (name, seconds) in [("long", 1000), ("short", 300), ("none", 0)] {
        retires(&mut world, name, seconds);
    }
    world.pass(45);
    assert_eq!(world.pods.len(), 3);
    world
}

fn living(world: &World) -> Vec<String> {
    world
        .pods
        .values()
        .filter(|pod| pod.facts.end.is_none())
        .map(|pod| pod.facts.pod.name.to_string())
        .collect()
}

/// The present value of an attribute of the machine's ad.
fn says(world: &World, attribute: &str) -> String {
    let machine = &world.pool.machines()[&"n1".into()];
    let ad =
        crate::startd::unclaimed_slot_ad(machine, &machine.machine_slots[&1], &world.pool.startd(machine));
    ad.eval_attr(attribute, None, &classad::Env::at(world.now.secs())).to_string()
}

#[test]
fn eviction_is_delayed_until_the_job_with_the_longest_retirement_needs_to_be_evicted() {
    let mut world = three_jobs(BY_JOB);
    request(&mut world, "d", 1, spec("n1"));
    world.pass(5);
    assert_eq!(living(&world), ["long-0", "short-0"], "a job without retirement goes at once");
    world.pass(800);
    assert_eq!(living(&world), ["long-0", "short-0"], "the short one would have had to leave long ago");
    world.pass(200);
    assert_eq!((living(&world).len(), phase(&world, "d").as_str()), (0, "Drained"));
}

#[test]
fn when_the_longest_ends_early_the_others_need_not_wait_for_it() {
    let mut world = three_jobs(BY_JOB);
    request(&mut world, "d", 1, spec("n1"));
    world.pass(100);
    let begun: i64 = says(&world, "DrainingDeadline").parse().unwrap();
    let long = world.pods["long-0"].facts.pod.clone();
    world.end_pod(&long, Some(0));
    world.pass(2);
    let then: i64 = says(&world, "DrainingDeadline").parse().unwrap();
    assert!((690..=710).contains(&(begun - then)), "{begun} {then}");
    world.pass(210);
    assert_eq!((living(&world).len(), phase(&world, "d").as_str()), (0, "Drained"));
}

#[test]
fn vacating_lies_within_the_common_deadline() {
    let mut world = three_jobs("MAXJOBRETIREMENTTIME = TARGET.Retires\nMachineMaxVacateTime = 100\n");
    world.obeys = false;
    request(&mut world, "d", 1, spec("n1"));
    let graces = |world: &World| world.graces.iter().filter(|grace| **grace == Some(100)).count();
    world.pass(860 - 45);
    assert_eq!(graces(&world), 1, "that of the job without retirement");
    world.pass(100);
    assert_eq!(graces(&world), 3, "both a hundred seconds before the deadline");
}

#[test]
fn jobs_that_the_drains_start_expression_keeps_out_have_their_own_retirement() {
    let mut world = three_jobs(BY_JOB);
    let start = Some(Expr::parse("TARGET.Retires == 1000").unwrap());
    request(&mut world, "d", 1, DrainSpec { start, ..spec("n1") });
    world.pass(240);
    assert_eq!(living(&world), ["long-0", "short-0"]);
    world.pass(60);
    assert_eq!(living(&world), ["long-0"]);
}

#[test]
fn jobs_that_fill_in_have_no_retirement_and_leave_with_the_last_that_was_there() {
    let mut world = three_jobs(BY_JOB);
    let start = Some(Expr::parse("TARGET.Retires >= 5000").unwrap());
    request(&mut world, "d", 1, DrainSpec { start, ..spec("n1") });
    retires(&mut world, "filler", 5000);
    retires(&mut world, "other", 100);
    world.pass(60);
    assert!(
        living(&world).contains(&"filler-0".to_owned()) && !living(&world).contains(&"other-0".to_owned())
    );
    world.pass(800);
    assert_eq!(living(&world), ["filler-0", "long-0"]);
    world.pass(150);
    assert_eq!(
        (living(&world).len(), phase(&world, "d").as_str()),
        (0, "Drained"),
        "the filler's 5000 s count nothing"
    );
}

#[test]
fn a_quick_drain_knows_no_deadline() {
    let mut world = three_jobs(BY_JOB);
    request(&mut world, "d", 1, DrainSpec { schedule: DrainSchedule::Quick, ..spec("n1") });
    world.pass(5);
    assert_eq!((living(&world).len(), phase(&world, "d").as_str()), (0, "Drained"));
    assert_eq!(says(&world, "DrainingDeadline"), "undefined");
}

#[test]
fn what_a_drain_costs_is_counted_in_cpu_seconds() {
    let mut world = three_jobs(BY_JOB);
    world.pass(55);
    // Each job has run since one of the first cycles: for 100 s less a few.
    let ran: Vec<i64> = world
        .pool
        .slots()
        .values()
        .map(|slot| world.now.secs() - slot.running().unwrap().started.unwrap().secs())
        .collect();
    let expected: i64 = ran.iter().sum();
    assert_eq!(says(&world, "ExpectedMachineQuickDrainingBadput"), expected.to_string());
    assert_eq!(says(&world, "ExpectedMachineQuickDrainingCompletion"), world.now.secs().to_string());
    let graceful: i64 = says(&world, "ExpectedMachineGracefulDrainingBadput").parse().unwrap();
    assert_eq!(
        graceful,
        1000 + 300 + ran.iter().min().unwrap(),
        "what runs until its retirement is over is lost too"
    );
    request(&mut world, "d", 1, DrainSpec { schedule: DrainSchedule::Quick, resume: true, ..spec("n1") });
    world.pass(3);
    assert_eq!(phase(&world, "d"), "Resumed");
    let cost = world.pool.drains()["d"].cost;
    assert_eq!(cost.badput, expected);
    assert_eq!(says(&world, "TotalMachineDrainingBadput"), expected.to_string());
    assert_eq!(says(&world, "LastDrainStopTime"), says(&world, "LastDrainStartTime"));
    assert_eq!(says(&world, "Draining"), "undefined");
}

#[test]
fn cpus_that_nobody_may_claim_are_counted_while_they_are_drained() {
    let mut world = three_jobs(BY_JOB);
    let since = world.now;
    request(&mut world, "d", 1, spec("n1"));
    // The unclaimed CPUs are the fourth CPU, and that of the job without retirement.
    world.pass(100);
    let lost: i64 = says(&world, "TotalMachineDrainingUnclaimedTime").parse().unwrap();
    assert!((195..=200).contains(&lost), "{lost}");
    world.pass(900);
    assert_eq!(phase(&world, "d"), "Drained");
    let drained = match world.pool.drains()["d"].phase {
        DrainPhase::Drained { at, .. } => i64::try_from(at.since(since).as_secs()).unwrap(),
        _ => 0,
    };
    let cost = world.pool.drains()["d"].cost;
    assert!((2 * drained - 10..=2 * drained).contains(&cost.unclaimed), "{cost:?} in {drained} s");
    world.pass(100);
    assert_eq!(world.pool.drains()["d"].cost, cost, "to stay drained is what its admin asked for");
    let total: i64 = says(&world, "TotalMachineDrainingUnclaimedTime").parse().unwrap();
    assert!(total >= cost.unclaimed + 4 * 100, "the machine's own counts on, as HTCondor's does: {total}");
}

#[test]
fn a_new_leader_knows_what_drains_have_cost() {
    let mut world = three_jobs(BY_JOB);
    request(&mut world, "d", 1, DrainSpec { schedule: DrainSchedule::Quick, resume: true, ..spec("n1") });
    world.pass(3);
    let (drain, total) = (world.pool.drains()["d"].clone(), says(&world, "TotalMachineDrainingBadput"));
    let stopped = says(&world, "LastDrainStopTime");
    let facts = DrainFacts {
        name: "d".into(),
        uid: "d".into(),
        generation: 1,
        created: Time::from_secs(1),
        spec: Ok(drain.spec.unwrap()),
        recorded: Some(drain.phase),
        cost: drain.cost,
    };
    let machines = world.machines.clone();
    world.pool = crate::pool::Pool::default();
    for facts in machines.into_values() {
        world.pool.apply(Event::Machine(facts), world.now);
    }
    world.sees(Event::Drain(facts));
    world.pool.apply(Event::Synced, world.now);
    world.pool.begin_trace();
    let decided = crate::decide::decide(&mut world.pool, world.now);
    assert!(decided.effects.is_empty(), "{:?}", decided.effects);
    assert_eq!(
        (says(&world, "TotalMachineDrainingBadput"), says(&world, "LastDrainStopTime")),
        (total, stopped)
    );
}

/// Claims end one after another. The number of claims bounds the number of writes.
#[test]
fn a_request_says_how_many_claims_are_left() {
    let mut world = three_jobs(BY_JOB);
    request(&mut world, "d", 1, spec("n1"));
    let claims = |world: &World| world.pool.drains()["d"].claims;
    assert_eq!(claims(&world), 2, "the job without retirement is gone");
    let long = world.pods["long-0"].facts.pod.clone();
    world.end_pod(&long, Some(0));
    world.pass(3);
    assert_eq!(claims(&world), 1);
    world.pass(300);
    assert_eq!((claims(&world), phase(&world, "d").as_str()), (0, "Drained"));
}
