//! Input and output of a negotiation.

use super::allocation::Allocations;
use super::config::Config;
use super::groups::GroupInput;
use super::limits::LimitBook;
use super::negotiation::Negotiation;
use super::ready::Ready;
use super::time_limits::Stopwatch;
use std::sync::Arc;

pub use crate::pool::RejectReason;
use crate::pool::slot_types::{Consumption, RequestPolicy};
use classad::{Ad, Env};

/// All that a negotiation depends on.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The time, in seconds since 1970: what `time()` answers in expressions.
    pub now: i64,
    /// The seed of `random()` in expressions.
    pub seed: u64,
    /// The knobs.
    pub config: Config,
    /// The slots to match. Among slots with equal ranks, the first in this order is preferred.
    pub slots: Vec<Candidate>,
    /// All submitters that have waiting jobs or use slots. Entries of the same name share usage and have one
    /// share of the pie. A submitter that uses slots and has no waiting jobs counts in the first spin, as in HTCondor.
    pub submitters: Vec<SubmitterInput>,
    /// Submitters that use slots and are not served in this cycle. Policy expressions can still read their priorities and usage.
    pub others: Vec<SubmitterInput>,
    /// The owners that have ceilings.
    pub owners: Vec<OwnerInput>,
    /// The accounting groups, each parent before its children. If there are none, there are no quotas.
    pub groups: Vec<GroupInput>,
    /// The slot weight that submitters of no group use. The negotiator reads this weight only if there are groups.
    pub ungrouped_used: f64,
    /// The weight of all slots of the pool, those in use included: the pie.
    pub pool_weight: f64,
    /// The concurrency limits, with what runs now.
    pub limits: LimitBook,
}

impl Cycle {
    /// The environment in which expressions are evaluated.
    pub fn env(&self) -> Env {
        Env { seed: self.seed, ..Env::at(self.now) }
    }
}

/// A slot that may be matched. A slot whose ad names a user (`RemoteUser`, `AccountingGroup`, `PreemptingUser` or
/// `PreemptingAccountingGroup`) is in use: a job gets such a slot by preemption only.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The slot's ad.
    pub ad: Ad,
    /// The cost of a match with the slot: the value of `SLOT_WEIGHT`. A negative weight or NaN counts as 1, as in HTCondor.
    pub weight: f64,
    /// How much a match takes of a partitionable slot that has no consumption policy, given the job's request. If unset, the
    /// defaults of `MODIFY_REQUEST_EXPR_*` say how much.
    pub carving: Option<Arc<RequestPolicy>>,
    /// For a dynamic slot, the place in [`Cycle::slots`] of the partitionable slot that it was carved from. With
    /// `ALLOW_PSLOT_PREEMPTION` a dynamic slot is preempted only for a match with that partitionable slot.
    pub parent: Option<usize>,
    /// For a partitionable slot, how much more its dynamic slots hold than there is. When dynamic slots return resources,
    /// this amount of them is not offered to anybody. HTCondor's machines do not shrink; a node does, when pods outside
    /// the pool take a part of the node.
    pub overdrawn: Consumption,
}

impl Candidate {
    /// A slot of this weight.
    pub fn new(ad: Ad, weight: f64) -> Self {
        Self { ad, weight, carving: None, parent: None, overdrawn: Consumption::new() }
    }
}

/// An owner with a ceiling, which all submitters of the owner keep together, whatever groups they charge. HTCondor knows
/// ceilings of submitters only.
#[derive(Clone, Debug)]
pub struct OwnerInput {
    /// The owner's name.
    pub name: String,
    /// The slot weight that all submitters of the owner use now.
    pub weighted_used: f64,
    /// The most slot weight that they may use together.
    pub ceiling: f64,
}

/// A submitter that has waiting jobs or uses slots.
#[derive(Clone, Debug, Default)]
pub struct SubmitterInput {
    /// The name under which the accountant charges the submitter.
    pub name: String,
    /// The effective priority: lower is better. Less than 0.5 counts as 0.5.
    pub effective_priority: f64,
    /// The slot weight that this name uses now.
    pub weighted_used: f64,
    /// How many slots this name uses now. The number is read only without `NEGOTIATOR_USE_WEIGHTED_DEMAND`.
    pub running: u64,
    /// The slot weight up to which the submitter is served before all shares of the pie.
    pub floor: Option<f64>,
    /// The most slot weight that the submitter may use.
    pub ceiling: Option<f64>,
    /// The place in [`Cycle::owners`] of the submitter's owner, whose ceiling counts too; none if the owner has no ceiling.
    pub owner: Option<usize>,
    /// The place of the submitter's group in [`Cycle::groups`]; none if the submitter is in no group.
    pub group: Option<usize>,
    /// The submitter's requests, the most wanted first. The operator makes one request for each job, and one for each spec that procs of
    /// the job have of their own; `slotwright negotiate` joins all jobs that every slot treats alike (an autocluster).
    pub requests: Vec<Request>,
}

