//! Makes claims of matches, and decides what a claim does when its job has ended.

use std::time::Duration;

use super::caps::Place;
use super::terms::{Matched, Refusal, check};
use crate::pool::limits::Wants;
use crate::pool::{
    Backfill, ClaimWorklife, Job, JobUid, LastTransition, Noted, Phase, Pool, Slot, SlotConfig, SlotKind,
    SlotName, State, Time,
};
use crate::startd::{
    self, Carving, UNCLAIMED_TO_MATCHED, carve, claim_weight, claimed_slot_ad, end_benchmarks, keep_slot_ad,
    part_of, unclaimed_slot_ad,
};
use classad::{Env, symmetric_match_within};

/// The most jobs of a queue that are looked at for one slot, and the most procs that are tried, so that a long queue of jobs that may
/// not start or do not fit costs bounded work. The jobs behind them are left to the negotiator.
const LOOKED_AT: usize = 256;

/// The evaluation steps that trying these jobs may cost, since everything else waits meanwhile. A job that needs more
/// than what is left is left to the negotiator.
const STEPS: u32 = 300_000;

/// Turns a match into a claim: on a static slot, or on a new dynamic slot, for the next proc of the matched job. The
/// match is checked against the pool as it is now, and against quotas, ceilings and limits. The error says why no claim
/// was made.
pub fn claim_match(pool: &mut Pool, slot: &SlotName, matched: Matched, now: Time) -> Result<(), Refusal> {
    let made = claim_one(pool, slot, matched, now);
    if made.is_ok()
        && let Some(host) = pool.machines().get(&slot.machine)
    {
        let config = pool.startd(host);
        let left = host.machine_slots.get(&slot.slot).map_or(0, |share| host.available_in(share).cpus);
        pool.keep_ads(&slot.machine, |(host, last)| {
            if left == 0 {
                host.forget_ad_of(slot.slot);
            } else {
                // A partitionable slot has another ad after the claim: the ad is made once for all jobs that are tried on the rest of
                // the slot.
                keep_slot_ad((host, last), slot.slot, &config);
            }
        });
    }
    made
}

/// Claims a static slot, or carves one dynamic slot, for the next proc of a job.
fn claim_one(pool: &mut Pool, on: &SlotName, matched: Matched, now: Time) -> Result<(), Refusal> {
    let env = Env::at(now.secs());
    let host = pool.machines().get(&on.machine).ok_or(Refusal::Unavailable)?;
    let machine_slot =
        host.machine_slots.get(&on.slot).filter(|slot| !slot.claimed).ok_or(Refusal::Unavailable)?;
    if !matches!(machine_slot.state(), State::Unclaimed(_) | State::Backfill(_)) {
        return Err(Refusal::Unavailable);
    }
    if !waits(pool, matched, now) {
        return Err(Refusal::NothingWaits);
    }
    let spec = matched.spec(pool).cloned().ok_or(Refusal::NothingWaits)?;
    let config = pool.startd(host);
    let own = host.slot_config(&config, on.slot);
    let ad = unclaimed_slot_ad(host, machine_slot, &config);
    let resources = match carve(host, machine_slot, own, &ad, &spec.request, &spec.ad, &env) {
        Carving::Slot(resources) => resources,
        Carving::Unwilling => {
            let why = format!(
                "{on} matches the job, and what would be carved of it does not: START of the node's policy is not true for \
                 a dynamic slot of that size"
            );
            set_aside(pool, matched.job, "SlotUnwilling", why, now);
            return Err(Refusal::Unwilling);
        }
        Carving::Refused => return Err(Refusal::TooLittle),
    };
    let weight = claim_weight(pool, &matched.quotas.negotiator, &ad, &resources, own, &env);
    let terms = check(pool, matched, &ad, weight, Place::Free, now)?;
    let dynamic = (machine_slot.kind == SlotKind::Partitionable).then(|| machine_slot.free_dynamic_id());
    let name = SlotName { dynamic, ..on.clone() };
    let before = match machine_slot.state() {
        // If backfill work holds what the claim is to have, the work ends first. Until then the slot keeps its state.
        state @ State::Backfill(_) if pool.backfill().holds(host, machine_slot, &resources) => state,
        State::Backfill(_) => State::Backfill(Backfill::Idle),
        other => other,
    };
    let last = machine_slot.phase().last().cloned();
    let claim = terms.into_claim(pool, &name, matched, now).ok_or(Refusal::NothingWaits)?;
    let (proc, limits) = (claim.last.proc, claim.limits.clone());
    end_benchmarks(pool, on, now);
    let slot = Slot::new(name.clone(), resources, claim, first_phase(before, last, now));
    let slot = if pool.may_be_unwritten(&slot) { slot.unwritten() } else { slot };
    let matched_now = pool.is_traced() && slot.state() == State::Matched;
    let noted = matched_now.then(|| Noted::of_claimed(&slot, UNCLAIMED_TO_MATCHED.from)).flatten();
    if !pool.carve(slot, now) {
        return Err(Refusal::Unavailable);
    }
    pool.note(noted);
    assign(pool, &name, matched.job, proc, limits, now);
    Ok(())
}

/// The phase in which a claimed slot begins whose machine slot was in `before`, by the transition `last`.
fn first_phase(before: State, last: Option<LastTransition>, now: Time) -> Phase {
    match before {
        State::Backfill(_) => Phase::starting(before, now).by(last),
        // A dynamic slot is made for the match. The slot was never Unclaimed itself, but its partitionable slot was.
        _ => Phase::starting(State::Matched, now).by(Some(LastTransition {
            number: UNCLAIMED_TO_MATCHED.number,
            why: "matched by the negotiator".into(),
            at: now,
        })),
    }
}

