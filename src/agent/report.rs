//! The report of a node's agent, and when it has to be written. Pure.
//!
//! The agent writes its report only when something in it has changed. Measures, such as the load, count as changed once
//! they have moved by a tenth, and are written with pauses, so that a busy node does not write all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

pub use super::benchmark::Figures;
pub use super::cron::CronSenses;
use super::pods::Uid;
use api::{
    LastInput, LastInputs, NodeReport, NodeReportStatus, PodDevices, PodUsage, ReportedSlotAd, condition,
};

/// The least time between two writes: a tenant may let its pod be suspended and continued as often as it likes.
const LEAST_PACE: Duration = Duration::from_secs(1);
/// The least time between two writes that report nothing new but the load.
const LOAD_PACE: Duration = Duration::from_secs(5);
/// The least time between two writes that report nothing new but other measures.
const SLOW_PACE: Duration = Duration::from_mins(1);
/// The least change of a load that is worth a write, in processes.
const LOAD_STEP: f64 = 0.1;
/// The least growth of what a pod has read or written that is worth a write, in KiB. The amount that was read only grows, so that
/// growth by a tenth comes ever more seldom: a terabyte is told of in a hundred and twenty steps.
const BLOCK_STEP: f64 = 10.0 * 1024.0;
/// The least change of what a monitor measured that is worth a write.
const METRIC_STEP: f64 = 0.01;
/// The most characters of a condition's message.
const MAX_MESSAGE: usize = 1024;
/// Input that was seen within this time is still going on. The kernel notes the time of input on a terminal with a
/// granularity of 8 s, and a person who reads pauses.
const ONGOING: Duration = Duration::from_secs(30);

/// The state of the node and of the pool's pods, as an agent senses it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Senses {
    /// Input on any terminal; none if there is no terminal.
    pub keyboard: Option<LastInput>,
    /// Input on the console; none if there is no console.
    pub console: Option<LastInput>,
    /// The load average of the node over a minute.
    pub load: Option<f64>,
    /// The part of the load that the pool's pods cause.
    pub pool_load: Option<f64>,
    /// Free scratch space in KiB.
    pub disk_kib: Option<i64>,
    /// Free swap space in KiB.
    pub virtual_memory_kib: Option<i64>,
    /// The pods that stand still.
    pub suspended: BTreeSet<Uid>,
    /// The usage of the pool's pods, in the order of their uids.
    pub usage: Vec<PodUsage>,
    /// The devices that the kubelet has given to the pool's pods, in the order of their uids.
    pub pod_devices: Vec<PodDevices>,
    /// More attributes of the machine's ad, as ClassAd expressions.
    pub attributes: BTreeMap<String, String>,
    /// The cron jobs' part of the report.
    pub cron: CronSenses,
    /// Why the agent cannot do its work; none if it can.
    pub problem: Option<Problem>,
}

/// Why an agent cannot do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One word, for the condition Ready.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// The report's form of input that was last seen at `last`: ongoing if `last` is less than `ONGOING` from `now`.
pub fn input(last: Timestamp, now: Timestamp) -> LastInput {
    if now.duration_since(last).unsigned_abs() < ONGOING {
        LastInput::Ongoing
    } else {
        LastInput::At(Time(last))
    }
}

/// A write of the NodeReport's status.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The status after the write.
    pub status: NodeReportStatus,
    /// The JSON merge patch that makes this status of the one that the API server has.
    pub patch: Value,
}

/// A benchmark run that the agent has made.
#[derive(Clone, Copy, Debug)]
struct Run {
    figures: Figures,
    at: Timestamp,
}

/// The state of the report of a running agent. It is lost when the agent dies, except for what the API server has.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// Since when this agent has seen the condition Ready as it is.
    since: Timestamp,
    /// Since when this agent has seen the condition CronJobs as it is.
    cron_since: Timestamp,
    /// The status that an earlier agent wrote; none once this agent has written.
    forerunner: Option<NodeReportStatus>,
    /// Whether a change of attributes is to be written as soon as a change of the load.
    hurries: bool,
    senses: Senses,
    run: Option<Run>,
    /// When the run that the operator asks for has to end, at the earliest; none if it asks for none, or has its answer.
    asked: Option<Timestamp>,
    generation: Option<i64>,
    /// The status that the API server has, as far as the agent knows.
    stored: Option<NodeReportStatus>,
    written: Option<(NodeReportStatus, Timestamp)>,
}

