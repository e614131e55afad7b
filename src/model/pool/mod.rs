//! The pool: everything that the operator knows, in memory.
//!
//! The pool changes by [`Event`]s, through [`Pool::apply`], and by the deciders, which note in it what they asked the
//! shell to do, so that they ask for nothing twice. Time is an argument. All collections are ordered: the same events
//! at the same times give the same pool and the same effects, byte for byte.
//!
//! A fact that must survive a crash is in the API server before any effect that relies on the fact. A pool that is
//! built anew from a list continues where the old one ended.

mod absent;
pub mod accountant;
mod acts;
mod agent;
mod apply;
mod apply_accounts;
mod apply_backfill;
mod apply_ends;
mod apply_jobs;
mod apply_machines;
mod apply_outcomes;
mod apply_pods;
mod apply_policies;
mod apply_slots;
mod archive;
pub mod backfill;
mod by_proc;
mod carve;
mod charges;
mod creating;
mod cron;
mod crontabs;
mod devices;
mod drain;
mod edit;
mod effect;
mod event;
mod extended;
mod fence;
mod gathering;
mod given;
mod governing;
mod groups;
mod heartbeat;
mod history;
mod holdings;
mod holds;
mod idle;
mod ids;
mod indexed;
mod job;
mod job_defaults;
mod job_policy;
mod jobs;
mod lasting;
mod latest_result;
mod leaving;
pub mod limits;
mod machine;
mod machine_slot;
mod made;
mod marks;
pub mod negotiation;
mod negotiators;
mod on_evict;
mod on_hold;
mod orphans;
mod owner;
mod pacing;
mod pausing;
mod periodic;
mod plain;
mod policy;
mod ranges;
mod read;
mod readiness;
mod resources;
mod resting;
mod schedule;
mod secure_attributes;
mod slot;
mod slot_policy;
pub mod slot_types;
mod stuck;
mod submit_rules;
mod submitter;
mod submitters;
mod time;
mod timers;
mod trace;
pub mod units;
mod unseen;
mod untracking;
mod unwritten;
mod waits;
mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use absent::Absentees;
use archive::Archive;
use groups::Groups;
use indexed::Indexed;
use jobs::Jobs;
use latest_result::LatestResult;
use marks::{Change, Marks};
use orphans::Orphans;
use submitters::Submitters;

use crate::BoxMap;
use crate::schedd::Quotas;

