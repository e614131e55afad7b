//! The life of a proc: held, released, removed and vacated by people, and what the expressions of its job ask for.

use super::world::World;
use crate::pool::{Act, Event, Job, SystemPolicy, Verb, Whom};
use crate::schedd::{Submission, policy};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// A node of `cpus` CPUs, and a job of so many procs that run for 30 s each.
fn world(cpus: i64, procs: i64) -> World {
    let mut world = World::new();
    world.node("n1", cpus, 0);
    world.submit("sweep", "alice", procs, |_| ());
    world.settle();
    world
}

fn of<'a>(world: &'a World, name: &str) -> &'a Job {
    world.pool.jobs().values().find(|job| &*job.key.name == name).unwrap()
}

/// A job in short: how many procs are idle, running, held, completed, failed and removed.
fn counts(world: &World) -> [u64; 6] {
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

fn hold_of(world: &World, proc: u32) -> (i64, i64, String) {
    let hold = &of(world, "sweep").on_hold[&proc];
    (hold.code, hold.subcode, hold.reason.to_string())
}

/// A job with these attributes.
fn acting(attributes: &[(&str, &str)]) -> impl FnOnce(&mut Submission) {
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

/// The manual: "max_retries ... the job is run again, up to this many times". The attributes are those into which
/// condor_submit translates `max_retries`.
#[test]
fn a_program_that_fails_is_retried_so_many_times() {
    let retries = [
        ("JobMaxRetries", "2"),
        ("OnExitRemove", "NumJobCompletions > JobMaxRetries || ExitCode =?= 0"),
        ("OnExitHold", "false"),
    ];
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (5, 7);
    world.submit("sweep", "alice", 1, acting(&retries));
    world.pass(8);
    assert_eq!(counts(&world), [1, 0, 0, 0, 0, 0], "idle, and waits a little");
    assert_eq!(of(&world, "sweep").history_of(0).completions, 1);
    world.pass(120);
    assert_eq!(counts(&world), [0, 0, 0, 0, 1, 0], "three runs in all");
    let started = world.log.iter().filter(|line| line.contains("CreatePod")).count();
    assert!(started == 3 || started == 0, "{started}");
    // A program that succeeds at last is done.
    world.submit("better", "alice", 1, acting(&retries));
    world.pass(8);
    world.fate = |_| (5, 0);
    world.pass(60);
    assert_eq!(of(&world, "better").succeeded.len(), 1);
}

thread_local! {
    /// How many programs have started.
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_retry_is_counted_once_wherever_the_operator_dies() {
    for n in 0..25 {
        for outlives in [|_| false, |_| true, |place| place % 2 == 0] {
            RUNS.set(0);
            let mut world = World::new();
            world.node("n1", 1, 0);
            world.outlives = outlives;
            world.fate = |_| {
                RUNS.set(RUNS.get() + 1);
                (5, 7)
            };
            let remove = ("OnExitRemove", "NumJobCompletions >= 3");
            world.submit("sweep", "alice", 1, acting(&[remove]));
            world.pass(3);
            world.calls_left = Some(n);
            world.pass(150);
            assert_eq!((counts(&world), RUNS.get()), ([0, 0, 0, 0, 1, 0], 3), "{n}");
        }
    }
}

/// `user_job_policy.cpp`: only a value of false keeps the job in the queue.
#[test]
fn on_exit_remove_keeps_the_proc_only_if_it_is_false() {
    for (expr, stays) in [
        ("false", true),
        ("0", true),
        ("ExitCode == 0", true),
        ("ExitCode =!= 7", true),
        ("true", false),
        ("undefined", false),
        ("error", false),
        ("\"text\"", false),
        ("NoSuchThing", false),
        ("ExitBySignal == false && ExitCode == 7", false),
    ] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (5, 7);
        world.submit("sweep", "alice", 1, acting(&[("OnExitRemove", expr)]));
        world.pass(7);
        assert_eq!(counts(&world)[0] == 1, stays, "{expr}");
    }
}

#[test]
fn on_exit_hold_gives_reason_and_subcode() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (5, 137);
    let attributes = [
        ("OnExitHold", "ExitBySignal && ExitSignal == 9"),
        ("OnExitHoldReason", "strcat(\"signal \", ExitSignal)"),
        ("OnExitHoldSubCode", "40 + NumJobStarts"),
        ("PeriodicRelease", "HoldReasonSubCode == 41 && time() - EnteredCurrentStatus > 100"),
    ];
    world.submit("sweep", "alice", 1, acting(&attributes));
    world.pass(7);
    assert_eq!(hold_of(&world, 0), (3, 41, "signal 9".to_owned()));
    world.restart();
    world.pass(80);
    assert_eq!(counts(&world), [0, 0, 1, 0, 0, 0], "not yet");
    world.pass(100);
    assert_eq!(hold_of(&world, 0), (3, 42, "signal 9".to_owned()), "released once, and held again");
    assert_eq!(of(&world, "sweep").history_of(0).holds, 2);
}

/// `shadow_user_policy.cpp`: a job that an expression removes at its end is terminated as any other, whatever `OnExitRemove` says.
#[test]
fn a_proc_that_is_to_be_removed_when_its_program_has_ended_is_done() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (20, 0);
    let attributes = [("PeriodicRemove", "NumJobCompletions >= 1"), ("OnExitRemove", "false")];
    world.submit("sweep", "alice", 1, acting(&attributes));
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 1, 0, 0]);
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

