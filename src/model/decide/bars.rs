//! Says what keeps jobs waiting that a cycle left without a slot: the negotiator's reason, with the amounts and names
//! that a person needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Negotiation;
use crate::negotiator::groups::GroupInput;
use crate::negotiator::limits::Wants;
use crate::negotiator::{Cycle, Outcome, RejectReason, Rejection, SubmitterInput};
use crate::pool::{
    Amount, Bar, Job, Machine, MachineSlot, Matchable, NegotiatorId, Offer, Pool, Request, Resources,
    StartdConfig,
};
use crate::startd::{slot_weight, unclaimed_slot_ad};
use classad::Env;

/// The most slots for which the weight of a proc is computed.
const MOST_WEIGHING: usize = 50;

/// The most nodes that a message names.
const NAMED: usize = 2;

/// The values that are computed once in a cycle, for all its jobs.
pub(super) struct Bars<'a> {
    pool: &'a Pool,
    cycle: &'a Cycle,
    negotiator: &'a NegotiatorId,
    /// The NodePolicies that have a RANK, as part of a sentence.
    ranking: Option<Arc<str>>,
    /// The slot weight that each submitter uses, including the cycle's matches.
    used: Vec<f64>,
    /// The slot weight that the submitters of each group use, and that all submitters of the group and of the groups inside it use.
    used_by_groups: Vec<(f64, f64)>,
    /// The slot weight that the cycle's matches give to the submitters of each owner.
    taken_by_owners: Vec<f64>,
    /// The submitter of the best priority in each group, of those that wait for busy nodes.
    first: BTreeMap<Option<usize>, usize>,
    /// Nodes that offer nothing for the moment, and why.
    withheld: Option<Arc<str>>,
    /// The slots of one machine for each configuration that a machine has. Empty if slots weigh their CPUs on every
    /// machine.
    weighing: Vec<Weighing<'a>>,
}

/// A slot, with the configuration that sets its weight.
struct Weighing<'a> {
    machine: &'a Machine,
    slot: &'a MachineSlot,
    config: Arc<StartdConfig>,
}

impl<'a> Bars<'a> {
    pub(super) fn of(pool: &'a Pool, negotiation: &'a Negotiation, outcome: &Outcome) -> Self {
        let cycle = &negotiation.cycle;
        let mut used: Vec<f64> = cycle.submitters.iter().map(|submitter| submitter.weighted_used).collect();
        for found in &outcome.matches {
            if let Some(used) = used.get_mut(found.submitter) {
                *used += found.cost;
            }
        }
        let busy = |rejection: &&Rejection| {
            matches!(rejection.reason, RejectReason::NoMatch | RejectReason::NoSlots)
        };
        // A submitter whose jobs could run on no machine has no turn.
        let possible = |rejection: &&Rejection| {
            let job = negotiation.job(rejection.submitter, rejection.request);
            let job = job.and_then(|uid| pool.jobs().get(uid));
            job.is_some_and(|job| !matches!(job.matchable, Matchable::No(_)))
        };
        let waiting = outcome.rejections.iter().filter(busy).filter(possible);
        let turns: BTreeSet<usize> = waiting.map(|rejection| rejection.submitter).collect();
        let mut turns: Vec<(usize, &SubmitterInput)> =
            turns.into_iter().filter_map(|place| Some((place, cycle.submitters.get(place)?))).collect();
        turns.sort_by(|(_, a), (_, b)| a.effective_priority.total_cmp(&b.effective_priority));
        let mut first = BTreeMap::new();
        for (place, input) in turns {
            first.entry(input.group).or_insert(place);
        }
        let (used_by_groups, taken_by_owners) = (used_by_groups(cycle, &used), taken_by_owners(cycle, &used));
        let negotiator = &negotiation.negotiator;
        let (ranking, withheld, weighing) = (ranking(pool), withheld(pool), weighing(pool));
        Self {
            pool,
            cycle,
            negotiator,
            ranking,
            used,
            used_by_groups,
            taken_by_owners,
            first,
            withheld,
            weighing,
        }
    }

