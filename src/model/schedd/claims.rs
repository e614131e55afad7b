//! Claims: what a match becomes, and what is done with a claim whose job has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::negotiator::groups::{Allotment, Group, Tree};
use crate::pool::limits::Wants;
use crate::pool::{
    Activation, Backfill, Claim, ClaimId, ClaimWorklife, Given, GroupName, Job, JobFinalizer, JobUid,
    LastTransition, NegotiatorId, Noted, Pool, Slot, SlotKind, SlotName, State, Submitter, SubmitterName,
    Time,
};
use crate::startd::{
    self, Carving, UNCLAIMED_TO_MATCHED, carve, claimed_slot_ad, end_benchmarks, keep_slot_ad, part_of,
    slot_weight, unclaimed_slot_ad,
};
use classad::{Env, symmetric_match_within};

/// How many jobs of a queue are looked at for one slot, so that a long queue of jobs that do not fit costs bounded work.
const LOOKED_AT: usize = 256;

/// The steps of evaluation that looking at them may cost: everything else waits meanwhile. A job that needs more than is left
/// is left to the negotiator.
const STEPS: u32 = 300_000;

/// A job that the negotiator matched with a slot, and on what terms.
#[derive(Clone, Copy)]
pub struct Matched<'a> {
    /// The job.
    pub job: &'a JobUid,
    /// Whether it was in the root's turn though the submitter is in a group: by `GROUP_AUTOREGROUP`.
    pub regrouped: bool,
    /// What its negotiator lets groups and submitters have.
    pub quotas: &'a Quotas,
}

impl Matched<'_> {
    /// The claim on a slot that comes of it, at this weight and with what it takes of limited things. Of one that waits for its slot
    /// it is the schedd's to say, when that is free, which proc it will be. None where the job has gone.
    pub fn claim(
        self,
        pool: &mut Pool,
        slot: &SlotName,
        proc: u32,
        weight: f64,
        limits: Wants,
        now: Time,
    ) -> Option<Claim> {
        let id = ClaimId::new(slot, now, pool.next_claim_number());
        let cluster = pool.jobs().get(self.job)?;
        let spec = cluster.spec.as_ref()?;
        Some(Claim {
            id,
            submitter: spec.submitter.clone(),
            group: spec.group.clone(),
            negotiator: self.quotas.negotiator.clone(),
            regrouped: self.regrouped,
            weight,
            limits,
            since: now,
            job: cluster.key.clone(),
            cluster: cluster.cluster,
            proc,
        })
    }
}

/// Turns a match into a claim: the static slot, or a dynamic slot, for the next proc of the job that was matched. It is checked
/// against what is so now, and against quotas and ceilings. Whether one was made.
pub fn claim_match(pool: &mut Pool, slot: &SlotName, matched: Matched, now: Time) -> bool {
    let made = claim_one(pool, slot, matched, now).is_some();
    // What is left is another slot: its ad is made once for all that are tried on it.
    if made && let Some(host) = pool.machines().get(&slot.machine) {
        let config = pool.startd(host);
        pool.keep_ads(&slot.machine, |host| keep_slot_ad(host, slot.slot, &config));
    }
    made
}

