//! Acts: what people ask of single procs of a job, once. To hold, to release, to remove and to vacate procs are acts.
//!
//! An act is written on the job's object, with a number. The job's status records the number of the last act that was carried
//! out, in the same write as what the act changed. So an act takes effect once, whatever happens to the operator: an act whose
//! number is not recorded is carried out by the next leader, and until the number is recorded, no pod of the job is created.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::Pool;
use super::archive::Left;
use super::ids::{JobUid, SlotName};
use super::job::Job;
use super::leaving::HoldReason;
use super::marks::Change;
use super::ranges::Ranges;
use super::slot::{Removal, Slot};
use super::time::Time;
use super::units::counted;

/// After acts that looked at so many procs of a job, the job's further acts wait until the job's status has recorded
/// these: a job's author must not keep the operator from other jobs.
const AT_A_TIME: usize = 100_000;

/// The action that an act asks of procs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `condor_hold`: the procs leave their slots, and do not run until they are released.
    Hold,
    /// `condor_release`: procs that are held are idle again.
    Release,
    /// `condor_rm`: the procs leave their slots, and never run again.
    Remove,
    /// `condor_vacate_job`: the procs leave their slots with the grace period of their pods, and are idle again.
    Vacate,
    /// `condor_vacate_job -fast`: the procs are killed, and are idle again.
    VacateFast,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 5] = [Self::Hold, Self::Release, Self::Remove, Self::Vacate, Self::VacateFast];

    /// The verb's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "Hold",
            Self::Release => "Release",
            Self::Remove => "Remove",
            Self::Vacate => "Vacate",
            Self::VacateFast => "VacateFast",
        }
    }

    /// The verb with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// The words for an act that was carried out, as an event says them: the reason and the action of the event, and
    /// the participle.
    const fn told(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Hold => ("ProcsHeld", "Hold", "held"),
            Self::Release => ("ProcsReleased", "Release", "released"),
            Self::Remove => ("ProcsRemoved", "Remove", "removed"),
            Self::Vacate => ("ProcsVacated", "Vacate", "vacated"),
            Self::VacateFast => ("ProcsVacated", "Vacate", "vacated fast"),
        }
    }
}

/// The procs that an act is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All procs that the job has when the act is carried out.
    All,
    /// These procs.
    Some(Ranges),
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all procs"),
            Self::Some(procs) => write!(f, "procs {procs}"),
        }
    }
}

/// An act that somebody asks of procs, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The act's number. Acts are carried out in the order of their numbers.
    pub id: u64,
    /// The action.
    pub verb: Verb,
    /// The procs that the act is about.
    pub whom: Whom,
    /// Why, in the words of whoever asks: `HoldReason`, and the text of an event.
    pub reason: Arc<str>,
    /// `HoldReasonSubCode` of procs that are held.
    pub subcode: i64,
}

impl Pool {
    /// Carries out the acts that an operator that starts has found, once it knows which procs have slots.
    pub(super) fn carry_out_found(&mut self, now: Time) {
        let found = self.jobs.iter().filter(|(_, job)| !job.found_acts.is_empty());
        let found: Vec<_> = found.map(|(uid, _)| uid.clone()).collect();
        for uid in found {
            let acts = self.jobs.get_mut(&uid).map(|job| std::mem::take(&mut job.found_acts));
            self.carry_out(&uid, acts.unwrap_or_default(), now);
        }
    }

