//! The procs of a job that are held.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::leaving::HoldReason;

/// The held procs of a job, by their numbers, each with the reason. Reads as a map.
#[derive(Clone, Debug, Default)]
pub struct OnHold {
    by_proc: BTreeMap<u32, HoldReason>,
    /// How many procs are held with each `HoldReasonCode`. A job may have a hundred thousand held procs, and each hold asks whether it is
    /// the first with its code.
    by_code: BTreeMap<i64, u32>,
}

impl OnHold {
    /// Holds a proc. Returns the reason for which the proc was held before.
    pub(super) fn insert(&mut self, proc: u32, hold: HoldReason) -> Option<HoldReason> {
        *self.by_code.entry(hold.code).or_default() += 1;
        let before = self.by_proc.insert(proc, hold);
        self.counts_no_longer(before.as_ref());
        before
    }

    /// Releases a proc.
    pub(super) fn remove(&mut self, proc: u32) {
        let before = self.by_proc.remove(&proc);
        self.counts_no_longer(before.as_ref());
    }

    /// Releases all procs.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Releases the procs that are not to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u32, &HoldReason) -> bool) {
        let all = std::mem::take(self);
        *self = all.by_proc.into_iter().filter(|(proc, hold)| keep(*proc, hold)).collect();
    }

    /// Whether a proc is held with this `HoldReasonCode`.
    pub fn has_code(&self, code: i64) -> bool {
        self.by_code.contains_key(&code)
    }

    fn counts_no_longer(&mut self, hold: Option<&HoldReason>) {
        let Some(code) = hold.map(|hold| hold.code) else { return };
        if let Some(count) = self.by_code.get_mut(&code) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_code.remove(&code);
            }
        }
    }
}

impl FromIterator<(u32, HoldReason)> for OnHold {
    fn from_iter<I: IntoIterator<Item = (u32, HoldReason)>>(holds: I) -> Self {
        let mut all = Self::default();
        for (proc, hold) in holds {
            all.insert(proc, hold);
        }
        all
    }
}

impl Deref for OnHold {
    type Target = BTreeMap<u32, HoldReason>;

    fn deref(&self) -> &Self::Target {
        &self.by_proc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_known_for_as_long_as_a_proc_is_held_with_it() {
        let reason = |code| HoldReason { code, subcode: 0, reason: "so".into() };
        let mut held = OnHold::default();
        let codes = |held: &OnHold| [1, 3, 34].map(|code| held.has_code(code));
        for (proc, code) in [(0, 1), (1, 1), (2, 34), (0, 3)] {
            held.insert(proc, reason(code));
        }
        assert_eq!((codes(&held), held.len()), ([true, true, true], 3), "proc 0 is held anew");
        held.remove(1);
        held.remove(7);
        assert_eq!(codes(&held), [false, true, true]);
        held.retain(|proc, _| proc == 2);
        assert_eq!((codes(&held), held.keys().copied().collect::<Vec<_>>()), ([false, false, true], vec![2]));
        held.clear();
        assert_eq!(codes(&held), [false; 3]);
    }
}
