//! What bars the jobs that a cycle left without a slot: the negotiator's reason, with the amounts and names that a person needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Negotiation;
use crate::negotiator::groups::GroupInput;
use crate::negotiator::limits::Wants;
use crate::negotiator::{Cycle, Outcome, RejectReason, Rejection};
use crate::pool::{Amount, Bar, Job, Machine, Offer, Pool};
use classad::Env;

/// The most nodes that a message names.
const NAMED: usize = 2;

/// What is worked out once of a cycle for all its jobs.
pub(super) struct Bars<'a> {
    pool: &'a Pool,
    cycle: &'a Cycle,
    /// What each submitter uses, the cycle's matches included.
    used: Vec<f64>,
    /// The submitters that wait for busy nodes, those first whose turn comes first.
    turns: Vec<usize>,
    /// Nodes that offer nothing for a while.
    withheld: Option<Arc<str>>,
    /// Whether what a slot weighs is not what the job requests.
    weighs: bool,
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
        let turns: BTreeSet<usize> =
            outcome.rejections.iter().filter(busy).map(|rejection| rejection.submitter).collect();
        let mut turns: Vec<usize> = turns.into_iter().collect();
        let priority =
            |place: &usize| cycle.submitters.get(*place).map_or(f64::MAX, |input| input.effective_priority);
        turns.sort_by(|a, b| priority(a).total_cmp(&priority(b)));
        let weighs = pool.machines().values().any(|machine| pool.startd(machine).has_weights());
        Self { pool, cycle, used, turns, withheld: withheld(pool), weighs }
    }

    /// What bars the procs of a job.
    pub(super) fn bar(&self, rejection: &Rejection, cluster: &Job) -> Option<Bar> {
        let submitter = self.cycle.submitters.get(rejection.submitter)?;
        Some(match rejection.reason {
            RejectReason::ConcurrencyLimit => Bar::ConcurrencyLimit(self.limit(cluster)),
            RejectReason::GroupQuota => submitter
                .group
                .and_then(|group| self.quota(group, cluster))
                .map_or(Bar::NoGroup, Bar::GroupQuota),
            RejectReason::Ceiling => {
                self.ceiling(rejection.submitter, cluster).map_or(Bar::Other(rejection.reason), Bar::Ceiling)
            }
            RejectReason::NoMatch | RejectReason::NoSlots => {
                Bar::Busy { first: self.first(submitter.group), withheld: self.withheld.clone() }
            }
            RejectReason::TimeLimit
            | RejectReason::EvaluationShare
            | RejectReason::TooExpensive
            | RejectReason::SubmitterLimit
            | RejectReason::PreemptionPolicy
            | RejectReason::PreemptionRank => Bar::Other(rejection.reason),
        })
    }

    /// Of a group's submitters that wait for busy nodes, the one whose turn is first.
    fn first(&self, group: Option<usize>) -> Option<Arc<str>> {
        let inputs = self.turns.iter().filter_map(|place| self.cycle.submitters.get(*place));
        inputs.into_iter().find(|input| input.group == group).map(|input| input.name.as_str().into())
    }

    /// The limit that bars a job, where that does not depend on the machine.
    fn limit(&self, cluster: &Job) -> Option<Amount> {
        let wants = Wants::on_any_slot(&cluster.spec.as_ref()?.ad, &Env::at(self.cycle.now))?;
        let book = self.pool.holdings().book();
        let name = book.blocked(&wants)?;
        Some(Amount {
            of: name.into(),
            used: book.tally(name).amount,
            limit: book.capacities().of(name),
            wants: wants.amount(name),
            may_grow: false,
        })
    }

    /// The quota that bars a job: its group's, or that of a group around it.
    fn quota(&self, group: usize, cluster: &Job) -> Option<Amount> {
        let wants = self.weight(cluster);
        let amount = |place: usize, own: bool| {
            let input = self.cycle.groups.get(place)?;
            let limit = if own { input.quota } else { input.subtree_quota };
            let may_grow = input.accept_surplus || input.autoregroup;
            Some(Amount {
                of: input.name.as_str().into(),
                used: self.used_by(place, own),
                limit,
                wants,
                may_grow,
            })
        };
        let mut least = amount(group, true)?;
        let mut next = Some(group);
        while let Some(place) = next {
            if let Some(around) = amount(place, false)
                && around.limit - around.used < least.limit - least.used
            {
                least = around;
            }
            next = self.cycle.groups.get(place).and_then(|input: &GroupInput| input.parent);
        }
        Some(least)
    }

    /// What a group's own submitters use, or all within it.
    fn used_by(&self, group: usize, own: bool) -> f64 {
        let within = |mut place: usize| loop {
            if place == group {
                return true;
            }
            match self.cycle.groups.get(place).and_then(|input| input.parent) {
                Some(parent) if !own => place = parent,
                _ => return false,
            }
        };
        let submitters = self.cycle.submitters.iter().zip(&self.used);
        let inside = submitters.filter(|(input, _)| input.group.is_some_and(within));
        inside.map(|(_, used)| used).sum()
    }

    /// The ceiling that keeps a submitter waiting: its own, or its owner's.
    fn ceiling(&self, submitter: usize, cluster: &Job) -> Option<Amount> {
        let input = self.cycle.submitters.get(submitter)?;
        let wants = self.weight(cluster);
        let amount =
            |of: &str, used: f64, limit: f64| Amount { of: of.into(), used, limit, wants, may_grow: false };
        let used = self.used.get(submitter).copied().unwrap_or_default();
        let own = input.ceiling.map(|ceiling| amount(&input.name, used, ceiling));
        let owner = input.owner.and_then(|owner| {
            let account = self.cycle.owners.get(owner)?;
            let same =
                self.cycle.submitters.iter().zip(&self.used).filter(|(other, _)| other.owner == Some(owner));
            let taken: f64 = same.map(|(other, used)| used - other.weighted_used).sum();
            Some(amount(&account.name, account.weighted_used + taken, account.ceiling))
        });
        let left = |amount: &Amount| amount.limit - amount.used;
        match (own, owner) {
            (Some(own), Some(owner)) => Some(if left(&owner) <= left(&own) { owner } else { own }),
            (own, owner) => own.or(owner),
        }
    }

    /// What a proc weighs; 0 where the slots say, and not the request.
    fn weight(&self, cluster: &Job) -> f64 {
        let Some(spec) = cluster.spec.as_ref().filter(|_| !self.weighs) else { return 0.0 };
        if !self.cycle.config.use_slot_weights {
            return 1.0;
        }
        u32::try_from(spec.request.cpus).map_or(0.0, f64::from)
    }
}

/// Nodes that offer nothing for a while, and why. A taint stays, and is no news.
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