    /// Carries out the acts that were not carried out before, in the order of their numbers. Stops once these acts have looked at
    /// [`AT_A_TIME`] procs: the job's status then records them, which is a change of the job, and this change leads here again.
    ///
    /// While this operator has never understood the job's spec, the job's acts wait: the operator does not know the job's procs. A
    /// correct spec is a change of the job, too.
    pub(super) fn carry_out(&mut self, uid: &JobUid, acts: Vec<Act>, now: Time) {
        if !self.synced {
            if let Some(job) = self.jobs.get_mut(uid) {
                job.found_acts = acts;
            }
            return;
        }
        if self.jobs.get(uid).is_none_or(|job| job.spec.is_none() && !job.removing) {
            return;
        }
        let last = self.jobs.get(uid).map_or(u64::MAX, |job| job.last_act);
        let mut due: Vec<&Act> = acts.iter().filter(|act| act.id > last).collect();
        due.sort_by_key(|act| act.id);
        let mut looked_at = 0;
        for act in due {
            if looked_at >= AT_A_TIME {
                break;
            }
            let Some(job) = self.jobs.get_mut(uid) else { return };
            job.last_act = act.id;
            let key = job.key.clone();
            // A job that is being deleted has no procs left to act on.
            let meant = if job.removing { Meant::default() } else { Meant::by(act, job) };
            looked_at += meant.looked_at;
            let done = meant.procs.into_iter().filter(|proc| self.act_on(uid, *proc, act, now)).count();
            self.changed(Change::Procs(uid));
            self.changed(Change::Released);
            let (reason, action, done_to) = act.verb.told();
            let count = u64::try_from(done).unwrap_or(u64::MAX);
            let verb = if count == 1 { "is" } else { "are" };
            let note =
                format!("{} {verb} {done_to}, of {}: {}", counted(count, "proc"), act.whom, act.reason);
            self.tell(&key, reason, action, note.chars().take(900).collect());
        }
        self.note_completion(uid, now);
    }

    /// Carries out an act on one proc. Returns whether the act changed anything.
    fn act_on(&mut self, uid: &JobUid, proc: u32, act: &Act, now: Time) -> bool {
        match act.verb {
            Verb::Hold => self.hold_one(uid, proc, &HoldReason::by_user(act.subcode, &act.reason), now),
            Verb::Release => self.release_one(uid, proc, now),
            Verb::Remove => self.remove_one(uid, proc, &act.reason, now),
            Verb::Vacate => self.vacate_one(uid, proc, Removal::ByUser),
            Verb::VacateFast => self.vacate_one(uid, proc, Removal::AtOnce),
        }
    }

    /// Holds a proc: it leaves its slot, if it has one, and does not run until it is released. A reason that a person gives
    /// replaces any other reason for which the proc is held, as in HTCondor. Returns whether anything changed.
    pub(super) fn hold_one(&mut self, uid: &JobUid, proc: u32, hold: &HoldReason, now: Time) -> bool {
        let Some(job) = self.jobs.get_mut(uid).filter(|job| job.is_queued(proc)) else { return false };
        if let Some(known) = job.on_hold.get(&proc)
            && (known.is_by_user() || !hold.is_by_user())
        {
            return false;
        }
        job.put_on_hold(proc, hold.clone(), now);
        let slot = job.active.get(&proc).cloned();
        self.ask_to_go(slot.as_ref(), Removal::ByUser);
        true
    }

    /// Releases a proc that is held. Returns whether it was held.
    pub(super) fn release_one(&mut self, uid: &JobUid, proc: u32, now: Time) -> bool {
        let Some(job) = self.jobs.get_mut(uid) else { return false };
        // Only an edit of spec.hold releases procs that spec.hold holds.
        if job.on_hold.get(&proc).is_none_or(HoldReason::is_by_spec) {
            return false;
        }
        job.take_off_hold(proc, now);
        true
    }

    /// Removes a proc: it leaves its slot, if it has one, and never runs again. Returns whether anything changed.
    pub(super) fn remove_one(&mut self, uid: &JobUid, proc: u32, why: &Arc<str>, now: Time) -> bool {
        if self.jobs.get(uid).is_none_or(|job| !job.is_queued(proc)) {
            return false;
        }
        self.leaves_queue(uid, proc, Left::Removed(why.clone()), None, now);
        let Some(job) = self.jobs.get_mut(uid) else { return false };
        job.take_out(proc);
        job.removed.insert(proc);
        let slot = job.active.get(&proc).cloned();
        self.ask_to_go(slot.as_ref(), Removal::ByUser);
        true
    }