pub use absent::{Absence, AbsentMachine};
pub use acts::{Act, Verb, Whom};
pub use agent::{Benchmarks, Device, MOST_METRICS, ReportFacts, Usage};
pub use archive::{Batch, Ended, LastRun, Left};
pub use backfill::{Backfill as BackfillWork, Stage as BackfillStage, Template as BackfillTemplate};
pub use by_proc::ByProc;
pub use cron::{Autopublish, CronJob, CronMode, CronPolicy, Crontab, Metric, MetricKind, SlotOutput};
pub use crontabs::check_crontab;
pub use devices::Inventory;
pub use drain::{
    Cost as DrainCost, Drain, DrainFacts, DrainSpec, DrainedFor, Draining, History as DrainHistory,
    Phase as DrainPhase, Schedule as DrainSchedule, Unclaimed as UnclaimedTime,
};
pub use effect::{ClaimPlan, Document, Effect, Notice, PodPlan, Subject, Vacate, VacateReason};
pub use event::{
    Event, Forced, JobFacts, LifeFacts, NegotiatorFacts, Outcome, PodFacts, PolicyFacts, Remains, Retry,
    SlotFacts, SubmitPolicyFacts, SubmitterFacts,
};
pub use extended::ExtendedResources;
pub use fence::{FENCE_MARGIN, Fence, Fenced, Fences, Renewal};
pub use gathering::Gathering;
pub use given::{Allocation, Given};
pub use governing::{Fallback, Governing, GoverningFacts, ValidSpec};
pub use heartbeat::Heartbeats;
pub use history::{Exit, History};
pub use holdings::{Holdings, LimitObject};
pub use holds::{
    HOLD_CODES, JOB_DURATION_EXCEEDED, JOB_EXECUTE_EXCEEDED, JOB_POLICY, JOB_POLICY_UNDEFINED,
    MISSED_DEFERRED_TIME, SYSTEM_POLICY, USER_REQUEST,
};
pub use idle::Idle;
pub use ids::{
    BadSlotName, ClaimId, GroupName, JobKey, JobUid, MachineName, PodRef, PodUid, PolicyName, ProcId,
    SlotName, SubmitterName,
};
pub use job::{
    Cooling, End, Job, JobFinalizer, JobSpec, Matchable, Needs, Problem, QueueKey, Request, Retention,
    SentMessages, Unsaid,
};
pub use job_defaults::JobDefaults;
pub use job_policy::{ProcView, Standing, SystemExpr, SystemPolicy};
pub use jobs::Queues;
pub use lasting::LASTING;
pub use leaving::{
    Cause, Deletion, Eviction, Granted, HoldReason, KILL_GRACE, KUBELET_SLACK, Preemptor, Retirement,
};
pub use machine::{
    Expected, LastInput, Load, Machine, MachineFacts, OUT_OF_SERVICE, Offer, OwnConfig, Relaid, Sensed,
    System, Taint,
};
pub use machine_slot::{MachineSlot, Share};
pub use made::LastAds;
pub use negotiators::{AtWork, NegotiatorId, Sharing, SlotTally};
pub use on_evict::OwnSpec;
pub use owner::{OwnerRule, OwnerSource, RecordedOwner, Requester, UnknownCreator, is_like, is_namespace};
pub use pacing::{LONGEST_DELAY, Paced, Pacing};
pub use pausing::Pause;
pub use plain::{NoSize, PlainSize};
pub use policy::{
    ByMachine, ClaimWorklife, Group, Latch, NegotiatorConfig, NodePolicy, Quota, Selection, Selector,
    SelectorTerm, SlotConfig, StartdConfig, SubmitConfig, Toleration,
};
pub use ranges::{BadRanges, Ranges};
pub use resources::{Capacity, DeviceId, GPUS, NODE_RESOURCES, PODS, ResourceName, Resources, classad_name};
pub use schedule::{CycleFigures, Pauses, Schedule, Turn};
pub use slot::{
    Activation, Assignment, Backfill, CLAIM_RETRY, Claim, Claimed, Drained, Entered, LastTransition, Latched,
    Number, Phase, Preempting, Record, Recorded, Removal, Running, Shown, Slot, State, Unclaimed, pod_name,
};
pub use slot_policy::{ByUniverse, Policy};
pub use slot_types::Kind as SlotKind;
pub use stuck::{
    FAILED_TO_CREATE_PROCESS, INVALID_DOCKER_IMAGE, JOB_OUT_OF_RESOURCES, OUT_OF_DISK, OUT_OF_MEMORY,
    Obstacle, START_PATIENCE, STARTD_HELD_JOB, Stuck,
};
pub use submit_rules::{SubmitRules, Transformed};
pub use submitter::{Accounts, Submitter};
pub use submitters::InUse;
pub use time::{Seconds, Time};
pub use timers::Timers;
pub use trace::Noted;
pub use unseen::Unseen;
pub use untracking::Untracking;
pub use waits::{Amount, Bar, Explaining, FailedClause, RejectReason, Rejected, Rejections, Side, Waits};
pub use zone::Zone;

