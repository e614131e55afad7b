//! Pods in the world in memory, and the kubelets and agents that run them.

use super::world::{Pod, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::pool::{
    Capacity, Deletion, End, Event, Forced, HoldReason, Outcome, PodFacts, PodPlan, PodRef, PodUid, Record,
    Remains, ReportFacts, Usage, Vacate, backfill,
};

impl World {
    pub(super) fn create_backfill(&mut self, plan: &backfill::Plan) {
        self.backfill_asked += 1;
        let slot = plan.slot.clone();
        if let Some((why, certain)) = self.backfill_refused {
            let refused = Outcome::BackfillRefused { slot, why: why.to_owned(), certain };
            self.pool.apply(Event::Outcome(refused), self.now);
            return;
        }
        let name = plan.pod_name();
        assert!(!self.backfill.contains_key(&name), "{name} runs in at most one pod");
        self.next_uid += 1;
        let facts = backfill::Facts {
            pod: PodRef {
                namespace: plan.template.namespace.clone(),
                name: name.as_str().into(),
                uid: format!("pod-{}", self.next_uid).into(),
            },
            machine: plan.slot.machine.clone(),
            slot: Some(plan.slot.slot),
            mark: plan.template.mark.clone(),
            phase: if self.backfill_obeys { backfill::Phase::Runs } else { backfill::Phase::Waits },
            started: self.backfill_obeys.then_some(self.now),
            deletion: Deletion::default(),
            requests: Some(Capacity::of(&plan.resources)),
        };
        self.backfill.insert(name, facts.clone());
        self.pool.apply(Event::Outcome(Outcome::BackfillMade(slot)), self.now);
        self.pool.apply(Event::Backfill(facts), self.now);
    }

    /// The backfill pod reaches another phase by itself.
    pub(super) fn backfill_is(&mut self, name: &str, phase: backfill::Phase) {
        let facts = self.backfill.get_mut(name).unwrap();
        facts.phase = phase;
        if phase == backfill::Phase::Runs {
            facts.started = Some(self.now);
        }
        let facts = facts.clone();
        self.pool.apply(Event::Backfill(facts), self.now);
    }

    /// The kubelet confirms the end of a backfill pod that was deleted.
    pub(super) fn end_backfill(&mut self, name: &str) {
        if let Some(facts) = self.backfill.remove(name) {
            self.pool.apply(Event::BackfillGone(facts.machine, facts.pod.uid), self.now);
        }
    }

    pub(super) fn create_pod(&mut self, plan: PodPlan) {
        let name = plan.claim.pod_name();
        let deferred =
            self.pool.slots().get(&plan.slot).is_none_or(|slot| slot.record() == Record::Unwritten);
        assert!(deferred || self.slots.contains_key(&plan.slot), "a claim exists in the API before its pod");
        assert!(!self.pods.contains_key(&name), "{name} runs in at most one pod");
        let living = self.pods.values().filter(|pod| !pod.facts.is_over()).count();
        let exceeded = self.quota.filter(|most| living >= *most).map(|_| "exceeded quota");
        if let Some(why) = self.pods_refused.or(exceeded) {
            self.log.push(format!("{name} is refused"));
            let (slot, claim) = (plan.slot.clone(), plan.claim.id.clone());
            let refused =
                Outcome::PodRefused { slot, claim, proc: plan.claim.last.proc_id(), why: why.to_owned() };
            self.pool.apply(Event::Outcome(refused), self.now);
            return;
        }
        self.next_uid += 1;
        let obstacle = (self.obstacle)(&name).map(Arc::new);
        let pod = PodRef {
            namespace: plan.claim.last.job.namespace.clone(),
            name: name.as_str().into(),
            uid: format!("pod-{}", self.next_uid).into(),
        };
        let facts = PodFacts {
            running: obstacle.is_none(),
            created: Some(self.now),
            started: obstacle.is_none().then_some(self.now),
            obstacle,
            lease: Some(plan.lease),
            run: Some(plan.run),
            size: plan.resources.plain(),
            tracked: true,
            requests: Capacity::of(&plan.resources),
            ..PodFacts::of_claim(pod, &plan.claim, Some(plan.slot.machine.clone()))
        };
        let (seconds, code) = if facts.running { (self.fate)(&name) } else { (u64::from(u32::MAX), 0) };
        let ends = self.now + Duration::from_secs(seconds);
        let created = Outcome::PodCreated {
            slot: plan.slot.clone(),
            claim: plan.claim.id.clone(),
            pod: facts.pod.clone(),
        };
        self.pods.insert(name, Pod { facts: facts.clone(), plan, ends, code, dies: None, settles: None });
        let mut told = [Event::Outcome(created), Event::Pod(facts)];
        if self.watches_first {
            told.reverse();
        }
        for event in told {
            self.pool.apply(event, self.now);
        }
    }

    pub(super) fn is_cut(&self, pod: &PodRef) -> bool {
        let found = self.pods.get(&*pod.name).and_then(|found| found.facts.machine.as_ref());
        found.is_some_and(|machine| self.cut.contains(machine.as_str()))
    }

    /// Writes on a pod why it is deleted, as far as other code reads that from the pod.
    pub(super) fn write_why(&mut self, pod: &PodRef, why: Option<&Vacate>) {
        let Some(code) = why.and_then(|why| why.reason.hold_code()) else { return };
        if let (Some(why), Some(found)) = (why, self.pods.get_mut(&*pod.name)) {
            found.facts.hold = Some(Box::new(HoldReason { code, subcode: 0, reason: why.message.clone() }));
            // The kubelet no longer reports the obstacle.
            found.facts.obstacle = None;
        }
    }

    pub(super) fn mark_deleted(&mut self, pod: &PodRef) {
        if let Some(found) = self.pods.get_mut(&*pod.name).filter(|found| found.facts.end.is_none()) {
            found.facts.deleting = true;
            let facts = found.facts.clone();
            self.pool.apply(Event::Pod(facts), self.now);
        }
    }

    /// The kubelets and agents of nodes that are not cut off renew their Leases.
    pub(super) fn renew(&mut self) {
        let heard = self.machines.keys().filter(|name| !self.cut.contains(*name)).cloned();
        for name in &heard.collect::<Vec<_>>() {
            let machine = || crate::pool::MachineName::from(name.as_str());
            let ttl = Duration::from_secs(40);
            self.pool.apply(Event::Heartbeat { machine: machine(), ttl }, self.now);
            if let Some(renewal) = self.agents.get_mut(name) {
                renewal.version = format!("{}", self.now.secs()).into();
                let renewal = renewal.clone();
                self.pool.apply(Event::AgentHeartbeat { machine: machine(), ttl, renewal }, self.now);
                if !self.forgetful.contains(name) {
                    let before =
                        self.reports.get(name).cloned().unwrap_or_else(|| ReportFacts::of(machine()));
                    let report = ReportFacts { usage: self.used_on(name), ..before };
                    self.reports.insert(name.clone(), report.clone());
                    self.pool.apply(Event::Report(report), self.now);
                }
            }
        }
    }

    /// The pods that the agent of a node names: each pod there that has not ended.
    fn used_on(&self, node: &str) -> BTreeMap<PodUid, Usage> {
        let on_it = |facts: &PodFacts| facts.machine.as_ref().is_some_and(|machine| machine.as_str() == node);
        let there =
            self.pods.values().map(|pod| &pod.facts).filter(|facts| on_it(facts) && facts.end.is_none());
        there.map(|facts| (facts.pod.uid.clone(), Usage::default())).collect()
    }

    /// A node is no longer cut off: its kubelet ends the pods that were deleted meanwhile.
    pub(super) fn reconnect(&mut self, node: &str) {
        self.cut.remove(node);
        self.renew();
        let deleted = self.pods.values().filter(|pod| pod.facts.deleting).map(|pod| pod.facts.pod.clone());
        for pod in deleted.collect::<Vec<_>>() {
            self.end_pod(&pod, None);
        }
    }

    /// Ends a pod: by itself with an exit code, or because it was deleted.
    pub(super) fn end_pod(&mut self, pod: &PodRef, code: Option<i32>) {
        let Some(found) = self.pods.get_mut(&*pod.name).filter(|found| found.facts.pod == *pod) else {
            return;
        };
        if found.facts.end.is_none() {
            found.facts.end = Some(match code {
                Some(code) => End::Exited { code },
                None => End::Evicted { why: "deleted".into() },
            });
            found.facts.finished = Some(self.now - self.told_late);
            found.facts.deleting = code.is_none();
            if code == Some(0) {
                *self.runs.entry(pod.name.to_string()).or_default() += 1;
            }
            let facts = found.facts.clone();
            self.pool.apply(Event::Pod(facts), self.now);
        }
    }

    pub(super) fn untrack_pod(&mut self, pod: &PodRef, delete: bool) {
        let Some(found) = self.pods.get_mut(&*pod.name).filter(|found| found.facts.pod == *pod) else {
            return;
        };
        let slot = self.slots.get(&found.plan.slot);
        let uid = found.facts.job.as_str();
        let recorded = self.jobs.get(uid).is_none_or(|job| {
            job.succeeded.contains(found.facts.proc)
                || job.failed.contains(found.facts.proc)
                || job.life.removed.contains(found.facts.proc)
                || job.on_hold.of(found.facts.proc).is_some()
                || job.life.history.of(found.facts.proc).is_some_and(|run| run.starts > found.plan.run)
                || !matches!(found.facts.end, Some(End::Exited { .. }))
        });
        assert!(recorded, "{} was let go before its end was recorded", pod.name);
        assert!(
            slot.is_some() || found.plan.claim.id.as_str().is_empty() || !recorded || self.pool.is_synced()
        );
        found.facts.tracked = false;
        let facts = found.facts.clone();
        if delete || facts.deleting {
            self.pods.remove(&*pod.name);
            self.pool.apply(Event::PodGone(facts), self.now);
        } else {
            self.pool.apply(Event::Pod(facts), self.now);
        }
    }

    /// A pod is deleted, and its kubelet tells the program to end. The kubelet does so once: later deletions have no
    /// effect (kubernetes#83916).
    pub(super) fn tell_pod(&mut self, pod: &PodRef, grace: Option<u32>, takes: u64) {
        const LEAST: u32 = 2;
        let now = self.now;
        let Some(found) = self.pods.get_mut(&*pod.name).filter(|found| found.facts.pod == *pod) else {
            return;
        };
        if found.facts.end.is_some() {
            return;
        }
        let granted = Duration::from_secs(u64::from(grace.unwrap_or(30).max(LEAST)));
        found.dies.get_or_insert(now + granted.min(Duration::from_secs(takes)));
        found.facts.deleting = true;
        // The API server shows what the deletion says, and the operator remembers the longest.
        let shown = Duration::from_secs(u64::from(grace.unwrap_or(30)));
        found.facts.grace = found.facts.grace.max(Some(shown.into()));
        if grace == Some(0) {
            found.facts.forced = Forced::Running;
        }
        let facts = found.facts.clone();
        self.pool.apply(Event::Pod(facts), now);
    }

    /// Kubelets that act like real ones report that programs have ended and, a second later, that pods have.
    fn run_told(&mut self) {
        let now = self.now;
        let mut changed = Vec::new();
        for found in self.pods.values_mut() {
            if found.settles.is_some_and(|at| at <= now) {
                (found.settles, found.facts.remains) = (None, Remains::Nothing);
                found.facts.forced = Forced::No;
                changed.push(found.facts.clone());
            } else if found.facts.end.is_none() && found.dies.is_some_and(|at| at <= now) {
                found.facts.end = Some(End::Evicted { why: "deleted".into() });
                found.facts.remains = Remains::Ending;
                found.settles = Some(now + Duration::from_secs(1));
                changed.push(found.facts.clone());
            }
        }
        for facts in changed {
            self.pool.apply(Event::Pod(facts), now);
        }
    }

    pub(super) fn run_pods(&mut self) {
        self.run_told();
        let due: Vec<(PodRef, i32)> = self
            .pods
            .values()
            .filter(|pod| pod.facts.end.is_none() && pod.ends <= self.now)
            .filter(|pod| !self.is_cut(&pod.facts.pod))
            .map(|pod| (pod.facts.pod.clone(), pod.code))
            .collect();
        for (pod, code) in due {
            self.end_pod(&pod, Some(code));
        }
    }
}
