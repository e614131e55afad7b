//! Pauses of procs that are idle again without having ended, so that a node that refuses a proc is not asked without end.

use std::sync::Arc;

use super::Pool;
use super::ids::JobUid;
use super::job::{Cooling, Job};
use super::marks::Change;
use super::time::Time;

/// The pause of an idle proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// How many pauses in a row the proc has had, and until when this one lasts.
    pub cooling: Cooling,
    /// Why the proc is idle again, as a sentence goes on after the proc's name: `was evicted (its pod was deleted)`.
    pub why: Arc<str>,
}

impl Job {
    /// The proc whose pause ends first, with the pause, if all idle procs pause.
    pub fn pausing(&self, now: Time) -> Option<(u32, &Pause)> {
        self.idle.all_pause(now)
    }

    /// Whether the pause of an idle proc has ended by `now` and after `then`, so that what was said at `then` may still speak of the pause.
    pub fn paused_after(&self, then: Time, now: Time) -> bool {
        self.idle.woke_after(then, now)
    }
}

impl Pool {
    /// Makes a proc that could not run idle again, for the reason `why`. The proc pauses before the schedd tries it again.
    pub(crate) fn send_back(&mut self, uid: &JobUid, proc: u32, why: impl Into<Arc<str>>, now: Time) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        job.active.remove(&proc);
        self.changed(Change::Procs(uid));
        let Some(job) = self.jobs.get_mut(uid) else { return };
        if job.removing || job.is_out(proc) || !job.has_counted(proc) {
            return;
        }
        job.note_history(proc, |history| history.since = now);
        let times = job.idle.pause_of(proc).map_or(1, |pause| pause.cooling.times.saturating_add(1));
        let until = now + Cooling::wait(times);
        job.idle.pause(proc, Pause { cooling: Cooling { times, until }, why: why.into() });
        job.idle.insert(proc);
        self.wake_job(uid, now);
        self.wake_at(until);
    }
}
