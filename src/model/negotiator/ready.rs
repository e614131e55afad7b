//! Prepared slots, kept from one cycle to the next.
//!
//! Preparing a slot evaluates everything in its ad that does not depend on a job. Most ads do not change between two cycles, and
//! are not prepared again. HTCondor's negotiator optimizes the ads of all slots in the first phase of each cycle, when it
//! fetches them.

use super::config::Config;
use super::cycle::{Candidate, Cycle, Match};
use super::in_use;
use classad::{Expr, Roster};

/// Prepared slots. The default contains none. A `Ready` can be used for any cycle: slots that changed are prepared again.
#[derive(Clone, Debug, Default)]
pub struct Ready(Option<Saved>);

#[derive(Clone, Debug)]
struct Saved {
    /// The expressions for which the slots were prepared.
    questions: Questions,
    roster: Roster,
}

/// The expressions of the negotiator's that are evaluated for all slots.
#[derive(Clone, Debug, PartialEq)]
struct Questions {
    pre_job_rank: Option<Expr>,
    post_job_rank: Option<Expr>,
    about_slots_in_use: Vec<Expr>,
}

impl Questions {
    fn of(config: &Config) -> Self {
        Self {
            pre_job_rank: config.pre_job_rank.clone(),
            post_job_rank: config.post_job_rank.clone(),
            about_slots_in_use: in_use::questions(config),
        }
    }

    fn roster(&self) -> Roster {
        Roster::new(self.pre_job_rank.clone(), self.post_job_rank.clone())
            .with_questions(self.about_slots_in_use.iter().cloned())
    }
}

impl Ready {
    /// Prepares those slots of a cycle that are not in use. Slots in use depend on the priorities of the cycle, and cannot be
    /// prepared in advance.
    pub fn prepare(&mut self, cycle: &Cycle) {
        let mut roster = self.take(cycle);
        for (place, slot) in cycle.slots.iter().enumerate() {
            if in_use::user(&slot.ad, &cycle.env()).is_none() {
                put(&mut roster, place, slot);
            }
        }
        self.keep(cycle, &[], roster);
    }

    /// Takes the prepared slots for a cycle. Some may be other slots than the cycle has in the same place: [`put`] replaces
    /// those.
    pub(super) fn take(&mut self, cycle: &Cycle) -> Roster {
        let questions = Questions::of(&cycle.config);
        let saved = self.0.take().filter(|saved| saved.questions == questions);
        let mut roster = saved.map_or_else(|| questions.roster(), |saved| saved.roster);
        roster.truncate(cycle.slots.len());
        roster
    }

    /// Keeps the prepared slots for later cycles. A slot of which a match took something, or which is in use, is another slot in the
    /// next cycle, and is not kept: on a busy pool these are most slots.
    ///
    /// The ranks that jobs of this cycle were told are forgotten: the steps that a job pays must not depend on earlier cycles, so
    /// that a new leader decides as the old one would.
    pub(super) fn keep(&mut self, cycle: &Cycle, matches: &[Match], mut roster: Roster) {
        for found in matches {
            roster.clear(found.slot);
        }
        for (place, slot) in cycle.slots.iter().enumerate() {
            if !roster.get(place).is_some_and(|ad| ad.is_same(&slot.ad)) {
                roster.clear(place);
            }
        }
        roster.forget_answers();
        self.0 = Some(Saved { questions: Questions::of(&cycle.config), roster });
    }
}

/// Prepares a slot that is not in use, unless the roster has it in this place already.
pub(super) fn put(roster: &mut Roster, place: usize, slot: &Candidate) {
    if !roster.get(place).is_some_and(|ad| ad.is_same(&slot.ad)) {
        roster.set(place, slot.ad.clone());
    }
}
