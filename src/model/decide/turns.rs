//! Decides which negotiator's cycle runs when. One cycle runs at a time: cycles take milliseconds, and so no proc is
//! matched twice.

use super::negotiation::Negotiation;
use super::{negotiation, sharing};
use crate::pool::{AtWork, Pool, Time, Turn};
use crate::schedd;

/// Begins a cycle if one is due, or asks to be woken when it is.
pub(super) fn begin(pool: &mut Pool, now: Time) -> Option<Box<Negotiation>> {
    sharing::review(pool, now);
    pool.set_next_cycle(None);
    if pool.schedule().under_way {
        return None;
    }
    if !anything_waits(pool, now) {
        negotiation::nothing_waits(pool);
        return None;
    }
    let all = pool.at_work();
    pool.spread_wish(&all);
    let turns = all.iter().map(|one| {
        let turn = pool.schedule().turns.get(&one.id);
        let due = turn.and_then(|turn| due(turn, one)).unwrap_or(now);
        // If several are due, the one whose last cycle began longest ago comes first, and then the first by name.
        (due.max(now), turn.and_then(|turn| turn.started), one)
    });
    let (due, _, next) = turns.min_by_key(|(due, started, _)| (*due, *started))?;
    if due > now {
        if all.len() > 1 {
            // This is not a time at which something may have changed: waking for it would call for the others' cycles,
            // too.
            pool.set_next_cycle(Some(due));
        } else {
            pool.wake_at(due);
        }
        return None;
    }
    pool.begin_cycle(&next.id, now);
    Some(Box::new(negotiation::snapshot(pool, next, &all, now)))
}

/// When a negotiator's next cycle is due. If something changed, it is due as soon as `NEGOTIATOR_CYCLE_DELAY` and
/// `NEGOTIATOR_MIN_INTERVAL` allow, and otherwise after `NEGOTIATOR_INTERVAL`. `None` if the negotiator never had a
/// cycle, so that one is due at once.
fn due(turn: &Turn, one: &AtWork) -> Option<Time> {
    let (started, config) = (turn.started?, &one.config);
    let allowed = (turn.ended? + config.cycle_delay).max(started + config.min_interval);
    Some(if turn.wanted { allowed } else { allowed.max(started + config.interval) })
}

fn anything_waits(pool: &Pool, now: Time) -> bool {
    pool.jobs().values().any(|job| job.unmatched(now) > 0 && schedd::may_start(pool, job))
}
