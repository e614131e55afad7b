//! How pods end, and what becomes of their procs: done, held, removed, or idle again.

use super::Pool;
use super::archive::Left;
use super::event::PodFacts;
use super::history::{Exit, Spent};
use super::ids::{JobUid, SlotName};
use super::job::{End, Job};
use super::job_policy::Fate;
use super::leaving::{Cause, HoldReason};
use super::marks::Change;
use super::slot::{Slot, State};
use super::time::Time;

/// The times of the run in a slot.
fn spent(slot: &Slot, facts: &PodFacts, now: Time) -> Option<Spent> {
    let running = slot.running()?;
    // The program may have begun, run and ended while no operator led.
    let started = running.started.or(facts.started)?;
    let wall = facts.over_at(started, now).since(started);
    let suspended = running.suspend_time(now).min(wall);
    Some(Spent { started, wall: wall.as_secs(), suspended: suspended.as_secs() })
}

/// The CPU seconds that the end of a run adds to `TotalMachineDrainingBadput`: "it is assumed that jobs are evicted without
/// checkpointing". None are lost if the run did not end for a drain.
fn badput(slot: &Slot, end: &End, now: Time) -> i64 {
    let for_drain =
        slot.retires_for() == Some(Cause::Draining) && matches!(slot.state(), State::Preempting(_));
    if !for_drain || !matches!(end, End::Evicted { .. }) {
        return 0;
    }
    let ran_for = slot.running().map_or(0, |running| running.run_time(now).as_secs());
    i64::try_from(ran_for).unwrap_or(i64::MAX).saturating_mul(slot.resources().cpus)
}

impl Pool {
    /// Notes a pod whose proc's end is booked. A deletion of the pod changes nothing any more about how
    /// the proc ended.
    pub(super) fn pod_ends(&mut self, name: &SlotName, facts: &PodFacts, now: Time) {
        self.edit_slot(name, |slot| slot.pod_ends(facts, now));
    }

