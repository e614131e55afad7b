//! Applies events to the pool: hands each event to the module of its subject.

use super::Pool;
use super::event::Event;
use super::ids::SlotName;
use super::marks::Change;
use super::slot::{Claimed, Slot, State};
use super::time::Time;

impl Pool {
    /// Takes note of what happened.
    pub fn apply(&mut self, event: Event, now: Time) {
        match event {
            Event::Machine(facts) => self.machine(facts, now),
            Event::MachineGone(name) => self.machine_gone(&name),
            Event::Absent(machine) => self.absent_seen(machine),
            Event::AbsentGone { machine, since } => self.absent_deleted(&machine, since),
            Event::Heartbeat { machine, ttl } => self.heartbeat(machine, now, now + ttl),
            Event::HeartbeatsEnded(machine) => {
                self.heartbeats.forget(&machine);
                self.changed(Change::Machine(&machine));
            }
            Event::Report(facts) => self.report(facts, now),
            Event::ReportGone(name) => self.report_gone(&name, now),
            Event::AgentHeartbeat { machine, ttl, renewal } => {
                self.agent_heard(&machine, renewal, now + ttl, now);
            }
            Event::AgentHeartbeatsEnded(machine) => self.agent_unheard(&machine, now),
            Event::ForeignPod { pod, machine, requests } => {
                // If somebody takes the label off a backfill pod, the pod becomes a pod outside the pool.
                self.backfill_gone(&machine, &pod, now);
                self.hold_foreign(pod, machine, requests);
            }
            Event::ForeignPodGone(pod) => self.drop_outside(&pod),
            Event::Backfill(facts) => self.backfill_seen(facts, now),
            Event::BackfillGone(machine, pod) => self.backfill_gone(&machine, &pod, now),
            Event::Pod(facts) => self.pod(facts, now),
            Event::PodGone(facts) => self.pod_gone(facts, now),
            Event::Job(facts) => self.job(facts, now),
            Event::JobGone(uid) => self.job_gone(&uid, now),
            Event::Archived(batch) => self.archived(batch),
            Event::Slot(facts) => self.slot(facts, now),
            Event::SlotGone { slot, claim } => self.slot_gone(&slot, claim.as_ref(), now),
            Event::Submitter(facts) => self.submitter(facts, now),
            Event::SubmitterGone(name) => self.submitter_gone(&name),
            Event::Group(group) => self.group_seen(group),
            Event::GroupGone(object) => {
                self.groups.remove(&object);
                self.changed(Change::Groups);
            }
            Event::Limit(limit) => self.limit_seen(limit),
            Event::LimitGone(object) => self.limit_gone(&object),
            Event::Policy(facts) => self.policy(facts),
            Event::PolicyGone(name) => {
                self.policies.remove(&name);
                self.backfill.forget_policy(&name);
                self.changed(Change::Policies);
            }
            Event::SubmitPolicy(facts) => self.submit_policy(facts, now),
            Event::SubmitPolicyGone(name) => {
                self.submit_policies.remove(&name);
                self.changed(Change::SubmitPolicies);
                self.judge_refused_jobs(now);
                self.plan_evaluations(now);
            }
            Event::Drain(facts) => self.drain_seen(facts),
            Event::DrainGone(name) => self.drain_gone(&name),
            Event::Negotiator(facts) => self.negotiator_seen(facts, now),
            Event::NegotiatorGone(name) => {
                self.negotiators.remove(&name);
                self.negotiators_changed(now);
            }
            Event::ClusterIdsGiven(highest) => {
                self.given_cluster_id = self.given_cluster_id.max(highest);
                self.last_cluster_id = self.last_cluster_id.max(highest);
            }
            Event::Synced => self.sync(now),
            Event::Outcome(outcome) => self.outcome(outcome, now),
        }
    }

    /// Lets the slots that are in Claimed/Idle wait from now on. The start may take minutes, and no slot could go on before: the time
    /// for which a claim waits for an earlier pod of its proc begins now.
    fn wait_from_now(&mut self, now: Time) {
        let idle = |slot: &&Slot| slot.state() == State::Claimed(Claimed::Idle);
        let names: Vec<SlotName> = self.slots.values().filter(idle).map(|slot| slot.name().clone()).collect();
        for name in names {
            self.step_slot(&name, |slot| slot.recall(now, now));
        }
    }

    fn sync(&mut self, now: Time) {
        self.settle_ended_pods(now);
        self.adopt_unmarked(now);
        self.slots.pack();
        self.synced = true;
        self.unwritten = true;
        self.wait_from_now(now);
        self.recall_drains();
        self.number_jobs();
        self.charge_orphans();
        // The accounts were last written before the crash; the claims and the orphans say what is held now.
        self.settle_accounts(now);
        self.carry_out_found(now);
        self.changed(Change::Synced);
    }
}
