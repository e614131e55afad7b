//! Drives claimed slots from step to step, and does what the steps ask for.

use super::evict::{ask_agent_to_kill, delete_pod, give_up, kill_by_agent, kill_pod, suspend, vacate_pod};
use super::quotas::Moment;
use crate::pool::{
    Activation, BackfillStage, Cause, ClaimPlan, DrainSchedule, Effect, Fence, Fenced, Job, JobSpec, Machine,
    Offer, PodPlan, PodRef, Pool, Record, Resources, Retention, Slot, SlotName, StartdConfig, State, Time,
};
use crate::schedd::{self, Place};
use crate::startd::policy::{Asker, is_polled};
use crate::startd::{self, Change, Chore, Common, Grace, Pace, Step, Transition, View};
use classad::{Ad, Env};

/// The reason of a pod's end that nobody confirms, when it is certain that nothing of the pod runs.
const UNCONFIRMED: &str = "its pod was deleted, and nothing of it runs any more";

/// More steps than any slot takes at one time. A loop in the table would end here instead of never.
const MOST_STEPS: usize = 32;

/// Drives a slot as far as it goes now.
pub(super) fn drive(pool: &mut Pool, name: &SlotName, moment: &Moment, effects: &mut Vec<Effect>) {
    let (mut changed, mut look_again) = (false, None);
    let now = moment.now;
    keep_ad(pool, name, moment);
    startd::keep_deadline(pool, &name.machine, now);
    for _ in 0..MOST_STEPS {
        let Some(step) = with_view(pool, name, moment, now, |slot, view, _| startd::next(slot, view)) else {
            break;
        };
        match step {
            Step::Rest => break,
            // Pods of the job are made too slowly: others can use the machine meanwhile.
            Step::Do(Chore::CreatePod) if lacks_pods(pool, name, now) => pool.withdraw(name),
            Step::Do(Chore::CreatePod) if !pool.may_create_pod(name) => {
                look_again = Some(now + schedd::SLOW_POD);
                break;
            }
            Step::Take(transition, why, change) => changed |= take(pool, name, transition, why, change, now),
            Step::Do(chore) => perform(pool, name, &chore, moment, effects),
        }
    }
    set_alarm(pool, name, moment, look_again);
    pool.note_unrecorded(name);
    pool.note_creation(name, now);
    if changed {
        pool.step_slot(name, Slot::rests);
        pool.slot_rests(name);
    }
}

/// If the policy is about to be evaluated, makes the ad that all slots of the machine share, once for all of them.
fn keep_ad(pool: &mut Pool, name: &SlotName, moment: &Moment) {
    let asks =
        |slot: &Slot, view: &View, job: Option<&Ad>| is_polled(view.policy, slot.state(), view.agent, job);
    if with_view(pool, name, moment, moment.now, asks) == Some(true) {
        pool.keep_ads(&name.machine, startd::keep_machine_ad);
    }
}

/// Calls `look` with a slot, its view at `now`, and its job's ad. The quotas are those in force at `moment`.
fn with_view<T>(
    pool: &Pool,
    name: &SlotName,
    moment: &Moment,
    now: Time,
    look: impl FnOnce(&Slot, &View, Option<&Ad>) -> T,
) -> Option<T> {
    let slot = pool.slots().get(name)?;
    let machine = pool.machines().get(&name.machine)?;
    let config = pool.startd(machine);
    let job = pool.jobs().get(&slot.claim().last.job.uid);
    let ad = pool.spec_of(&slot.claim().last).map(|spec| &spec.ad);
    let next = slot.preemptor().and_then(|next| pool.jobs().get(&next.claim.last.job.uid));
    let next_ad = slot.preemptor().and_then(|next| pool.spec_of(&next.claim.last)).map(|spec| &spec.ad);
    let proc = slot.claim().last.proc;
    let stands_still = slot.active().is_some_and(|running| machine.suspends(&running.pod.uid));
    let policy = &machine.slot_config(&config, name.slot).policy;
    let silent = pool.heartbeats().silent_since(&name.machine, now);
    let carried = slot.running().and_then(|running| running.lease);
    let lease = || carried.unwrap_or_else(|| startd::claim_lease(policy, ad, &Env::at(now.secs())));
    let broken = || {
        let machine_slot = machine.machine_slots.get(&name.slot)?;
        startd::broken(machine, machine_slot, &config)
    };
    let view = View {
        offered: machine.offer == Offer::Offered && broken().is_none(),
        off: startd::off(pool, machine, now),
        wanted: job.is_some_and(|job| {
            job.active.get(&proc) == Some(slot.name())
                && schedd::may_start(pool, job)
                && still_counted(job, proc)
                && !job.is_out(proc)
        }) && is_within_caps(pool, slot, moment)
            && (!slot.is_assigned() || !pool.has_stray_pod(&slot.claim().id)),
        settled: job.is_none_or(|job| job.is_settled(proc)),
        acts_recorded: job.is_none_or(Job::acts_are_recorded),
        not_before: job.and_then(|job| job.starts_at(proc, slot.claim().since)),
        agent: machine.agent,
        stands_still,
        lease_ends: silent.map(|heard| heard + lease()),
        fence: fence(pool, slot, now),
        earlier_pod: job.is_some_and(|job| job.earlier_pods.contains_key(&proc)),
        starts_by: starts_by(slot, job),
        backfill: backfill_stage(pool, machine, slot),
        draining: pace(machine, slot),
        common: machine
            .draining
            .as_ref()
            .and_then(|draining| Some(Common { since: draining.since, until: draining.deadline? })),
        next_wanted: next.is_some_and(|job| schedd::may_start(pool, job) && !job.idle.is_empty())
            && super::preemption::may_go_on(pool, slot, moment),
        policy,
        answers: &Asker::new(machine, &config, slot, ad, next_ad, now),
        now,
    };
    Some(look(slot, &view, ad))
}

