//! Methods that read the pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    BackfillWork, ClaimId, Claimed, Drain, Fences, Gathering, Governing, Group, Heartbeats, Holdings, Job,
    JobUid, LimitObject, Machine, MachineName, NegotiatorConfig, NodePolicy, PodUid, PolicyName, Pool,
    ReportFacts, Schedule, Sharing, Slot, SlotName, State, SubmitConfig, Submitter, SubmitterName,
    Untracking,
};
use crate::BoxMap;

impl Pool {
    /// Machines by name.
    pub fn machines(&self) -> &BoxMap<MachineName, Machine> {
        &self.machines
    }

    /// How many procs of a job are suspended. Without agents no proc is suspended, and a job of very many procs costs no look at
    /// their slots.
    pub fn suspended_procs(&self, job: &Job) -> usize {
        let still = |name: &&SlotName| {
            self.slots.get(*name).is_some_and(|slot| slot.state() == State::Claimed(Claimed::Suspended))
        };
        if self.reports.is_empty() { 0 } else { job.active.values().filter(still).count() }
    }

    /// Claimed slots by name: dynamic ones, and static ones that have a claim.
    pub fn slots(&self) -> &BoxMap<SlotName, Slot> {
        &self.slots
    }

    /// Jobs by uid.
    pub fn jobs(&self) -> &BoxMap<JobUid, Job> {
        &self.jobs
    }

    /// Submitters by name.
    pub fn submitters(&self) -> &BTreeMap<SubmitterName, Submitter> {
        self.submitters.by_name()
    }

    /// Accounting groups by the name of their object.
    pub fn groups(&self) -> &BTreeMap<Arc<str>, Group> {
        self.groups.by_object()
    }

    /// Node policies by name.
    pub fn policies(&self) -> &BTreeMap<PolicyName, NodePolicy> {
        &self.policies
    }

    /// Submit policies by name; the first counts.
    pub fn submit_policies(&self) -> &BTreeMap<Arc<str>, Governing<SubmitConfig>> {
        &self.submit_policies
    }

    /// Negotiators by name.
    pub fn negotiators(&self) -> &BTreeMap<Arc<str>, Governing<NegotiatorConfig>> {
        &self.negotiators
    }

    /// Concurrency limits by the name of their object.
    pub fn limits(&self) -> &BTreeMap<Arc<str>, LimitObject> {
        &self.limits
    }

    /// The parts of concurrency limits, quotas and ceilings that claims hold.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// Procs that wait for a concurrency limit, by its name, as of the last cycle.
    pub fn barred(&self) -> &BTreeMap<Arc<str>, u64> {
        &self.barred
    }

    /// Claims that wait until several dynamic slots have gone.
    pub fn gatherings(&self) -> &BTreeMap<ClaimId, Gathering> {
        &self.gatherings
    }

    /// Drain requests by the name of their object.
    pub fn drains(&self) -> &BTreeMap<Arc<str>, Drain> {
        &self.drains
    }

    /// When cycles run.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Which negotiator has which slots.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Pods whose tracking finalizer is being taken off, until they are seen without it.
    pub fn untracking(&self) -> &BTreeMap<PodUid, Untracking> {
        &self.untracking
    }

    /// Backfill work.
    pub fn backfill(&self) -> &BackfillWork {
        &self.backfill
    }

    /// Until when each machine counts as alive.
    pub fn heartbeats(&self) -> &Heartbeats {
        &self.heartbeats
    }

    /// Until when each machine's agent counts as alive.
    pub fn agents(&self) -> &Heartbeats {
        &self.agents
    }

    /// The promises of the agents.
    pub fn fences(&self) -> &Fences {
        &self.fences
    }

    /// The last report of each agent. A report may be seen before its node.
    pub fn reports(&self) -> &BTreeMap<MachineName, Arc<ReportFacts>> {
        &self.reports
    }
}