/// Everything that the operator knows.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Machines by name.
    machines: BoxMap<MachineName, Machine>,
    /// The ads of machines and slots that were made last.
    last_ads: LastAds,
    /// Claimed slots by name: dynamic ones, and static ones that have a claim.
    slots: BoxMap<SlotName, Slot>,
    /// Jobs by uid.
    jobs: Jobs,
    /// Submitters by name.
    submitters: Submitters,
    /// Accounting groups by the name of their object.
    groups: Groups,
    /// Node policies by name.
    policies: BTreeMap<PolicyName, NodePolicy>,
    /// Submit policies by name; the first counts.
    submit_policies: BTreeMap<Arc<str>, Governing<SubmitConfig>>,
    /// Negotiators by name.
    negotiators: BTreeMap<Arc<str>, Governing<NegotiatorConfig>>,
    /// Concurrency limits by the name of their object.
    limits: BTreeMap<Arc<str>, LimitObject>,
    /// The parts of concurrency limits, quotas and ceilings that claims hold.
    holdings: Holdings,
    /// Procs that wait for a concurrency limit, by its name, as of the last cycle.
    barred: BTreeMap<Arc<str>, u64>,
    /// Claims that wait until several dynamic slots have gone.
    gatherings: Indexed<ClaimId, Gathering>,
    /// Drain requests by the name of their object.
    drains: Indexed<Arc<str>, Drain>,
    /// When cycles run.
    schedule: Schedule,
    /// Which negotiator has which slots.
    sharing: Sharing,
    /// Whether everything that existed at the start is known.
    synced: bool,
    /// Whether claims are written only once they have lasted.
    claims_late: bool,
    /// Whether the pods that existed at the start are still to be searched for claims that an earlier leader had not written.
    unwritten: bool,
    /// Pods of the pool whose claim is not known.
    orphans: Orphans,
    /// Pods whose tracking finalizer is being taken off, until they are seen without it.
    untracking: BTreeMap<PodUid, Untracking>,
    /// Pods that went before their finalizer was taken off, until their slots have noted that.
    vanished: BTreeSet<PodUid>,
    /// Pods that were created and that no watch has shown.
    unseen: Unseen,
    /// Slot objects that may have to be deleted.
    strays: BTreeSet<SlotName>,
    /// Objects of static slots that have no claim, as they were last seen, with the size that they show.
    unclaimed_objects: BTreeMap<SlotName, Resources>,
    /// Backfill work.
    backfill: BackfillWork,
    /// Machines whose nodes went, and that stay listed.
    absent: Absentees,
    /// Until when each machine counts as alive.
    heartbeats: Heartbeats,
    /// Until when each machine's agent counts as alive.
    agents: Heartbeats,
    /// The promises of the agents.
    fences: Fences,
    /// The last report of each agent. A report may be seen before its node.
    reports: BTreeMap<MachineName, Arc<ReportFacts>>,
    marks: Marks,
    /// Ends of procs on their way into the history.
    archive: Archive,
    /// Events to tell people.
    notices: Vec<Notice>,
    /// The transitions since tracing began; `None` if nobody traces.
    trace: Option<Vec<Noted>>,
    claims: BTreeMap<ClaimId, SlotName>,
    /// For each slot, the last claim whose object the operator deleted, until the object is seen gone.
    deleted_claims: BTreeMap<SlotName, ClaimId>,
    outside: BTreeMap<PodUid, apply_machines::Outside>,
    wakes: BTreeSet<Time>,
    alarms: BTreeSet<(Time, SlotName)>,
    /// The slots whose pods are being created, or wait for that.
    creating: creating::Creating,
    /// The slots whose claims were activated a short while ago, and whose statuses are written if their procs last.
    lasting: lasting::Lasting,
    /// When machines are looked at again.
    machine_alarms: Timers<MachineName>,
    /// When the expressions of jobs are evaluated that act from time to time.
    evaluations: Timers<JobUid>,
    /// When the crontabs of jobs are looked at again.
    crontabs: Timers<JobUid>,
    /// Jobs with procs that wait before they are tried again: when the first of these waits ends.
    pauses: Timers<JobUid>,
    /// The steps that the evaluations of jobs' expressions have taken, and in which second.
    evaluated: (Time, u32),
    retries: BTreeSet<(Time, Retry)>,
    last_cluster_id: i64,
    /// The highest `ClusterId` that this operator gave, or that the pool's Lease names; 0 if there is none.
    given_cluster_id: i64,
    last_claim: u64,
    /// How many changes there were.
    changes: u64,
    /// The quotas in force, which a look at all slots computes, and the GroupQuotas that are not accepted.
    quotas: LatestResult<QuotasInForce>,
}

/// The quotas in force, and for each GroupQuota object that is not accepted, the reason.
pub type QuotasInForce = (Quotas, BTreeMap<Arc<str>, String>);

impl Pool {
    /// The quotas in force. `make` computes them if the pool has changed since they were computed, or in another second.
    pub fn quotas_in_force(&self, now: Time, make: impl FnOnce() -> QuotasInForce) -> Arc<QuotasInForce> {
        self.quotas.at(self.changes, now.secs(), make)
    }

    /// The configuration in force of the first negotiator by name, or HTCondor's defaults.
    pub fn negotiator(&self) -> &NegotiatorConfig {
        let first = self.negotiators.values().find_map(|object| object.config.as_deref());
        first.unwrap_or_else(|| negotiators::defaults())
    }

    /// The defaults for a job that is submitted now.
    pub fn job_defaults(&self) -> Arc<JobDefaults> {
        self.submit_config().map_or_else(JobDefaults::own, |config| Arc::clone(&config.job_defaults))
    }

    /// How the operator finds the owner of a job that is submitted now.
    pub fn owner_rule(&self) -> OwnerRule {
        self.submit_config().map_or_else(OwnerRule::default, |config| config.owner.clone())
    }