/// When a pod that cannot start is given up: at once if other procs of its job are held for the same reason, or if the
/// job was edited since.
fn starts_by(slot: &Slot, job: Option<&Job>) -> Option<Time> {
    let (running, job) = (slot.running()?, job?);
    let stuck = running.stuck.as_ref()?;
    let edited = running.is_of_before(job.generation);
    Some(stuck.until(edited || job.is_held_for(stuck.obstacle.hold.code)))
}

/// Whether the agent has ended the slot's pod. The pod must have a lease, by which the agent acts, and must be known to
/// be deleted.
fn fence(pool: &Pool, slot: &Slot, now: Time) -> Fence {
    let pod = slot.running().and_then(|running| {
        Some(Fenced { uid: &running.pod.uid, lease: running.lease?, doomed: running.doomed? })
    });
    pod.map_or(Fence::None, |pod| pool.fences().of(&slot.name().machine, &pod, now))
}

/// The stage of the backfill work that still holds resources which a claim without a pod needs.
fn backfill_stage(pool: &Pool, machine: &Machine, slot: &Slot) -> BackfillStage {
    let waits = matches!(slot.state(), State::Backfill(_)) || slot.is_assigned();
    let machine_slot = machine.machine_slots.get(&slot.name().slot).filter(|_| waits);
    if machine_slot
        .is_none_or(|machine_slot| !pool.backfill().holds(machine, machine_slot, &Resources::default()))
    {
        return BackfillStage::None;
    }
    match pool.backfill().stage(&SlotName { dynamic: None, ..slot.name().clone() }) {
        // This slot has no work of its own: the work of the machine's other slots holds too much.
        BackfillStage::None => BackfillStage::Coming,
        own => own,
    }
}

/// How a claimed slot is drained. A claim that was made during the drain may stay as long as others may fill in, and
/// has no retirement after that.
fn pace(machine: &Machine, slot: &Slot) -> Option<Pace> {
    let draining = machine.draining.as_ref()?;
    let accepted_meanwhile = slot.claim().since > draining.since;
    match draining.schedule {
        _ if accepted_meanwhile && draining.start.is_some() => None,
        DrainSchedule::Fast => Some(Pace::Fast),
        DrainSchedule::Quick => Some(Pace::Quick),
        DrainSchedule::Graceful if accepted_meanwhile => Some(Pace::Quick),
        DrainSchedule::Graceful => Some(Pace::Graceful),
    }
}

/// Whether quotas, ceilings and concurrency limits still leave room for a claim that is not written yet. Some may have
/// been lowered while the claim waited for backfill work to end, or for the API server to accept it.
fn is_within_caps(pool: &Pool, slot: &Slot, moment: &Moment) -> bool {
    let waits = match slot.state() {
        State::Backfill(_) => true,
        State::Matched => matches!(slot.record(), Record::Refused { .. }),
        _ => false,
    };
    if !waits {
        return true;
    }
    let quotas = moment.quotas(pool, &slot.claim().negotiator);
    schedd::check_again(pool, slot.name(), slot.claim(), Place::Own(slot.claim()), &quotas).is_ok()
}

fn still_counted(job: &Job, proc: u32) -> bool {
    job.spec.as_ref().is_some_and(|spec| proc < spec.count)
}

