//! Evaluates the expressions that act on procs from time to time: those of each job, and those of the SubmitPolicy.
//!
//! Procs that no expression can tell apart are evaluated once for all. The evaluations of one second may cost [`BUDGET`] steps;
//! what is left waits for the next second, and the jobs take turns. So a pool with many expressions evaluates them less often, as
//! a schedd does whose `PERIODIC_EXPR_TIMESLICE` is used up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Pool;
use super::event::PodFacts;
use super::history::History;
use super::ids::{JobUid, SlotName};
use super::job::{Job, JobSpec};
use super::job_policy::{Acting, Fate, ProcView, Standing, SystemPolicy, Verdict};
use super::leaving::HoldReason;
use super::marks::Change;
use super::slot::Removal;
use super::time::Time;
use super::units::counted;

/// The steps that the evaluations of one second may take: about a hundredth of the second.
const BUDGET: u32 = 400_000;
/// The steps that the evaluations of one job may take before other jobs have their turn.
const TURN: u32 = 100_000;
/// The most procs of a job that are looked at in one turn.
const PROCS: usize = 4096;
/// The steps that looking at a proc counts for.
const LOOK: u32 = 8;
/// How many procs are remembered that differ, so that procs like them need not be evaluated again.
const REMEMBERED: usize = 8;

/// The actions on procs in one turn, with the procs of each.
type Actions = BTreeMap<Action, ActedOn>;

/// An action on procs, as an event tells it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Action {
    /// The participle: `held`.
    verb: &'static str,
    why: Arc<str>,
}

/// The procs on which an action was taken.
struct ActedOn {
    count: u64,
    first: u32,
}

impl Pool {
    /// The periodic expressions that the SubmitPolicy in force has for every job.
    pub fn system_policy(&self) -> Arc<SystemPolicy> {
        self.submit_config().map_or_else(Arc::default, |config| Arc::clone(&config.system))
    }

    /// Plans the next evaluation of a job, if it needs one and none is planned.
    pub(super) fn plan_evaluation(&mut self, uid: &JobUid, now: Time) {
        let at = self.jobs.get(uid).and_then(|job| self.evaluation_after(job, now));
        if at.is_none() || self.evaluations.get(uid).is_none() {
            self.evaluations.set(uid, at);
        }
    }

    /// Plans evaluations anew, since the SubmitPolicy changed. A planned evaluation comes earlier if the interval is shorter now.
    pub(super) fn plan_evaluations(&mut self, now: Time) {
        let jobs: Vec<JobUid> = self.jobs.keys().cloned().collect();
        for uid in jobs {
            let planned = self.evaluations.get(&uid);
            let at = self.jobs.get(&uid).and_then(|job| self.evaluation_after(job, now));
            self.evaluations.set(&uid, at.map(|at| planned.map_or(at, |planned| planned.min(at))));
        }
    }

    /// When a job is evaluated again that was evaluated now; `None` if nothing is to be evaluated.
    fn evaluation_after(&self, job: &Job, now: Time) -> Option<Time> {
        let system = self.system_policy();
        let deferred = job.pacing.starts_at().is_some() && !job.idle.is_empty();
        let wanted = job.acting.is_periodic() || system.is_periodic() || deferred;
        let left = !job.removing && job.spec.is_some() && !job.is_complete();
        (wanted && left && system.interval > 0).then(|| now + Duration::from_secs(system.interval))
    }

    /// When expressions are evaluated next.
    pub(super) fn next_evaluation(&self) -> Option<Time> {
        let next = self.evaluations.next()?;
        let (second, spent) = self.evaluated;
        let rested = second + Duration::from_secs(1);
        Some(if spent < BUDGET { next } else { next.max(rested) })
    }

    /// Evaluates the expressions that are due, as far as the budget of this second goes.
    pub(super) fn evaluate_due(&mut self, now: Time) {
        let second = Time::from_secs(now.secs());
        if self.evaluated.0 != second {
            self.evaluated = (second, 0);
        }
        while self.evaluated.1 < BUDGET {
            let Some(uid) = self.evaluations.pop_due(now) else { return };
            let finished = self.evaluate(&uid, now);
            let next = self.jobs.get(&uid).and_then(|job| self.evaluation_after(job, now));
            self.evaluations.set(&uid, if finished { next } else { next.map(|_| now) });
        }
    }

