//! The idle procs of a job, and which of them wait: for the end of a pause before they are tried again, or for a time of the job's
//! crontab.
//!
//! Each match asks for the lowest idle proc that may start. Thousands of procs may wait at once, for example when nodes were drained. So
//! the procs that do not wait are kept apart.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Deref};

use super::pausing::Pause;
use super::ranges::Ranges;
use super::time::Time;

/// The idle procs of a job, as a set of numbers that is changed by the methods here alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Idle {
    all: Ranges,
    /// The pauses of the procs that failed to end when they last had a slot, idle or not. A pause that is over stays, to count the next.
    pauses: BTreeMap<u32, Pause>,
    /// The idle procs that pause, each with the end of its pause. The pause of some may have ended since [`Idle::wake`].
    asleep: BTreeSet<(Time, u32)>,
    /// The procs that were idle too late for the present time of the job's crontab, and wait for the next; idle or not.
    late: Ranges,
    /// The idle procs that are neither in `asleep` nor in `late`.
    awake: Ranges,
    /// The latest end of a wait that [`Idle::wake`] has found.
    woke: Option<Time>,
}

impl Deref for Idle {
    type Target = Ranges;

    fn deref(&self) -> &Ranges {
        &self.all
    }
}

impl Idle {
    /// Adds a proc. A proc whose pause is not over waits.
    pub(super) fn insert(&mut self, proc: u32) {
        self.all.insert(proc);
        self.settle(proc);
    }

    /// Removes a proc.
    pub(super) fn remove(&mut self, proc: u32) {
        self.all.remove(proc);
        self.settle(proc);
    }

    /// Makes these procs the idle ones, all of which are below `count`. The pauses of procs from `count` on are forgotten.
    pub(super) fn set(&mut self, all: Ranges, count: u32) {
        self.pauses.retain(|proc, _| *proc < count);
        self.all = all;
        self.settle_all();
    }

    /// Lets these procs, and no others, wait for the next time of the job's crontab, whenever they are idle.
    pub(super) fn set_late(&mut self, late: Ranges) {
        if self.late != late {
            self.late = late;
            self.settle_all();
        }
    }

    /// Lets a proc wait for the next time of the job's crontab whenever the proc is idle, or no longer.
    pub(super) fn note_late(&mut self, proc: u32, is_late: bool) {
        let changed = if is_late { self.late.insert(proc) } else { self.late.remove(proc) };
        if changed {
            self.settle(proc);
        }
    }

    /// Whether a proc waits for the next time of the job's crontab, if it is idle.
    pub(super) fn is_late(&self, proc: u32) -> bool {
        self.late.contains(proc)
    }

    /// Whether all idle procs wait for the next time of the job's crontab.
    pub(super) fn are_all_late(&self) -> bool {
        self.all.first_outside(&[&self.late]).is_none()
    }

    /// Lets a proc wait until its pause is over, whenever the proc is idle.
    pub fn pause(&mut self, proc: u32, pause: Pause) {
        self.forget(proc);
        self.pauses.insert(proc, pause);
        self.settle(proc);
    }

    /// Lets a proc wait no longer, and forgets that it waited.
    pub(super) fn forget(&mut self, proc: u32) {
        if let Some(pause) = self.pauses.remove(&proc) {
            self.asleep.remove(&(pause.cooling.until, proc));
            self.settle(proc);
        }
    }

    /// The end of the first pause, if all idle procs pause or wait for a time of the job's crontab.
    pub(super) fn tried_from(&self) -> Option<Time> {
        self.asleep.first().map(|(until, _)| *until).filter(|_| self.awake.is_empty())
    }

    /// The pause of a proc that failed to end, whether over or not.
    pub(super) fn pause_of(&self, proc: u32) -> Option<&Pause> {
        self.pauses.get(&proc)
    }

    /// The proc whose pause ends first, with the pause, if all idle procs pause.
    pub(super) fn all_pause(&self, now: Time) -> Option<(u32, &Pause)> {
        let mut pausing = self.asleep.range((Bound::Excluded((now, u32::MAX)), Bound::Unbounded));
        let all_pause = || {
            let none_woke = self.awake.is_empty() && self.ended(now).next().is_none();
            none_woke && self.asleep.len() as u64 == self.all.len()
        };
        let (_, proc) = pausing.next().filter(|_| all_pause())?;
        Some((*proc, self.pauses.get(proc)?))
    }

    /// Whether the wait of an idle proc has ended by `now` and after `then`.
    pub(super) fn woke_after(&self, then: Time, now: Time) -> bool {
        let found = self.woke.is_some_and(|until| then < until);
        found
            || self
                .ended(now)
                .any(|proc| self.pauses.get(&proc).is_some_and(|pause| then < pause.cooling.until))
    }

    /// Brings a proc into the sets in which it belongs.
    fn settle(&mut self, proc: u32) {
        let idle = self.all.contains(proc);
        let pause = self.pauses.get(&proc);
        if let Some(pause) = pause {
            let place = (pause.cooling.until, proc);
            if idle {
                self.asleep.insert(place)
            } else {
                self.asleep.remove(&place)
            };
        }
        if idle && pause.is_none() && !self.late.contains(proc) {
            self.awake.insert(proc)
        } else {
            self.awake.remove(proc)
        };
    }

    /// Brings all procs into the sets in which they belong.
    fn settle_all(&mut self) {
        self.awake = self.all.clone();
        self.asleep.clear();
        let waiting: Vec<u32> = self.pauses.keys().copied().chain(self.late.iter()).collect();
        for proc in waiting {
            self.settle(proc);
        }
    }