fn take(
    pool: &mut Pool,
    name: &SlotName,
    transition: &Transition,
    why: &'static str,
    change: Change,
    now: Time,
) -> bool {
    let Some(from) = pool.slots().get(name).map(Slot::state) else { return false };
    if pool.step_slot(name, |slot| startd::take(slot, transition, why, now)) != Some(true) {
        return false;
    }
    pool.transition_taken(name, from);
    pool.review_charge(name, now);
    let Some(before) = pool.slots().get(name).map(|slot| slot.claim().clone()) else { return true };
    pool.step_slot(name, |slot| change.make(slot, now));
    if pool.slots().get(name).is_some_and(|slot| slot.claim().id != before.id) {
        pool.claim_changed(name, &before, now);
    }
    true
}

/// Sets when the slot must be looked at again.
/// Has the slot looked at when it may next have something to do, and at `look_again` at the latest.
fn set_alarm(pool: &mut Pool, name: &SlotName, moment: &Moment, look_again: Option<Time>) {
    if let Some(at) = with_view(pool, name, moment, moment.now, startd::wake) {
        pool.set_alarm(name, at.into_iter().chain(look_again).min());
    }
}

/// Whether the API server has not created a pod of the slot's job for long.
fn lacks_pods(pool: &Pool, name: &SlotName, now: Time) -> bool {
    let job = pool.slots().get(name).and_then(|slot| pool.jobs().get(&slot.claim().last.job.uid));
    job.is_some_and(|job| schedd::lacks_pods(pool, job, now))
}

fn perform(pool: &mut Pool, name: &SlotName, chore: &Chore, moment: &Moment, effects: &mut Vec<Effect>) {
    let now = moment.now;
    match chore {
        Chore::WriteClaim => write_claim(pool, name, effects),
        Chore::CreatePod => create_pod(pool, name, moment, effects),
        Chore::Withdraw => pool.withdraw(name),
        Chore::DeletePod(Grace::Vacating) => {
            let until = kill_foreseen(pool, name, moment);
            vacate_pod(pool, name, until, now, effects);
        }
        Chore::DeletePod(grace) => delete_pod(pool, name, *grace, now, effects),
        Chore::LosePod => pool.pod_lost(name, UNCONFIRMED, now),
        Chore::KillByAgent => kill_by_agent(pool, name, effects),
        Chore::GiveUp => give_up(pool, name, now, effects),
        Chore::KillPod => kill_pod(pool, name, now, effects),
        Chore::AskAgentToKill => ask_agent_to_kill(pool, name, now, effects),
        Chore::ReadAgentLease => {
            pool.ask_agent_lease(&name.machine, now);
            effects.push(Effect::ReadAgentLease { machine: name.machine.clone() });
        }
        Chore::Suspend(still) => suspend(pool, name, *still, effects),
        Chore::Condemn => {
            pool.step_slot(name, |slot| slot.retire(Cause::Preempt));
        }
        Chore::StopWaiting => pool.stop_waiting(name),
        Chore::UntrackPod => untrack_pod(pool, name, effects),
        Chore::FindWork => find_work(pool, name, now),
        Chore::DeleteClaim => delete_claim(pool, name, effects),
        Chore::ReturnSlot => {
            pool.withdraw(name);
            pool.return_slot(name, now);
        }
    }
}

/// When the slot's `KILL`, which is false now, first becomes true by the passing of time alone, if that is before its
/// vacating time ends. If `KILL` becomes true and false in turns, it may be true earlier.
fn kill_foreseen(pool: &Pool, name: &SlotName, moment: &Moment) -> Option<Time> {
    let until = pool.slots().get(name)?.eviction().as_ref()?.until;
    let kills = |at: Time| with_view(pool, name, moment, at, |_, view, _| view.kills()).unwrap_or(false);
    let (mut before, mut at) = (moment.now.secs(), until.secs());
    if !kills(Time::from_secs(at)) {
        return None;
    }
    while at - before > 1 {
        let middle = before + (at - before) / 2;
        if kills(Time::from_secs(middle)) { at = middle } else { before = middle }
    }
    Some(Time::from_secs(at))
}

fn write_claim(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let written = pool.step_slot(name, |slot| {
        let again = slot.state() != State::Matched && slot.may_have_object();
        slot.write_begins();
        (slot.resources().clone(), slot.claim().clone(), again)
    });
    let Some((resources, claim, again)) = written else { return };
    effects.push(Effect::WriteSlot(Box::new(ClaimPlan { slot: name.clone(), resources, claim, again })));
}

