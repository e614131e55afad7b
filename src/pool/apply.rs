//! Events into the pool: machines, policies, accounting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::accountant::Correction;
use super::effect::{Notice, Subject};
use super::event::{
    Event, NegotiatorFacts, Outcome, PolicyFacts, Retry, SlotFacts, SubmitPolicyFacts, SubmitterFacts,
};
use super::governing::{Governing, GoverningFacts};
use super::ids::{ClaimId, GroupName, MachineName, PodUid, SlotName, SubmitterName};
use super::job::Problem;
use super::machine::{Machine, MachineFacts, Offer};
use super::negotiators::NegotiatorId;
use super::policy::{Group, NodePolicy};
use super::resources::Capacity;
use super::slot::{Activation, Claimed, Record, Removal, Slot, State};
use super::time::Time;
use super::{Document, Pool};

/// How long after a failed call what it was for is decided again: an API server that refuses at once is not asked without
/// end.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// What there is to say of a policy.
#[derive(Clone, Copy)]
struct Findings<'a> {
    problems: &'a [Problem],
    warnings: &'a [Problem],
}

impl<'a> Findings<'a> {
    fn of(problems: &'a [Problem], warnings: Option<&'a Vec<Problem>>) -> Self {
        Self { problems, warnings: warnings.map(Vec::as_slice).unwrap_or_default() }
    }

    /// What people who look at a policy are told once it changed: what is wrong with it, and what of it does nothing.
    fn notices(self, about: &Subject, meanwhile: &str, before: Option<Findings<'_>>) -> Vec<Notice> {
        let note = |problems: &[Problem], end: &str| {
            let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{}{end}", text.join("; "))
        };
        let notice =
            |reason, note| Notice { about: about.clone(), warning: true, reason, action: "Reading", note };
        let mut notices = Vec::new();
        if let Some(first) = self.problems.first()
            && before.is_none_or(|before| before.problems != self.problems)
        {
            notices.push(notice(first.reason, note(self.problems, meanwhile)));
        }
        if let Some(first) = self.warnings.first()
            && before.is_none_or(|before| before.warnings != self.warnings)
        {
            notices.push(notice(first.reason, note(self.warnings, "")));
        }
        notices
    }
}

/// Takes note of an object that was seen; `others` says whether others do its work. What there is to tell of it, if it is
/// another than before.
fn see<C: PartialEq>(
    all: &mut BTreeMap<Arc<str>, Governing<C>>,
    facts: GoverningFacts<C>,
    about: &Subject,
    others: bool,
) -> Option<Vec<Notice>> {
    let name = facts.name.clone();
    let before = all.get(&name);
    let object = Governing::seen(facts, before);
    if before == Some(&object) {
        return None;
    }
    let told = before.map(|before| Findings::of(&before.problems, before.warnings.as_ref()));
    let found = Findings::of(&object.problems, object.warnings.as_ref());
    let notices = found.notices(about, object.meanwhile(others), told);
    all.insert(name, object);
    Some(notices)
}

/// Nobody knows whether what was asked of a slot's pod was heard: it is asked again.
fn forget_asked(slot: &mut Slot) {
    if let Activation::Active { deleting, .. } = &mut slot.activation {
        *deleting = false;
    }
    slot.frozen = None;
    if let Some(eviction) = &mut slot.eviction {
        (eviction.agent_asked, eviction.forced) = (false, false);
    }
}

