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
            Self::NoMatch => "MachinesBusy",
            Self::SubmitterLimit => "SubmitterLimitReached",
            Self::Ceiling => "CeilingReached",
            Self::ConcurrencyLimit => "ConcurrencyLimitReached",
            Self::PreemptionPolicy => "PreemptionNotAllowed",
            Self::PreemptionRank => "PresentJobsRankHigher",
            Self::GroupQuota => "GroupQuotaReached",
            Self::NoSlots => "NoSlotsLeft",
            Self::TimeLimit => "TimeLimitReached",
            Self::EvaluationShare => "EvaluationShareUsedUp",
            Self::TooExpensive => "TooExpensive",
        }
    }
}

/// What procs of a job wait for that some machine could run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// What bars them.
    pub reason: RejectReason,
    /// Whose it is: the concurrency limit, the group, the submitter; none where the reason needs none, or where it depends
    /// on the machine.
    pub of: Option<Arc<str>>,
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
