//! Procs that began a short while ago. A claim is written, and the status of its Slot says which proc runs there, only once
//! that proc has lasted, so that procs of a few seconds cost no write of either.

use std::time::Duration;

use super::Pool;
use super::ids::SlotName;
use super::marks::Change;
use super::slot::Slot;
use super::time::Time;

/// For how long a proc's containers have run when the status of the Slot says so.
pub const LASTING: Duration = Duration::from_secs(5);
/// For how long a claim has been active, without containers that run, when the status of its Slot says so; and for how long a
/// claim waits for its pod's creation before the claim is written. On a busy API server a pod may take some seconds to start.
pub const LASTING_UNSTARTED: Duration = Duration::from_secs(10);

impl Pool {
    /// Notes whether the slot's claim has just been activated. Returns whether that is so: then the status waits.
    pub(super) fn lasts_yet(&mut self, name: &SlotName) -> bool {
        let at = self.slots.get(name).filter(|slot| slot.has_just_begun());
        let at = at.map(|slot| {
            let runs = slot.active().is_some_and(|running| running.runs);
            slot.phase().entered_activity() + if runs { LASTING } else { LASTING_UNSTARTED }
        });
        self.lasting.set(name, at);
        at.is_some()
    }

    /// Notes that the containers of a slot's pod have started. If the slot's status waits, it waits until they have lasted.
    pub(super) fn lasts_from(&mut self, name: &SlotName, now: Time) {
        if self.lasting.get(name).is_some() {
            self.lasting.set(name, Some(now + LASTING));
        }
    }

    /// Forgets a slot that is gone.
    pub(super) fn lasts_no_longer(&mut self, slot: &Slot) {
        self.lasting.set(slot.name(), None);
    }

    /// Marks the statuses of the slots whose procs have lasted by now, and has their claims written.
    pub(super) fn show_what_lasted(&mut self, now: Time) {
        while let Some(name) = self.lasting.pop_due(now) {
            self.changed(Change::SlotObject(&name));
            self.claim_lasts(&name);
        }
    }
}
