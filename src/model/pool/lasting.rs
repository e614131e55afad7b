//! Procs that began a short while ago. A claim is written, and the status of its Slot says which proc runs there, only once
//! that proc has lasted, so that a proc of a few seconds costs neither write. A claim that waits for its pod for
//! [`LASTING_UNCREATED`] is written, too.
//!
//! After a large negotiation cycle, tens of thousands of procs last at once. Their claims are written [`AT_ONCE`] at a time: nothing
//! waits for these writes, and the writes that new pods and ended claims wait for would come behind them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Pool;
use super::ids::SlotName;
use super::marks::Change;
use super::slot::{Claimed, Record, Slot, State};
use super::time::Time;
use super::timers::Timers;

/// How long a proc's containers must have run before the status of the Slot names the proc.
pub const LASTING: Duration = Duration::from_secs(5);
/// How long a claim must have been active before the status of its Slot says so, if no containers run yet. A pod may take some seconds to
/// start.
const LASTING_UNSTARTED: Duration = Duration::from_secs(10);
/// For how long a claim waits for its pod's creation before the claim is written.
const LASTING_UNCREATED: Duration = Duration::from_mins(1);
/// The most that late news of pods adds to [`LASTING`] and [`LASTING_UNSTARTED`].
const MOST: Duration = Duration::from_secs(15);
/// Kubelets cut the times at which containers end to whole seconds, so that the operator may seem to learn of an end up to a second
/// later than it does.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// How many claims are being written at the same time because their procs have lasted. Nobody waits for these writes, and so they
/// take a quarter of what the API server is asked for at once. A server that answers in 50 ms writes 320 claims a second. While the
/// server is busy, most claims of short procs end before their turn comes, and are never written.
const AT_ONCE: usize = 16;

/// How many claims are being written at the same time while more than [`AT_ONCE`] pods wait to be created: each further write would
/// delay such a creation. A tenant whose webhook hangs can keep as many pods waiting; then the claims of others are written later, for
/// which nobody waits.
const WHILE_PODS_WAIT: usize = 2;

/// The slots whose claims were activated a short while ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Lasting {
    /// When the claim and the status of each slot are written, if its proc lasts or its pod is not created, and no news of pods comes late.
    timers: Timers<SlotName>,
    /// The slots whose claims are being written because their procs have lasted.
    writing: BTreeSet<SlotName>,
    /// How long recent pods took to start.
    starts: Average,
    /// How long after the ends of recent pods the operator learned of these ends.
    ends: Average,
}

impl Lasting {
    /// When the next slot is due. `None` while as many claims as possible are being written: the end of a write lets the deciders
    /// look again.
    pub(super) fn next(&self, pods_asked: usize) -> Option<Time> {
        self.timers.next().filter(|_| self.has_room(pods_asked)).map(|at| at + self.lateness())
    }

    /// Whether one more claim may be written now, while so many pods are asked for.
    fn has_room(&self, pods_asked: usize) -> bool {
        self.writing.len() < if pods_asked > AT_ONCE { WHILE_PODS_WAIT } else { AT_ONCE }
    }

    /// Takes out a slot that is due by now.
    fn pop_due(&mut self, now: Time) -> Option<SlotName> {
        self.timers.pop_due(now - self.lateness())
    }

    /// Notes that a pod took so long to start.
    fn learn_start(&mut self, took: Duration) {
        self.starts.learn(took);
    }

    /// Notes how long after the end of a pod, by the clock of its node, the operator learned of the end.
    pub(super) fn learn_end(&mut self, after: Duration) {
        self.ends.learn(after.saturating_sub(WHOLE_SECOND));
    }

    /// How much longer a proc must last because news of pods comes late: twice the longer of two averages, how long recent pods took
    /// to start, and how long after their ends the operator learned of them. A pool in which no pod starts or ends keeps the averages.
    ///
    /// While the API server or the kubelets are busy, procs of a second seem to last. To write their claims then would make the API
    /// server busier still. One user's slow images, and a node whose clock is behind, make the claims of all users be written later,
    /// too, but at most by [`MOST`].
    fn lateness(&self) -> Duration {
        (self.starts.0.max(self.ends.0) * 2).min(MOST)
    }
}

/// An average to which each value contributes a sixteenth. A value above [`MOST`] counts as [`MOST`].
#[derive(Clone, Copy, Debug, Default)]
struct Average(Duration);

