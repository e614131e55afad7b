//! The pace of a job's procs: late materialization, NextJobStartDelay, deferral.

use super::world::World;
use crate::pool::{Job, Verb};
use crate::schedd::{Submission, why};

fn world(cpus: i64, procs: i64, attributes: &[(&str, &str)]) -> World {
    let mut world = World::new();
    world.node("n1", cpus, 0);
    world.submit("sweep", "alice", procs, paced(attributes));
    world.settle();
    world
}

/// A job with these attributes.
fn paced(attributes: &[(&str, &str)]) -> impl FnOnce(&mut Submission) {
    let attributes: Vec<_> =
        attributes.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    move |submission| submission.attributes.extend(attributes)
}

fn job(world: &World) -> &Job {
    world.pool.jobs().values().find(|job| &*job.key.name == "sweep").unwrap()
}

/// How many procs are idle, run, are held, and are done.
fn counts(world: &World) -> [u64; 4] {
    let job = job(world);
    [job.idle.len(), job.running() as u64, job.on_hold.len() as u64, job.succeeded.len() + job.removed.len()]
}

fn why_waits(world: &World) -> String {
    why::why(job(world), &[], world.now).unwrap_or_default()
}

/// The numbers of the procs that have pods.
fn pods(world: &World) -> usize {
    world.pods.keys().filter(|name| name.starts_with("sweep-")).count()
}

/// "max_materialize: an overall limit on the number of jobs that can be materialized in the condor_schedd at any one time."
#[test]
fn no_more_procs_are_in_the_queue_than_max_materialize() {
    let mut world = world(8, 7, &[("JobMaterializeLimit", "2")]);
    assert_eq!(counts(&world), [5, 2, 0, 0]);
    assert_eq!(why_waits(&world), "JobMaterializeLimit is 2, and as many procs have slots or are held");
    // Procs run for 30 s each. Held ones are in the queue, too.
    world.pass(35);
    let [_, running, _, done] = counts(&world);
    assert_eq!((running, done), (2, 2), "{:?}", counts(&world));
    world.act("sweep", Verb::Hold, "6", "later");
    world.pass(100);
    assert!(job(&world).running() <= 1, "one is held, so that one may run");
    world.pass(200);
    assert_eq!(counts(&world), [0, 0, 1, 6]);
}

/// "max_idle: when the number of idle jobs falls below this, more are materialized."
#[test]
fn no_more_procs_are_matched_in_a_cycle_than_max_idle() {
    let mut world = world(8, 8, &[("JobMaterializeMaxIdle", "3")]);
    let job = job(&world);
    assert_eq!(job.startable(world.now), 3.min(job.idle.len()));
    world.pass(60);
    world.pass(60);
    assert_eq!(counts(&world)[3], 8, "all run in the end: {:?}", counts(&world));
}

/// "next_job_start_delay: the number of seconds after starting up this job until the next job is started."
#[test]
fn the_next_proc_starts_after_the_delay_of_the_last() {
    let mut world = world(8, 4, &[("NextJobStartDelay", "10")]);
    assert_eq!(counts(&world), [3, 1, 0, 0], "a proc that must not start yet keeps no slot from others");
    let mut starts = vec![0];
    for second in 1..=120 {
        world.pass(1);
        assert!(pods(&world) <= starts.len() + 1, "two procs start at once");
        if pods(&world) > starts.len() {
            starts.push(second);
        }
    }
    assert_eq!(starts.len(), 4);
    assert!(starts.windows(2).all(|two| two[1] - two[0] >= 10), "{starts:?}");
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 4]);
}

/// "deferral_time: the time, in seconds since the Unix epoch, at which the job is to begin execution."
#[test]
fn a_deferred_proc_has_its_slot_before_and_starts_at_its_time() {
    let mut world = world(2, 2, &[("DeferralTime", "time() + 400"), ("DeferralPrepTime", "100")]);
    assert_eq!((counts(&world), pods(&world)), ([2, 0, 0, 0], 0));
    assert!(why_waits(&world).starts_with("DeferralTime is 20"), "{}", why_waits(&world));
    world.pass(290);
    assert_eq!(counts(&world), [2, 0, 0, 0], "too early for a match");
    world.pass(80);
    assert_eq!((counts(&world), pods(&world)), ([0, 2, 0, 0], 0), "matched, and not started");
    world.pass(50);
    assert_eq!(pods(&world), 2);
    world.pass(60);
    assert_eq!(counts(&world), [0, 0, 0, 2]);
}

/// "If the job missed its execution time by more than the window, it is put on hold."
#[test]
fn a_deferred_proc_that_gets_no_slot_in_its_window_is_held() {
    let deferral = [("DeferralTime", "time() + 100"), ("DeferralWindow", "60")];
    let mut world = World::new();
    world.submit("sweep", "alice", 2, paced(&deferral));
    world.settle();
    world.pass(150);
    assert_eq!(counts(&world), [2, 0, 0, 0], "there is no node, and the window is open");
    assert!(!why_waits(&world).contains("DeferralTime"), "{}", why_waits(&world));
    world.pass(120);
    assert_eq!(counts(&world), [0, 0, 2, 0]);
    let hold = &job(&world).on_hold[&0];
    assert_eq!(hold.code, 20);
    world.node("n1", 2, 0);
    world.act("sweep", Verb::Release, "0-1", "try");
    world.pass(120);
    assert_eq!(counts(&world), [0, 0, 2, 0], "it is too late for ever");
}

