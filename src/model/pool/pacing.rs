//! How many procs of a job are in the queue at a time, and when they start: late materialization, `NextJobStartDelay`, deferral,
//! crontabs.
//!
//! Source: the manual, `condor_submit`: `max_materialize`, `max_idle`, `next_job_start_delay`, `deferral_time`, `deferral_window`,
//! `deferral_prep_time`; "CronTab Scheduling".
//!
//! A job's procs cost nothing before they start, so that all procs exist from the beginning, and none is materialized late. The
//! limits of late materialization hold all the same: no more procs count as idle, or have slots or are held, than the job says.

use std::time::Duration;

use super::crontabs;
use super::holds::MISSED_DEFERRED_TIME;
use super::job::Job;
use super::leaving::HoldReason;
use super::time::Time;
use classad::{Ad, Env};
use crontab::Crontab;

/// The most steps that the evaluation of an attribute may take.
pub(super) const STEPS: u32 = 20_000;
/// `MAX_NEXT_JOB_START_DELAY`: the longest delay, in seconds.
pub const LONGEST_DELAY: i64 = 600;
/// The default of `DeferralPrepTime`, in seconds.
const PREP_TIME: i64 = 300;

/// When a job's procs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deferral {
    /// The times.
    pub(super) at: Times,
    /// `DeferralWindow`: how late a proc may start.
    pub(super) window: Duration,
    /// `DeferralPrepTime`: how much earlier a proc may have its slot.
    pub(super) prep: Duration,
}

/// The times at which a job's procs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// `DeferralTime`.
    Once(Time),
    /// `CronMinute` and the other fields of a crontab.
    Each(Crontab),
    /// The crontab is wrong. Such a job is refused; a job that is in the queue all the same must never run.
    Never,
}

/// The pace of a job's procs, as the job's ad says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// `JobMaterializeLimit`: the most procs that are in the queue at a time.
    most: Option<u64>,
    /// `JobMaterializeMaxIdle`: the most procs that count as idle.
    most_idle: Option<u64>,
    /// `NextJobStartDelay`: how long after a proc got its slot the next may get one, and start.
    delay: Option<Duration>,
    pub(super) deferral: Option<Deferral>,
}

/// The attribute of a job that keeps its idle procs from slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paced {
    /// `JobMaterializeLimit` is this number, and at least as many procs have slots or are held.
    Limit(u64),
    /// `DeferralTime` has not come.
    Until(Time),
    /// The next time of the job's crontab has not come.
    Next(Time),
}

impl Pacing {
    /// The pace of a job by its ad. Expressions are evaluated as of the time of submission, so that another leader finds the same
    /// values. An attribute that is negative, or is no number, counts as absent.
    pub fn of(ad: &Ad, submitted: Time) -> Self {
        let mut env = Env::at(submitted.secs());
        env.limits.steps = STEPS;
        let number = |name: &str| {
            let value = ad.contains(name).then(|| ad.eval_attr(name, None, &env))?;
            #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
            let number = value.as_int().or_else(|| value.as_number().map(|number| number as i64))?;
            (number >= 0).then_some(number)
        };
        let count = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
        let seconds = |number: i64| Duration::from_secs(u64::try_from(number).unwrap_or(0));
        let at = match crontabs::crontab(ad, submitted) {
            Ok(None) => number("DeferralTime").map(|at| Times::Once(Time::from_secs(at))),
            // As in the schedd, the crontab's times replace DeferralTime.
            Ok(Some(crontab)) => Some(Times::Each(crontab)),
            Err(_) => Some(Times::Never),
        };
        let deferral = at.map(|at| Deferral {
            at,
            window: seconds(number("DeferralWindow").unwrap_or(0)),
            prep: seconds(number("DeferralPrepTime").unwrap_or(PREP_TIME)),
        });
        let delay = number("NextJobStartDelay").filter(|delay| *delay > 0);
        Self {
            most: count("JobMaterializeLimit"),
            most_idle: count("JobMaterializeMaxIdle"),
            delay: delay.map(|delay| seconds(delay.min(LONGEST_DELAY))),
            deferral,
        }
    }

    /// `DeferralTime`, unless the job has a crontab.
    pub fn starts_at(&self) -> Option<Time> {
        self.once().map(|(at, _)| at)
    }

    fn once(&self) -> Option<(Time, Deferral)> {
        let deferral = self.deferral?;
        let Times::Once(at) = deferral.at else { return None };
        Some((at, deferral))
    }

    /// The most idle procs that are in the queue while `in_queue` procs have slots or are held: further idle procs count as not
    /// materialized.
    pub fn materialized(&self, in_queue: u64) -> u64 {
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(in_queue));
        left.min(self.most_idle.unwrap_or(u64::MAX))
    }

    /// From when procs may be matched: `DeferralTime`, less `DeferralPrepTime`.
    pub(super) fn opens_at(&self) -> Option<Time> {
        let (at, deferral) = self.once()?;
        Some(at - deferral.prep)
    }

    /// The hold of a proc that is idle now, if its time is over.
    pub(super) fn missed(&self, now: Time) -> Option<HoldReason> {
        let (at, _) = self.once().filter(|(at, deferral)| now > *at + deferral.window)?;
        let late = now.since(at).as_secs();
        let text = format!(
            "the job missed its execution time: DeferralTime was {late} seconds before it had a slot"
        );
        Some(HoldReason::new(MISSED_DEFERRED_TIME, 0, &text))
    }

    /// Whether idle procs may be matched as far as time is concerned.
    fn is_open(&self, now: Time) -> bool {
        self.opens_at().is_none_or(|opens| now >= opens) && self.missed(now).is_none()
    }
}

