//! Why a cycle left procs without a slot: said on each job, and counted for the Negotiator's status.
//!
//! Counting costs a look at each job that was left, and none at slots: which clauses keep a job from machines is known from when
//! that was explained, for some jobs in each cycle.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Negotiation;
use crate::negotiator::groups::ROOT;
use crate::negotiator::limits::Wants;
use crate::negotiator::{Cycle, Outcome, RejectReason, Rejection, SubmitterInput};
use crate::pool::{Job, JobUid, Matchable, Pool, Problem, Rejected, Rejections, Time, Waits};
use classad::Env;

/// How many reasons are kept of a cycle.
const REASONS: usize = 10;

/// Of how many jobs it is written down after one cycle that they wait for something else now.
const WRITTEN: usize = 200;

/// Says of jobs that were left without a slot what they wait for. Gives the reasons, counted.
pub(super) fn note(pool: &mut Pool, negotiation: &Negotiation, outcome: &Outcome, now: Time) -> Rejections {
    let mut counted: BTreeMap<(&'static str, Option<Arc<str>>), Rejected> = BTreeMap::new();
    let mut changed: Vec<(Option<Time>, JobUid, Option<Waits>)> = Vec::new();
    for rejection in &outcome.rejections {
        let uid = negotiation.job(rejection.submitter, rejection.request);
        let Some((uid, cluster)) = uid.and_then(|uid| Some((uid, pool.jobs().get(uid)?))) else { continue };
        let waits = waits(pool, negotiation, rejection, cluster, now);
        let (reason, of) = match (&cluster.matchable, &waits) {
            (Matchable::No(problem), _) => (problem.reason, detail(cluster, problem)),
            (_, Some(waits)) => (waits.reason.word(), waits.of.clone()),
            (_, None) => (rejection.reason.word(), None),
        };
        let entry = counted.entry((reason, of.clone())).or_insert_with(|| Rejected {
            reason,
            of,
            jobs: 0,
            procs: 0,
            example: cluster.key.clone(),
            clauses: Arc::clone(&cluster.clauses),
        });
        entry.jobs += 1;
        entry.procs += rejection.left;
        if !same(cluster.waits.as_ref(), waits.as_ref()) {
            changed.push((cluster.waits.as_ref().map(|waits| waits.since), uid.clone(), waits));
        }
    }
    // Those of which nothing is said come first, then those of which the same is said for longest.
    changed.sort_by_key(|(since, ..)| *since);
    for (_, uid, waits) in changed.into_iter().take(WRITTEN) {
        pool.edit_job(&uid, |cluster| cluster.waits = waits);
    }
    bounded(counted.into_values().collect())
}

/// What procs of a job wait for that some machine could run.
fn waits(
    pool: &Pool,
    negotiation: &Negotiation,
    rejection: &Rejection,
    cluster: &Job,
    now: Time,
) -> Option<Waits> {
    if matches!(cluster.matchable, Matchable::No(_)) {
        return None;
    }
    let cycle = &negotiation.cycle;
    let submitter = cycle.submitters.get(rejection.submitter)?;
    let of = match rejection.reason {
        RejectReason::ConcurrencyLimit => {
            let wants = Wants::on_any_slot(&cluster.spec.as_ref()?.ad, &Env::at(cycle.now));
            wants.and_then(|wants| pool.holdings().book().blocked(&wants).map(Arc::from))
        }
        RejectReason::GroupQuota => {
            let group = submitter.group.and_then(|group| cycle.groups.get(group));
            Some(group.map_or(ROOT, |group| &group.name).into())
        }
        RejectReason::Ceiling => Some(at_ceiling(cycle, submitter).into()),
        RejectReason::NoMatch
        | RejectReason::NoSlots
        | RejectReason::TimeLimit
        | RejectReason::EvaluationShare
        | RejectReason::TooExpensive
        | RejectReason::SubmitterLimit
        | RejectReason::PreemptionPolicy
        | RejectReason::PreemptionRank => None,
    };
    Some(Waits { reason: rejection.reason, of, since: now })
}

/// Who has reached the ceiling that keeps a submitter waiting: the submitter, or its owner.
fn at_ceiling<'c>(cycle: &'c Cycle, submitter: &'c SubmitterInput) -> &'c str {
    let owner = submitter.owner.and_then(|owner| cycle.owners.get(owner));
    let left = |ceiling: f64, used: f64| ceiling - used;
    let own = submitter.ceiling.map_or(f64::INFINITY, |ceiling| left(ceiling, submitter.weighted_used));
    match owner {
        Some(owner) if left(owner.ceiling, owner.weighted_used) <= own => &owner.name,
        _ => &submitter.name,
    }
}

/// What tells apart jobs that no machine could run: the clause, or the field.
fn detail(cluster: &Job, problem: &Problem) -> Option<Arc<str>> {
    match cluster.clauses.first() {
        Some(clause) => Some(Arc::clone(&clause.text)),
        None => problem.field.starts_with("spec.").then(|| problem.field.as_str().into()),
    }
}

/// Whether the same is said, however long ago.
fn same(one: Option<&Waits>, other: Option<&Waits>) -> bool {
    let said = |waits: &Waits| (waits.reason, waits.of.clone());
    one.map(said) == other.map(said)
}

/// The reasons that most procs wait for.
fn bounded(mut reasons: Vec<Rejected>) -> Rejections {
    reasons.sort_by_key(|rejected| Reverse(rejected.procs));
    let rest = reasons.split_off(reasons.len().min(REASONS));
    Rejections { reasons, other_procs: rest.iter().map(|rejected| rejected.procs).sum() }
}