    /// Evaluates a job's expressions for as many procs as a turn allows. Returns whether that was all.
    fn evaluate(&mut self, uid: &JobUid, now: Time) -> bool {
        let system = self.system_policy();
        let missed = self.jobs.get(uid).filter(|job| !job.removing).and_then(|job| job.pacing.missed(now));
        if let Some(hold) = missed {
            self.hold_waiting(uid, &hold, now);
        }
        let Some(job) = self.jobs.get(uid).filter(|job| !job.removing) else { return true };
        let Some(base) = job.spec.clone() else { return true };
        let acting = Arc::clone(&job.acting);
        let mut asked = Asked { known: Vec::new(), spent: 0 };
        let mut told = Actions::new();
        let alike = job.evaluated_to == 0 && !acting.is_by_proc(&system);
        let first = if alike { fresh(job).next() } else { None };
        if let Some(first) = first {
            let view = self.view_of(job, first);
            if let Some(verdict) = asked.ask(&acting, &system, &base, &view, now) {
                let all: Vec<u32> = fresh(job).collect();
                for proc in all {
                    self.do_as_said(uid, proc, &verdict, now, &mut told);
                }
            }
        }
        let (procs, mut finished) =
            self.jobs.get(uid).map(|job| next_procs(job, acting.is_by_proc(&system))).unwrap_or_default();
        let mut reached = 0;
        for proc in procs {
            // The fresh procs alone may cost more than a turn: another proc has its turn all the same, so that the job's author keeps no
            // proc from the expressions of the SubmitPolicy.
            if asked.spent > TURN && reached > 0 {
                finished = false;
                break;
            }
            reached = proc.saturating_add(1);
            let Some(job) = self.jobs.get(uid) else { return true };
            if !job.is_queued(proc) {
                continue;
            }
            let (view, spec) = (self.view_of(job, proc), job.spec_of(proc).unwrap_or(&base));
            if let Some(verdict) = asked.ask(&acting, &system, spec, &view, now) {
                self.do_as_said(uid, proc, &verdict, now, &mut told);
            }
        }
        self.evaluated.1 = self.evaluated.1.saturating_add(asked.spent).saturating_add(LOOK);
        if let Some(job) = self.jobs.get_mut(uid) {
            job.evaluated_to = if finished { 0 } else { reached };
        }
        if !told.is_empty() {
            self.tell_verdicts(uid, told, now);
        }
        finished
    }

    /// A proc as its expressions see it.
    fn view_of(&self, job: &Job, proc: u32) -> ProcView {
        let hold = job.on_hold.get(&proc).cloned();
        let slot = job.active.get(&proc).and_then(|name| self.slots.get(name)).filter(|_| hold.is_none());
        let history = job.history_of(proc);
        let waits = if hold.is_some() { Standing::Held } else { Standing::Idle };
        match slot.and_then(|slot| Some((slot, slot.active()?))) {
            Some((slot, run)) => {
                let report = self.reports.get(&slot.name().machine);
                let since = run.created.or(run.started).unwrap_or_else(|| slot.phase().entered_activity());
                ProcView {
                    standing: if run.suspended_since.is_some() {
                        Standing::Suspended
                    } else {
                        Standing::Running
                    },
                    hold,
                    started: run.started,
                    // HTCondor's shadow counts a suspension once the job goes on, too.
                    suspended: run.suspended.as_secs(),
                    usage: report.and_then(|report| report.usage.get(&run.pod.uid)).cloned(),
                    ..ProcView::of_idle(proc, History { since, ..history })
                }
            }
            None => ProcView { standing: waits, hold, ..ProcView::of_idle(proc, history) },
        }
    }

    fn do_as_said(&mut self, uid: &JobUid, proc: u32, verdict: &Verdict, now: Time, told: &mut Actions) {
        let (done, verb, why) = match verdict {
            Verdict::Hold(hold) => (self.hold_one(uid, proc, hold, now), "held", hold.reason.clone()),
            Verdict::Release(why) => (self.release_one(uid, proc, now), "released", why.clone()),
            Verdict::Remove(why) => (self.remove_one(uid, proc, why, now), "removed", why.clone()),
            Verdict::Vacate(why) => (self.vacate_one(uid, proc, Removal::ByUser), "vacated", why.clone()),
        };
        if done {
            told.entry(Action { verb, why }).or_insert(ActedOn { count: 0, first: proc }).count += 1;
        }
    }

