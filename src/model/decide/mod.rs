//! The deciders, in their order: from the pool and the time to effects.
//!
//! [`decide`] is a function of the pool and the time: for equal pools and times it asks for the same effects.
//! [`decide`] notes in the pool what it asked for, and never asks twice. It looks at the objects marked as changed, at
//! the orphans that are not settled, and, until it finds a proc that may start, at the jobs that may start one as far
//! as each job alone tells; not at the whole pool.
//!
//! A negotiation cycle is returned as a [`Negotiation`], a snapshot on which any thread may work. The matches come back
//! through [`conclude`], which checks each against the pool as it is by then.

mod bars;
mod evict;
mod gathering;
mod negotiation;
mod orphans;
mod preemption;
mod quotas;
mod reasons;
mod sharing;
mod slots;
mod turns;
mod unwritten;

pub use evict::PROC_WAITS;
pub use negotiation::{Negotiation, conclude};
pub use quotas::{excesses, quotas, refusal, refused_groups, rivalry};
pub use sharing::{overlap_message, shares_all};

use quotas::Moment;

use crate::pool::{Batch, Effect, Offer, Pool, Time};
use crate::{schedd, startd};

/// The result of a decision.
#[derive(Debug, Default)]
pub struct Decision {
    /// The calls and notices, in order.
    pub effects: Vec<Effect>,
    /// The cycle to run, if one is due.
    pub negotiation: Option<Box<Negotiation>>,
    /// Ends of procs to write in the history. The answer is [`Event::Archived`](crate::pool::Event::Archived).
    pub ends: Option<Batch>,
    /// When to decide again, if nothing happens before.
    pub next: Option<Time>,
}

/// Decides what must be done now.
pub fn decide(pool: &mut Pool, now: Time) -> Decision {
    let mut effects = Vec::new();
    if !pool.is_synced() {
        return Decision::default();
    }
    pool.wake(now);
    pool.note_silence(now);
    review_machines(pool, now, &mut effects);
    pool.spread_groups();
    unwritten::adopt(pool, now, &mut effects);
    orphans::settle(pool, now, &mut effects);
    let moment = Moment::at(now);
    loop {
        gathering::complete(pool, &moment);
        let Some(name) = pool.next_slot() else { break };
        slots::drive(pool, &name, &moment, &mut effects);
    }
    while let Some(name) = pool.next_drain_cost() {
        startd::expect_costs(pool, &name, now);
    }
    // A slot that has just returned may have been the last of its machine or job.
    review_machines(pool, now, &mut effects);
    while let Some(uid) = pool.next_job() {
        schedd::review_job(pool, &uid, &mut effects);
    }
    pool.forget_unused_submitters(now);
    let strays = pool.take_strays();
    effects.extend(strays.into_iter().map(|slot| Effect::DeleteSlot {
        slot,
        claim: None,
        before: Vec::new(),
    }));
    let overdue = pool.overdue_pods(now);
    effects.extend(overdue.into_iter().map(|(pod, slot)| Effect::LookAtPod { pod, slot }));
    let negotiation = turns::begin(pool, now);
    let ends = pool.next_ends(now);
    effects.extend(pool.take_notices().into_iter().map(Effect::Tell));
    Decision { effects, negotiation, ends, next: pool.next_look() }
}

fn review_machines(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    pool.spread_policies();
    while let Some(name) = pool.next_machine() {
        startd::review_machine(pool, &name, now, effects);
        gathering::review(pool, &name);
        if pool.machines().get(&name).is_some_and(|machine| machine.offer == Offer::Gone) {
            pool.show_gone(&name);
        }
    }
}

#[cfg(test)]
mod tests;