    /// Takes the procs whose pause has ended to those that do not pause. The answers of the other methods are the same before and after,
    /// but cost less after. Returns when the next pause ends.
    pub(super) fn wake(&mut self, now: Time) -> Option<Time> {
        while let Some((until, proc)) = self.asleep.first().copied().filter(|(until, _)| *until <= now) {
            self.asleep.pop_first();
            if !self.late.contains(proc) {
                self.awake.insert(proc);
            }
            self.woke = self.woke.max(Some(until));
        }
        self.asleep.first().map(|(until, _)| *until)
    }

    /// Whether a proc pauses, if it is idle.
    pub(super) fn pauses(&self, proc: u32, now: Time) -> bool {
        self.pauses.get(&proc).is_some_and(|pause| pause.cooling.until > now)
    }

    /// How many idle procs wait.
    pub(super) fn waiting(&self, now: Time) -> u64 {
        let (asleep, woken) = (self.asleep.len() as u64, self.woken(now).count() as u64);
        if self.late.is_empty() { asleep - woken } else { self.all.len() - self.awake.len() - woken }
    }

    /// The idle procs whose pause has ended since [`Idle::wake`].
    fn ended(&self, now: Time) -> impl Iterator<Item = u32> {
        self.asleep.range(..=(now, u32::MAX)).map(|(_, proc)| *proc)
    }

    /// The idle procs whose pause has ended since [`Idle::wake`] and that do not wait for a time of the job's crontab.
    fn woken(&self, now: Time) -> impl Iterator<Item = u32> {
        self.ended(now).filter(|proc| !self.late.contains(*proc))
    }

    /// The lowest idle proc that does not wait and is in none of these sets.
    pub(super) fn first_outside(&self, others: &[&Ranges], now: Time) -> Option<u32> {
        let awake = self.awake.first_outside(others);
        let woken = self.woken(now).filter(|proc| others.iter().all(|procs| !procs.contains(*proc))).min();
        awake.into_iter().chain(woken).min()
    }

    /// The lowest idle proc that does not wait and is in this set.
    pub(super) fn first_in(&self, procs: &Ranges, now: Time) -> Option<u32> {
        let awake = self.awake.first_in(procs);
        let woken = self.woken(now).filter(|proc| procs.contains(*proc)).min();
        awake.into_iter().chain(woken).min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::job::Cooling;
    use super::*;

    proptest! {
        #[test]
        fn the_lowest_proc_that_may_start_is_found_however_procs_came_and_went(
            steps in prop::collection::vec((0_u8..8, 0_u32..20, 0_i64..30), 0..60)
        ) {
            let mut ours = Idle::default();
            let (mut all, mut until, mut late) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
            let mut now = 0;
            for (step, proc, number) in steps {
                match step {
                    0 => {
                        ours.insert(proc);
                        all.insert(proc);
                    }
                    1 => {
                        ours.remove(proc);
                        all.remove(&proc);
                    }
                    2 => {
                        let cooling = Cooling { times: 1, until: Time::from_secs(number) };
                        ours.pause(proc, Pause { cooling, why: "left its slot".into() });
                        until.insert(proc, number);
                    }
                    3 => {
                        ours.forget(proc);
                        until.remove(&proc);
                    }
                    4 => {
                        ours.set(Ranges::up_to(proc), proc);
                        all = (0..proc).collect();
                        until.retain(|known, _| *known < proc);
                    }
                    5 => {
                        ours.note_late(proc, number > 10);
                        late.remove(&proc);
                        late.extend((number > 10).then_some(proc));
                    }
                    6 => {
                        ours.set_late(Ranges::up_to(proc));
                        late = (0..proc).collect();
                    }
                    _ => {
                        now += number / 4;
                        let next = ours.wake(Time::from_secs(now));
                        let waits = all.iter().filter_map(|proc| until.get(proc)).filter(|until| **until > now);
                        prop_assert_eq!(next, waits.min().map(|until| Time::from_secs(*until)));
                    }
                }
                // Time passes between two calls of wake.
                for later in [now, now + 3] {
                    let at = Time::from_secs(later);
                    let waits = |proc: &u32| until.get(proc).is_some_and(|until| *until > later);
                    let may: Vec<u32> =
                        all.iter().copied().filter(|proc| !waits(proc) && !late.contains(proc)).collect();
                    let (mut low, mut odd) = (Ranges::default(), Ranges::default());
                    for proc in 0..6 {
                        low.insert(proc);
                    }
                    for proc in (1..20).step_by(2) {
                        odd.insert(proc);
                    }
                    let in_odd = may.iter().copied().find(|proc| proc % 2 == 1);
                    let outside = may.iter().copied().find(|proc| *proc >= 6 && proc % 2 == 0);
                    prop_assert_eq!(ours.first_outside(&[], at), may.first().copied());
                    prop_assert_eq!(ours.first_outside(&[&low, &odd], at), outside);
                    prop_assert_eq!(ours.first_in(&odd, at), in_odd);
                    prop_assert_eq!(ours.waiting(at), (all.len() - may.len()) as u64);
                    prop_assert_eq!(ours.are_all_late(), all.is_subset(&late));
                    let first = all.iter().filter_map(|proc| Some((*until.get(proc)?, *proc))).filter(|(until, _)| *until > later);
                    let first = first.min().filter(|_| all.iter().all(waits)).map(|(_, proc)| proc);
                    prop_assert_eq!(ours.all_pause(at).map(|(proc, _)| proc), first);
                    prop_assert!((0..20).all(|proc| ours.pauses(proc, at) == waits(&proc)));
                    prop_assert!((0..20).all(|proc| ours.is_late(proc) == late.contains(&proc)));
                }
                prop_assert!(ours.iter().eq(all.iter().copied()));
            }
        }
    }
}