impl Pool {
    /// Takes note of what happened.
    pub fn apply(&mut self, event: Event, now: Time) {
        match event {
            Event::Machine(facts) => self.machine(facts, now),
            Event::MachineGone(name) => self.machine_gone(&name),
            Event::Heartbeat { machine, ttl } => self.heartbeat(machine, now, now + ttl),
            Event::HeartbeatsEnded(machine) => {
                self.heartbeats.forget(&machine);
                self.attention.machines.insert(machine);
            }
            Event::Report(facts) => self.report(facts, now),
            Event::ReportGone(name) => self.report_gone(&name, now),
            Event::AgentHeartbeat { machine, ttl, renewal } => {
                self.agent_heard(&machine, renewal, now + ttl, now);
            }
            Event::AgentHeartbeatsEnded(machine) => self.agent_unheard(&machine, now),
            Event::ForeignPod { pod, machine, requests } => {
                // Whoever takes the label off a backfill pod makes it one of others.
                self.backfill_gone(&machine, &pod, now);
                self.hold_foreign(pod, machine, requests);
            }
            Event::ForeignPodGone(pod) => self.drop_foreign(&pod),
            Event::Backfill(facts) => self.backfill_seen(facts, now),
            Event::BackfillGone(machine, pod) => self.backfill_gone(&machine, &pod, now),
            Event::Pod(facts) => self.pod(facts, now),
            Event::PodGone(facts) => self.pod_gone(&facts, now),
            Event::Job(facts) => self.job(facts, now),
            Event::JobGone(uid) => self.job_gone(&uid),
            Event::Slot(facts) => self.slot(facts, now),
            Event::SlotGone { slot, claim } => self.slot_gone(&slot, claim.as_ref(), now),
            Event::Submitter(facts) => self.submitter(facts, now),
            Event::SubmitterGone(name) => {
                if let Some(submitter) = self.submitters.get_mut(&name) {
                    submitter.forget_object();
                    self.stale.insert(Document::Submitter(name));
                }
            }
            Event::Group(group) => self.group_seen(group),
            Event::GroupGone(object) => {
                self.groups.remove(&object);
                self.groups_changed();
            }
            Event::Limit(limit) => self.limit_seen(limit),
            Event::LimitGone(object) => self.limit_gone(&object),
            Event::Policy(facts) => self.policy(facts),
            Event::PolicyGone(name) => {
                self.policies.remove(&name);
                self.backfill.forget_policy(&name);
                self.attention.policies = true;
            }
            Event::SubmitPolicy(facts) => self.submit_policy(facts),
            Event::SubmitPolicyGone(name) => {
                self.submit_policies.remove(&name);
                self.touch_submit_policies();
            }
            Event::Drain(facts) => self.drain_seen(facts),
            Event::DrainGone(name) => self.drain_gone(&name),
            Event::Negotiator(facts) => self.negotiator_seen(facts, now),
            Event::NegotiatorGone(name) => {
                self.negotiators.remove(&name);
                self.negotiators_changed(now);
            }
            Event::Synced => self.sync(now),
            Event::Outcome(outcome) => self.outcome(outcome, now),
        }
    }

    fn machine(&mut self, facts: MachineFacts, now: Time) {
        let name = facts.name.clone();
        let foreign = self.foreign_on(&name);
        match self.machines.get_mut(&name) {
            Some(machine) if machine.facts == facts && machine.offer != Offer::Gone => return,
            Some(machine) => {
                machine.facts = facts;
                machine.recount();
                // The node is back: the deciders work out what it offers.
                machine.offer =
                    if machine.offer == Offer::Gone { Offer::NotReady } else { machine.offer.clone() };
            }
            None => {
                self.machines.insert(name.clone(), Machine::new(facts, foreign, now));
                self.look_at_agent(&name, now);
            }
        }
        self.machine_changed(name);
    }

    fn heartbeat(&mut self, name: MachineName, now: Time, until: Time) {
        self.heartbeats.beat(&name, now, until);
        if self.machines.get(&name).is_some_and(|machine| machine.offer == Offer::Silent) {
            self.attention.machines.insert(name);
        }
    }

    fn machine_changed(&mut self, name: MachineName) {
        self.offers += 1;
        self.schedule.wanted = true;
        self.touch_standing(&name);
        self.attention.machines.insert(name);
        // Dynamic quotas are shares of the pool.
        self.stale.extend(self.groups.keys().cloned().map(Document::Group));
    }

    fn machine_gone(&mut self, name: &MachineName) {
        if let Some(machine) = self.machines.get_mut(name) {
            machine.offer = Offer::Gone;
            self.machine_changed(name.clone());
        }
    }

    /// Counts a pod outside the pool against its machine.
    pub(super) fn hold_foreign(&mut self, pod: PodUid, machine: MachineName, requests: Capacity) {
        if self.foreign.get(&pod).is_some_and(|held| held.0 == machine && held.1 == requests) {
            return;
        }
        self.drop_foreign(&pod);
        if let Some(host) = self.machines.get_mut(&machine) {
            host.foreign.add(&requests);
            host.recount();
            self.machine_changed(machine.clone());
        }
        self.foreign.insert(pod, (machine, requests));
    }

    /// Counts a pod outside the pool no longer.
    pub(super) fn drop_foreign(&mut self, pod: &PodUid) {
        let Some((machine, requests)) = self.foreign.remove(pod) else { return };
        if let Some(host) = self.machines.get_mut(&machine) {
            host.foreign.subtract(&requests);
            host.recount();
            self.machine_changed(machine);
        }
    }

    /// What pods outside the pool request on a machine that was just seen: pods may be seen before their node.
    fn foreign_on(&self, name: &MachineName) -> Capacity {
        let mut sum = Capacity::default();
        if !self.machines.contains_key(name) {
            for (_, requests) in self.foreign.values().filter(|(machine, _)| machine == name) {
                sum.add(requests);
            }
        }
        sum
    }

