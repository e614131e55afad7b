//! The calls of the operator in the world in memory: what the API server makes of effects and statuses.

use std::sync::Arc;
use std::time::Duration;

use super::world::World;
use crate::kit;
use crate::pool::{
    Batch, ClaimPlan, Deletion, Document, Effect, Entered, Event, Outcome, Recorded, RecordedOwner,
    SlotFacts, SlotName, State, SubmitterName, backfill,
};
use classad::Env;

impl World {
    /// Writes the statuses that are due. Returns whether a job's status or an account has changed.
    pub(super) fn write_statuses(&mut self) -> bool {
        let mut wrote = false;
        for document in self.pool.take_statuses() {
            if let Document::Slot(name) = &document {
                self.record(name);
            }
            if let Document::Submitter(name) = &document {
                wrote |= self.write_accounts(name);
            }
            let Document::Job(uid) = document else { continue };
            let Some(job) = self.pool.jobs().get(&uid) else { continue };
            self.shown_suspended.insert(uid.to_string(), self.pool.suspended_procs(job));
            let Some(facts) = self.jobs.get_mut(uid.as_str()) else { continue };
            let [succeeded, failed] = self.pool.recordable_ends(job);
            let unrecorded = facts.transformed.as_ref() != Some(&job.transformed)
                || facts.owner.owner() != job.owner.as_ref();
            let life = self.pool.life_of(job, (*facts.life).clone());
            let on_hold = self.pool.recordable_holds(job).into_iter().collect();
            if (&facts.succeeded, &facts.failed, facts.cluster_id, &facts.on_hold)
                != (&succeeded, &failed, Some(job.cluster_id), &on_hold)
                || unrecorded
                || *facts.life != life
            {
                *facts.life = life;
                facts.on_hold = on_hold;
                facts.defaults = Some(Arc::clone(&job.defaults));
                facts.transformed = Some(Arc::clone(&job.transformed));
                facts.owner = RecordedOwner::of(job.owner.as_ref());
                (facts.succeeded, facts.failed, facts.cluster_id) = (succeeded, failed, Some(job.cluster_id));
                let facts = facts.clone();
                self.pool.apply(Event::Job(facts), self.now);
                wrote = true;
            }
        }
        wrote
    }

    /// Writes the accounts of a submitter, and deletes the object of a submitter that is forgotten. Returns whether
    /// anything changed.
    fn write_accounts(&mut self, name: &SubmitterName) -> bool {
        let Some(submitter) = self.pool.submitters().get(name) else {
            return self.submitters.remove(name).is_some();
        };
        let facts = self.submitters.entry(name.clone()).or_insert_with(|| kit::submitter(name.as_str()));
        if facts.accounts == submitter.accounts {
            return false;
        }
        (facts.accounts, facts.corrected) = (submitter.accounts.clone(), submitter.corrected.clone());
        let facts = facts.clone();
        self.pool.apply(Event::Submitter(facts), self.now);
        true
    }

    /// Writes a Slot's status as `controller/kinds/slot.rs` does.
    fn record(&mut self, name: &SlotName) {
        let Some(slot) = self.pool.slots().get(name) else { return };
        let Some(running) = slot.active() else { return };
        let recorded = Recorded {
            pod: running.pod.uid.clone(),
            pledged_vacate: running.pledged_vacate,
            suspended: running.suspended,
            suspended_since: running.suspended_since,
            entered: match slot.state() {
                State::Claimed(activity) => Some(Entered {
                    activity,
                    state_since: slot.phase().entered_state(),
                    activity_since: slot.phase().entered_activity(),
                }),
                _ => None,
            },
        };
        self.recorded.insert(name.clone(), recorded);
    }

    fn write_slot(&mut self, plan: ClaimPlan) {
        let ClaimPlan { slot, resources, claim, .. } = plan;
        self.slots.insert(slot.clone(), (resources, claim.clone()));
        let done = Outcome::SlotWritten { slot, proc: claim.last.proc_id(), claim: claim.id };
        self.pool.apply(Event::Outcome(done), self.now);
    }

