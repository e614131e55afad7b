//! The ends of programs: retries, what the expressions of the job ask for then, and what a run took.

use super::life::{acting, counts, hold_of, of, world};
use super::world::World;
use crate::pool::Verb;
use std::cell::Cell;
use std::time::Duration;

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
