//! Submitters: who is charged, and what waits in their name.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Pool;
use super::accountant::{Correction, Record as Account};
use super::ids::{GroupName, SubmitterName};
use super::job::QueueKey;
use super::policy::NegotiatorConfig;
use super::time::Time;

/// A submitter.
#[derive(Clone, Debug)]
pub struct Submitter {
    /// The accountant's name.
    pub name: SubmitterName,
    /// The `metadata.generation` of its object last seen; none while there is no object.
    pub generation: Option<i64>,
    /// The factor that an admin set.
    pub factor: Option<f64>,
    /// The ceiling that an admin set, in slot weight.
    pub ceiling: Option<f64>,
    /// The floor that an admin set, in slot weight.
    pub floor: Option<f64>,
    /// The id of the correction of its account that was made last.
    pub corrected: Option<Arc<str>>,
    /// What it has used.
    pub account: Account,
    /// Its jobs, the first to run first.
    pub queue: BTreeSet<QueueKey>,
}

impl Submitter {
    /// A submitter that was never seen before.
    pub fn new(name: SubmitterName, now: Time) -> Self {
        Self {
            name,
            generation: None,
            factor: None,
            ceiling: None,
            floor: None,
            corrected: None,
            account: Account::new(now.millis()),
            queue: BTreeSet::new(),
        }
    }

    /// Its object is gone: what an admin set is forgotten. A correction that was made stays made.
    pub fn forget_object(&mut self) {
        (self.generation, self.factor, self.ceiling, self.floor) = (None, None, None, None);
    }

    /// Corrects the account, once for each id of a correction. Whether it did.
    pub fn correct(&mut self, correction: &Correction, now: Time, halflife: f64) -> bool {
        if self.corrected.as_ref() == Some(&correction.id) {
            return false;
        }
        self.account.correct(correction, now.millis(), halflife);
        self.corrected = Some(Arc::clone(&correction.id));
        true
    }

    /// The accounting group: what stands before the last dot of the name.
    pub fn group(&self) -> Option<GroupName> {
        self.name.as_str().rsplit_once('.').map(|(group, _)| group.into())
    }
}

impl Pool {
    /// A submitter's priority factor: its own; that of nice users; its group's; that of those of another domain than
    /// `ACCOUNTANT_LOCAL_DOMAIN`; the default. The first of these that there is.
    ///
    /// A group's is that of the group that the submitter is counted in: the innermost that is declared. Nobody is counted
    /// in a group that has none of its own as in the one around it.
    pub fn priority_factor(&self, submitter: &Submitter, config: &NegotiatorConfig) -> f64 {
        let group = self.group_of(submitter).map(|group| (group.name.as_str(), group.priority_factor));
        submitter.factor.unwrap_or_else(|| config.cycle.priority_factor(submitter.name.as_str(), group))
    }

    /// The group that a submitter is counted in.
    fn group_of(&self, submitter: &Submitter) -> Option<&super::Group> {
        let outer = |name: &GroupName| name.as_str().rsplit_once('.').map(|(outer, _)| outer.into());
        std::iter::successors(submitter.group(), outer).find_map(|name| self.group(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{Group, Quota};

    fn factor(name: &str, own: Option<f64>, domain: Option<&str>) -> f64 {
        let group = |name: &str, priority_factor| Group {
            object: name.into(),
            generation: 1,
            name: name.into(),
            quota: Quota::Static(0.0),
            accept_surplus: None,
            autoregroup: None,
            priority_factor,
        };
        let groups =
            [group("physics", Some(5000.0)), group("physics.higgs", None), group("chem", Some(20.0))];
        let pool = Pool {
            groups: groups.into_iter().map(|group| (group.object.clone(), group)).collect(),
            ..Pool::default()
        };
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
        };
        let mut submitter = Submitter::new("alice".into(), Time::default());
        for (id, priority, made, expected) in
            [("a", 9.0, true, 9.0), ("a", 5.0, false, 9.0), ("b", 5.0, true, 5.0), ("b", 9.0, false, 5.0)]
        {
            assert_eq!(submitter.correct(&to(id, priority), Time::default(), 86_400.0), made, "{id}");
            assert_eq!(submitter.account.real_priority.to_bits(), f64::to_bits(expected), "{id}");
        }
        submitter.forget_object();
        assert!(
            !submitter.correct(&to("b", 9.0), Time::default(), 86_400.0),
            "though its object was deleted"
        );
    }

    #[test]
    fn the_first_factor_that_there_is_counts() {
        for (name, own, domain, expected) in [
            ("alice", None, None, 1000.0),
            ("alice", Some(2.0), None, 2.0),
            ("nice-user.alice", None, None, 1e10),
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