fn system(text: &str) -> Arc<SystemPolicy> {
    let (config, remarks) = policy::understand(text);
    assert_eq!(remarks, []);
    config.unwrap().system
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

/// The manual, "Job ClassAd Attributes": RemoteWallClockTime, JobStartDate, LastVacateTime.
#[test]
fn what_the_runs_of_a_proc_took_is_added_up() {
    let mut world = world(1, 1);
    world.pass(10);
    let first = of(&world, "sweep").history_of(0);
    assert_eq!((first.wall, first.first_start), (0, None), "the present run does not count yet");
    world.act("sweep", Verb::Vacate, "0", "via condor_vacate_job");
    world.pass(12);
    let history = of(&world, "sweep").history_of(0);
    assert_eq!(history.starts, 1);
    assert!((10..=20).contains(&history.wall), "{history:?}");
    let (started, vacated) = (history.first_start.unwrap(), history.last_vacate.unwrap());
    assert!(vacated.since(started).as_secs() >= 10, "{history:?}");
    world.pass(15);
    world.act("sweep", Verb::Vacate, "0", "via condor_vacate_job");
    world.pass(5);
    let again = of(&world, "sweep").history_of(0);
    assert!(
        again.starts == 2 && again.wall > history.wall && again.first_start == Some(started),
        "{again:?}"
    );
}

/// A leader that begins may learn of an end that was long ago.
#[test]
fn a_run_lasts_until_its_program_ends_however_late_that_is_told() {
    let wall = |late: u64| {
        let mut world = world(1, 1);
        world.told_late = Duration::from_secs(late);
        world.pass(20);
        world.act("sweep", Verb::Vacate, "0", "via condor_vacate_job");
        world.pass(12);
        of(&world, "sweep").history_of(0).wall
    };
    assert_eq!(wall(0), wall(5) + 5);
    assert_eq!(wall(1000), 0, "before the start");
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

/// The manual's example for `on_exit_hold`: "hold if the job ran for less than an hour" reads JobStartDate of the run that has ended.
#[test]
fn expressions_at_exit_see_the_run_that_has_ended() {
    let hold = "time() - JobStartDate < 3600 && JobStartDate =?= ShadowBday && JobCurrentStartDate =?= ShadowBday \
                && JobCurrentStartExecutingDate >= ShadowBday && NumJobStarts == 1 && EnteredCurrentStatus =?= ShadowBday";
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (50, 0);
    world.submit("sweep", "alice", 1, acting(&[("OnExitHold", hold)]));
    world.pass(80);
    assert_eq!(hold_of(&world, 0).0, 3);
}

/// "RemoteWallClockTime" has the seconds of the run that has ended, and AllowedJobDuration is asked at the end, too.
#[test]
fn expressions_at_exit_see_the_seconds_of_the_run_that_has_ended() {
    for (attributes, code) in [
        (&[("OnExitHold", "RemoteWallClockTime < 49")][..], None),
        (&[("OnExitHold", "RemoteWallClockTime >= 49 && RemoteWallClockTime <= 51")], Some(3)),
        (&[("AllowedJobDuration", "50")], Some(46)),
        (&[("AllowedJobDuration", "60")], None),
        (&[("AllowedExecuteDuration", "40")], Some(47)),
    ] {
        let mut world = World::new();
        world.node("n1", 1, 0);
        world.fate = |_| (50, 0);
        world.pass(7);
        world.submit("sweep", "alice", 1, acting(attributes));
        world.pass(80);
        let held = world.pool.jobs().values().next().unwrap().on_hold.get(&0).map(|hold| hold.code);
        assert_eq!(held, code, "{attributes:?}");
    }
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
