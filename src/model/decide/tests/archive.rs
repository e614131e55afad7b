//! Ends of procs reach the history before the API server records them, and none is lost.

use classad::Env;

use super::world::World;
use crate::pool::{End, Event, HoldReason, Remains, Verb};

/// Jobs whose procs leave the queue in each way: with exit code 0, with another, by a signal, removed while idle, while held and
/// while they run, and with their job.
fn submit(world: &mut World) {
    world.fate = |pod| match pod {
        "ends-1" => (10, 7),
        "ends-2" => (12, 137),
        pod if pod.starts_with("ends") => (10, 0),
        _ => (36_000, 0),
    };
    world.node("n1", 4, 0);
    world.submit("ends", "ada", 3, |_| {});
    world.settle();
    world.submit("removed", "bob", 3, |_| {});
    world.settle();
    world.submit("deleted", "eve", 2, |_| {});
    world.settle();
}

/// `JobStatus`, `ExitCode` and `ExitSignal` of each final ad, by cluster and proc.
fn story(world: &World) -> Vec<String> {
    let env = Env::at(0);
    let told = world.history.as_ref().unwrap().values().map(|(_, ad)| {
        let show = |name: &str| ad.eval_attr(name, None, &env).to_string();
        let names = ["ClusterId", "ProcId", "JobStatus", "ExitCode", "ExitSignal"];
        names.map(show).join(" ").replace("undefined", "-")
    });
    told.collect()
}

const STORY: [&str; 8] =
    ["1 0 4 0 -", "1 1 4 7 -", "1 2 4 - 9", "2 0 3 - -", "2 1 3 - -", "2 2 3 - -", "3 0 3 - -", "3 1 3 - -"];

fn act_and_wait(world: &mut World) {
    world.act("removed", Verb::Hold, "2", "to see");
    world.pass(2);
    world.act("removed", Verb::Remove, "", "via condor_rm (by user bob)");
    world.pass(2);
    world.remove("deleted");
    world.pass(60);
}

#[test]
fn each_way_out_of_the_queue_is_in_the_history_once() {
    let mut world = World::new();
    world.keep_history();
    submit(&mut world);
    act_and_wait(&mut world);
    assert_eq!(story(&world), STORY);
    assert!(world.history.as_ref().unwrap().values().all(|(times, _)| *times == 1));
    assert!(!world.jobs.contains_key("uid-deleted"), "the job goes once the history has its procs");
}

#[test]
fn a_proc_that_is_added_to_a_job_while_the_job_is_deleted_was_removed() {
    let mut world = World::new();
    world.keep_history();
    world.fate = |_| (36_000, 0);
    world.node("n1", 4, 0);
    world.submit("deleted", "eve", 2, |_| {});
    world.pass(5);
    world.remove("deleted");
    world.edit("deleted", "eve", |job| job.count = 3);
    world.pass(60);
    assert_eq!(story(&world), ["1 0 3 - -", "1 1 3 - -", "1 2 3 - -"]);
    assert!(world.history.as_ref().unwrap().values().all(|(times, _)| *times == 1));
    assert!(!world.jobs.contains_key("uid-deleted"));
}

/// The world checks at each step that the history has each end that a status records.
#[test]
fn no_end_is_lost_whenever_the_operator_dies() {
    let mut died = 0;
    for calls in 0..120 {
        let mut world = World::new();
        world.keep_history();
        submit(&mut world);
        world.calls_left = Some(calls);
        act_and_wait(&mut world);
        died += u32::from(world.calls_left.take().is_none());
        assert_eq!(story(&world), STORY, "after {calls} calls");
    }
    assert!(died > 100, "{died}");
}

/// The claim of a short proc has no object: a leader that finds the pod ended knows nothing of the run but what the pod tells.
#[test]
fn a_run_that_ended_while_nobody_led_was_on_its_slot() {
    let mut world = World::new();
    world.keep_history();
    world.fate = |_| (30, 0);
    world.node("n1", 4, 0);
    world.submit("ends", "ada", 1, |_| {});
    world.settle();
    let pod = world.pods["ends-0"].facts.pod.clone();
    world.end_pod(&pod, Some(0));
    world.restart();
    world.pass(10);
    let (_, ad) = world.history.as_ref().unwrap().values().next().unwrap();
    let host = ad.eval_attr("LastRemoteHost", None, &Env::at(0));
    assert_eq!(host.to_string(), "\"slot1_1@n1\"");
}

/// A pool with a history, and a job of one proc, which runs for ten hours.
fn with_one_that_runs(job: &str) -> World {
    let mut world = World::new();
    world.keep_history();
    world.fate = |_| (36_000, 0);
    world.node("n1", 4, 0);
    world.submit(job, "ada", 1, |_| {});
    world.pass(10);
    world
}

