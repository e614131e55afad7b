//! Invariants of the pool after each decision, and of claims that were just made.

use std::collections::{BTreeMap, BTreeSet};

use crate::pool::{
    Group, Job, MachineName, NegotiatorId, Pool, Quota, Record, Resources, SlotName, State, SubmitterName,
    Time,
};
use crate::schedd;

/// Checks what must hold after each decision at this time.
pub fn always(pool: &Pool, now: Time) {
    if !pool.is_synced() {
        return;
    }
    carving(pool);
    accounts(pool);
    procs(pool);
    gatherings(pool);
    queues(pool, now);
}

/// The queues are those that follow from the jobs, and no job that may start procs is missing from those that do.
fn queues(pool: &Pool, now: Time) {
    let queues = pool.queues();
    let mut names: BTreeSet<_> = pool.submitters().keys().collect();
    names.extend(pool.jobs().values().filter_map(|job| Some(&job.spec.as_ref()?.submitter)));
    for name in names {
        let of_submitter = |job: &&Job| job.spec.as_ref().is_some_and(|spec| spec.submitter == *name);
        let jobs: Vec<_> =
            pool.jobs().values().filter(of_submitter).filter(|job| !job.is_complete()).collect();
        let mut all: Vec<_> = jobs.iter().map(|job| job.queue_key()).collect();
        all.sort();
        assert!(queues.of(name).eq(&all), "the queue of {name}");
        let awake: BTreeSet<_> = queues.awake(name).collect();
        let may_start = |job: &&&Job| schedd::may_start(pool, job) && job.startable(now) > 0;
        for job in jobs.iter().filter(may_start) {
            assert!(awake.contains(&job.queue_key()), "{} may start procs", job.key.name);
        }
    }
}

fn carved(pool: &Pool) -> BTreeMap<MachineName, Resources> {
    let mut carved: BTreeMap<MachineName, Resources> = BTreeMap::new();
    for slot in pool.slots().values() {
        carved.entry(slot.name().machine.clone()).or_default().add(slot.resources());
    }
    carved
}

fn carving(pool: &Pool) {
    let carved = carved(pool);
    for (name, machine) in pool.machines() {
        let sum = carved.get(name).cloned().unwrap_or_default();
        assert!(
            sum.fits_in(&machine.carved) && machine.carved.fits_in(&sum),
            "{name}: the slots hold {sum}, the machine says {}",
            machine.carved
        );
        for (resource, ids) in &sum.devices {
            let once: BTreeSet<_> = ids.iter().collect();
            assert_eq!(once.len(), ids.len(), "{name}: of {resource}, {ids:?} are held");
        }
    }
    for slot in pool.slots().values() {
        assert!(pool.machines().contains_key(&slot.name().machine), "{} is on no machine", slot.name());
        assert!(
            slot.record() == Record::Deleting || !matches!(slot.state(), State::Owner | State::Unclaimed(_)),
            "{} rests in {:?}",
            slot.name(),
            slot.state()
        );
        assert_eq!(pool.slot_of(&slot.claim().id).map(crate::pool::Slot::name), Some(slot.name()));
    }
}

fn accounts(pool: &Pool) {
    let mut used: BTreeMap<_, (u64, f64)> = BTreeMap::new();
    for slot in pool.slots().values().filter(|slot| !slot.is_discounted()) {
        let with = pool.answering(&slot.claim().negotiator);
        let sum = used.entry((slot.claim().submitter.clone(), with)).or_default();
        *sum = (sum.0 + 1, sum.1 + slot.claim().weight);
    }
    for (submitter, weight) in orphans(pool) {
        let sum = used.entry((submitter, pool.answering(&NegotiatorId::Unnamed))).or_default();
        *sum = (sum.0 + 1, sum.1 + weight);
    }
    for submitter in pool.submitters().values() {
        for (with, account) in submitter.accounts.iter() {
            let name = &submitter.name;
            let (slots, weight) = used.remove(&(name.clone(), with.clone())).unwrap_or_default();
            assert_eq!(account.resources_used, slots, "{name} with {with:?}");
            assert!((account.weighted_resources_used - weight).abs() < 1e-6, "{name} with {with:?}");
        }
    }
    assert!(used.is_empty(), "{used:?} are charged to nobody");
}

/// The submitters of the pods that live without a claim, each with the CPUs that the pod requests.
fn orphans(pool: &Pool) -> Vec<(SubmitterName, f64)> {
    let lives = pool.orphans().values().filter(|pod| pod.machine.is_some() && !pod.is_over());
    let of_job = lives.filter_map(|pod| {
        let job = pool.jobs().get(&pod.job).filter(|job| job.owns(pod))?;
        let cpus = f64::from(i32::try_from(pod.requests.milli_cpu).unwrap()) / 1000.0;
        Some((job.charged_for(pod.proc), if pod.requests.is_unknown() { 1.0 } else { cpus }))
    });
    of_job.collect()
}

