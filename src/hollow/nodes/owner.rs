//! The owner of a hollow node: when somebody sits at the node, and how much load this makes.

use std::time::Duration;

use jiff::Timestamp;

use super::life::after;

/// The owner of a node with an agent. The default owner never comes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owner {
    /// The owner's visits, in order. They must not overlap.
    pub visits: Vec<Visit>,
    /// The period after which the visits begin again; `None` if they happen once. Must be longer than all visits
    /// together.
    pub every: Option<Duration>,
}

/// One visit: the owner sits at the node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visit {
    /// When the visit begins, counted from the start of the node's agent.
    pub from: Duration,
    /// How long the visit lasts.
    pub lasts: Duration,
    /// The load that the owner makes during the visit, in processes.
    pub load: f64,
}

/// The signs of the owner that the agent senses at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Presence {
    /// The load that the owner makes; `None` while the owner is absent.
    pub load: Option<f64>,
    /// When the last input was. While the owner is present, input is ongoing and this has no meaning.
    pub last_input: Timestamp,
    /// When the owner will come or go next; `None` if never.
    pub next_change: Option<Timestamp>,
}

impl Owner {
    /// Adds a visit, after the others.
    #[must_use]
    pub fn visit(mut self, from: Duration, lasts: Duration, load: f64) -> Self {
        self.visits.push(Visit { from, lasts, load });
        self
    }

    /// Lets the visits begin again after each such period.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.every = Some(time);
        self
    }

    /// The signs that an agent that started at `start` senses at `now`. Before the first visit ends, `start` counts as
    /// the last input: the agent does not know of an earlier one.
    pub fn presence(&self, start: Timestamp, now: Timestamp) -> Presence {
        let elapsed = Duration::try_from(now.duration_since(start)).unwrap_or(Duration::ZERO);
        let every = self.every.filter(|every| !every.is_zero());
        // The visits of the previous round give the last input; those of the next round, the next visit.
        let round = every.map_or(0, |every| elapsed.as_nanos() / every.as_nanos());
        let rounds = [round.checked_sub(1), Some(round), every.map(|_| round + 1)];
        let mut presence = Presence { load: None, last_input: start, next_change: None };
        for round in rounds.into_iter().flatten() {
            let begins = every.unwrap_or_default().saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
            for visit in &self.visits {
                let (from, until) =
                    (after(start, begins + visit.from), after(start, begins + visit.from + visit.lasts));
                if until <= now {
                    presence.last_input = until;
                } else if from <= now {
                    (presence.load, presence.next_change) = (Some(visit.load), Some(until));
                } else {
                    presence.next_change = presence.next_change.or(Some(from));
                }
            }
        }
        presence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Load, last input and next change at these times, all in seconds since the start of the agent.
    fn presences(owner: &Owner, times: &[i64]) -> Vec<(Option<f64>, i64, Option<i64>)> {
        let seconds = |time: Timestamp| time.as_second() - 1000;
        let presence = |now: &i64| {
            let Presence { load, last_input, next_change } = owner.presence(at(1000), at(1000 + now));
            (load, seconds(last_input), next_change.map(seconds))
        };
        times.iter().map(presence).collect()
    }

    #[test]
    fn nobody_ever_comes_by_default() {
        assert_eq!(presences(&Owner::default(), &[0, 5000]), [(None, 0, None), (None, 0, None)]);
    }

    #[test]
    fn a_visit_is_seen_from_its_first_moment_to_its_last() {
        let (ten, five) = (Duration::from_secs(10), Duration::from_secs(5));
        let owner = Owner::default().visit(ten, five, 0.7);
        assert_eq!(
            presences(&owner, &[9, 10, 14, 15, 999]),
            [
                (None, 0, Some(10)),
                (Some(0.7), 0, Some(15)),
                (Some(0.7), 0, Some(15)),
                (None, 15, None),
                (None, 15, None)
            ]
        );
    }

    #[test]
    fn visits_come_again() {
        let seconds = Duration::from_secs;
        let owner = Owner::default().visit(seconds(10), seconds(5), 0.5).every(seconds(60));
        assert_eq!(
            presences(&owner, &[20, 65, 71, 119, 6075]),
            [
                (None, 15, Some(70)),
                (None, 15, Some(70)),
                (Some(0.5), 15, Some(75)),
                (None, 75, Some(130)),
                (None, 6075, Some(6130))
            ]
        );
    }
}