/// The history gets the removal after the kubelet has confirmed the end of the pod: the slot waits for the record of the removal,
/// though the API server had the hold before.
#[test]
fn a_held_proc_that_is_removed_while_its_pod_ends_leaves_its_slot() {
    let mut world = with_one_that_runs("big");
    let pod = world.pods.get_mut("big-0").unwrap();
    pod.facts.end = Some(End::Evicted { why: "OOMKilled".into() });
    pod.facts.hold = Some(Box::new(HoldReason { code: 34, subcode: 102, reason: "too much memory".into() }));
    pod.facts.remains = Remains::Others;
    let facts = pod.facts.clone();
    world.pool.apply(Event::Pod(facts), world.now);
    world.pass(2);
    assert!(world.jobs["uid-big"].on_hold.of(0).is_some(), "the hold is recorded");
    world.disk_hangs = true;
    world.act("big", Verb::Remove, "", "via condor_rm (by user ada)");
    world.pass(2);
    let pod = world.pods.get_mut("big-0").unwrap();
    pod.facts.remains = Remains::Nothing;
    let facts = pod.facts.clone();
    world.pool.apply(Event::Pod(facts), world.now);
    world.pass(2);
    assert!(world.jobs["uid-big"].life.removed.is_empty(), "the history has not got the removal");
    // The operator gives up the batch after a minute, and records the removal.
    world.pass(70);
    assert!(world.pods.get("big-0").is_none_or(|pod| !pod.facts.tracked), "the pod lost its finalizer");
    assert!(world.pool.slots().is_empty(), "{:?}", world.pool.slots().keys());
}

/// The author holds a job, and its program ends, while nobody leads: the new leader knows both before it has recorded either.
#[test]
fn the_slot_of_a_program_that_ended_stays_until_the_end_is_recorded_though_the_job_is_held() {
    let mut world = with_one_that_runs("ends");
    assert_eq!(world.slots.len(), 1, "the claim is written");
    let pod = world.pods["ends-0"].facts.pod.clone();
    world.edit("ends", "ada", |submission| submission.hold = true);
    world.end_pod(&pod, Some(0));
    world.disk_hangs = true;
    world.restart();
    world.pass(5);
    assert_eq!(world.slots.len(), 1, "the history has not got the end");
    // The operator gives up the batch after a minute, and records the end.
    world.pass(70);
    assert!(world.slots.is_empty() && world.jobs["uid-ends"].succeeded.contains(0));
}

/// A leader died before the job's status had the ClusterId. The next leader gives a number once it knows all jobs, which is after it
/// has seen the pod that ended.
#[test]
fn an_end_that_is_known_before_the_jobs_number_is_in_the_history() {
    let mut world = with_one_that_runs("ends");
    let pod = world.pods["ends-0"].facts.pod.clone();
    world.end_pod(&pod, Some(0));
    world.jobs.get_mut("uid-ends").unwrap().cluster_id = None;
    world.restart();
    world.pass(10);
    assert_eq!(story(&world), ["1 0 4 0 -"]);
}

#[test]
fn a_disk_that_hangs_keeps_procs_for_a_minute_and_their_authors_are_warned() {
    let mut world = World::new();
    world.keep_history();
    world.disk_hangs = true;
    submit(&mut world);
    world.pass(50);
    let recorded =
        |world: &World| world.jobs["uid-ends"].succeeded.len() + world.jobs["uid-ends"].failed.len();
    assert_eq!(recorded(&world), 0);
    world.pass(90);
    assert_eq!(recorded(&world), 3);
    assert!(world.log.iter().any(|line| line.contains("HistoryLost")), "{:?}", world.log);
}

#[test]
fn without_a_history_nothing_is_handed_over() {
    let mut world = World::new();
    submit(&mut world);
    act_and_wait(&mut world);
    assert_eq!(world.history, None);
    assert!(!world.jobs.contains_key("uid-deleted"));
}

/// The attributes of final ads that people read.
#[test]
fn a_final_ad_tells_of_the_last_run() {
    let mut world = World::new();
    world.keep_history();
    submit(&mut world);
    act_and_wait(&mut world);
    let env = Env::at(0);
    let history = world.history.as_ref().unwrap();
    let show = |id: &str, names: &[&str]| {
        let (_, ad) = &history[id];
        names.iter().map(|name| ad.eval_attr(name, None, &env).to_string()).collect::<Vec<_>>()
    };
    let start = 1_700_000_000;
    let ended = show(
        "default#1.1#uid-ends",
        &[
            "Owner",
            "LastRemoteHost",
            "RemoteWallClockTime",
            "NumJobStarts",
            "TotalSubmitProcs",
            "ExitBySignal",
        ],
    );
    assert_eq!(ended, ["\"ada\"", "\"slot1_2@n1\"", "1.000000000000000E+01", "1", "3", "false"]);
    let times = show("default#1.1#uid-ends", &["CompletionDate-EnteredCurrentStatus", "JobStartDate"]);
    assert_eq!(times[1].parse::<i64>().map(|at| (start..start + 10).contains(&at)), Ok(true));
    let removed = show(
        "default#2.2#uid-removed",
        &["RemoveReason", "CompletionDate", "RemoteWallClockTime", "LastRemoteHost"],
    );
    assert_eq!(removed, ["\"via condor_rm (by user bob)\"", "0", "0.0", "undefined"]);
    let deleted = show("default#3.0#uid-deleted", &["RemoveReason", "JobStatus"]);
    assert_eq!(deleted, ["\"the HTCJob was deleted\"", "3"]);
}

/// Found by seed 430002913.
#[test]
fn an_end_is_in_the_history_though_the_leader_has_never_understood_the_jobs_spec() {
    let mut world = with_one_that_runs("big");
    world.edit("big", "ada", |job| job.requirements = Some("(".to_owned()));
    world.restart();
    let pod = world.pods["big-0"].facts.pod.clone();
    world.end_pod(&pod, Some(0));
    world.pass(10);
    assert_eq!(story(&world), ["1 0 4 0 -"]);
    let (_, ad) = world.history.as_ref().unwrap().values().next().unwrap();
    assert_eq!(ad.eval_attr("Owner", None, &Env::at(0)).to_string(), "\"default\"", "the namespace");
}
