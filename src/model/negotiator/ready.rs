//! Slots made ready to be negotiated, kept from one cycle to the next.
//!
//! What a slot says about itself is worked out when its ad is new: most ads are the same in the next cycle, and cost nothing
//! there. HTCondor's negotiator optimizes the ads of all slots when it fetches them, in the first phase of each cycle.

use super::config::Config;
use super::cycle::{Candidate, Cycle};
use super::in_use;
use classad::{Expr, Roster};

/// Slots made ready. The default has none yet. It holds for any cycle: what has changed since is made ready anew.
#[derive(Clone, Debug, Default)]
pub struct Ready(Option<Kept>);

#[derive(Clone, Debug)]
struct Kept {
    /// What is asked about all slots.
    asked: Asked,
    roster: Roster,
}

#[derive(Clone, Debug, PartialEq)]
struct Asked {
    pre_job_rank: Option<Expr>,
    post_job_rank: Option<Expr>,
    of_slots_in_use: Vec<Expr>,
}

impl Asked {
    fn of(config: &Config) -> Self {
        Self {
            pre_job_rank: config.pre_job_rank.clone(),
            post_job_rank: config.post_job_rank.clone(),
            of_slots_in_use: in_use::questions(config),
        }
    }

    fn roster(&self) -> Roster {
        Roster::new(self.pre_job_rank.clone(), self.post_job_rank.clone())
            .with_questions(self.of_slots_in_use.iter().cloned())
    }
}

impl Ready {
    /// Makes the slots of a cycle ready that nobody uses; those in use depend on the priorities of the cycle.
    pub fn prepare(&mut self, cycle: &Cycle) {
        let mut roster = self.take(cycle);
        for (place, slot) in cycle.slots.iter().enumerate() {
            if in_use::user(&slot.ad, &cycle.env()).is_none() {
                put(&mut roster, place, slot);
            }
        }
        self.keep(&cycle.config, roster);
    }

    /// What is ready of the slots of a cycle, and of others in their places.
    pub(super) fn take(&mut self, cycle: &Cycle) -> Roster {
        let asked = Asked::of(&cycle.config);
        let kept = self.0.take().filter(|kept| kept.asked == asked);
        let mut roster = kept.map_or_else(|| asked.roster(), |kept| kept.roster);
        roster.truncate(cycle.slots.len());
        roster
    }

    /// Keeps what a cycle leaves.
    pub(super) fn keep(&mut self, config: &Config, roster: Roster) {
        self.0 = Some(Kept { asked: Asked::of(config), roster });
    }
}

/// Has a slot that nobody uses in its place.
pub(super) fn put(roster: &mut Roster, place: usize, slot: &Candidate) {
    if !roster.get(place).is_some_and(|ad| ad.is_same(&slot.ad)) {
        roster.set(place, slot.ad.clone());
    }
}
