//! Negotiation cycles: the snapshot that a cycle works on, and the claims that its matches become.

mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{gathering, preemption, quotas, reasons};

pub(super) use snapshot::snapshot;

use crate::negotiator::limits::Wants;
use crate::negotiator::{Cycle, Outcome, PreemptState, RejectReason, Rejection};
use crate::pool::units::counted;
use crate::pool::{
    CycleFigures, Given, HoldReason, JOB_POLICY_UNDEFINED, Job, JobUid, MachineName, Matchable, NegotiatorId,
    OwnSpec, Pool, SlotName, Time,
};
use crate::schedd::{self, Explained, Matched, Refusal};
use crate::startd::claimed_slot_ad;
use classad::{Ad, Env, Expr};

/// A cycle to run: a snapshot of slots and requests, with the objects behind them.
#[derive(Clone, Debug)]
pub struct Negotiation {
    /// The cycle itself, for [`crate::negotiator::negotiate`].
    pub cycle: Cycle,
    /// When the snapshot was taken.
    pub started: Time,
    /// The negotiator whose cycle it is.
    pub negotiator: NegotiatorId,
    /// The machine slot or claimed slot behind each candidate.
    slots: Vec<SlotName>,
    /// The procs behind each request of each submitter.
    asking: Vec<Vec<Asking>>,
}

/// Procs of a job that wait, and have one spec.
#[derive(Clone, Debug)]
struct Asking {
    job: JobUid,
    /// The spec that the procs have of their own; `None` if they have the job's.
    own: Option<Arc<OwnSpec>>,
}

impl Negotiation {
    /// The job behind a request of a submitter.
    pub(super) fn job(&self, submitter: usize, request: usize) -> Option<&JobUid> {
        self.asking.get(submitter)?.get(request).map(|asking| &asking.job)
    }

    /// The request of a submitter, if an explanation of its job is about this request. If a job has several requests, the explanation
    /// is about the last: the request for procs with the job's spec, or else for those with the newest spec of their own.
    fn explained(&self, submitter: usize, request: usize) -> Option<&Asking> {
        let all = self.asking.get(submitter)?;
        let asking = all.get(request)?;
        all.get(request + 1).is_none_or(|next| next.job != asking.job).then_some(asking)
    }
}

/// Notes that no proc waits for a concurrency limit, since no proc waits at all.
pub(super) fn nothing_waits(pool: &mut Pool) {
    pool.set_barred(BTreeMap::new());
}

/// Whether a constraint is true for an ad, or there is no constraint.
pub(super) fn is_true(constraint: Option<&Expr>, ad: &Ad, env: &Env) -> bool {
    constraint.is_none_or(|constraint| constraint.eval(Some(ad), None, env).as_bool_equiv() == Some(true))
}

/// The ad of a claimed slot; an empty ad if its machine is not known.
pub(super) fn slot_ad(pool: &Pool, slot: &crate::pool::Slot, env: &Env) -> Ad {
    let Some(machine) = pool.machines().get(&slot.name().machine) else { return Ad::new() };
    let spec = pool.spec_of(&slot.claim().last);
    claimed_slot_ad(machine, &pool.startd(machine), slot, spec.map(|spec| &spec.ad), env)
}