    /// Makes the call that an effect asks for.
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::WriteSlot(plan) => self.write_slot(*plan),
            Effect::DeleteSlot { slot, claim: of, .. } => {
                let written = self.slots.remove(&slot);
                if slot.dynamic.is_none() && of.is_some() {
                    let resources = written.map(|(resources, _)| resources).unwrap_or_default();
                    let cleared = SlotFacts { name: slot.clone(), resources, claim: None, recorded: None };
                    self.pool.apply(Event::Slot(cleared), self.now);
                } else {
                    let claim = written.map(|(_, claim)| claim.id);
                    self.pool.apply(Event::SlotGone { slot: slot.clone(), claim }, self.now);
                }
                if let Some(claim) = of {
                    self.pool
                        .apply(Event::Outcome(Outcome::SlotDeleted { slot, claim, there: true }), self.now);
                }
            }
            Effect::CreatePod(plan) if self.hangs == Some(&*plan.claim.last.job.name) => {
                self.hung.push((self.now, *plan));
            }
            Effect::CreatePod(plan) => self.create_pod(*plan),
            Effect::DeletePod { pod, grace, why, .. } => {
                self.graces.push(grace);
                self.write_why(&pod, why.as_ref());
                if let Some(takes) = (self.handler)(&pod.name) {
                    self.tell_pod(&pod, grace, takes);
                } else if grace == Some(0) || (self.obeys && !self.is_cut(&pod)) {
                    self.end_pod(&pod, None);
                } else {
                    self.mark_deleted(&pod);
                }
            }
            Effect::Suspend { pod, suspended, .. } => {
                if let Some(marked) = self.pods.get_mut(&*pod.name).filter(|marked| marked.facts.pod == pod) {
                    marked.facts.suspended = suspended;
                }
                if suspended {
                    self.still.insert(pod.uid);
                } else {
                    self.still.remove(&pod.uid);
                }
            }
            Effect::KillByAgent { pod, .. } => {
                if self.agent_kills {
                    self.end_pod(&pod, None);
                }
            }
            Effect::LookAtPod { pod, slot } => {
                if !self.pods.contains_key(&*pod.name) {
                    self.pool.apply(Event::Outcome(Outcome::PodMissing { slot, pod }), self.now);
                }
            }
            Effect::CreateBackfill(plan) => self.create_backfill(&plan),
            Effect::LookForBackfill { slot, .. } => {
                if !self.backfill.contains_key(&backfill::pod_name(&slot)) {
                    self.pool.apply(Event::Outcome(Outcome::BackfillMissing(slot)), self.now);
                }
            }
            Effect::DeleteBackfill { pod, grace, .. } => {
                if let Some(facts) = self.backfill.get_mut(&*pod.name).filter(|facts| facts.pod == pod) {
                    let shown = Duration::from_secs(grace.unwrap_or(30).into());
                    let own_grace = Duration::from_secs(30);
                    facts.deletion = Deletion { deleting: true, grace: Some(shown), own_grace };
                    self.graces.push(grace);
                    let facts = facts.clone();
                    self.pool.apply(Event::Backfill(facts), self.now);
                }
                if self.backfill_obeys || grace == Some(0) {
                    self.end_backfill(&pod.name);
                }
            }
            // No agent of these stories measures anything.
            Effect::Benchmark { .. } => {}
            Effect::Cron { machine, tab } => {
                let jobs: Vec<&str> = tab.jobs.iter().map(|job| &*job.name).collect();
                self.log.push(format!("the agent of {machine} is to run [{}]", jobs.join(", ")));
                if let Some(report) = self.reports.get_mut(machine.as_str()) {
                    report.cron = Some((*tab).clone()).filter(|tab| !tab.jobs.is_empty());
                    self.pool.apply(Event::Report(report.clone()), self.now);
                }
            }
            Effect::ReadAgentLease { machine } => {
                let found = self.agents.get(machine.as_str()).cloned();
                self.log.push(format!("the Lease of the agent of {machine} is read"));
                self.pool.apply(Event::Outcome(Outcome::AgentLeaseRead { machine, found }), self.now);
            }
            Effect::UntrackPod { pod, delete } => self.untrack_pod(&pod, delete),
            Effect::AddJobFinalizer(key) => {
                let facts = self.jobs.get_mut(key.uid.as_str()).unwrap();
                (facts.finalizer, facts.accepted) = (true, true);
                let facts = facts.clone();
                self.pool.apply(Event::Job(facts), self.now);
            }
            Effect::RemoveJobFinalizer(key) => {
                self.jobs.remove(key.uid.as_str());
                self.pool.apply(Event::JobGone(key.uid), self.now);
            }
            Effect::Tell(notice) => self.log.push(format!("{}: {}", notice.reason, notice.note)),
        }
    }

    /// Writes ends into the history. Returns whether anything was written.
    pub(super) fn archive(&mut self, batch: &Batch) -> bool {
        let Some(history) = self.history.as_mut().filter(|_| !self.disk_hangs) else { return false };
        for ended in &*batch.ends {
            let ad = ended.ad();
            let id = ad.eval_attr("GlobalJobId", None, &Env::at(0)).as_str().unwrap().to_owned();
            let entry = history.entry(id).or_default();
            *entry = (entry.0 + 1, ad);
        }
        self.pool.apply(Event::Archived(batch.number), self.now);
        true
    }
}
