//! Which slots a request may have, the most preferred first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use super::config::Config;
use super::consuming::Consuming;
use super::cycle::{Candidate, Cycle, PreemptState, RejectReason};
use super::dynamic::{self, Dynamic, Room};
use super::in_use::{self, Availability, InUse};
use super::order::{Cursor, Descending, Order, Preference};
use super::ready;
use classad::{Ad, Env, Matching as Places, Prepared, Ranks, Roster};

/// How many shared orders are kept at a time.
const ORDERS: usize = 16;

/// Evaluates slots for requests, and knows which slots are still available.
#[derive(Clone, Debug)]
pub(super) struct Judge<'a> {
    pub(super) config: &'a Config,
    slots: &'a [Candidate],
    pub(super) env: Env,
    /// All slots of the cycle, in their places.
    pub(super) roster: Roster,
    /// The slots that are not matched yet, or of which something is left.
    pub(super) available: Places,
    /// How many slots some job may still have.
    left: usize,
    /// The slots in use, and their users.
    pub(super) in_use: InUse,
    /// The partitionable slots, by their places.
    pub(super) consuming: BTreeMap<usize, Consuming>,
    /// The places of the partitionable slots that have a consumption policy.
    policies: Vec<usize>,
    /// The dynamic slots of which several may be preempted for one job.
    pub(super) dynamic: Dynamic,
    /// How often each slot changed; no entry for slots that never did.
    generations: HashMap<u32, u32>,
    /// The slots that changed, in the order of the changes.
    changes: Vec<u32>,
    /// The orders that jobs share, each with the key of the jobs that share it.
    orders: Vec<(Box<[u8]>, Order)>,
    /// Which of the orders is replaced next.
    oldest: usize,
}

/// A slot that a request may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) place: usize,
    pub(super) preempt: PreemptState,
    pub(super) cost: f64,
}

/// A search for slots for one request.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) prepared: Prepared,
    pub(super) matching: Places,
    order: SearchOrder,
    cursor: Cursor,
    /// Slots that are not in the order: partitionable slots that this search has matched, those with a consumption policy, and
    /// those where dynamic slots would be preempted.
    pub(super) others: BinaryHeap<Reverse<Preference>>,
    /// The number of the request's submitter in [`InUse`]; none if the submitter uses no slot.
    pub(super) submitter: Option<u32>,
    /// The room that preemption of dynamic slots would make, by the places of their partitionable slots.
    pub(super) rooms: BTreeMap<usize, Room>,
}

/// The order that a search reads.
#[derive(Debug)]
enum SearchOrder {
    /// One of the orders that jobs share, by its index in [`Judge::orders`].
    Shared(usize),
    /// An order of the search's own: no other request ranks slots as this one does.
    Own(Order),
}

impl<'a> Judge<'a> {
    /// Starts with all slots of a cycle. The roster may have some of them prepared already.
    pub(super) fn new(cycle: &'a Cycle, mut roster: Roster) -> Self {
        let (config, slots, env) = (&cycle.config, cycle.slots.as_slice(), cycle.env());
        let mut in_use = InUse::new(cycle);
        let (mut available, mut left) = (Places::default(), 0);
        let policy = Arc::default();
        let (mut consuming, mut dynamic) = (BTreeMap::new(), Dynamic::default());
        for (place, slot) in slots.iter().enumerate() {
            if let Some(user) = in_use::user(&slot.ad, &env) {
                roster.clear(place);
                if config.allow_pslot_preemption && dynamic::is_dynamic(&slot.ad, &env) {
                    if config.consider_preemption {
                        roster.set_in_use(place, in_use.ad_with_user(&slot.ad, &user));
                        let open = in_use.add(place, &user, &roster);
                        let parent = slot.parent.filter(|_| open);
                        dynamic.add(parent, place, &slot.ad, &env);
                    }
                } else if config.consider_preemption && in_use::is_preemptible(config, &slot.ad, &env) {
                    roster.set_in_use(place, in_use.ad_with_user(&slot.ad, &user));
                    left += usize::from(in_use.add(place, &user, &roster));
                    available.insert(place);
                }
                continue;
            }
            consuming.extend(Consuming::of(slot, &policy, &env).map(|slot| (place, slot)));
            ready::put(&mut roster, place, slot);
            available.insert(place);
            left += 1;
        }
        let policies = consuming.iter().filter(|(_, slot)| slot.has_policy()).map(|(place, _)| *place);
        let policies = policies.collect();
        dynamic.measure(&consuming, slots, &env);
        Self {
            config,
            slots,
            env,
            roster,
            available,
            left,
            in_use,
            consuming,
            policies,
            dynamic,
            generations: HashMap::new(),
            changes: Vec::new(),
            orders: Vec::new(),
            oldest: 0,
        }
    }