/// Claims a static slot, or carves one dynamic slot, for the next proc of a job.
fn claim_one(pool: &mut Pool, on: &SlotName, matched: Matched, now: Time) -> Option<u32> {
    let env = Env::at(now.secs());
    let host = pool.machines().get(&on.machine)?;
    let standing = host.standing.get(&on.slot).filter(|slot| !slot.claimed)?;
    let cluster = pool.jobs().get(matched.job).filter(|cluster| may_start(pool, cluster))?;
    let spec = cluster.spec.clone()?;
    let proc = cluster.next_idle(now)?;
    if !matches!(standing.state, State::Unclaimed(_) | State::Backfill(_)) {
        return None;
    }
    let config = pool.startd(host);
    let own = host.slot_config(&config, on.slot);
    let ad = unclaimed_slot_ad(host, standing, &config);
    let resources = match carve(host, standing, own, &ad, &spec.request, &spec.ad, &env) {
        Carving::Slot(resources) => resources,
        Carving::Unwilling => {
            let why = format!(
                "{on} matches the job, and what would be carved of it does not: START of the node's policy is not true for \
                 a dynamic slot of that size"
            );
            set_aside(pool, matched.job, "SlotUnwilling", why, now);
            return None;
        }
        Carving::Refused => return None,
    };
    let weight = if pool.uses_slot_weights(&matched.quotas.negotiator) {
        slot_weight(&ad, &resources, own, &env)
    } else {
        1.0
    };
    if !within_caps(pool, &spec.submitter, spec.group.as_ref(), weight, matched.quotas) {
        return None;
    }
    let limits = Wants::on_slot(&spec.ad, &ad, &env);
    if pool.holdings().book().blocked(&limits).is_some() {
        return None;
    }
    let dynamic = (standing.kind == SlotKind::Partitionable).then(|| standing.free_dynamic_id());
    let name = SlotName { dynamic, ..on.clone() };
    let before = match standing.state {
        // Work that holds what the claim is to have ends first: until then the slot stays what it was matched as.
        state @ State::Backfill(_) if pool.backfill().holds(host, standing, &resources) => state,
        State::Backfill(_) => State::Backfill(Backfill::Idle),
        other => other,
    };
    let before = (before, standing.last.clone());
    let claim = matched.claim(pool, &name, proc, weight, limits.clone(), now)?;
    end_benchmarks(pool, on, now);
    let slot = match before {
        (State::Backfill(_), last) => {
            Slot { last, ..Slot::new(name.clone(), resources, claim, before.0, now) }
        }
        _ => Slot {
            // A dynamic slot is made for the match: it never was Unclaimed on its own, but its partitionable slot was.
            last: Some(LastTransition {
                number: UNCLAIMED_TO_MATCHED.number,
                why: "matched by the negotiator".into(),
                at: now,
            }),
            ..Slot::new(name.clone(), resources, claim, State::Matched, now)
        },
    };
    let matched_now = pool.is_traced() && slot.state == State::Matched;
    let noted = matched_now.then(|| Noted::of_claimed(&slot, UNCLAIMED_TO_MATCHED.from)).flatten();
    pool.carve(slot, now).then_some(())?;
    pool.note(noted);
    assign(pool, &name, matched.job, proc, limits, now);
    Some(proc)
}

/// Lets a job rest for a while that was matched in vain: the negotiator does not know why, and would match it so again.
pub fn set_aside(pool: &mut Pool, job: &JobUid, reason: &'static str, why: String, now: Time) {
    let rested = pool.edit_job(job, |cluster| (cluster.key.clone(), cluster.rest(now)));
    if let Some((key, until)) = rested {
        pool.wake_at(until);
        pool.warn(&key, reason, "Claim", why);
    }
}

/// Whether a proc of a job waits that may start now.
pub fn waits(pool: &Pool, job: &JobUid, now: Time) -> bool {
    let cluster = pool.jobs().get(job).filter(|cluster| may_start(pool, cluster));
    cluster.is_some_and(|cluster| cluster.next_idle(now).is_some())
}

/// Whether a job may start procs at all.
pub fn may_start(pool: &Pool, cluster: &Job) -> bool {
    !cluster.removing
        && cluster.finalizer == JobFinalizer::Held
        && cluster.problems.is_empty()
        && super::group_problem(pool, cluster).is_none()
        && cluster.spec.is_some()
}

/// How long the API server may take to make a pod before the pod's job gets no more claims.
const SLOW_POD: Duration = Duration::from_secs(30);

/// Whether the API server has not made a pod of the job for 30 s, for example since a webhook of the job's namespace hangs.
/// A claim holds its machine meanwhile, so the job gets no more claims: others can use the machines.
pub fn lacks_pods(pool: &Pool, cluster: &Job, now: Time) -> bool {
    let late = |slot: &Slot| {
        slot.activation == Activation::Requested && now.since(slot.entered_activity) >= SLOW_POD
    };
    cluster.active.values().filter_map(|name| pool.slots().get(name)).any(late)
}

