//! Where there are groups: what each is given, its turn, and another round for what was given in vain.

use std::collections::HashSet;

use super::allocation::{Allocations, Demand, allocate, regroups};
use super::cycle::{RejectReason, Request};
use super::groups::ROOT;
use super::round::Round;
use super::sorting::sort_key;
use super::spin::Spins;
use classad::Env;

/// A group's place among the groups; none for the root.
type Place = Option<usize>;

/// Who asked for what others could not use.
#[derive(Debug, Default)]
struct Rest {
    /// Groups that were given all that others gave up, since anybody last gave up something.
    heard: HashSet<Place>,
    /// Groups that could not use what they were given, for other reasons than their limit.
    gave_up: HashSet<Place>,
}

/// In how many rounds of a cycle somebody may be heard whom crumbs would do.
const HEARD: u32 = 12;

/// Who negotiates with whom.
#[derive(Debug)]
struct Members {
    groups: Vec<Vec<usize>>,
    root: Vec<usize>,
}

impl Members {
    fn of(&self, group: Place) -> &[usize] {
        group.map_or(&self.root, |group| self.groups.get(group).map_or(&[], Vec::as_slice))
    }
}

impl Round<'_> {
    /// Negotiates with all groups, in as many rounds as `GROUP_QUOTA_MAX_ALLOCATION_ROUNDS` allows and as come to anything.
    pub(super) fn negotiate_groups(&mut self) -> Allocations {
        let mut demand = self.demand();
        let members = self.members();
        let mut given = allocate(self.cycle, &demand);
        let mut all = given.clone();
        let (whole, mut rest) = (demand.clone(), Rest::default());
        let rounds = self.cycle.config.group_quota_max_allocation_rounds;
        for round in 1.. {
            for group in self.order(&given) {
                let limit = given.turn_limit(self.cycle, &self.ledger, group);
                self.raise_to_floors(group, Some(limit), members.of(group));
            }
            self.take_turns(&given, &members);
            let over = self.give_up_rest(&given, &mut demand, &whole, &mut rest);
            // Where there are further rounds at all, each whom crumbs would do is heard; in a later cycle, if this one came to
            // something.
            let listens = rounds > 1 && !rest.heard.is_empty() && self.table.matches.is_empty();
            let most = if listens { rounds.max(HEARD) } else { rounds };
            if over || round >= most || self.table.judge.is_empty() {
                break;
            }
            given = allocate(self.cycle, &demand);
            all = all.then(&given);
        }
        all
    }

    /// What everybody uses and waits for: its weight, or without `NEGOTIATOR_USE_WEIGHTED_DEMAND` how many slots and jobs.
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

    /// The weight of all jobs of a request: as `SCHEDD_SLOT_WEIGHT` has it, their CPUs.
    fn request_weight(&self, request: &Request, env: &Env) -> f64 {
        let config = &self.cycle.config;
        let cpus = request.ad.eval_attr("RequestCpus", None, env).as_number();
        let weighted = config.use_slot_weights && config.use_weighted_demand;
        let cpus = cpus.filter(|cpus| weighted && cpus.is_finite() && *cpus > 0.0);
        number(request.count) * cpus.unwrap_or(1.0)
    }

    /// The members of each group, and of the root: those of no group, and with autoregroup others beside them.
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

    /// The groups and the root in the order of their turns: `GROUP_SORT_EXPR`, and with autoregroup the root last. Equals keep
    /// their order; the root comes before them, as in HTCondor.
    fn order(&self, given: &Allocations) -> Vec<Place> {
        let (env, config) = (Env::at(self.cycle.now), &self.cycle.config);
        let key = |group: Place| {
            let input = group.and_then(|group| self.cycle.groups.get(group));
            let name = input.map_or(ROOT, |input| &input.name);
            let used = self.ledger.group_used(group);
            given
                .of(group)
                .map_or(f64::MAX, |given| sort_key(config.group_sort_expr.as_ref(), &env, name, given, used))
        };
        let places = std::iter::once(None).chain((0..self.cycle.groups.len()).map(Some));
        let mut keyed: Vec<(f64, Place)> = places.map(|group| (key(group), group)).collect();
        let root_last = regroups(&self.cycle.groups);
        keyed.sort_by(|(a, x), (b, y)| {
            let last = |group: &Place| root_last && group.is_none();
            last(x).cmp(&last(y)).then(a.total_cmp(b))
        });
        keyed.into_iter().map(|(_, group)| group).collect()
    }

    /// Everybody's turn, or turns, in each of which a group takes more of what it was given: the more the more it lacks, and
    /// whoever lacks most `GROUP_QUOTA_ROUND_ROBIN_RATE`.
    fn take_turns(&mut self, given: &Allocations, members: &Members) {
        let order = self.order(given);
        let used: Vec<f64> = order.iter().map(|group| self.ledger.group_used(*group)).collect();
        // However large a quota says who is first: nobody lacks more than there is.
        let pool = self.cycle.pool_weight;
        let lacks = |group: Place, used: f64| {
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
            if part >= 1.0 || self.table.judge.is_empty() {
                return;
            }
        }
    }

    /// Without weights only whole slots count.
    fn whole(&self, limit: f64) -> f64 {
        if self.cycle.config.use_slot_weights { limit } else { limit.floor() }
    }

    /// A group's turn: it divides what it may have among its members until nothing more comes of it.
    fn take_turn(&mut self, group: Place, given: &Allocations, so_far: Option<f64>, members: &[usize]) {
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
        // Who negotiates with the root though in a group is not bound by anybody's quota there, and comes after all others.
        let unbound = group.is_none() && regroups(&self.cycle.groups);
        if unbound && so_far.is_some() {
            return;
        }
        let limit = given.turn_limit(self.cycle, &self.ledger, group);
        let limit = so_far.map_or(limit, |so_far| limit.min(so_far));
        Spins::new(self, group, (!unbound).then_some(limit)).run(members.to_vec());
    }

    /// Who could not use all that was given asks for no more than that, in another round. Whether that would be in vain.
    ///
    /// HTCondor ends there, and slots stay idle for which the crumbs of two groups would do together. Here the first group that
    /// goes without one only for its limit asks for all that it wants; where even that was in vain, the next in the round after,
    /// and all of them again when others have given up more.
    fn give_up_rest(
        &self,
        given: &Allocations,
        demand: &mut Demand,
        whole: &Demand,
        rest: &mut Rest,
    ) -> bool {
        let held = self.held_by_their_limit();
        let order = self.order(given);
        let used_and_given = |group: Place| {
            let given = given.of(group).map_or(0.0, |given| given.allocated);
            (self.ledger.group_used(group), given)
        };
        for group in &order {
            let (used, given) = used_and_given(*group);
            if used < given && !held.contains(group) && rest.gave_up.insert(*group) {
                rest.heard.clear();
            }
        }
        let may_ask = |group: &Place| {
            held.contains(group) && !rest.heard.contains(group) && !rest.gave_up.contains(group)
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
            } else if used < given || rest.heard.contains(&group) {
                *asked = used;
            }
        }
        rest.heard.extend(asking);
        let all_is_used = all_used >= all_given;
        match asking {
            None => all_is_used || !rest.heard.is_empty(),
            // What nobody was given in this round may do for whoever asks in the next.
            Some(_) => all_is_used && all_given >= self.cycle.pool_weight,
        }
    }

    /// The groups that may take surplus, and have jobs that nothing but their limit keeps from slots.
    fn held_by_their_limit(&self) -> HashSet<Place> {
        let accepts = |group: usize| self.cycle.groups.get(group).is_some_and(|group| group.accept_surplus);
        let held = |place: &usize| {
            let of_group = |reason: Option<RejectReason>| reason == Some(RejectReason::GroupQuota);
            let stopped = of_group(self.stopped.get(*place).copied().flatten());
            let requests = self.progress.get(*place).into_iter().flatten();
            requests.filter(|request| request.left > 0).any(|request| match request.reason {
                None => stopped,
                reason => of_group(reason),
            })
        };
        let submitters = (0..self.cycle.submitters.len()).filter(held);
        submitters.map(|place| self.ledger.group(place)).filter(|group| group.is_none_or(accepts)).collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "beyond 2^53 jobs one more does not matter")]
fn number(count: u64) -> f64 {
    count as f64
}
