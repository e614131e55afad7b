//! Ceilings and quotas: how much submitters, owners and groups may hold.
//!
//! In HTCondor a submitter may overshoot by one match; here a quota is a promise. A submitter's ceiling limits all that
//! the submitter holds, whichever negotiators made the matches. An owner's ceiling limits all that the owner's
//! submitters hold, whichever groups they charge. Quotas limit what is held of the negotiator's own slots.

use std::collections::BTreeMap;

use super::terms::Refusal;
use crate::negotiator::groups::{Allotment, Group, Tree};
use crate::pool::{Claim, Given, GroupName, NegotiatorId, Pool, SubmitterName};

/// The caps of a group, in slot weight.
#[derive(Clone, Copy, Debug)]
struct Cap {
    /// The quota in force of the group and the groups inside it.
    quota: f64,
    /// The quota in force of the group alone.
    own_quota: f64,
    /// The most that the group's own submitters may hold, surplus included.
    own: f64,
    /// The most that the group's own submitters and the groups inside it may hold, surplus included.
    subtree: f64,
    /// Whether the group's jobs also compete with jobs of no group, where no quota binds them.
    autoregroup: bool,
}

/// Quotas in force for claims of one negotiator: the most slot weight of its slots that each group may hold, together
/// with the groups inside it, and that jobs of no group may hold.
#[derive(Debug, Default)]
pub struct Quotas {
    /// The negotiator whose claims the quotas are for.
    pub negotiator: NegotiatorId,
    /// The caps of each group, by its name in lower case.
    by_name: BTreeMap<String, Cap>,
    /// The most that jobs of no group may hold; `None` if no quota binds them, since there are no groups or a group has
    /// `GROUP_AUTOREGROUP`.
    ungrouped: Option<f64>,
}

impl Quotas {
    /// No quotas, because there are no groups.
    pub fn none(negotiator: NegotiatorId) -> Self {
        Self { negotiator, ..Self::default() }
    }

    /// Computes the quotas from the declared groups and the weight of the negotiator's slots. For groups that accept
    /// surplus, slot weight that the last cycle gave beyond their quotas counts, too.
    pub fn new(
        negotiator: NegotiatorId,
        tree: &Tree,
        pool_weight: f64,
        oversubscription: bool,
        given: &Given,
    ) -> Self {
        let allotments = tree.assign(pool_weight, oversubscription);
        let cap = |group: &Group, allotment: &Allotment| {
            let name = group.name.to_ascii_lowercase();
            let given = given.groups.get(&name).copied().unwrap_or_default();
            let surplus = if group.accept_surplus { given.subtree_limit } else { 0.0 };
            let cap = Cap {
                quota: allotment.subtree_quota,
                own_quota: allotment.quota,
                // The part of the quota that the groups inside a group leave belongs to the group's own submitters,
                // whether or not the group accepts surplus.
                own: given.limit.max(allotment.quota),
                subtree: surplus.max(allotment.subtree_quota),
                autoregroup: group.autoregroup,
            };
            (name, cap)
        };
        let regroups = tree.groups().iter().any(|group| group.autoregroup);
        let of_root = given.root.map_or(0.0, |root| root.limit).max(allotments.root.quota);
        Self {
            negotiator,
            by_name: tree.groups().iter().zip(&allotments.groups).map(|(g, a)| cap(g, a)).collect(),
            ungrouped: (!tree.groups().is_empty() && !regroups).then_some(of_root),
        }
    }

    /// The quota in force of a group together with the groups inside it, without surplus; `None` if the group is not
    /// declared.
    pub fn of(&self, group: &str) -> Option<f64> {
        self.cap(group).map(|cap| cap.quota)
    }

    /// The quota in force of a group's own submitters, without surplus; `None` if the group is not declared.
    pub fn own(&self, group: &str) -> Option<f64> {
        self.cap(group).map(|cap| cap.own_quota)
    }

    fn cap(&self, group: &str) -> Option<&Cap> {
        self.by_name.get(&group.to_ascii_lowercase())
    }
}

/// The part of a claim that counts against caps: who is charged, and how much.
#[derive(Clone, Copy)]
pub(super) struct Claimant<'a> {
    /// The submitter who is charged.
    pub(super) submitter: &'a SubmitterName,
    /// The accounting group to which the claim is charged.
    pub(super) group: Option<&'a GroupName>,
    /// The claim's weight.
    pub(super) weight: f64,
}

