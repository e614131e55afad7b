//! The startd's cron jobs: programs that the site gives, whose output becomes attributes of the slots' ads.
//!
//! | file | holds |
//! | --- | --- |
//! | `schedule` | when a job runs, is killed, or gets SIGHUP: pure |
//! | `output` | what a program writes, read line by line: pure |
//! | `book` | the ads that jobs have told, and what the report says of them: pure |
//! | `monitors` | what jobs with metrics measured, for each pod: pure |
//! | `programs` | which file is a job's program |
//! | `runner` | the processes |
//! | `memory` | how much memory a program may have |
//! | `strays` | processes that have left their group, and have ended |
//!
//! Source: the manual, "Startd Cron and Schedd Cron". A job runs with the agent's own rights, in the agent's container. So only
//! programs below a directory that the site mounts are run, and a run is bounded in time, in what it writes, and in how often the
//! agent listens to it.

mod book;
mod memory;
mod monitors;
mod output;
mod programs;
mod runner;
mod schedule;
mod strays;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub(crate) use self::book::Published;
pub(crate) use self::runner::Event;

use self::book::Book;
use self::monitors::Monitors;
use self::runner::{Ending, Order, Runner};
use self::schedule::{Act, Schedule};
use crate::pods::Pod;
use api::{NodeCron, NodeCronJob, PodDevices};

/// The longest time for which an agent that starts keeps the output of an earlier agent's cron jobs. The agent drops
/// that output earlier, once each of its own jobs has told something, has ended, or waits for its condition.
const FORERUNNER: Duration = Duration::from_mins(1);
/// A time that never comes, for timers.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// The cron jobs' part of the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CronSenses {
    /// The output of the jobs.
    pub(crate) says: Published,
    /// How many jobs there are.
    pub(crate) jobs: usize,
    /// The problems of jobs; empty if there are none.
    pub(crate) problem: String,
    /// True as long as what an earlier agent's jobs have said is to be kept.
    pub(crate) keeps: bool,
}

/// The cron jobs of the agent's node.
#[derive(Debug)]
pub(crate) struct Cron {
    directory: Option<PathBuf>,
    asked: NodeCron,
    known: bool,
    schedule: Schedule,
    book: Book,
    monitors: Monitors,
    runner: Runner,
    /// The problem of a job, by its name.
    problems: BTreeMap<String, String>,
    /// The jobs that have told something, or of which a run has ended.
    heard: BTreeSet<String>,
    began: Instant,
}