/// Turns a cycle's matches into claims, and tells people the results.
pub fn conclude(pool: &mut Pool, negotiation: &Negotiation, outcome: &Outcome, now: Time) {
    // The negotiator's object may have gone meanwhile.
    let id = pool.answering(&negotiation.negotiator);
    pool.cycle_answered();
    keep_allocations(pool, &id, &negotiation.cycle, outcome);
    let quotas = quotas::quotas_with(pool, &id, now);
    let mut claims: BTreeMap<JobUid, (u64, BTreeSet<MachineName>)> = BTreeMap::new();
    let mut refused = BTreeMap::new();
    let mut claimed_on: BTreeSet<MachineName> = BTreeSet::new();
    for found in &outcome.matches {
        let Some(slot) = negotiation.slots.get(found.slot) else { continue };
        let Some(Asking { job, own }) =
            negotiation.asking.get(found.submitter).and_then(|asking| asking.get(found.request))
        else {
            continue;
        };
        let matched = Matched { job, own: own.as_ref(), regrouped: found.regrouped, quotas: &quotas };
        let made = if found.preempt != PreemptState::None && found.dynamic.is_empty() {
            preemption::claim(pool, slot, matched, now).inspect(|()| tell_waiting(pool, job, slot))
        } else {
            let dynamic: Vec<SlotName> =
                found.dynamic.iter().filter_map(|place| negotiation.slots.get(*place)).cloned().collect();
            match schedd::claim_match(pool, slot, matched, now) {
                Ok(()) => {
                    let entry = claims.entry(job.clone()).or_default();
                    entry.0 += 1;
                    entry.1.insert(slot.machine.clone());
                    Ok(())
                }
                Err(refusal) if dynamic.is_empty() => Err(refusal),
                Err(_) => gathering::claim(pool, slot, &dynamic, matched, now)
                    .inspect(|()| tell_gathering(pool, job, slot, &dynamic)),
            }
        };
        // A replaced claim counts against caps until its Slot object is written. The cycle does not know such claims,
        // so that a refusal may be due to them.
        let told = pool.holdings().carried().next().is_none();
        // A machine that shrank may have less left than its slots offer one by one.
        let taken = |refusal: &Refusal| *refusal == Refusal::TooLittle && claimed_on.contains(&slot.machine);
        match made {
            Ok(()) => drop(claimed_on.insert(slot.machine.clone())),
            Err(refusal) if told && !taken(&refusal) && schedd::waits(pool, matched, now) => {
                refused.insert((job.clone(), slot.clone()), refusal);
            }
            Err(_) => {}
        }
    }
    rest_refused(pool, &id, refused, now);
    tell_matches(pool, &claims, now);
    count_barred(pool, negotiation);
    hold_too_expensive(pool, negotiation, outcome, now);
    explain_rejections(pool, negotiation, outcome, now);
    let rejections = reasons::note(pool, negotiation, outcome, now).into();
    let figures = CycleFigures { rejections, ..figures(negotiation, outcome, now) };
    pool.end_cycle(id, figures, !claims.is_empty(), now);
}

/// Sets jobs aside for a while whose match with the same slot was refused in two cycles in a row. One refusal may be
/// due to a change after the cycle began. But if the negotiator checked less than the claim does, it would make the
/// match again and again, and others would wait for a slot that nobody gets.
fn rest_refused(
    pool: &mut Pool,
    id: &NegotiatorId,
    refused: BTreeMap<(JobUid, SlotName), Refusal>,
    now: Time,
) {
    for (job, slot) in pool.set_refused(id, refused.keys().cloned().collect()) {
        let because = refused.get(&(job.clone(), slot.clone()));
        let because = because.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
        let why = format!(
            "{slot} matches the job, and refused its claim in two cycles in a row{because}; the job rests for a while, so \
             that others can have the slot"
        );
        schedd::set_aside(pool, &job, "MatchRefused", why, now);
    }
}

fn tell_waiting(pool: &mut Pool, job: &JobUid, slot: &SlotName) {
    if let Some(key) = pool.jobs().get(job).map(|job| job.key.clone()) {
        let note = format!("a proc was matched with {slot}, which it gets when the job that has it is gone");
        pool.tell(&key, "Matched", "Negotiate", note);
    }
}

fn tell_gathering(pool: &mut Pool, job: &JobUid, parent: &SlotName, slots: &[SlotName]) {
    if let Some(key) = pool.jobs().get(job).map(|job| job.key.clone()) {
        let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
        let slots = slots.join(", ");
        let note = format!(
            "a proc was matched with {parent}, which has room for it when the jobs are gone that have {slots}"
        );
        pool.tell(&key, "Matched", "Negotiate", note);
    }
}

/// Stores what the cycle gave to groups. Claims are checked against these amounts, and people see them.
fn keep_allocations(pool: &mut Pool, id: &NegotiatorId, cycle: &Cycle, outcome: &Outcome) {
    let given = outcome.allocations.as_ref().map(|all| {
        let named = cycle.groups.iter().zip(&all.groups);
        Given {
            root: Some(all.root),
            groups: named.map(|(group, given)| (group.name.to_ascii_lowercase(), *given)).collect(),
        }
    });
    pool.set_given(id, given.unwrap_or_default());
}

