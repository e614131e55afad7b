//! A slot's policy: its expressions, the questions that the state machine asks, and what an answer means.
//!
//! Source: the manual's policy chapter, "State/Activity Transition Expression Summary".
//!
//! | file | is |
//! | --- | --- |
//! | `read` | reads a [`Policy`](crate::pool::Policy) from a configuration text |
//! | `ask` | answers questions, with the slot's ad as `MY` and the job's as `TARGET`; the first question that needs the ad makes it |
//! | `attributes` | what a slot publishes about its job, for policies to read |
//! | `watch` | whether a policy must be evaluated again when only time has passed |

mod ask;
mod attributes;
mod read;
mod watch;

pub use ask::Asker;
pub(super) use ask::integer;
pub use ask::rank;
pub use attributes::{publish, running_job_ad};
pub use watch::is_polled;

use crate::pool::HoldReason;
use classad::Value;

/// A question to the policy, whose answer is an [`Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// `IS_OWNER`, without a job.
    IsOwner,
    /// `WANT_SUSPEND`.
    WantSuspend,
    /// `SUSPEND`.
    Suspend,
    /// `CONTINUE`.
    Continue,
    /// `PREEMPT`.
    Preempt,
    /// `WANT_VACATE`.
    WantVacate,
    /// `KILL`.
    Kill,
    /// `WANT_HOLD`.
    WantHold,
    /// `START` for the job that runs, with the job's ad as it is now. While the machine drains, the drain's `START` if it has one.
    Start,
    /// `START` for the job whose claim waits for the slot.
    StartNext,
    /// `RUNBENCHMARKS`, without a job.
    RunBenchmarks,
    /// `START_BACKFILL`, without a job.
    StartBackfill,
    /// `EVICT_BACKFILL`, without a job.
    EvictBackfill,
}

/// The answer to a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// True, or a number that is not zero.
    True,
    /// False, or zero.
    False,
    /// The value is undefined: the expression depends on an attribute that is not there.
    Undefined,
    /// The expression cannot be evaluated, or its value is neither a boolean nor a number.
    Error,
}

impl Answer {
    /// The answer that a value gives.
    pub fn of(value: &Value) -> Self {
        match value.as_bool_equiv() {
            Some(true) => Self::True,
            Some(false) => Self::False,
            None if value.is_undefined() => Self::Undefined,
            None => Self::Error,
        }
    }

    /// Whether the answer is true. For most questions only this means yes, not an undefined value or an error.
    pub fn is_true(self) -> bool {
        self == Self::True
    }
}

impl Question {
    /// Whether an answer means yes.
    ///
    /// In `HTCondor` the startd exits if `IS_OWNER` or `WANT_VACATE` is undefined. Here, an undefined `IS_OWNER` means no, so that
    /// the slot stays usable, and an undefined `WANT_VACATE` means yes, so that a job is vacated before it is killed. A claim that
    /// waits takes the slot unless `START` is false, or an error, for its job.
    pub fn is_met_by(self, answer: Answer) -> bool {
        match self {
            Self::WantVacate => answer != Answer::False,
            Self::StartNext => matches!(answer, Answer::True | Answer::Undefined),
            Self::Start
            | Self::IsOwner
            | Self::WantSuspend
            | Self::Suspend
            | Self::Continue
            | Self::Preempt
            | Self::Kill
            | Self::WantHold
            | Self::RunBenchmarks
            | Self::StartBackfill
            | Self::EvictBackfill => answer.is_true(),
        }
    }
}

/// Answers questions about a slot's policy.
pub trait Answers {
    /// The answer to a question.
    fn answer(&self, question: Question) -> Answer;

    /// The current value of the machine's `MAXJOBRETIREMENTTIME`, in seconds; none if it is not an integer.
    fn retirement(&self) -> Option<i64>;

    /// The job's `MaxJobRetirementTime`, in seconds; none if it is not an integer.
    fn job_retirement(&self) -> Option<i64>;

    /// The job's `JobMaxVacateTime`, or else its `KillSigTimeout`, in seconds: none if the job has neither, 0 if the value is not
    /// an integer.
    fn job_vacate(&self) -> Option<i64>;

    /// The current value of `MachineMaxVacateTime`, in seconds.
    fn machine_vacate(&self) -> i64;

    /// `RANK` for the job of the claim.
    fn rank(&self) -> f64;

    /// The reason and subcode with which a job is held if `WANT_HOLD` is true: `WANT_HOLD_REASON` and `WANT_HOLD_SUBCODE`.
    fn hold(&self) -> HoldReason;

    /// Whether the answer means yes.
    fn holds(&self, question: Question) -> bool {
        question.is_met_by(self.answer(question))
    }
}