impl Reporter {
    /// The report of an agent that starts now.
    pub fn new(now: Timestamp) -> Self {
        let senses = Senses::default();
        Self {
            since: now,
            cron_since: now,
            forerunner: None,
            hurries: false,
            senses,
            run: None,
            asked: None,
            generation: None,
            stored: None,
            written: None,
        }
    }

    /// Takes note of what the agent senses.
    pub fn observe(&mut self, senses: Senses, now: Timestamp) {
        if senses.problem.is_some() != self.senses.problem.is_some() {
            self.since = now;
        }
        if senses.cron.problem.is_empty() != self.senses.cron.problem.is_empty() {
            self.cron_since = now;
        }
        if !senses.cron.keeps {
            self.forerunner = None;
        }
        self.senses = senses;
    }

    /// Lets the next change of attributes be written as soon as a change of the load.
    pub fn hurry(&mut self) {
        self.hurries = true;
    }

    /// Reads the report as the API server has it. The figures of an earlier agent's run count as this agent's.
    pub fn observe_report(&mut self, report: &NodeReport) {
        self.generation = report.metadata.generation;
        if let Some(status) = &report.status {
            if let (Some(mips), Some(kflops), Some(at)) = (status.mips, status.kflops, &status.benchmarked_at)
                && self.run.is_none_or(|run| run.at < at.0)
            {
                self.run = Some(Run { figures: Figures { mips, kflops }, at: at.0 });
            }
            // While a write is under way, an older status may be seen; the status that a write returned is newer.
            if self.written.is_none() {
                self.stored = Some(status.clone());
                self.forerunner = Some(status.clone());
            }
        }
        let second = |time: &Time| time.0.as_second();
        let done = report.status.as_ref().and_then(|status| status.benchmarked_at.as_ref()).map(second);
        let done = done.max(self.run.map(|run| run.at.as_second()));
        let asked =
            report.spec.benchmark.as_ref().filter(|asked| done.is_none_or(|done| done < second(asked)));
        self.asked = asked.map(|asked| asked.0);
    }

    /// Takes note that the API server has no report, so that the agent writes a new one.
    pub fn report_deleted(&mut self) {
        (self.stored, self.written, self.forerunner) = (None, None, None);
    }

    /// Whether the operator waits for a run of the benchmarks.
    pub fn wants_benchmark(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes note of a run that ended now. If the operator's clock is ahead, the run must still not seem to precede the
    /// request: the operator would wait for another run.
    pub fn benchmarked(&mut self, figures: Figures, now: Timestamp) {
        let at = now.max(self.asked.take().unwrap_or(now));
        self.run = Some(Run { figures, at });
    }

    /// Returns the write that is due at `now`, if one is.
    pub fn due_write(&self, now: Timestamp) -> Option<Write> {
        self.next_wake(now).filter(|due| *due <= now).map(|_| self.write())
    }

    /// Returns the last write of an agent that ends, which waits for nothing; none if there is nothing new to write.
    pub fn last_write(&self) -> Option<Write> {
        let news = self.written.as_ref().is_none_or(|(written, _)| self.pace_after(written).is_some());
        news.then(|| self.write())
    }

    fn write(&self) -> Write {
        let status = self.status();
        let as_json = |status: &NodeReportStatus| serde_json::to_value(status).unwrap_or_default();
        let stored = self.stored.as_ref().map_or_else(anything, as_json);
        let patch = answers::merge_patch(&stored, &as_json(&status)).unwrap_or_else(|| json!({}));
        let patch = json!({ "status": patch });
        Write { status, patch }
    }

    /// Takes note that a write of this status, made at `now`, succeeded.
    pub fn record_write(&mut self, status: NodeReportStatus, now: Timestamp) {
        let present = self.status();
        self.hurries &=
            (present.attributes, present.slot_ads) != (status.attributes.clone(), status.slot_ads.clone());
        self.stored = Some(status.clone());
        self.written = Some((status, now));
    }

    /// When the next write is due; `None` if nothing will be due until something is observed.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let Some((written, at)) = &self.written else { return Some(now) };
        let pace = self.pace_after(written)?;
        // If the clock was set back, nobody knows how long ago that was.
        Some(if *at <= now { after(*at, pace) } else { now })
    }

