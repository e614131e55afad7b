//! The states and activities of slots, and since when a slot is in them.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::pool::time::Time;

/// A slot's state with its activity. Only the pairs in the manual's diagram can be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The machine's owner has the slot.
    Owner,
    /// The slot is free for jobs.
    Unclaimed(Unclaimed),
    /// The slot is promised to a submitter, but the claim is not written yet.
    Matched,
    /// A submitter has the slot.
    Claimed(Claimed),
    /// The claim is being ended.
    Preempting(Preempting),
    /// The slot does backfill work.
    Backfill(Backfill),
    /// The slot is drained, or about to be drained.
    Drained(Drained),
}

/// Activities of Unclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Unclaimed {
    Idle,
    Benchmarking,
}

/// Activities of Claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Claimed {
    Idle,
    Busy,
    Suspended,
    Retiring,
    Cleaning,
}

/// Activities of Preempting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Preempting {
    Vacating,
    Killing,
}

/// Activities of Backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Backfill {
    Idle,
    Busy,
    Killing,
}

/// Activities of Drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Drained {
    Retiring,
    Idle,
}

impl State {
    /// The state's name, as in the ad's `State`.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Owner => "Owner",
            Self::Unclaimed(_) => "Unclaimed",
            Self::Matched => "Matched",
            Self::Claimed(_) => "Claimed",
            Self::Preempting(_) => "Preempting",
            Self::Backfill(_) => "Backfill",
            Self::Drained(_) => "Drained",
        }
    }

    /// The activity's name, as in the ad's `Activity`.
    pub const fn activity(self) -> &'static str {
        match self {
            Self::Owner
            | Self::Matched
            | Self::Unclaimed(Unclaimed::Idle)
            | Self::Claimed(Claimed::Idle)
            | Self::Backfill(Backfill::Idle)
            | Self::Drained(Drained::Idle) => "Idle",
            Self::Unclaimed(Unclaimed::Benchmarking) => "Benchmarking",
            Self::Claimed(Claimed::Busy) | Self::Backfill(Backfill::Busy) => "Busy",
            Self::Claimed(Claimed::Suspended) => "Suspended",
            Self::Claimed(Claimed::Retiring) | Self::Drained(Drained::Retiring) => "Retiring",
            Self::Claimed(Claimed::Cleaning) => "Cleaning",
            Self::Preempting(Preempting::Vacating) => "Vacating",
            Self::Preempting(Preempting::Killing) | Self::Backfill(Backfill::Killing) => "Killing",
        }
    }
}

/// The number of a transition in the manual's diagram: 1 to 37, and 12a.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    whole: u8,
    letter: Option<char>,
}

impl Number {
    /// A number with a letter after it, if it has one. HTCondor 25.11 inserted 12a, so that the others could stay as they were.
    pub const fn new(whole: u8, letter: Option<char>) -> Self {
        Self { whole, letter }
    }

    /// The number if it has no letter.
    pub const fn whole(self) -> Option<u8> {
        if self.letter.is_none() { Some(self.whole) } else { None }
    }
}

/// The number of the transition by which the schedd activates a claim.
pub(super) const CLAIM_ACTIVATED: Number = Number::new(11, None);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.whole)?;
        self.letter.map_or(Ok(()), |letter| f.write_char(letter))
    }
}

/// A slot's last change of state or activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTransition {
    /// The transition's number in the manual's diagram.
    pub number: Number,
    /// The reason, for people.
    pub why: Arc<str>,
    /// The time of the change.
    pub at: Time,
}

/// The state and activity of a slot, since when the slot has them, and the transition that led there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    state: State,
    entered_state: Time,
    entered_activity: Time,
    last: Option<LastTransition>,
}

impl Phase {
    /// The phase of a slot that begins in a state now, without a transition.
    pub const fn starting(state: State, now: Time) -> Self {
        Self { state, entered_state: now, entered_activity: now, last: None }
    }

    /// The same phase, entered by the transition `last`.
    #[must_use]
    pub fn by(self, last: Option<LastTransition>) -> Self {
        Self { last, ..self }
    }

    /// The state and activity.
    pub const fn state(&self) -> State {
        self.state
    }

    /// When the slot entered the state: `EnteredCurrentState`.
    pub const fn entered_state(&self) -> Time {
        self.entered_state
    }

    /// When the slot entered the activity: `EnteredCurrentActivity`.
    pub const fn entered_activity(&self) -> Time {
        self.entered_activity
    }

    /// The last transition; `None` if the slot has taken none.
    pub const fn last(&self) -> Option<&LastTransition> {
        self.last.as_ref()
    }

    /// Enters a state and activity by a transition. A change of activity within a state leaves the time of the state as
    /// it is.
    pub fn enter(&mut self, to: State, taken: LastTransition) {
        if self.state.state() != to.state() {
            self.entered_state = taken.at;
        }
        self.entered_activity = taken.at;
        self.state = to;
        self.last = Some(taken);
    }

    /// Sets since when the slot has been in its state and activity, as its object records.
    pub fn recall(&mut self, state: Time, activity: Time) {
        (self.entered_state, self.entered_activity) = (state, activity);
        if let Some(last) = &mut self.last {
            last.at = activity;
        }
    }
}
