//! What is simulated.

use std::time::Duration;

use super::arrivals::Arrivals;
use super::owner::{Absence, OwnerActivity};
use super::spread::Spread;
use model::pool::{Event, MachineFacts, Time};
use model::schedd::Submission;

/// Everything that a simulation depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How it is called in reports.
    pub name: String,
    /// When it begins.
    pub start: Time,
    /// For how long it goes on.
    pub length: Duration,
    /// How often the tables get a row.
    pub sample: Duration,
    /// Where chance starts.
    pub seed: u64,
    /// How long things take.
    pub timing: Timing,
    /// Policies, quotas, submitters and the negotiator's configuration, as the shell reports their objects.
    pub objects: Vec<Event>,
    /// The machines.
    pub machines: Vec<MachineGroup>,
    /// Who submits what, and when.
    pub sources: Vec<Source>,
}

impl Scenario {
    /// Whether anything in it goes by the day of the week or the time of day: then dates mean something.
    pub fn follows_calendar(&self) -> bool {
        let by_day =
            |group: &MachineGroup| group.owner.as_ref().is_some_and(|owner| !owner.windows.is_empty());
        let diurnal = |source: &Source| matches!(source.arrivals, Arrivals::Diurnal { .. });
        self.machines.iter().any(by_day) || self.sources.iter().any(diurnal)
    }
}

/// How long things take that the operator asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// A call to the API server, until its answer is here.
    pub call: Duration,
    /// The shortest span between two writes of one status.
    pub status: Duration,
    /// Seconds from a pod's creation until its container runs: image, volumes, sandbox.
    pub pod_start: Spread,
    /// Seconds that a pod takes to end once it is deleted.
    pub pod_end: Spread,
}

/// Machines of one kind.
#[derive(Clone, Debug)]
pub struct MachineGroup {
    /// What their names start with; a number from 1 follows.
    pub name: String,
    /// How many.
    pub count: u32,
    /// What each is; the name is put in.
    pub facts: MachineFacts,
    /// What their owners do; where unset nobody sits at them and nothing is sensed.
    pub owner: Option<OwnerActivity>,
    /// When they leave the pool and come back.
    pub absence: Option<Absence>,
}

/// Somebody who submits jobs of one kind.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name: job names start with it, and its chance comes from it.
    pub name: String,
    /// What is submitted. Name, time and count are put in, and the amounts below where they are given.
    pub template: Submission,
    /// When.
    pub arrivals: Arrivals,
    /// From when on.
    pub from: Duration,
    /// Until when.
    pub to: Option<Duration>,
    /// How many jobs at the most.
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