    /// Returns the prepared slots, for another cycle.
    pub(super) fn into_roster(self) -> Roster {
        self.roster
    }

    /// How many slots some job may still have.
    pub(super) fn len(&self) -> usize {
        self.left
    }

    /// Whether no job may have any slot any more.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether some slot in use may rank another job higher than the job that runs there.
    pub(super) fn any_rank(&self) -> bool {
        self.in_use.any_rank()
    }

    /// The ad of a slot, less what matches took if the slot is partitionable.
    pub(super) fn ad(&self, place: usize) -> Option<&Ad> {
        self.consuming.get(&place).map(|slot| &slot.ad).or_else(|| self.roster.get(place))
    }

    /// The least that a match with a slot can cost.
    pub(super) fn least_cost(&self) -> f64 {
        let costs = self.available.iter().filter_map(|place| {
            let weight = self.sane(self.slots.get(place)?.weight);
            Some(match self.consuming.get(&place) {
                Some(slot) if slot.has_policy() => 0.0,
                Some(_) => weight.min(1.0),
                None => weight,
            })
        });
        costs.fold(f64::INFINITY, f64::min)
    }

    /// The cost of a match of a request with a slot.
    fn cost(&self, place: usize, request: &Ad) -> Option<f64> {
        let weight = self.slots.get(place)?.weight;
        Some(match self.consuming.get(&place) {
            Some(slot) if slot.has_policy() => self.sane(slot.cost(request, &self.env).unwrap_or(f64::NAN)),
            // If the startd cannot carve a part for the request, the match takes the whole slot.
            Some(slot) => self.sane(slot.cost(request, &self.env).unwrap_or(weight)),
            None => self.sane(weight),
        })
    }

    fn sane(&self, weight: f64) -> f64 {
        let sane = self.config.use_slot_weights && weight.is_finite() && weight >= 0.0;
        if sane { weight } else { 1.0 }
    }

    /// Starts a search for slots for a submitter's request. The search's evaluations may cost `share` steps; after that the search finds no
    /// further slot.
    pub(super) fn search(&mut self, request: &Ad, submitter: &str, share: u64) -> Search {
        let prepared = self.roster.prepare_within(request, &self.env, share);
        let mut matching = self.roster.matching_among(&prepared, &self.available);
        for place in &self.policies {
            matching.remove(*place);
        }
        let order = match self.roster.rank_key(&prepared) {
            Some(key) => self.shared(key, &prepared).map(SearchOrder::Shared),
            None => Some(SearchOrder::Own(self.order(&prepared, &matching))),
        };
        let order = order.unwrap_or_else(|| SearchOrder::Own(Order::new(Vec::new(), self.changes.len())));
        let policies = self.policies.iter().filter(|place| {
            self.available.contains(**place)
                && !prepared.is_over()
                && self.consuming.get(place).is_some_and(|slot| slot.matches(request, &self.env))
        });
        let others =
            policies.filter_map(|place| Some(Reverse(self.preference(&prepared, *place)?))).collect();
        let submitter = self.in_use.number(submitter);
        let (cursor, rooms) = (Cursor::default(), BTreeMap::new());
        let mut search = Search { prepared, matching, order, cursor, others, submitter, rooms };
        self.look_for_rooms(&mut search);
        search
    }

