//! The owners of machines: when they are present, and what an agent would sense of them.

use std::time::Duration;

use rand::RngExt;

use super::arrivals::{DAY, WEEK, of_week};
use super::chance::{Chance, stream};
use super::number::{amount, span};
use super::spread::Spread;
use model::pool::{Capacity, LastInput, MachineName, Sensed, Time};

/// When the owner of a machine is present, and the load and pods that the owner then puts on the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerActivity {
    /// The parts of the week in which the owner is present.
    pub windows: Vec<Window>,
    /// The most seconds by which the windows of a machine are shifted, to either side: owners keep different hours.
    pub vary: f64,
    /// Random visits, besides the windows.
    pub visits: Option<Visits>,
    /// The load of the owner's own work while the owner is present.
    pub load: f64,
    /// The requests of the owner's own pods while the owner is present.
    pub pods: Capacity,
}

/// A part of the week in which an owner is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The start, in seconds from Monday 00:00 UTC.
    pub start: i64,
    /// The length in seconds; less than a week.
    pub length: i64,
}

impl Window {
    /// A window that starts on `day` (Monday is 0) at `from` and ends at `to`, both in seconds since midnight UTC. If
    /// `to` is earlier than `from`, the window ends on the next day; if both are the same, it lasts 24 hours.
    pub fn of_day(day: i64, from: i64, to: i64) -> Self {
        let length = (to - from).rem_euclid(DAY);
        Self { start: day * DAY + from, length: if length == 0 { DAY } else { length } }
    }
}

/// Random visits of an owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    /// Seconds from the end of a visit to the start of the next.
    pub away: Spread,
    /// How many seconds a visit lasts.
    pub present: Spread,
}

/// When machines leave the pool and come back.
#[derive(Clone, Debug, PartialEq)]
pub struct Absence {
    /// Seconds from a machine's arrival until it leaves.
    pub after: Spread,
    /// Seconds for which the machine stays away.
    pub away: Spread,
}

/// The owner of one machine as time goes on.
#[derive(Debug)]
pub struct Owner<'s> {
    activity: &'s OwnerActivity,
    shift: i64,
    rng: Chance,
    /// Whether the owner is on a visit; `visit_changes` is when the visit ends or the next one begins.
    visiting: bool,
    visit_changes: Option<Time>,
    was_present: bool,
    last_present: Time,
}

impl<'s> Owner<'s> {
    /// The owner of a machine at the start of the simulation: not on a visit, and absent since the last window ended.
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

    /// Moves the owner to the time `now`, and returns when the owner next comes or goes.
    pub fn advance(&mut self, now: Time) -> Option<Time> {
        while let (Some(at), Some(visits)) =
            (self.visit_changes.filter(|at| *at <= now), &self.activity.visits)
        {
            self.visiting = !self.visiting;
            let length = if self.visiting { &visits.present } else { &visits.away };
            self.visit_changes = Some(at + pause(length, &mut self.rng));
        }
        // An owner who was present until now used the keyboard until now.
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

    /// Whether the owner is present.
    pub fn present(&self, now: Time) -> bool {
        self.visiting || self.activity.windows.iter().any(|window| self.elapsed(window, now) < window.length)
    }

    /// The signs of the owner that the machine's agent senses: keyboard, console and load.
    pub fn sensed(&self, now: Time) -> Sensed {
        if self.present(now) {
            let input = LastInput::Ongoing;
            return Sensed { keyboard: input, console: input, owner_load: self.activity.load };
        }
        let input = LastInput::At(self.last_present);
        Sensed { keyboard: input, console: input, owner_load: 0.0 }
    }

    /// The present requests of the owner's pods; `None` if no such pods run.
    pub fn pods(&self, now: Time) -> Option<&Capacity> {
        Some(&self.activity.pods).filter(|pods| **pods != Capacity::default() && self.present(now))
    }

    /// Seconds since the window last began, shifted by this owner's shift.
    fn elapsed(&self, window: &Window, now: Time) -> i64 {
        (of_week(now) - window.start - self.shift).rem_euclid(WEEK)
    }

    /// Seconds since the window last ended; 0 within it.
    fn since_end(&self, window: &Window, now: Time) -> i64 {
        (self.elapsed(window, now) - window.length).max(0)
    }
}

/// Draws a span of at least a second, so that simulated time moves on.
pub fn pause(spread: &Spread, rng: &mut Chance) -> Duration {
    span(spread.draw(rng)).max(Duration::from_secs(1))
}

/// The CPUs of a capacity, in cores; may be a fraction.
pub fn cores(capacity: &Capacity) -> f64 {
    amount(capacity.milli_cpu) / 1000.0
}