    fn slot(&mut self, facts: SlotFacts, now: Time) {
        if facts.name.dynamic.is_none() && facts.claim.is_none() {
            self.unclaimed_objects.insert(facts.name.clone(), facts.resources.clone());
        } else {
            self.unclaimed_objects.remove(&facts.name);
        }
        if let (None, None, Some(claim)) =
            (facts.name.dynamic, &facts.claim, self.deleted_claim(&facts.name).cloned())
        {
            // A static slot's object stays when its claim goes.
            self.forget_deleted(&facts.name, &claim);
            self.slot_deleted(&facts.name, &claim, now);
        }
        if let Some(slot) = self.slots.get_mut(&facts.name) {
            // Somebody edited the claim, or took it off: what was decided is written again.
            let same = facts.claim.is_some_and(|claim| {
                claim.id == slot.claim.id
                    && claim.proc_id() == slot.claim.proc_id()
                    && claim.limits == slot.claim.limits
            });
            if slot.record == Record::Written && !same {
                slot.record = Record::Due;
                self.attention.slots.insert(facts.name);
            }
            return;
        }
        match facts.claim {
            Some(claim) if self.is_deleted(&facts.name, &claim.id) => {}
            // A claim that was made for another slot is none of ours.
            Some(claim) if !self.synced && claim.id.is_of(&facts.name) => {
                self.adopt(SlotFacts { claim: None, ..facts }, claim, now);
            }
            _ => self.stray(facts.name),
        }
    }

    fn stray(&mut self, name: SlotName) {
        if !self.slots.contains_key(&name) {
            self.strays.insert(name);
        }
    }

    /// Takes a slot over from an earlier leader, with the claim that it wrote.
    fn adopt(&mut self, facts: SlotFacts, claim: super::Claim, now: Time) {
        let name = facts.name;
        if !self.machines.contains_key(&name.machine) {
            let gone = Machine::gone(name.machine.clone(), now);
            self.machines.insert(name.machine.clone(), gone);
            self.attention.machines.insert(name.machine.clone());
        }
        if let Some(machine) = self.machines.get_mut(&name.machine) {
            machine.stand(&name, now);
        }
        let removed = self.jobs.get(&claim.job.uid).is_none_or(|cluster| cluster.removing);
        // The pod of a job that is gone may still run in it.
        let assigned = self.jobs.get_mut(&claim.job.uid).is_none_or(|cluster| {
            let free = !cluster.is_done(claim.proc) && !cluster.active.contains_key(&claim.proc);
            if free {
                cluster.idle.remove(claim.proc);
                cluster.active.insert(claim.proc, name.clone());
            }
            free
        });
        let slot = Slot {
            record: Record::Written,
            activation: if assigned { Activation::Assigned } else { Activation::Vacant },
            removal: removed.then_some(Removal::JobRemoved),
            recorded: facts.recorded,
            ..Slot::new(name, facts.resources, claim, State::Claimed(Claimed::Idle), now)
        };
        self.stale.insert(Document::Slot(slot.name.clone()));
        self.carve(slot, now);
    }

    fn slot_gone(&mut self, name: &SlotName, claim: Option<&ClaimId>, now: Time) {
        self.strays.remove(name);
        self.unclaimed_objects.remove(name);
        if name.dynamic.is_none() {
            // A static slot has an object as long as it stands.
            self.stale.insert(Document::Slot(name.clone()));
        }
        if let Some(claim) = claim {
            self.forget_deleted(name, claim);
            self.slot_deleted(name, claim, now);
        }
        self.write_again(name, |slot| {
            matches!(slot.record, Record::Written | Record::Writing) && claim == Some(&slot.claim.id)
        });
    }

    /// Somebody deleted a Slot under a live claim: the claim is the operator's to end, so it is written again.
    fn write_again(&mut self, name: &SlotName, is_live: impl Fn(&super::Slot) -> bool) {
        if let Some(slot) = self.slots.get_mut(name).filter(|slot| is_live(slot)) {
            slot.record = Record::Due;
            self.attention.slots.insert(name.clone());
            self.stale.insert(Document::Slot(name.clone()));
        }
    }

    fn submitter(&mut self, facts: SubmitterFacts, now: Time) {
        let synced = self.synced;
        let submitter = self.submitter_mut(&facts.name, now);
        let before = (submitter.factor, submitter.ceiling, submitter.floor);
        submitter.generation = Some(facts.generation);
        (submitter.factor, submitter.ceiling, submitter.floor) = (facts.factor, facts.ceiling, facts.floor);
        // Later on the accounts here are newer than those in the object, which are our own.
        if !synced && facts.accounts.iter().next().is_some() {
            submitter.accounts = facts.accounts;
            submitter.corrected = facts.corrected;
        }
        let changed = before != (submitter.factor, submitter.ceiling, submitter.floor);
        if self.correct(&facts.name, facts.correction.as_ref(), now) || changed {
            self.stale.insert(Document::Submitter(facts.name));
            self.schedule.wanted = true;
        }
    }