    fn tell_verdicts(&mut self, uid: &JobUid, told: Actions, now: Time) {
        self.changed(Change::Procs(uid));
        self.changed(Change::Released);
        let Some(key) = self.jobs.get(uid).map(|job| job.key.clone()) else { return };
        for (Action { verb, why }, ActedOn { count, first }) in told.into_iter().take(4) {
            let note = match count {
                1 => format!("proc {first} is {verb}: {why}"),
                _ => format!("{}, the first of them proc {first}, are {verb}: {why}", counted(count, "proc")),
            };
            self.warn(&key, "PolicyActed", "Evaluate", note);
        }
        self.look_at_unrecorded(uid);
        self.look_at_waiting(uid);
        self.note_completion(uid, now);
    }

    /// The fate of a proc whose program has ended in this pod. The start and the completion are counted already, and the seconds of the
    /// run are not.
    pub(super) fn fate(&self, job: &Job, facts: &PodFacts, now: Time) -> Fate {
        let Some(spec) = job.spec_of(facts.proc) else { return Fate::Done };
        let history = job.history_of(facts.proc);
        let since = facts.created.or(facts.started).unwrap_or(history.since);
        let run = self.last_run(job, facts.proc, Some(facts), now);
        let report = facts.machine.as_ref().and_then(|machine| self.reports.get(machine));
        let view = ProcView {
            standing: Standing::Running,
            started: facts.started,
            suspended: run.as_ref().map_or(0, |run| run.suspended.as_secs()),
            ended: Some(run.map_or(now, |run| run.ended)),
            usage: report.and_then(|report| report.usage.get(&facts.pod.uid)).cloned(),
            ..ProcView::of_idle(facts.proc, History { since, ..history })
        };
        job.acting.at_exit(&self.system_policy(), spec, &view, now)
    }
}

/// The idle procs of a job that have never had a slot and were never held: no expression tells them apart, unless it reads
/// `ProcId`.
fn fresh(job: &Job) -> impl Iterator<Item = u32> + use<'_> {
    job.idle.iter().filter(|proc| !job.history.contains_key(proc))
}

/// The procs of a job that are looked at next, besides those that have never had a slot; and whether these are all.
fn next_procs(job: &Job, by_proc: bool) -> (Vec<u32>, bool) {
    let from = job.evaluated_to;
    let mut procs: Vec<u32> = job.history.range(from..).map(|(proc, _)| *proc).take(PROCS).collect();
    procs.extend(job.active.range(from..).map(|(proc, _): (&u32, &SlotName)| *proc).take(PROCS));
    procs.extend(job.on_hold.range(from..).map(|(proc, _): (&u32, &HoldReason)| *proc).take(PROCS));
    if by_proc {
        procs.extend(job.idle.iter().skip_while(|proc| *proc < from).take(PROCS));
    }
    procs.sort_unstable();
    procs.dedup();
    let finished = procs.len() < PROCS;
    procs.truncate(PROCS);
    (procs, finished)
}

/// Evaluations, and what they have cost.
struct Asked {
    /// The procs that were evaluated and differ from each other, each with its verdict: `None` if no expression acts
    /// on the proc. A proc that is like one of these gets the same verdict.
    known: Vec<(Arc<JobSpec>, ProcView, Option<Verdict>)>,
    spent: u32,
}

impl Asked {
    fn ask(
        &mut self,
        acting: &Acting,
        system: &SystemPolicy,
        spec: &Arc<JobSpec>,
        view: &ProcView,
        now: Time,
    ) -> Option<Verdict> {
        self.spent = self.spent.saturating_add(LOOK);
        if !acting.is_by_proc(system)
            && let Some((.., said)) =
                self.known.iter().find(|(of, known, _)| Arc::ptr_eq(of, spec) && known.is_like(view))
        {
            return said.clone();
        }
        let (said, steps) = acting.periodic(system, spec, view, now);
        self.spent = self.spent.saturating_add(steps);
        if self.known.len() == REMEMBERED {
            self.known.remove(0);
        }
        self.known.push((Arc::clone(spec), view.clone(), said.clone()));
        said
    }
}