    /// The pause after the write of this status until the next write; none if there is nothing new to write.
    fn pace_after(&self, written: &NodeReportStatus) -> Option<Duration> {
        let status = self.status();
        let same = NodeReportStatus {
            load: written.load,
            pool_load: written.pool_load,
            disk_kib: written.disk_kib,
            virtual_memory_kib: written.virtual_memory_kib,
            attributes: written.attributes.clone(),
            slot_ads: written.slot_ads.clone(),
            usage: written.usage.clone(),
            pod_devices: written.pod_devices.clone(),
            observed_generation: written.observed_generation,
            conditions: written.conditions.clone(),
            ..status.clone()
        };
        if same != *written || status.conditions.first() != written.conditions.first() {
            return Some(LEAST_PACE);
        }
        let moved = |now: Option<f64>, before: Option<f64>| has_moved(now, before, LOAD_STEP);
        let load = moved(status.load, written.load) || moved(status.pool_load, written.pool_load);
        let attributes = status.attributes != written.attributes || status.slot_ads != written.slot_ads;
        if load || (attributes && self.hurries) {
            return Some(LOAD_PACE);
        }
        let moved = |now: Option<i64>, before: Option<i64>| has_moved(now.map(float), before.map(float), 0.0);
        let slow = moved(status.disk_kib, written.disk_kib)
            || moved(status.virtual_memory_kib, written.virtual_memory_kib)
            || attributes
            || status.conditions != written.conditions
            || status.pod_devices != written.pod_devices
            || uses_other(&status.usage, &written.usage);
        slow.then_some(SLOW_PACE)
    }

    fn status(&self) -> NodeReportStatus {
        let [keyboard, console] = [&self.senses.keyboard, &self.senses.console].map(|input| match input {
            Some(LastInput::At(time)) => Some(LastInput::At(Time(whole(time.0)))),
            other => other.clone(),
        });
        let inputs = (keyboard.is_some() || console.is_some()).then_some(LastInputs { keyboard, console });
        NodeReportStatus {
            observed_generation: self.generation,
            last_input: inputs,
            load: self.senses.load.map(rounded),
            pool_load: self.senses.pool_load.map(rounded),
            mips: self.run.map(|run| run.figures.mips),
            kflops: self.run.map(|run| run.figures.kflops),
            benchmarked_at: self.run.map(|run| Time(whole(run.at))),
            suspended_pods: self.senses.suspended.iter().map(ToString::to_string).collect(),
            disk_kib: self.senses.disk_kib,
            virtual_memory_kib: self.senses.virtual_memory_kib,
            usage: self.senses.usage.clone(),
            pod_devices: self.senses.pod_devices.clone(),
            // The field is not the agent's: somebody else may describe the node's devices there.
            devices: self.stored.as_ref().map(|stored| stored.devices.clone()).unwrap_or_default(),
            attributes: self.attributes(),
            slot_ads: self.slot_ads(),
            conditions: [Some(self.ready()), self.cron_jobs()].into_iter().flatten().collect(),
        }
    }

    /// The attributes of all slots: the agent's own, and those of cron jobs. Until this agent's jobs have spoken, what an earlier
    /// agent's jobs have said stays: a slot that is broken must not take jobs while an agent is replaced.
    fn attributes(&self) -> BTreeMap<String, String> {
        let mut attributes = self.senses.attributes.clone();
        let left = self.forerunner.iter().flat_map(|status| &status.attributes);
        for (name, expr) in self.senses.cron.says.attributes.iter().chain(left) {
            if !attributes.keys().any(|known| known.eq_ignore_ascii_case(name)) {
                attributes.insert(name.clone(), expr.clone());
            }
        }
        attributes
    }

    fn slot_ads(&self) -> Vec<ReportedSlotAd> {
        let own = &self.senses.cron.says.slot_ads;
        match &self.forerunner {
            Some(status) if own.is_empty() => status.slot_ads.clone(),
            _ => own.clone(),
        }
    }

    /// Whether the cron jobs run, if there are any.
    fn cron_jobs(&self) -> Option<Condition> {
        let cron = &self.senses.cron;
        let (status, reason, message) = match cron.problem.as_str() {
            "" => ("True", "Running", "the cron jobs run, and the agent can use what they write".to_owned()),
            problem => ("False", "Failing", problem.chars().take(MAX_MESSAGE).collect()),
        };
        (cron.jobs > 0)
            .then(|| self.condition(condition::CRON_JOBS, status, self.cron_since, (reason, message)))
    }

