//! The other objects, against which an object is checked.

use controller::kinds;
use model::pool::{Event, Pool, Time};

/// What is known of other objects: GroupQuotas, SubmitPolicies, ConcurrencyLimits and Negotiators.
#[derive(Clone, Debug)]
pub struct Known {
    /// The pool as the operator would know it if the cluster had these objects alone.
    pool: Pool,
    complete: bool,
}

impl Known {
    /// Nothing is known of other objects: each object is checked by itself only.
    pub fn nothing() -> Self {
        Self { pool: Pool::default(), complete: false }
    }

    /// Knows these objects, and that there are no others of their kinds.
    pub fn all(
        groups: &[api::GroupQuota],
        limits: &[api::ConcurrencyLimit],
        policies: &[api::SubmitPolicy],
        negotiators: &[api::Negotiator],
    ) -> Self {
        let mut pool = Pool::default();
        let events = negotiators
            .iter()
            .map(|object| Event::Negotiator(kinds::negotiator::facts(object)))
            .chain(policies.iter().map(|object| Event::SubmitPolicy(kinds::submit_policy::facts(object))))
            .chain(groups.iter().map(|object| Event::Group(kinds::group_quota::facts(object))))
            .chain(limits.iter().map(|object| Event::Limit(kinds::concurrency_limit::facts(object))));
        for event in events.chain([Event::Synced]) {
            pool.apply(event, Time::default());
        }
        Self { pool, complete: true }
    }

    /// Whether an object that is not known does not exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The pool without the object under review, or with the object as it was before.
    pub(crate) fn before(&self) -> &Pool {
        &self.pool
    }

    /// The pool as it would be after these events.
    pub(crate) fn after(&self, events: impl IntoIterator<Item = Event>) -> Pool {
        let mut pool = self.pool.clone();
        for event in events {
            pool.apply(event, Time::default());
        }
        pool
    }
}
