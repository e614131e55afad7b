//! Expressions that act on procs: when a program has ended, and from time to time.
//!
//! Source: the manual, `condor_submit`, "Policy commands"; `user_job_policy.cpp` for the order, for which values an expression
//! acts, and for the reasons. All expressions are evaluated in the job's ad with the attributes of the proc: [`ProcView`].

use std::sync::Arc;

use super::agent::Usage;
use super::history::History;
use super::holds::{JOB_DURATION_EXCEEDED, JOB_EXECUTE_EXCEEDED, JOB_POLICY, SYSTEM_POLICY};
use super::job::JobSpec;
use super::leaving::HoldReason;
use super::time::Time;
use classad::{Ad, Env, Expr, Value};

/// The most steps that one evaluation of an expression that acts may take. An evaluation that takes more does not act.
const STEPS: u32 = 20_000;

/// An expression of a job that acts, with the names of the attributes for its reason and its subcode.
#[derive(Clone, Debug, PartialEq)]
struct Own {
    name: &'static str,
    expr: Expr,
}

/// The expressions of a job that act. An expression that is literally false is left out.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each says whether the ad has an attribute")]
pub struct Acting {
    on_exit_hold: Option<Own>,
    on_exit_remove: Option<Own>,
    hold: Option<Own>,
    release: Option<Own>,
    remove: Option<Own>,
    vacate: Option<Own>,
    timer_remove: bool,
    job_duration: bool,
    execute_duration: bool,
    /// `JobSuccessExitCode`, which is 0 unless the job says otherwise.
    success: i64,
    /// Whether an attribute of the ad reads `ProcId`, so that expressions may tell procs of the same age apart.
    by_proc: bool,
}

/// The action that an expression asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The proc is held.
    Hold(HoldReason),
    /// The proc is released. The text says why.
    Release(Arc<str>),
    /// The proc is removed. The text says why.
    Remove(Arc<str>),
    /// The proc leaves its slot, and is idle again. The text says why.
    Vacate(Arc<str>),
}

/// The fate of a proc whose program has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The proc is done.
    Done,
    /// The proc is held.
    Hold(HoldReason),
    /// The proc is idle again: `OnExitRemove` is false.
    Again,
}

/// The state of a proc: `JobStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// 1
    Idle,
    /// 2
    Running,
    /// 5
    Held,
    /// 7
    Suspended,
}

impl Standing {
    /// `JobStatus`.
    pub const fn status(self) -> i64 {
        match self {
            Self::Idle => 1,
            Self::Running => 2,
            Self::Held => 5,
            Self::Suspended => 7,
        }
    }

    const fn has_slot(self) -> bool {
        matches!(self, Self::Running | Self::Suspended)
    }
}

/// A proc as its expressions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcView {
    /// `ProcId`.
    pub proc: u32,
    /// `JobStatus`.
    pub standing: Standing,
    /// The history of the proc. If the proc has a pod, `since` is when the proc got its slot.
    pub history: History,
    /// Why the proc is held, if it is.
    pub hold: Option<HoldReason>,
    /// When the containers of the present pod started, if they have.
    pub started: Option<Time>,
    /// For how long the run of the present pod stood still, in seconds. `history` does not count these yet.
    pub suspended: u64,
    /// When the run of the present pod ended. `None` while the run lasts. `history` counts the start and the completion of a run that has
    /// ended, and not yet its seconds.
    pub ended: Option<Time>,
    /// The usage of the present pod, if an agent tells.
    pub usage: Option<Usage>,
}

impl ProcView {
    /// An idle proc.
    pub fn of_idle(proc: u32, history: History) -> Self {
        Self {
            proc,
            standing: Standing::Idle,
            history,
            hold: None,
            started: None,
            suspended: 0,
            ended: None,
            usage: None,
        }
    }

