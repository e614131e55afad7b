//! Jobs with crontabs: `CronMinute`, `CronHour`, `CronDayOfMonth`, `CronMonth`, `CronDayOfWeek`.
//!
//! The schedd computes a proc's `DeferralTime` when the proc enters the queue, and again when the proc is idle once more: after its
//! program has ended and `OnExitRemove` was false, after a release, and after its run was cut short. A proc that had no slot when
//! its window ended waits for the next time. Here the same times follow from `EnteredCurrentStatus` of the proc, which the job's
//! status records, so that another leader finds them, too: **the proc's time is the first time of the crontab after the proc became
//! idle whose window has not ended**.
//!
//! The pool follows the crontab of each job, so that nobody searches it for each proc: see [`Course`].

use super::Pool;
use super::ids::JobUid;
use super::job::{Job, Problem};
use super::marks::Change;
use super::pacing::{Deferral, Pacing, STEPS, Times};
use super::ranges::Ranges;
use super::time::Time;
use classad::{Ad, Env, Value};
use crontab::{Crontab, Field};

/// The position of a job in the times of its crontab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Course {
    /// The last time of the crontab for which procs may have slots now: `DeferralPrepTime` before this time has begun,
    /// and the window of this time has not ended.
    due: Option<Time>,
    /// The first time of the crontab for which no proc may have a slot yet.
    next: Option<Time>,
}

impl Course {
    /// Whether a proc that is idle since then must wait for the next time.
    pub(super) fn is_too_late(&self, since: Time) -> bool {
        self.due.is_some_and(|due| since >= due)
    }
}

/// The crontab of a job's ad, as of the time of submission; `None` if the ad has none of its attributes.
pub(super) fn crontab(ad: &Ad, submitted: Time) -> Result<Option<Crontab>, Problem> {
    if !Field::ALL.iter().any(|field| ad.contains(field.attribute())) {
        return Ok(None);
    }
    let mut env = Env::at(submitted.secs());
    env.limits.steps = STEPS;
    let mut texts: [Option<String>; 5] = Default::default();
    for (field, text) in Field::ALL.into_iter().zip(&mut texts) {
        *text = match ad.eval_attr(field.attribute(), None, &env) {
            Value::Undefined => None,
            Value::Int(number) => Some(number.to_string()),
            value => {
                let fault = || format!("expected a string such as \"0,30\" or \"*/5\", found {value}");
                Some(value.as_str().map(str::to_owned).ok_or_else(|| problem(field, fault()))?)
            }
        };
    }
    let said = |fault: &crontab::Fault| {
        let text = Field::ALL.iter().position(|field| *field == fault.field()).and_then(|at| texts.get(at));
        let text = text.and_then(Option::as_deref).unwrap_or_default();
        let column = text.get(..fault.offset()).unwrap_or_default().chars().count() + 1;
        problem(fault.field(), format!("\"{text}\", column {column}: {fault}"))
    };
    let [minute, hour, day, month, weekday] = &texts;
    let fields = [minute, hour, day, month, weekday].map(Option::as_deref);
    Crontab::new(fields).map(Some).map_err(|fault| said(&fault))
}

fn problem(field: Field, message: String) -> Problem {
    Problem { reason: "InvalidCrontab", field: format!("spec.attributes[{}]", field.attribute()), message }
}

/// Checks the crontab of a job's ad, if the ad has one.
///
/// # Errors
/// The error of the crontab.
pub fn check_crontab(ad: &Ad, submitted: Time) -> Result<(), Problem> {
    crontab(ad, submitted).map(|_| ())
}

impl Deferral {
    /// The first time of the crontab after `since` whose window has not ended at `from`.
    fn first(&self, crontab: &Crontab, since: Time, from: Time) -> Option<Time> {
        // The times are whole minutes: the window of a time that is a millisecond earlier has ended.
        let open = Time::from_millis((from - self.window).millis().saturating_sub(1));
        crontab.next(since.max(open).secs()).map(Time::from_secs)
    }

    fn course(&self, crontab: &Crontab, now: Time) -> Course {
        let ahead = (now + self.prep).secs();
        let due = crontab.last(ahead).map(Time::from_secs).filter(|due| now <= *due + self.window);
        Course { due, next: crontab.next(ahead).map(Time::from_secs) }
    }
}