fn procs(pool: &Pool) {
    let mut numbers = BTreeSet::new();
    for job in pool.jobs().values() {
        let name = &job.key.name;
        assert!(numbers.insert(job.cluster_id), "{name}: two jobs are cluster {}", job.cluster_id);
        for (proc, slot) in &job.active {
            let ended = job.succeeded.contains(*proc) || job.failed.contains(*proc);
            assert!(!job.idle.contains(*proc) && !ended, "{name}-{proc} is two things");
            let holder = pool.slots().get(slot).filter(|slot| {
                slot.claim().last.job.uid == job.key.uid
                    && slot.claim().last.proc == *proc
                    && !slot.is_vacant()
            });
            assert!(holder.is_some(), "{name}-{proc} is active in {slot}, which does not have it");
        }
        for proc in job.succeeded.iter().chain(job.failed.iter()).chain(job.removed.iter()) {
            assert!(!job.idle.contains(proc), "{name}-{proc} is done and idle");
            let ends = [&job.succeeded, &job.failed, &job.removed];
            assert_eq!(ends.iter().filter(|ends| ends.contains(proc)).count(), 1, "{name}-{proc}");
            assert!(!job.on_hold.contains_key(&proc) && !job.history.contains_key(&proc), "{name}-{proc}");
        }
        if let Some(spec) = job.spec.as_ref().filter(|_| !job.removing) {
            for proc in 0..spec.count {
                let known = job.idle.contains(proc)
                    || job.active.contains_key(&proc)
                    || job.on_hold.contains_key(&proc)
                    || job.is_done(proc);
                assert!(known, "{name}-{proc} is lost");
            }
            assert!(job.idle.iter().all(|proc| proc < spec.count), "{name}: {:?}", job.idle);
        }
    }
}

/// Checks what must hold for claims that were just made: they fit their machines, and keep quotas and ceilings.
pub fn claims_made(pool: &Pool, before: &BTreeSet<SlotName>) {
    let carved = carved(pool);
    for slot in pool.slots().values().filter(|slot| !before.contains(slot.name())) {
        let machine = pool.machines().get(&slot.name().machine).unwrap();
        let sum = carved.get(&slot.name().machine).unwrap();
        let (own, total) = (slot.resources(), &machine.total);
        let fits = (own.cpus == 0 || sum.cpus <= total.cpus)
            && (own.memory_mib == 0 || sum.memory_mib <= total.memory_mib)
            && (own.disk_kib == 0 || sum.disk_kib <= total.disk_kib)
            && own.extended.iter().all(|(name, n)| *n == 0 || sum.amount(name) <= total.amount(name));
        assert!(fits, "{} is carved from {total}, and all slots hold {sum}", slot.name());
        caps(pool, &slot.claim().submitter, slot.claim().group.as_ref().map(crate::pool::GroupName::as_str));
    }
}

fn caps(pool: &Pool, submitter: &crate::pool::SubmitterName, group: Option<&str>) {
    let held = |counts: &dyn Fn(&SubmitterName) -> bool| -> f64 {
        let slots = pool.slots().values().filter(|slot| !slot.is_discounted());
        let claims = slots.map(|slot| (slot.claim().submitter.clone(), slot.claim().weight));
        claims.chain(orphans(pool)).filter(|(who, _)| counts(who)).map(|(_, weight)| weight).sum()
    };
    if let Some(ceiling) = pool.submitters().get(submitter).and_then(|submitter| submitter.ceiling) {
        let sum = held(&|who| who == submitter);
        assert!(sum <= ceiling + 1e-6, "{submitter} holds {sum} of {ceiling}");
    }
    let owner = submitter.owner();
    if let Some(ceiling) = pool.submitters().get(&owner).and_then(|owner| owner.ceiling) {
        let sum = held(&|who| who.owner() == owner);
        assert!(sum <= ceiling + 1e-6, "the submitters of {owner} hold {sum} of {ceiling}");
    }
    let Some(group) = group.map(str::to_ascii_lowercase) else { return };
    let within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}."));
    let strict = |group: &&Group| group.accept_surplus != Some(true) && group.autoregroup != Some(true);
    for declared in pool.groups().values().filter(strict) {
        let outer = declared.name.as_str().to_ascii_lowercase();
        if let (true, Quota::Static(quota)) = (within(&group, &outer), declared.quota) {
            let sum = held(&|who| {
                let own = who.as_str().rsplit_once('.').map(|(group, _)| group.to_ascii_lowercase());
                own.is_some_and(|own| within(&own, &outer))
            });
            assert!(sum <= quota + 1e-6, "group {outer} holds {sum} of {quota}");
        }
    }
}

/// A claim that waits for several slots and the slots that make room refer to each other, and what is kept for the
/// claim is there.
pub fn gatherings(pool: &Pool) {
    let mut parts = BTreeSet::new();
    for (id, gathering) in pool.gatherings() {
        let job = pool.jobs().get(&gathering.claim.last.job.uid);
        assert!(job.is_none_or(|job| job.waits_for.get(id) == Some(&gathering.slots)));
        for name in &gathering.slots {
            let next = pool.slots()[name].preemptor().unwrap();
            assert!(next.part && next.claim.id == *id && parts.insert(name), "{name}: {next:?}");
        }
    }
    for slot in pool.slots().values() {
        let part = slot.preemptor().is_some_and(|next| next.part);
        assert_eq!(part, parts.contains(slot.name()), "{}", slot.name());
    }
    for (uid, job) in pool.jobs() {
        let known = job.waits_for.iter().all(|(id, slots)| {
            pool.gatherings().contains_key(id) || slots.iter().all(|name| pool.slots().contains_key(name))
        });
        assert!(known, "{uid:?}: {:?}", job.waits_for);
    }
    for machine_slot in pool.machines().values().flat_map(|machine| machine.machine_slots.values()) {
        let Some(kept) = &machine_slot.kept else { continue };
        let mut left = machine_slot.total.clone();
        left.subtract(&machine_slot.carved);
        assert!(kept.fits_in(&left.floor_at_zero()), "{kept} is kept");
    }
}
