//! Holds procs that have not run.

use super::Pool;
use super::ids::JobUid;
use super::leaving::HoldReason;
use super::marks::Change;
use super::units::counted;

/// `HoldReasonCode` `JobPolicyUndefined`: an expression of the job has no value. Slotwright uses the code if an
/// evaluation takes too many steps.
pub const JOB_POLICY_UNDEFINED: i64 = 5;

impl Pool {
    /// Holds all idle procs of a job, until the job is edited.
    pub fn hold_waiting(&mut self, uid: &JobUid, hold: &HoldReason) {
        let Some(job) = self.jobs.get_mut(uid).filter(|job| !job.idle.is_empty()) else { return };
        let waiting = std::mem::take(&mut job.idle);
        job.on_hold.extend(waiting.iter().map(|proc| (proc, hold.clone())));
        job.cooling.retain(|proc, _| !waiting.contains(*proc));
        let key = job.key.clone();
        let verb = if waiting.len() == 1 { "is" } else { "are" };
        let note = format!("{} {verb} held: {hold}", counted(waiting.len(), "proc"));
        self.changed(Change::Procs(uid));
        self.warn(&key, "ProcHeld", "Hold", note);
    }
}