/// Gives a proc to a claim, with what it takes of limited things. From now on the slot ranks others against this job.
pub fn assign(pool: &mut Pool, name: &SlotName, job: &JobUid, proc: u32, limits: Wants, now: Time) {
    if !pool.assign(name, job, proc, limits) {
        return;
    }
    let rank = startd::rank(pool, name, now);
    pool.edit_slot(name, |slot| slot.rank = rank);
}

/// The next proc of the same submitter for a claim whose job has ended, within `CLAIM_WORKLIFE`: the claim is used again
/// without the negotiator. The slot's own expressions are asked again, as at any activation, and concurrency limits too:
/// what the claim took for the last job goes back if the next one does not want it. A job that requests more than a dynamic
/// slot holds does not get the slot, even if the job's Requirements leave out how much the slot has.
pub fn find_work(pool: &Pool, name: &SlotName, now: Time) -> Option<(JobUid, u32, Wants)> {
    let slot = pool.slots().get(name).filter(|slot| !slot.spent && !pool.has_stray_pod(&slot.claim.id))?;
    let machine = pool.machines().get(&name.machine)?;
    let config = pool.startd(machine);
    let own = machine.slot_config(&config, name.slot);
    if let ClaimWorklife::Limited(worklife) = own.policy.worklife()
        && now.since(slot.claim.since) > worklife
    {
        return None;
    }
    let env = Env::at(now.secs());
    let queue = &pool.submitters().get(&slot.claim.submitter)?.queue;
    let ad = claimed_slot_ad(machine, &config, slot, None, &env);
    let waiting = queue.iter().filter_map(|key| {
        let cluster = pool.jobs().get(&key.job().uid).filter(|cluster| may_start(pool, cluster))?;
        Some((cluster, cluster.next_idle(now)?))
    });
    let mut left = STEPS;
    for (cluster, proc) in waiting.take(LOOKED_AT) {
        let Some(spec) = cluster.spec.as_ref().filter(|_| left > 0) else { continue };
        let (matches, rest) = symmetric_match_within(&spec.ad, &ad, &env, left);
        left = rest;
        if !matches || part_of(machine, slot, own, &ad, &spec.request, &spec.ad, &env).is_none() {
            continue;
        }
        let limits = Wants::on_slot(&spec.ad, &ad, &env);
        if pool.holdings().blocked_in(name, &limits).is_none() {
            return Some((cluster.key.uid.clone(), proc, limits));
        }
    }
    None
}

/// What a group may hold.
#[derive(Clone, Copy, Debug)]
struct Cap {
    /// The quota in force of the group and the groups inside it.
    quota: f64,
    /// That of the group alone.
    own_quota: f64,
    /// The most that its own submitters may hold, surplus included.
    own: f64,
    /// The most that they and those of the groups inside it may hold, surplus included.
    subtree: f64,
    /// Whether its jobs also compete with those of no group, where no quota binds them.
    autoregroup: bool,
}

/// Quotas in force for claims that a negotiator makes: the most slot weight that each group may hold of its slots, with its
/// parents, and those of no group.
#[derive(Debug, Default)]
pub struct Quotas {
    /// Whose claims.
    pub negotiator: NegotiatorId,
    /// Group names in lower case.
    by_name: BTreeMap<String, Cap>,
    /// What those of no group may hold; none where there are no groups.
    ungrouped: Option<f64>,
}

impl Quotas {
    /// No quotas, where there are no groups.
    pub fn none(negotiator: NegotiatorId) -> Self {
        Self { negotiator, ..Self::default() }
    }

