//! The negotiators of the pool: which slots each has, and with which of them each claim is charged.
//!
//! Source: the manual, "Running Multiple Negotiators in One Pool": each negotiator has slots of its own and does its
//! own accounting.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::charges::Charge;
use super::governing::{Fallback, Governing};
use super::ids::{SlotName, SubmitterName};
use super::marks::Change;
use super::policy::NegotiatorConfig;
use super::time::Time;
use super::{Given, Pool};

/// A negotiator: `NEGOTIATOR_NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NegotiatorId {
    /// The negotiator that works with HTCondor's defaults while there is no Negotiator object.
    #[default]
    Unnamed,
    /// The negotiator of the Negotiator object of this name.
    Named(Arc<str>),
}

impl NegotiatorId {
    /// The name of the negotiator's object.
    pub fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unnamed => None,
            Self::Named(name) => Some(name),
        }
    }
}

impl From<Option<&str>> for NegotiatorId {
    fn from(name: Option<&str>) -> Self {
        name.map_or(Self::Unnamed, |name| Self::Named(name.into()))
    }
}

/// HTCondor's defaults, made once.
static DEFAULTS: LazyLock<Arc<NegotiatorConfig>> = LazyLock::new(Arc::default);

/// HTCondor's defaults.
pub(super) fn defaults() -> &'static NegotiatorConfig {
    &DEFAULTS
}

/// A negotiator that makes matches.
#[derive(Clone, Debug)]
pub struct AtWork {
    /// The negotiator.
    pub id: NegotiatorId,
    /// The negotiator's configuration in force.
    pub config: Arc<NegotiatorConfig>,
}

/// A number of slots with an example, as people are told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotTally {
    /// How many slots.
    pub count: u64,
    /// The first slot.
    pub example: Option<SlotName>,
}

impl SlotTally {
    /// Counts one more slot.
    pub fn add(&mut self, slot: &SlotName) {
        self.count += 1;
        self.example.get_or_insert_with(|| slot.clone());
    }
}

/// Which negotiator has which partitionable or static slot: the first by name whose `NEGOTIATOR_SLOT_CONSTRAINT` is
/// true for the slot's ad. So no slot is matched by two negotiators. Computed at the start of the last cycle, or when
/// negotiators last changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// The negotiator of each slot; `None` if there is one negotiator, which has all slots.
    pub owners: Option<BTreeMap<SlotName, NegotiatorId>>,
    /// Slots that the constraints of two negotiators take, by the pair of negotiators in the order of their names.
    pub overlaps: BTreeMap<(NegotiatorId, NegotiatorId), SlotTally>,
    /// Slots that no negotiator's constraint takes, so that nobody matches them.
    pub uncovered: SlotTally,
}

impl Sharing {
    /// Whether this negotiator has the slot.
    pub fn has(&self, id: &NegotiatorId, slot: &SlotName) -> bool {
        self.owners.as_ref().is_none_or(|owners| owners.get(slot) == Some(id))
    }

    /// The other negotiators whose constraints take some of the slots that this negotiator's constraint takes, with
    /// these slots.
    pub fn overlaps_of(&self, id: &NegotiatorId) -> impl Iterator<Item = (&NegotiatorId, &SlotTally)> {
        self.overlaps.iter().filter_map(move |((one, other), slots)| {
            let with = if one == id { Some(other) } else { (other == id).then_some(one) };
            with.map(|with| (with, slots))
        })
    }
}

impl Pool {
    /// The negotiators that make matches, in the order of their names; there is always at least one. An object that
    /// never had a valid spec makes no matches while there are others. If there is no valid object, HTCondor's defaults
    /// hold.
    pub fn at_work(&self) -> Vec<AtWork> {
        let usable = self.negotiators.iter().filter_map(|(name, object)| {
            Some(AtWork {
                id: NegotiatorId::Named(name.clone()),
                config: Arc::clone(object.config.as_ref()?),
            })
        });
        let all: Vec<AtWork> = usable.collect();
        if all.is_empty() {
            return vec![AtWork { id: self.first_negotiator(), config: Arc::clone(&DEFAULTS) }];
        }
        all
    }

    /// The rule that holds while no spec of the Negotiator of this name has been valid: other negotiators may make matches.
    pub fn negotiator_fallback(&self, name: &Arc<str>) -> Fallback {
        let works = |(other, object): (&Arc<str>, &Governing<NegotiatorConfig>)| {
            other != name && object.config.is_some()
        };
        if self.negotiators.iter().any(works) { Fallback::Nothing } else { Fallback::Defaults }
    }

    /// The first negotiator by name of those that make matches.
    pub fn first_negotiator(&self) -> NegotiatorId {
        let usable = self.negotiators.iter().find(|(_, object)| object.config.is_some());
        let first = usable.or_else(|| self.negotiators.first_key_value());
        first.map_or(NegotiatorId::Unnamed, |(name, _)| NegotiatorId::Named(name.clone()))
    }

    /// The negotiator with which the claims of negotiator `id` are charged: `id` itself while it works, else the first
    /// by name. So everything in use is charged with a negotiator that works.
    pub fn answering(&self, id: &NegotiatorId) -> NegotiatorId {
        let works =
            id.name().and_then(|name| self.negotiators.get(name)).is_some_and(|it| it.config.is_some());
        if works { id.clone() } else { self.first_negotiator() }
    }

    /// The configuration in force of a negotiator; the configuration of the first negotiator by name if the object is
    /// gone or was never valid.
    pub fn config_of(&self, id: &NegotiatorId) -> &NegotiatorConfig {
        let own = id.name().and_then(|name| self.negotiators.get(name));
        own.and_then(|object| object.config.as_deref()).unwrap_or_else(|| self.negotiator())
    }