/// The attributes of a job with a crontab whose procs run again and again.
fn recurring(minutes: &'static str, window: &'static str) -> [(&'static str, &'static str); 4] {
    [
        ("CronMinute", minutes),
        ("DeferralWindow", window),
        ("DeferralPrepTime", "60"),
        ("OnExitRemove", "false"),
    ]
}

/// How many pods of procs have not ended.
fn at_work(world: &World) -> usize {
    let of_job = |name: &str| name.starts_with("sweep-");
    world.pods.iter().filter(|(name, pod)| of_job(name) && pod.facts.end.is_none()).count()
}

/// Lets seconds pass. Returns the seconds of the hour at which pods were created.
fn starts(world: &mut World, seconds: u64) -> Vec<i64> {
    let (mut seen, mut starts) = (at_work(world), Vec::new());
    for _ in 0..seconds {
        world.pass(1);
        let now = at_work(world);
        if now > seen {
            starts.push(world.now.secs() % 3600);
        }
        seen = now;
    }
    starts
}

/// "CronTab scheduling functionality allows jobs to be scheduled to execute periodically."
#[test]
fn a_proc_with_a_crontab_runs_at_each_of_its_times_with_its_slot_taken_before() {
    let mut world = world(1, 1, &recurring("\"*/10\"", "0"));
    assert_eq!((counts(&world), at_work(&world)), ([1, 0, 0, 0], 0));
    assert!(
        why_waits(&world).starts_with("the next time of the job's crontab is 20"),
        "{}",
        why_waits(&world)
    );
    let first = starts(&mut world, 3600);
    assert_eq!(first.len(), 6, "{first:?}");
    assert!(first.iter().all(|second| second % 600 == 0), "{first:?}");
    // "The job will be matched and sent to an execution machine" a minute before the next time.
    let left = 600 - world.now.secs() % 600;
    world.pass(u64::try_from(left - 70).unwrap());
    assert_eq!(counts(&world), [1, 0, 0, 0], "too early for a match");
    world.pass(30);
    assert_eq!((counts(&world), at_work(&world)), ([0, 1, 0, 0], 0), "matched, and not started");
}

/// "If HTCondor is unable to find a match, then the job will miss its chance for executing and must wait for the next execution
/// time specified by the CronTab schedule."
#[test]
fn a_proc_with_a_crontab_that_gets_no_slot_in_its_window_waits_for_the_next_time() {
    let mut world = World::new();
    world.node("n1", 2, 0);
    world.fate = |name| if name.starts_with("other-") { (100_000, 0) } else { (30, 0) };
    world.submit("other", "bob", 2, |_| {});
    world.settle();
    world.submit("sweep", "alice", 2, paced(&recurring("\"0,30\"", "120")));
    world.settle();
    let left = 1800 - world.now.secs() % 1800;
    world.pass(u64::try_from(left).unwrap() + 60);
    assert!(!why_waits(&world).contains("crontab"), "its time has come: {}", why_waits(&world));
    world.pass(120);
    assert!(why_waits(&world).contains("crontab"), "{}", why_waits(&world));
    world.remove("other");
    assert_eq!(starts(&mut world, 600), [0_i64; 0], "too late, and too early");
    assert_eq!(counts(&world), [2, 0, 0, 0], "idle, and not held");
    let started = starts(&mut world, 1800);
    assert!(started.iter().all(|second| second % 1800 == 0), "{started:?}");
    assert!(!started.is_empty());
}

/// "When the job is re-queued" a new time is calculated, which is a later one.
#[test]
fn no_leader_runs_a_proc_twice_for_one_time_of_its_crontab() {
    let mut world = world(1, 1, &recurring("0", "900"));
    world.fate = |_| (10, 0);
    let left = 3600 - world.now.secs() % 3600;
    let first = starts(&mut world, u64::try_from(left).unwrap() + 60);
    assert_eq!(first, [0]);
    assert_eq!(counts(&world), [1, 0, 0, 0]);
    world.restart();
    assert_eq!(starts(&mut world, 1200), [0_i64; 0], "the window is open for a proc that has not run");
    assert_eq!(starts(&mut world, 3600), [0]);
}

/// "Or when the job is released from the hold state."
#[test]
fn a_released_proc_waits_for_the_next_time_of_its_crontab() {
    let mut world = world(1, 1, &recurring("0", "900"));
    world.act("sweep", Verb::Hold, "0", "later");
    let left = 3600 - world.now.secs() % 3600;
    world.pass(u64::try_from(left).unwrap() + 60);
    world.act("sweep", Verb::Release, "0", "now");
    assert_eq!(starts(&mut world, 3000), [0_i64; 0]);
    assert_eq!(starts(&mut world, 600), [0]);
}

/// A program that ends and runs again has not failed.
#[test]
fn a_proc_with_a_crontab_of_every_minute_runs_every_minute() {
    let mut world = world(1, 1, &recurring("\"*\"", "0"));
    world.fate = |_| (5, 1);
    assert!(starts(&mut world, 1200).len() >= 19);
}
