//! Negotiation in a pool with groups: each round allocates the pool to the groups and gives each group a turn; a further round
//! allocates again what groups were given and could not use.

use std::collections::HashSet;

use super::allocation::{Allocations, Demand, allocate, regroups};
use super::cycle::{RejectReason, Request};
use super::groups::ROOT;
use super::negotiation::Negotiation;
use super::sorting::sort_key;
use super::spin::Spins;
use classad::Env;

/// A group's place in [`Cycle::groups`](super::Cycle::groups); none for the root.
type GroupIndex = Option<usize>;

/// The groups that could not use all that they were given, and the groups that asked for the rest.
#[derive(Debug, Default)]
struct Leftovers {
    /// Groups that have asked once more for everything they want, since a group last gave something up.
    asked_again: HashSet<GroupIndex>,
    /// Groups that could not use all that they were given, for a reason other than their limit.
    gave_up: HashSet<GroupIndex>,
}

/// The most rounds of a cycle, if `GROUP_QUOTA_MAX_ALLOCATION_ROUNDS` allows more than one and groups ask again for leftovers.
const LEFTOVER_ROUNDS: u32 = 12;

/// The submitters that take part in each group's turn, and in the root's.
#[derive(Debug)]
struct Members {
    groups: Vec<Vec<usize>>,
    root: Vec<usize>,
}

impl Members {
    fn of(&self, group: GroupIndex) -> &[usize] {
        group.map_or(&self.root, |group| self.groups.get(group).map_or(&[], Vec::as_slice))
    }
}