impl Average {
    fn learn(&mut self, value: Duration) {
        self.0 = (self.0 * 15 + value.min(MOST)) / 16;
    }
}

impl Pool {
    /// Notes whether the slot's claim has just been activated, or waits for its pod. Returns whether the claim has just been activated: the
    /// status of its Slot then waits.
    pub(super) fn lasts_yet(&mut self, name: &SlotName) -> bool {
        let Some(slot) = self.slots.get(name) else { return false };
        let begins = slot.has_just_begun();
        let lasting = if !begins {
            waits_unwritten(slot).then_some(LASTING_UNCREATED)
        } else if slot.active().is_some_and(|running| running.runs) {
            Some(LASTING)
        } else {
            Some(LASTING_UNSTARTED)
        };
        let since = slot.phase().entered_activity();
        self.lasting.timers.set(name, lasting.map(|lasting| since + lasting));
        begins
    }

    /// Notes that the containers of a slot's pod have started. If the slot's status waits, it waits until they have lasted.
    pub(super) fn lasts_from(&mut self, name: &SlotName, now: Time) {
        let began = self.slots.get(name).filter(|slot| slot.has_just_begun());
        // An operator that begins learns of all starts of the time before.
        if let Some(began) = began.map(|slot| slot.phase().entered_activity()).filter(|_| self.synced) {
            self.lasting.learn_start(now.since(began));
        }
        if self.lasting.timers.get(name).is_some() {
            self.lasting.timers.set(name, Some(now + LASTING));
        }
    }

    /// Forgets a slot that is gone.
    pub(super) fn lasts_no_longer(&mut self, slot: &Slot) {
        self.lasting.timers.set(slot.name(), None);
    }

    /// Marks the statuses of the slots whose procs have lasted by now, and has their claims written, and those that have waited for
    /// their pods for long, a limited number at the same time.
    pub(super) fn show_what_lasted(&mut self, now: Time) {
        let slots = &self.slots;
        self.lasting.writing.retain(|name| slots.get(name).is_some_and(is_being_written));
        while self.lasting.has_room(self.creating.asked())
            && let Some(name) = self.lasting.pop_due(now)
        {
            if !self.slots.get(&name).is_some_and(waits_unwritten) {
                self.changed(Change::SlotObject(&name));
            }
            self.claim_lasts(&name);
            if self.slots.get(&name).is_some_and(is_being_written) {
                self.lasting.writing.insert(name);
            }
        }
    }
}

/// Whether the slot has a claim that is not written and has no pod yet.
fn waits_unwritten(slot: &Slot) -> bool {
    slot.state() == State::Claimed(Claimed::Idle)
        && slot.record() == Record::Unwritten
        && (slot.is_assigned() || slot.is_requested())
}

fn is_being_written(slot: &Slot) -> bool {
    matches!(slot.record(), Record::Due | Record::Writing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_written_later_while_news_of_pods_comes_late() {
        let after = |starts: &[u64], ends: &[u64]| {
            let mut lasting = Lasting::default();
            for seconds in starts {
                lasting.learn_start(Duration::from_secs(*seconds));
            }
            for seconds in ends {
                lasting.learn_end(Duration::from_secs(*seconds));
            }
            lasting.lateness().as_secs()
        };
        assert_eq!(after(&[], &[]), 0);
        assert_eq!(
            after(&[1; 100], &[1; 100]),
            1,
            "pods that start within a second, and ends that are dated in whole seconds"
        );
        assert_eq!(after(&[60], &[]), 1, "one image that is pulled");
        assert_eq!(after(&[6; 100], &[1; 100]), 11, "slow starts");
        assert_eq!(after(&[1; 100], &[7; 100]), 11, "ends that are told late");
        assert_eq!(after(&[600; 100], &[600; 100]), 15, "the most");
        assert_eq!(after(&[], &[86_400]), 1, "one end that is told a day late");
    }

    #[test]
    fn few_claims_are_written_while_many_pods_wait_to_be_created() {
        let slot = |number: usize| SlotName::parse(&format!("slot1_{number}@n1")).unwrap();
        let mut lasting = Lasting::default();
        lasting.writing.extend((1..=WHILE_PODS_WAIT).map(slot));
        assert!(lasting.has_room(AT_ONCE), "as many pods as claims are no reason");
        assert!(!lasting.has_room(AT_ONCE + 1));
        lasting.writing.extend((1..=AT_ONCE).map(slot));
        assert!(!lasting.has_room(0));
    }
}
