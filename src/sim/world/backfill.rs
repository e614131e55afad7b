//! Backfill pods: each runs until it is deleted.

use std::time::Duration;

use super::World;
use crate::number::span;
use crate::queue::Happening;
use model::pool::backfill::{Facts, Phase, Plan};
use model::pool::{Capacity, Deletion, Event, Outcome, PodRef, PodUid, Pool, Time};

impl World<'_> {
    /// The API server makes a backfill pod.
    pub(super) fn make_backfill(&mut self, plan: &Plan, pool: &mut Pool, now: Time) {
        self.pods_made += 1;
        let uid: PodUid = format!("pod-{}", self.pods_made).into();
        let namespace = plan.template.namespace.clone();
        let facts = Facts {
            pod: PodRef { namespace, name: plan.pod_name().into(), uid: uid.clone() },
            machine: plan.slot.machine.clone(),
            slot: Some(plan.slot.slot),
            mark: plan.template.mark.clone(),
            phase: Phase::Waits,
            started: None,
            deletion: Deletion::default(),
            requests: Some(Capacity::of(&plan.resources)),
        };
        self.backfill.insert(uid.clone(), facts.clone());
        pool.apply(Event::Outcome(Outcome::BackfillMade(plan.slot.clone())), now);
        pool.apply(Event::Backfill(facts), now);
        let start = span(self.scenario.timing.pod_start.draw(&mut self.kubelets));
        self.queue.schedule(now + start, Happening::BackfillStarts(uid));
    }

    /// The container of a backfill pod starts, unless the pod is being deleted.
    pub(super) fn backfill_starts(&mut self, uid: &PodUid, pool: &mut Pool, now: Time) {
        let Some(facts) = self.backfill.get_mut(uid).filter(|facts| !facts.deletion.deleting) else { return };
        (facts.phase, facts.started) = (Phase::Runs, Some(now));
        pool.apply(Event::Backfill(facts.clone()), now);
    }

    /// The API server deletes a backfill pod. With a grace of 0 the pod is gone at once; else its kubelet ends the
    /// container first.
    pub(super) fn delete_backfill(&mut self, uid: &PodUid, grace: Option<u32>, pool: &mut Pool, now: Time) {
        let Some(facts) = self.backfill.get_mut(uid) else { return };
        if grace == Some(0) {
            self.backfill_ends(uid, pool, now);
            return;
        }
        let takes = span(self.scenario.timing.pod_end.draw(&mut self.kubelets));
        let takes = grace.map_or(takes, |grace| takes.min(Duration::from_secs(grace.into())));
        facts.deletion = Deletion { deleting: true, grace: Some(takes), own_grace: takes };
        pool.apply(Event::Backfill(facts.clone()), now);
        self.queue.schedule(now + takes, Happening::BackfillEnds(uid.clone()));
    }

    /// A backfill pod has ended and is gone from the API server.
    pub(super) fn backfill_ends(&mut self, uid: &PodUid, pool: &mut Pool, now: Time) {
        if let Some(facts) = self.backfill.remove(uid) {
            pool.apply(Event::BackfillGone(facts.machine, facts.pod.uid), now);
        }
    }
}