    /// The job's ad with the attributes of the proc.
    pub fn ad(&self, spec: &JobSpec, now: Time) -> Ad {
        let since = self.history.since;
        let mut ad = Ad::new();
        ad.set("ProcId", i64::from(self.proc));
        ad.set("JobStatus", self.standing.status());
        ad.set("CurrentTime", now.secs());
        self.with_present_run(now).set_in(&mut ad, self.started.is_some() && self.ended.is_none());
        if let Some(hold) = &self.hold {
            ad.set("HoldReason", &*hold.reason);
            ad.set("HoldReasonCode", hold.code);
            ad.set("HoldReasonSubCode", hold.subcode);
        }
        if self.standing.has_slot() {
            ad.set("ShadowBday", since.secs());
            ad.set("JobCurrentStartDate", since.secs());
            // A first run is not in the history yet, or began there with its program.
            if self.history.starts <= u32::from(self.ended.is_some()) {
                ad.set("JobStartDate", since.secs());
            }
        }
        if let Some(started) = self.started {
            ad.set("JobCurrentStartExecutingDate", started.secs());
        }
        let usage = self.usage.clone().unwrap_or_default();
        for (name, value) in &usage.metrics {
            ad.set(&**name, *value);
        }
        for (name, amount) in [
            ("MemoryUsage", usage.memory_mib),
            ("ResidentSetSize", usage.resident_kib),
            // HTCondor's starter takes the memory of the job's cgroup for the size of its image.
            ("ImageSize", usage.resident_kib),
            ("DiskUsage", usage.disk_kib),
        ] {
            if let Some(amount) = amount {
                ad.set(name, amount);
            }
        }
        ad.chain(Some(spec.ad.clone()));
        ad
    }

    /// The history with the seconds of the present run: HTCondor's shadow adds these to `RemoteWallClockTime` before each evaluation.
    fn with_present_run(&self, now: Time) -> History {
        let Some(started) = self.started else { return self.history };
        let wall = self.ended.unwrap_or(now).since(started).as_secs();
        History {
            wall: self.history.wall.saturating_add(wall),
            suspended: self.history.suspended.saturating_add(self.suspended),
            ..self.history
        }
    }

    /// Whether two procs of a job are alike to expressions that do not read `ProcId`.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let face = |view: &Self| (view.standing, view.history, view.started, view.suspended, view.ended);
        face(self) == face(other) && self.hold == other.hold && self.usage == other.usage
    }
}

/// An evaluation: what acts, and what the evaluation has cost in steps.
struct Asking<'a> {
    ad: &'a Ad,
    env: Env,
    spent: u32,
}

impl<'a> Asking<'a> {
    fn new(ad: &'a Ad, now: Time) -> Self {
        let mut env = Env::at(now.secs());
        env.limits.steps = STEPS;
        Self { ad, env, spent: 0 }
    }

    fn value(&mut self, expr: &Expr) -> Value {
        let found = expr.evaluate(Some(self.ad), None, &self.env);
        self.spent = self.spent.saturating_add(found.steps).saturating_add(1);
        found.value
    }

    /// Whether an expression acts: its value is a number that is not 0, or true.
    fn acts(&mut self, expr: &Expr) -> bool {
        whole(&self.value(expr)).is_some_and(|number| number != 0)
    }

    fn attribute(&mut self, name: &str) -> Value {
        self.ad.get(name).cloned().map_or(Value::Undefined, |expr| self.value(&expr))
    }

    fn own(&mut self, own: Option<&Own>) -> Option<HoldReason> {
        let own = own?;
        if !self.acts(&own.expr) {
            return None;
        }
        let subcode = whole(&self.attribute(&format!("{}SubCode", own.name))).unwrap_or(0);
        let reason = self.attribute(&format!("{}Reason", own.name));
        let said = reason.as_str().filter(|reason| !reason.is_empty()).map(str::to_owned);
        let said = said.unwrap_or_else(|| {
            format!("The job attribute {} expression '{}' evaluated to TRUE", own.name, own.expr.to_old())
        });
        Some(HoldReason::new(JOB_POLICY, subcode, &said))
    }

