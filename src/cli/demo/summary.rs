//! The summary at the end, as text. Pure: every number comes from the API server or from the watchdog.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::scene::{Key, Scene};
use super::verdict::Verdict;

/// How many resources have their writes listed one by one.
const NAMED: usize = 5;

/// How the demo ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every job is complete.
    Complete,
    /// The timeout was over.
    TimedOut,
    /// The user interrupted the demo.
    Interrupted,
    /// The operator ended by itself, for this reason.
    OperatorEnded(String),
}

/// Everything that is in the summary.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the demo ended.
    pub ending: Ending,
    /// The pool as the demo has seen it.
    pub scene: Scene,
    /// The watchdog's verdict.
    pub verdict: Verdict,
    /// Jobs that should be complete and are not.
    pub unfinished: Vec<Key>,
    /// Manifests that were refused, and why.
    pub refused: Vec<String>,
    /// Jobs that are broken on purpose: what the operator says of them.
    pub broken: Vec<String>,
    /// How many writes the operator made, by resource.
    pub writes: BTreeMap<String, u64>,
    /// The time from the first manifest to the end.
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether every job is complete, nothing was refused, and the watchdog has no objection.
    pub fn is_good(&self) -> bool {
        let complete = self.ending == Ending::Complete && self.unfinished.is_empty();
        complete && self.refused.is_empty() && self.verdict.is_clean()
    }

    /// The summary as text, which ends with a line break.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        self.write_jobs(out)?;
        self.write_submitters(out)?;
        self.write_groups(out)?;
        self.write_numbers(out)?;
        self.write_verdict(out)?;
        self.write_troubles(out)?;
        let word = if self.is_good() { "all is well" } else { "not all is well" };
        match &self.ending {
            Ending::Complete => writeln!(out, "Ended after {}: {word}.", seconds(self.elapsed)),
            Ending::TimedOut => writeln!(out, "Time was up after {} (--timeout).", seconds(self.elapsed)),
            Ending::Interrupted => writeln!(out, "Interrupted after {}.", seconds(self.elapsed)),
            Ending::OperatorEnded(why) => {
                writeln!(out, "The operator ended after {}: {why}", seconds(self.elapsed))
            }
        }
    }

    fn write_jobs(&self, out: &mut String) -> std::fmt::Result {
        let width = self.scene.name_width();
        writeln!(out, "{:<width$}{:>6}{:>6}{:>8}{:>8}  STATUS", "JOB", "PROCS", "DONE", "FAILED", "TOOK")?;
        for (key, job) in &self.scene.jobs {
            let took =
                job.took_millis.map_or_else(|| "-".to_owned(), |millis| format!("{} s", millis / 1000));
            let name = key.to_string();
            let summary = if job.summary.is_empty() { "(nothing said)" } else { &job.summary };
            writeln!(
                out,
                "{name:<width$}{:>6}{:>6}{:>8}{took:>8}  {summary}",
                job.procs, job.done, job.failed
            )?;
        }
        writeln!(out)
    }

    fn write_submitters(&self, out: &mut String) -> std::fmt::Result {
        let width = self.scene.name_width();
        writeln!(
            out,
            "{:<width$}{:>6}{:>8}{:>10}{:>12}{:>12}{:>18}",
            "SUBMITTER", "ENDED", "FACTOR", "AT PEAK", "REAL PRIO", "EFF. PRIO", "WEIGHTED USAGE"
        )?;
        for (name, record) in &self.scene.submitters {
            let its = self.scene.jobs.values().filter(|job| job.submitter == *name);
            let ended: i64 = its.map(|job| job.done + job.failed).sum();
            writeln!(
                out,
                "{name:<width$}{ended:>6}{:>8}{:>10}{:>12.4}{:>12.2}{:>16.1} s",
                record.priority_factor,
                self.scene.weight_at_peak(name),
                record.real_priority,
                record.effective_priority,
                record.weighted_accumulated_usage,
            )?;
        }
        writeln!(out)
    }

    fn write_groups(&self, out: &mut String) -> std::fmt::Result {
        if self.scene.groups.is_empty() {
            return Ok(());
        }
        let width = self.scene.name_width();
        writeln!(out, "{:<width$}{:>9}{:>12}", "GROUP", "QUOTA", "PEAK USE")?;
        for (name, group) in &self.scene.groups {
            writeln!(out, "{name:<width$}{:>9}{:>12}", group.quota, group.peak)?;
        }
        writeln!(out)
    }

    fn write_numbers(&self, out: &mut String) -> std::fmt::Result {
        let jobs = &self.scene.jobs;
        let complete = jobs.values().filter(|job| job.complete).count();
        let (mut procs, mut done, mut failed) = (0, 0, 0);
        for job in jobs.values() {
            procs += job.procs;
            done += job.done;
            failed += job.failed;
        }
        writeln!(out, "jobs       {complete} of {} complete", jobs.len())?;
        writeln!(out, "procs      {procs}: {done} done, {failed} failed")?;
        let (carved, peak) = (self.scene.carved(), self.scene.peak_slots());
        writeln!(out, "slots      {carved} dynamic slots carved, {peak} at a time at most")?;
        writeln!(out, "pods       {} running at a time at most", self.verdict.peak_running)?;
        self.write_writes(out, u64::try_from(procs).unwrap_or(0))
    }

    fn write_writes(&self, out: &mut String, procs: u64) -> std::fmt::Result {
        let all: u64 = self.writes.values().sum();
        let Some(tenths) = (all * 10 + procs / 2).checked_div(procs) else { return Ok(()) };
        let mut most: Vec<(&String, u64)> = self.writes.iter().map(|(what, count)| (what, *count)).collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut named: Vec<String> =
            most.iter().take(NAMED).map(|(what, count)| format!("{what} {count}")).collect();
        let others: u64 = most.iter().skip(NAMED).map(|(_, count)| count).sum();
        if others > 0 {
            named.push(format!("others {others}"));
        }
        writeln!(out, "API writes {all} by the operator, {}.{} for each proc", tenths / 10, tenths % 10)?;
        writeln!(out, "           ({})", named.join(", "))
    }

    fn write_verdict(&self, out: &mut String) -> std::fmt::Result {
        let Verdict { procs, once, violations, doubts, .. } = &self.verdict;
        writeln!(
            out,
            "watchdog   {once} of {procs} procs of complete jobs ran exactly once; {} violations",
            violations.len()
        )?;
        for complaint in violations.iter().chain(doubts) {
            writeln!(out, "           - {complaint}")?;
        }
        writeln!(out)
    }

    fn write_troubles(&self, out: &mut String) -> std::fmt::Result {
        if !self.broken.is_empty() {
            writeln!(out, "Broken on purpose:")?;
            for said in &self.broken {
                writeln!(out, "  {said}")?;
            }
            writeln!(out)?;
        }
        if !self.refused.is_empty() {
            writeln!(out, "Refused by the API server:")?;
            for refusal in &self.refused {
                writeln!(out, "  {refusal}")?;
            }
            writeln!(out)?;
        }
        if self.unfinished.is_empty() {
            return Ok(());
        }
        writeln!(out, "Not complete:")?;
        for key in &self.unfinished {
            writeln!(out, "  {key}: {}", why(&self.scene, key))?;
        }
        writeln!(out)
    }
}

/// Why a job is not complete, as far as its status says.
pub fn why(scene: &Scene, key: &Key) -> String {
    let Some(job) = scene.jobs.get(key) else { return "there is no such job".to_owned() };
    if !job.objections.is_empty() {
        return job.objections.join("; ");
    }
    if job.summary.is_empty() {
        return "the operator has said nothing about it".to_owned();
    }
    format!("{} idle, {} running of {} procs", job.idle, job.running, job.procs)
}

fn seconds(elapsed: Duration) -> String {
    format!("{}.{} s", elapsed.as_secs(), elapsed.subsec_millis() / 100)
}