impl Job {
    /// How many of `idle` procs may have slots now, by the job's pace.
    pub(super) fn paced(&self, idle: u64, now: Time) -> u64 {
        if !self.pacing.is_open(now) || self.next_start.is_some_and(|at| now < at) {
            return 0;
        }
        // A proc that had a slot before its turn would keep the slot from others, and run nothing there.
        let at_once = if self.pacing.delay.is_some() { 1 } else { u64::MAX };
        idle.min(self.pacing.materialized(self.in_queue())).min(at_once)
    }

    /// Whether the job's pace may keep procs from slots.
    pub(super) fn is_paced(&self) -> bool {
        self.pacing != Pacing::default()
    }

    /// Whether the limits of late materialization leave no proc to start.
    pub(super) fn is_full(&self) -> bool {
        self.pacing.materialized(self.in_queue()) == 0
    }

    /// How many procs have a slot or are held. Without `JobMaterializeLimit`, nobody asks.
    fn in_queue(&self) -> u64 {
        if self.pacing.most.is_none() {
            return 0;
        }
        // Procs that are held and have not left their slots count once.
        let both = if self.active.len() < self.on_hold.len() {
            self.active.keys().filter(|proc| self.on_hold.contains_key(proc)).count()
        } else {
            self.on_hold.keys().filter(|proc| self.active.contains_key(proc)).count()
        };
        u64::try_from(self.active.len() + self.on_hold.len() - both).unwrap_or(u64::MAX)
    }

    /// The attribute that keeps the job's idle procs from slots; `None` if no attribute does. Once a cycle has found
    /// why the job waits, `DeferralTime` is not the reason any more: no cycle looks at the job before its procs may be
    /// matched.
    pub fn paced_by(&self) -> Option<Paced> {
        let full = self.pacing.most.filter(|most| self.in_queue() >= *most).map(Paced::Limit);
        let deferred = || self.pacing.starts_at().filter(|_| self.waits.is_none()).map(Paced::Until);
        full.or_else(deferred)
            .or_else(|| self.awaited_time().map(Paced::Next))
            .filter(|_| !self.idle.is_empty())
    }

    /// Takes note that a proc of the job gets a slot now. Returns when the next may, if `NextJobStartDelay` asks for a pause.
    pub(super) fn starts(&mut self, now: Time) -> Option<Time> {
        self.next_start = self.pacing.delay.map(|delay| now + delay);
        self.next_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(text: &str) -> Pacing {
        Pacing::of(&Ad::parse_new(text).unwrap(), Time::from_secs(1000))
    }

    #[test]
    fn what_a_job_says_is_read_once_as_of_its_submission() {
        let of = |text| {
            let pacing = pacing(text);
            (pacing.most, pacing.most_idle, pacing.delay.map(|delay| delay.as_secs()))
        };
        for (text, expected) in [
            ("[]", (None, None, None)),
            (
                "[JobMaterializeLimit = 3; JobMaterializeMaxIdle = 2.7; NextJobStartDelay = 5]",
                (Some(3), Some(2), Some(5)),
            ),
            ("[JobMaterializeLimit = -1; NextJobStartDelay = 0]", (None, None, None)),
            ("[JobMaterializeLimit = \"a\"; JobMaterializeMaxIdle = undefined]", (None, None, None)),
            // "The value of this attribute is limited by MAX_NEXT_JOB_START_DELAY, which defaults to 600."
            ("[NextJobStartDelay = 7200]", (None, None, Some(600))),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(pacing("[DeferralTime = time() + 60]").starts_at(), Some(Time::from_secs(1060)));
        assert_eq!(pacing("[DeferralTime = -5]").starts_at(), None);
    }

    /// "deferral_prep_time: the number of seconds before the job's execution time that the job may be matched with a machine."
    #[test]
    fn a_deferred_job_is_matched_a_little_before_its_time_and_not_after_its_window() {
        for (text, open) in [
            ("[DeferralTime = 2000]", [1700, 2000]),
            ("[DeferralTime = 2000; DeferralPrepTime = 10]", [1990, 2000]),
            ("[DeferralTime = 2000; DeferralPrepTime = 0; DeferralWindow = 30]", [2000, 2030]),
        ] {
            let pacing = pacing(text);
            let [first, last] = open;
            let at = |seconds| pacing.is_open(Time::from_secs(seconds));
            assert_eq!([first - 1, first, last, last + 1].map(at), [false, true, true, false], "{text}");
        }
        let missed = pacing("[DeferralTime = 2000]").missed(Time::from_secs(2060)).unwrap();
        assert_eq!(missed.code, 20);
        assert!(missed.reason.contains("60 seconds"), "{}", missed.reason);
    }
}
