//! The snapshot that a cycle works on: the slots of its negotiator, the jobs that wait, and what their submitters use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::{preemption, quotas, sharing};
use super::{Asking, Negotiation, is_true};
use crate::negotiator::groups::Tree;
use crate::negotiator::{Candidate, Config, Cycle, OwnerInput, Request, SubmitterInput};
use crate::pool::slot_types::by_name;
use crate::pool::{
    AtWork, NegotiatorConfig, NegotiatorId, PODS, Pool, Resources, SlotKind, SlotName, StartdConfig, State,
    Submitter, SubmitterName, Time,
};
use crate::schedd;
use crate::startd::{keep_slot_ad, slot_weight};
use classad::Env;

/// Takes the snapshot for a negotiator's cycle: its slots, the jobs that wait, and what their submitters use of its
/// slots.
pub(in crate::decide) fn snapshot(pool: &mut Pool, one: &AtWork, all: &[AtWork], now: Time) -> Negotiation {
    pool.review_charges(now);
    sharing::survey(pool, now);
    let env = Env::at(now.secs());
    let config = Config::clone(&one.config.cycle);
    let offered = Offered::by(pool, one, all, &env);
    let tree = quotas::tree(pool, one, all, now);
    let pool_weight = sharing::weight(pool, one, &env);
    let asked = Asked::of(pool, one, &tree, now);
    let cycle = Cycle {
        now: now.secs(),
        limits: pool.holdings().book().clone(),
        slots: offered.candidates,
        submitters: asked.submitters,
        others: asked.others,
        owners: asked.owners,
        groups: tree.inputs(pool_weight, config.allow_quota_oversubscription, &asked.used_by_groups),
        ungrouped_used: asked.ungrouped_used,
        pool_weight,
        config,
        ..Cycle::default()
    };
    Negotiation {
        cycle,
        started: now,
        negotiator: one.id.clone(),
        slots: offered.slots,
        asking: asked.asking,
    }
}

/// The slots that a cycle may match.
#[derive(Default)]
struct Offered {
    /// The machine slot or claimed slot behind each candidate.
    slots: Vec<SlotName>,
    candidates: Vec<Candidate>,
}

impl Offered {
    /// The slots of a negotiator: those that are unclaimed, and those that jobs may get by preemption.
    fn by(pool: &mut Pool, one: &AtWork, all: &[AtWork], env: &Env) -> Self {
        let config = &one.config.cycle;
        let several = config.allow_pslot_preemption && config.consider_preemption;
        let mut offered = Self::default();
        offered.add_unclaimed(pool, one, several, env);
        let parents = if several { offered.places() } else { BTreeMap::new() };
        for (slot, mut candidate) in preemption::candidates(pool, config, env) {
            if sharing::has_claimed(all, &one.id, &candidate.ad, env) {
                candidate.parent = parents.get(&SlotName { dynamic: None, ..slot.clone() }).copied();
                offered.add(slot, candidate);
            }
        }
        offered
    }

    fn add(&mut self, slot: SlotName, candidate: Candidate) {
        self.slots.push(slot);
        self.candidates.push(candidate);
    }

    fn add_unclaimed(&mut self, pool: &mut Pool, one: &AtWork, several: bool, env: &Env) {
        for (slot, left, startd) in unclaimed(pool, several) {
            if !pool.sharing().has(&one.id, &slot) {
                continue;
            }
            let ad = pool.keep_ads(&slot.machine, |host| keep_slot_ad(host, slot.slot, &startd));
            let (Some(ad), Some(host)) = (ad.flatten(), pool.machines().get(&slot.machine)) else { continue };
            let own = host.slot_config(&startd, slot.slot);
            let weight = slot_weight(&ad, &left, own, env);
            let share = host.machine_slots.get(&slot.slot);
            let candidate = Candidate {
                carving: Some(Arc::clone(&own.requests)),
                overdrawn: share.map(|share| by_name(&host.overdrawn_in(share))).unwrap_or_default(),
                ..Candidate::new(ad, weight)
            };
            self.add(slot, candidate);
        }
    }

    /// The place of each slot among the candidates.
    fn places(&self) -> BTreeMap<SlotName, usize> {
        self.slots.iter().cloned().enumerate().map(|(place, slot)| (slot, place)).collect()
    }
}

/// Unclaimed slots with something left: partitionable slots, and static slots. Each with what is left and its
/// configuration. Slots with backfill work are included, since the work ends for a claim. If several dynamic slots may
/// make room (`several`), full partitionable slots with dynamic slots are included, too.
fn unclaimed(pool: &Pool, several: bool) -> Vec<(SlotName, Resources, Arc<StartdConfig>)> {
    let slots = pool
        .machines()
        .values()
        .flat_map(|machine| machine.machine_slots.values().map(move |slot| (machine, slot)));
    let left = slots
        .filter(|(_, slot)| matches!(slot.state(), State::Unclaimed(_) | State::Backfill(_)) && !slot.claimed)
        .filter_map(|(machine, slot)| {
            let left = machine.available_in(slot);
            let may_be_room = several && !slot.dynamic.is_empty();
            let full = left.cpus == 0 && !may_be_room
                || left.extended.get(PODS) == Some(&0)
                || slot.kind == SlotKind::Static && !slot.total.fits_in(&left);
            (!full).then(|| (slot.name(&machine.facts.name), left, pool.startd(machine)))
        });
    left.collect()
}

