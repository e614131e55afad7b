//! Why procs wait: the reasons that a cycle gives for jobs that it left without a slot.

use std::sync::Arc;

use super::ids::JobKey;
use super::time::Time;

/// Why a job got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectReason {
    /// No slot that is left matches the request.
    NoMatch,
    /// Slots match, but the submitter has used up its share.
    SubmitterLimit,
    /// The submitter has reached its ceiling.
    Ceiling,
    /// A concurrency limit that the job takes is reached.
    ConcurrencyLimit,
    /// The slots that match are in use, and `PREEMPTION_REQUIREMENTS` is not true for them.
    PreemptionPolicy,
    /// The slots that match are in use by jobs that the slots rank higher.
    PreemptionRank,
    /// The submitter's group, or a group around it, has reached its quota.
    GroupQuota,
    /// No slots were left when the submitter's turn came.
    NoSlots,
    /// The cycle, or the submitter, has used up its time.
    TimeLimit,
    /// The job, or the submitter's jobs before it, has used up the evaluation steps that a cycle grants.
    EvaluationShare,
    /// No slot was found, and an evaluation of one of the job's own expressions took too many steps to finish.
    TooExpensive,
}

impl RejectReason {
    /// The reason in one word, for conditions and statistics.
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

/// The state of a limit: how much there is, how much is in use, and how much a proc takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// Whose limit it is: the name of the group, the submitter or the concurrency limit.
    pub of: Arc<str>,
    /// How much is in use.
    pub used: f64,
    /// How much there is in all.
    pub limit: f64,
    /// How much a proc takes; 0 if that depends on the slot.
    pub wants: f64,
    /// Whether more than `limit` may be available for a while, because other groups leave a part of their quotas.
    pub may_grow: bool,
    /// How much the groups inside a group have of its quota; `limit` is what they leave. 0 if the limit is no group's, or is
    /// that of a group together with the groups inside it.
    pub inside: f64,
}

impl Amount {
    /// Whether one proc takes more than the whole limit, so that it can never start.
    pub fn is_too_small(&self) -> bool {
        !self.may_grow && self.wants > self.limit + 1e-9 * self.limit.max(1.0)
    }
}

/// A bar that keeps waiting procs from slots of machines that could run them, with the details that a person needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Bar {
    /// The group, or one around it, is at its quota.
    GroupQuota(Amount),
    /// The job belongs to no group, and the quotas of groups reserve all that is left.
    NoGroup,
    /// The submitter, or its owner, has reached the ceiling.
    Ceiling(Amount),
    /// A concurrency limit is reached; `None` if it depends on the machine which limit.
    ConcurrencyLimit(Option<Amount>),
    /// The machines that match are busy.
    Busy {
        /// The submitter whose turn comes first among those who wait for the same machines.
        first: Option<Arc<str>>,
        /// Nodes that offer nothing for the moment, and why.
        withheld: Option<Arc<str>>,
    },
    /// The machines that match keep their present jobs.
    Kept {
        /// The expression that decides so: PREEMPTION_REQUIREMENTS or RANK.
        reason: RejectReason,
        /// The object that sets the expression, such as `Negotiator default` or `NodePolicy desktops`; `None` if it is
        /// HTCondor's default.
        by: Option<Arc<str>>,
    },
    /// Any other reason, which needs no details.
    Other(RejectReason),
}

impl Bar {
    /// The reason in one word.
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

    /// Whether the procs can never start under the present limits.
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

/// The bar that keeps procs of a job waiting although some machine could run the job, and since when.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// The bar that keeps the procs waiting.
    pub bar: Bar,
    /// Since when that has been so.
    pub since: Time,
}

/// The side whose expression keeps a job from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The job's Requirements.
    Job,
    /// The machine's Requirements: START and the other clauses.
    Machine,
}

/// A clause of Requirements that is not true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedClause {
    /// The side whose clause it is.
    pub side: Side,
    /// The clause's text, shortened if it is very long.
    pub text: Arc<str>,
    /// On how many of the inspected slots the clause fails.
    pub slots: usize,
}

/// The progress of an explanation that takes more than one cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explaining {
    /// The value of [`Pool::offers`](super::Pool::offers) when the explanation began.
    pub by: u64,
    /// A hash of the names of the slots. If the pool has other slots meanwhile, the explanation begins again.
    pub list: u64,
    /// How many slots were inspected and do not match.
    pub slots: usize,
    /// The clauses that fail on these slots.
    pub clauses: Vec<FailedClause>,
    /// The slot that is nearest to a match, and its distance.
    pub nearest: Option<(usize, usize)>,
    /// Slots that match, but whose machines offer nothing now.
    pub withheld: Vec<usize>,
}

/// Jobs that a cycle left without a slot for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The reason in one word, as in the condition `Matchable` of the jobs.
    pub reason: &'static str,
    /// The subject of the reason: a concurrency limit, a group, a submitter, a clause or a field.
    pub of: Option<Arc<str>>,
    /// How many jobs have this reason.
    pub jobs: u64,
    /// How many procs of these jobs wait.
    pub procs: u64,
    /// The first of these jobs, as an example.
    pub example: JobKey,
    /// The clauses that keep the example from all machines.
    pub clauses: Arc<[FailedClause]>,
}

/// Why a cycle left jobs without a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// The reasons, those of most procs first. The number is bounded.
    pub reasons: Vec<Rejected>,
    /// How many procs wait for other reasons.
    pub other_procs: u64,
}