    /// Completes a spec as if its job were submitted now: adds the defaults, and applies the SubmitPolicy's transforms.
    ///
    /// # Errors
    /// The problems with the spec, or the submit requirement that the job does not meet.
    pub fn complete(&self, spec: &mut JobSpec, submitted: Time) -> Result<(), Vec<Problem>> {
        self.job_defaults().complete(spec, submitted)?;
        if let Some(config) = self.submit_config() {
            config.rules.submit(spec, submitted)?;
        }
        check_crontab(&spec.ad, submitted).map_err(|problem| vec![problem])
    }

    /// The configuration of the SubmitPolicy in force: the first by name.
    pub fn submit_config(&self) -> Option<&Arc<SubmitConfig>> {
        self.submit_policies.values().next().and_then(|policy| policy.config.as_ref())
    }

    /// The spec of the proc that a claim last served.
    pub fn spec_of(&self, last: &Assignment) -> Option<&Arc<JobSpec>> {
        self.jobs.get(&last.job.uid)?.spec_of(last.proc)
    }

    /// The startd's configuration in force on a machine, or HTCondor's defaults.
    pub fn startd(&self, machine: &Machine) -> Arc<StartdConfig> {
        machine.in_force.clone().unwrap_or_else(StartdConfig::unset)
    }

