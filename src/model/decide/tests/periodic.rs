//! The expressions that are asked from time to time: those of jobs, and those of the SubmitPolicy.

use super::life::{acting, counts, hold_of, of};
use super::world::World;
use crate::pool::{SystemPolicy, Verb};
use crate::schedd::policy;
use std::sync::Arc;

fn system(text: &str) -> Arc<SystemPolicy> {
    let (config, remarks) = policy::understand(text);
    assert_eq!(remarks, []);
    config.unwrap().system
}

/// `user_job_policy.cpp`: the order in which periodic expressions are asked, and of which states.
#[test]
fn periodic_expressions_act_on_the_states_that_they_are_for() {
    for (name, expr, after) in [
        ("PeriodicHold", "JobStatus == 1 && time() - QDate > 50", [0, 1, 1, 0, 0, 0]),
        ("PeriodicHold", "JobStatus == 2 && time() - EnteredCurrentStatus > 50", [1, 0, 1, 0, 0, 0]),
        ("PeriodicRemove", "JobStatus == 1", [0, 1, 0, 0, 0, 1]),
        ("PeriodicRemove", "ProcId == 1", [0, 1, 0, 0, 0, 1]),
        ("PeriodicRemove", "NumJobStarts >= 1", [0, 1, 0, 0, 0, 1]),
        ("PeriodicVacate", "JobStatus == 2 && NumJobStarts < 2", [1, 1, 0, 0, 0, 0]),
        ("TimerRemove", "QDate + 30", [0, 0, 0, 0, 0, 2]),
        ("AllowedJobDuration", "50", [1, 0, 1, 0, 0, 0]),
        ("AllowedExecuteDuration", "50", [1, 0, 1, 0, 0, 0]),
        ("PeriodicHold", "undefined", [1, 1, 0, 0, 0, 0]),
        ("PeriodicHold", "error", [1, 1, 0, 0, 0, 0]),
        ("PeriodicHold", "0.5", [1, 1, 0, 0, 0, 0]),
        ("PeriodicRelease", "true", [1, 1, 0, 0, 0, 0]),
    ] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (1000, 0);
        world.submit("sweep", "alice", 2, acting(&[(name, expr)]));
        world.pass(66);
        let now = counts(&world);
        // The slot that one proc leaves goes to the other in a moment.
        let left = |[idle, running, held, done, failed, removed]: [u64; 6]| {
            (idle + running, held, done, failed, removed)
        };
        assert_eq!(left(now), left(after), "{name} = {expr}: {now:?}");
    }
}

#[test]
fn held_for_too_long_by_duration_has_htcondor_s_codes() {
    for (name, code, reason) in [
        ("AllowedJobDuration", 46, "The job exceeded allowed job duration of 00:50"),
        ("AllowedExecuteDuration", 47, "The job exceeded allowed execute duration of 00:50"),
    ] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (1000, 0);
        world.submit("sweep", "alice", 1, acting(&[(name, "50")]));
        world.pass(70);
        assert_eq!(hold_of(&world, 0), (code, 0, reason.to_owned()));
    }
}

