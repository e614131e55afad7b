//! Submitters and their accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pool;
use super::accountant::{Account, Correction};
use super::ids::{GroupName, SubmitterName};
use super::job::Problem;
use super::negotiators::NegotiatorId;
use super::policy::NegotiatorConfig;
use super::time::Time;

/// The usage of a submitter: an account with each negotiator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts(BTreeMap<NegotiatorId, Account>);

impl Accounts {
    /// The account with a negotiator; `None` if the submitter never used a slot of that negotiator.
    pub fn of(&self, id: &NegotiatorId) -> Option<&Account> {
        self.0.get(id)
    }

    /// The account with a negotiator; a new account if there was none.
    pub fn of_mut(&mut self, id: &NegotiatorId, now: Time) -> &mut Account {
        self.0.entry(id.clone()).or_insert_with(|| Account::new(now.millis()))
    }

    /// All accounts, each with its negotiator.
    pub fn iter(&self) -> impl Iterator<Item = (&NegotiatorId, &Account)> {
        self.0.iter()
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&NegotiatorId, &mut Account) -> bool) {
        self.0.retain(keep);
    }

    /// Slots in use with all negotiators.
    pub fn resources_used(&self) -> u64 {
        self.0.values().map(|account| account.resources_used).sum()
    }

    /// Slot weight in use with all negotiators.
    pub fn weighted_resources_used(&self) -> f64 {
        self.0.values().fold(0.0, |sum, account| sum + account.weighted_resources_used)
    }

    /// Slot weight times seconds with all negotiators, from the beginning to `now`.
    pub fn weighted_usage_at(&self, now: Time) -> f64 {
        // Accumulated usage does not depend on the half-life.
        let at_now = self.0.values().map(|account| account.at(now.millis(), 1.0).weighted_accumulated_usage);
        at_now.fold(0.0, |sum, usage| sum + usage)
    }

    /// Slot weight in use with a negotiator.
    pub fn used_with(&self, id: &NegotiatorId) -> f64 {
        self.of(id).map_or(0.0, |account| account.weighted_resources_used)
    }

    /// Slot weight in use with all other negotiators.
    pub fn used_elsewhere(&self, id: &NegotiatorId) -> f64 {
        let others = self.0.iter().filter(|(other, _)| *other != id);
        others.fold(0.0, |sum, (_, account)| sum + account.weighted_resources_used)
    }

    /// Moves what was used with negotiator `from` into the account with negotiator `to`, as of `now`. The half-life is
    /// in seconds.
    pub(super) fn hand_over(&mut self, from: &NegotiatorId, to: &NegotiatorId, now: Time, halflife: f64) {
        let Some(account) = self.0.remove(from) else { return };
        match self.0.get_mut(to) {
            Some(kept) => kept.join(account, now.millis(), halflife),
            None => {
                self.0.insert(to.clone(), account);
            }
        }
    }
}

impl FromIterator<(NegotiatorId, Account)> for Accounts {
    fn from_iter<I: IntoIterator<Item = (NegotiatorId, Account)>>(accounts: I) -> Self {
        Self(accounts.into_iter().collect())
    }
}

/// A submitter.
#[derive(Clone, Debug)]
pub struct Submitter {
    /// The submitter's name, as the accountant uses it.
    pub name: SubmitterName,
    /// The `metadata.generation` of the Submitter object that was seen last; `None` while there is no object.
    pub generation: Option<i64>,
    /// Whether a person made the object.
    pub by_hand: bool,
    /// The factor that an admin set.
    pub factor: Option<f64>,
    /// The ceiling that an admin set, in slot weight.
    pub ceiling: Option<f64>,
    /// The floor that an admin set, in slot weight.
    pub floor: Option<f64>,
    /// The id of the last correction of an account that was made.
    pub corrected: Option<Arc<str>>,
    /// Why the object's spec is not in force, or the correction that it asks for cannot be made.
    pub problems: Vec<Problem>,
    /// Parts of the object's spec that have no effect.
    pub in_vain: Vec<Problem>,
    /// When this operator first heard of the submitter. Accounts that do not exist yet begin at this time.
    pub since: Time,
    /// The usage of the submitter.
    pub accounts: Accounts,
}

impl Submitter {
    /// A submitter that was never seen before.
    pub fn new(name: SubmitterName, now: Time) -> Self {
        Self {
            name,
            generation: None,
            by_hand: false,
            factor: None,
            ceiling: None,
            floor: None,
            corrected: None,
            problems: Vec::new(),
            in_vain: Vec::new(),
            since: now,
            accounts: Accounts::default(),
        }
    }

    /// The Submitter object is gone: forgets what an admin set there. A correction that was made stays made.
    pub fn forget_object(&mut self) {
        (self.generation, self.factor, self.ceiling, self.floor) = (None, None, None, None);
        self.by_hand = false;
        self.problems.clear();
        self.in_vain.clear();
    }

    /// Whether an admin set, or tried to set, anything of the submitter. Also true if an admin made the object.
    pub fn is_set(&self) -> bool {
        let set = [self.factor, self.ceiling, self.floor].iter().any(Option::is_some);
        set || self.by_hand || self.corrected.is_some() || !self.problems.is_empty()
    }