    /// The group of this name, in upper or lower case, as in HTCondor.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.named(name).next()
    }

    /// All GroupQuotas, by the names of their groups; of those that declare one group, the first counts.
    pub fn ranked_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.ranked()
    }

    /// The GroupQuota that counts of each group, by the names of the groups.
    pub fn counting_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.counting()
    }

    /// Another GroupQuota that declares the same group, if there is one: the one that counts, or the next if this one does.
    pub fn rival_of(&self, group: &Group) -> Option<&Group> {
        self.groups.named(&group.name).find(|other| other.object != group.object)
    }

    /// Whether a Slot object is as it should be: a claim is on the slot, or it shows a static slot with its present
    /// size.
    pub fn is_right(&self, name: &SlotName) -> bool {
        let machine_slot = || {
            let machine = self.machines.get(&name.machine)?;
            machine
                .machine_slots
                .get(&name.slot)
                .filter(|slot| slot.kind == SlotKind::Static && name.dynamic.is_none())
        };
        let shown = self.unclaimed_objects.get(name);
        let as_it_stands = |slot: &MachineSlot| shown.is_some_and(|shown| shown.is_as_much_as(&slot.total));
        self.slots.contains_key(name) || machine_slot().is_some_and(as_it_stands)
    }

    /// The slot that has this claim.
    pub fn slot_of(&self, claim: &ClaimId) -> Option<&Slot> {
        self.claims.get(claim).and_then(|name| self.slots.get(name))
    }

    /// Asks the deciders to look again at this time.
    pub fn wake_at(&mut self, at: Time) {
        self.wakes.insert(at);
    }

    /// Asks the deciders to look at a slot at this time.
    pub fn wake_slot_at(&mut self, name: &SlotName, at: Time) {
        self.alarms.insert((at, name.clone()));
    }

    /// Asks the deciders to look at a slot at this time, and no longer at the time set before. Each slot has one alarm,
    /// so that alarms do not pile up however often a slot is looked at.
    pub fn set_alarm(&mut self, name: &SlotName, at: Option<Time>) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.alarm() != at) else { return };
        if let Some(before) = slot.set_alarm(at) {
            self.alarms.remove(&(before, name.clone()));
        }
        self.alarms.extend(at.map(|at| (at, name.clone())));
    }

    /// Asks the deciders to look at a machine at this time, and no longer at the time set before.
    pub fn wake_machine_at(&mut self, name: &MachineName, at: Option<Time>) {
        self.machine_alarms.set(name, at);
    }

    /// When the deciders must next look, if nothing happens before.
    pub fn next_look(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let machine = self.machine_alarms.next();
        let silence = [
            self.heartbeats.next(),
            self.agents.next(),
            self.unseen.next(),
            self.next_evaluation(),
            self.crontabs.next(),
            self.absent.next(),
        ];
        let lasting = self.lasting.next(self.creating.asked());
        let own = [self.wakes.first().copied(), alarm, machine, self.schedule.next, lasting];
        silence.into_iter().chain(own).flatten().min()
    }

    /// Marks all that was to be looked at by now: slots and machines by their alarms, the purposes of failed calls, and
    /// a cycle if a cycle may find something new.
    pub fn wake(&mut self, now: Time) {
        self.jobs.wake(now);
        while let Some((_, name)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.set_alarm(slot.alarm().filter(|at| *at > now));
            }
            self.changed(Change::Slot(&name));
        }
        self.show_what_lasted(now);
        self.follow_crontabs(now);
        while let Some(uid) = self.pauses.pop_due(now) {
            self.wake_job(&uid, now);
        }
        self.evaluate_due(now);
        self.forget_absent(now);
        while let Some(name) = self.machine_alarms.pop_due(now) {
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

    /// Takes note of the procs of a job that waited until now, and of the end of the next wait.
    fn wake_job(&mut self, uid: &JobUid, now: Time) {
        let next = self.jobs.get_mut(uid).and_then(|job| job.idle.wake(now));
        self.pauses.set(uid, next);
    }

    /// Returns a number for a new claim.
    pub fn next_claim_number(&mut self) -> u64 {
        self.last_claim += 1;
        self.last_claim
    }

    /// Describes what is kept although nothing needs it any more, in a pool in which nothing runs.
    #[cfg(test)]
    pub fn leftovers(&self) -> Option<String> {
        let kept = self.machines.values().flat_map(Machine::slots).any(|slot| slot.kept.is_some());
        let idle = self.claims.is_empty()
            && self.gatherings.is_empty()
            && !kept
            && self.vanished.is_empty()
            && self.outside.is_empty()
            && self.strays.is_empty()
            && self.jobs.values().all(|job| job.unrecorded.is_empty());
        (!idle).then(|| {
            format!(
                "claims {:?}, gatherings {:?}, kept: {kept}, vanished {:?}, outside slots {:?}, strays {:?}",
                self.claims, *self.gatherings, self.vanished, self.outside, self.strays
            )
        })
    }

    /// Whether everything that existed at the start is known.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Removes and returns the Slot objects that must be deleted.
    pub fn take_strays(&mut self) -> Vec<SlotName> {
        let strays = std::mem::take(&mut self.strays);
        strays.into_iter().filter(|name| !self.is_right(name)).collect()
    }

    /// Removes and returns the events for people.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The highest `ClusterId` that was given to a job.
    pub fn highest_cluster(&self) -> i64 {
        self.last_cluster_id
    }

    /// Begins to record transitions.
    pub fn begin_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// Whether transitions are recorded.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Removes and returns the transitions that were recorded.
    pub fn take_trace(&mut self) -> Vec<Noted> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that an agent's Lease is being read.
    pub fn ask_agent_lease(&mut self, machine: &MachineName, now: Time) {
        self.fences.ask(machine, now);
    }

    /// Records transitions, if they are recorded.
    pub fn note(&mut self, noted: impl IntoIterator<Item = Noted>) {
        if let Some(trace) = &mut self.trace {
            trace.extend(noted);
        }
    }

    /// A claimed slot has taken a transition. The transition is recorded, if transitions are; and the job's status counts
    /// suspended procs.
    pub fn transition_taken(&mut self, name: &SlotName, from: State) {
        let Some(slot) = self.slots.get(name) else { return };
        if let Some(trace) = &mut self.trace {
            trace.extend(Noted::of_claimed(slot, from));
        }
        let suspended = State::Claimed(Claimed::Suspended);
        if (from == suspended) != (slot.state() == suspended) {
            let job = slot.claim().last.job.uid.clone();
            if self.jobs.contains_key(&job) {
                self.changed(Change::JobStatus(&job));
            }
        }
    }

    /// Stores how many procs wait for each concurrency limit.
    pub fn set_barred(&mut self, barred: BTreeMap<Arc<str>, u64>) {
        if self.barred != barred {
            self.barred = barred;
            self.changed(Change::Barred);
        }
    }

    /// Stores what a negotiator's cycle gave to groups.
    pub fn set_given(&mut self, id: &NegotiatorId, given: Given) {
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        let before = std::mem::replace(&mut turn.given, given.clone());
        let name = |group: &Group| group.name.as_str().to_ascii_lowercase();
        let differs = |group: &&Group| before.groups.get(&name(group)) != given.groups.get(&name(group));
        let changed: Vec<Arc<str>> =
            self.groups.by_object().values().filter(differs).map(|group| Arc::clone(&group.object)).collect();
        for group in changed {
            self.changed(Change::Given(&group));
        }
    }

    /// Stores which negotiator has which slots, and adds the notices about new overlaps.
    pub fn set_sharing(&mut self, sharing: Sharing, news: Vec<Notice>) {
        self.notices.extend(news);
        if (&sharing.overlaps, &sharing.uncovered) != (&self.sharing.overlaps, &self.sharing.uncovered) {
            self.changed(Change::Overlaps);
        }
        self.sharing = sharing;
        // Dynamic quotas are shares of what each negotiator has.
        self.changed(Change::Shares);
    }

    /// Tells something to the people who look at a job.
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