fn tell_matches(pool: &mut Pool, claims: &BTreeMap<JobUid, (u64, BTreeSet<MachineName>)>, now: Time) {
    let by = pool.offers();
    for (uid, (procs, machines)) in claims {
        let matched = pool.edit_job(uid, |job| {
            if job.matchable != Matchable::Yes {
                (job.matchable, job.clauses) = (Matchable::Yes, Arc::default());
            }
            // A match explains the job as well, until machines offer something else.
            (job.explained, job.explained_by, job.explained_own, job.explaining) = (now, by, None, None);
            if job.idle.is_empty() {
                job.waits = None;
            }
            job.key.clone()
        });
        let Some(key) = matched else { continue };
        let first: Vec<&str> = machines.iter().take(3).map(MachineName::as_str).collect();
        let more = if machines.len() > first.len() { ", ..." } else { "" };
        let note = format!(
            "{} {} matched with slots on {} ({}{more})",
            counted(*procs, "proc"),
            if *procs == 1 { "was" } else { "were" },
            counted(u64::try_from(machines.len()).unwrap_or(u64::MAX), "node"),
            first.join(", ")
        );
        pool.tell(&key, "Matched", "Negotiate", note);
    }
}

/// Counts the procs that still wait for each concurrency limit, by the first limit that blocks them. Jobs whose limits
/// depend on the machine are not counted.
fn count_barred(pool: &mut Pool, negotiation: &Negotiation) {
    let env = Env::at(negotiation.cycle.now);
    let mut barred: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    // A job asks once for each spec that its procs have.
    let mut asking: Vec<&JobUid> = negotiation.asking.iter().flatten().map(|asking| &asking.job).collect();
    asking.dedup();
    for job in asking.into_iter().filter_map(|job| pool.jobs().get(job)) {
        let spec = job.spec.as_ref().filter(|_| !job.idle.is_empty());
        let wants = spec.and_then(|spec| Wants::on_any_slot(&spec.ad, &env)).unwrap_or_default();
        if let Some(limit) = pool.holdings().book().blocked(&wants) {
            *barred.entry(limit.into()).or_default() += job.idle.len();
        }
    }
    pool.set_barred(barred);
}

/// The most jobs that are explained after one cycle. Everything else waits for the thread that explains.
const EXPLAINED: usize = 50;

/// The evaluation steps that explaining may cost after one cycle. The rest is explained after the next cycle.
const EXPLAINING: u64 = 4_000_000;

/// The divisor of [`EXPLAINING`] that gives the share of one submitter: explaining the jobs of one submitter may cost
/// no more steps than this share.
const SUBMITTERS: u64 = 4;

/// How long an explanation is kept while neither the job nor any machine changes. Expressions may read the time.
const EXPLAINED_FOR: Duration = Duration::from_mins(10);

