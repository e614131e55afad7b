//! All submitters, with sums of what groups and owners use.

use std::collections::{BTreeMap, BTreeSet};

use super::Pool;
use super::accountant::Account;
use super::ids::{GroupName, SubmitterName};
use super::marks::Change;
use super::negotiators::NegotiatorId;
use super::submitter::Submitter;
use super::time::Time;

/// All submitters. The sums follow each change of an account, because accounts change only by [`Submitters::edit`].
#[derive(Clone, Debug, Default)]
pub(super) struct Submitters {
    by_name: BTreeMap<SubmitterName, Submitter>,
    in_use: InUse,
    /// The submitters that are new, or whose queue has changed: whether anything needs them is to be found out.
    doubtful: BTreeSet<SubmitterName>,
}

impl Submitters {
    /// All submitters, by their names.
    pub(super) fn by_name(&self) -> &BTreeMap<SubmitterName, Submitter> {
        &self.by_name
    }

    /// Changes a submitter; `None` if there is no submitter of this name.
    pub(super) fn edit<T>(
        &mut self,
        name: &SubmitterName,
        edit: impl FnOnce(&mut Submitter) -> T,
    ) -> Option<T> {
        let submitter = self.by_name.get_mut(name)?;
        Some(self.in_use.follow(submitter, edit))
    }

    /// Notes that the submitter's queue has changed.
    pub(super) fn queue_changed(&mut self, name: &SubmitterName) {
        self.doubtful.insert(name.clone());
    }

    /// Forgets a submitter that uses nothing. Returns whether there was such a submitter.
    fn forget_idle(&mut self, name: &SubmitterName) -> bool {
        let is_idle =
            |submitter: &Submitter| submitter.accounts.iter().all(|(_, account)| account.resources_used == 0);
        self.by_name.get(name).is_some_and(is_idle) && self.by_name.remove(name).is_some()
    }

    /// Changes each submitter, in the order of their names.
    fn edit_all(&mut self, mut edit: impl FnMut(&mut Submitter)) {
        for submitter in self.by_name.values_mut() {
            self.in_use.follow(submitter, &mut edit);
        }
    }
}

/// The slot weight that groups and owners use: sums over the accounts of their submitters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InUse {
    /// By the name of the group in lower case, and by negotiator. The empty name stands for submitters of no group.
    groups: BTreeMap<String, BTreeMap<NegotiatorId, GroupUse>>,
    /// By owner, with all negotiators together.
    owners: BTreeMap<SubmitterName, Weight>,
}

/// The use of a group with a negotiator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct GroupUse {
    /// By the group's own submitters.
    own: Weight,
    /// By the group's own submitters and those of the groups inside the group.
    subtree: Weight,
}

impl InUse {
    /// The slot weight of a negotiator's slots that the own submitters of a group use, without the groups inside that
    /// group; for `None`, that of the submitters of no group.
    pub fn own(&self, group: Option<&GroupName>, with: &NegotiatorId) -> f64 {
        self.of(group.map_or("", GroupName::as_str), with).own.amount()
    }

    /// The slot weight of a negotiator's slots that a group and the groups inside it use.
    pub fn subtree(&self, group: &GroupName, with: &NegotiatorId) -> f64 {
        self.of(group.as_str(), with).subtree.amount()
    }

    /// The slot weight that a group and the groups inside it use, with all negotiators together.
    pub fn subtree_with_all(&self, group: &GroupName) -> f64 {
        self.subtree_but(group, None)
    }

    /// The slot weight of other negotiators' slots that a group and the groups inside it use.
    pub fn subtree_elsewhere(&self, group: &GroupName, than: &NegotiatorId) -> f64 {
        self.subtree_but(group, Some(than))
    }

    /// The slot weight that all submitters of an owner use, whichever groups they charge.
    pub fn owner(&self, owner: &SubmitterName) -> f64 {
        self.owners.get(owner).copied().unwrap_or_default().amount()
    }

    fn of(&self, group: &str, with: &NegotiatorId) -> GroupUse {
        let by_negotiator = self.groups.get(&group.to_ascii_lowercase());
        by_negotiator.and_then(|uses| uses.get(with)).copied().unwrap_or_default()
    }