/// Sets a job aside for a while whose match was refused: the negotiator does not know why, and would make the same
/// match again.
pub fn set_aside(pool: &mut Pool, job: &JobUid, reason: &'static str, why: String, now: Time) {
    let rested = pool.edit_job(job, |job| (job.key.clone(), job.rest(now)));
    if let Some((key, until)) = rested {
        pool.wake_at(until);
        pool.warn(&key, reason, "Claim", why);
    }
}

/// Whether a proc for which a match was made is idle and may start now.
pub fn waits(pool: &Pool, matched: Matched, now: Time) -> bool {
    let job = pool.jobs().get(matched.job).filter(|job| may_start(pool, job));
    job.is_some_and(|job| job.next_idle_with(matched.own, now).is_some())
}

/// Whether a job may start procs at all.
pub fn may_start(pool: &Pool, job: &Job) -> bool {
    job.is_ready() && super::jobs::may_charge(pool, job)
}

/// How long the API server may take to create a pod before the pod's job gets no more claims, and keeps none for pods
/// that are not asked for.
pub const SLOW_POD: Duration = Duration::from_secs(30);

/// Whether the API server has not created a pod of the job for 30 s, for example because a webhook of the job's
/// namespace hangs. A claim holds its machine meanwhile. So the job gets no more claims, and others can use the
/// machines.
pub fn lacks_pods(pool: &Pool, job: &Job, now: Time) -> bool {
    pool.waits_for_pod_since(&job.key.uid).is_some_and(|since| now.since(since) >= SLOW_POD)
}

/// Assigns a proc to a claim, with the units of concurrency limits that it takes. From now on the slot compares other
/// jobs with this one.
pub fn assign(pool: &mut Pool, name: &SlotName, job: &JobUid, proc: u32, limits: Wants, now: Time) {
    if !pool.assign(name, job, proc, limits, now) {
        return;
    }
    let rank = startd::rank(pool, name, now);
    pool.edit_slot(name, |slot| slot.set_rank(rank));
}

/// The next proc of the same submitter for a claim whose job has ended, within `CLAIM_WORKLIFE`: the claim is used
/// again without the negotiator. As at any activation, the slot's expressions are evaluated again, and so are
/// concurrency limits: units that the claim took for the last job are returned if the next job does not take them. A job that
/// requests more than a dynamic slot holds does not get the slot, even if the job's Requirements do not mention the amount.
pub fn find_work(pool: &Pool, name: &SlotName, now: Time) -> Option<(JobUid, u32, Wants)> {
    let slot =
        pool.slots().get(name).filter(|slot| !slot.is_spent() && !pool.has_stray_pod(&slot.claim().id))?;
    let machine = pool.machines().get(&name.machine)?;
    let config = pool.startd(machine);
    let own = machine.slot_config(&config, name.slot);
    if is_worn_out(slot, own, now) {
        return None;
    }
    let env = Env::at(now.secs());
    let queues = pool.queues();
    let queue = queues.awake(&slot.claim().submitter);
    let ad = claimed_slot_ad(machine, &config, slot, None, &env);
    // A claim that has waited for its slot begins with the proc that was matched: the match may have preempted a job for that proc
    // alone. Afterwards that proc is no longer idle, or rests. The other procs of its job come next.
    let last = &slot.claim().last;
    let is_matched = |job: &Job| job.key.uid == last.job.uid && job.may_try(last.proc, now);
    let first = pool.jobs().get(&last.job.uid).filter(|job| is_matched(job));
    let others = queue.filter_map(|key| pool.jobs().get(&key.job().uid));
    let jobs = first.into_iter().chain(others.filter(|job| !is_matched(job)));
    let may = |job: &&Job| may_start(pool, job) && !lacks_pods(pool, job, now);
    let own_proc = first.filter(&may).and_then(|job| Some((job, last.proc, job.spec_of(last.proc)?)));
    let others = jobs
        .take(LOOKED_AT)
        .filter(may)
        .flat_map(|job| job.next_idle_each(now).into_iter().map(move |(proc, spec)| (job, proc, spec)));
    let waiting = own_proc.into_iter().chain(others);
    let mut left = STEPS;
    for (job, proc, spec) in waiting.take(LOOKED_AT) {
        if left == 0 {
            break;
        }
        let (matches, rest) = symmetric_match_within(&spec.ad, &ad, &env, left);
        left = rest;
        if !matches || part_of(machine, slot, own, &ad, &spec.request, &spec.ad, &env).is_none() {
            continue;
        }
        let limits = Wants::on_slot(&spec.ad, &ad, &env);
        if pool.holdings().blocked_in(name, &limits).is_none() {
            return Some((job.key.uid.clone(), proc, limits));
        }
    }
    None
}

/// Why [`find_work`] finds no more work for a claim, for people.
pub fn why_no_work(pool: &Pool, name: &SlotName, now: Time) -> &'static str {
    let too_old = |slot: &Slot| {
        let machine = pool.machines().get(&name.machine)?;
        let waits = pool.queues().awake(&slot.claim().submitter).next().is_some();
        Some(waits && is_worn_out(slot, machine.slot_config(&pool.startd(machine), name.slot), now))
    };
    match pool.slots().get(name).and_then(too_old) {
        Some(true) => "the claim is older than CLAIM_WORKLIFE: it takes no more procs",
        _ => "the schedd has nothing more for the claim",
    }
}

/// Whether a claim is older than the CLAIM_WORKLIFE of its slot.
fn is_worn_out(slot: &Slot, config: &SlotConfig, now: Time) -> bool {
    matches!(config.policy.worklife(), ClaimWorklife::Limited(worklife) if now.since(slot.claim().since) > worklife)
}