    /// Sends a proc that has a pod out of its slot. Returns whether the proc has a pod, and is neither held nor removed.
    pub(super) fn vacate_one(&mut self, uid: &JobUid, proc: u32, how: Removal) -> bool {
        let Some(job) = self.jobs.get(uid).filter(|job| !job.is_out(proc)) else { return false };
        let Some(name) = job.active.get(&proc).cloned() else { return false };
        let runs = self.slots.get(&name).is_some_and(|slot| slot.active().is_some() || slot.is_requested());
        if runs {
            self.ask_to_go(Some(&name), how);
        }
        runs
    }

    fn ask_to_go(&mut self, slot: Option<&SlotName>, how: Removal) {
        let Some(name) = slot else { return };
        if let Some(slot) = self.slots.get_mut(name) {
            slot.must_go(how);
            self.changed(Change::Slot(name));
        }
    }

    /// The procs of a job that its status may record as held: none whose pod is being created, or was not seen to be deleted.
    ///
    /// Until the deletion is seen, the program may end by itself, and that end counts. A new leader that found the hold recorded
    /// would take the pod for what a recorded end has left.
    pub fn recordable_holds(&self, job: &Job) -> BTreeMap<u32, HoldReason> {
        let stays = |proc: &u32| self.active_slot(job, *proc).is_some_and(|slot| !has_seen_deletion(slot));
        let told = job.on_hold.iter().filter(|(proc, _)| !stays(proc));
        told.map(|(proc, hold)| (*proc, hold.clone())).collect()
    }

    /// The procs of a job that its status may record as removed: none whose containers may still start, since the pod is being
    /// created, or was not seen to be deleted. The end of a program that runs does not count any more.
    pub fn recordable_removals(&self, job: &Job) -> Ranges {
        let may_start = |proc: &&u32| {
            self.active_slot(job, **proc)
                .is_some_and(|slot| !has_seen_deletion(slot) && slot.active().is_none_or(|pod| !pod.runs))
        };
        let mut removed = job.removed.clone();
        let is_removed = |proc: &&u32| job.removed.contains(**proc);
        for proc in job.active.keys().filter(is_removed).filter(may_start) {
            removed.remove(*proc);
        }
        self.archived_of(job, &removed)
    }

    fn active_slot(&self, job: &Job, proc: u32) -> Option<&Slot> {
        job.active.get(&proc).and_then(|name| self.slots.get(name))
    }

    /// The number of the last act that the job's status may record. An act is recorded once the pods are seen to be deleted that
    /// must go because of it, and the history has the procs that it removed. Until then, a new leader would not know that these
    /// pods must go.
    pub fn recordable_act(&self, job: &Job) -> u64 {
        if job.last_act <= job.recorded_act || job.removing {
            return job.last_act;
        }
        let waits = |name| {
            self.slots
                .get(name)
                .is_some_and(|slot| slot.removal().is_some_and(Removal::is_asked) && !has_seen_deletion(slot))
        };
        let waits = job.active.values().any(waits) || self.removal_awaits_history(&job.key.uid);
        if waits { job.recorded_act } else { job.last_act }
    }
}

/// Whether the slot has no pod that could run on: the pod was seen to be deleted, or its proc has ended, or no pod was asked for.
fn has_seen_deletion(slot: &Slot) -> bool {
    !slot.is_requested() && slot.active().is_none_or(|pod| pod.doomed.is_some())
}

/// The procs of a job that an act is about.
#[derive(Default)]
struct Meant {
    procs: Vec<u32>,
    /// How many procs were looked at to find the procs that the act means.
    looked_at: usize,
}

impl Meant {
    fn by(act: &Act, job: &Job) -> Self {
        let end = job.spec.as_ref().map_or(0, |spec| spec.count);
        // A proc that runs on after the count was lowered, or is held, is still there.
        let active = job.active.range(end..).map(|(proc, _)| *proc);
        let beyond: BTreeSet<u32> = active.chain(job.on_hold.range(end..).map(|(proc, _)| *proc)).collect();
        let over = beyond.len();
        let procs: Vec<u32> = match &act.whom {
            Whom::All => (0..end).chain(beyond).collect(),
            Whom::Some(procs) => {
                let counted = procs.iter().take_while(|proc| *proc < end);
                counted.chain(beyond.into_iter().filter(|proc| procs.contains(*proc))).collect()
            }
        };
        Self { looked_at: procs.len() + over, procs }
    }
}