/// "Ignore jobs held at user request."
#[test]
fn no_expression_releases_what_a_person_holds() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.submit("sweep", "alice", 1, acting(&[("PeriodicRelease", "true")]));
    world.act("sweep", Verb::Hold, "", "mine");
    world.pass(200);
    assert_eq!(counts(&world), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn the_pool_s_expressions_come_after_the_job_s() {
    let text = "SYSTEM_PERIODIC_HOLD_NAMES = long\nSYSTEM_PERIODIC_HOLD_long = JobStatus == 2\n\
                SYSTEM_PERIODIC_HOLD_long_REASON = strcat(\"too long: \", ProcId)\n\
                SYSTEM_PERIODIC_HOLD_long_SUBCODE = 6\nSYSTEM_PERIODIC_HOLD = false\n\
                SYSTEM_PERIODIC_REMOVE = NumHolds > 1\nSYSTEM_MAX_RELEASES = 3\nPERIODIC_EXPR_INTERVAL = 20\n";
    let policy = system(text);
    assert_eq!(
        (policy.hold.len(), policy.remove.len(), policy.max_releases, policy.interval),
        (1, 1, Some(3), 20)
    );
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (1000, 0);
    super::submit_rules::policy(&mut world, text);
    world.submit("sweep", "alice", 1, |_| ());
    world.submit(
        "own",
        "alice",
        1,
        acting(&[("PeriodicHold", "JobStatus == 2"), ("PeriodicHoldSubCode", "9")]),
    );
    world.pass(70);
    assert_eq!(hold_of(&world, 0), (26, 6, "too long: 0".to_owned()));
    assert_eq!((of(&world, "own").on_hold[&0].code, of(&world, "own").on_hold[&0].subcode), (3, 9));
    world.act("sweep", Verb::Release, "", "again");
    world.pass(90);
    assert_eq!(counts(&world), [0, 0, 0, 0, 0, 1], "SYSTEM_PERIODIC_REMOVE");
}

#[test]
fn a_shorter_interval_of_the_policy_counts_at_once() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (1000, 0);
    super::submit_rules::policy(&mut world, "SYSTEM_PERIODIC_HOLD = false\nPERIODIC_EXPR_INTERVAL = 86400\n");
    world.submit("sweep", "alice", 1, |_| ());
    world.pass(10);
    super::submit_rules::policy(&mut world, "SYSTEM_PERIODIC_HOLD = true\nPERIODIC_EXPR_INTERVAL = 20\n");
    world.pass(40);
    assert_eq!(hold_of(&world, 0).0, 26);
}

/// However expensive an expression is, an evaluation of it ends, and others have their turn.
#[test]
fn expensive_expressions_of_one_job_do_not_keep_others_from_theirs() {
    let mut world = World::new();
    let costly =
        "size(strcat(string(ProcId), join(\",\", split(\"a b c d e f g h i j\")))) > 0 && ProcId < 0";
    world.submit("sweep", "alice", 50_000, acting(&[("PeriodicHold", costly)]));
    world.submit("other", "bob", 2, acting(&[("PeriodicRemove", "true")]));
    world.pass(75);
    assert_eq!(of(&world, "other").removed.len(), 2);
    assert_eq!(counts(&world), [50_000, 0, 0, 0, 0, 0]);
}

/// The shadow adds the present run to RemoteWallClockTime before each evaluation.
#[test]
fn periodic_expressions_see_the_seconds_of_the_present_run() {
    for (limit, removed) in [("50", 1), ("5000", 0)] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (1000, 0);
        let text = format!("RemoteWallClockTime > {limit}");
        world.submit("sweep", "alice", 1, acting(&[("PeriodicRemove", &text)]));
        world.pass(200);
        assert_eq!(counts(&world)[5], removed, "{limit}");
    }
}

/// Only the procs whose number the SubmitPolicy's expression reads are meant, though they are as old as the others.
#[test]
fn a_system_expression_may_read_the_number_of_a_proc() {
    for text in ["SYSTEM_PERIODIC_REMOVE = ProcId == 0\n", "SYSTEM_PERIODIC_REMOVE = Mine == 0\n"] {
        let mut world = World::new();
        world.submit("sweep", "alice", 3, acting(&[("Mine", "ProcId")]));
        super::submit_rules::policy(&mut world, text);
        world.pass(70);
        assert_eq!(counts(&world), [2, 0, 0, 0, 0, 1], "{text}");
    }
}

/// An author makes each look at an idle proc cost more than a turn. The SubmitPolicy's expression acts on the running proc all the same.
#[test]
fn expressions_that_cost_more_than_a_turn_keep_no_proc_from_the_system_s() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (1000, 0);
    let long = format!("\"{}\"", "a".repeat(11_000));
    let attributes = [("Long", &*long), ("Slow", "regexp(\"(a{1,110}){1,110}b\", Long)")];
    world.submit("sweep", "alice", 2, acting(&attributes));
    let names = ["a", "b", "c", "d", "e", "f"];
    let each = names.map(|name| format!("SYSTEM_PERIODIC_HOLD_{name} = Slow\n")).concat();
    let text = format!(
        "SYSTEM_PERIODIC_HOLD_NAMES = {}\n{each}SYSTEM_PERIODIC_REMOVE = JobStatus == 2\n",
        names.join(" ")
    );
    super::submit_rules::policy(&mut world, &text);
    world.pass(70);
    assert_eq!(counts(&world)[5], 1, "the proc that ran is removed");
}
