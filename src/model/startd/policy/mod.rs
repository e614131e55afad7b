//! A slot's policy: what it says, what is asked of it, and what an answer means.
//!
//! Source: the manual's policy chapter, "State/Activity Transition Expression Summary".
//!
//! | file | is |
//! | --- | --- |
//! | `read` | a [`Policy`](crate::pool::Policy) out of a configuration text |
//! | `ask` | answers, with the slot's ad as `MY` and the job's as `TARGET`; the ad is made at the first question that needs it |
//! | `attributes` | what a slot publishes of its job, for policies to look at |
//! | `watch` | whether a policy has to be looked at again though nothing happens |

mod ask;
mod attributes;
mod read;
mod watch;

pub use ask::Asker;
pub(super) use ask::integer;
pub use ask::rank;
pub use attributes::{publish, running_job_ad};
pub use watch::is_polled;

use crate::pool::OnHold;
use classad::Value;

/// A question to the policy that is answered by a truth.
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
    /// `START` for the job that runs, as it is now: that of a drain where there is one.
    Start,
    /// `START` for the job of the claim that waits.
    StartNext,
    /// `RUNBENCHMARKS`, without a job.
    RunBenchmarks,
    /// `START_BACKFILL`, without a job.
    StartBackfill,
    /// `EVICT_BACKFILL`, without a job.
    EvictBackfill,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// True, or a number that is not zero.
    True,
    /// False, or zero.
    False,
    /// It depends on what is not there.
    Undefined,
    /// It cannot be evaluated, or gives no truth.
    Error,
}

impl Answer {
    /// What a value answers where a truth was asked for.
    pub fn of(value: &Value) -> Self {
        match value.as_bool_equiv() {
            Some(true) => Self::True,
            Some(false) => Self::False,
            None if value.is_undefined() => Self::Undefined,
            None => Self::Error,
        }
    }

    /// Whether the slot acts on it. Most expressions must be true for that: what is undefined or an error is not.
    pub fn is_true(self) -> bool {
        self == Self::True
    }
}

impl Question {
    /// Whether an answer means yes. `IS_OWNER` and `WANT_VACATE` must not be undefined in `HTCondor`, whose startd ends
    /// there; here the slot stays usable, and a job that is to go is asked before it is killed. A claim that waits takes
    /// the slot unless `START` refuses its job outright.
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

/// Whoever answers for a slot's policy.
pub trait Answers {
    /// The answer to a question.
    fn answer(&self, question: Question) -> Answer;

    /// `MAXJOBRETIREMENTTIME` as it is now, in seconds; none where it is no integer.
    fn retirement(&self) -> Option<i64>;

    /// The job's `MaxJobRetirementTime`, in seconds; none where it says no integer.
    fn job_retirement(&self) -> Option<i64>;

    /// The job's `JobMaxVacateTime`, or else its `KillSigTimeout`, in seconds: none where it says neither, 0 where that
    /// cannot be evaluated.
    fn job_vacate(&self) -> Option<i64>;

    /// `MachineMaxVacateTime` as it is now, in seconds.
    fn machine_vacate(&self) -> i64;

    /// `RANK` for the job of the claim.
    fn rank(&self) -> f64;

    /// How a job is held that `WANT_HOLD` holds: `WANT_HOLD_REASON` and `WANT_HOLD_SUBCODE`.
    fn hold(&self) -> OnHold;

    /// Whether the answer means yes.
    fn holds(&self, question: Question) -> bool {
        question.is_met_by(self.answer(question))
    }
}