    /// Makes the correction of an account that its object asks for, or takes note why it cannot be made. Whether anything
    /// changed.
    fn correct(&mut self, name: &SubmitterName, correction: Option<&Correction>, now: Time) -> bool {
        let with = correction.and_then(|correction| correction.negotiator.clone());
        let unknown = with.as_ref().filter(|with| !self.negotiators.contains_key(*with)).map(|with| Problem {
            reason: "NegotiatorNotFound",
            field: "spec.correction.negotiator".to_owned(),
            message: format!("there is no Negotiator {with}, and no account with it is corrected; name one that there is"),
        });
        let id = with.map_or_else(|| self.first_negotiator(), NegotiatorId::Named);
        let halflife = self.halflife_of(&id);
        let submitter = self.submitter_mut(name, now);
        let problems: Vec<Problem> = unknown.into_iter().collect();
        let makes = correction.filter(|_| problems.is_empty());
        let other = std::mem::replace(&mut submitter.problems, problems) != submitter.problems;
        makes.is_some_and(|correction| submitter.correct(correction, &id, now, halflife)) || other
    }

    fn group_seen(&mut self, group: Group) {
        let before = self.groups.get(&group.object);
        if before != Some(&group) {
            if before.is_none_or(|before| before.priority_factor != group.priority_factor) {
                self.stale.extend(self.submitters.keys().cloned().map(Document::Submitter));
            }
            self.groups.insert(group.object.clone(), group);
            self.groups_changed();
        }
    }

    fn groups_changed(&mut self) {
        self.attention.groups = true;
        self.schedule.wanted = true;
        self.stale.extend(self.groups.keys().cloned().map(Document::Group));
    }

    /// Marks the statuses of a group and the groups around it.
    pub(super) fn touch_groups(&mut self, group: Option<&GroupName>) {
        let Some(group) = group else { return };
        let inside = |outer: &str| {
            group.as_str().get(..outer.len()).is_some_and(|head| head.eq_ignore_ascii_case(outer))
                && matches!(group.as_str().as_bytes().get(outer.len()), None | Some(b'.'))
        };
        let touched: Vec<Arc<str>> =
            self.groups.values().filter(|g| inside(g.name.as_str())).map(|g| g.object.clone()).collect();
        self.stale.extend(touched.into_iter().map(Document::Group));
    }

    fn policy(&mut self, facts: PolicyFacts) {
        let mut policy = NodePolicy {
            uid: facts.uid,
            generation: facts.generation,
            selector: facts.selector,
            precedence: facts.precedence,
            config: None,
            accepted: None,
            problems: Vec::new(),
            warnings: facts.warnings,
        };
        match (
            facts.config,
            self.policies.get(&facts.name).filter(|old| old.config.is_some()),
            facts.recorded,
        ) {
            (Ok(config), ..) => (policy.config, policy.accepted) = (Some(config), Some(facts.spec)),
            (Err(problems), Some(old), _) => {
                policy = NodePolicy {
                    uid: policy.uid,
                    generation: policy.generation,
                    problems,
                    warnings: policy.warnings,
                    ..old.clone()
                };
            }
            (Err(problems), None, recorded) => {
                policy.problems = problems;
                if let Some((Ok(config), recorded)) =
                    recorded.map(|recorded| (recorded.config.clone(), recorded))
                {
                    (policy.selector, policy.precedence) = (recorded.selector, recorded.precedence);
                    (policy.config, policy.accepted) = (Some(config), Some(recorded.spec));
                }
            }
        }
        let before = self.policies.get(&facts.name);
        if before != Some(&policy) {
            let about = Subject::Policy { name: facts.name.clone(), uid: policy.uid.clone() };
            let told = before.map(|before| Findings::of(&before.problems, before.warnings.as_ref()));
            let found = Findings::of(&policy.problems, policy.warnings.as_ref());
            let notices = found.notices(&about, policy.meanwhile(), told);
            self.notices.extend(notices);
            self.policies.insert(facts.name.clone(), policy);
            self.attention.policies = true;
            self.stale.insert(Document::Policy(facts.name));
        }
    }

