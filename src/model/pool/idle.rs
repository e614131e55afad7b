//! The idle procs of a job, and which of them wait before they are tried again.
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
    /// The idle procs that wait, each with the end of its wait. The wait of some may have ended since [`Idle::wake`].
    asleep: BTreeSet<(Time, u32)>,
    /// The idle procs that are not in `asleep`.
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
        self.awake = all.clone();
        self.all = all;
        self.asleep.clear();
        let pausing: Vec<u32> = self.pauses.keys().copied().collect();
        for proc in pausing {
            self.settle(proc);
        }
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

    /// The pause of a proc that failed to end, whether over or not.
    pub(super) fn pause_of(&self, proc: u32) -> Option<&Pause> {
        self.pauses.get(&proc)
    }

    /// The proc whose pause ends first, with the pause, if all idle procs pause.
    pub(super) fn all_pause(&self, now: Time) -> Option<(u32, &Pause)> {
        let mut pausing = self.asleep.range((Bound::Excluded((now, u32::MAX)), Bound::Unbounded));
        let (_, proc) =
            pausing.next().filter(|_| self.awake.is_empty() && self.woken(now).next().is_none())?;
        Some((*proc, self.pauses.get(proc)?))
    }

    /// Whether the wait of an idle proc has ended by `now` and after `then`.
    pub(super) fn woke_after(&self, then: Time, now: Time) -> bool {
        let found = self.woke.is_some_and(|until| then < until);
        found
            || self
                .woken(now)
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
        if idle && pause.is_none() {
            self.awake.insert(proc)
        } else {
            self.awake.remove(proc)
        };
    }

    /// Takes the procs whose wait has ended to those that do not wait. The answers of the other methods are the same before and after,
    /// but cost less after. Returns when the next wait ends.
    pub(super) fn wake(&mut self, now: Time) -> Option<Time> {
        while let Some((until, proc)) = self.asleep.first().copied().filter(|(until, _)| *until <= now) {
            self.asleep.pop_first();
            self.awake.insert(proc);
            self.woke = self.woke.max(Some(until));
        }
        self.asleep.first().map(|(until, _)| *until)
    }

    /// Whether a proc waits, if it is idle.
    pub(super) fn waits(&self, proc: u32, now: Time) -> bool {
        self.pauses.get(&proc).is_some_and(|pause| pause.cooling.until > now)
    }

    /// How many idle procs wait.
    pub(super) fn waiting(&self, now: Time) -> usize {
        self.asleep.len() - self.woken(now).count()
    }

    /// The idle procs whose wait has ended since [`Idle::wake`].
    fn woken(&self, now: Time) -> impl Iterator<Item = u32> {
        self.asleep.range(..=(now, u32::MAX)).map(|(_, proc)| *proc)
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
            steps in prop::collection::vec((0_u8..6, 0_u32..20, 0_i64..30), 0..60)
        ) {
            let mut ours = Idle::default();
            let (mut all, mut until) = (BTreeSet::new(), BTreeMap::new());
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
                    let may: Vec<u32> = all.iter().copied().filter(|proc| !waits(proc)).collect();
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
                    prop_assert_eq!(ours.waiting(at), all.len() - may.len());
                    let first = all.iter().filter_map(|proc| Some((*until.get(proc)?, *proc))).filter(|(until, _)| *until > later);
                    let first = first.min().filter(|_| may.is_empty()).map(|(_, proc)| proc);
                    prop_assert_eq!(ours.all_pause(at).map(|(proc, _)| proc), first);
                    prop_assert!((0..20).all(|proc| ours.waits(proc, at) == waits(&proc)));
                }
                prop_assert!(ours.iter().eq(all.iter().copied()));
            }
        }
    }
}