    /// The present account with a negotiator; a new account if the submitter never used a slot of that negotiator.
    pub fn account_with(&self, id: &NegotiatorId) -> Account {
        self.accounts.of(id).cloned().unwrap_or_else(|| Account::new(self.since.millis()))
    }

    /// Makes a correction of the account with a negotiator, unless a correction with the same id was made already.
    /// Returns whether it was made. The half-life is in seconds.
    pub fn correct(
        &mut self,
        correction: &Correction,
        with: &NegotiatorId,
        now: Time,
        halflife: f64,
    ) -> bool {
        if self.corrected.as_ref() == Some(&correction.id) {
            return false;
        }
        self.accounts.of_mut(with, now).correct(correction, now.millis(), halflife);
        self.corrected = Some(Arc::clone(&correction.id));
        true
    }

    /// The accounting group: the part of the name before the last dot.
    pub fn group(&self) -> Option<GroupName> {
        self.name.as_str().rsplit_once('.').map(|(group, _)| group.into())
    }
}

impl Pool {
    /// A submitter's priority factor. The first of these that exists: the submitter's own; the factor of nice users;
    /// the group's; the factor of submitters of another domain than `ACCOUNTANT_LOCAL_DOMAIN`; the default.
    ///
    /// The group is the innermost declared group to which the submitter belongs. If that group has no factor, the
    /// factors of the groups around it do not count.
    pub fn priority_factor(&self, submitter: &Submitter, config: &NegotiatorConfig) -> f64 {
        let group = self.group_of(submitter).map(|group| (group.name.as_str(), group.priority_factor));
        submitter.factor.unwrap_or_else(|| config.cycle.priority_factor(submitter.name.as_str(), group))
    }

    /// The group that a submitter is counted in.
    fn group_of(&self, submitter: &Submitter) -> Option<&super::Group> {
        submitter.group()?.ancestry().find_map(|name| self.group(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{Group, Quota};

    fn factor(name: &str, own: Option<f64>, domain: Option<&str>) -> f64 {
        let group = |name: &str, priority_factor| Group {
            owners: Some(vec!["*".to_owned()]),
            object: name.into(),
            generation: 1,
            created: None,
            name: name.into(),
            quota: Quota::Static(0.0),
            share_unused: false,
            accept_surplus: None,
            autoregroup: None,
            priority_factor,
        };
        let mut pool = Pool::default();
        for one in [group("physics", Some(5000.0)), group("physics.higgs", None), group("chem", Some(20.0))] {
            pool.groups.insert(one);
        }
        let knobs = crate::pool::negotiation::Config {
            accountant_local_domain: domain.map(Into::into),
            ..Default::default()
        };
        let config = NegotiatorConfig::from(knobs);
        let submitter = Submitter { factor: own, ..Submitter::new(name.into(), Time::default()) };
        pool.priority_factor(&submitter, &config)
    }

    #[test]
    fn a_correction_is_made_once_for_each_id() {
        let to = |id: &str, real_priority| Correction {
            id: id.into(),
            real_priority: Some(real_priority),
            accumulated_usage: None,
            weighted_accumulated_usage: None,
            begin_usage_time: None,
            last_usage_time: None,
            negotiator: None,
        };
        let unnamed = NegotiatorId::Unnamed;
        let mut submitter = Submitter::new("alice".into(), Time::default());
        for (id, priority, made, expected) in
            [("a", 9.0, true, 9.0), ("a", 5.0, false, 9.0), ("b", 5.0, true, 5.0), ("b", 9.0, false, 5.0)]
        {
            assert_eq!(
                submitter.correct(&to(id, priority), &unnamed, Time::default(), 86_400.0),
                made,
                "{id}"
            );
            let account = submitter.account_with(&unnamed);
            assert_eq!(account.real_priority.to_bits(), f64::to_bits(expected), "{id}");
        }
        submitter.forget_object();
        assert!(
            !submitter.correct(&to("b", 9.0), &unnamed, Time::default(), 86_400.0),
            "though its object was deleted"
        );
    }

    #[test]
    fn the_first_factor_that_there_is_counts() {
        for (name, own, domain, expected) in [
            ("alice", None, None, 1000.0),
            ("alice", Some(2.0), None, 2.0),
            ("nice-user.alice", None, None, 1e10),
            ("Nice-User.alice", None, None, 1e10),
            ("nice-user.alice", Some(3.0), None, 3.0),
            ("nice-users.alice", None, None, 1000.0),
            ("physics.alice", None, None, 5000.0),
            ("Physics.alice", None, None, 5000.0),
            ("physics.alice", Some(7.0), None, 7.0),
            ("physics.higgs.alice", None, None, 1000.0),
            ("physics.other.alice", None, None, 5000.0),
            ("chem.alice@far.org", None, Some("near.org"), 20.0),
            ("alice@far.org", None, Some("near.org"), 1e7),
            ("alice@Near.org", None, Some("near.org"), 1000.0),
            ("alice@far.org", None, None, 1000.0),
            ("alice", None, Some("near.org"), 1000.0),
        ] {
            let found = factor(name, own, domain);
            assert_eq!(found.to_bits(), f64::to_bits(expected), "{name} {own:?} {domain:?}: {found}");
        }
    }
}
