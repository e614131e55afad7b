//! The model: the whole world in memory.
//!
//! The pool changes by [`Event`]s, through [`Pool::apply`], and by the deciders, who note in it what they ask the shell to
//! do, so that nothing is asked for twice. Time is an argument. Everything is ordered: the same events at the same times
//! give the same pool and the same effects, byte for byte.
//!
//! What must survive a crash is in the API server before the effect that depends on it; a pool built anew from a list
//! continues where the old one stood.

pub mod accountant;
mod agent;
mod apply;
mod apply_accounts;
mod apply_backfill;
mod apply_jobs;
mod apply_machines;
mod apply_outcomes;
mod apply_pods;
mod apply_policies;
mod apply_slots;
pub mod backfill;
mod carve;
mod charges;
mod devices;
mod drain;
mod edit;
mod effect;
mod event;
mod fence;
mod gathering;
mod given;
mod governing;
mod group_map;
mod heartbeat;
mod holdings;
mod holds;
mod ids;
mod job;
mod job_defaults;
mod leaving;
pub mod limits;
mod machine;
mod machine_slot;
mod made;
mod marks;
pub mod negotiation;
mod negotiators;
mod policy;
mod ranges;
mod read;
mod resources;
mod slot;
mod slot_policy;
pub mod slot_types;
mod stuck;
mod submitter;
mod time;
mod trace;
pub mod units;
mod unseen;
mod untracking;
mod waits;
mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use marks::{Change, Marks};

pub use agent::{Benchmarks, Device, ReportFacts};
pub use backfill::{Backfill as BackfillWork, Stage as BackfillStage, Template as BackfillTemplate};
pub use devices::Inventory;
pub use drain::{
    Cost as DrainCost, Drain, DrainFacts, DrainSpec, DrainedFor, Draining, History as DrainHistory,
    Phase as DrainPhase, Schedule as DrainSchedule, Unclaimed as UnclaimedTime,
};
pub use effect::{Document, Effect, Notice, PodPlan, Subject, Vacate, VacateReason};
pub use event::{
    Event, Forced, JobFacts, NegotiatorFacts, Outcome, PodFacts, PolicyFacts, Remains, Retry, SlotFacts,
    SubmitPolicyFacts, SubmitterFacts,
};
pub use fence::{FENCE_MARGIN, Fence, Fences, Renewal};
pub use gathering::Gathering;
pub use given::{Allocation, Given};
pub use governing::{Governing, GoverningFacts};
pub use group_map::{GroupMap, Groups};
pub use heartbeat::Heartbeats;
pub use holdings::{Holdings, LimitObject};
pub use holds::JOB_POLICY_UNDEFINED;
pub use ids::{
    BadSlotName, ClaimId, GroupName, JobKey, JobUid, MachineName, PodRef, PodUid, PolicyName, ProcId,
    SlotName, SubmitterName,
};
pub use job::{
    Cooling, End, Job, JobFinalizer, JobSpec, Matchable, Problem, QueueKey, Request, Retention, Told, Unsaid,
};
pub use job_defaults::JobDefaults;
pub use leaving::{Cause, Eviction, Granted, HoldReason, KUBELET_SLACK, Preemptor, Retirement};
pub use machine::{
    Expected, LastInput, Load, Machine, MachineFacts, OUT_OF_SERVICE, Offer, OwnConfig, Relaid, Sensed,
    System, Taint,
};
pub use machine_slot::{MachineSlot, Share};
pub use negotiators::{AtWork, NegotiatorId, Sharing, SlotTally, Turn};
pub use policy::{
    ByMachine, ClaimWorklife, Group, Latch, NegotiatorConfig, NodePolicy, Quota, Selector, SelectorTerm,
    SlotConfig, StartdConfig, SubmitConfig, Toleration,
};
pub use ranges::{BadRanges, Ranges};
pub use resources::{Capacity, DeviceId, GPUS, NODE_RESOURCES, PODS, ResourceName, Resources, classad_name};
pub use slot::{
    Activation, Assignment, Backfill, CLAIM_RETRY, Claim, Claimed, Drained, LastTransition, Latched, Phase,
    Preempting, Record, Recorded, Removal, Running, Shown, Slot, State, Unclaimed, pod_name,
};
pub use slot_policy::{ByUniverse, Policy};
pub use slot_types::Kind as SlotKind;
pub use stuck::{
    FAILED_TO_CREATE_PROCESS, INVALID_DOCKER_IMAGE, JOB_OUT_OF_RESOURCES, Obstacle, START_PATIENCE,
    STARTD_HELD_JOB, Stuck,
};
pub use submitter::{Accounts, Submitter};
pub use time::Time;
pub use trace::Noted;
pub use unseen::Unseen;
pub use untracking::Release;
pub use waits::{Amount, Bar, Explaining, FailedClause, RejectReason, Rejected, Rejections, Side, Waits};
pub use zone::Zone;