    fn system(&mut self, all: &[SystemExpr]) -> Option<HoldReason> {
        let fired = all.iter().find(|one| self.acts(&one.expr))?;
        let subcode = fired.subcode.as_ref().and_then(|expr| whole(&self.value(expr))).unwrap_or(0);
        let reason = fired.reason.as_ref().map(|expr| self.value(expr));
        let said = reason.as_ref().and_then(Value::as_str).filter(|reason| !reason.is_empty());
        let said = said.map_or_else(
            || {
                format!(
                    "The system macro {} expression '{}' evaluated to TRUE",
                    fired.name,
                    fired.expr.to_old()
                )
            },
            str::to_owned,
        );
        Some(HoldReason::new(SYSTEM_POLICY, subcode, &said))
    }
}

/// The number that a value is, without its fraction; true is 1.
fn whole(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
    value.as_number().map(|number| number as i64)
}

impl Acting {
    /// The expressions of a job's ad.
    pub fn of(ad: &Ad) -> Self {
        let own = |name: &'static str| {
            let expr = ad.get(name)?.clone();
            let never = expr.as_literal().is_some_and(|value| whole(value).is_none_or(|number| number == 0));
            (!never).then_some(Own { name, expr })
        };
        // Only the value false of this expression acts.
        let remove = ad.get("OnExitRemove").map(|expr| Own { name: "OnExitRemove", expr: expr.clone() });
        Self {
            on_exit_hold: own("OnExitHold"),
            on_exit_remove: remove,
            hold: own("PeriodicHold"),
            release: own("PeriodicRelease"),
            remove: own("PeriodicRemove"),
            vacate: own("PeriodicVacate"),
            timer_remove: ad.contains("TimerRemove"),
            job_duration: ad.contains("AllowedJobDuration"),
            execute_duration: ad.contains("AllowedExecuteDuration"),
            success: ad.get("JobSuccessExitCode").and_then(|expr| whole(expr.as_literal()?)).unwrap_or(0),
            by_proc: ad.unsorted().any(|(_, expr)| reads_proc(expr)),
        }
    }

    /// Whether some expression is to be evaluated from time to time.
    pub fn is_periodic(&self) -> bool {
        let some = [&self.hold, &self.release, &self.remove, &self.vacate].iter().any(|own| own.is_some());
        some || self.timer_remove || self.job_duration || self.execute_duration
    }

    /// Whether a program that ended with this exit code has succeeded.
    pub fn is_success(&self, code: i32) -> bool {
        i64::from(code) == self.success
    }

    /// Whether procs must be looked at one by one, since an expression of the job's or of the SubmitPolicy's may read their numbers.
    pub fn is_by_proc(&self, system: &SystemPolicy) -> bool {
        self.by_proc && (self.is_periodic() || system.is_periodic()) || system.is_by_proc()
    }

    /// The action that the first expression that acts asks for, in HTCondor's order; and the steps that the evaluations took.
    pub fn periodic(
        &self,
        system: &SystemPolicy,
        spec: &JobSpec,
        view: &ProcView,
        now: Time,
    ) -> (Option<Verdict>, u32) {
        let ad = view.ad(spec, now);
        let mut asking = Asking::new(&ad, now);
        let verdict = self.verdict(system, &mut asking, view, now);
        (verdict, asking.spent)
    }

    fn verdict(
        &self,
        system: &SystemPolicy,
        ask: &mut Asking,
        view: &ProcView,
        now: Time,
    ) -> Option<Verdict> {
        if view.standing.has_slot() {
            if let Some(hold) = self.takes_too_long(ask, view, now) {
                return Some(Verdict::Hold(hold));
            }
            if let Some(why) = ask.own(self.vacate.as_ref()).or_else(|| ask.system(&system.vacate)) {
                return Some(Verdict::Vacate(why.reason));
            }
        }
        self.at_any_time(system, ask, view, now)
    }

    /// The expressions that are evaluated from time to time and when a program has ended.
    fn at_any_time(
        &self,
        system: &SystemPolicy,
        ask: &mut Asking,
        view: &ProcView,
        now: Time,
    ) -> Option<Verdict> {
        if self.timer_remove
            && let Some(at) = whole(&ask.attribute("TimerRemove"))
            && at >= 0
            && at < now.secs()
        {
            return Some(Verdict::Remove("The time of TimerRemove has passed".into()));
        }
        match &view.hold {
            None => {
                if let Some(hold) = ask.own(self.hold.as_ref()).or_else(|| ask.system(&system.hold)) {
                    return Some(Verdict::Hold(hold));
                }
            }
            // "Ignore jobs held at user request."
            Some(hold) if !hold.is_by_user() && system.may_release(view.history.holds) => {
                if let Some(why) = ask.own(self.release.as_ref()).or_else(|| ask.system(&system.release)) {
                    return Some(Verdict::Release(why.reason));
                }
            }
            Some(_) => {}
        }
        let why = ask.own(self.remove.as_ref()).or_else(|| ask.system(&system.remove))?;
        Some(Verdict::Remove(why.reason))
    }

    fn takes_too_long(&self, ask: &mut Asking, view: &ProcView, now: Time) -> Option<HoldReason> {
        let at = view.ended.unwrap_or(now);
        let passed = |since: Time| at.secs().saturating_sub(since.secs());
        if self.job_duration
            && let Some(allowed) = whole(&ask.attribute("AllowedJobDuration"))
            && passed(view.history.since) >= allowed
        {
            let text = format!("The job exceeded allowed job duration of {}", span(allowed));
            return Some(HoldReason::new(JOB_DURATION_EXCEEDED, 0, &text));
        }
        if self.execute_duration
            && let Some(allowed) = whole(&ask.attribute("AllowedExecuteDuration"))
            && view.started.is_some_and(|started| passed(started) > allowed)
        {
            let text = format!("The job exceeded allowed execute duration of {}", span(allowed));
            return Some(HoldReason::new(JOB_EXECUTE_EXCEEDED, 0, &text));
        }
        None
    }

    /// The fate of a proc whose program has ended. `view` counts the completion, and has the time of the end.
    pub fn at_exit(&self, system: &SystemPolicy, spec: &JobSpec, view: &ProcView, now: Time) -> Fate {
        let idle = system.hold.is_empty() && system.remove.is_empty() && !self.is_periodic();
        if idle && self.on_exit_hold.is_none() && self.on_exit_remove.is_none() {
            return Fate::Done;
        }
        let ad = view.ad(spec, now);
        let mut ask = Asking::new(&ad, now);
        if let Some(hold) = self.takes_too_long(&mut ask, view, now) {
            return Fate::Hold(hold);
        }
        match self.at_any_time(system, &mut ask, view, now) {
            Some(Verdict::Hold(hold)) => return Fate::Hold(hold),
            // The shadow terminates such a job as any other (shadow_user_policy.cpp): it is completed, and not removed.
            Some(Verdict::Remove(_)) => return Fate::Done,
            Some(Verdict::Release(_) | Verdict::Vacate(_)) | None => {}
        }
        if let Some(hold) = ask.own(self.on_exit_hold.as_ref()) {
            return Fate::Hold(hold);
        }
        // "No expression, or evaluated to anything but false: remove."
        let stays = self.on_exit_remove.as_ref().is_some_and(|own| whole(&ask.value(&own.expr)) == Some(0));
        if stays { Fate::Again } else { Fate::Done }
    }
}