impl Pacing {
    fn crontab(&self) -> Option<(Crontab, Deferral)> {
        let deferral = self.deferral?;
        let Times::Each(crontab) = deferral.at else { return None };
        Some((crontab, deferral))
    }

    /// Whether the times of a crontab say when procs start.
    pub(super) fn has_crontab(&self) -> bool {
        self.deferral.is_some_and(|deferral| !matches!(deferral.at, Times::Once(_)))
    }
}

impl Job {
    /// Whether an idle proc may have a slot now, as far as the job's crontab is concerned.
    pub(super) fn is_due(&self, proc: u32) -> bool {
        !self.awaits_time() && !self.idle.is_late(proc)
    }

    /// Whether every idle proc waits for a time of the job's crontab, whenever it became idle.
    pub(super) fn awaits_time(&self) -> bool {
        self.pacing.has_crontab() && self.course.due.is_none()
    }

    /// The procs that were idle too late for the present time of the job's crontab.
    fn late(&self) -> Ranges {
        let mut late = Ranges::default();
        for (proc, _) in self.history.iter().filter(|(_, history)| self.course.is_too_late(history.since)) {
            late.insert(*proc);
        }
        late
    }

    /// How many idle procs wait: for a time of the job's crontab, or for the end of a pause after a run that failed.
    pub(super) fn waiting(&self, now: Time) -> u64 {
        if self.awaits_time() { self.idle.len() } else { self.idle.waiting(now) }
    }

    /// The time for which the idle procs wait, if none of them may have a slot before.
    pub(super) fn awaited_time(&self) -> Option<Time> {
        let next = self.course.next.filter(|_| self.pacing.has_crontab())?;
        (self.awaits_time() || self.idle.are_all_late()).then_some(next)
    }

    /// `DeferralTime` of an idle proc, by the job's crontab.
    pub fn time_of(&self, proc: u32, now: Time) -> Option<Time> {
        let (crontab, deferral) = self.pacing.crontab()?;
        deferral.first(&crontab, self.history_of(proc).since, now)
    }

    /// Remembers the time of the crontab for which a proc gets its slot now.
    pub(super) fn note_time(&mut self, proc: u32, now: Time) {
        if let Some(time) = self.time_of(proc, now) {
            self.times.insert(proc, time);
        }
    }

    /// The time before which no pod of a proc is created, given that the proc got its slot at `claimed`. An earlier leader may have given
    /// the proc its slot.
    pub fn starts_at(&self, proc: u32, claimed: Time) -> Option<Time> {
        let noted = || self.times.get(&proc).copied();
        self.pacing.starts_at().or_else(noted).or_else(|| self.time_of(proc, claimed))
    }
}

impl Pool {
    /// Looks where a job is in the times of its crontab, and looks again when that changes.
    pub(super) fn follow_crontab(&mut self, uid: &JobUid, now: Time) {
        let Some(job) = self.jobs.get_mut(uid) else { return self.crontabs.set(uid, None) };
        let course =
            job.pacing.crontab().map(|(crontab, deferral)| (deferral, deferral.course(&crontab, now)));
        // No proc is idle since before the job was submitted.
        let due = |course: Course| course.due.filter(|due| job.submitted < *due);
        let followed = course.map(|(_, course)| Course { due: due(course), ..course }).unwrap_or_default();
        let before = std::mem::replace(&mut job.course, followed);
        let (after, waits) = (job.course, !job.is_complete() && !job.removing);
        let late = job.late();
        job.idle.set_late(late);
        let changes = course.filter(|_| waits).and_then(|(deferral, course)| {
            let opens = course.next.map(|next| next - deferral.prep);
            let closes = course.due.map(|due| due + deferral.window + std::time::Duration::from_millis(1));
            opens.into_iter().chain(closes).min()
        });
        self.crontabs.set(uid, changes);
        self.wake_job(uid, now);
        if before != after {
            self.changed(Change::JobStatus(uid));
            self.changed(Change::Time);
        }
    }