    fn subtree_but(&self, group: &GroupName, than: Option<&NegotiatorId>) -> f64 {
        let uses = self.groups.get(&group.as_str().to_ascii_lowercase()).into_iter().flatten();
        let counted = uses.filter(|(id, _)| Some(*id) != than).map(|(_, used)| used.subtree);
        counted.fold(Weight::default(), Weight::plus).amount()
    }

    /// Changes a submitter, and the sums with the submitter's accounts.
    fn follow<T>(&mut self, submitter: &mut Submitter, edit: impl FnOnce(&mut Submitter) -> T) -> T {
        self.count(submitter, Weight::minus);
        let result = edit(submitter);
        self.count(submitter, Weight::plus);
        result
    }

    /// Adds what a submitter's accounts say is in use to all sums that contain it, or subtracts that from them.
    fn count(&mut self, submitter: &Submitter, change: fn(Weight, Weight) -> Weight) {
        let used = |weight: f64| Some(Weight::new(weight)).filter(|weight| *weight != Weight::default());
        let accounts = submitter.accounts.iter();
        let accounts =
            accounts.filter_map(|(id, account)| Some((id, used(account.weighted_resources_used)?)));
        for (id, weight) in accounts {
            let of_owner = self.owners.entry(submitter.name.owner()).or_default();
            *of_owner = change(*of_owner, weight);
            let group = submitter.group();
            let own = self.use_mut(group.as_ref().map_or("", GroupName::as_str), id);
            own.own = change(own.own, weight);
            for around in group.iter().flat_map(GroupName::ancestry) {
                let outer = self.use_mut(around.as_str(), id);
                outer.subtree = change(outer.subtree, weight);
            }
        }
    }

    fn use_mut(&mut self, group: &str, with: &NegotiatorId) -> &mut GroupUse {
        self.groups.entry(group.to_ascii_lowercase()).or_default().entry(with.clone()).or_default()
    }
}

/// An amount of slot weight in units of 2⁻⁶⁴. Since sums of whole numbers have no rounding errors, a running sum stays
/// equal to the sum over the accounts, however often these change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weight(i128);

/// 2⁶⁴, the number of units in a weight of 1.
const UNITS: f64 = 18_446_744_073_709_551_616.0;

#[allow(
    clippy::cast_possible_truncation,
    reason = "a cast from a float ends at the least and the greatest number"
)]
#[allow(clippy::cast_precision_loss, reason = "a sum is read as precisely as a float can be")]
impl Weight {
    fn new(amount: f64) -> Self {
        Self((amount * UNITS) as i128)
    }

    fn amount(self) -> f64 {
        self.0 as f64 / UNITS
    }

