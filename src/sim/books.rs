//! The books of a simulation: a record of each proc, and counts for each submitter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::number::amount;
use super::report::{JobRecord, Refused};
use super::scenario::Scenario;
use model::pool::{JobKey, JobSpec, MachineName, Problem, SubmitterName, Time};

/// Counts of one submitter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub started: u64,
    pub first_starts: u64,
    pub waited: f64,
    pub done: u64,
    pub evictions: u64,
    pub removed: u64,
    pub goodput: f64,
    pub badput: f64,
}

impl Counts {
    /// Adds the counts of another submitter, or of a later time.
    pub fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.first_starts += other.first_starts;
        self.waited += other.waited;
        self.done += other.done;
        self.evictions += other.evictions;
        self.removed += other.removed;
        self.goodput += other.goodput;
        self.badput += other.badput;
    }
}

/// The records of all procs, and the counts of all submitters.
pub struct Books {
    start: Time,
    /// A record for each proc, in the order of submission.
    pub records: Vec<JobRecord>,
    /// For each record the index of its submitter in `names`.
    pub owners: Vec<usize>,
    /// Submitters in the order of names, each with its index in `names`.
    pub submitters: BTreeMap<SubmitterName, usize>,
    /// The submitters' names, in the order in which they were first seen.
    pub names: Vec<Arc<str>>,
    /// The jobs that were refused; they have no records.
    pub refused: Option<Refused>,
    since_sample: Vec<Counts>,
    /// The counts up to the last sample, by the submitter's index.
    pub total: Vec<Counts>,
    machines: BTreeMap<MachineName, Arc<str>>,
}

impl Books {
    /// Books without a record.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            start: scenario.start,
            records: Vec::new(),
            owners: Vec::new(),
            submitters: BTreeMap::new(),
            names: Vec::new(),
            refused: None,
            since_sample: Vec::new(),
            total: Vec::new(),
            machines: BTreeMap::new(),
        }
    }

    fn index_of(&mut self, name: &SubmitterName) -> usize {
        if let Some(index) = self.submitters.get(name) {
            return *index;
        }
        let index = self.names.len();
        self.submitters.insert(name.clone(), index);
        self.names.push(name.as_str().into());
        self.since_sample.push(Counts::default());
        self.total.push(Counts::default());
        index
    }

    /// Adds the records of a job's procs, and returns the index of the first.
    pub fn submitted(&mut self, key: &JobKey, spec: &JobSpec, runtimes: &[Duration], now: Time) -> usize {
        let index = self.index_of(&spec.submitter);
        let first = self.records.len();
        let submitter = self.names.get(index).cloned().unwrap_or_else(|| "".into());
        let request = &spec.request;
        for (proc, runtime) in (0..spec.count).zip(runtimes) {
            self.owners.push(index);
            self.records.push(JobRecord {
                submitter: submitter.clone(),
                job: key.name.clone(),
                proc,
                cpus: request.cpus,
                memory_mib: request.memory_mib,
                gpus: request.gpus,
                runtime: runtime.as_secs_f64(),
                submitted: seconds(self.start, now),
                first_started: None,
                started: None,
                ended: None,
                runs: 0,
                lost: 0.0,
                machine: None,
            });
        }
        first
    }

    /// Notes a job that was refused, and why.
    pub fn refused(&mut self, job: &str, problems: &[Problem]) {
        if let Some(refused) = &mut self.refused {
            refused.jobs += 1;
            return;
        }
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        self.refused = Some(Refused { jobs: 1, first: format!("{job}: {}", problems.join("; ")) });
    }

    /// Notes that a proc's container started.
    pub fn started(&mut self, record: usize, machine: Option<&MachineName>, now: Time) {
        let at = seconds(self.start, now);
        let machine = machine.map(|name| {
            let known = self.machines.entry(name.clone()).or_insert_with(|| name.as_str().into());
            Arc::clone(known)
        });
        let Some((record, counts)) = self.at(record) else { return };
        counts.started += 1;
        if record.first_started.is_none() {
            record.first_started = Some(at);
            counts.first_starts += 1;
            counts.waited += at - record.submitted;
        }
        record.started = Some(at);
        record.runs += 1;
        record.machine = machine;
    }

    /// Notes that a proc's container ended by itself, and how long it ran.
    pub fn done(&mut self, record: usize, cpus: i64, ran: Duration, now: Time) {
        let at = seconds(self.start, now);
        let Some((record, counts)) = self.at(record) else { return };
        record.ended = Some(at);
        counts.done += 1;
        counts.goodput += amount(cpus) * ran.as_secs_f64();
    }

    /// Notes that a proc's container ended by itself, how long it ran, and that the proc is to run again.
    pub fn runs_again(&mut self, record: usize, cpus: i64, ran: Duration) {
        let Some((record, counts)) = self.at(record) else { return };
        record.started = None;
        counts.goodput += amount(cpus) * ran.as_secs_f64();
    }

    /// Notes that a proc's pod was evicted. The work of `ran` is lost; `None` if its container had not started.
    pub fn evicted(&mut self, record: usize, cpus: i64, ran: Option<Duration>) {
        self.given_up(record, cpus, ran);
        if let Some((_, counts)) = self.at(record) {
            counts.evictions += 1;
        }
    }

    /// Notes that a proc's pod was ended because the proc was held or removed. The work of `ran` is lost, as in an eviction.
    pub fn given_up(&mut self, record: usize, cpus: i64, ran: Option<Duration>) {
        let Some((record, counts)) = self.at(record) else { return };
        let lost = ran.unwrap_or_default().as_secs_f64();
        record.lost += lost;
        record.started = None;
        counts.badput += amount(cpus) * lost;
    }

    /// Notes that so many more procs of a job were removed. `record` is that of one of the job's procs.
    pub fn removed(&mut self, record: usize, procs: u64) {
        if let Some((_, counts)) = self.at(record) {
            counts.removed += procs;
        }
    }

    fn at(&mut self, record: usize) -> Option<(&mut JobRecord, &mut Counts)> {
        let index = *self.owners.get(record)?;
        Some((self.records.get_mut(record)?, self.since_sample.get_mut(index)?))
    }

    /// Returns the counts since the last sample, adds them to `total`, and starts counting from 0.
    pub fn take(&mut self) -> Vec<Counts> {
        let taken: Vec<Counts> = self.since_sample.iter_mut().map(std::mem::take).collect();
        for (total, counts) in self.total.iter_mut().zip(&taken) {
            total.add(counts);
        }
        taken
    }
}

/// Seconds from `start` to `now`.
pub fn seconds(start: Time, now: Time) -> f64 {
    now.since(start).as_secs_f64()
}
