//! Cron jobs: programs that the agent of a machine runs, and whose output becomes attributes of the slots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use classad::Expr;

/// The cron jobs of a machine, as its agent is asked to run them: `STARTD_CRON_*`.
#[derive(Clone, Debug, PartialEq)]
pub struct Crontab {
    /// The jobs, in the order of `STARTD_CRON_JOBLIST`.
    pub jobs: Vec<CronJob>,
    /// `STARTD_CRON_MAX_JOB_LOAD`.
    pub max_load: f64,
    /// `STARTD_CRON_AUTOPUBLISH`.
    pub publish: Autopublish,
    /// `STARTD_CRON_LOG_NON_ZERO_EXIT`.
    pub log_failures: bool,
}

impl Default for Crontab {
    fn default() -> Self {
        Self { jobs: Vec::new(), max_load: 0.1, publish: Autopublish::default(), log_failures: false }
    }
}

/// One cron job: `STARTD_CRON_<JobName>_*`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is one of HTCondor's knobs")]
pub struct CronJob {
    /// The job's name, as the list spells it.
    pub name: String,
    /// The program.
    pub executable: String,
    /// The arguments that the program is given after the job's name.
    pub arguments: Vec<String>,
    /// The program's environment variables.
    pub environment: BTreeMap<String, String>,
    /// The directory in which the program starts; none for that of the programs.
    pub directory: Option<String>,
    /// When the program runs.
    pub mode: CronMode,
    /// The time between two starts; for [`CronMode::WaitForExit`], from the end to the next start. Zero for
    /// [`CronMode::OneShot`].
    pub period: Duration,
    /// The prefix of the name of each attribute.
    pub prefix: String,
    /// Whether a run that still goes on when the next is due is killed.
    pub kill: bool,
    /// Whether the program gets SIGHUP when the crontab has changed.
    pub reconfig: bool,
    /// Whether a job of [`CronMode::OneShot`] runs again when the crontab has changed.
    pub rerun: bool,
    /// The slots whose ads have the output; none for all.
    pub slots: Vec<u32>,
    /// The assumed load.
    pub load: f64,
    /// The metrics of custom resources that the job measures. If there is any, the job is a monitor.
    pub metrics: Vec<Metric>,
    /// False if the job's condition is not true: no run starts, and the output of earlier runs stays.
    pub may_start: bool,
}

/// A metric of a custom resource: an item of `STARTD_CRON_<JobName>_METRICS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// How one sample after the other is combined.
    pub kind: MetricKind,
    /// The resource, such as `GPUs` or `GPUsMemory`.
    pub resource: String,
}

/// How the samples of a metric are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// `SUM`: the samples are seconds of use, `Uptime<Resource>Seconds`, which are added up.
    Sum,
    /// `PEAK`: the samples are amounts, `Uptime<Resource>PeakUsage`, of which the greatest is kept.
    Peak,
}

/// When the program of a cron job runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CronMode {
    /// Each period.
    #[default]
    Periodic,
    /// A period after its end.
    WaitForExit,
    /// Once, when the agent starts.
    OneShot,
}

/// When the output of cron jobs is written to the API server. Output that changes nothing is never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autopublish {
    /// With pauses of a minute.
    #[default]
    Never,
    /// At once.
    IfChanged,
    /// At once, and with the time of the last run, which changes each time.
    Always,
}

/// The cron jobs that a policy defines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CronPolicy {
    /// The jobs, as if each condition were true.
    pub tab: Crontab,
    /// `STARTD_CRON_<JobName>_CONDITION`, by the job's name.
    pub conditions: BTreeMap<String, Expr>,
}

/// The output of a cron job for some slots only.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotOutput {
    /// The slots; none for all.
    pub slots: Vec<u32>,
    /// The attributes. Some of them say into which slots' ads the others go: `SlotMergeConstraint`, `SlotName` or `Name`,
    /// `SlotTypeId`, `SlotId`.
    pub attributes: Vec<(Arc<str>, Expr)>,
}
