//! Reads the slots of the pool, and charges those in use to their users.

use std::collections::HashMap;

use super::accounts::Accounts;
use super::policy::Policy;
use crate::ads::{Ads, LocatedAd};
use crate::stop::Stop;
use classad::{Ad, Env, Expr, Name};
use model::negotiator::Candidate;
use model::negotiator::limits::Wants;

/// All slots that the negotiator may consider.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The slots. Slots in use may be matched by preemption.
    pub(super) candidates: Vec<Candidate>,
    /// The weight of all slots that count for the size of the pool.
    pub(super) weight: f64,
    /// How many slots are in use.
    pub(super) claimed: usize,
    /// The concurrency limits of the running jobs.
    pub(super) limited: Vec<Wants>,
}

/// The names of the attributes that are read of each slot, hashed once.
struct Attributes {
    name: Name,
    state: Name,
    activity: Name,
    slot_weight: Name,
    accounting_group: Name,
    remote_user: Name,
    limits: [Name; 2],
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            name: "Name".into(),
            state: "State".into(),
            activity: "Activity".into(),
            slot_weight: "SlotWeight".into(),
            accounting_group: "AccountingGroup".into(),
            remote_user: "RemoteUser".into(),
            limits: ["MatchedConcurrencyLimits", "ConcurrencyLimits"].map(Name::from),
        }
    }
}

impl Slots {
    /// Reads the slots, and charges each slot in use to its user.
    pub(super) fn read(
        ads: &mut Ads<'_>,
        policy: &Policy,
        accounts: &mut Accounts,
        env: &Env,
    ) -> Result<Self, Stop> {
        let (mut slots, names) = (Self::default(), Attributes::default());
        let mut is_empty = true;
        while let Some(LocatedAd { ad, line }) = ads.next_ad()? {
            is_empty = false;
            if !considered(policy.config.slot_constraint.as_ref(), &ad, env) {
                continue;
            }
            if text(&ad, &names.name, env).is_none() {
                return Err(ads.wrong(line, "the slot's ad has no string as Name"));
            }
            let weight = weigh(&ad, policy, &names, env);
            if considered(policy.config.slot_poolsize_constraint.as_ref(), &ad, env) {
                slots.weight += weight;
            }
            if let Some(user) = user(&ad, &names, env) {
                if policy.config.discount_suspended_resources && is_suspended(&ad, &names, env) {
                    accounts.open(&user);
                } else {
                    accounts.charge(&user, weight);
                }
                slots.claimed += 1;
                let limits = names.limits.iter().find_map(|name| text(&ad, name, env));
                slots.limited.extend(limits.map(|limits| Wants::parse(&limits)));
            }
            slots.candidates.push(Candidate::new(ad, weight));
        }
        if is_empty {
            return Err(Stop::Unusable(format!("{} has no ads of slots", ads.path())));
        }
        if policy.config.allow_pslot_preemption {
            slots.find_parents(env);
        }
        Ok(slots)
    }

    /// Finds the parent of each dynamic slot: the partitionable slot of the same machine and `SlotID`.
    fn find_parents(&mut self, env: &Env) {
        let is = |ad: &Ad, name: &str| ad.eval_attr(name, None, env).as_bool_equiv() == Some(true);
        let key = |ad: &Ad| {
            let machine = ad.eval_attr("Machine", None, env).as_str()?.to_ascii_lowercase();
            Some((machine, ad.eval_attr("SlotID", None, env).as_int()?))
        };
        let parents: HashMap<_, usize> = (self.candidates.iter().enumerate())
            .filter(|(_, slot)| is(&slot.ad, "PartitionableSlot"))
            .filter_map(|(place, slot)| Some((key(&slot.ad)?, place)))
            .collect();
        for slot in self.candidates.iter_mut().filter(|slot| is(&slot.ad, "DynamicSlot")) {
            slot.parent = key(&slot.ad).and_then(|key| parents.get(&key).copied());
        }
    }

    /// The ads of the slots.
    pub(super) fn ads(&self) -> impl Iterator<Item = &Ad> {
        self.candidates.iter().map(|slot| &slot.ad)
    }
}

/// Whether an ad makes a constraint of the negotiator true; true if there is no constraint.
pub(super) fn considered(constraint: Option<&Expr>, ad: &Ad, env: &Env) -> bool {
    constraint.is_none_or(|constraint| constraint.eval(Some(ad), None, env).as_bool_equiv() == Some(true))
}

/// The weight of a slot: its SlotWeight or, if that is no number, SLOT_WEIGHT. As in HTCondor, the weight is 1 if
/// neither is a number, or if the number is negative.
fn weigh(slot: &Ad, policy: &Policy, names: &Attributes, env: &Env) -> f64 {
    let exprs = [slot.get_name(&names.slot_weight), policy.slot_weight.as_ref()];
    let mut exprs = exprs.into_iter().flatten().filter(|_| policy.config.use_slot_weights);
    let weight = exprs.find_map(|expr| expr.eval(Some(slot), None, env).as_number());
    weight.filter(|weight| *weight >= 0.0 && weight.is_finite()).unwrap_or(1.0)
}