/// Whether the kept explanation of a job is about the spec of this request.
fn is_about(job: &Job, asking: &Asking) -> bool {
    match (&job.explained_own, &asking.own) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a job has no explanation of this request that still holds.
fn unexplained(pool: &Pool, job: &Job, asking: &Asking, now: Time) -> bool {
    job.matchable == Matchable::Unknown
        || !is_about(job, asking)
        || job.explaining.is_some()
        || job.explained_by != pool.offers()
        || now.since(job.explained) >= EXPLAINED_FOR
}

/// Explains, for jobs that got no slot, whether any machine could run them. The jobs with the oldest explanations come
/// first, so that each has its turn.
fn explain_rejections(pool: &mut Pool, negotiation: &Negotiation, outcome: &Outcome, now: Time) {
    let rejected = outcome.rejections.iter().filter_map(|rejection| {
        let asking = negotiation.explained(rejection.submitter, rejection.request)?;
        let job = pool.jobs().get(&asking.job)?;
        unexplained(pool, job, asking, now).then_some((rejection.submitter, job, asking))
    });
    let mut waiting: Vec<(usize, &Job, &Asking)> = rejected.collect();
    waiting.sort_by_key(|(_, job, _)| job.explained);
    waiting.truncate(EXPLAINED);
    if waiting.is_empty() {
        return;
    }
    let offers = schedd::Offers::of(pool);
    let mut left = EXPLAINING;
    let mut shares: BTreeMap<usize, u64> = BTreeMap::new();
    let explain = |(submitter, job, asking): (usize, &Job, &Asking)| {
        let spec = asking.own.as_ref().map(|own| own.spec()).or(job.spec.as_ref())?;
        let begun = job.explaining.as_ref().filter(|_| is_about(job, asking));
        let share = shares.entry(submitter).or_insert(EXPLAINING / SUBMITTERS);
        let given = left.min(*share);
        let mut steps = given;
        let explained = (given > 0).then(|| offers.explain(spec, begun, now, &mut steps))?;
        *share -= given - steps;
        left -= given - steps;
        Some((asking.clone(), explained))
    };
    let explained: Vec<_> = waiting.into_iter().filter_map(explain).collect();
    for (asking, explained) in explained {
        keep_explanation(pool, &asking, explained, now);
    }
}

fn keep_explanation(pool: &mut Pool, asking: &Asking, explained: Explained, now: Time) {
    let uid = &asking.job;
    let (mut matchable, clauses, by) = match explained {
        Explained::Whole { matchable, clauses, by } => (matchable, clauses, by),
        Explained::Part(explaining) => {
            // Other jobs have their turns before this explanation goes on.
            pool.edit_job(uid, |job| {
                (job.explained, job.explaining) = (now, Some(explaining));
                job.explained_own.clone_from(&asking.own);
            });
            return;
        }
    };
    if let (Matchable::No(problem), Some(_)) = (&mut matchable, &asking.own) {
        problem
            .message
            .push_str("; the request is the one that the job's TransformOnEvict made after a kill");
    }
    let news = pool.edit_job(uid, |job| {
        (job.clauses, job.explaining) = (clauses, None);
        (job.explained, job.explained_by) = (now, by);
        job.explained_own.clone_from(&asking.own);
        let news = job.matchable != matchable;
        job.matchable.clone_from(&matchable);
        news.then(|| job.key.clone())
    });
    let Some(key) = news.flatten() else { return };
    if let Matchable::No(problem) = matchable {
        pool.warn(&key, problem.reason, "Negotiate", problem.to_string());
    }
}

/// Holds jobs of which an expression takes too many steps. They got no slot, and the next cycle would spend as many
/// steps on them.
fn hold_too_expensive(pool: &mut Pool, negotiation: &Negotiation, outcome: &Outcome, now: Time) {
    let steps = negotiation.cycle.env().limits.steps;
    let too_expensive = |rejection: &&Rejection| rejection.reason == RejectReason::TooExpensive;
    for rejection in outcome.rejections.iter().filter(too_expensive) {
        let asking = negotiation.asking.get(rejection.submitter).and_then(|all| all.get(rejection.request));
        let Some(Asking { job, own }) = asking else { continue };
        let reason = format!(
            "evaluating requirements, rank or concurrencyLimitsExpr for a machine takes more than {steps} steps; write \
             simpler expressions, or shorter attributes that these read"
        );
        let hold = HoldReason::new(JOB_POLICY_UNDEFINED, 0, &reason);
        pool.hold_waiting_with(job, own.as_ref(), &hold, now);
    }
}

fn figures(negotiation: &Negotiation, outcome: &Outcome, now: Time) -> CycleFigures {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    CycleFigures {
        started: negotiation.started,
        ended: now,
        matches: count(outcome.matches.len()),
        rejects: count(outcome.rejections.len()),
        submitters: count(negotiation.cycle.submitters.iter().filter(|s| !s.requests.is_empty()).count()),
        slots: count(negotiation.cycle.slots.len()),
        idle: negotiation
            .cycle
            .submitters
            .iter()
            .flat_map(|s| &s.requests)
            .map(|request| request.count)
            .sum(),
        pies: count(outcome.stats.pies.len()),
        rejections: Arc::default(),
    }
}
