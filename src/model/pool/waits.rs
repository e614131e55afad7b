//! Why procs wait: what a cycle says of jobs that it left without a slot.

use std::sync::Arc;

use super::ids::JobKey;
use super::time::Time;

/// Why jobs got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectReason {
    /// No slot that is left matches the request.
    NoMatch,
    /// There are slots that match, but the submitter has had its share.
    SubmitterLimit,
    /// The submitter has reached its ceiling.
    Ceiling,
    /// One of the concurrency limits that the job names is reached.
    ConcurrencyLimit,
    /// Slots that match are in use, and `PREEMPTION_REQUIREMENTS` does not allow to take them.
    PreemptionPolicy,
    /// Slots that match are in use, by jobs that they rank higher.
    PreemptionRank,
    /// The submitter's group, or one above it, has reached its quota.
    GroupQuota,
    /// There were no slots left when its turn came.
    NoSlots,
    /// The cycle, or its submitter, had had its time.
    TimeLimit,
    /// Evaluating it, or its submitter's jobs before it, has cost what a cycle may spend on that.
    EvaluationShare,
    /// Nothing was found, and an evaluation of one of the job's own expressions was too expensive to be finished.
    TooExpensive,
}

impl RejectReason {
    /// It in one word, for conditions and statistics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoMatch | Self::NoSlots => "MachinesBusy",
            Self::SubmitterLimit => "SubmitterLimitReached",
            Self::Ceiling => "CeilingReached",
            Self::ConcurrencyLimit => "ConcurrencyLimitReached",
            Self::PreemptionPolicy => "PreemptionNotAllowed",
            Self::PreemptionRank => "PresentJobsRankHigher",
            Self::GroupQuota => "GroupQuotaReached",
            Self::TimeLimit => "TimeLimitReached",
            Self::EvaluationShare => "EvaluationShareUsedUp",
            Self::TooExpensive => "TooExpensive",
        }
    }
}

/// How much there is of something limited, how much is in use, and how much a proc takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// Whose limit: the group, the submitter, the concurrency limit.
    pub of: Arc<str>,
    /// What is in use.
    pub used: f64,
    /// What there is in all.
    pub limit: f64,
    /// What a proc takes; 0 where that depends on the slot.
    pub wants: f64,
    /// Whether there may be more for a while than `limit`: what other groups leave.
    pub may_grow: bool,
}

impl Amount {
    /// Whether a proc takes more than there is in all, so that it can never start.
    pub fn is_too_small(&self) -> bool {
        !self.may_grow && self.wants > self.limit + 1e-9 * self.limit.max(1.0)
    }
}

/// What bars waiting procs from slots of machines that could run them, with what a person needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Bar {
    /// The group, or one around it, is at its quota.
    GroupQuota(Amount),
    /// Jobs of no group wait for what no group's quota reserves.
    NoGroup,
    /// The submitter, or its owner, is at the ceiling.
    Ceiling(Amount),
    /// A concurrency limit is reached; which of them is not known where that depends on the machine.
    ConcurrencyLimit(Option<Amount>),
    /// The machines that match are busy.
    Busy {
        /// The submitter whose turn is first among those who wait for the same.
        first: Option<Arc<str>>,
        /// Nodes that offer nothing for a while, and why.
        withheld: Option<Arc<str>>,
    },
    /// The machines that match keep their present jobs.
    Kept {
        /// By which expression: PREEMPTION_REQUIREMENTS or RANK.
        reason: RejectReason,
        /// Whose expression it is: `Negotiator default`, `NodePolicy desktops`; none where it is the default.
        by: Option<Arc<str>>,
    },
    /// Anything else: the reason says all there is.
    Other(RejectReason),
}

impl Bar {
    /// What keeps the procs waiting, in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::GroupQuota(amount) if amount.is_too_small() => "GroupQuotaTooSmall",
            Self::Ceiling(amount) if amount.is_too_small() => "CeilingTooSmall",
            Self::ConcurrencyLimit(Some(amount)) if amount.is_too_small() => "ConcurrencyLimitTooSmall",
            Self::GroupQuota(_) | Self::NoGroup => RejectReason::GroupQuota.word(),
            Self::Ceiling(_) => RejectReason::Ceiling.word(),
            Self::ConcurrencyLimit(_) => RejectReason::ConcurrencyLimit.word(),
            Self::Busy { .. } => RejectReason::NoMatch.word(),
            Self::Kept { reason, .. } | Self::Other(reason) => reason.word(),
        }
    }

    /// Whose limit it is: the concurrency limit, the group, the submitter.
    pub fn of(&self) -> Option<Arc<str>> {
        match self {
            Self::GroupQuota(amount) | Self::Ceiling(amount) | Self::ConcurrencyLimit(Some(amount)) => {
                Some(Arc::clone(&amount.of))
            }
            Self::NoGroup => Some("<none>".into()),
            Self::ConcurrencyLimit(None) | Self::Busy { .. } | Self::Kept { .. } | Self::Other(_) => None,
        }
    }

    /// Whether the procs can never start as things are.
    pub fn is_for_ever(&self) -> bool {
        match self {
            Self::GroupQuota(amount) | Self::Ceiling(amount) | Self::ConcurrencyLimit(Some(amount)) => {
                amount.is_too_small()
            }
            Self::NoGroup
            | Self::ConcurrencyLimit(None)
            | Self::Busy { .. }
            | Self::Kept { .. }
            | Self::Other(_) => false,
        }
    }
}

/// What procs of a job wait for that some machine could run.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// What bars them.
    pub bar: Bar,
    /// Since when that is said.
    pub since: Time,
}

/// Whose expression keeps a job from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The job's Requirements.
    Job,
    /// The machine's: START and what else it requires of jobs.
    Machine,
}

/// A clause of Requirements that is not true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedClause {
    /// Whose.
    pub side: Side,
    /// Its text, cut where it is very long.
    pub text: Arc<str>,
    /// On how many of the slots looked at.
    pub slots: usize,
}

/// How far the explanation of a job has come that takes more than one cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explaining {
    /// What [`Pool::offers`](super::Pool::offers) was at its beginning: it begins again once machines offer something else.
    pub by: u64,
    /// How many slots have been looked at, and do not match.
    pub slots: usize,
    /// The clauses that fail on them.
    pub clauses: Vec<FailedClause>,
    /// The slot that is nearest to a match, and how far it is.
    pub nearest: Option<(usize, usize)>,
    /// Slots that match, of machines that offer nothing now.
    pub withheld: Vec<usize>,
}

/// Jobs that a cycle left without a slot for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The reason in one word: that of the condition `Matchable` of the jobs.
    pub reason: &'static str,
    /// Whose it is: a concurrency limit, a group, a submitter, a clause, a field.
    pub of: Option<Arc<str>>,
    /// How many jobs.
    pub jobs: u64,
    /// How many procs of theirs.
    pub procs: u64,
    /// One of them: the first.
    pub example: JobKey,
    /// The clauses that keep that one from all machines.
    pub clauses: Arc<[FailedClause]>,
}

/// Why a cycle left jobs without a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// The reasons that most procs wait for, these first. Bounded.
    pub reasons: Vec<Rejected>,
    /// Procs that wait for others.
    pub other_procs: u64,
}