    /// Works the quotas out from the groups declared and the weight of the negotiator's slots. What its last cycle gave beyond
    /// them counts where groups accept surplus.
    pub fn new(
        negotiator: NegotiatorId,
        tree: &Tree,
        pool_weight: f64,
        oversubscription: bool,
        given: &Given,
    ) -> Self {
        let allotments = tree.assign(pool_weight, oversubscription);
        let cap = |group: &Group, allotment: &Allotment| {
            let name = group.name.to_ascii_lowercase();
            let given = given.groups.get(&name).copied().unwrap_or_default();
            let surplus = if group.accept_surplus { given.subtree_limit } else { 0.0 };
            let cap = Cap {
                quota: allotment.subtree_quota,
                own_quota: allotment.quota,
                // What the groups inside it leave a group's own submitters have whether or not it accepts surplus.
                own: given.limit.max(allotment.quota),
                subtree: surplus.max(allotment.subtree_quota),
                autoregroup: group.autoregroup,
            };
            (name, cap)
        };
        let regroups = tree.groups().iter().any(|group| group.autoregroup);
        let of_root = given.root.map_or(0.0, |root| root.limit).max(allotments.root.quota);
        Self {
            negotiator,
            by_name: tree.groups().iter().zip(&allotments.groups).map(|(g, a)| cap(g, a)).collect(),
            ungrouped: (!tree.groups().is_empty() && !regroups).then_some(of_root),
        }
    }

    /// The quota in force of a group and the groups inside it, without surplus; none when it is not declared.
    pub fn of(&self, group: &str) -> Option<f64> {
        self.cap(group).map(|cap| cap.quota)
    }

    /// The quota in force of a group's own submitters, without surplus; none when it is not declared.
    pub fn own(&self, group: &str) -> Option<f64> {
        self.cap(group).map(|cap| cap.own_quota)
    }

    fn cap(&self, group: &str) -> Option<&Cap> {
        self.by_name.get(&group.to_ascii_lowercase())
    }
}

/// Whether a claim of this weight leaves the submitter within its ceiling, and its group and the groups around it within
/// their quotas, surplus included. Stricter than `HTCondor`, where a submitter may overshoot by one match: a quota here is a
/// promise. A ceiling is of all that the submitter holds, whatever negotiator gave it, and that of an owner of all that the
/// owner's submitters hold, whatever groups they charge; quotas are of the negotiator's own slots.
pub fn within_caps(
    pool: &Pool,
    submitter: &SubmitterName,
    group: Option<&GroupName>,
    weight: f64,
    quotas: &Quotas,
) -> bool {
    fits_caps(&[], false, pool, submitter, group, weight, quotas)
}

/// The same for a claim that takes the place of others, whose weight is then given back. As in the negotiator, a group that has
/// reached its quota may go on preempting within itself: a claim by which the use of a group does not grow is within the quota
/// of the group, even if the group uses more than its quota.
pub fn within_caps_in_place_of(
    present: &[&Claim],
    pool: &Pool,
    submitter: &SubmitterName,
    group: Option<&GroupName>,
    weight: f64,
    quotas: &Quotas,
) -> bool {
    fits_caps(present, true, pool, submitter, group, weight, quotas)
}

/// Whether a claim whose weight is counted already is still within ceilings and quotas, which people may have lowered.
pub fn still_within_caps(pool: &Pool, claim: &Claim, quotas: &Quotas) -> bool {
    fits_caps(&[claim], false, pool, &claim.submitter, claim.group.as_ref(), claim.weight, quotas)
}