impl SubmitterInput {
    /// The ad in which `NEGOTIATOR_SUBMITTER_CONSTRAINT` is evaluated: of the attributes in the submitter ads that HTCondor's
    /// schedds send, those that are known here.
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

/// Jobs that every slot treats alike.
#[derive(Clone, Debug)]
pub struct Request {
    /// The ad of one of them.
    pub ad: Ad,
    /// How many there are.
    pub count: u64,
}

/// The result of a negotiation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The matches, in the order in which they were made. Only a partitionable slot can be in several matches.
    pub matches: Vec<Match>,
    /// Why jobs are left without a match: one entry for each request of which jobs are left, in input order.
    pub rejections: Vec<Rejection>,
    /// How much of the pool each group was given; none if there are no groups.
    pub allocations: Option<Allocations>,
    /// How much work the negotiation was.
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
    /// The slot weight that the submitter is charged for the match.
    pub cost: f64,
    /// Why the job may have the slot.
    pub preempt: PreemptState,
    /// Whether a group's submitter got the match in the root's turn, by `GROUP_AUTOREGROUP`.
    pub regrouped: bool,
    /// The places of the dynamic slots that are preempted for this match with their partitionable slot; usually empty.
    pub dynamic: Vec<usize>,
}

/// Why a job may have a slot. Among slots with equal ranks, the slot whose state is later in this list is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptState {
    /// The slot is in use, and the job's submitter has a better priority than the submitter of the job that runs there.
    Priority,
    /// The slot is in use, and ranks the job higher than the job that runs there.
    Rank,
    /// The slot is not in use.
    None,
}

/// Jobs of a request that got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The place of the submitter in [`Cycle::submitters`].
    pub submitter: usize,
    /// The place of the request in [`SubmitterInput::requests`].
    pub request: usize,
    /// How many of the request's jobs are left without a match.
    pub left: u64,
    /// Why, the last time that the negotiator considered the request.
    pub reason: RejectReason,
}

/// How much work a negotiation was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// How many slots the cycle had.
    pub slots: usize,
    /// How many submitters had waiting jobs.
    pub submitters: usize,
    /// How many jobs waited.
    pub jobs: u64,
    /// How often a request was considered; a request counts again each time.
    pub requests_considered: u64,
    /// How many pairs of slot and request were tested.
    pub pairs_considered: u64,
    /// How the pie was divided in each spin of each group.
    pub pies: Vec<Pie>,
}

/// How a spin divided the pie.
#[derive(Clone, Debug, PartialEq)]
pub struct Pie {
    /// The place of the group in [`Cycle::groups`]; none for the root.
    pub group: Option<usize>,
    /// The number of the spin among the group's spins, from 1.
    pub spin: u32,
    /// Whether submitters took up to their floors in this spin, and not up to their slices.
    pub floors: bool,
    /// The slot weight that was divided, including what is in use.
    pub weight: f64,
    /// The slot weight that all submitters together could still take when the spin began.
    pub left: f64,
    /// The slices, in the order of the submitters' turns.
    pub slices: Vec<Slice>,
}

/// A submitter's slice of a pie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The place of the submitter in [`Cycle::submitters`].
    pub submitter: usize,
    /// The submitter's share of the pie, 0 to 1.
    pub share: f64,
    /// The slot weight that the submitter could still take.
    pub limit: f64,
}

/// Matches slots to jobs. The same input gives the same outcome. There is no time limit.
///
/// First, submitters below their floor take slots up to it. Then the groups have their turns. In each spin of a group's turn, the
/// pie is divided among the submitters that have jobs, by the inverse of their effective priorities. In the order of priority,
/// each submitter takes its slice; each job takes the slot that the job and the pool rank highest. The rest of the pie is divided
/// again in the next spin, until no submitter can or wants to take more.
///
/// Source: HTCondor manual, "The Negotiation Cycle"; `matchmaker.cpp` for what the manual leaves out.
pub fn negotiate(cycle: &Cycle) -> Outcome {
    negotiate_with(cycle, &mut Ready::default(), Stopwatch::STOPPED)
}

/// Matches slots to jobs like [`negotiate`], but uses slots that earlier cycles prepared, and ends turns early once `stopwatch`
/// shows that a limit of `NEGOTIATOR_MAX_TIME_PER_*` is reached. If none is reached, the outcome is that of [`negotiate`].
pub fn negotiate_with(cycle: &Cycle, ready: &mut Ready, stopwatch: Stopwatch<'_>) -> Outcome {
    Negotiation::new(cycle, ready, stopwatch).run(ready)
}