impl Negotiation<'_> {
    /// Negotiates with all groups, until a further round would be in vain or `GROUP_QUOTA_MAX_ALLOCATION_ROUNDS` is reached.
    pub(super) fn negotiate_groups(&mut self) -> Allocations {
        let mut demand = self.demand();
        let members = self.members();
        let mut given = allocate(self.cycle, &demand);
        let mut all = given.clone();
        let (whole, mut leftovers) = (demand.clone(), Leftovers::default());
        let rounds = self.cycle.config.group_quota_max_allocation_rounds;
        for round in 1.. {
            for group in self.order(&given) {
                let limit = given.turn_limit(self.cycle, &self.ledger, group);
                self.raise_to_floors(group, Some(limit), members.of(group));
            }
            self.take_turns(&given, &members);
            let in_vain = self.give_up_unused(&given, &mut demand, &whole, &mut leftovers);
            // A group asks again for leftovers only if the knob allows further rounds. As long as the cycle has made no match,
            // all such groups get their round; otherwise those that are left may ask in a later cycle.
            let ask_again = rounds > 1 && !leftovers.asked_again.is_empty() && self.shared.matches.is_empty();
            let most = if ask_again { rounds.max(LEFTOVER_ROUNDS) } else { rounds };
            if in_vain || round >= most || self.shared.judge.is_empty() {
                break;
            }
            given = allocate(self.cycle, &demand);
            all = all.then(&given);
        }
        all
    }

    /// The demand of the submitters of each group, including the slots that they use: slot weight, or numbers of slots
    /// and jobs without `NEGOTIATOR_USE_WEIGHTED_DEMAND`.
    fn demand(&self) -> Demand {
        let weighted = self.cycle.config.use_weighted_demand;
        let used = |group| if weighted { self.ledger.group_used(group) } else { 0.0 };
        let mut demand = Demand {
            root: used(None),
            groups: (0..self.cycle.groups.len()).map(|group| used(Some(group))).collect(),
        };
        let env = Env::at(self.cycle.now);
        let mut counted = HashSet::new();
        for (place, submitter) in self.cycle.submitters.iter().enumerate() {
            let waits = submitter.requests.iter().map(|request| self.request_weight(request, &env));
            let runs = !weighted && counted.insert(self.ledger.account(place));
            let asks = waits.sum::<f64>() + if runs { number(submitter.running) } else { 0.0 };
            match self.ledger.group(place).and_then(|group| demand.groups.get_mut(group)) {
                Some(group) => *group += asks,
                None => demand.root += asks,
            }
        }
        demand
    }

    /// The weight of all jobs of a request: the CPUs that they request, as `SCHEDD_SLOT_WEIGHT` says by default.
    fn request_weight(&self, request: &Request, env: &Env) -> f64 {
        let config = &self.cycle.config;
        let cpus = request.ad.eval_attr("RequestCpus", None, env).as_number();
        let weighted = config.use_slot_weights && config.use_weighted_demand;
        let cpus = cpus.filter(|cpus| weighted && cpus.is_finite() && *cpus > 0.0);
        number(request.count) * cpus.unwrap_or(1.0)
    }

    /// The submitters that take part in each group's turn. In the root's turn, these are the submitters of no group, and after
    /// them those of groups with autoregroup.
    fn members(&self) -> Members {
        let mut members = Members { groups: vec![Vec::new(); self.cycle.groups.len()], root: Vec::new() };
        let mut regrouped = Vec::new();
        for submitter in (0..self.cycle.submitters.len()).filter(|submitter| self.counts(*submitter)) {
            let group = self.ledger.group(submitter);
            if group.and_then(|group| self.cycle.groups.get(group)).is_some_and(|group| group.autoregroup) {
                regrouped.push(submitter);
            }
            match group.and_then(|group| members.groups.get_mut(group)) {
                Some(group) => group.push(submitter),
                None => members.root.push(submitter),
            }
        }
        members.root.extend(regrouped);
        members
    }

    /// The groups and the root in the order of their turns: by `GROUP_SORT_EXPR`, but the root last if any group has autoregroup.
    /// Groups that the expression makes equal keep the order of the cycle, and the root comes before them, as in HTCondor.
    fn order(&self, given: &Allocations) -> Vec<GroupIndex> {
        let (env, config) = (Env::at(self.cycle.now), &self.cycle.config);
        let key = |group: GroupIndex| {
            let input = group.and_then(|group| self.cycle.groups.get(group));
            let name = input.map_or(ROOT, |input| &input.name);
            let used = self.ledger.group_used(group);
            given
                .of(group)
                .map_or(f64::MAX, |given| sort_key(config.group_sort_expr.as_ref(), &env, name, given, used))
        };
        let places = std::iter::once(None).chain((0..self.cycle.groups.len()).map(Some));
        let mut keyed: Vec<(f64, GroupIndex)> = places.map(|group| (key(group), group)).collect();
        let root_last = regroups(&self.cycle.groups);
        keyed.sort_by(|(a, x), (b, y)| {
            let last = |group: &GroupIndex| root_last && group.is_none();
            last(x).cmp(&last(y)).then(a.total_cmp(b))
        });
        keyed.into_iter().map(|(_, group)| group).collect()
    }

    /// Gives each group its turns. In each turn a group may take a part of what it was given and lacks: the group that lacks most
    /// takes `GROUP_QUOTA_ROUND_ROBIN_RATE`, and the others the same fraction of what they lack.
    fn take_turns(&mut self, given: &Allocations, members: &Members) {
        let order = self.order(given);
        let used: Vec<f64> = order.iter().map(|group| self.ledger.group_used(*group)).collect();
        // A quota may be larger than the pool, but no group lacks more than the pool has.
        let pool = self.cycle.pool_weight;
        let lacks = |group: GroupIndex, used: f64| {
            given.of(group).map_or(0.0, |given| (given.limit.min(pool) - used).max(0.0))
        };
        let most = order.iter().zip(&used).map(|(group, used)| lacks(*group, *used)).fold(0.0, f64::max);
        let rate = self.cycle.config.group_quota_round_robin_rate.max(1.0);
        let mut reached = 0.0;
        loop {
            reached = most.min(reached + rate);
            let part = if reached >= most { 1.0 } else { reached / most };
            for (group, used) in order.iter().zip(&used) {
                let lacks = lacks(*group, *used);
                let so_far = (part < 1.0 && lacks > 0.0).then(|| self.whole(used + lacks * part));
                self.take_turn(*group, given, so_far, members.of(*group));
            }
            if part >= 1.0 || self.shared.judge.is_empty() {
                return;
            }
        }
    }

    /// Rounds a limit down to whole slots, unless slots have weights.
    fn whole(&self, limit: f64) -> f64 {
        if self.cycle.config.use_slot_weights { limit } else { limit.floor() }
    }

    /// Gives a group one turn: spins divide among the members what the group may have. `so_far` is the limit of this turn if it
    /// is not the group's last in this round.
    fn take_turn(&mut self, group: GroupIndex, given: &Allocations, so_far: Option<f64>, members: &[usize]) {
        let Some(allocated) = given.of(group).map(|given| given.allocated) else { return };
        if !members.iter().any(|submitter| self.has_jobs(*submitter)) {
            return;
        }
        let full = self.ledger.group_used(group) >= allocated && !self.cycle.config.consider_preemption;
        if allocated <= 0.0 || full {
            for submitter in members {
                if let Some(stopped) = self.stopped.get_mut(*submitter) {
                    *stopped = Some(RejectReason::GroupQuota);
                }
            }
            return;
        }
        // If groups have autoregroup, no quota limits the root's turn, and the root has one turn, after all others' last.
        let unbound = group.is_none() && regroups(&self.cycle.groups);
        if unbound && so_far.is_some() {
            return;
        }
        let limit = given.turn_limit(self.cycle, &self.ledger, group);
        let limit = so_far.map_or(limit, |so_far| limit.min(so_far));
        Spins::new(self, group, (!unbound).then_some(limit)).run(members.to_vec());
    }

    /// Sets what each group asks for in the next round: a group that could not use all that it was given asks only for what it
    /// uses. Returns whether another round would be in vain.
    ///
    /// HTCondor does no more than that. Slots may then stay idle because no group's limit has room for one more slot, though the
    /// unused parts of two groups' limits together have. Here, in each round, one group that only its limit keeps from more slots
    /// asks for all that it wants: the first in the order of turns that has not asked so yet. When a group gives up something
    /// more, all of them may ask again.
    fn give_up_unused(
        &self,
        given: &Allocations,
        demand: &mut Demand,
        whole: &Demand,
        leftovers: &mut Leftovers,
    ) -> bool {
        let stopped = self.stopped_by_limit();
        let order = self.order(given);
        let used_and_given = |group: GroupIndex| {
            let given = given.of(group).map_or(0.0, |given| given.allocated);
            (self.ledger.group_used(group), given)
        };
        for group in &order {
            let (used, given) = used_and_given(*group);
            if used < given && !stopped.contains(group) && leftovers.gave_up.insert(*group) {
                leftovers.asked_again.clear();
            }
        }
        let may_ask = |group: &GroupIndex| {
            stopped.contains(group)
                && !leftovers.asked_again.contains(group)
                && !leftovers.gave_up.contains(group)
        };
        let asking = order.iter().copied().find(may_ask);
        let (mut all_used, mut all_given) = (0.0, 0.0);
        for group in order {
            let (asked, wanted) = match group {
                None => (Some(&mut demand.root), Some(&whole.root)),
                Some(group) => (demand.groups.get_mut(group), whole.groups.get(group)),
            };
            let (Some(asked), Some(wanted)) = (asked, wanted) else { continue };
            let (used, given) = used_and_given(group);
            all_used += used.min(given);
            all_given += given;
            if asking == Some(group) {
                *asked = *wanted;
            } else if used < given || leftovers.asked_again.contains(&group) {
                *asked = used;
            }
        }
        leftovers.asked_again.extend(asking);
        let all_is_used = all_used >= all_given;
        match asking {
            None => all_is_used || !leftovers.asked_again.is_empty(),
            // Slot weight that no group was given in this round may be enough for the group that asks in the next.
            Some(_) => all_is_used && all_given >= self.cycle.pool_weight,
        }
    }

    /// The groups that accept surplus and have jobs that only the group's limit keeps from slots.
    fn stopped_by_limit(&self) -> HashSet<GroupIndex> {
        let accepts = |group: usize| self.cycle.groups.get(group).is_some_and(|group| group.accept_surplus);
        let is_stopped = |place: &usize| {
            let of_group = |reason: Option<RejectReason>| reason == Some(RejectReason::GroupQuota);
            let stopped = of_group(self.stopped.get(*place).copied().flatten());
            let requests = self.progress.get(*place).into_iter().flatten();
            requests.filter(|request| request.left > 0).any(|request| match request.reason {
                None => stopped,
                reason => of_group(reason),
            })
        };
        let submitters = (0..self.cycle.submitters.len()).filter(is_stopped);
        submitters.map(|place| self.ledger.group(place)).filter(|group| group.is_none_or(accepts)).collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "beyond 2^53 jobs one more does not matter")]
fn number(count: u64) -> f64 {
    count as f64
}
