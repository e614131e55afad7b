//! Input and output of a negotiation.

use super::allocation::Allocations;
use super::config::Config;
use super::groups::GroupInput;
use super::limits::LimitBook;
use super::ready::Ready;
use super::round::Round;
use super::time_limits::Watch;
use std::sync::Arc;

pub use crate::pool::RejectReason;
use crate::pool::slot_types::RequestPolicy;
use classad::{Ad, Env};

/// All that a negotiation depends on.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The time, in seconds since 1970: what `time()` answers in expressions.
    pub now: i64,
    /// Where random numbers in expressions start.
    pub seed: u64,
    /// The knobs.
    pub config: Config,
    /// The slots to match. Their order decides where ranks are equal.
    pub slots: Vec<Candidate>,
    /// Everybody who has jobs that wait or uses slots. Entries of the same name share usage and have one
    /// share of the pie. Who uses slots and has no jobs that wait counts in the first spin, as in HTCondor.
    pub submitters: Vec<SubmitterInput>,
    /// Who uses slots and is not served in this cycle: expressions look at them all the same.
    pub others: Vec<SubmitterInput>,
    /// The accounting groups, each parent before its children; without any there are no quotas at all.
    pub groups: Vec<GroupInput>,
    /// The slot weight that submitters of no group use. It matters only where there are groups.
    pub ungrouped_used: f64,
    /// The weight of all slots of the pool, those in use included: the pie.
    pub pool_weight: f64,
    /// The concurrency limits, with what runs now.
    pub limits: LimitBook,
}

impl Cycle {
    /// What expressions are evaluated in.
    pub(super) fn env(&self) -> Env {
        Env { seed: self.seed, ..Env::at(self.now) }
    }
}

/// A slot that may be matched. One whose ad names a user (`RemoteUser`, `AccountingGroup`, `PreemptingUser` or
/// `PreemptingAccountingGroup`) is in use: to be had by preemption only.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The slot's ad.
    pub ad: Ad,
    /// What it costs: the value of `SLOT_WEIGHT`. Negative or no number counts as 1, as in HTCondor.
    pub weight: f64,
    /// How the requests of jobs become what a match takes of it, if it is partitionable and has no consumption policy. None:
    /// by the defaults of `MODIFY_REQUEST_EXPR_*`.
    pub carving: Option<Arc<RequestPolicy>>,
    /// The place in [`Cycle::slots`] of the partitionable slot that it was carved from, if it is dynamic. With
    /// `ALLOW_PSLOT_PREEMPTION` a dynamic slot is preempted for a match with that, and in no other way.
    pub parent: Option<usize>,
}

impl Candidate {
    /// A slot of this weight.
    pub fn new(ad: Ad, weight: f64) -> Self {
        Self { ad, weight, carving: None, parent: None }
    }
}

/// Somebody who has jobs that wait or uses slots.
#[derive(Clone, Debug, Default)]
pub struct SubmitterInput {
    /// The accountant's name: who is charged.
    pub name: String,
    /// The effective priority: lower is better. Less than 0.5 counts as 0.5.
    pub effective_priority: f64,
    /// The slot weight that this name uses now.
    pub weighted_used: f64,
    /// How many slots this name uses now. It matters only without `NEGOTIATOR_USE_WEIGHTED_DEMAND`.
    pub running: u64,
    /// The slot weight that it may use before anybody else takes their share.
    pub floor: Option<f64>,
    /// The most slot weight that it may use.
    pub ceiling: Option<f64>,
    /// Its place among the groups; none for those of no group.
    pub group: Option<usize>,
    /// What it asks for, in the order in which it wants it. Jobs that any slot treats alike (an
    /// autocluster) are one request.
    pub requests: Vec<Request>,
}

impl SubmitterInput {
    /// The ad that a schedd sends of its submitter, as far as there is one here: what `NEGOTIATOR_SUBMITTER_CONSTRAINT` looks at.
    pub fn ad(&self) -> Ad {
        let idle = self.requests.iter().fold(0_u64, |sum, request| sum.saturating_add(request.count));
        let mut ad = Ad::new();
        ad.set("MyType", "Submitter");
        ad.set("Name", self.name.as_str());
        ad.set("IdleJobs", i64::try_from(idle).unwrap_or(i64::MAX));
        ad.set("RunningJobs", i64::try_from(self.running).unwrap_or(i64::MAX));
        ad.set("WeightedRunningJobs", self.weighted_used);
        ad
    }
}

