//! What the owner of a hollow node does: when somebody sits at it, and what load that makes.

use std::time::Duration;

use jiff::Timestamp;

use super::life::after;

/// The owner of a node with an agent. The default never comes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owner {
    /// Visits, in order and apart from each other.
    pub visits: Vec<Visit>,
    /// After this time they begin anew; without it they happen once. Longer than all visits.
    pub every: Option<Duration>,
}

/// Somebody sits at the node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visit {
    /// From when, counted from the start of the node's agent.
    pub from: Duration,
    /// For how long.
    pub lasts: Duration,
    /// The load meanwhile, in processes.
    pub load: f64,
}

/// What is to be seen of an owner at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// The load that somebody makes who is there; none is there else.
    pub present: Option<f64>,
    /// The last input, where nobody is there.
    pub last_input: Timestamp,
    /// When that changes by itself.
    pub next: Option<Timestamp>,
}

impl Owner {
    /// An owner who comes once.
    #[must_use]
    pub fn visit(mut self, from: Duration, lasts: Duration, load: f64) -> Self {
        self.visits.push(Visit { from, lasts, load });
        self
    }

    /// The visits begin anew after this time.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.every = Some(time);
        self
    }

    /// What is to be seen at `now`, where the agent started at `start`. Nobody is known to have touched anything before.
    pub fn sight(&self, start: Timestamp, now: Timestamp) -> Sight {
        let elapsed = Duration::try_from(now.duration_since(start)).unwrap_or(Duration::ZERO);
        let every = self.every.filter(|every| !every.is_zero());
        // Visits of the round before say when somebody was there last, those of the next when somebody comes.
        let round = every.map_or(0, |every| elapsed.as_nanos() / every.as_nanos());
        let rounds = [round.checked_sub(1), Some(round), every.map(|_| round + 1)];
        let mut sight = Sight { present: None, last_input: start, next: None };
        for round in rounds.into_iter().flatten() {
            let begins = every.unwrap_or_default().saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
            for visit in &self.visits {
                let (from, until) =
                    (after(start, begins + visit.from), after(start, begins + visit.from + visit.lasts));
                if until <= now {
                    sight.last_input = until;
                } else if from <= now {
                    (sight.present, sight.next) = (Some(visit.load), Some(until));
                } else {
                    sight.next = sight.next.or(Some(from));
                }
            }
        }
        sight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn sights(owner: &Owner, times: &[i64]) -> Vec<(Option<f64>, i64, Option<i64>)> {
        let seconds = |time: Timestamp| time.as_second();
        let sight = |now: &i64| {
            let Sight { present, last_input, next } = owner.sight(at(1000), at(1000 + now));
            (present, seconds(last_input) - 1000, next.map(|next| seconds(next) - 1000))
        };
        times.iter().map(sight).collect()
    }

    #[test]
    fn nobody_ever_comes_by_default() {
        assert_eq!(sights(&Owner::default(), &[0, 5000]), [(None, 0, None), (None, 0, None)]);
    }

    #[test]
    fn a_visit_is_seen_from_its_first_moment_to_its_last() {
        let (ten, five) = (Duration::from_secs(10), Duration::from_secs(5));
        let owner = Owner::default().visit(ten, five, 0.7);
        assert_eq!(
            sights(&owner, &[9, 10, 14, 15, 999]),
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
            sights(&owner, &[20, 65, 71, 119, 6075]),
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