impl Cron {
    /// No jobs yet. `directory` has the programs; none if the site gives none.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            asked: NodeCron::default(),
            known: false,
            schedule: Schedule::default(),
            book: Book::default(),
            monitors: Monitors::default(),
            runner: Runner::new(memory::bound()),
            problems: BTreeMap::new(),
            heard: BTreeSet::new(),
            began: Instant::now(),
        }
    }

    /// Takes note of the jobs that the operator asks for.
    pub(crate) fn ask(&mut self, asked: Option<&NodeCron>) {
        self.known = true;
        let asked = asked.cloned().unwrap_or_default();
        if asked == self.asked {
            return;
        }
        let names: Vec<&str> = asked.jobs.iter().map(|job| job.name.as_str()).collect();
        tracing::info!(jobs = names.join(", "), "the cron jobs of the node are others than before");
        self.book.keep(&asked.jobs);
        self.monitors.keep(&asked.jobs);
        let there = |name: &String| names.contains(&name.as_str());
        self.problems.retain(|name, _| there(name));
        self.heard.retain(there);
        let acts = self.schedule.replace(&asked, self.now());
        self.asked = asked;
        self.perform(acts);
        self.act();
    }

    /// Starts and ends what is due.
    pub(crate) fn act(&mut self) {
        let acts = self.schedule.acts(self.now());
        self.perform(acts);
    }

    /// When [`Cron::act`] is to be called again.
    pub(crate) fn wake_at(&self) -> tokio::time::Instant {
        let wait = self.schedule.wake().map_or(NEVER, |at| at.saturating_sub(self.now()));
        tokio::time::Instant::now() + wait
    }

    /// Waits until a program has told something, or has ended.
    pub(crate) async fn event(&mut self) -> Event {
        self.runner.event().await
    }

    /// Takes note of an event. Returns whether the report is to tell of it at once.
    pub(crate) fn heard(&mut self, event: Event, now: Timestamp) -> bool {
        match event {
            Event::Told(name, mut told) => {
                let heard_at = self.now();
                let Some(job) = self.asked.jobs.iter().find(|job| job.name == name) else { return false };
                self.heard.insert(name);
                if !job.metrics.is_empty() {
                    self.monitors.told(job, told.tag.as_ref(), &mut told.attributes, heard_at);
                    if told.attributes.keys().all(|name| book::is_address(name)) {
                        return false;
                    }
                }
                self.book.told(job, told, self.asked.autopublish, now)
            }
            Event::Ended(name, ending) => {
                self.ended(&name, ending);
                false
            }
        }
    }

    fn ended(&mut self, name: &str, ending: Ending) {
        self.runner.forget(name);
        self.schedule.ended(name, self.now());
        if self.asked.jobs.iter().any(|job| job.name == name) {
            self.heard.insert(name.to_owned());
            let is_new = ending.problem.is_some() && self.problems.get(name) != ending.problem.as_ref();
            if ending.code != Some(0) && (self.asked.log_non_zero_exit || is_new) {
                let code =
                    ending.code.map_or_else(|| "none, by a signal".to_owned(), |code| code.to_string());
                tracing::warn!(job = name, code, output = ending.output, "a cron job failed");
            }
            self.note(name, ending.problem);
        }
        self.act();
    }

    /// Takes note of what is wrong with a job, or that nothing is.
    fn note(&mut self, name: &str, problem: Option<String>) {
        let Some(problem) = problem else {
            self.problems.remove(name);
            return;
        };
        if self.problems.get(name) != Some(&problem) {
            tracing::warn!(job = name, problem, "something is wrong with a cron job");
            self.problems.insert(name.to_owned(), problem);
        }
    }

    /// Takes note of which pods run, and of their devices, if there are monitors.
    pub(crate) fn follow<'a>(&mut self, running: impl Iterator<Item = &'a Pod>, devices: &[PodDevices]) {
        if self.asked.jobs.iter().any(|job| !job.metrics.is_empty()) {
            self.monitors.follow(running, devices);
        }
    }

    /// The measurements of monitors for a pod, by the name of the attribute.
    pub(crate) fn metrics_of(&self, uid: &str) -> BTreeMap<String, f64> {
        self.monitors.of_pod(uid)
    }

    /// The jobs' part of the report.
    pub(crate) fn senses(&self) -> CronSenses {
        let says = self.book.published();
        let heard = self.asked.jobs.iter().all(|job| job.waits || self.heard.contains(&job.name));
        let problems = self.problems.iter().map(|(name, problem)| format!("{name}: {problem}"));
        let problems = problems.chain(says.left_out.then(|| book::LEFT_OUT.to_owned()));
        CronSenses {
            jobs: self.asked.jobs.len(),
            problem: problems.collect::<Vec<_>>().join("; "),
            keeps: !(self.known && heard) && self.began.elapsed() < FORERUNNER,
            says,
        }
    }

    /// Kills all programs.
    pub(crate) fn stop(&mut self) {
        self.runner.kill_all();
    }

    fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Start(job) => self.start(&job),
                Act::Kill(name, why) => self.runner.order(&name, Order::Kill(why)),
                Act::Hup(name) => self.runner.order(&name, Order::Hup),
            }
        }
    }

    fn start(&mut self, job: &NodeCronJob) {
        let program = match &self.directory {
            Some(directory) => programs::find(directory, &job.executable).map(|path| (directory, path)),
            None => {
                Err("the agent has no directory of programs: set agent.cronDirectory of the chart".to_owned())
            }
        };
        let started = program.and_then(|(directory, path)| {
            programs::check_variables(job.env.keys())?;
            self.runner.start(job, directory, &path)
        });
        if let Err(problem) = started {
            self.schedule.ended(&job.name, self.now());
            self.heard.insert(job.name.clone());
            self.note(&job.name, Some(problem));
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}