    fn ready(&self) -> Condition {
        let (status, reason, message) = match &self.senses.problem {
            None => ("True", "Sensing", "the agent senses, and suspends pods".to_owned()),
            Some(problem) => ("False", problem.reason, problem.message.clone()),
        };
        self.condition(condition::READY, status, self.since, (reason, message))
    }

    /// A condition whose status this agent has seen since `since`. A condition that the API server has with the same status keeps
    /// its time: an agent that starts anew changes nothing.
    fn condition(
        &self,
        type_: &str,
        status: &str,
        since: Timestamp,
        (reason, message): (&str, String),
    ) -> Condition {
        let stored = self.stored.iter().flat_map(|stored| &stored.conditions);
        let mut same = stored.filter(|stored| stored.type_ == type_ && stored.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            observed_generation: None,
            last_transition_time: Time(
                same.next().map_or_else(|| whole(since), |same| same.last_transition_time.0),
            ),
            reason: reason.to_owned(),
            message,
        }
    }
}

/// A status of which nothing is known: each of its fields may be there.
fn anything() -> Value {
    let at = Time(Timestamp::UNIX_EPOCH);
    let status = NodeReportStatus {
        observed_generation: Some(0),
        last_input: Some(LastInputs::default()),
        load: Some(0.0),
        pool_load: Some(0.0),
        mips: Some(0),
        kflops: Some(0),
        benchmarked_at: Some(at),
        suspended_pods: vec![String::new()],
        disk_kib: Some(0),
        virtual_memory_kib: Some(0),
        usage: vec![PodUsage::default()],
        pod_devices: vec![PodDevices::default()],
        // The agent leaves this field alone.
        devices: Vec::new(),
        attributes: [(String::new(), String::new())].into(),
        slot_ads: vec![ReportedSlotAd::default()],
        conditions: Vec::new(),
    };
    let mut fields = serde_json::to_value(status).unwrap_or_default();
    fields.as_object_mut().into_iter().flatten().for_each(|(_, value)| *value = Value::Null);
    fields
}

/// Whether other pods use something than before, or a pod's usage has moved.
fn uses_other(now: &[PodUsage], before: &[PodUsage]) -> bool {
    let moved = |(now, before): (&PodUsage, &PodUsage)| {
        now.uid != before.uid
            || has_moved(now.memory_mib.map(float), before.memory_mib.map(float), 1.0)
            || has_moved(now.resident_kib.map(float), before.resident_kib.map(float), 1024.0)
            || has_moved(now.disk_kib.map(float), before.disk_kib.map(float), 1024.0)
            || has_moved(now.cpus, before.cpus, LOAD_STEP)
            // How many operations that took is written with the amounts, and never for itself.
            || has_moved(now.block_read_kib.map(float), before.block_read_kib.map(float), BLOCK_STEP)
            || has_moved(now.block_write_kib.map(float), before.block_write_kib.map(float), BLOCK_STEP)
            || measures_other(&now.metrics, &before.metrics)
    };
    now.len() != before.len() || now.iter().zip(before).any(moved)
}

/// Whether a monitor measured something else than before, or something has moved.
fn measures_other(now: &BTreeMap<String, f64>, before: &BTreeMap<String, f64>) -> bool {
    let moved =
        |(name, value): (&String, &f64)| has_moved(Some(*value), before.get(name).copied(), METRIC_STEP);
    now.len() != before.len() || now.iter().any(moved)
}

/// Whether a measure has moved by a tenth of what it was, and by `step` at least.
fn has_moved(now: Option<f64>, before: Option<f64>, step: f64) -> bool {
    match (now, before) {
        (Some(now), Some(before)) => {
            let moved = (now - before).abs();
            moved > 0.0 && moved >= step.max(before.abs() / 10.0)
        }
        (now, before) => now.is_some() != before.is_some(),
    }
}

/// The API server keeps whole seconds: a fraction would differ from the status that was written.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn after(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

fn rounded(load: f64) -> f64 {
    (load * 100.0).round() / 100.0
}

#[allow(clippy::cast_precision_loss, reason = "a tenth of the value is what counts")]
fn float(kib: i64) -> f64 {
    kib as f64
}

#[cfg(test)]
mod tests;