/// The claims whose weight is subtracted from the usage when a claim is checked.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// No claims: the claim to check is new, and its resources are free.
    Free,
    /// The claim to check itself: its weight is counted already.
    Own(&'a Claim),
    /// The claims that the new claim replaces, whose weight is then returned. As in the negotiator, a group that has
    /// reached its quota may still preempt its own jobs: a claim by which the use of the group does not grow is
    /// allowed, even if the group uses more than its quota.
    Of(&'a [&'a Claim]),
}

impl Place<'_> {
    /// The total weight of those claims for which `counts` is true.
    fn weight(self, counts: impl Fn(&Claim) -> bool) -> f64 {
        let sum =
            |claims: &[&Claim]| claims.iter().filter(|claim| counts(claim)).map(|claim| claim.weight).sum();
        match self {
            Self::Free => 0.0,
            Self::Own(claim) => sum(&[claim]),
            Self::Of(claims) => sum(claims),
        }
    }
}

/// Whether a claim is within the ceilings of its submitter and owner, and within the quotas of its group and the groups
/// around it, surplus included. Replaced claims that the objects of their slots may still name have not returned their
/// weight yet.
pub(super) fn within(pool: &Pool, claimant: Claimant, place: Place, quotas: &Quotas) -> Result<(), Refusal> {
    if !within_ceilings(pool, claimant, place) {
        Err(Refusal::Ceiling)
    } else if !within_quotas(pool, claimant, place, quotas) {
        Err(Refusal::Quota)
    } else {
        Ok(())
    }
}

/// The weight to add to the usage that the accounts show, counting only claims for which `counts` is true: that of
/// replaced claims which objects may still name, minus that of the claims in `place`.
fn pending(pool: &Pool, place: Place, counts: impl Fn(&Claim) -> bool) -> f64 {
    let carried: f64 =
        pool.holdings().carried().filter(|claim| counts(claim)).map(|claim| claim.weight).sum();
    carried - place.weight(counts)
}

fn within_ceilings(pool: &Pool, Claimant { submitter, weight, .. }: Claimant, place: Place) -> bool {
    let fits = |used: f64, ceiling: f64| used + weight <= ceiling + SLACK;
    let own = pool.submitters().get(submitter);
    if let Some((ceiling, used)) = own.and_then(|s| Some((s.ceiling?, s.accounts.weighted_resources_used())))
        && !fits(used + pending(pool, place, |claim| claim.submitter == *submitter), ceiling)
    {
        return false;
    }
    let owner = submitter.owner();
    let Some(ceiling) = pool.submitters().get(&owner).and_then(|owner| owner.ceiling) else { return true };
    fits(
        pool.in_use().owner(&owner) + pending(pool, place, |claim| claim.submitter.owner() == owner),
        ceiling,
    )
}

fn within_quotas(
    pool: &Pool,
    Claimant { group, weight, .. }: Claimant,
    place: Place,
    quotas: &Quotas,
) -> bool {
    let with = &quotas.negotiator;
    let shared = |claim: &Claim| pool.answering(&claim.negotiator) == *with;
    let is_own = |claim: &Claim| match (&claim.group, group) {
        (Some(own), Some(group)) => own.is_same(group),
        (own, group) => own.is_none() && group.is_none(),
    };
    let fits = |used: f64, cap: f64| used + weight <= cap + SLACK;
    let grows = |counts: &dyn Fn(&Claim) -> bool| match place {
        Place::Of(_) => weight > place.weight(|claim| counts(claim) && shared(claim)) + SLACK,
        Place::Free | Place::Own(_) => true,
    };
    let own_used =
        || pool.in_use().own(group, with) + pending(pool, place, |claim| is_own(claim) && shared(claim));
    let own_fits = |cap: f64| !grows(&is_own) || fits(own_used(), cap);
    let Some(group) = group else { return quotas.ungrouped.is_none_or(own_fits) };
    let own = quotas.cap(group.as_str());
    if own.is_some_and(|own| own.autoregroup) {
        return true;
    }
    own.is_none_or(|own| own_fits(own.own))
        && group.ancestry().all(|group| {
            let inside = |claim: &Claim| claim.group.as_ref().is_some_and(|own| group.contains(own));
            let used = || {
                pool.in_use().subtree(&group, with)
                    + pending(pool, place, |claim| inside(claim) && shared(claim))
            };
            quotas.cap(group.as_str()).is_none_or(|cap| !grows(&inside) || fits(used(), cap.subtree))
        })
}

/// The rounding error that sums of weights may have.
const SLACK: f64 = 1e-9;