/// A span as HTCondor's `format_time_short` writes it: days, hours, minutes and seconds, without those of the first that are 0.
fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes, seconds) =
        (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes:02}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}+{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// An expression of the SubmitPolicy that acts: one of `SYSTEM_PERIODIC_HOLD` and similar knobs.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemExpr {
    /// The knob.
    pub name: Arc<str>,
    /// The expression.
    pub expr: Expr,
    /// `..._REASON`: an expression for the reason.
    pub reason: Option<Expr>,
    /// `..._SUBCODE`: an expression for the subcode.
    pub subcode: Option<Expr>,
    /// Whether one of the three reads `ProcId` itself.
    by_proc: bool,
}

impl SystemExpr {
    /// Makes an expression with those for its reason and its subcode.
    pub fn new(name: &str, expr: Expr, reason: Option<Expr>, subcode: Option<Expr>) -> Self {
        let by_proc = [Some(&expr), reason.as_ref(), subcode.as_ref()].into_iter().flatten().any(reads_proc);
        Self { name: name.into(), expr, reason, subcode, by_proc }
    }
}

/// Whether an expression may read `ProcId`, perhaps from within a string.
fn reads_proc(expr: &Expr) -> bool {
    let reads = |text: &str| text.to_ascii_lowercase().contains("procid");
    match expr.as_literal() {
        Some(value) => value.as_str().is_some_and(reads),
        None => reads(&expr.to_string()),
    }
}

