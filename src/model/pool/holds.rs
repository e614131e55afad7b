//! Holds: why procs are held, and how procs that have not run are held and released.

use std::sync::Arc;

use super::Pool;
use super::ids::JobUid;
use super::job::Job;
use super::leaving::HoldReason;
use super::marks::Change;
use super::on_evict::OwnSpec;
use super::ranges::Ranges;
use super::stuck::{FAILED_TO_CREATE_PROCESS, INVALID_DOCKER_IMAGE, JOB_OUT_OF_RESOURCES, STARTD_HELD_JOB};
use super::time::Time;
use super::units::counted;

/// `HoldReasonCode` `UserRequest`: a person asked for the hold.
pub const USER_REQUEST: i64 = 1;

/// `HoldReasonCode` `JobPolicy`: an expression of the job asked for the hold.
pub const JOB_POLICY: i64 = 3;

/// `HoldReasonCode` `JobPolicyUndefined`: an expression of the job has no value. Slotwright uses the code if an
/// evaluation takes too many steps.
pub const JOB_POLICY_UNDEFINED: i64 = 5;

/// `HoldReasonCode` `MissedDeferredExecutionTime`: the proc had no slot at `deferral_time`, nor within `deferral_window` after it.
pub const MISSED_DEFERRED_TIME: i64 = 20;

/// `HoldReasonCode` `SystemPolicy`: an expression of the pool's SubmitPolicy asked for the hold.
pub const SYSTEM_POLICY: i64 = 26;

/// `HoldReasonCode` `JobDurationExceeded`: the proc had a slot for longer than `allowed_job_duration`.
pub const JOB_DURATION_EXCEEDED: i64 = 46;

/// `HoldReasonCode` `JobExecuteExceeded`: the proc's program ran for longer than `allowed_execute_duration`.
pub const JOB_EXECUTE_EXCEEDED: i64 = 47;

/// All `HoldReasonCode`s for which procs are held.
pub const HOLD_CODES: [i64; 11] = [
    USER_REQUEST,
    JOB_POLICY,
    JOB_POLICY_UNDEFINED,
    FAILED_TO_CREATE_PROCESS,
    MISSED_DEFERRED_TIME,
    STARTD_HELD_JOB,
    SYSTEM_POLICY,
    JOB_OUT_OF_RESOURCES,
    INVALID_DOCKER_IMAGE,
    JOB_DURATION_EXCEEDED,
    JOB_EXECUTE_EXCEEDED,
];

/// The `HoldReason` of procs that `spec.hold` holds.
const BY_SPEC: &str = "spec.hold of the job is true";

/// The longest reason that is kept, in bytes. The status of a job records up to 64.
const LONGEST: usize = 512;

impl HoldReason {
    /// A hold that a person asks for.
    pub fn by_user(subcode: i64, reason: &str) -> Self {
        Self::new(USER_REQUEST, subcode, reason)
    }

    /// The hold of all procs of a job whose `spec.hold` is true.
    pub fn by_spec() -> Self {
        Self::new(USER_REQUEST, 0, BY_SPEC)
    }

    /// A hold with a reason that is cut if it is too long.
    pub fn new(code: i64, subcode: i64, reason: &str) -> Self {
        let end = reason.floor_char_boundary(LONGEST);
        Self { code, subcode, reason: reason.get(..end).unwrap_or_default().into() }
    }

    /// Whether a person asked for the hold.
    pub fn is_by_user(&self) -> bool {
        self.code == USER_REQUEST
    }

    /// Whether `spec.hold` asked for the hold.
    pub fn is_by_spec(&self) -> bool {
        self.is_by_user() && *self.reason == *BY_SPEC
    }

    /// Whether the hold stays when the job's spec is edited. A hold for which the spec may be to blame does not: whoever edits
    /// the spec wants it tried again.
    pub fn outlasts_edits(&self) -> bool {
        [USER_REQUEST, JOB_POLICY, SYSTEM_POLICY, JOB_DURATION_EXCEEDED, JOB_EXECUTE_EXCEEDED]
            .contains(&self.code)
    }
}