    /// The half-life of a negotiator's accounts, in seconds.
    pub fn halflife_of(&self, id: &NegotiatorId) -> f64 {
        self.config_of(id).halflife.as_secs_f64()
    }

    /// Adds a charge to its submitter's account with the negotiator that answers for the charge's negotiator.
    pub(super) fn charge(&mut self, charge: Charge, now: Time) {
        let id = self.answering(charge.negotiator);
        let halflife = self.halflife_of(&id);
        self.edit_submitter(charge.submitter, now, |submitter| {
            submitter.accounts.of_mut(&id, now).charge(charge.weight, now.millis(), halflife);
        });
    }

    /// Takes a charge off its submitter's account.
    pub(super) fn discharge(&mut self, charge: Charge, now: Time) {
        let id = self.answering(charge.negotiator);
        let halflife = self.halflife_of(&id);
        self.edit_submitter(charge.submitter, now, |submitter| {
            submitter.accounts.of_mut(&id, now).stop_charging(charge.weight, now.millis(), halflife);
        });
    }

    /// The sum of what the last cycles of all negotiators gave to groups.
    pub fn given(&self) -> Given {
        let mut turns = self.schedule.turns.values();
        let first = turns.next().map(|turn| turn.given.clone()).unwrap_or_default();
        turns.fold(first, |sum, turn| sum.and(&turn.given))
    }

    /// Negotiators were added, removed or changed.
    pub(super) fn negotiators_changed(&mut self, now: Time) {
        self.changed(Change::Negotiators);
        self.limits_changed();
        self.hand_over_turns();
        if self.synced {
            self.settle_accounts(now);
            // Priority factors may have changed, and so may which account comes first.
            self.changed(Change::Priorities);
        }
    }

    /// Drops the turns of negotiators that no longer work. If the only negotiator was replaced, the first of the
    /// present ones continues its turn.
    fn hand_over_turns(&mut self) {
        let all: Vec<NegotiatorId> = self.at_work().into_iter().map(|one| one.id).collect();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.schedule.turns).into_iter().partition(|(id, _)| all.contains(id));
        self.schedule.turns = kept;
        if let (Some(first), Some((_, turn))) = (all.first(), gone.into_iter().next()) {
            self.schedule.turns.entry(first.clone()).or_insert(turn);
        }
    }

    /// Makes the accounts agree with the present negotiators and the present claims.
    ///
    /// - Usage from the time without a Negotiator object moves to the first Negotiator by name.
    /// - If all Negotiator objects are gone, usage with any of them moves to the unnamed negotiator.
    /// - If a Negotiator is gone and others exist, accounts with it are kept, for an object of the same name and because
    ///   they hold the totals of what was used; an account that says nothing goes. Its claims count with the first negotiator by name; so do its slots, if that negotiator's
    ///   constraint takes them.
    pub(super) fn settle_accounts(&mut self, now: Time) {
        let mut held = self.held();
        for name in held.keys() {
            self.edit_submitter(name, now, |_| ());
        }
        let first = self.first_negotiator();
        let halflives: BTreeMap<NegotiatorId, f64> = self
            .negotiators
            .keys()
            .map(|name| NegotiatorId::Named(name.clone()))
            .map(|id| (id.clone(), self.halflife_of(&id)))
            .collect();
        let of_first = self.halflife_of(&first);
        let mut others = Vec::new();
        self.edit_submitters(|submitter| {
            let held = held.remove(&submitter.name).unwrap_or_default();
            let accounts = &mut submitter.accounts;
            let before: Vec<NegotiatorId> = accounts.iter().map(|(id, _)| id.clone()).collect();
            let passes = |id: &NegotiatorId| first == NegotiatorId::Unnamed || *id == NegotiatorId::Unnamed;
            for id in before.iter().filter(|id| **id != first && passes(id)) {
                accounts.hand_over(id, &first, now, of_first);
            }
            for id in held.keys() {
                accounts.of_mut(id, now);
            }
            accounts.retain(|id, account| {
                let halflife = halflives.get(id).copied().unwrap_or(of_first);
                let (slots, weight) = held.get(id).copied().unwrap_or_default();
                if account.resources_used != slots
                    || (account.weighted_resources_used - weight).abs() > f64::EPSILON
                {
                    account.reconcile(slots, weight, now.millis(), halflife);
                }
                *id == first || halflives.contains_key(id) || !account.is_empty(now.millis(), halflife)
            });
            if !accounts.iter().map(|(id, _)| id).eq(&before) {
                others.push(submitter.name.clone());
            }
        });
        for name in others {
            self.changed(Change::Submitter(&name));
        }
    }

    /// The slots and slot weight that claims and orphans hold, by submitter and by the negotiator with which they are
    /// charged.
    fn held(&self) -> BTreeMap<SubmitterName, BTreeMap<NegotiatorId, (u64, f64)>> {
        let mut held: BTreeMap<_, BTreeMap<_, (u64, f64)>> = BTreeMap::new();
        let claims =
            self.slots.values().filter(|slot| !slot.is_discounted()).map(|slot| slot.claim().charge());
        for charge in claims.chain(self.orphans.charges()) {
            let of_submitter = held.entry(charge.submitter.clone()).or_default();
            let sum = of_submitter.entry(self.answering(charge.negotiator)).or_default();
            *sum = (sum.0 + 1, sum.1 + charge.weight);
        }
        held
    }
}