/// When cycles ran, and what calls for the next.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// A cycle is under way: there is one at a time, whose ever it is, so that no proc is matched by two.
    pub under_way: bool,
    /// Cycles of all negotiators since the start.
    pub cycles: u64,
    /// Each negotiator's own.
    pub turns: BTreeMap<NegotiatorId, Turn>,
    /// When the next cycle is due, where there are several negotiators.
    pub next: Option<Time>,
}

impl Schedule {
    /// A negotiator's turn, as it stands.
    pub fn turn(&self, id: &NegotiatorId) -> Turn {
        self.turns.get(id).cloned().unwrap_or_default()
    }
}

/// One cycle in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleFigures {
    /// When it started.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// Matches made.
    pub matches: u64,
    /// Requests that found no match.
    pub rejects: u64,
    /// Submitters with idle procs.
    pub submitters: u64,
    /// Slots considered.
    pub slots: u64,
    /// Procs that waited.
    pub idle: u64,
    /// Pie spins.
    pub pies: u64,
    /// Why procs were left.
    pub rejections: Arc<Rejections>,
}

/// The configuration of machines that no policy selects: one for all, so that ads made by it are known by it.
static DEFAULT_STARTD: LazyLock<Arc<StartdConfig>> = LazyLock::new(Arc::default);

/// The whole world.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Machines by name.
    machines: BTreeMap<MachineName, Machine>,
    /// Claimed slots by name: dynamic ones, and static ones that have a claim.
    slots: BTreeMap<SlotName, Slot>,
    /// Jobs by uid.
    jobs: BTreeMap<JobUid, Job>,
    /// Submitters by name.
    submitters: BTreeMap<SubmitterName, Submitter>,
    /// Accounting groups by the name of their object.
    groups: BTreeMap<Arc<str>, Group>,
    /// Node policies by name.
    policies: BTreeMap<PolicyName, NodePolicy>,
    /// Submit policies by name; the first counts.
    submit_policies: BTreeMap<Arc<str>, Governing<SubmitConfig>>,
    /// Negotiators by name.
    negotiators: BTreeMap<Arc<str>, Governing<NegotiatorConfig>>,
    /// Concurrency limits by the name of their object.
    limits: BTreeMap<Arc<str>, LimitObject>,
    /// What claims hold of limited things.
    holdings: Holdings,
    /// Procs that wait for a concurrency limit, by its name, as of the last cycle.
    barred: BTreeMap<Arc<str>, u64>,
    /// Claims that wait until several dynamic slots have gone.
    gatherings: BTreeMap<ClaimId, Gathering>,
    /// Drain requests by the name of their object.
    drains: BTreeMap<Arc<str>, Drain>,
    /// When cycles run.
    schedule: Schedule,
    /// Which negotiator has which slots.
    sharing: Sharing,
    /// Whether everything that existed at the start is known.
    synced: bool,
    /// Pods of the pool whose claim is not known.
    orphans: BTreeMap<PodUid, PodFacts>,
    /// How long the deletions of orphans let them run.
    orphans_granted: BTreeMap<PodUid, Granted>,
    /// Pods that were let go, until that is seen.
    released: BTreeMap<PodUid, Release>,
    /// Pods that went before they were let go, until their slots take note.
    vanished: BTreeSet<PodUid>,
    /// Pods that were made and that no watch has shown.
    unseen: Unseen,
    /// Slot objects that perhaps should not be, or not be so.
    strays: BTreeSet<SlotName>,
    /// Objects of static slots that carry no claim, as they were seen last, with the size that they show.
    unclaimed_objects: BTreeMap<SlotName, Resources>,
    /// Backfill work.
    backfill: BackfillWork,
    /// Which machines were heard of.
    heartbeats: Heartbeats,
    /// Which machines' agents were heard of.
    agents: Heartbeats,
    /// What they promised with that.
    fences: Fences,
    /// What agents reported last; a report may be seen before its node.
    reports: BTreeMap<MachineName, Arc<ReportFacts>>,
    marks: Marks,
    /// What to tell people.
    notices: Vec<Notice>,
    /// The transitions since somebody began to note them down; none where nobody does.
    trace: Option<Vec<Noted>>,
    claims: BTreeMap<ClaimId, SlotName>,
    /// The last claim of each slot that was deleted by us and is not seen gone yet.
    deleted_claims: BTreeMap<SlotName, ClaimId>,
    outside: BTreeMap<PodUid, apply_machines::Outside>,
    wakes: BTreeSet<Time>,
    alarms: BTreeSet<(Time, SlotName)>,
    /// When machines are looked at again, and by machine: one time for each.
    machine_alarms: (BTreeSet<(Time, MachineName)>, BTreeMap<MachineName, Time>),
    retries: BTreeSet<(Time, Retry)>,
    last_cluster: i64,
    last_claim: u64,
}

