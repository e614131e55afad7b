//! Submitters: who is charged, and what waits in their name.

use std::collections::BTreeSet;

use super::accountant::Record as Account;
use super::ids::{GroupName, SubmitterName};
use super::job::QueueKey;
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
            account: Account::new(now.millis()),
            queue: BTreeSet::new(),
        }
    }

    /// The accounting group: what stands before the last dot of the name.
    pub fn group(&self) -> Option<GroupName> {
        self.name.as_str().rsplit_once('.').map(|(group, _)| group.into())
    }
}