/// The submitters of a cycle, and what they use of its negotiator's slots.
#[derive(Default)]
struct Asked {
    submitters: Vec<SubmitterInput>,
    /// The procs behind each request of each of these submitters.
    asking: Vec<Vec<Asking>>,
    others: Vec<SubmitterInput>,
    owners: Vec<OwnerInput>,
    /// The slot weight that the submitters of each group use.
    used_by_groups: Vec<f64>,
    /// The slot weight that the submitters of no group use.
    ungrouped_used: f64,
}

impl Asked {
    fn of(pool: &Pool, one: &AtWork, tree: &Tree, now: Time) -> Self {
        let (owners, places) = owners(pool, &one.id);
        let mut asked = Self { owners, used_by_groups: vec![0.0; tree.groups().len()], ..Self::default() };
        for submitter in pool.submitters().values() {
            let group = tree.group_of(submitter.name.as_str());
            asked.count_use(group, submitter.accounts.used_with(&one.id));
            let (requests, asking) = requests(pool, submitter, &one.config, now);
            if requests.is_empty() && !uses_slots(submitter, &one.id) {
                continue;
            }
            let owner = places.get(&submitter.name.owner()).copied();
            let input = SubmitterInput { owner, group, requests, ..accounts(pool, submitter, one, now) };
            asked.add(input, asking, one, now);
        }
        asked
    }

    fn count_use(&mut self, group: Option<usize>, used: f64) {
        match group.and_then(|group| self.used_by_groups.get_mut(group)) {
            Some(sum) => *sum += used,
            None => self.ungrouped_used += used,
        }
    }

    fn add(&mut self, input: SubmitterInput, asking: Vec<Asking>, one: &AtWork, now: Time) {
        let served = !input.requests.is_empty() || input.weighted_used > 0.0;
        let constraint = one.config.cycle.submitter_constraint.as_ref();
        if served && is_true(constraint, &input.ad(), &Env::at(now.secs())) {
            self.submitters.push(input);
            self.asking.push(asking);
        } else {
            self.others.push(input);
        }
    }
}

/// Whether a submitter uses slots: of this negotiator, or of any.
fn uses_slots(submitter: &Submitter, of: &NegotiatorId) -> bool {
    submitter.accounts.used_with(of) > 0.0 || submitter.accounts.resources_used() > 0
}

/// A submitter as its accounts with a negotiator tell, without what it asks for.
fn accounts(pool: &Pool, submitter: &Submitter, one: &AtWork, now: Time) -> SubmitterInput {
    let config = &*one.config;
    let account = submitter.account_with(&one.id).at(now.millis(), config.halflife.as_secs_f64());
    // Floor and ceiling limit all that a submitter holds, whichever negotiator matched it.
    let elsewhere = submitter.accounts.used_elsewhere(&one.id);
    let of_these = |limit: Option<f64>| limit.map(|limit| (limit - elsewhere).max(0.0));
    SubmitterInput {
        name: submitter.name.as_str().to_owned(),
        effective_priority: account.effective_priority(pool.priority_factor(submitter, config)),
        weighted_used: submitter.accounts.used_with(&one.id),
        running: submitter.accounts.resources_used(),
        floor: of_these(submitter.floor),
        ceiling: of_these(submitter.ceiling),
        ..SubmitterInput::default()
    }
}

/// The owners that have ceilings, each with what all its submitters use of a negotiator's slots and what they may use
/// of these slots; and their places in the list by name.
fn owners(pool: &Pool, with: &NegotiatorId) -> (Vec<OwnerInput>, BTreeMap<SubmitterName, usize>) {
    let (mut owners, mut places) = (Vec::new(), BTreeMap::new());
    for (name, submitter) in pool.submitters() {
        // A negative ceiling means no ceiling, as in HTCondor.
        let Some(ceiling) = submitter.ceiling.filter(|ceiling| *ceiling >= 0.0 && name.owner() == *name)
        else {
            continue;
        };
        places.insert(name.clone(), owners.len());
        owners.push(OwnerInput { name: name.as_str().to_owned(), weighted_used: 0.0, ceiling });
    }
    if places.is_empty() {
        return (owners, places);
    }
    for submitter in pool.submitters().values() {
        let place = places.get(&submitter.name.owner());
        if let Some(owner) = place.and_then(|place| owners.get_mut(*place)) {
            owner.weighted_used += submitter.accounts.used_with(with);
            owner.ceiling -= submitter.accounts.used_elsewhere(with);
        }
    }
    for owner in &mut owners {
        owner.ceiling = owner.ceiling.max(0.0);
    }
    (owners, places)
}

/// A submitter's waiting jobs for which `NEGOTIATOR_JOB_CONSTRAINT` is true, in the order of the queue.
fn requests(
    pool: &Pool,
    submitter: &Submitter,
    config: &NegotiatorConfig,
    now: Time,
) -> (Vec<Request>, Vec<Asking>) {
    let env = Env::at(now.secs());
    let constraint = config.cycle.job_constraint.as_ref();
    let queues = pool.queues();
    let waiting = queues.awake(&submitter.name).filter_map(|key| {
        let job = pool.jobs().get(&key.job().uid).filter(|job| schedd::may_start(pool, job))?;
        let each = if schedd::lacks_pods(pool, job, now) { Vec::new() } else { job.unmatched_each(now) };
        let requests = each.into_iter().filter_map(|(own, count)| {
            let spec = own.as_ref().map(|own| own.spec()).or(job.spec.as_ref())?;
            let request = Request { ad: spec.ad.clone(), count };
            is_true(constraint, &spec.ad, &env).then(|| (request, Asking { job: job.key.uid.clone(), own }))
        });
        Some(requests.collect::<Vec<_>>())
    });
    waiting.flatten().unzip()
}
