//! The Standard Workload Format, version 2.2, of the Parallel Workloads Archive
//! (<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>): a line for each job, of 18 numbers; -1 stands for
//! an unknown number. Lines that start with `;` are comments; those at the top have keys and values.
//!
//! A job that was checkpointed or swapped out may have a line for each run, besides or instead of the line that sums
//! up the job. A line that sums up a job has status 0, 1 or 5; the line of a run has status 2, or 3 or 4 if it is the
//! last run.

use std::collections::HashMap;

use super::{Collected, TraceJob, Why, second, whole};

/// The numbers of a line.
const FIELDS: usize = 18;
/// Stands for an unknown number.
const UNKNOWN: f64 = -1.0;

/// Reads the lines of a trace.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The line that sums up a job, by its number.
    summaries: HashMap<i64, usize>,
    /// Jobs of which only lines of runs were read so far, by their number.
    parts: HashMap<i64, Parts>,
    /// Whether a line of a job was read; until then, comments are part of the header.
    jobs: bool,
}

/// A job of which only lines of runs were read.
#[derive(Debug)]
struct Parts {
    line: usize,
    first: Record,
    /// How long all runs took together, in seconds.
    ran: f64,
    ended: Option<bool>,
}

/// The used fields of a line; -1 if unknown.
#[derive(Clone, Copy, Debug)]
struct Record {
    number: i64,
    submitted: f64,
    ran: f64,
    allocated: f64,
    used_memory: f64,
    asked_cpus: f64,
    asked_memory: f64,
    status: Status,
    user: f64,
    group: f64,
}

/// A job's status, field 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Failed,
    Completed,
    /// The line of a run that is not the last.
    Part,
    /// The line of the last run, and whether the job completed.
    LastPart(bool),
    Cancelled,
    /// No status, as in traces of workload models.
    Unknown,
}

