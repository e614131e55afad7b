//! The other objects, against which an object is checked.

use controller::kinds;
use model::pool::{Event, Pool, Time};

/// All objects of the kinds that others refer to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objects<'a> {
    /// The accounting groups.
    pub groups: &'a [api::GroupQuota],
    /// The concurrency limits.
    pub limits: &'a [api::ConcurrencyLimit],
    /// The schedd's policies.
    pub policies: &'a [api::SubmitPolicy],
    /// The negotiators.
    pub negotiators: &'a [api::Negotiator],
    /// The policies of nodes.
    pub nodes: &'a [api::NodePolicy],
}

/// The objects besides the reviewed object that a review reads: GroupQuotas, ConcurrencyLimits, SubmitPolicies,
/// Negotiators and NodePolicies.
#[derive(Clone, Debug)]
pub struct OtherObjects {
    /// The pool as the operator would know it if the cluster had these objects alone.
    pool: Pool,
    complete: bool,
}

impl OtherObjects {
    /// Nothing is known of other objects: each object is checked by itself only.
    pub fn nothing() -> Self {
        Self { pool: Pool::default(), complete: false }
    }

    /// Knows these objects, and that there are no others of their kinds.
    pub fn all(objects: &Objects<'_>) -> Self {
        let Objects { groups, limits, policies, negotiators, nodes } = objects;
        let mut pool = Pool::default();
        let events = negotiators
            .iter()
            .map(|object| Event::Negotiator(kinds::negotiator::facts(object)))
            .chain(policies.iter().map(|object| Event::SubmitPolicy(kinds::submit_policy::facts(object))))
            .chain(nodes.iter().map(|object| Event::Policy(kinds::node_policy::facts(object))))
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
