//! Writes the results of a cycle: a line for each match, and figures.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};

use serde::Serialize;

use super::Waiting;
use classad::{Ad, Env, Value};
use model::negotiator::{Cycle, Match, Outcome, PreemptState, RejectReason, Rejection};
use model::pool::Bar;
use model::pool::units::counted;
use model::schedd::{lacks, why};

/// For how many requests the output says why some of their jobs are left.
const TOLD: usize = 10;

/// How many slots are compared with a job to find the nearest one.
const LOOKED_AT: usize = 1000;

/// A match, as a line of `--matches`.
#[derive(Serialize)]
struct Line<'a> {
    job: String,
    slot: String,
    submitter: &'a str,
    reason: &'static str,
    preempts: Vec<String>,
}

/// Writes a line for each match. A request's matches go to its jobs in their order.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn matches(
    outcome: &Outcome,
    cycle: &Cycle,
    waiting: &[Waiting],
    env: &Env,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut matched: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for found in &outcome.matches {
        let next = matched.entry((found.submitter, found.request)).or_default();
        let Some(Waiting { name, jobs }) = waiting.get(found.submitter) else { continue };
        let Some(job) = jobs.get(found.request).and_then(|jobs| jobs.get(*next)) else { continue };
        *next += 1;
        let name_of = |place: usize| {
            let name = cycle.slots.get(place).map(|slot| slot.ad.eval_attr("Name", None, env));
            name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let slot = name_of(found.slot);
        let line = Line {
            job: job.to_string(),
            slot,
            submitter: name,
            reason: reason(found),
            preempts: preempted(found).into_iter().map(name_of).collect(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Why the slot could be matched, in HTCondor's words.
fn reason(found: &Match) -> &'static str {
    match found.preempt {
        PreemptState::None => "NoPreemption",
        PreemptState::Rank => "Rank",
        PreemptState::Priority => "Priority",
    }
}

/// The slots whose claims the match ends.
fn preempted(found: &Match) -> Vec<usize> {
    match found.preempt {
        PreemptState::None => Vec::new(),
        PreemptState::Rank | PreemptState::Priority if found.dynamic.is_empty() => vec![found.slot],
        PreemptState::Rank | PreemptState::Priority => found.dynamic.clone(),
    }
}

/// Why jobs of a request are left without a match.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    /// The first of the jobs.
    job: String,
    submitter: String,
    /// How many jobs are left.
    jobs: u64,
    /// The reason in one word, as in an HTCJob's conditions.
    reason: &'static str,
    /// The reason for people.
    why: String,
}

/// Why jobs are left, for the first requests of which any are.
pub(super) fn left(outcome: &Outcome, cycle: &Cycle, waiting: &[Waiting], env: &Env) -> Vec<Left> {
    let of = |rejection: &Rejection| {
        let Waiting { name, jobs } = waiting.get(rejection.submitter)?;
        let matched = outcome
            .matches
            .iter()
            .filter(|found| (found.submitter, found.request) == (rejection.submitter, rejection.request));
        let job = jobs.get(rejection.request)?.get(matched.count())?;
        let request = cycle.submitters.get(rejection.submitter)?.requests.get(rejection.request)?;
        let none = matches!(rejection.reason, RejectReason::NoMatch | RejectReason::NoSlots);
        let nearest = none.then(|| nearest(&request.ad, cycle, env)).flatten();
        let (reason, why) = match nearest {
            Some(text) => ("RequirementsNotMet", text),
            None => (rejection.reason.word(), why::barred(&Bar::Other(rejection.reason))),
        };
        Some(Left { job: job.to_string(), submitter: name.clone(), jobs: rejection.left, reason, why })
    };
    outcome.rejections.iter().filter_map(of).take(TOLD).collect()
}

/// A sentence about the lacks of the slot that comes nearest to a match; none if some slot matches.
fn nearest(job: &Ad, cycle: &Cycle, env: &Env) -> Option<String> {
    let slots = cycle.slots.iter().take(LOOKED_AT).map(|slot| (&slot.ad, lacks(job, &slot.ad, None, env)));
    let (slot, lacks) = slots.min_by_key(|(_, lacks)| lacks.len())?;
    if lacks.is_empty() {
        return None;
    }
    let name = slot.eval_attr("Name", None, env);
    let name = name.as_str().unwrap_or("a slot");
    let texts: Vec<&str> = lacks.iter().map(|lack| lack.text.as_str()).collect();
    Some(format!("no slot matches: the nearest, {name}, {}", texts.join("; it ")))
}

/// The figures of a cycle, in the order in which they are printed.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) slots: usize,
    /// How many slots are in use.
    pub(super) claimed: usize,
    /// Classes of slots that no job and no expression of the negotiator tells apart.
    pub(super) slot_classes: usize,
    /// Jobs that wait.
    pub(super) jobs: usize,
    /// Classes of jobs that no slot tells apart.
    pub(super) autoclusters: usize,
    /// Requests: the autoclusters of each submitter.
    pub(super) requests: usize,
    /// Submitters who took part in the cycle, including those who only use slots.
    pub(super) submitters: usize,
    pub(super) matches: usize,
    /// Requests with jobs that were not matched.
    pub(super) rejects: usize,
    /// Jobs that were not matched, by the reason.
    pub(super) left: BTreeMap<String, u64>,
    /// Why, for the first few requests.
    pub(super) why: Vec<Left>,
    /// Pairs of a request and a slot that were considered.
    pub(super) pairs: u64,
    /// Pie spins.
    pub(super) pies: usize,
    /// Seconds of the cycle: finding the significant attributes, dividing the pool, matching. Reading and preparing
    /// do not count.
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    /// Processor time of reading the files and sorting the jobs.
    pub(super) read_cpu_s: f64,
    /// Processor time of making slots ready. It does not count as part of the cycle: the operator keeps ready slots
    /// from one cycle to the next, and HTCondor does this work when it fetches the slots' ads.
    pub(super) prepare_cpu_s: f64,
    /// The most memory that the process had; `None` if the system does not say.
    pub(super) peak_rss_kib: Option<u64>,
}

impl Figures {
    /// Sets the figures of a cycle.
    pub(super) fn of_cycle(&mut self, cycle: &Cycle, outcome: &Outcome) {
        self.requests = cycle.submitters.iter().map(|submitter| submitter.requests.len()).sum();
        self.submitters = cycle.submitters.len();
        self.matches = outcome.matches.len();
        self.rejects = outcome.rejections.len();
        self.pairs = outcome.stats.pairs_considered;
        self.pies = outcome.stats.pies.len();
        for rejection in &outcome.rejections {
            *self.left.entry(format!("{:?}", rejection.reason)).or_default() += rejection.left;
        }
    }

    /// Sets the times, in seconds, and the memory.
    pub(super) fn took(&mut self, read_cpu: f64, prepare_cpu: f64, wall: f64, cpu: f64) {
        let rounded = |seconds: f64| (seconds * 1e6).round() / 1e6;
        (self.read_cpu_s, self.prepare_cpu_s) = (rounded(read_cpu), rounded(prepare_cpu));
        (self.wall_s, self.cpu_s) = (rounded(wall), rounded(cpu));
        self.peak_rss_kib = peak_rss_kib();
    }

    /// Prints the figures for people.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let count = |name: &str, count: usize| (name.to_owned(), count.to_string());
        let seconds = |name: &str, seconds: f64| (name.to_owned(), format!("{seconds:.3} s"));
        let mut rows = vec![
            count("slots", self.slots),
            count("claimed", self.claimed),
            count("slot classes", self.slot_classes),
            count("jobs", self.jobs),
            count("autoclusters", self.autoclusters),
            count("requests", self.requests),
            count("submitters", self.submitters),
            count("matches", self.matches),
            count("rejects", self.rejects),
        ];
        rows.extend(self.left.iter().map(|(reason, jobs)| (format!("left: {reason}"), jobs.to_string())));
        let memory = self.peak_rss_kib.map_or_else(|| "-".to_owned(), |kib| format!("{} MiB", kib / 1024));
        rows.extend([
            ("pairs".to_owned(), self.pairs.to_string()),
            count("pies", self.pies),
            seconds("wall", self.wall_s),
            seconds("CPU", self.cpu_s),
            seconds("CPU, reading", self.read_cpu_s),
            seconds("CPU, preparing", self.prepare_cpu_s),
            ("peak memory".to_owned(), memory),
        ]);
        rows.into_iter().try_for_each(|(name, value)| writeln!(out, "{name:<24}{value:>12}"))?;
        self.why.iter().try_for_each(|Left { job, submitter, jobs, why, .. }| {
            writeln!(out, "{} of {submitter} left, {job} first: {why}", counted(*jobs, "job"))
        })
    }
}

/// The most memory that this process has had so far, in KiB.
fn peak_rss_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}