/// The expressions of the SubmitPolicy that are evaluated from time to time for every job.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemPolicy {
    /// `SYSTEM_PERIODIC_HOLD`, and those of `SYSTEM_PERIODIC_HOLD_NAMES`.
    pub hold: Vec<SystemExpr>,
    /// `SYSTEM_PERIODIC_RELEASE` and its list.
    pub release: Vec<SystemExpr>,
    /// `SYSTEM_PERIODIC_REMOVE` and its list.
    pub remove: Vec<SystemExpr>,
    /// `SYSTEM_PERIODIC_VACATE` and its list.
    pub vacate: Vec<SystemExpr>,
    /// `SYSTEM_MAX_RELEASES`: no expression releases a proc that was held this many times or more. `None`: no bound.
    pub max_releases: Option<u32>,
    /// `PERIODIC_EXPR_INTERVAL`: the pause between two evaluations, in seconds. 0 turns periodic evaluations off.
    pub interval: u64,
}

impl Default for SystemPolicy {
    fn default() -> Self {
        Self {
            hold: Vec::new(),
            release: Vec::new(),
            remove: Vec::new(),
            vacate: Vec::new(),
            max_releases: None,
            interval: 60,
        }
    }
}

impl SystemPolicy {
    /// Whether some expression is to be evaluated from time to time.
    pub fn is_periodic(&self) -> bool {
        [&self.hold, &self.release, &self.remove, &self.vacate].iter().any(|all| !all.is_empty())
    }

    /// Whether some expression itself reads the number of the proc.
    fn is_by_proc(&self) -> bool {
        [&self.hold, &self.release, &self.remove, &self.vacate].into_iter().flatten().any(|one| one.by_proc)
    }

    fn may_release(&self, holds: u32) -> bool {
        self.max_releases.is_none_or(|most| holds < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `format_time_short`.
    #[test]
    fn spans_are_written_as_htcondor_writes_them() {
        for (seconds, text) in [
            (0, "00:00"),
            (50, "00:50"),
            (600, "10:00"),
            (3600, "1:00:00"),
            (36_000, "10:00:00"),
            (90_061, "1+01:01:01"),
            (-5, "00:00"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn what_is_literally_false_is_never_asked() {
        let ad = |text: &str| Ad::parse_new(text).unwrap();
        for (text, periodic) in [
            ("[]", false),
            ("[PeriodicHold = false; PeriodicRemove = 0; PeriodicRelease = undefined]", false),
            ("[OnExitHold = true; OnExitRemove = false]", false),
            ("[PeriodicHold = true]", true),
            ("[PeriodicRemove = JobStatus == 1]", true),
            ("[AllowedJobDuration = 5]", true),
            ("[TimerRemove = 5]", true),
        ] {
            assert_eq!(Acting::of(&ad(text)).is_periodic(), periodic, "{text}");
        }
        let by_proc = |text: &str| Acting::of(&ad(text)).is_by_proc(&SystemPolicy::default());
        assert!(by_proc("[Mine = procid * 2; PeriodicHold = Mine > 4]"));
        assert!(!by_proc("[PeriodicHold = NumJobStarts > 4]"));
    }
}