/// Whether a claim of this weight is within all caps once the `present` claims give theirs back. If `replaces` holds, quotas
/// allow a claim by which no use grows. Claims that are over and that the objects of their slots may still name have not given
/// theirs back yet.
fn fits_caps(
    present: &[&Claim],
    replaces: bool,
    pool: &Pool,
    submitter: &SubmitterName,
    group: Option<&GroupName>,
    weight: f64,
    quotas: &Quotas,
) -> bool {
    // What is to be added to the usage of those whose claims these are.
    let more = |shares: &dyn Fn(&Claim) -> bool| {
        let sum = |claims: &mut dyn Iterator<Item = &Claim>| {
            claims.filter(|claim| shares(claim)).map(|claim| claim.weight).sum::<f64>()
        };
        sum(&mut pool.holdings().carried()) - sum(&mut present.iter().copied())
    };
    let with = &quotas.negotiator;
    let shared = |claim: &Claim| pool.answering(&claim.negotiator) == *with;
    let is_inside =
        |group: &GroupName, claim: &Claim| claim.group.as_ref().is_some_and(|own| group.contains(own));
    let is_own = |group: Option<&GroupName>, claim: &Claim| match (&claim.group, group) {
        (Some(own), Some(group)) => own.is_same(group),
        (own, group) => own.is_none() && group.is_none(),
    };
    let of_group = |group: &GroupName| more(&|claim| is_inside(group, claim) && shared(claim));
    let own_of = |group: Option<&GroupName>| more(&|claim| is_own(group, claim) && shared(claim));
    let fits = |used: f64, cap: f64| used + weight <= cap + SLACK;
    let ceiling = pool
        .submitters()
        .get(submitter)
        .and_then(|s| Some((s.ceiling?, s.accounts.weighted_resources_used())));
    let own = more(&|claim| claim.submitter == *submitter);
    if ceiling.is_some_and(|(ceiling, used)| !fits(used + own, ceiling)) {
        return false;
    }
    let owner = submitter.owner();
    if let Some(ceiling) = pool.submitters().get(&owner).and_then(|owner| owner.ceiling) {
        let all = pool.submitters().values().filter(|other| other.name.owner() == owner);
        let used: f64 = all.map(|other| other.accounts.weighted_resources_used()).sum();
        if !fits(used + more(&|claim| claim.submitter.owner() == owner), ceiling) {
            return false;
        }
    }
    let grows = |shares: &dyn Fn(&Claim) -> bool| {
        let freed = present.iter().filter(|claim| shares(claim) && shared(claim)).map(|claim| claim.weight);
        !replaces || weight > freed.sum::<f64>() + SLACK
    };
    let own_grows = grows(&|claim| is_own(group, claim));
    let Some(group) = group else {
        let cap = quotas.ungrouped.filter(|_| own_grows);
        return cap.is_none_or(|cap| fits(own_usage(pool, None, with) + own_of(None), cap));
    };
    let own = quotas.cap(group.as_str());
    if own.is_some_and(|own| own.autoregroup) {
        return true;
    }
    let whole = Some(group);
    own.is_none_or(|own| !own_grows || fits(own_usage(pool, whole, with) + own_of(whole), own.own))
        && group.ancestry().all(|group| {
            let used = || group_usage_with(pool, &group, with) + of_group(&group);
            let grows = grows(&|claim| is_inside(&group, claim));
            quotas.cap(group.as_str()).is_none_or(|cap| !grows || fits(used(), cap.subtree))
        })
}

/// What sums of weights may lose.
const SLACK: f64 = 1e-9;

/// Slot weight that the own submitters of a group, without the groups inside it, or those of no group hold of a negotiator's
/// slots.
fn own_usage(pool: &Pool, group: Option<&GroupName>, with: &NegotiatorId) -> f64 {
    let own = |submitter: &&Submitter| match (submitter.group(), group) {
        (Some(own), Some(group)) => own.is_same(group),
        (own, group) => own.is_none() && group.is_none(),
    };
    pool.submitters().values().filter(own).map(|submitter| submitter.accounts.used_with(with)).sum()
}

/// Slot weight that a group and the groups inside it hold.
pub fn group_usage(pool: &Pool, group: &GroupName) -> f64 {
    inside(pool, group).map(|submitter| submitter.accounts.weighted_resources_used()).sum()
}

/// Slot weight that a group and the groups inside it hold of a negotiator's slots.
fn group_usage_with(pool: &Pool, group: &GroupName, with: &NegotiatorId) -> f64 {
    inside(pool, group).map(|submitter| submitter.accounts.used_with(with)).sum()
}

/// The submitters of a group and of the groups inside it.
fn inside<'p>(pool: &'p Pool, group: &GroupName) -> impl Iterator<Item = &'p Submitter> {
    pool.submitters().values().filter(|submitter| submitter.group().is_some_and(|own| group.contains(&own)))
}
