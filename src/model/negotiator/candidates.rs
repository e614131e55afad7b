//! Which slots a request can have, the best first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use super::config::Config;
use super::consuming::Consuming;
use super::cycle::{Candidate, Cycle, PreemptState, RejectReason};
use super::dynamic::{self, Dynamic, Room};
use super::in_use::{self, InUse, Standing};
use super::order::{Cursor, Descending, Liking, Order};
use super::ready;
use classad::{Ad, Env, Matching as Places, Prepared, Ranks, Roster};

/// How many orders are kept at a time.
const ORDERS: usize = 16;

/// Evaluates slots for requests, and knows which are still to be had.
#[derive(Clone, Debug)]
pub(super) struct Judge<'a> {
    pub(super) config: &'a Config,
    slots: &'a [Candidate],
    pub(super) env: Env,
    /// All slots of the cycle, in their places.
    pub(super) roster: Roster,
    /// Those still to be had.
    pub(super) free: Places,
    left: usize,
    /// Those of them that are in use, with who uses them.
    pub(super) in_use: InUse,
    /// Those of which a match takes a part, by their places.
    pub(super) consuming: BTreeMap<usize, Consuming>,
    /// Those of these that have a consumption policy.
    policies: Vec<usize>,
    /// The dynamic slots that may be preempted several at once.
    pub(super) dynamic: Dynamic,
    /// How often each slot changed; nothing for those that never did.
    generations: HashMap<u32, u32>,
    /// The slots that changed, in that order.
    changes: Vec<u32>,
    orders: Vec<(Box<[u8]>, Order)>,
    /// Which order is the next to go.
    oldest: usize,
}

/// A slot that a request can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) place: usize,
    pub(super) preempt: PreemptState,
    pub(super) cost: f64,
}

/// A look for slots for one request.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) prepared: Prepared,
    pub(super) matching: Places,
    order: Which,
    cursor: Cursor,
    /// Slots that the order does not have: as the matches of this search leave them, and those with a consumption policy.
    pub(super) others: BinaryHeap<Reverse<Liking>>,
    /// Whose request it is.
    pub(super) submitter: Option<u32>,
    /// Room in partitionable slots once some of their dynamic slots are gone, by their places.
    pub(super) rooms: BTreeMap<usize, Room>,
}

/// Where the order is.
#[derive(Debug)]
enum Which {
    Shared(usize),
    /// The request ranks slots as no other does.
    Own(Order),
}