/// The user who is charged for a slot, if it is in use.
fn user(slot: &Ad, names: &Attributes, env: &Env) -> Option<String> {
    let state = text(slot, &names.state, env)?;
    let in_use = ["Claimed", "Preempting"].iter().any(|used| state.eq_ignore_ascii_case(used));
    let user = || text(slot, &names.accounting_group, env).or_else(|| text(slot, &names.remote_user, env));
    in_use.then(user).flatten()
}

/// Whether the job in a slot is suspended.
fn is_suspended(slot: &Ad, names: &Attributes, env: &Env) -> bool {
    text(slot, &names.activity, env).is_some_and(|activity| activity.eq_ignore_ascii_case("Suspended"))
}

fn text(slot: &Ad, name: &Name, env: &Env) -> Option<String> {
    slot.get_name(name)?
        .eval(Some(slot), None, env)
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, policy: &Policy) -> Result<(Slots, Accounts), String> {
        let mut accounts = Accounts::default();
        let mut ads = Ads::new("slots".to_owned(), Box::new(text.as_bytes()));
        match Slots::read(&mut ads, policy, &mut accounts, &Env::at(0)) {
            Ok(slots) => Ok((slots, accounts)),
            Err(Stop::Unusable(message)) => Err(message),
            Err(Stop::Io(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn a_slot_weighs_what_it_says() {
        let slots = "Name = \"a\"\nCpus = 4\nSlotWeight = Cpus * 2\n\nName = \"b\"\nCpus = 3\n\nName = \"c\"\nSlotWeight = -1\n\n\
                     Name = \"d\"\nCpus = 5\nSlotWeight = error\n\nName = \"e\"\nCpus = 6\nSlotWeight = \"2\"\n";
        let weights = |policy: &Policy| -> Vec<f64> {
            read(slots, policy).unwrap().0.candidates.iter().map(|slot| slot.weight).collect()
        };
        let mut policy = Policy::default();
        assert_eq!(weights(&policy), [8.0, 1.0, 1.0, 1.0, 1.0]);
        policy.slot_weight = Expr::parse("Cpus").ok();
        assert_eq!(weights(&policy), [8.0, 3.0, 1.0, 5.0, 6.0]);
        policy.config.use_slot_weights = false;
        assert_eq!(weights(&policy), [1.0; 5]);
    }

    #[test]
    fn slots_in_use_are_charged() {
        let slots = "Name = \"a\"\nState = \"Claimed\"\nRemoteUser = \"u@x\"\nSlotWeight = 2\n\n\
                     Name = \"b\"\nState = \"Preempting\"\nRemoteUser = \"u@x\"\nAccountingGroup = \"g.u@x\"\n\
                     MatchedConcurrencyLimits = \"lic:2\"\n\n\
                     Name = \"c\"\nState = \"Unclaimed\"\nSlotWeight = 3\n";
        let (slots, accounts) = read(slots, &Policy::default()).unwrap();
        assert_eq!((slots.candidates.len(), slots.claimed, slots.weight), (3, 2, 6.0));
        assert_eq!(slots.limited, [Wants::parse("lic:2")]);
        let used: Vec<(&str, f64)> = accounts.names().zip([accounts.used(0), accounts.used(1)]).collect();
        assert_eq!(used, [("u@x", 2.0), ("g.u@x", 1.0)]);
    }

    #[test]
    fn slots_outside_the_constraint_are_not_there() {
        let mut policy = Policy::default();
        policy.config.slot_constraint = Expr::parse("Site == 1").ok();
        let (slots, _) = read("Name = \"a\"\nSite = 1\n\nName = \"b\"\n", &policy).unwrap();
        assert_eq!((slots.candidates.len(), slots.weight), (1, 1.0));
    }

    #[test]
    fn dynamic_slots_know_the_slot_that_they_were_carved_from() {
        let slots = "Name = \"slot1_1@a\"\nMachine = \"A\"\nSlotID = 1\nDynamicSlot = true\n\n\
                     Name = \"slot2@a\"\nMachine = \"a\"\nSlotID = 2\nPartitionableSlot = true\n\n\
                     Name = \"slot1@a\"\nMachine = \"a\"\nSlotID = 1\nPartitionableSlot = true\n\n\
                     Name = \"slot1_1@b\"\nMachine = \"b\"\nSlotID = 1\nDynamicSlot = true\n";
        let parents = |policy: &Policy| -> Vec<Option<usize>> {
            read(slots, policy).unwrap().0.candidates.iter().map(|slot| slot.parent).collect()
        };
        let mut policy = Policy::default();
        assert_eq!(parents(&policy), [None; 4]);
        policy.config.allow_pslot_preemption = true;
        assert_eq!(parents(&policy), [Some(2), None, None, None]);
    }

    #[test]
    fn a_slot_without_a_name_is_told_with_its_place() {
        let fault = read("\nCpus = 1\n", &Policy::default()).err().unwrap();
        assert_eq!(fault, "slots: line 2, column 1: the slot's ad has no string as Name");
    }
}
