//! The startd's cron jobs: programs of the site whose output becomes attributes of the slots.
//!
//! Source: the manual, "Startd Cron and Schedd Cron" and "Daemon Hook Configuration Options".

use super::knob::Support::{Honored, Meaningless};
use super::knob::{Kind, Knob, Reader};

const STARTD: &[Reader] = &[Reader::Startd];

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "STARTD_CRON_JOBLIST",
        Kind::List,
        STARTD,
        Honored,
        "The names of the cron jobs that the agent of a node runs.",
    ),
    Knob::new(
        "STARTD_CRON_MAX_JOB_LOAD",
        Kind::Real,
        STARTD,
        Honored,
        "No cron job starts that would make the sum of JOB_LOAD of those that run greater than this.",
    )
    .between(0.01, 1000.0)
    .fallback("0.1"),
    Knob::new(
        "STARTD_CRON_AUTOPUBLISH",
        Kind::Text,
        STARTD,
        Honored,
        "Never, If_Changed or Always: whether output is written to the API server at once, or once a minute at most.",
    )
    .fallback("Never"),
    Knob::new(
        "STARTD_CRON_LOG_NON_ZERO_EXIT",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether the agent logs the exit code and the output of a cron job that fails.",
    ),
    Knob::new(
        "STARTD_CRON_CONFIG_VAL",
        Kind::Text,
        STARTD,
        Meaningless("there is no condor_config_val in the agent's container; give a job what it needs by its ENV or ARGS"),
        "The program by which cron jobs ask for configuration.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_EXECUTABLE",
        Kind::Text,
        STARTD,
        Honored,
        "The job's program, in the directory of programs that the site gives the agents.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_ARGS",
        Kind::Text,
        STARTD,
        Honored,
        "The program's arguments, after the job's name.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_ENV",
        Kind::Text,
        STARTD,
        Honored,
        "The program's environment variables: A=1;B=2, or in quotes \"A=1 B='x y'\".",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_CWD",
        Kind::Text,
        STARTD,
        Honored,
        "The directory in which the program starts, as the agent's container has it.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_MODE",
        Kind::Text,
        STARTD,
        Honored,
        "Periodic, WaitForExit or OneShot: when the program runs. OnDemand is refused.",
    )
    .fallback("Periodic"),
    Knob::new(
        "STARTD_CRON_<JobName>_PERIOD",
        Kind::Text,
        STARTD,
        Honored,
        "The time between two starts, or for WaitForExit from the end to the next start: 30, 30s, 5m or 1h.",
    )
    .unit("seconds"),
    Knob::new(
        "STARTD_CRON_<JobName>_PREFIX",
        Kind::Text,
        STARTD,
        Honored,
        "The text before the name of each attribute in the job's output.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_KILL",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether a run that still goes on when the next is due is killed, rather than the next left out.",
    )
    .fallback("False"),
    Knob::new(
        "STARTD_CRON_<JobName>_RECONFIG",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether the program gets SIGHUP when the node's cron jobs have changed.",
    )
    .fallback("False"),
    Knob::new(
        "STARTD_CRON_<JobName>_RECONFIG_RERUN",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether a OneShot job runs again when the node's cron jobs have changed.",
    )
    .fallback("False"),
    Knob::new(
        "STARTD_CRON_<JobName>_SLOTS",
        Kind::List,
        STARTD,
        Honored,
        "The numbers of the slots whose ads have the job's output; all if there is no list.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_CONDITION",
        Kind::Expression,
        STARTD,
        Honored,
        "The program starts while this expression is true of the machine, which is looked at when the machine changes and each UPDATE_INTERVAL.",
    ),
    Knob::new(
        "STARTD_CRON_<JobName>_JOB_LOAD",
        Kind::Real,
        STARTD,
        Honored,
        "The CPU load that the job is assumed to make, for STARTD_CRON_MAX_JOB_LOAD.",
    )
    .between(0.0, 100.0)
    .fallback("0.01"),
    Knob::new(
        "STARTD_CRON_<JobName>_METRICS",
        Kind::List,
        STARTD,
        Honored,
        "How the program measures custom resources: SUM:GPUs adds up the samples UptimeGPUsSeconds, PEAK:GPUsMemory keeps the greatest UptimeGPUsMemoryPeakUsage; told for each job.",
    ),
];
