//! When jobs run, second by second.

use super::*;
use NodeCronMode::{OneShot, Periodic, WaitForExit};

fn job(name: &str, mode: NodeCronMode, period_seconds: u32) -> NodeCronJob {
    NodeCronJob { name: name.to_owned(), mode, period_seconds, load: 0.01, ..NodeCronJob::default() }
}

fn asked(jobs: &[NodeCronJob]) -> NodeCron {
    NodeCron { jobs: jobs.to_vec(), max_job_load: 0.1, ..NodeCron::default() }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn shown(acts: &[Act]) -> String {
    let of = |act: &Act| match act {
        Act::Start(job) => format!("start {}", job.name),
        Act::Kill(name, None) => format!("kill {name}"),
        Act::Kill(name, Some(why)) => format!("kill {name}: {why}"),
        Act::Hup(name) => format!("hup {name}"),
    };
    acts.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Lets time pass from one thing to the next until `end`, in a world where each run of a job takes so many seconds, and a kill ends a
/// run at once. Returns what was done, and when.
fn passes(schedule: &mut Schedule, from: u64, end: u64, takes: impl Fn(&str) -> u64) -> Vec<String> {
    let mut runs: Vec<(String, Duration)> = Vec::new();
    let (mut log, mut now) = (Vec::new(), at(from));
    while now < at(end) {
        let over: Vec<_> =
            runs.iter().filter(|(_, until)| *until <= now).map(|(name, _)| name.clone()).collect();
        for name in over {
            runs.retain(|(other, _)| *other != name);
            schedule.ended(&name, now);
        }
        let acts = schedule.acts(now);
        for act in &acts {
            log.push(format!("{} {}", now.as_secs(), shown(std::slice::from_ref(act))));
            match act {
                Act::Start(job) => runs.push((job.name.clone(), now + at(takes(&job.name)))),
                Act::Kill(name, _) => {
                    for (_, until) in runs.iter_mut().filter(|(other, _)| other == name) {
                        *until = now;
                    }
                }
                Act::Hup(_) => {}
            }
        }
        let next = runs.iter().map(|(_, until)| *until).chain(schedule.wake()).min();
        let next = next.unwrap_or(at(end));
        assert!(
            next > now || acts.iter().any(|act| matches!(act, Act::Kill(..))),
            "nothing is waited for at {now:?}"
        );
        now = next;
    }
    log
}

fn first(jobs: &[NodeCronJob]) -> Schedule {
    let mut schedule = Schedule::default();
    assert_eq!(schedule.replace(&asked(jobs), at(0)), []);
    schedule
}

/// "For periodic jobs, this is the time interval that passes between starting the execution of the job."
#[test]
fn a_periodic_job_starts_each_period() {
    let mut schedule = first(&[job("a", Periodic, 10)]);
    assert_eq!(passes(&mut schedule, 0, 35, |_| 3), ["0 start a", "10 start a", "20 start a", "30 start a"]);
}

/// "If False, the existing job invocation is allowed to continue running."
#[test]
fn a_run_that_goes_on_when_the_next_is_due_goes_on_or_is_killed() {
    let mut schedule = first(&[job("a", Periodic, 10)]);
    assert_eq!(passes(&mut schedule, 0, 55, |_| 25), ["0 start a", "30 start a"]);
    let mut schedule = first(&[NodeCronJob { kill: true, ..job("a", Periodic, 10) }]);
    assert_eq!(
        passes(&mut schedule, 0, 25, |_| 25),
        ["0 start a", "10 kill a", "10 start a", "20 kill a", "20 start a"]
    );
}

/// "In WaitForExit mode, the value has a different meaning: the period specifies the length of time after the job ceases execution
/// and before it is restarted."
#[test]
fn a_job_may_wait_for_its_exit() {
    let mut schedule = first(&[NodeCronJob { kill: true, ..job("a", WaitForExit, 10) }]);
    assert_eq!(passes(&mut schedule, 0, 50, |_| 5), ["0 start a", "15 start a", "30 start a", "45 start a"]);
    let mut schedule = first(&[job("a", WaitForExit, 10)]);
    assert_eq!(
        passes(&mut schedule, 0, 900_000, |_| 800_000),
        ["0 start a", "800010 start a"],
        "it may run on for days"
    );
}

/// "The OneShot mode is used for jobs that are run once at the start of the daemon. If the reconfig_rerun option is specified, the job
/// will be run again after any reconfiguration."
#[test]
fn a_one_shot_runs_once_and_again_when_it_is_configured_anew() {
    let (once, again) =
        (job("once", OneShot, 0), NodeCronJob { reconfig_rerun: true, ..job("again", OneShot, 0) });
    let mut schedule = first(&[once.clone(), again.clone()]);
    assert_eq!(passes(&mut schedule, 0, 100, |_| 2), ["0 start once", "0 start again"]);
    assert_eq!(schedule.replace(&asked(&[once, again, job("new", Periodic, 60)]), at(100)), []);
    assert_eq!(passes(&mut schedule, 100, 150, |_| 2), ["100 start again", "100 start new"]);
}

#[test]
fn a_run_that_takes_too_long_is_killed_and_the_fault_is_told() {
    let mut schedule = first(&[job("a", Periodic, 60)]);
    let log = passes(&mut schedule, 0, 700, |_| 100_000);
    assert_eq!(log, ["0 start a", "600 kill a: a run took longer than 600 s", "600 start a"]);
    let mut schedule = first(&[job("a", Periodic, 3600), job("b", OneShot, 0)]);
    let log = passes(&mut schedule, 0, 3601, |_| 100_000);
    assert_eq!(
        log,
        [
            "0 start a",
            "0 start b",
            "600 kill b: a run took longer than 600 s",
            "3600 kill a: a run took longer than 3600 s",
            "3600 start a"
        ]
    );
}

/// "If starting another job would cause the sum of assumed loads for all running jobs to exceed this value, no further jobs will be
/// started."
#[test]
fn no_more_jobs_run_at_once_than_the_load_allows() {
    let names: Vec<String> = (0..12).map(|number| format!("j{number}")).collect();
    let jobs: Vec<_> = names.iter().map(|name| job(name, Periodic, 100)).collect();
    let mut schedule = first(&jobs);
    assert_eq!(schedule.acts(at(0)).len(), 10, "ten of 0.01 are not more than 0.1");
    assert_eq!(
        (schedule.acts(at(1)).len(), schedule.wake()),
        (0, Some(at(100))),
        "the others are not waited for"
    );
    schedule.ended("j3", at(2));
    assert_eq!((schedule.wake(), shown(&schedule.acts(at(2)))), (Some(at(0)), "start j10".to_owned()));
    let mut schedule = first(&[NodeCronJob { load: 0.2, ..job("a", Periodic, 10) }]);
    assert_eq!((schedule.acts(at(5)), schedule.wake()), (vec![], None), "more than all is never allowed");
}

#[test]
fn a_job_whose_condition_is_not_true_does_not_start() {
    let waits = NodeCronJob { waits: true, ..job("a", Periodic, 10) };
    let mut schedule = first(std::slice::from_ref(&waits));
    assert_eq!((schedule.acts(at(50)), schedule.wake()), (vec![], None));
    assert_eq!(schedule.replace(&asked(&[job("a", Periodic, 10)]), at(60)), []);
    assert_eq!(shown(&schedule.acts(at(60))), "start a");
    // A run goes on when the condition is true no longer.
    assert_eq!(schedule.replace(&asked(&[waits]), at(61)), []);
    assert_eq!((schedule.acts(at(80)), schedule.wake()), (vec![], Some(at(660))));
}

#[test]
fn jobs_come_go_and_change() {
    let reconfig = |name: &str| NodeCronJob { reconfig: true, ..job(name, WaitForExit, 5) };
    let mut schedule = first(&[job("a", Periodic, 10), reconfig("b"), job("c", Periodic, 10)]);
    assert_eq!(shown(&schedule.acts(at(0))), "start a, start b, start c");
    schedule.ended("c", at(1));
    // "causes the daemon to send an HUP signal to the job when the daemon is reconfigured".
    let acts = schedule.replace(&asked(&[reconfig("b"), job("d", Periodic, 10)]), at(2));
    assert_eq!(shown(&acts), "hup b, kill a");
    assert_eq!(shown(&schedule.acts(at(2))), "start d");
    // A job that comes back while its run still ends begins anew.
    assert_eq!(schedule.replace(&asked(&[job("a", Periodic, 10)]), at(3)).len(), 2, "b and d are killed");
    assert_eq!(schedule.acts(at(3)), []);
    schedule.ended("a", at(4));
    assert_eq!(shown(&schedule.acts(at(4))), "start a");
    // Another period counts from the last start.
    assert_eq!(schedule.replace(&asked(&[job("a", Periodic, 100)]), at(5)), []);
    schedule.ended("a", at(6));
    assert_eq!(schedule.wake(), Some(at(104)));
    schedule.ended("b", at(7));
    schedule.ended("d", at(7));
    assert_eq!(schedule.entries.len(), 1);
}