    /// The bar that keeps the procs of a job waiting.
    pub(super) fn bar(&self, rejection: &Rejection, job: &Job) -> Option<Bar> {
        let submitter = self.cycle.submitters.get(rejection.submitter)?;
        Some(match rejection.reason {
            RejectReason::ConcurrencyLimit => Bar::ConcurrencyLimit(self.limit(job)),
            RejectReason::GroupQuota => {
                submitter.group.and_then(|group| self.quota(group, job)).map_or(Bar::NoGroup, Bar::GroupQuota)
            }
            RejectReason::Ceiling => {
                self.ceiling(rejection.submitter, job).map_or(Bar::Other(rejection.reason), Bar::Ceiling)
            }
            RejectReason::NoMatch | RejectReason::NoSlots => {
                Bar::Busy { first: self.first(submitter.group), withheld: self.withheld.clone() }
            }
            RejectReason::TimeLimit
            | RejectReason::EvaluationShare
            | RejectReason::TooExpensive
            | RejectReason::SubmitterLimit => Bar::Other(rejection.reason),
            RejectReason::PreemptionPolicy => {
                let by = self.negotiator.name().map(|name| format!("Negotiator {name}").into());
                Bar::Kept { reason: rejection.reason, by }
            }
            RejectReason::PreemptionRank => Bar::Kept { reason: rejection.reason, by: self.ranking.clone() },
        })
    }

    /// The submitter of the best priority, of those in the group that wait for busy nodes.
    fn first(&self, group: Option<usize>) -> Option<Arc<str>> {
        let input = self.cycle.submitters.get(*self.first.get(&group)?)?;
        Some(input.name.as_str().into())
    }

    /// The concurrency limit that keeps a job waiting; `None` if it depends on the machine which limit.
    fn limit(&self, job: &Job) -> Option<Amount> {
        let wants = Wants::on_any_slot(&job.spec.as_ref()?.ad, &Env::at(self.cycle.now))?;
        let book = self.pool.holdings().book();
        let name = book.blocked(&wants)?;
        Some(Amount {
            of: name.into(),
            used: book.tally(name).amount,
            limit: book.capacities().of(name),
            wants: wants.amount(name),
            may_grow: false,
            inside: 0.0,
        })
    }

    /// The quota that keeps a job waiting: that of its group or of a group around it, whichever has less left.
    fn quota(&self, group: usize, job: &Job) -> Option<Amount> {
        let wants = self.by_cpus(job);
        let amount = |place: usize, own: bool| {
            let (input, used) = (self.cycle.groups.get(place)?, self.used_by_groups.get(place)?);
            let limit = if own { input.quota } else { input.subtree_quota };
            let inside = input.subtree_quota - limit;
            let may_grow = input.accept_surplus || input.autoregroup || inside > 0.0;
            Some(Amount {
                of: input.name.as_str().into(),
                used: if own { used.0 } else { used.1 },
                limit,
                wants,
                may_grow,
                inside,
            })
        };
        // A group gets the part of its quota that the groups inside the group do not use. So only the whole quota may be too small for ever.
        let whole = amount(group, false)?;
        let mut least = if whole.is_too_small() { whole } else { amount(group, true)? };
        let mut next = Some(group);
        while let Some(place) = next {
            if let Some(around) = amount(place, false)
                && around.limit - around.used < least.limit - least.used
            {
                least = around;
            }
            next = self.cycle.groups.get(place).and_then(|input: &GroupInput| input.parent);
        }
        Some(self.by_policy(least, job))
    }

    /// The ceiling that keeps a submitter waiting: its own or its owner's, whichever has less left.
    fn ceiling(&self, submitter: usize, job: &Job) -> Option<Amount> {
        let input = self.cycle.submitters.get(submitter)?;
        let wants = self.by_cpus(job);
        let amount = |of: &str, used: f64, limit: f64| Amount {
            of: of.into(),
            used,
            limit,
            wants,
            may_grow: false,
            inside: 0.0,
        };
        let used = self.used.get(submitter).copied().unwrap_or_default();
        let own = input.ceiling.map(|ceiling| amount(&input.name, used, ceiling));
        let owner = input.owner.and_then(|owner| {
            let account = self.cycle.owners.get(owner)?;
            let taken = self.taken_by_owners.get(owner)?;
            Some(amount(&account.name, account.weighted_used + taken, account.ceiling))
        });
        let left = |amount: &Amount| amount.limit - amount.used;
        let least = match (own, owner) {
            (Some(own), Some(owner)) => Some(if left(&owner) <= left(&own) { owner } else { own }),
            (own, owner) => own.or(owner),
        };
        least.map(|least| self.by_policy(least, job))
    }