    /// Returns the most preferred slot that this search has not returned yet, among those whose state is `wanted`.
    pub(super) fn next(
        &mut self,
        search: &mut Search,
        wanted: impl Fn(PreemptState) -> bool,
    ) -> Option<Offer> {
        let Self { available, generations, in_use, orders, .. } = self;
        let Search { prepared, matching, order, cursor, others, submitter, rooms } = search;
        let alive = |preference: &Preference| {
            available.contains(preference.slot())
                && generations.get(&preference.place).copied().unwrap_or(0) == preference.generation
        };
        // A submitter does not preempt its own job for its own priority.
        let takes = |preference: &Preference| {
            wanted(preference.preempt())
                && (preference.preempt() != PreemptState::Priority
                    || submitter.is_none()
                    || in_use.user_number(preference.slot()) != *submitter)
        };
        while others.peek().is_some_and(|Reverse(other)| !(alive(other) && takes(other))) {
            others.pop();
        }
        let suits = |preference: &Preference| matching.contains(preference.slot()) && takes(preference);
        let mut moved = *cursor;
        let first = match order {
            SearchOrder::Own(order) => order.next(&mut moved, alive, suits),
            SearchOrder::Shared(at) => {
                orders.get_mut(*at).and_then(|(_, order)| order.next(&mut moved, alive, suits))
            }
        };
        let other = others.peek().map(|Reverse(other)| *other);
        let best = if let Some(other) = other.filter(|other| first.is_none_or(|first| *other < first)) {
            others.pop();
            other
        } else {
            *cursor = moved;
            first?
        };
        let room = rooms.get(&best.slot()).filter(|_| best.preempt() != PreemptState::None);
        let cost = match room {
            Some(room) => self.sane(room.cost.unwrap_or(f64::NAN)),
            None => self.cost(best.slot(), prepared.ad())?,
        };
        Some(Offer { place: best.slot(), preempt: best.preempt(), cost })
    }

    /// The slot weight that `group` no longer uses once a match has preempted the jobs in its way: the weights of the
    /// preempted slots that are charged to the group. 0 if the match preempts no job.
    pub(super) fn freed(&self, search: &Search, offer: &Offer, group: Option<usize>) -> f64 {
        let weight = |place: usize| {
            let weight = self.slots.get(place).filter(|_| self.in_use.is_charged_to(place, group));
            weight.map_or(0.0, |slot| self.sane(slot.weight))
        };
        match (offer.preempt, search.rooms.get(&offer.place)) {
            (PreemptState::None, _) => 0.0,
            (_, Some(room)) => room.children.iter().map(|place| weight(*place)).sum(),
            (_, None) => weight(offer.place),
        }
    }

    /// Offers a partitionable slot again that a match of this search took a part of, whether or not another slot is preferred.
    /// None if too little of the slot is left.
    pub(super) fn again(&self, search: &Search, place: usize) -> Option<Offer> {
        let slot = self.consuming.get(&place).filter(|_| self.available.contains(place))?;
        let matches = if slot.has_policy() {
            slot.matches(search.request(), &self.env)
        } else {
            self.roster.matches(&search.prepared, place)
        };
        let cost = self.cost(place, search.request()).filter(|_| matches)?;
        Some(Offer { place, preempt: PreemptState::None, cost })
    }

    /// Books a match of a search's request with a slot: the slot is no longer available, unless it is partitionable and something
    /// is left of it. Returns the dynamic slots that are preempted for the match.
    pub(super) fn take(&mut self, search: &mut Search, offer: &Offer) -> Vec<usize> {
        let place = offer.place;
        let room = search.rooms.remove(&place).filter(|_| offer.preempt != PreemptState::None);
        let (env, request) = (&self.env, &search.prepared);
        let rest = self.consuming.get_mut(&place).and_then(|slot| {
            let more = match &room {
                None => slot.take(request.ad(), env),
                Some(Room { children, freed: (freed, weight), .. }) => {
                    self.dynamic.remove(place, children);
                    slot.take_with(freed, *weight, request.ad(), env)
                        && (!slot.is_used_up(env) || self.dynamic.is_parent(place))
                }
            };
            more.then(|| slot.ad.clone())
        });
        if let Some(rest) = rest {
            self.change(search, place, rest);
        } else {
            self.available.remove(place);
            self.left -= usize::from(!self.in_use.is_unavailable(place));
        }
        room.map_or_else(Vec::new, |room| room.children)
    }

    /// Books what a match has left of a partitionable slot.
    fn change(&mut self, search: &mut Search, place: usize, rest: Ad) {
        let Ok(number) = u32::try_from(place) else { return };
        self.roster.set(place, rest);
        *self.generations.entry(number).or_default() += 1;
        let Some(slot) = self.consuming.get(&place) else { return };
        let matches = if slot.has_policy() {
            slot.matches(search.request(), &self.env)
        } else {
            self.changes.push(number);
            let full = self.dynamic.is_parent(place) && slot.is_used_up(&self.env);
            !full && self.roster.matches(&search.prepared, place)
        };
        if matches {
            search.others.extend(self.preference(&search.prepared, place).map(Reverse));
        } else {
            self.look_for_room(search, place);
        }
    }