    /// The sum. A sum that is too large begins anew from the least number, so that [`Self::minus`] undoes it.
    fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    fn minus(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl Pool {
    /// The slot weight that groups and owners use.
    pub fn in_use(&self) -> &InUse {
        &self.submitters.in_use
    }

    /// Changes the submitter of this name; a new one if there was none.
    pub fn edit_submitter<T>(
        &mut self,
        name: &SubmitterName,
        now: Time,
        edit: impl FnOnce(&mut Submitter) -> T,
    ) -> T {
        if !self.submitters.by_name.contains_key(name) {
            self.changed(Change::Submitter(name));
            self.submitters.doubtful.insert(name.clone());
        }
        let submitters = &mut self.submitters;
        let submitter =
            submitters.by_name.entry(name.clone()).or_insert_with(|| Submitter::new(name.clone(), now));
        submitters.in_use.follow(submitter, edit)
    }

    /// Somebody deleted the object of a submitter. A submitter without jobs and claims is forgotten, as by `condor_userprio -delete`. The
    /// object of any other submitter is made again, with the account.
    pub(super) fn submitter_gone(&mut self, name: &SubmitterName) {
        let has_jobs = self.queues().of(name).next().is_some();
        if has_jobs || !self.submitters.forget_idle(name) {
            self.submitters.edit(name, Submitter::forget_object);
        }
        self.changed(Change::Submitter(name));
    }

    /// Forgets the submitters that nothing needs: they have no jobs in the queue, they have never used anything, nothing is set for
    /// them, and nobody but the operator made their objects. The operator then deletes these objects.
    ///
    /// HTCondor's accountant forgets such a customer as well (`Accountant.cpp`, `UpdateOnePriority`). Otherwise a user who writes one
    /// group after the other into a job would make as many Submitters.
    pub fn forget_unused_submitters(&mut self, now: Time) {
        for name in std::mem::take(&mut self.submitters.doubtful) {
            let Some(submitter) = self.submitters.by_name.get(&name) else { continue };
            let has_used = |(id, account): (&NegotiatorId, &Account)| {
                !account.is_empty(now.millis(), self.halflife_of(id))
            };
            let is_needed = submitter.is_set()
                || submitter.accounts.iter().any(has_used)
                || self.queues().of(&name).next().is_some();
            if !is_needed {
                self.submitters.by_name.remove(&name);
                self.changed(Change::Submitter(&name));
            }
        }
    }

    /// Changes each submitter, in the order of their names.
    pub(super) fn edit_submitters(&mut self, edit: impl FnMut(&mut Submitter)) {
        self.submitters.edit_all(edit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 6] =
        ["ada", "bob", "physics.ada", "Physics.bob", "physics.higgs.ada", "physicsX.eve"];

    /// One change of an account: whose, with which negotiator, and the weight of a slot that is charged or no longer.
    fn changes() -> impl Strategy<Value = Vec<(usize, bool, f64, bool)>> {
        let weight = prop_oneof![Just(0.1), Just(1.0), 0.0..1e6];
        prop::collection::vec((0..NAMES.len(), any::<bool>(), weight, any::<bool>()), 0..60)
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn sums_are_those_over_the_accounts(changes in changes()) {
            let mut pool = Pool::default();
            let ids = [NegotiatorId::Unnamed, NegotiatorId::from(Some("east"))];
            for (name, east, weight, stops) in changes {
                pool.edit_submitter(&NAMES[name].into(), Time::default(), |submitter| {
                    let account = submitter.accounts.of_mut(&ids[usize::from(east)], Time::default());
                    if stops { account.stop_charging(weight, 0, 1.0) } else { account.charge(weight, 0, 1.0) }
                });
            }
            let sum = |counts: &dyn Fn(&Submitter) -> bool, with: &NegotiatorId| -> f64 {
                let submitters = pool.submitters().values().filter(|submitter| counts(submitter));
                submitters.map(|submitter| submitter.accounts.used_with(with)).sum()
            };
            let in_use = pool.in_use();
            for id in &ids {
                let of_none = sum(&|submitter| submitter.group().is_none(), id);
                prop_assert!(close(in_use.own(None, id), of_none));
                for group in ["physics", "PHYSICS.HIGGS", "physicsX", "chemistry"].map(GroupName::from) {
                    let own = sum(&|submitter| submitter.group().is_some_and(|own| own.is_same(&group)), id);
                    prop_assert!(close(in_use.own(Some(&group), id), own));
                    let inside = |submitter: &Submitter| submitter.group().is_some_and(|own| group.contains(&own));
                    prop_assert!(close(in_use.subtree(&group, id), sum(&inside, id)));
                    let both = ids.iter().map(|id| sum(&inside, id)).sum();
                    prop_assert!(close(in_use.subtree_with_all(&group), both));
                    prop_assert!(close(in_use.subtree_elsewhere(&group, id), both - sum(&inside, id)));
                }
            }
            for owner in ["ada", "bob", "eve"].map(SubmitterName::from) {
                let all = pool.submitters().values().filter(|submitter| submitter.name.owner() == owner);
                let used = all.map(|submitter| submitter.accounts.weighted_resources_used()).sum();
                prop_assert!(close(in_use.owner(&owner), used));
            }
        }
    }

    /// Ten million claims of a tenth of a core leave nothing behind.
    #[test]
    fn a_running_sum_has_no_rounding_errors() {
        let mut sum = Weight::new(1000.0);
        for _ in 0..10_000_000 {
            sum = sum.plus(Weight::new(0.1));
        }
        for _ in 0..10_000_000 {
            sum = sum.minus(Weight::new(0.1));
        }
        assert_eq!(sum, Weight::new(1000.0));
        assert_eq!(
            Weight::new(f64::INFINITY).plus(Weight::new(2.0)).minus(Weight::new(2.0)),
            Weight::new(f64::INFINITY)
        );
    }
}