impl Pool {
    /// The configuration in force of the first negotiator by name, with `HTCondor`'s defaults.
    pub fn negotiator(&self) -> &NegotiatorConfig {
        let first = self.negotiators.values().find_map(|object| object.config.as_deref());
        first.unwrap_or_else(|| negotiators::defaults())
    }

    /// What a job that this owner submits now is given of what it does not say, or has no say in.
    pub fn job_defaults(&self, owner: &str) -> Arc<JobDefaults> {
        let first = self.submit_policies.values().next().and_then(|policy| policy.config.as_ref());
        let Some(config) = first else { return JobDefaults::own() };
        match &config.groups {
            None => Arc::clone(&config.job_defaults),
            Some(map) => Arc::new(config.job_defaults.with_groups(map.at_submission(owner))),
        }
    }

    /// The startd's configuration of a machine, with `HTCondor`'s defaults.
    pub fn startd(&self, machine: &Machine) -> Arc<StartdConfig> {
        machine.in_force.clone().unwrap_or_else(|| Arc::clone(&DEFAULT_STARTD))
    }

    /// The group of this name, whatever its letters' case: `HTCondor` does not distinguish it.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.values().find(|group| group.name.is_same(name))
    }

    /// Whether a Slot object is right: a claim is on it, or it shows a static slot as it stands.
    pub fn is_right(&self, name: &SlotName) -> bool {
        let standing = || {
            let machine = self.machines.get(&name.machine)?;
            machine
                .standing
                .get(&name.slot)
                .filter(|slot| slot.kind == SlotKind::Static && name.dynamic.is_none())
        };
        let shown = self.unclaimed_objects.get(name);
        let as_it_stands = |slot: &MachineSlot| shown.is_some_and(|shown| shown.is_as_much_as(&slot.total));
        self.slots.contains_key(name) || standing().is_some_and(as_it_stands)
    }

    /// The slot that carries a claim.
    pub fn slot_of(&self, claim: &ClaimId) -> Option<&Slot> {
        self.claims.get(claim).and_then(|name| self.slots.get(name))
    }

    /// Asks for a look at this time, whatever happens until then.
    pub fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at);
    }

    /// Asks for a look at a slot at this time.
    pub fn wake_slot_at(&mut self, name: &SlotName, at: Time) {
        self.alarms.insert((at, name.clone()));
    }

    /// Asks for a look at a slot at this time, and at no other: one alarm for each, so that however often a slot is looked
    /// at it does not have more and more of them.
    pub fn set_alarm(&mut self, name: &SlotName, at: Option<Time>) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.alarm() != at) else { return };
        if let Some(before) = slot.set_alarm(at) {
            self.alarms.remove(&(before, name.clone()));
        }
        self.alarms.extend(at.map(|at| (at, name.clone())));
    }

    /// Asks for a look at a machine at this time, and at no other.
    pub fn wake_machine_at(&mut self, name: &MachineName, at: Option<Time>) {
        let (order, by_name) = &mut self.machine_alarms;
        if let Some(before) = by_name.remove(name) {
            order.remove(&(before, name.clone()));
        }
        if let Some(at) = at {
            by_name.insert(name.clone(), at);
            order.insert((at, name.clone()));
        }
    }

    /// When to look next, if nothing happens.
    pub fn next_look(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let machine = self.machine_alarms.0.first().map(|(at, _)| *at);
        let silence = [self.heartbeats.next(), self.agents.next(), self.unseen.next()];
        let own = [self.wakes.first().copied(), alarm, machine, self.schedule.next];
        silence.into_iter().chain(own).flatten().min()
    }

    /// Looks at what was to be looked at by now: slots and machines by their alarms, calls that failed, and whether a cycle may
    /// find something new.
    pub fn wake(&mut self, now: Time) {
        while let Some((_, name)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.set_alarm(slot.alarm().filter(|at| *at > now));
            }
            self.changed(Change::Slot(&name));
        }
        while let Some((_, name)) = self.machine_alarms.0.first().filter(|(at, _)| *at <= now).cloned() {
            self.wake_machine_at(&name, None);
            self.changed(Change::Machine(&name));
        }
        while let Some((_, retry)) = self.retries.first().filter(|(at, _)| *at <= now).cloned() {
            self.retries.pop_first();
            self.retry(retry);
        }
        let later = self.wakes.split_off(&(now + std::time::Duration::from_millis(1)));
        if !std::mem::replace(&mut self.wakes, later).is_empty() {
            self.changed(Change::Time);
        }
    }

    /// A number for a new claim.
    pub fn next_claim_number(&mut self) -> u64 {
        self.last_claim += 1;
        self.last_claim
    }

    /// What is kept though nothing needs it any more, for a pool in which nothing goes on.
    #[cfg(test)]
    pub fn leftovers(&self) -> Option<String> {
        let kept = self.machines.values().flat_map(Machine::slots).any(|slot| slot.kept.is_some());
        let idle = self.claims.is_empty()
            && self.gatherings.is_empty()
            && !kept
            && self.vanished.is_empty()
            && self.outside.is_empty()
            && self.strays.is_empty()
            && self.jobs.values().all(|cluster| cluster.unrecorded.is_empty());
        (!idle).then(|| {
            format!(
                "claims {:?}, gatherings {:?}, kept: {kept}, vanished {:?}, outside slots {:?}, strays {:?}",
                self.claims, self.gatherings, self.vanished, self.outside, self.strays
            )
        })
    }

    /// Whether everything that existed at the start is known.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Slot objects that should not be, or not be so; asking takes them.
    pub fn take_strays(&mut self) -> Vec<SlotName> {
        let strays = std::mem::take(&mut self.strays);
        strays.into_iter().filter(|name| !self.is_right(name)).collect()
    }

    /// What to tell people; asking takes it.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The highest `ClusterId` that was given.
    pub fn highest_cluster(&self) -> i64 {
        self.last_cluster
    }

    /// Begins to note transitions down.
    pub fn begin_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// Whether transitions are noted down.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// The transitions since somebody began to note them down, or asked last.
    pub fn take_trace(&mut self) -> Vec<Noted> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A negotiator's cycle begins: there is one at a time, whose ever it is.
    pub fn begin_cycle(&mut self, id: &NegotiatorId, now: Time) {
        self.schedule.under_way = true;
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        (turn.wanted, turn.started) = (false, Some(now));
    }

    /// The cycle that was under way has an outcome.
    pub fn cycle_answered(&mut self) {
        self.schedule.under_way = false;
        self.schedule.cycles += 1;
    }

    /// When the next cycle is due, where there are several negotiators.
    pub fn set_next_cycle(&mut self, at: Option<Time>) {
        self.schedule.next = at;
    }

    /// An agent's Lease is being read.
    pub fn ask_agent_lease(&mut self, machine: &MachineName, now: Time) {
        self.fences.ask(machine, now);
    }

    /// Notes a transition down, for whom transitions are noted.
    pub fn note(&mut self, noted: impl IntoIterator<Item = Noted>) {
        if let Some(trace) = &mut self.trace {
            trace.extend(noted);
        }
    }

    /// Notes a claimed slot's transition down, for whom it is noted.
    pub fn note_transition(&mut self, name: &SlotName, from: State) {
        if let (Some(trace), Some(slot)) = (&mut self.trace, self.slots.get(name)) {
            trace.extend(Noted::of_claimed(slot, from));
        }
    }

    /// A pod without a claim is being deleted.
    pub fn orphan_deleted(&mut self, pod: &PodUid) {
        if let Some(orphan) = self.orphans.get_mut(pod) {
            orphan.deleting = true;
        }
    }

    /// A pod without a claim is settled: its end is booked, or it is none of ours.
    pub fn orphan_settled(&mut self, pod: &PodUid, job: &JobUid) {
        self.orphans.remove(pod);
        self.orphans_granted.remove(pod);
        self.changed(Change::Job(job));
    }

    /// Other procs than before wait for concurrency limits, by the limit's name.
    pub fn set_barred(&mut self, barred: BTreeMap<Arc<str>, u64>) {
        if self.barred != barred {
            self.barred = barred;
            self.changed(Change::Barred);
        }
    }

    /// Puts on record what a negotiator's cycle gave to groups.
    pub fn set_given(&mut self, id: &NegotiatorId, given: Given) {
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        let before = std::mem::replace(&mut turn.given, given.clone());
        let name = |group: &Group| group.name.as_str().to_ascii_lowercase();
        let differs = |group: &&Group| before.groups.get(&name(group)) != given.groups.get(&name(group));
        let changed: Vec<Arc<str>> =
            self.groups.values().filter(differs).map(|group| Arc::clone(&group.object)).collect();
        for group in changed {
            self.changed(Change::Given(&group));
        }
    }

    /// Puts on record of which matches of a negotiator's cycle no claim came, and returns those that were refused in its cycle
    /// before, too.
    pub fn set_refused(
        &mut self,
        id: &NegotiatorId,
        refused: BTreeSet<(JobUid, SlotName)>,
    ) -> Vec<(JobUid, SlotName)> {
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        let again = turn.refused.intersection(&refused).cloned().collect();
        turn.refused = refused;
        again
    }

    /// A negotiator's cycle is over.
    pub fn end_cycle(&mut self, id: NegotiatorId, figures: CycleFigures, matched: bool, now: Time) {
        self.changed(Change::Cycle(id.name()));
        let turn = self.schedule.turns.entry(id).or_default();
        turn.cycles += 1;
        turn.ended = Some(now);
        turn.last = Some(figures);
        // While matches are made there may be more to make.
        turn.wanted |= matched;
    }

    /// Puts on record which negotiator has which slots, and tells of overlaps that are new.
    pub fn set_sharing(&mut self, sharing: Sharing, news: Vec<Notice>) {
        self.notices.extend(news);
        if (&sharing.overlaps, &sharing.uncovered) != (&self.sharing.overlaps, &self.sharing.uncovered) {
            self.changed(Change::Overlaps);
        }
        self.sharing = sharing;
        // Dynamic quotas are shares of what each has.
        self.changed(Change::Shares);
    }

    /// Somebody asked for a cycle since the last one began: each of these negotiators has one to make.
    pub fn spread_wish(&mut self, all: &[AtWork]) {
        if self.take_cycle_wanted() {
            for one in all {
                self.schedule.turns.entry(one.id.clone()).or_default().wanted = true;
            }
        }
    }

    /// The submitter of this name, made where there was none.
    pub fn submitter_mut(&mut self, name: &SubmitterName, now: Time) -> &mut Submitter {
        if !self.submitters.contains_key(name) {
            self.changed(Change::Submitter(name));
        }
        self.submitters.entry(name.clone()).or_insert_with(|| Submitter::new(name.clone(), now))
    }

    /// Tells the people who look at a job.
    pub fn tell(&mut self, about: &JobKey, reason: &'static str, action: &'static str, note: String) {
        let about = Subject::Job(about.clone());
        self.notices.push(Notice { about, warning: false, reason, action, note });
    }

    /// Warns the people who look at a job.
    pub fn warn(&mut self, about: &JobKey, reason: &'static str, action: &'static str, note: String) {
        let about = Subject::Job(about.clone());
        self.notices.push(Notice { about, warning: true, reason, action, note });
    }
}

#[cfg(test)]
mod tests;
