//! Group quotas in force: for the whole pool, as people see them, and for each negotiator's slots, as claims must keep
//! them.
//!
//! A static quota is an amount of the whole pool, whichever negotiator's slots are used. A dynamic quota is a share of
//! each negotiator's slots. HTCondor's negotiators know nothing of each other, so that a group may use its static quota
//! once with each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::sharing;
use crate::negotiator::Config;
use crate::negotiator::excess::Excess;
use crate::negotiator::groups::{Allotments, GroupError, GroupSpec, Quota as GroupQuota, Tree};
use crate::pool::{AtWork, Group, NegotiatorId, Pool, Quota, QuotasInForce, Time};
use crate::schedd::Quotas;
use classad::Env;

/// The quotas in force now in the whole pool, with what the last cycles gave in addition; and for each GroupQuota
/// object that is not accepted, the reason.
///
/// Many statuses that are written at the same time share one computation, which takes a look at all slots.
pub fn quotas(pool: &Pool, now: Time) -> Arc<QuotasInForce> {
    pool.quotas_in_force(now, || compute(pool, now))
}

fn compute(pool: &Pool, now: Time) -> QuotasInForce {
    if pool.groups().is_empty() {
        return (Quotas::none(pool.first_negotiator()), BTreeMap::new());
    }
    let all = pool.at_work();
    let config = &pool.negotiator().cycle;
    let tree = whole(pool, config);
    let refused = refused(pool, &tree).into_iter().map(|(object, error)| {
        let why = refusal(pool, &object, &error);
        (object, why)
    });
    let refused = refused.collect();
    let given = pool.given();
    let oversubscription = config.allow_quota_oversubscription;
    let quotas =
        Quotas::new(pool.first_negotiator(), &tree, weight_of(pool, &all, now), oversubscription, &given);
    (quotas, refused)
}

/// For each GroupQuota object that is not accepted, the reason.
pub fn refused_groups(pool: &Pool) -> BTreeMap<Arc<str>, GroupError> {
    refused(pool, &whole(pool, &pool.negotiator().cycle))
}

/// Quotas that add up to more than there is, each with its GroupQuota object.
pub fn excesses(pool: &Pool) -> Vec<(Arc<str>, Excess)> {
    let objects = objects(pool);
    let found = whole(pool, &pool.negotiator().cycle).excesses().into_iter();
    found.filter_map(|excess| Some((objects.get(excess.spec)?.clone(), excess))).collect()
}

/// Says why a GroupQuota object is not accepted.
pub fn refusal(pool: &Pool, object: &Arc<str>, error: &GroupError) -> String {
    let duplicate = matches!(error, GroupError::Duplicate { .. });
    let group = pool.groups().get(object).filter(|_| duplicate);
    group.and_then(|group| rivalry(pool, group)).unwrap_or_else(|| error.to_string())
}

/// Says which other GroupQuota declares the same group, and which of the two counts; `None` if no other does.
pub fn rivalry(pool: &Pool, group: &Group) -> Option<String> {
    let other = pool.rival_of(group)?;
    let counts = pool.group(&group.name).is_some_and(|first| first.object == other.object);
    let counts = if counts { "and counts" } else { "and does not count" };
    Some(format!(
        "the GroupQuota {} declares the group {}, too, {counts}; delete one of the two, or rename its group",
        other.object, other.name
    ))
}

/// The names of the GroupQuota objects, in the order in which trees are made of them.
fn objects(pool: &Pool) -> Vec<Arc<str>> {
    pool.ranked_groups().map(|group| Arc::clone(&group.object)).collect()
}

fn refused(pool: &Pool, tree: &Tree) -> BTreeMap<Arc<str>, GroupError> {
    let objects = objects(pool);
    let of = |(index, error): &(usize, GroupError)| Some((objects.get(*index)?.clone(), error.clone()));
    tree.refused().iter().filter_map(of).collect()
}

/// The time of a decision, and the quotas in force at that time.
///
/// If there is one negotiator, its quotas are computed when they are first asked for, and hold until the decision ends. To
/// compute them takes a look at all slots, and one decision may ask for each of many slots. The quotas with one of several
/// negotiators depend on what the others have, which a decision changes.
pub(super) struct Moment {
    pub(super) now: Time,
    by_negotiator: RefCell<BTreeMap<NegotiatorId, Rc<Quotas>>>,
}