/// Jobs that any slot treats alike.
#[derive(Clone, Debug)]
pub struct Request {
    /// The ad of one of them.
    pub ad: Ad,
    /// How many there are.
    pub count: u64,
}

/// What a negotiation came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The matches, in the order in which they were made. No slot is in two, but for partitionable ones.
    pub matches: Vec<Match>,
    /// Why jobs are left without a match: one for each request of which jobs are left, in input order.
    pub rejections: Vec<Rejection>,
    /// What the groups were given; none where there are no groups.
    pub allocations: Option<Allocations>,
    /// What there was to do.
    pub stats: Stats,
}

/// A slot for one job of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The place of the submitter in [`Cycle::submitters`].
    pub submitter: usize,
    /// The place of the request in [`SubmitterInput::requests`].
    pub request: usize,
    /// The place of the slot in [`Cycle::slots`].
    pub slot: usize,
    /// What the match costs the submitter.
    pub cost: f64,
    /// Whom it throws out.
    pub preempt: PreemptState,
    /// Whether it was made in the root's turn for one of a group: by `GROUP_AUTOREGROUP`.
    pub regrouped: bool,
    /// The places of the dynamic slots that are preempted for a match with their partitionable slot; none otherwise.
    pub dynamic: Vec<usize>,
}

/// Why a slot can be had. The later of these is preferred where ranks are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptState {
    /// The job's submitter has the better priority than the one whose job runs there.
    Priority,
    /// The slot ranks the job higher than the one that runs there.
    Rank,
    /// Nobody uses it.
    None,
}

/// Jobs of a request that got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The place of the submitter in [`Cycle::submitters`].
    pub submitter: usize,
    /// The place of the request in [`SubmitterInput::requests`].
    pub request: usize,
    /// How many of its jobs are left.
    pub left: u64,
    /// Why, at the last time that the negotiator dealt with them.
    pub reason: RejectReason,
}

/// What a negotiation had to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Slots handed in.
    pub slots: usize,
    /// Submitters that had jobs.
    pub submitters: usize,
    /// Jobs that waited.
    pub jobs: u64,
    /// Requests that were looked at, each time anew.
    pub requests_considered: u64,
    /// Pairs of slot and request that were tested.
    pub pairs_considered: u64,
    /// The pies, one for each spin of each group.
    pub pies: Vec<Pie>,
}

/// How a spin divided the pie.
#[derive(Clone, Debug, PartialEq)]
pub struct Pie {
    /// The group; none for those of no group.
    pub group: Option<usize>,
    /// Which of the group's spins, from 1.
    pub spin: u32,
    /// The slot weight that was divided, what is in use included.
    pub weight: f64,
    /// What all together could still take at the start.
    pub left: f64,
    /// The slices, in the order of the turns.
    pub slices: Vec<Slice>,
}

/// A submitter's slice of a pie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The place of the submitter in [`Cycle::submitters`].
    pub submitter: usize,
    /// Its share, 0 to 1.
    pub share: f64,
    /// The slot weight that it could still take.
    pub limit: f64,
}

/// Matches slots to jobs. The same input gives the same outcome. It takes as long as it takes.
///
/// First those take who are below their floor. Then, group after group, and in each spin after spin, the pie is divided among
/// those who have jobs, by the inverse of their effective priorities; in order of priority each takes its slice, each job the slot it
/// and the pool like best. What nobody took is divided again, until nobody can or wants to take more.
///
/// Source: HTCondor manual, "The Negotiation Cycle"; `matchmaker.cpp` for what the manual leaves out.
pub fn negotiate(cycle: &Cycle) -> Outcome {
    negotiate_with(cycle, &mut Ready::default(), Watch::STOPPED)
}

/// As [`negotiate`], for slots of which some were made ready in cycles before: the outcome is the same; unless the watch shows
/// that it takes longer than `NEGOTIATOR_MAX_TIME_PER_*` allow.
pub fn negotiate_with(cycle: &Cycle, ready: &mut Ready, watch: Watch<'_>) -> Outcome {
    Round::new(cycle, ready, watch).run(ready)
}