fn create_pod(pool: &mut Pool, name: &SlotName, moment: &Moment, effects: &mut Vec<Effect>) {
    let now = moment.now;
    let longest = with_view(pool, name, moment, now, |_, view, _| view.longest_vacating());
    let (Some(machine), Some(slot)) = (pool.machines().get(&name.machine), pool.slots().get(name)) else {
        return;
    };
    let config = pool.startd(machine);
    let job = pool.jobs().get(&slot.claim().last.job.uid);
    let (spec, generation) = (pool.spec_of(&slot.claim().last), job.map(|job| job.generation));
    let policy = &machine.slot_config(&config, name.slot).policy;
    let lease = startd::claim_lease(policy, spec.map(|spec| &spec.ad), &Env::at(now.secs()));
    let run = job.map_or(0, |job| job.history_of(slot.claim().last.proc).starts);
    let part = spec.and_then(|spec| part_of(machine, &config, slot, spec, now));
    let tolerations = config.tolerations.clone();
    let image = spec.and_then(|spec| spec.image.clone());
    // For a claim that an earlier leader made, the rank is not known yet.
    let rank = startd::rank(pool, name, now);
    let requested = pool.step_slot(name, |slot| {
        slot.request_pod(generation, rank);
        (slot.claim().clone(), slot.resources().clone())
    });
    let Some((claim, resources)) = requested else { return };
    effects.push(Effect::CreatePod(Box::new(PodPlan {
        slot: name.clone(),
        // A job that was edited since it got the slot may request more than the slot has.
        resources: part.unwrap_or(resources),
        claim,
        lease,
        longest_vacating: longest.unwrap_or_default(),
        run,
        image,
        tolerations,
    })));
}

/// The part of its slot that a job's pod is to have.
fn part_of(
    machine: &Machine,
    config: &StartdConfig,
    slot: &Slot,
    spec: &JobSpec,
    now: Time,
) -> Option<Resources> {
    let env = Env::at(now.secs());
    let ad = startd::claimed_slot_ad(machine, config, slot, None, &env);
    let own = machine.slot_config(config, slot.name().slot);
    startd::part_of(machine, slot, own, &ad, &spec.request, &spec.ad, &env)
}

fn untrack_pod(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let Some(slot) = pool.slots().get(name) else { return };
    let Activation::Ended(running, _) = slot.activation() else { return };
    let (pod, deleting) = (running.pod.clone(), running.deleting);
    let job = pool.jobs().get(&slot.claim().last.job.uid);
    let delete = !deleting && job.is_none_or(|job| goes(job, slot.claim().last.proc));
    pool.let_remains_go(name);
    if !pool.has_vanished(&pod.uid) {
        untrack(pool, pod, delete, effects);
    }
}

/// Asks the shell to take the tracking finalizer off a pod. The pool notes the request until the pod is seen without
/// the finalizer.
pub(super) fn untrack(pool: &mut Pool, pod: PodRef, delete: bool, effects: &mut Vec<Effect>) {
    pool.untrack(pod.clone(), delete);
    effects.push(Effect::UntrackPod { pod, delete });
}

/// Whether a pod is deleted when its finalizer is taken off. The pod of an evicted proc must be, since the proc's next
/// pod has the same name.
pub(super) fn goes(job: &Job, proc: u32) -> bool {
    if job.removing || !job.is_done(proc) || job.removed.contains(proc) {
        return true;
    }
    match job.spec.as_ref().map(|spec| spec.retention).unwrap_or_default() {
        Retention::Keep => false,
        Retention::KeepFailed => job.succeeded.contains(proc),
        Retention::Delete => true,
    }
}

fn find_work(pool: &mut Pool, name: &SlotName, now: Time) {
    if let Some((job, proc, limits)) = schedd::find_work(pool, name, now) {
        schedd::assign(pool, name, &job, proc, limits, now);
    } else {
        let why = schedd::why_no_work(pool, name, now);
        take(pool, name, &startd::CLAIMED_IDLE_TO_PREEMPTING, why, Change::None, now);
    }
}

/// Ends a claim. Its resources return once its object is gone.
fn delete_claim(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    pool.withdraw(name);
    let over = pool.step_slot(name, |slot| {
        slot.deletion_begins();
        slot.claim().id.clone()
    });
    let Some(claim) = over else { return };
    pool.expect_gone(name, &claim);
    let before = pool.holdings().carried_by(name).map(|claim| claim.id.clone()).collect();
    effects.push(Effect::DeleteSlot { slot: name.clone(), claim: Some(claim), before });
}