impl Moment {
    pub(super) fn at(now: Time) -> Self {
        Self { now, by_negotiator: RefCell::default() }
    }

    /// The quotas that claims of this negotiator must keep; those of another negotiator if it is gone.
    pub(super) fn quotas(&self, pool: &Pool, negotiator: &NegotiatorId) -> Rc<Quotas> {
        let id = pool.answering(negotiator);
        if pool.negotiators().len() > 1 {
            return Rc::new(quotas_with(pool, &id, self.now));
        }
        let mut known = self.by_negotiator.borrow_mut();
        let quotas = known.entry(id).or_insert_with_key(|id| Rc::new(quotas_with(pool, id, self.now)));
        Rc::clone(quotas)
    }
}

/// The quotas that claims made by a negotiator must keep.
pub(super) fn quotas_with(pool: &Pool, id: &NegotiatorId, now: Time) -> Quotas {
    let all = pool.at_work();
    let one = all.iter().find(|one| one.id == *id).or_else(|| all.first());
    let (Some(one), false) = (one, pool.groups().is_empty()) else {
        return Quotas::none(id.clone());
    };
    let tree = tree(pool, one, &all, now);
    let weight = sharing::weight(pool, one, &Env::at(now.secs()));
    let oversubscription = one.config.cycle.allow_quota_oversubscription;
    Quotas::new(id.clone(), &tree, weight, oversubscription, &pool.schedule().turn(&one.id).given)
}

/// The groups as a negotiator's cycle knows them. If a group's quota is static, or is a share of a static quota around it, the group's use
/// of other negotiators' slots is subtracted from the quota.
pub(super) fn tree(pool: &Pool, one: &AtWork, all: &[AtWork], now: Time) -> Tree {
    let config = &one.config.cycle;
    if all.len() < 2 || pool.groups().is_empty() {
        return whole(pool, config);
    }
    let whole = whole(pool, config);
    let allotments = whole.assign(weight_of(pool, all, now), config.allow_quota_oversubscription);
    let specs: Vec<GroupSpec> = pool
        .ranked_groups()
        .map(|group| {
            let mut spec = spec_of(group, config);
            if let Some(amount) = amount_of(pool, group, &whole, &allotments) {
                let left = (amount - pool.in_use().subtree_elsewhere(&group.name, &one.id)).max(0.0);
                spec.quota = Some(GroupQuota::Static(left));
            }
            spec
        })
        .collect();
    Tree::new(&specs)
}

/// The quota of a group as an amount; `None` if neither the group nor any group around it has a static quota.
fn amount_of(pool: &Pool, group: &Group, whole: &Tree, allotments: &Allotments) -> Option<f64> {
    if let Quota::Static(amount) = group.quota {
        return Some(amount);
    }
    let is_static = |around: &Group| matches!(around.quota, Quota::Static(_));
    group.name.ancestry().any(|name| pool.group(&name).is_some_and(is_static)).then_some(())?;
    let allotment = allotments.groups.get(whole.find(group.name.as_str())?)?;
    Some(allotment.subtree_quota)
}

/// The weight of the slots of all negotiators.
fn weight_of(pool: &Pool, all: &[AtWork], now: Time) -> f64 {
    let env = Env::at(now.secs());
    all.iter().map(|one| sharing::weight(pool, one, &env)).fold(0.0, |sum, weight| sum + weight)
}

/// The groups as they are declared.
fn whole(pool: &Pool, config: &Config) -> Tree {
    let specs: Vec<GroupSpec> = pool.ranked_groups().map(|group| spec_of(group, config)).collect();
    Tree::new(&specs)
}

fn spec_of(group: &Group, config: &Config) -> GroupSpec {
    GroupSpec {
        name: group.name.as_str().to_owned(),
        quota: Some(match group.quota {
            Quota::Static(quota) => GroupQuota::Static(quota),
            Quota::Dynamic(share) => GroupQuota::Dynamic(share),
        }),
        accept_surplus: group.accept_surplus.unwrap_or(config.group_accept_surplus),
        autoregroup: group.autoregroup.unwrap_or(config.group_autoregroup),
    }
}
