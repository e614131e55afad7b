//! The job event log of HTCondor, which `log` of a submit file names: what happened to each proc, and when.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | an event, and its text |
//! | `read` | what a log has of each proc |
//! | `missing` | the events that a log lacks, by what is known of a proc |
//!
//! The text is that of HTCondor 25.14.1 (`condor_event.cpp`); `tests/tools/events.rs` compares with logs that HTCondor wrote.

mod missing;
mod read;

use std::fmt::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use missing::{Now, Proc, Run};
pub use read::{Found, Log, Standing};

/// The name that stands in front of the number of a run among the attributes of an event 001.
const RUN: &str = "NumShadowStarts";

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code; -1 if the code is not known.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    fn termination(self, text: &mut String) -> fmt::Result {
        match self {
            Self::Code(code) => writeln!(text, "\t(1) Normal termination (return value {code})"),
            Self::Signal(signal) => {
                writeln!(text, "\t(0) Abnormal termination (signal {signal})\n\t(0) No core file")
            }
        }
    }
}

/// The kind of an event, and what is told with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 000: submitted. The notes are `submit_event_notes` and `submit_event_user_notes`.
    Submitted {
        /// The address to which the job was submitted, in angle brackets.
        host: String,
        /// Each note is a line of the event.
        notes: Vec<String>,
    },
    /// 001: the program runs.
    Executing(Run),
    /// 004: the proc left its slot, and is not done.
    Evicted {
        /// The reason, if the reason is known.
        reason: Option<String>,
        /// `VacateReasonCode`; 0 if the code is not known.
        code: i64,
        /// `VacateReasonSubCode`.
        subcode: i64,
        /// How the program ended, if it ended by itself and runs again since `OnExitRemove` is false.
        requeued: Option<Exit>,
    },
    /// 005: the program ended by itself.
    Terminated(Exit),
    /// 009: removed.
    Aborted(Option<String>),
    /// 010: suspended.
    Suspended,
    /// 011: no longer suspended.
    Unsuspended,
    /// 012: held.
    Held {
        /// `HoldReason`.
        reason: String,
        /// `HoldReasonCode`.
        code: i64,
        /// `HoldReasonSubCode`.
        subcode: i64,
    },
    /// 013: released.
    Released,
}

impl Kind {
    /// The number of the event.
    pub const fn number(&self) -> u32 {
        match self {
            Self::Submitted { .. } => 0,
            Self::Executing(_) => 1,
            Self::Evicted { .. } => 4,
            Self::Terminated(_) => 5,
            Self::Aborted(_) => 9,
            Self::Suspended => 10,
            Self::Unsuspended => 11,
            Self::Held { .. } => 12,
            Self::Released => 13,
        }
    }
}

/// An event of a proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// ClusterId and ProcId.
    pub id: (i64, u32),
    /// The time of the event, in seconds since 1970.
    pub time: i64,
    /// The kind of the event.
    pub kind: Kind,
}

/// The beginning of a line for CPU times, which HTCondor's starter measures and nobody measures here.
const NO_USAGE: &str = "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  ";

impl Event {
    /// The text of the event in a log, with the line of dots behind it.
    pub fn text(&self, zone: &TimeZone) -> String {
        let (cluster, proc) = self.id;
        let time = Timestamp::from_second(self.time).unwrap_or_default().to_zoned(zone.clone());
        let time = time.strftime("%Y-%m-%d %H:%M:%S");
        let mut text = format!("{:03} ({cluster:03}.{proc:03}.000) {time} ", self.kind.number());
        // Writing into a text does not fail.
        let _ = self.body(&mut text);
        text.push_str("...\n");
        text
    }

    fn body(&self, text: &mut String) -> fmt::Result {
        match &self.kind {
            Kind::Submitted { host, notes } => {
                writeln!(text, "Job submitted from host: {}", line(host))?;
                notes.iter().try_for_each(|note| writeln!(text, "    {}", line(note)))
            }
            Kind::Executing(run) => {
                writeln!(text, "Job executing on host: {}", line(&run.host))?;
                if let Some(slot) = &run.slot {
                    writeln!(text, "\tSlotName: {}", line(slot))?;
                }
                writeln!(text, "\t{RUN} = {}", run.number)
            }
            Kind::Evicted { reason, code, subcode, requeued } => {
                match code {
                    0 => writeln!(text, "Job was evicted.")?,
                    _ => writeln!(text, "Job was evicted. Code {code} Subcode {subcode}")?,
                }
                let what = if requeued.is_some() { "Job terminated and was requeued" } else { "CPU times" };
                writeln!(text, "\t(0) {what}")?;
                usage(text, &["Run Remote Usage", "Run Local Usage"])?;
                writeln!(text, "\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job")?;
                requeued.iter().try_for_each(|exit| exit.termination(text))?;
                let title = if requeued.is_some() { "" } else { "Reason: " };
                reason.iter().try_for_each(|reason| writeln!(text, "\t{title}{}", line(reason)))
            }
            Kind::Terminated(exit) => {
                writeln!(text, "Job terminated.")?;
                exit.termination(text)?;
                let usages =
                    ["Run Remote Usage", "Run Local Usage", "Total Remote Usage", "Total Local Usage"];
                usage(text, &usages)?;
                for of in ["Run", "Total"] {
                    writeln!(text, "\t0  -  {of} Bytes Sent By Job\n\t0  -  {of} Bytes Received By Job")?;
                }
                Ok(())
            }
            Kind::Aborted(reason) => {
                writeln!(text, "Job was aborted.")?;
                reason.iter().try_for_each(|reason| writeln!(text, "\t{}", line(reason)))
            }
            Kind::Suspended => {
                writeln!(text, "Job was suspended.\n\tNumber of processes actually suspended: 1")
            }
            Kind::Unsuspended => writeln!(text, "Job was unsuspended."),
            Kind::Held { reason, code, subcode } => {
                let reason = if reason.is_empty() { "Reason unspecified" } else { reason };
                writeln!(text, "Job was held.\n\t{}\n\tCode {code} Subcode {subcode}", line(reason))
            }
            Kind::Released => writeln!(text, "Job was released."),
        }
    }
}

fn usage(text: &mut String, names: &[&str]) -> fmt::Result {
    names.iter().try_for_each(|name| writeln!(text, "{NO_USAGE}{name}"))
}

/// A text as one line, so that the text of a reason cannot forge events.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