    pub(super) fn pod_ended(&mut self, name: &SlotName, facts: &PodFacts, end: End, now: Time) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        if slot.has_ended() {
            return self.pod_ends(name, facts, now);
        }
        let ran = slot.running().is_some_and(|running| running.started.is_some()) || facts.started.is_some();
        let end = slot.book_end(facts, end, now);
        let (spent, badput) = (spent(slot, facts, now), badput(slot, &end, now));
        // An operator that begins learns of all ends of the time before.
        if let Some(finished) = facts.finished.filter(|_| self.synced && ran) {
            self.lasting.learn_end(now.since(finished));
        }
        if let Some(machine) = self.machines.get_mut(&name.machine) {
            // Other jobs may have waited for this one to retire.
            machine.looked_at = None;
            if let Some(draining) = &mut machine.draining {
                draining.badput = draining.badput.saturating_add(badput);
            }
        }
        // If the job was edited meanwhile, the reason for the hold may be gone.
        let edited = |job: &Job| slot.running().is_some_and(|running| running.is_of_before(job.generation));
        let as_it_was = self.jobs.get(&facts.job).is_some_and(|job| !edited(job));
        let hold = slot.held_for().or_else(|| facts.hold.as_deref().cloned()).filter(|_| as_it_was);
        self.keep_remains(name, &facts.job);
        self.changed(Change::Slot(name));
        let booked = self.jobs.get(&facts.job).is_some_and(|job| job.is_booked(facts));
        let vacated = matches!(end, End::Evicted { .. }).then_some(now);
        if booked {
            self.leaves_after_record(name, facts, now);
        } else {
            self.settle_proc(name, facts, end, hold, ran, now);
        }
        if let (Some(spent), Some(job), false) = (spent, self.jobs.get_mut(&facts.job), booked) {
            job.count_spent(facts.proc, spent, vacated);
        }
        if let Some(soon) = self.jobs.get_mut(&facts.job).and_then(|job| job.rests_shorter(now)) {
            self.wake_at(soon);
        }
        self.forget_removed(name, facts, now);
    }

    /// Settles what becomes of a proc whose run has ended: done, held, or idle again. `ran` says whether the program had started.
    fn settle_proc(
        &mut self,
        name: &SlotName,
        facts: &PodFacts,
        end: End,
        hold: Option<HoldReason>,
        ran: bool,
        now: Time,
    ) {
        match (hold, &end) {
            (Some(hold), End::Evicted { .. }) if self.is_wanted(facts) => {
                if let Some(changes) = self.transform_on_evict(name, facts, &hold, now) {
                    let why = format!("{hold}; by the job's TransformOnEvict the proc now has {changes}");
                    self.proc_ended(facts, End::Evicted { why: why.into() }, now);
                    self.count_run(facts, ran);
                } else {
                    self.count_run(facts, ran);
                    self.hold_proc(facts, hold, now);
                }
            }
            (_, End::Evicted { .. }) => {
                self.proc_ended(facts, end, now);
                self.count_run(facts, ran);
            }
            _ => self.proc_ended(facts, end, now),
        }
    }

    /// Notes that a slot waits until the API server has the end, the hold or the removal of its proc. If the slot's proc has not ended,
    /// or if everything is recorded, nothing is noted. The deciders call this after each look at a slot, since a proc may be removed
    /// after its hold was recorded.
    pub fn note_unrecorded(&mut self, name: &SlotName) {
        let Some(slot) = self.slots.get(name).filter(|slot| slot.has_ended()) else { return };
        let last = &slot.claim().last;
        if let Some(job) = self.jobs.get_mut(&last.job.uid).filter(|job| !job.is_settled(last.proc)) {
            job.unrecorded.insert(last.proc, name.clone());
        }
    }

    /// Books the end of a slot's pod that no kubelet has confirmed or will confirm, since it is certain that nothing of
    /// it runs. If the program was seen to end but the pod had no final phase yet, that end does not count: only the
    /// final phase would tell an eviction by the kubelet from an end by itself.
    pub fn pod_lost(&mut self, name: &SlotName, why: &str, now: Time) {
        let Some(slot) = self.slots.get(name) else { return };
        let Some(running) = slot.active() else { return };
        let facts = PodFacts {
            running: running.runs,
            deleting: true,
            tracked: true,
            ..PodFacts::of_nothing(running.pod.clone(), slot)
        };
        self.drop_outside(&facts.pod.uid);
        self.pod_ended(name, &facts, End::Evicted { why: why.into() }, now);
    }

    /// Whether the proc is still to run at some time.
    fn is_wanted(&self, facts: &PodFacts) -> bool {
        self.jobs.get(&facts.job).is_some_and(|job| {
            let counted = job.spec.as_ref().is_some_and(|spec| facts.proc < spec.count);
            counted && !job.removing && !job.is_out(facts.proc)
        })
    }

    /// Counts the end of a run that was no end of the program's own.
    fn count_run(&mut self, facts: &PodFacts, ran: bool) {
        if let Some(job) = self.jobs.get_mut(&facts.job).filter(|job| ran && !job.is_done(facts.proc)) {
            job.count_run(facts);
        }
    }

    /// Handles a pod that is over, whose end an earlier leader recorded, and after which the proc is to run again.
    fn leaves_after_record(&mut self, name: &SlotName, facts: &PodFacts, now: Time) {
        self.keep_earlier_pod(facts);
        let own = self.jobs.get(&facts.job).is_some_and(|job| job.active.get(&facts.proc) == Some(name));
        if own {
            self.send_back(&facts.job, facts.proc, "left its slot", now);
        }
    }

    /// Books that a removed proc has left its slot.
    fn forget_removed(&mut self, name: &SlotName, facts: &PodFacts, now: Time) {
        let Some(job) = self.jobs.get_mut(&facts.job) else { return };
        if job.removed.contains(facts.proc) && job.active.get(&facts.proc) == Some(name) {
            job.active.remove(&facts.proc);
            self.changed(Change::Procs(&facts.job));
            self.note_completion(&facts.job, now);
        }
    }

    /// Tells people, once, that all procs of a job have ended, if they have.
    pub(super) fn note_completion(&mut self, uid: &JobUid, now: Time) {
        let Some(job) = self.jobs.get_mut(uid).filter(|job| job.is_complete() && !job.removing) else {
            return;
        };
        if job.completed_at.is_some() {
            return;
        }
        job.completed_at = Some(now);
        let removed = match job.removed.len() {
            0 => String::new(),
            some => format!(", {some} were removed"),
        };
        let note = format!(
            "all procs have ended: {} with exit code 0, {} with another{removed}",
            job.succeeded.len(),
            job.failed.len()
        );
        let key = job.key.clone();
        self.changed(Change::JobStatus(uid));
        self.tell(&key, "Completed", "Run", note);
    }

    /// Holds a proc that has left its slot: it does not run again until it is released.
    fn hold_proc(&mut self, facts: &PodFacts, hold: HoldReason, now: Time) {
        self.keep_earlier_pod(facts);
        let Some(job) = self.jobs.get_mut(&facts.job) else { return };
        let mut slots: Vec<SlotName> = job.active.remove(&facts.proc).into_iter().collect();
        let (key, proc) = (job.key.clone(), facts.proc);
        if !job.is_held_for(hold.code) {
            // Other procs of the job may wait for what failed here.
            slots.extend(job.active.values().cloned());
        }
        let note = format!("proc {proc} is held: {hold}");
        job.put_on_hold(proc, hold, now);
        self.slots_changed(&slots);
        self.changed(Change::Procs(&facts.job));
        self.warn(&key, "ProcHeld", "Hold", note);
    }

    /// Books the end of a run: the proc is done, or idle again.
    pub(crate) fn proc_ended(&mut self, facts: &PodFacts, end: End, now: Time) {
        if !self.jobs.contains_key(&facts.job) {
            return;
        }
        self.changed(Change::Procs(&facts.job));
        let Some(job) = self.jobs.get_mut(&facts.job) else { return };
        if job.is_done(facts.proc) || job.is_booked(facts) {
            return;
        }
        // Another slot may be about to run the proc again.
        let other = job.active.remove(&facts.proc);
        self.slots_changed(&other);
        let (proc, pod) = (facts.proc, &facts.pod.name);
        match &end {
            End::Exited { code } => {
                let note = format!("proc {proc} ended with exit code {code} in pod {pod}");
                self.program_ended(facts, &end, note, now);
            }
            End::InitFailed { container, code } => {
                let note = format!(
                    "proc {proc} did not run: init container {container} ended with exit code {code} in pod {pod}"
                );
                self.program_ended(facts, &end, note, now);
            }
            End::Evicted { why } => {
                self.keep_earlier_pod(facts);
                self.send_back(&facts.job, proc, format!("was evicted ({why})"), now);
                let told = |job: &&Job| !job.removing && !job.is_out(proc);
                if let Some(key) = self.jobs.get(&facts.job).filter(told).map(|job| job.key.clone()) {
                    let note = format!("proc {proc} was evicted and is idle again: {why}");
                    self.warn(&key, "ProcEvicted", "Evict", note);
                }
            }
        }
    }

    /// Decides by the job's expressions what becomes of a proc whose program has ended. Without such expressions, the proc is done.
    /// `note` says how the program ended.
    fn program_ended(&mut self, facts: &PodFacts, end: &End, note: String, now: Time) {
        let (uid, proc, code) = (&facts.job, facts.proc, end.code().unwrap_or_default());
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let is_held = job.on_hold.contains_key(&proc);
        job.count_run(facts);
        job.count_completion(proc, end);
        let wanted = job.has_counted(proc) && !job.removing;
        // A program that ended before it could be told to leave has ended, though its proc is held by now.
        let fate = self.jobs.get(uid).filter(|_| wanted).map_or(Fate::Done, |job| self.fate(job, facts, now));
        match fate {
            Fate::Done => self.proc_done(facts, code, note, now),
            Fate::Again | Fate::Hold(_) if is_held => self.keep_earlier_pod(facts),
            Fate::Again => {
                self.keep_earlier_pod(facts);
                if let Some(job) = self.jobs.get_mut(uid).filter(|job| job.pacing.has_crontab()) {
                    // The run was one of many, and no failure.
                    job.idle.forget(proc);
                }
                let why = "ended, and runs again since OnExitRemove is false";
                self.send_back(uid, proc, why, now);
                if let Some(key) = self.jobs.get(uid).map(|job| job.key.clone()) {
                    self.warn(
                        &key,
                        "ProcRetried",
                        "Run",
                        format!("{note}, and runs again: OnExitRemove is false"),
                    );
                }
            }
            Fate::Hold(hold) => self.hold_proc(facts, hold, now),
        }
    }

    /// Notes that a pod exists which has the name of the proc's next pod.
    pub(super) fn keep_earlier_pod(&mut self, facts: &PodFacts) {
        if let Some(job) = self.jobs.get_mut(&facts.job)
            && job.owns(facts)
            && !job.is_done(facts.proc)
        {
            job.earlier_pods.insert(facts.proc, facts.pod.uid.clone());
        }
    }

    /// Notes that a pod is gone: the proc's next pod may have the name.
    pub(super) fn forget_earlier_pod(&mut self, facts: &PodFacts) {
        let Some(job) = self.jobs.get_mut(&facts.job) else { return };
        if job.earlier_pods.get(&facts.proc) == Some(&facts.pod.uid) {
            job.earlier_pods.remove(&facts.proc);
            let waits = job.active.get(&facts.proc).cloned();
            self.slots_changed(&waits);
        }
    }

    /// Books a proc as done with an exit code. If the code is not 0, warns people with `failure`.
    fn proc_done(&mut self, facts: &PodFacts, code: i32, failure: String, now: Time) {
        self.leaves_queue(&facts.job, facts.proc, Left::Completed(Exit::of_code(code)), Some(facts), now);
        let Some(job) = self.jobs.get_mut(&facts.job) else { return };
        job.first_start.get_or_insert(now);
        job.take_out(facts.proc);
        let good = job.acting.is_success(code);
        if good {
            job.succeeded.insert(facts.proc)
        } else {
            job.failed.insert(facts.proc)
        };
        let key = job.key.clone();
        if !good {
            self.warn(&key, "ProcFailed", "Run", failure);
        }
        self.note_completion(&facts.job, now);
    }
}
