//! Decides which negotiator's cycle runs when. One cycle runs at a time: cycles take milliseconds, and so no proc is
//! matched twice.

use std::time::Duration;

use super::negotiation::Negotiation;
use super::{negotiation, sharing};
use crate::pool::{NegotiatorConfig, Pauses, Pool, Time, Turn};
use crate::schedd;

/// HTCondor's default for `NEGOTIATOR_CYCLE_DELAY`.
const CYCLE_DELAY: Duration = Duration::from_secs(20);
/// HTCondor's default for `NEGOTIATOR_MIN_INTERVAL`.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

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
        let due = turn.and_then(|turn| due(turn, &one.config, pool.schedule().pauses)).unwrap_or(now);
        // If several are due, the one whose last cycle began longest ago comes first, and then the first by name.
        (due.max(now), turn.and_then(|turn| turn.started), one)
    });
    let (due, _, next) = turns.min_by_key(|(due, started, _)| (*due, *started))?;
    if due > now {
        if all.len() > 1 {
            // `wake_at` is for times at which something may have changed: a wake-up then would call for the cycles of
            // the other negotiators, too.
            pool.set_next_cycle(Some(due));
        } else {
            pool.wake_at(due);
        }
        return None;
    }
    pool.begin_cycle(&next.id, now);
    Some(Box::new(negotiation::snapshot(pool, next, &all, now)))
}

/// When a negotiator's next cycle is due. If something changed, the cycle is due as soon as the pause after the last one is
/// over, and otherwise after `NEGOTIATOR_INTERVAL`. `None` if the negotiator never had a cycle, so that one is due at once.
fn due(turn: &Turn, config: &NegotiatorConfig, pauses: Pauses) -> Option<Time> {
    let (started, ended) = (turn.started?, turn.ended?);
    let allowed = match (config.cycle_delay, config.min_interval, pauses) {
        (None, None, Pauses::ByCost) => ended + pause_after(ended.since(started)),
        // A knob that is not set has HTCondor's default here, even if the other of the two knobs is set.
        (delay, interval, _) => {
            (ended + delay.unwrap_or(CYCLE_DELAY)).max(started + interval.unwrap_or(MIN_INTERVAL))
        }
    };
    Some(if turn.wanted { allowed } else { allowed.max(started + config.interval) })
}

/// The pause after a cycle that took so long: ten times as long, so that cycles take no more than a tenth of a CPU; a second at
/// least, in which changes gather; HTCondor's pause at most.
fn pause_after(cycle: Duration) -> Duration {
    cycle.saturating_mul(10).clamp(Duration::from_secs(1), CYCLE_DELAY)
}

fn anything_waits(pool: &Pool, now: Time) -> bool {
    let queues = pool.queues();
    let mut jobs = queues.all_awake().filter_map(|key| pool.jobs().get(&key.job().uid));
    jobs.any(|job| job.unmatched(now) > 0 && schedd::may_start(pool, job))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the next cycle is due, in milliseconds after the start of a cycle that took so many milliseconds.
    fn due_after(cycle: i64, delay: Option<u64>, interval: Option<u64>, pauses: Pauses) -> i64 {
        let start = Time::from_secs(1000);
        let took = Duration::from_millis(u64::try_from(cycle).unwrap());
        let turn = Turn { started: Some(start), ended: Some(start + took), wanted: true, ..Turn::default() };
        let [cycle_delay, min_interval] = [delay, interval].map(|knob| knob.map(Duration::from_secs));
        let config = NegotiatorConfig { cycle_delay, min_interval, ..NegotiatorConfig::default() };
        i64::try_from(due(&turn, &config, pauses).unwrap().since(start).as_millis()).unwrap()
    }

    #[test]
    fn the_pause_follows_what_a_cycle_costs_unless_a_knob_is_set() {
        use Pauses::{ByCost, Htcondors};
        for (cycle, delay, interval, pauses, due) in [
            (0, None, None, ByCost, 1_000),
            (50, None, None, ByCost, 1_050),
            (400, None, None, ByCost, 4_400),
            (5_000, None, None, ByCost, 25_000),
            (0, None, None, Htcondors, 20_000),
            (7_000, None, None, Htcondors, 27_000),
            (50, Some(0), None, ByCost, 5_000),
            (50, Some(3), None, ByCost, 5_000),
            (50, Some(30), Some(60), ByCost, 60_000),
            (50, Some(0), Some(0), ByCost, 50),
            (50, None, Some(2), ByCost, 20_050),
        ] {
            let found = due_after(cycle, delay, interval, pauses);
            assert_eq!(found, due, "{cycle} ms, {delay:?}, {interval:?}, {pauses:?}");
        }
    }

    #[test]
    fn without_a_change_a_cycle_is_due_after_the_interval() {
        let start = Time::from_secs(1000);
        let turn = Turn { started: Some(start), ended: Some(start), ..Turn::default() };
        let due = |turn: &Turn| due(turn, &NegotiatorConfig::default(), Pauses::ByCost);
        assert_eq!(due(&turn), Some(start + Duration::from_mins(1)));
        assert_eq!(due(&Turn::default()), None, "the first cycle is due at once");
    }
}