    /// Follows the crontabs of the jobs for which that is due.
    pub(super) fn follow_crontabs(&mut self, now: Time) {
        while let Some(uid) = self.crontabs.pop_due(now) {
            self.follow_crontab(&uid, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HOUR: i64 = 3600;

    fn pacing(text: &str) -> Pacing {
        Pacing::of(&Ad::parse_new(text).unwrap(), Time::from_secs(1000))
    }

    /// For each of `seconds`: the last time of the crontab for which procs may have slots then, and the first for
    /// which it is too early.
    fn course(text: &str, seconds: &[i64]) -> Vec<(Option<i64>, Option<i64>)> {
        let (crontab, deferral) = pacing(text).crontab().unwrap();
        let secs = |time: Option<Time>| time.map(Time::secs);
        let at = |second: &i64| deferral.course(&crontab, Time::from_secs(*second));
        seconds.iter().map(at).map(|course| (secs(course.due), secs(course.next))).collect()
    }

    /// "HTCondor may attempt to match the job to a machine and send the job once it is 9:55am."
    #[test]
    fn a_time_is_due_from_its_preparation_to_the_end_of_its_window() {
        let (nine, ten, eleven) = (9 * HOUR, 10 * HOUR, 11 * HOUR);
        assert_eq!(
            course(
                "[CronMinute = 0; DeferralWindow = 360]",
                &[nine, ten - 301, ten - 300, ten + 360, ten + 361]
            ),
            [
                (Some(nine), Some(ten)),
                (None, Some(ten)),
                (Some(ten), Some(eleven)),
                (Some(ten), Some(eleven)),
                (None, Some(eleven))
            ]
        );
        assert_eq!(
            course("[CronMinute = \"*\"; DeferralPrepTime = 0]", &[ten, ten + 1]),
            [(Some(ten), Some(ten + 60)), (None, Some(ten + 60))]
        );
    }

    #[test]
    fn the_time_of_a_proc_is_the_first_after_it_became_idle_whose_window_has_not_ended() {
        let (crontab, deferral) = pacing("[CronMinute = \"0\"; DeferralWindow = 360]").crontab().unwrap();
        let first = |since: i64, from: i64| {
            let at = |minute: i64| Time::from_secs(10 * HOUR + minute * 60);
            deferral.first(&crontab, at(since), at(from)).map(|time| (time.secs() - 10 * HOUR) / 60)
        };
        for (since, from, expected) in
            [(-30, -30, 0), (-30, 0, 0), (-30, 6, 0), (-30, 7, 60), (0, 1, 60), (1, 1, 60), (-90, -30, 0)]
        {
            assert_eq!(first(since, from), Some(expected), "idle since {since}, looked at at {from}");
        }
    }

    #[test]
    fn a_crontab_replaces_deferral_time_and_is_checked() {
        assert_eq!(pacing("[CronHour = \"5\"; DeferralTime = 2000]").starts_at(), None);
        assert!(pacing("[CronHour = undefined]").has_crontab());
        assert!(!pacing("[DeferralTime = 2000]").has_crontab());
        for (text, field, says) in [
            (
                "[CronHour = \"0, 24\"]",
                "spec.attributes[CronHour]",
                "\"0, 24\", column 4: expected a number between",
            ),
            ("[CronMinute = 60]", "spec.attributes[CronMinute]", "\"60\", column 1"),
            ("[CronMonth = 1.5]", "spec.attributes[CronMonth]", "expected a string"),
            (
                "[CronDayOfMonth = 31; CronMonth = \"4,6\"]",
                "spec.attributes[CronDayOfMonth]",
                "none of the months",
            ),
        ] {
            let ad = Ad::parse_new(text).unwrap();
            let problem = check_crontab(&ad, Time::from_secs(1000)).unwrap_err();
            assert_eq!((problem.reason, problem.field.as_str()), ("InvalidCrontab", field), "{text}");
            assert!(problem.message.contains(says), "{text}: {}", problem.message);
            // Even if a job with such a crontab gets into the queue, no proc of the job runs.
            assert!(pacing(text).has_crontab() && pacing(text).crontab().is_none(), "{text}");
        }
        assert_eq!(check_crontab(&Ad::new(), Time::default()), Ok(()));
        assert_eq!(pacing("[CronMinute = 0]").deferral.unwrap().prep, Duration::from_mins(5));
    }
}