impl Status {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the conversion saturates, and only small numbers have a meaning"
    )]
    fn of(number: f64) -> Self {
        match number.round() as i64 {
            0 => Self::Failed,
            1 => Self::Completed,
            2 => Self::Part,
            3 => Self::LastPart(true),
            4 => Self::LastPart(false),
            5 => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}

impl Reader {
    pub fn line(&mut self, text: &str, line: usize, collected: &mut Collected) {
        let text = text.trim();
        if let Some(comment) = text.strip_prefix(';') {
            if !self.jobs {
                header(comment, collected);
            }
            return;
        }
        if text.is_empty() {
            return;
        }
        self.jobs = true;
        match Record::read(text) {
            Ok(record) => self.record(record, line, collected),
            Err(why) => collected.skip(line, why),
        }
    }

    fn record(&mut self, record: Record, line: usize, collected: &mut Collected) {
        match record.status {
            Status::Part => self.part(record, None, line, collected),
            Status::LastPart(completed) => self.part(record, Some(completed), line, collected),
            Status::Failed | Status::Completed | Status::Cancelled | Status::Unknown => {
                // Jobs are numbered from 1; workload models may leave the number out.
                if record.number > 0 {
                    self.summaries.entry(record.number).or_insert(line);
                }
                take(record, line, collected);
            }
        }
    }

    /// Reads the line of a run. The runs of a job are added up, unless a line sums up the job.
    fn part(&mut self, record: Record, ended: Option<bool>, line: usize, collected: &mut Collected) {
        if let Some(&summary) = self.summaries.get(&record.number) {
            return collected.skip(line, Why::PartOf { job: record.number, line: summary });
        }
        let parts =
            self.parts.entry(record.number).or_insert(Parts { line, first: record, ran: 0.0, ended: None });
        parts.ran += record.ran.max(0.0);
        parts.ended = ended;
    }

    pub fn finish(self, collected: &mut Collected) {
        let mut parts: Vec<Parts> = self.parts.into_values().collect();
        parts.sort_unstable_by_key(|parts| parts.line);
        for Parts { line, first, ran, ended } in parts {
            if let Some(&summary) = self.summaries.get(&first.number) {
                collected.skip(line, Why::PartOf { job: first.number, line: summary });
                continue;
            }
            let status = if ended == Some(true) { Status::Completed } else { Status::Failed };
            take(Record { ran, status, ..first }, line, collected);
        }
    }
}

/// Reads a comment of the header: `; UnixStartTime: 865202064`.
fn header(comment: &str, collected: &mut Collected) {
    let Some((key, value)) = comment.split_once(':') else { return };
    let number = || value.split_ascii_whitespace().next()?.parse::<i64>().ok();
    match key.trim() {
        "UnixStartTime" => collected.epoch = number().filter(|epoch| *epoch > 0),
        "MaxProcs" => collected.processors = number().and_then(|count| u64::try_from(count).ok()),
        // Traces before version 2.1, or of machines whose nodes have one processor each, give only this.
        "MaxNodes" if collected.processors.is_none() => {
            collected.processors = number().and_then(|count| u64::try_from(count).ok());
        }
        _ => {}
    }
}

fn take(record: Record, line: usize, collected: &mut Collected) {
    match record.job(collected) {
        Ok(job) => collected.jobs.push(job),
        Err(why) => collected.skip(line, why),
    }
}

impl Record {
    fn read(text: &str) -> Result<Self, Why> {
        let [
            number,
            submitted,
            _waited,
            ran,
            allocated,
            _cpu_time,
            used_memory,
            asked_cpus,
            _asked_time,
            asked_memory,
            status,
            user,
            group,
            _executable,
            _queue,
            _partition,
            _preceding,
            _think_time,
        ] = numbers(text)?;
        Ok(Self {
            number: second(number).ok_or(Why::OutOfRange { what: "the job's number" })?,
            submitted,
            ran,
            allocated,
            used_memory,
            asked_cpus,
            asked_memory,
            status: Status::of(status),
            user,
            group,
        })
    }

    fn job(&self, collected: &mut Collected) -> Result<(i64, TraceJob), Why> {
        if self.submitted < 0.0 {
            return Err(Why::NoSubmission);
        }
        let submitted = second(self.submitted).ok_or(Why::OutOfRange { what: "the time of submission" })?;
        let cpus = self.cpus()?;
        let job = TraceJob {
            submitted: 0,
            runtime: self.runtime()?,
            cpus,
            memory_mib: self.memory_mib(cpus),
            disk_kib: None,
            gpus: 0,
            owner: collected.names.intern(&number("user", self.user).unwrap_or_else(|| "unknown".to_owned())),
            group: number("group", self.group).map(|group| collected.names.intern(&group)),
            priority: 0,
            completed: matches!(self.status, Status::Completed | Status::Unknown),
        };
        Ok((submitted, job))
    }

    fn runtime(&self) -> Result<u64, Why> {
        match self.status {
            // A job that was canceled in the queue has the run time 0, or none.
            Status::Cancelled if self.ran <= 0.0 => Err(Why::NeverRan),
            _ if self.ran < 0.0 => Err(Why::NoRunTime),
            _ => whole(self.ran).ok_or(Why::OutOfRange { what: "the run time" }),
        }
    }

    /// The processors that the job asked for, or else was given.
    fn cpus(&self) -> Result<u64, Why> {
        let known =
            [self.asked_cpus, self.allocated].into_iter().find(|cpus| *cpus > 0.0).ok_or(Why::NoCpus)?;
        whole(known).filter(|cpus| *cpus > 0).ok_or(Why::OutOfRange { what: "the number of processors" })
    }

    /// Fields 7 and 10 are in KiB for each processor.
    fn memory_mib(&self, cpus: u64) -> Option<u64> {
        let each =
            [self.asked_memory, self.used_memory].into_iter().find(|kib| *kib > 0.0).and_then(whole)?;
        Some(each.saturating_mul(cpus).div_ceil(1024))
    }
}

/// The name of the user or group `number`; `None` if the number is unknown.
fn number(kind: &str, number: f64) -> Option<String> {
    whole(number).map(|number| format!("{kind}{number}"))
}

fn numbers(text: &str) -> Result<[f64; FIELDS], Why> {
    let mut numbers = [UNKNOWN; FIELDS];
    let mut found = 0;
    for word in text.split_ascii_whitespace() {
        if let Some(number) = numbers.get_mut(found) {
            let value = word.parse().ok().filter(|value: &f64| value.is_finite());
            *number = value.ok_or(Why::NotANumber { field: found + 1 })?;
        }
        found += 1;
    }
    if found == FIELDS { Ok(numbers) } else { Err(Why::Fields { found }) }
}