impl Job {
    /// Holds a proc, which the caller has found to be in the queue. If the proc has a slot, the proc stays in `active` until it
    /// has left the slot.
    pub(super) fn put_on_hold(&mut self, proc: u32, hold: HoldReason, now: Time) {
        self.idle.remove(proc);
        self.idle.forget(proc);
        let before = self.on_hold.insert(proc, hold);
        self.note_history(proc, |history| {
            history.since = now;
            if before.is_none() {
                history.holds = history.holds.saturating_add(1);
            }
        });
    }

    /// Releases a proc. If the proc has not left its slot yet, it becomes idle when it has.
    pub(super) fn take_off_hold(&mut self, proc: u32, now: Time) {
        self.on_hold.remove(proc);
        self.note_history(proc, |history| history.since = now);
        if !self.active.contains_key(&proc) && !self.removing && self.has_counted(proc) {
            self.idle.insert(proc);
        }
    }

    /// Takes a proc out of the queue. If the proc has a slot, the proc stays in `active` until it has left the slot.
    pub(super) fn take_out(&mut self, proc: u32) {
        self.idle.remove(proc);
        self.idle.forget(proc);
        self.on_hold.remove(proc);
        self.history.remove(&proc);
        self.times.remove(&proc);
        self.own_specs.remove(proc);
    }
}

impl Pool {
    /// Holds all idle procs of a job, until the job is edited.
    pub fn hold_waiting(&mut self, uid: &JobUid, hold: &HoldReason, now: Time) {
        let Some(waiting) = self.jobs.get(uid).map(|job| job.idle.clone()) else { return };
        self.hold_idle(uid, &waiting, hold, now);
    }

    /// Holds the idle procs of a job that have this spec of their own, or, without one, those that have the job's, until the job is
    /// edited.
    pub fn hold_waiting_with(
        &mut self,
        uid: &JobUid,
        own: Option<&Arc<OwnSpec>>,
        hold: &HoldReason,
        now: Time,
    ) {
        let Some(job) = self.jobs.get(uid) else { return };
        let is_of = |proc: &u32| match (job.own_spec(*proc), own) {
            (Some(has), Some(own)) => Arc::ptr_eq(has, own),
            (has, own) => has.is_none() && own.is_none(),
        };
        let mut waiting = Ranges::default();
        for proc in job.idle.iter().filter(is_of) {
            waiting.insert(proc);
        }
        self.hold_idle(uid, &waiting, hold, now);
    }

    fn hold_idle(&mut self, uid: &JobUid, waiting: &Ranges, hold: &HoldReason, now: Time) {
        let Some(job) = self.jobs.get_mut(uid).filter(|_| !waiting.is_empty()) else { return };
        for proc in waiting.iter() {
            job.put_on_hold(proc, hold.clone(), now);
        }
        let key = job.key.clone();
        let verb = if waiting.len() == 1 { "is" } else { "are" };
        let note = format!("{} {verb} held: {hold}", counted(waiting.len(), "proc"));
        self.changed(Change::Procs(uid));
        self.warn(&key, "ProcHeld", "Hold", note);
    }

    /// Holds or releases the procs of a job as `spec.hold` says.
    pub(super) fn hold_as_spec_says(&mut self, uid: &JobUid, now: Time) {
        let Some(job) = self.jobs.get_mut(uid).filter(|job| !job.removing) else { return };
        let Some(spec) = job.spec.as_ref().map(Arc::clone) else { return };
        if spec.hold {
            let queued: Vec<u32> = job.idle.iter().chain(job.active.keys().copied()).collect();
            let hold = HoldReason::by_spec();
            let more = queued.into_iter().filter(|proc| self.hold_one(uid, *proc, &hold, now)).count();
            if more > 0 {
                self.changed(Change::Procs(uid));
            }
            return;
        }
        let held = job.on_hold.iter().filter(|(_, hold)| hold.is_by_spec()).map(|(proc, _)| *proc);
        let held: Vec<u32> = held.collect();
        for proc in &held {
            job.take_off_hold(*proc, now);
        }
        if !held.is_empty() {
            self.changed(Change::Procs(uid));
            self.changed(Change::Released);
        }
    }
}
