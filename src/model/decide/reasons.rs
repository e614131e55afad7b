//! Why a cycle left procs without a slot: writes the reason into each job, and counts reasons for the Negotiator's
//! status.
//!
//! Counting looks at each job that was left, but at no slots: which clauses keep a job from machines is known from the
//! job's explanation, which is made for some jobs in each cycle.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Negotiation;
use super::bars::Bars;
use crate::negotiator::Outcome;
use crate::pool::{Bar, Job, JobKey, JobUid, Matchable, Pool, Problem, Rejected, Rejections, Time, Waits};
use crate::schedd::why;

/// The most reasons that are kept of a cycle.
const REASONS: usize = 10;

/// The most jobs whose reason is updated after one cycle.
const WRITTEN: usize = 200;

/// Writes into jobs that were left without a slot what they wait for. Returns the reasons, counted.
pub(super) fn note(pool: &mut Pool, negotiation: &Negotiation, outcome: &Outcome, now: Time) -> Rejections {
    let mut counted: BTreeMap<(&'static str, Option<Arc<str>>), Rejected> = BTreeMap::new();
    let mut changed: Vec<(Option<Time>, JobUid, Option<Bar>)> = Vec::new();
    let bars = Bars::of(pool, negotiation, outcome);
    for rejection in &outcome.rejections {
        let uid = negotiation.job(rejection.submitter, rejection.request);
        let Some((uid, job)) = uid.and_then(|uid| Some((uid, pool.jobs().get(uid)?))) else { continue };
        let possible = !matches!(job.matchable, Matchable::No(_));
        let bar = possible.then(|| bars.bar(rejection, job)).flatten();
        let (reason, of) = match (&job.matchable, &bar) {
            (Matchable::No(problem), _) => (problem.reason, detail(job, problem)),
            (_, Some(bar)) => (bar.word(), bar.of()),
            (_, None) => (rejection.reason.word(), None),
        };
        let entry = counted.entry((reason, of.clone())).or_insert_with(|| Rejected {
            reason,
            of,
            jobs: 0,
            procs: 0,
            example: job.key.clone(),
            clauses: Arc::clone(&job.clauses),
        });
        entry.jobs += 1;
        entry.procs += rejection.left;
        let since = job.waits.as_ref().map(|waits| waits.since);
        // The status is written again where it may still speak of a pause that is over.
        let paused = since.is_some_and(|since| job.paused_after(since, now));
        if paused || job.waits.as_ref().map(|waits| &waits.bar) != bar.as_ref() {
            changed.push((since, uid.clone(), bar));
        }
    }
    // Jobs without a reason come first, then those whose reason is oldest.
    changed.sort_by_key(|(since, ..)| *since);
    for (_, uid, bar) in changed.into_iter().take(WRITTEN) {
        let news = pool.edit_job(&uid, |job| say(job, bar, now));
        if let Some((key, bar)) = news.flatten() {
            tell(pool, &key, &bar, now);
        }
    }
    bounded(counted.into_values().collect())
}

/// Stores what a job waits for. Returns the job's key and what the job waits for, if that is of another kind than
/// before: new numbers alone are not worth an event.
fn say(job: &mut Job, bar: Option<Bar>, now: Time) -> Option<(JobKey, Bar)> {
    let kind = |bar: &Bar| (bar.word(), bar.of());
    let before = job.waits.as_ref().map(|waits| kind(&waits.bar));
    job.waits = bar.clone().map(|bar| Waits { bar, since: now });
    let news = bar.filter(|bar| before != Some(kind(bar)))?;
    Some((job.key.clone(), news))
}

/// Tells the people who look at a job what it waits for, in the words of its conditions.
fn tell(pool: &mut Pool, key: &JobKey, bar: &Bar, now: Time) {
    let Some(job) = pool.jobs().get(&key.uid) else { return };
    let said = why::matchable(job, now);
    if said.reason != bar.word() {
        return;
    }
    if bar.is_for_ever() {
        pool.warn(key, said.reason, "Negotiate", said.text);
    } else {
        pool.tell(key, said.reason, "Negotiate", said.text);
    }
}

/// The detail by which jobs that no machine could run are told apart: the clause, or the field.
fn detail(job: &Job, problem: &Problem) -> Option<Arc<str>> {
    match job.clauses.first() {
        Some(clause) => Some(Arc::clone(&clause.text)),
        None => problem.field.starts_with("spec.").then(|| problem.field.as_str().into()),
    }
}

/// Keeps the reasons of most procs, and counts the procs of all others.
fn bounded(mut reasons: Vec<Rejected>) -> Rejections {
    reasons.sort_by_key(|rejected| Reverse(rejected.procs));
    let rest = reasons.split_off(reasons.len().min(REASONS));
    Rejections { reasons, other_procs: rest.iter().map(|rejected| rejected.procs).sum() }
}
