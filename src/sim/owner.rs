//! What the owners of machines do, and when machines leave the pool.

use std::time::Duration;

use rand::RngExt;

use super::arrivals::{DAY, WEEK, of_week};
use super::chance::{Chance, stream};
use super::number::{amount, span};
use super::spread::Spread;
use model::pool::{Capacity, LastInput, MachineName, Sensed, Time};

/// When somebody sits at a machine, and what that means for it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerActivity {
    /// Times of the week.
    pub windows: Vec<Window>,
    /// By how many seconds each machine's week is shifted at the most, to either side: people keep different hours.
    pub vary: f64,
    /// Visits at random, at any time.
    pub visits: Option<Visits>,
    /// The load meanwhile.
    pub load: f64,
    /// What the owner's own pods request meanwhile.
    pub pods: Capacity,
}

/// A part of the week in which somebody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Seconds from Monday 00:00 UTC.
    pub start: i64,
    /// Seconds; less than a week.
    pub length: i64,
}

impl Window {
    /// A part of a day: of a whole day where both ends are the same, past midnight where the end is the earlier one. Days
    /// count from Monday, 0; times are seconds since midnight, UTC.
    pub fn of_day(day: i64, from: i64, to: i64) -> Self {
        let length = (to - from).rem_euclid(DAY);
        Self { start: day * DAY + from, length: if length == 0 { DAY } else { length } }
    }
}

/// Visits at random.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    /// Seconds from the end of one to the start of the next.
    pub away: Spread,
    /// Seconds that one lasts.
    pub present: Spread,
}

/// When machines leave and come back.
#[derive(Clone, Debug, PartialEq)]
pub struct Absence {
    /// Seconds until one leaves.
    pub after: Spread,
    /// Seconds that it stays away.
    pub away: Spread,
}

/// The owner of one machine as time goes on.
#[derive(Debug)]
pub struct Owner<'s> {
    activity: &'s OwnerActivity,
    shift: i64,
    rng: Chance,
    /// Whether a visit goes on, and when that changes.
    visiting: bool,
    visit_changes: Option<Time>,
    was_present: bool,
    last_present: Time,
}

impl<'s> Owner<'s> {
    /// That of this machine. Nobody visits at the start, and nobody has been there for as long as the windows say.
    pub fn new(activity: &'s OwnerActivity, machine: &MachineName, seed: u64, start: Time) -> Self {
        let mut rng = stream(seed, "owner", machine.as_str());
        let shift = span(2.0 * activity.vary * rng.random::<f64>());
        let shift = i64::try_from(shift.as_secs()).unwrap_or(0) - super::number::whole(activity.vary, 0);
        let visit_changes = activity.visits.as_ref().map(|visits| start + pause(&visits.away, &mut rng));
        let mut owner = Self {
            activity,
            shift,
            rng,
            visiting: false,
            visit_changes,
            was_present: false,
            last_present: start,
        };
        if let Some(back) = activity.windows.iter().map(|window| owner.since_end(window, start)).min() {
            owner.last_present = start - Duration::from_secs(back.unsigned_abs());
        }
        owner
    }

    /// Lets the time come; gives when something changes next.
    pub fn advance(&mut self, now: Time) -> Option<Time> {
        while let (Some(at), Some(visits)) =
            (self.visit_changes.filter(|at| *at <= now), &self.activity.visits)
        {
            self.visiting = !self.visiting;
            let length = if self.visiting { &visits.present } else { &visits.away };
            self.visit_changes = Some(at + pause(length, &mut self.rng));
        }
        // Somebody who was there until now touched the keyboard until now.
        let present = self.present(now);
        if std::mem::replace(&mut self.was_present, present) {
            self.last_present = now;
        }
        let edge = |window: &Window| {
            let into = self.elapsed(window, now);
            if into < window.length { window.length - into } else { WEEK - into }
        };
        let edge = self.activity.windows.iter().map(edge).min();
        let whole = Time::from_secs(now.secs());
        let edge = edge.map(|seconds| whole + Duration::from_secs(seconds.unsigned_abs()));
        edge.into_iter().chain(self.visit_changes).min()
    }

    /// Whether somebody is there.
    pub fn present(&self, now: Time) -> bool {
        self.visiting || self.activity.windows.iter().any(|window| self.elapsed(window, now) < window.length)
    }

    /// What an agent would sense.
    pub fn sensed(&self, now: Time) -> Sensed {
        if self.present(now) {
            let input = LastInput::Ongoing;
            return Sensed { keyboard: input, console: input, owner_load: self.activity.load };
        }
        let input = LastInput::At(self.last_present);
        Sensed { keyboard: input, console: input, owner_load: 0.0 }
    }

    /// What the owner's pods request now.
    pub fn pods(&self, now: Time) -> Option<&Capacity> {
        Some(&self.activity.pods).filter(|pods| **pods != Capacity::default() && self.present(now))
    }

    /// Seconds since the window last began.
    fn elapsed(&self, window: &Window, now: Time) -> i64 {
        (of_week(now) - window.start - self.shift).rem_euclid(WEEK)
    }

    /// Seconds since the window last ended; 0 within it.
    fn since_end(&self, window: &Window, now: Time) -> i64 {
        (self.elapsed(window, now) - window.length).max(0)
    }
}

/// A pause of at least a second, so that time goes on.
pub fn pause(spread: &Spread, rng: &mut Chance) -> Duration {
    span(spread.draw(rng)).max(Duration::from_secs(1))
}

/// Cores of a capacity, whole or not.
pub fn cores(capacity: &Capacity) -> f64 {
    amount(capacity.milli_cpu) / 1000.0
}