    fn submit_policy(&mut self, facts: SubmitPolicyFacts) {
        let about = Subject::SubmitPolicy { name: facts.name.clone(), uid: facts.uid.clone() };
        if let Some(notices) = see(&mut self.submit_policies, facts, &about, false) {
            self.notices.extend(notices);
            self.touch_submit_policies();
        }
    }

    /// Which one counts may be another now.
    fn touch_submit_policies(&mut self) {
        self.stale.extend(self.submit_policies.keys().cloned().map(Document::SubmitPolicy));
    }

    fn negotiator_seen(&mut self, facts: NegotiatorFacts, now: Time) {
        let about = Subject::Negotiator { name: facts.name.clone(), uid: facts.uid.clone() };
        let others = self.others_work(&facts.name);
        if let Some(notices) = see(&mut self.negotiators, facts, &about, others) {
            self.notices.extend(notices);
            self.negotiators_changed(now);
        }
    }

    fn sync(&mut self, now: Time) {
        self.synced = true;
        self.recall_drains();
        self.number_jobs(now);
        // The accounts were last written before the crash; the claims say what is held now.
        self.settle_accounts(now);
        self.attention.negotiators = true;
        self.attention.machines.extend(self.machines.keys().cloned());
        self.attention.slots.extend(self.slots.keys().cloned());
        self.attention.jobs.extend(self.jobs.keys().cloned());
        self.attention.policies = true;
        self.schedule.wanted = true;
    }

    fn outcome(&mut self, outcome: Outcome, now: Time) {
        match outcome {
            Outcome::SlotWritten { slot, claim, proc } => {
                if let Some(known) = self.slots.get_mut(&slot)
                    && known.claim.id == claim
                    && known.claim.proc_id() == proc
                    && known.record == Record::Writing
                {
                    known.record = Record::Written;
                    self.claim_written(&slot);
                    self.attention.slots.insert(slot);
                }
            }
            Outcome::SlotRefused { slot, claim, proc, why } => {
                self.slot_refused(&slot, (&claim, &proc), &why, now);
            }
            Outcome::SlotDeleted { slot, claim, there } => {
                self.slot_deleted(&slot, &claim, now);
                // It will not be seen gone: what is seen of it from now on was made late, and is none of ours.
                if !there {
                    self.forget_deleted(&slot, &claim);
                }
            }
            Outcome::PodCreated { slot, claim, pod } => self.pod_created(&slot, &claim, pod, now),
            Outcome::SlotMissing(slot) => {
                self.write_again(&slot, |slot| slot.record == Record::Written);
            }
            Outcome::PodMissing { slot, pod } => self.pod_missing(&slot, pod, now),
            Outcome::PodRefused { slot, claim, proc, why } => {
                self.pod_refused(&slot, (&claim, &proc), &why, now);
            }
            Outcome::BackfillMade(slot) => self.backfill_made(&slot, now),
            Outcome::BackfillRefused { slot, why, certain } => {
                self.backfill_refused(&slot, &why, certain, now);
            }
            Outcome::JobHeld(uid) => {
                if let Some(cluster) = self.jobs.get_mut(&uid) {
                    cluster.hold = cluster.hold.seen(true);
                    self.attention.jobs.insert(uid);
                }
            }
            Outcome::AgentLeaseRead { machine, found } => self.agent_lease_read(&machine, found, now),
            Outcome::Failed(retry) => {
                self.wake_at(now + RETRY_PAUSE);
                self.retries.insert((now + RETRY_PAUSE, retry));
            }
        }
    }

    /// Lets what a failed call was for be decided again.
    pub(super) fn retry(&mut self, retry: Retry) {
        match retry {
            Retry::Pod(uid, slot) => {
                if let Some(release) = self.released.get_mut(&uid) {
                    release.again = true;
                }
                if let Some(orphan) = self.orphans.get_mut(&uid) {
                    orphan.deleting = false;
                }
                if let Some(slot) = slot {
                    if let Some(known) = self.slots.get_mut(&slot) {
                        forget_asked(known);
                    }
                    self.attention.slots.insert(slot);
                }
            }
            Retry::Backfill(machine, pod) => self.backfill_stays(&machine, &pod),
            Retry::Slot(name) => match self.slots.get_mut(&name) {
                Some(slot) if slot.record == Record::Deleting => {
                    slot.record = Record::Written;
                    self.attention.slots.insert(name);
                }
                _ => self.stray(name),
            },
            Retry::AgentLease(machine) => self.agent_lease_unread(&machine),
            Retry::Job(uid) => {
                if let Some(cluster) = self.jobs.get_mut(&uid) {
                    cluster.hold = cluster.hold.failed();
                }
                self.attention.jobs.insert(uid);
            }
        }
    }
}
