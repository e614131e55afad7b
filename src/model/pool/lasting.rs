//! Procs that began a short while ago. A claim is written, and the status of its Slot says which proc runs there, only once
//! that proc has lasted, so that a proc of a few seconds costs neither write.
//!
//! After a large negotiation cycle, tens of thousands of procs last at once. Their claims are written [`AT_ONCE`] at a time: nothing
//! waits for these writes, and the writes that new pods and ended claims wait for would come behind them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Pool;
use super::ids::SlotName;
use super::marks::Change;
use super::slot::{Record, Slot};
use super::time::Time;
use super::timers::Timers;

/// For how long a proc's containers have run when the status of the Slot says so.
pub const LASTING: Duration = Duration::from_secs(5);
/// For how long a claim has been active, without containers that run, when the status of its Slot says so. A pod may take some
/// seconds to start.
const LASTING_UNSTARTED: Duration = Duration::from_secs(10);
/// For how long a claim waits for its pod's creation before the claim is written.
pub const LASTING_UNCREATED: Duration = Duration::from_mins(1);
/// The most by which these times grow while pods start slowly.
const MOST: u32 = 4;
/// How many claims are being written at the same time because their procs have lasted. Nobody waits for these writes, and so they
/// take a quarter of what the API server is asked for at once. A server that answers in 50 ms writes 320 claims a second. While the
/// server is busy, most claims of short procs end before their turn comes, and are never written.
const AT_ONCE: usize = 16;

/// The slots whose claims were activated a short while ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Lasting {
    /// When the claim and the status of each slot are written, if its proc lasts.
    timers: Timers<SlotName>,
    /// The slots whose claims are being written because their procs have lasted.
    writing: BTreeSet<SlotName>,
}

impl Lasting {
    /// When the next slot is due. `None` while as many claims as possible are being written: the end of a write lets the deciders
    /// look again.
    pub(super) fn next(&self) -> Option<Time> {
        self.timers.next().filter(|_| self.writing.len() < AT_ONCE)
    }
}

/// How long pods have taken to start of late: an average to which each pod contributes a sixteenth.
///
/// While the API server or the kubelets are busy, the starts and ends of pods are seen late, so that procs of a second seem to
/// last. To write their claims then would make the API server busier still. One user's slow images make the claims of all users
/// be written later, too, but at most [`MOST`] times as late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starts(Duration);

impl Starts {
    fn learn(&mut self, took: Duration) {
        self.0 = (self.0 * 15 + took) / 16;
    }

    /// A longer time: by twice as long as pods take to start, since the end of a pod may be seen as late as its start.
    fn stretch(self, time: Duration) -> Duration {
        (time + self.0 * 2).min(time * MOST)
    }
}

impl Pool {
    /// Notes whether the slot's claim has just been activated. Returns whether that is so: then the status waits.
    pub(super) fn lasts_yet(&mut self, name: &SlotName) -> bool {
        let at = self.slots.get(name).filter(|slot| slot.has_just_begun());
        let at = at.map(|slot| {
            let runs = slot.active().is_some_and(|running| running.runs);
            let lasting = self.starts.stretch(if runs { LASTING } else { LASTING_UNSTARTED });
            slot.phase().entered_activity() + lasting
        });
        self.lasting.timers.set(name, at);
        at.is_some()
    }

    /// Notes that the containers of a slot's pod have started. If the slot's status waits, it waits until they have lasted.
    pub(super) fn lasts_from(&mut self, name: &SlotName, now: Time) {
        if self.lasting.timers.get(name).is_none() {
            return;
        }
        if let Some(slot) = self.slots.get(name) {
            self.starts.learn(now.since(slot.phase().entered_activity()));
        }
        self.lasting.timers.set(name, Some(now + self.starts.stretch(LASTING)));
    }

    /// Forgets a slot that is gone.
    pub(super) fn lasts_no_longer(&mut self, slot: &Slot) {
        self.lasting.timers.set(slot.name(), None);
    }

    /// Marks the statuses of the slots whose procs have lasted by now, and has their claims written, a limited number at the same
    /// time.
    pub(super) fn show_what_lasted(&mut self, now: Time) {
        if self.lasting.timers.next().is_none_or(|at| at > now) {
            return;
        }
        let slots = &self.slots;
        self.lasting.writing.retain(|name| slots.get(name).is_some_and(is_being_written));
        while self.lasting.writing.len() < AT_ONCE
            && let Some(name) = self.lasting.timers.pop_due(now)
        {
            self.changed(Change::SlotObject(&name));
            self.claim_lasts(&name);
            if self.slots.get(&name).is_some_and(is_being_written) {
                self.lasting.writing.insert(name);
            }
        }
    }
}

fn is_being_written(slot: &Slot) -> bool {
    matches!(slot.record(), Record::Due | Record::Writing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_written_later_while_pods_start_slowly() {
        let after = |took: &[u64]| {
            let mut starts = Starts::default();
            for seconds in took {
                starts.learn(Duration::from_secs(*seconds));
            }
            [LASTING, LASTING_UNSTARTED].map(|time| starts.stretch(time).as_secs())
        };
        assert_eq!(after(&[]), [5, 10]);
        assert_eq!(after(&[1; 100]), [6, 11], "pods that start within a second");
        assert_eq!(after(&[60]), [12, 17], "one image that is pulled");
        assert_eq!(after(&[6; 100]), [16, 21], "a busy API server");
        assert_eq!(after(&[600; 100]), [20, 40], "at most four times");
    }
}