    /// Why the request may not have slots that match it; none if no slot matches.
    pub(super) fn refusal(&self, search: &Search) -> Option<RejectReason> {
        self.in_use.refusal(&self.roster, &search.prepared, &search.matching, search.submitter)
    }

    /// The index of the order that all jobs with this key share. None if this job has used up its share: an order with gaps
    /// must not be shared.
    fn shared(&mut self, key: Box<[u8]>, prepared: &Prepared) -> Option<usize> {
        if let Some(at) = self.orders.iter().position(|(known, _)| *known == key) {
            return self.catch_up(at, prepared).then_some(at);
        }
        let order = (key, self.order(prepared, &self.available));
        if prepared.is_over() {
            return None;
        }
        if self.orders.len() < ORDERS {
            self.orders.push(order);
            return Some(self.orders.len() - 1);
        }
        let at = self.oldest;
        self.oldest = (self.oldest + 1) % ORDERS;
        if let Some(old) = self.orders.get_mut(at) {
            *old = order;
        }
        Some(at)
    }

    /// Adds to an order the slots that changed since the order was last read. Returns false, and adds nothing, if the job has used up its
    /// share.
    fn catch_up(&mut self, at: usize, prepared: &Prepared) -> bool {
        let known = self.orders.get(at).map_or(0, |(_, order)| order.known);
        let mut changed: Vec<u32> = self.changes.get(known..).unwrap_or_default().to_vec();
        changed.sort_unstable();
        changed.dedup();
        let places =
            changed.into_iter().map(|place| place as usize).filter(|place| self.available.contains(*place));
        let preferences: Vec<Preference> =
            places.filter_map(|place| self.preference(prepared, place)).collect();
        if prepared.is_over() {
            return false;
        }
        if let Some((_, order)) = self.orders.get_mut(at) {
            order.known = self.changes.len();
            for preference in preferences {
                order.insert(preference);
            }
        }
        true
    }

    /// Slots in the order in which a job prefers them.
    fn order(&self, prepared: &Prepared, places: &Places) -> Order {
        // `policies` is sorted: its places come from the keys of a sorted map.
        let preferences = places.iter().filter(|place| self.policies.binary_search(place).is_err());
        Order::new(
            preferences.filter_map(|place| self.preference(prepared, place)).collect(),
            self.changes.len(),
        )
    }

    /// How much a job prefers a slot; none if the slot is in use and the job may not preempt there. The function does not look
    /// whether the slot matches.
    fn preference(&self, job: &Prepared, place: usize) -> Option<Preference> {
        let availability = self.in_use.availability(&self.roster, job, place);
        let (preempt, preemption) = match availability {
            Availability::Unclaimed => (PreemptState::None, Descending::of(0.0, 0.0)),
            Availability::Preempt(preempt, rank) => (preempt, Descending::of(rank, f64::MIN)),
            Availability::Unavailable => return None,
        };
        self.ranked(place, self.roster.ranks(job, place)?, preempt, preemption)
    }

    /// How much a job prefers a slot that it and the pool give these ranks.
    pub(super) fn ranked(
        &self,
        place: usize,
        ranks: Ranks,
        preempt: PreemptState,
        preemption_rank: Descending,
    ) -> Option<Preference> {
        let number = u32::try_from(place).ok()?;
        let Ranks { pre_job, job, post_job } = ranks;
        let job = if self.config.ignore_job_ranks { 0.0 } else { job };
        let rank = |expr: bool, value: Option<f64>| {
            let otherwise = if expr { f64::MIN } else { 0.0 };
            Descending::of(value.filter(|_| expr).unwrap_or(otherwise), otherwise)
        };
        Some(Preference {
            pre_job: rank(self.config.pre_job_rank.is_some(), pre_job),
            job: Descending::of(job, 0.0),
            post_job: rank(self.config.post_job_rank.is_some(), post_job),
            preempt: Reverse(preempt),
            preemption_rank,
            place: number,
            generation: self.generations.get(&number).copied().unwrap_or(0),
        })
    }
}

impl Search {
    /// The ad of the request.
    pub(super) fn request(&self) -> &Ad {
        self.prepared.ad()
    }
}