    /// Corrects what a proc takes of a limit if policies set the weight of slots. The amount is then the least that the
    /// proc may take on any machine, and is only reported if even that is more than the whole limit.
    fn by_policy(&self, mut amount: Amount, job: &Job) -> Amount {
        if self.cycle.config.use_slot_weights && !self.weighing.is_empty() {
            // The policies are evaluated only if the proc's CPUs are already too many: many jobs may wait for one
            // quota.
            let known = amount.is_too_small() && self.weighing.len() <= MOST_WEIGHING;
            amount.wants = if known { self.least_weight(job) } else { 0.0 };
            if !amount.is_too_small() {
                amount.wants = 0.0;
            }
        }
        amount
    }

    /// The least weight that any slot has, by the policies, with the resources that a job requests.
    fn least_weight(&self, job: &Job) -> f64 {
        let Some(spec) = &job.spec else { return 0.0 };
        let Request { cpus, memory_mib, disk_kib, .. } = spec.request;
        let asked = Resources { cpus, memory_mib, disk_kib, ..Resources::default() };
        let weights = self.weighing.iter().map(|Weighing { machine, slot, config }| {
            let ad = unclaimed_slot_ad(machine, slot, config);
            slot_weight(&ad, &asked, machine.slot_config(config, slot.id), &Env::at(self.cycle.now))
        });
        weights.fold(f64::INFINITY, f64::min)
    }

    /// The weight of a proc, if no policy sets the weight of slots.
    fn by_cpus(&self, job: &Job) -> f64 {
        let Some(spec) = &job.spec else { return 0.0 };
        if !self.cycle.config.use_slot_weights {
            return 1.0;
        }
        u32::try_from(spec.request.cpus).map_or(0.0, f64::from)
    }
}

/// The slot weight that the submitters of each group use, and that all submitters of the group and of the groups inside it use.
fn used_by_groups(cycle: &Cycle, used: &[f64]) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); cycle.groups.len()];
    for (input, used) in cycle.submitters.iter().zip(used) {
        if let Some((own, all)) = input.group.and_then(|group| sums.get_mut(group)) {
            *own += used;
            *all += used;
        }
    }
    // Each parent stands before its children.
    for (place, input) in cycle.groups.iter().enumerate().rev() {
        let all = sums.get(place).map_or(0.0, |(_, all)| *all);
        if let Some((_, around)) = input.parent.and_then(|parent| sums.get_mut(parent)) {
            *around += all;
        }
    }
    sums
}

/// The slot weight that the cycle's matches give to the submitters of each owner.
fn taken_by_owners(cycle: &Cycle, used: &[f64]) -> Vec<f64> {
    let mut taken = vec![0.0; cycle.owners.len()];
    for (input, used) in cycle.submitters.iter().zip(used) {
        if let Some(sum) = input.owner.and_then(|owner| taken.get_mut(owner)) {
            *sum += used - input.weighted_used;
        }
    }
    taken
}

/// The slots of one machine for each configuration; empty if slots weigh their CPUs on every machine.
fn weighing(pool: &Pool) -> Vec<Weighing<'_>> {
    // The pool keeps the configurations, so that no two of them have one address.
    let (mut found, mut known): (Vec<Weighing<'_>>, BTreeSet<usize>) = Default::default();
    for machine in pool.machines().values() {
        let config = pool.startd(machine);
        if known.insert(Arc::as_ptr(&config).addr()) {
            found.extend(machine.slots().map(|slot| Weighing { machine, slot, config: Arc::clone(&config) }));
        }
    }
    let weigh = found.iter().any(|weighing| weighing.config.has_weights());
    if weigh { found } else { Vec::new() }
}

/// The NodePolicies of machines that have a RANK, as part of a sentence.
fn ranking(pool: &Pool) -> Option<Arc<str>> {
    let ranks = |machine: &&Machine| pool.startd(machine).has_ranks();
    let policies = pool.machines().values().filter(ranks).filter_map(|machine| machine.policy.as_ref());
    let policies: BTreeSet<String> = policies.map(|policy| format!("NodePolicy {policy}")).collect();
    let named: Vec<String> = policies.iter().take(NAMED).cloned().collect();
    let more = policies.len().saturating_sub(named.len());
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")).into())
}

/// Nodes that offer nothing for the moment, and why. A tainted node is left out, since its taint is likely to stay.
fn withheld(pool: &Pool) -> Option<Arc<str>> {
    let for_a_while = |machine: &&Machine| {
        matches!(
            machine.offer,
            Offer::NotReady | Offer::Silent | Offer::AgentSilent | Offer::Cordoned | Offer::LayoutWaits
        )
    };
    let machines = pool.machines().values().filter(for_a_while);
    let named: Vec<String> = machines.clone().take(NAMED).map(Machine::withheld).collect();
    let more = machines.count().saturating_sub(named.len());
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")).into())
}
