//! Events about the outcomes of calls.

use std::time::Duration;

use super::Pool;
use super::event::{Outcome, Retry};
use super::ids::{ClaimId, SlotName};
use super::marks::Change;
use super::slot::{Record, Slot};
use super::time::Time;

/// How long after a failed call the deciders decide again. So an API server that refuses at once is not asked without
/// end.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

impl Pool {
    pub(super) fn outcome(&mut self, outcome: Outcome, now: Time) {
        match outcome {
            Outcome::SlotWritten { slot, claim, proc } => {
                if let Some(known) = self.slots.get_mut(&slot)
                    && known.claim().id == claim
                    && known.claim().last.proc_id() == proc
                    && known.record() == Record::Writing
                {
                    known.claim_is_written();
                    self.claim_written(&slot);
                    self.changed(Change::Slot(&slot));
                }
            }
            Outcome::SlotRefused { slot, claim, proc, why } => {
                self.slot_refused(&slot, (&claim, &proc), &why, now);
            }
            Outcome::SlotDeleted { slot, claim, there } => {
                self.slot_deleted(&slot, &claim, now);
                // If the object did not exist, no watch will show its deletion. An object that is seen from now on was
                // created late, and is deleted.
                if !there {
                    self.forget_deleted(&slot, &claim);
                }
            }
            Outcome::PodCreated { slot, claim, pod } => {
                self.pod_created(&slot, &claim, pod, now);
            }
            Outcome::SlotMissing(slot) => {
                self.write_again(&slot, |slot| slot.record() == Record::Written);
            }
            Outcome::PodMissing { slot, pod } => self.pod_missing(&slot, pod, now),
            Outcome::PodRefused { slot, claim, proc, why } => {
                self.note_refusal(&slot, &claim, &why);
                self.pod_refused(&slot, (&claim, &proc), &why, now);
            }
            Outcome::BackfillMade(slot) => self.backfill_expected(&slot, now),
            Outcome::BackfillMissing(slot) => self.backfill_missing(&slot),
            Outcome::BackfillRefused { slot, why, certain } => {
                self.backfill_refused(&slot, &why, certain, now);
            }
            Outcome::JobFinalizerSet(uid) => {
                if let Some(job) = self.jobs.get_mut(&uid) {
                    job.finalizer = job.finalizer.seen(true);
                    self.changed(Change::Job(&uid));
                }
            }
            Outcome::AgentLeaseRead { machine, found } => self.agent_lease_read(&machine, found, now),
            Outcome::Failed(retry) => {
                self.wake_at(now + RETRY_PAUSE);
                self.retries.insert((now + RETRY_PAUSE, retry));
            }
        }
    }

    /// Stores why the API server refused the pod that a claim asked for.
    fn note_refusal(&mut self, name: &SlotName, claim: &ClaimId, why: &str) {
        let asked = |slot: &&Slot| slot.claim().id == *claim && slot.is_requested();
        let Some(job) = self.slots.get(name).filter(asked).map(|slot| slot.claim().last.job.uid.clone())
        else {
            return;
        };
        self.edit_job(&job, |job| job.refused = Some(why.into()));
    }

    /// Lets the deciders decide again what a failed call was for.
    pub(super) fn retry(&mut self, retry: Retry) {
        match retry {
            Retry::Pod(uid, slot) => {
                if let Some(untracking) = self.untracking.get_mut(&uid) {
                    untracking.again = true;
                }
                self.orphan_stays(&uid);
                if let Some(slot) = slot {
                    // The claim may serve another proc by now, for whose pod nothing failed.
                    let of_pod =
                        |slot: &&mut Slot| slot.running().is_some_and(|running| running.pod.uid == uid);
                    if let Some(known) = self.slots.get_mut(&slot).filter(of_pod) {
                        known.forget_asked();
                    }
                    self.changed(Change::Slot(&slot));
                }
            }
            Retry::Backfill(machine, pod) => self.backfill_stays(&machine, &pod),
            Retry::Slot(name) => match self.slots.get_mut(&name) {
                Some(slot) if slot.record() == Record::Deleting => {
                    slot.deletion_failed();
                    self.changed(Change::Slot(&name));
                }
                _ => self.stray(name),
            },
            Retry::AgentLease(machine) => self.agent_lease_unread(&machine),
            Retry::Job(uid) => {
                if let Some(job) = self.jobs.get_mut(&uid) {
                    job.finalizer = job.finalizer.failed();
                }
                self.changed(Change::Job(&uid));
            }
        }
    }
}