impl<'a> Judge<'a> {
    /// Of a cycle, with a roster of which those slots of its may be ready already.
    pub(super) fn new(cycle: &'a Cycle, mut roster: Roster) -> Self {
        let (config, slots, env) = (&cycle.config, cycle.slots.as_slice(), cycle.env());
        let mut in_use = InUse::new(cycle);
        let (mut free, mut left) = (Places::default(), 0);
        let policy = Arc::default();
        let (mut consuming, mut dynamic) = (BTreeMap::new(), Dynamic::default());
        for (place, slot) in slots.iter().enumerate() {
            if let Some(user) = in_use::user(&slot.ad, &env) {
                roster.clear(place);
                if config.allow_pslot_preemption && dynamic::is_dynamic(&slot.ad, &env) {
                    if config.consider_preemption {
                        roster.set_in_use(place, in_use.seen(&slot.ad, &user));
                        let open = in_use.add(place, &user, &roster);
                        let parent = slot.parent.filter(|_| open);
                        dynamic.add(parent, place, &slot.ad, &env);
                    }
                } else if config.consider_preemption && in_use::may_go(config, &slot.ad, &env) {
                    roster.set_in_use(place, in_use.seen(&slot.ad, &user));
                    left += usize::from(in_use.add(place, &user, &roster));
                    free.insert(place);
                }
                continue;
            }
            consuming.extend(Consuming::of(slot, &policy, &env).map(|slot| (place, slot)));
            ready::put(&mut roster, place, slot);
            free.insert(place);
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
            free,
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

    /// The roster, for another cycle.
    pub(super) fn into_roster(self) -> Roster {
        self.roster
    }

    /// How many slots are to be had.
    pub(super) fn len(&self) -> usize {
        self.left
    }

    /// Whether none is.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether some slot in use may rank some job higher than its own.
    pub(super) fn any_rank(&self) -> bool {
        self.in_use.any_rank()
    }

    /// The ad of a slot as it is now.
    pub(super) fn ad(&self, place: usize) -> Option<&Ad> {
        self.consuming.get(&place).map(|slot| &slot.ad).or_else(|| self.roster.get(place))
    }

    /// The least that a match with a slot can cost.
    pub(super) fn least_cost(&self) -> f64 {
        let costs = self.free.iter().filter_map(|place| {
            let weight = self.sane(self.slots.get(place)?.weight);
            Some(match self.consuming.get(&place) {
                Some(slot) if slot.has_policy() => 0.0,
                Some(_) => weight.min(1.0),
                None => weight,
            })
        });
        costs.fold(f64::INFINITY, f64::min)
    }

    /// What a match of a request with a slot costs.
    fn cost(&self, place: usize, request: &Ad) -> Option<f64> {
        let weight = self.slots.get(place)?.weight;
        Some(match self.consuming.get(&place) {
            Some(slot) if slot.has_policy() => self.sane(slot.cost(request, &self.env).unwrap_or(f64::NAN)),
            // A slot that cannot be carved for it goes whole.
            Some(slot) => self.sane(slot.cost(request, &self.env).unwrap_or(weight)),
            None => self.sane(weight),
        })
    }

    fn sane(&self, weight: f64) -> f64 {
        let sane = self.config.use_slot_weights && weight.is_finite() && weight >= 0.0;
        if sane { weight } else { 1.0 }
    }

    /// Begins to look for slots for a request of a submitter.
    pub(super) fn search(&mut self, request: &Ad, submitter: &str) -> Search {
        let prepared = self.roster.prepare(request, &self.env);
        let mut matching = self.roster.matching_among(&prepared, &self.free);
        for place in &self.policies {
            matching.remove(*place);
        }
        let order = match self.roster.rank_key(&prepared) {
            Some(key) => Which::Shared(self.shared(key, &prepared)),
            None => Which::Own(self.order(&prepared, &matching)),
        };
        let policies = self.policies.iter().filter(|place| {
            self.free.contains(**place)
                && self.consuming.get(place).is_some_and(|slot| slot.matches(request, &self.env))
        });
        let others = policies.filter_map(|place| Some(Reverse(self.like(&prepared, *place)?))).collect();
        let submitter = self.in_use.number(submitter);
        let (cursor, rooms) = (Cursor::default(), BTreeMap::new());
        let mut search = Search { prepared, matching, order, cursor, others, submitter, rooms };
        self.look_for_rooms(&mut search);
        search
    }

    /// The best slot that was not looked at yet in this search, as far as `wanted`.
    pub(super) fn next(
        &mut self,
        search: &mut Search,
        wanted: impl Fn(PreemptState) -> bool,
    ) -> Option<Offer> {
        let Self { free, generations, in_use, orders, .. } = self;
        let Search { prepared, matching, order, cursor, others, submitter, rooms } = search;
        let alive = |liking: &Liking| {
            free.contains(liking.slot())
                && generations.get(&liking.place).copied().unwrap_or(0) == liking.generation
        };
        // Nobody takes a slot from themselves because of their own priority.
        let takes = |liking: &Liking| {
            wanted(liking.preempt())
                && (liking.preempt() != PreemptState::Priority
                    || submitter.is_none()
                    || in_use.holder(liking.slot()) != *submitter)
        };
        while others.peek().is_some_and(|Reverse(other)| !(alive(other) && takes(other))) {
            others.pop();
        }
        let suits = |liking: &Liking| matching.contains(liking.slot()) && takes(liking);
        let mut moved = *cursor;
        let first = match order {
            Which::Own(order) => order.next(&mut moved, alive, suits),
            Which::Shared(at) => {
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

    /// A slot of which a match took a part, for another match of the same kind though better ones may be there; none, if too
    /// little is left of it.
    pub(super) fn again(&self, search: &Search, place: usize) -> Option<Offer> {
        let slot = self.consuming.get(&place).filter(|_| self.free.contains(place))?;
        let matches = if slot.has_policy() {
            slot.matches(search.request(), &self.env)
        } else {
            self.roster.matches(&search.prepared, place)
        };
        let cost = self.cost(place, search.request()).filter(|_| matches)?;
        Some(Offer { place, preempt: PreemptState::None, cost })
    }

    /// The match of a search's request with a slot is made: the slot is not to be had any more, but for a partitionable one of
    /// which something is left. Gives the dynamic slots that are preempted for it.
    pub(super) fn take(&mut self, search: &mut Search, offer: &Offer) -> Vec<usize> {
        let place = offer.place;
        let room = search.rooms.remove(&place).filter(|_| offer.preempt != PreemptState::None);
        let (env, request) = (&self.env, &search.prepared);
        let rest = self.consuming.get_mut(&place).and_then(|slot| {
            let more = match &room {
                None => slot.take(request.ad(), env),
                Some(Room { children, held: (held, weight), .. }) => {
                    self.dynamic.remove(place, children);
                    slot.take_with(held, *weight, request.ad(), env)
                        && (!slot.is_used_up(env) || self.dynamic.is_parent(place))
                }
            };
            more.then(|| slot.ad.clone())
        });
        if let Some(rest) = rest {
            self.change(search, place, rest);
        } else {
            self.free.remove(place);
            self.left -= usize::from(!self.in_use.is_closed(place));
        }
        room.map_or_else(Vec::new, |room| room.children)
    }

    /// A partitionable slot is what a match has left of it.
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
            search.others.extend(self.like(&search.prepared, place).map(Reverse));
        } else {
            self.look_for_room(search, place);
        }
    }

    /// Why slots that match a request are not to be had, if that is so of any.
    pub(super) fn refusal(&self, search: &Search) -> Option<RejectReason> {
        self.in_use.refusal(&self.roster, &search.prepared, &search.matching, search.submitter)
    }

    /// The order that all jobs of a kind share.
    fn shared(&mut self, key: Box<[u8]>, prepared: &Prepared) -> usize {
        if let Some(at) = self.orders.iter().position(|(known, _)| *known == key) {
            self.catch_up(at, prepared);
            return at;
        }
        let order = (key, self.order(prepared, &self.free));
        if self.orders.len() < ORDERS {
            self.orders.push(order);
            return self.orders.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (self.oldest + 1) % ORDERS;
        if let Some(old) = self.orders.get_mut(at) {
            *old = order;
        }
        at
    }

    /// Puts the slots that changed since into an order.
    fn catch_up(&mut self, at: usize, prepared: &Prepared) {
        let known = self.orders.get(at).map_or(0, |(_, order)| order.known);
        let mut changed: Vec<u32> = self.changes.get(known..).unwrap_or_default().to_vec();
        changed.sort_unstable();
        changed.dedup();
        let places =
            changed.into_iter().map(|place| place as usize).filter(|place| self.free.contains(*place));
        let likings: Vec<Liking> = places.filter_map(|place| self.like(prepared, place)).collect();
        if let Some((_, order)) = self.orders.get_mut(at) {
            order.known = self.changes.len();
            for liking in likings {
                order.insert(liking);
            }
        }
    }

    /// Slots as a job likes them.
    fn order(&self, prepared: &Prepared, places: &Places) -> Order {
        // In order, as the places of a map are.
        let likings = places.iter().filter(|place| self.policies.binary_search(place).is_err());
        Order::new(likings.filter_map(|place| self.like(prepared, place)).collect(), self.changes.len())
    }

    /// How a slot is liked; none if it is not to be had, whether it matches or not.
    fn like(&self, job: &Prepared, place: usize) -> Option<Liking> {
        let standing = self.in_use.standing(&self.roster, job, place);
        let (preempt, preemption) = match standing {
            Standing::Unclaimed => (PreemptState::None, Descending::of(0.0, 0.0)),
            Standing::Preempt(preempt, rank) => (preempt, Descending::of(rank, f64::MIN)),
            Standing::Kept => return None,
        };
        self.liking(place, self.roster.ranks(job, place)?, preempt, preemption)
    }

    /// How a slot is liked that is so ranked.
    pub(super) fn liking(
        &self,
        place: usize,
        ranks: Ranks,
        preempt: PreemptState,
        preemption: Descending,
    ) -> Option<Liking> {
        let number = u32::try_from(place).ok()?;
        let Ranks { pre_job, job, post_job } = ranks;
        let job = if self.config.ignore_job_ranks { 0.0 } else { job };
        let rank = |expr: bool, value: Option<f64>| {
            let otherwise = if expr { f64::MIN } else { 0.0 };
            Descending::of(value.filter(|_| expr).unwrap_or(otherwise), otherwise)
        };
        Some(Liking {
            pre_job: rank(self.config.pre_job_rank.is_some(), pre_job),
            job: Descending::of(job, 0.0),
            post_job: rank(self.config.post_job_rank.is_some(), post_job),
            preempt: Reverse(preempt),
            preemption,
            place: number,
            generation: self.generations.get(&number).copied().unwrap_or(0),
        })
    }
}

impl Search {
    /// The request as it is looked at.
    pub(super) fn request(&self) -> &Ad {
        self.prepared.ad()
    }
}
