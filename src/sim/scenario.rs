//! The input of a simulation.

use std::time::Duration;

use super::arrivals::Arrivals;
use super::owner::{Absence, OwnerActivity};
use super::spread::Spread;
use model::pool::{Event, MachineFacts, Time};
use model::schedd::Submission;

/// Everything that a simulation depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The scenario's name in reports.
    pub name: String,
    /// When the simulation begins.
    pub start: Time,
    /// How long the simulation lasts, in simulated time.
    pub length: Duration,
    /// The time between two samples. At each sample every table gets its rows.
    pub sample: Duration,
    /// The seed of every random stream.
    pub seed: u64,
    /// How long API calls, pod starts and pod ends take.
    pub timing: Timing,
    /// Policies, quotas, submitters and the negotiator's configuration, as the events that the operator's shell makes
    /// of their objects.
    pub objects: Vec<Event>,
    /// The machines.
    pub machines: Vec<MachineGroup>,
    /// Who submits which jobs, and when.
    pub sources: Vec<Source>,
}

impl Scenario {
    /// Whether the hours of an owner or the rate of submissions depend on the day of the week or the time of day. If
    /// so, reports show dates instead of the time since the start.
    pub fn follows_calendar(&self) -> bool {
        let by_day =
            |group: &MachineGroup| group.owner.as_ref().is_some_and(|owner| !owner.windows.is_empty());
        let diurnal = |source: &Source| matches!(source.arrivals, Arrivals::Diurnal { .. });
        self.machines.iter().any(by_day) || self.sources.iter().any(diurnal)
    }
}

/// How long it takes until something happens that the operator asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// From a call to the API server until its answer.
    pub call: Duration,
    /// The shortest span between two writes of one status.
    pub status: Duration,
    /// Seconds from a pod's creation until its container runs: image, volumes, sandbox.
    pub pod_start: Spread,
    /// Seconds from a pod's deletion until its container ends.
    pub pod_end: Spread,
}

/// Machines of one kind.
#[derive(Clone, Debug)]
pub struct MachineGroup {
    /// The start of the machines' names; a number from 1 follows.
    pub name: String,
    /// How many machines there are.
    pub count: u32,
    /// The facts of each machine, except for its name.
    pub facts: MachineFacts,
    /// When the machines' owners use them. If unset, the machines have no owner and no agent.
    pub owner: Option<OwnerActivity>,
    /// When the machines leave the pool and come back. If unset, they stay.
    pub absence: Option<Absence>,
}

/// Somebody who submits jobs of one kind.
#[derive(Clone, Debug)]
pub struct Source {
    /// The source's name. The names of its jobs start with it, and its random streams depend on it.
    pub name: String,
    /// The template of each job. The simulator fills in the name, the time and the count, and those of the amounts
    /// below that are set.
    pub template: Submission,
    /// When jobs are submitted.
    pub arrivals: Arrivals,
    /// The earliest submission, from the start of the simulation.
    pub from: Duration,
    /// The end of submissions, from the start of the simulation; if unset, the end of the simulation.
    pub to: Option<Duration>,
    /// The most jobs that the source submits.
    pub most: Option<u64>,
    /// How many procs a job has.
    pub count: Spread,
    /// How many seconds a proc runs.
    pub runtime: Spread,
    /// `RequestCpus`.
    pub cpus: Option<Spread>,
    /// `RequestMemory`, MiB.
    pub memory_mib: Option<Spread>,
    /// `RequestDisk`, KiB.
    pub disk_kib: Option<Spread>,
    /// `RequestGPUs`.
    pub gpus: Option<Spread>,
}
