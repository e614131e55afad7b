//! Events about pods, and outcomes of calls about slots and pods. `apply_ends` has how pods end.

use super::Pool;
use super::event::{PodFacts, Remains};
use super::ids::{ClaimId, JobUid, PodRef, ProcId, SlotName};
use super::job::{End, Job};
use super::marks::Change;
use super::resources::Capacity;
use super::slot::{Activation, Assignment, CLAIM_RETRY, Claim, PodNews, Record, Removal, Slot, pod_name};
use super::time::Time;

impl Pool {
    /// Learns from a pod. While an operator starts, a pod that is over waits among the orphans until all pods are seen
    /// ([`Self::settle_ended_pods`]): a claim belongs to the pod that lives, and an earlier leader may have given the claim of a pod
    /// that is over to another proc.
    pub(super) fn pod(&mut self, facts: PodFacts, now: Time) {
        if !self.synced && facts.tracked && facts.is_over() {
            self.orphan(facts, now);
        } else {
            self.pod_seen(facts, now);
        }
    }

    fn pod_seen(&mut self, mut facts: PodFacts, now: Time) {
        if facts.claim.as_str().is_empty()
            && let Some(claim) = self.claim_that_runs(&facts).or_else(|| self.claim_taken_off(&facts))
        {
            facts.claim = claim;
        }
        if facts.end.is_none() {
            facts.remains = Remains::Others;
        }
        let uid = facts.pod.uid.clone();
        if let Some(job) = self.jobs.get_mut(&facts.job).filter(|job| job.owns(&facts)) {
            job.learn_run(&facts);
        }
        self.unseen.seen(&uid);
        // If the pod was to be deleted as well, the note stays until it is gone.
        if !facts.tracked && self.untracking.get(&uid).is_some_and(|untracking| !untracking.delete) {
            self.untracking.remove(&uid);
        }
        self.give_to_whose_pod_it_is(&facts);
        if !facts.is_over() {
            self.follow_pod(&facts);
        }
        self.adopt_remains(&facts, now);
        let Some(name) = self.slot_for(&facts) else {
            self.orphan(facts, now);
            return;
        };
        self.drop_orphan(&uid, now);
        self.count_beyond_slot(&name, &facts);
        if self.slots.get(&name).is_some_and(Slot::is_requested) {
            // The pod is seen before its creation is answered.
            self.pod_is_accepted(&facts.job, facts.proc, now);
        }
        let booked = self.slots.get(&name).is_some_and(Slot::has_ended);
        match &facts.end {
            _ if booked => self.pod_ends(&name, &facts, now),
            Some(end) if facts.remains != Remains::Ending => self.pod_ended(&name, &facts, end.clone(), now),
            _ => self.pod_lives(&name, facts, now),
        }
    }

    /// The claim in whose slot this very pod runs, whatever the pod says of itself.
    fn claim_that_runs(&self, facts: &PodFacts) -> Option<ClaimId> {
        let slot = self.slots.get(self.jobs.get(&facts.job)?.active.get(&facts.proc)?)?;
        let runs = slot.running().is_some_and(|running| running.pod.uid == facts.pod.uid);
        runs.then(|| slot.claim().id.clone())
    }

    /// The claim of a pod from which somebody took the claim's id while no operator led. It is the claim on the pod's
    /// machine that names the proc of the pod. If the pod cannot be decoded either, its machine is unknown, and all
    /// machines are searched.
    fn claim_taken_off(&self, facts: &PodFacts) -> Option<ClaimId> {
        self.jobs.get(&facts.job).filter(|job| facts.tracked && job.owns(facts))?;
        let own = |claim: &&Claim| claim.last.job.uid == facts.job && claim.last.proc == facts.proc;
        let claim = self.slots_near(facts).map(Slot::claim).find(own);
        claim.map(|claim| claim.id.clone())
    }

    /// Counts what a pod requests beyond its slot because admission added to it (a sidecar, a `LimitRange`'s default, a
    /// `RuntimeClass`'s overhead). As much less can be carved from the node.
    fn count_beyond_slot(&mut self, name: &SlotName, facts: &PodFacts) {
        let slot = self.slots.get(name).filter(|_| !facts.is_over());
        let beyond = slot.map(|slot| facts.requests.beyond(slot.resources())).unwrap_or_default();
        match &facts.machine {
            Some(machine) if beyond != Capacity::default() => {
                self.hold_beyond(facts.pod.uid.clone(), machine.clone(), beyond);
            }
            _ => self.drop_outside(&facts.pod.uid),
        }
    }

    /// Resolves two claims for one proc. An earlier leader made the second because the slot of the first could not be
    /// deleted. The proc belongs to the claim whose pod this is.
    fn give_to_whose_pod_it_is(&mut self, facts: &PodFacts) {
        let Some(slot) = self.slot_of(&facts.claim).filter(|_| !self.synced) else { return };
        let own = slot.claim().last.job.uid == facts.job && slot.claim().last.proc == facts.proc;
        if !own || !slot.is_vacant() {
            return;
        }
        let name = slot.name().clone();
        if self.taken_from_other(facts) != Some(true) {
            return;
        }
        if let Some(job) = self.jobs.get_mut(&facts.job) {
            job.active.insert(facts.proc, name.clone());
        }
        self.edit_slot(&name, Slot::assign_again);
    }

    /// Takes the pod's proc from the claim that has the proc, unless a pod of that claim is known. Returns whether
    /// the proc was taken; `None` if no claim has the proc.
    fn taken_from_other(&mut self, facts: &PodFacts) -> Option<bool> {
        let other = self.jobs.get(&facts.job)?.active.get(&facts.proc).cloned()?;
        Some(self.edit_slot(&other, Slot::withdraw).flatten().is_some())
    }

    /// Follows an earlier leader that gave a claim to another proc of the job that the claim's object names. The leader
    /// did not write that: the proc's pod, which names the claim, is the record.
    fn follow_pod(&mut self, facts: &PodFacts) {
        let Some(name) = self.slot_of_later_proc(facts) else { return };
        // The runs of a job that is being deleted are not known any more, and do not count.
        let is_past = |job: &Job| job.was_out(facts.proc) || (job.removing && facts.is_over());
        // An earlier leader that counted a run gave the run's claim to the next proc.
        if self.jobs.get(&facts.job).is_some_and(is_past) || self.is_of_earlier_run(facts) {
            return;
        }
        // If another claim's object names the proc, too, the proc belongs to the claim whose pod this is.
        if self.taken_from_other(facts) == Some(false) {
            return;
        }
        self.withdraw(&name);
        if let Some(job) = self.jobs.get_mut(&facts.job) {
            job.idle.remove(facts.proc);
            job.active.insert(facts.proc, name.clone());
        }
        let is_held = self.jobs.get(&facts.job).is_some_and(|job| job.is_out(facts.proc));
        self.edit_slot(&name, |slot| {
            slot.serve(facts.proc);
            if is_held {
                slot.must_go(Removal::ByUser);
            }
        });
    }

    /// Gives each pod that is over to its claim, unless a pod that lives has the claim: first the pods of the procs that the claims'
    /// objects name, then those of other procs (see [`Self::follow_pod`]). All pods must be seen before.
    pub(super) fn settle_ended_pods(&mut self, now: Time) {
        let over = self.orphans().values().filter(|facts| facts.is_over() && facts.tracked);
        for facts in over.cloned().collect::<Vec<_>>() {
            self.pod_seen(facts, now);
        }
        let over = |facts: &&PodFacts| facts.is_over() && self.slot_of_later_proc(facts).is_some();
        for facts in self.orphans().values().filter(over).cloned().collect::<Vec<_>>() {
            self.take_over(facts, now);
        }
    }

    /// Gives a pod to the claim that it names, whether or not the pod is over.
    fn take_over(&mut self, facts: PodFacts, now: Time) {
        self.follow_pod(&facts);
        self.pod_seen(facts, now);
    }

    /// Gives each pod from which somebody took the claim's id to a claim of the pod's job, on the pod's machine, whose own pod
    /// nobody has seen. The claim was used again, so that its object names another proc than the pod's. All pods that name their
    /// claims must be seen before.
    pub(super) fn adopt_unmarked(&mut self, now: Time) {
        // A pod that was evicted counts for nothing more, and may be of a run before the claim's.
        let counts = |facts: &PodFacts| !facts.is_over() || facts.end.as_ref().is_some_and(End::is_final);
        let unmarked = |facts: &&PodFacts| facts.claim.as_str().is_empty() && facts.tracked && counts(facts);
        for facts in self.orphans().values().filter(unmarked).cloned().collect::<Vec<_>>() {
            if let Some(claim) = self.claim_without_pod(&facts) {
                self.take_over(PodFacts { claim, ..facts }, now);
            }
        }
    }

    fn claim_without_pod(&self, facts: &PodFacts) -> Option<ClaimId> {
        self.jobs.get(&facts.job).filter(|job| job.owns(facts))?;
        let serves =
            |slot: &&Slot| self.may_serve_later(slot, facts) && self.slot_of(&slot.claim().id).is_some();
        self.slots_near(facts).find(serves).map(|slot| slot.claim().id.clone())
    }

    /// The slots of the pod's machine, in the order of their names; all slots if the machine is unknown because the pod cannot be decoded.
    /// The operator gives each of its pods a node, so that a pod without a node is in no slot.
    fn slots_near<'a>(&'a self, facts: &'a PodFacts) -> Box<dyn Iterator<Item = &'a Slot> + 'a> {
        match &facts.machine {
            Some(machine) => Box::new(self.slots_on(machine)),
            None if facts.requests.is_unknown() => Box::new(self.slots.values()),
            None => Box::new(std::iter::empty()),
        }
    }

    /// The slot whose claim this pod names, if the claim's object names another proc of the pod's job, no pod of the claim
    /// is known, and the start is not complete. Anybody may write labels: namespace, name and machine must be those that
    /// the operator chose. The machine of a pod that cannot be decoded is unknown: such a pod's uid must be the one that the Slot's
    /// status records.
    fn slot_of_later_proc(&self, facts: &PodFacts) -> Option<SlotName> {
        let slot = self.slot_of(&facts.claim)?;
        self.may_serve_later(slot, facts).then(|| slot.name().clone())
    }

    /// Whether the pod may be that of a later proc to which the slot's claim was given: see [`Self::slot_of_later_proc`].
    fn may_serve_later(&self, slot: &Slot, facts: &PodFacts) -> bool {
        let last = &slot.claim().last;
        let free = slot.is_vacant() || slot.is_assigned();
        !self.synced
            && facts.tracked
            && free
            && last.job.uid == facts.job
            && last.proc != facts.proc
            && last.job.namespace == facts.pod.namespace
            && *pod_name(&last.job.name, facts.proc) == *facts.pod.name
            && facts
                .machine
                .as_ref()
                .map_or_else(|| slot.records(&facts.pod.uid), |machine| *machine == slot.name().machine)
    }

    /// Adopts what is left of a pod whose proc's end or hold an earlier leader recorded, and whose containers still run
    /// in the slot of its claim. Anybody may write labels, so the pod must have the namespace and the name that the
    /// operator chose.
    fn adopt_remains(&mut self, facts: &PodFacts, now: Time) {
        let ours = |job: &Job| job.owns(facts) && job.is_out(facts.proc);
        let left = self.jobs.get(&facts.job).is_some_and(ours) && facts.tracked && !facts.is_over();
        let Some(slot) = self.slot_of(&facts.claim).filter(|_| left && !self.synced) else { return };
        let last = &slot.claim().last;
        let is_own = slot.is_vacant() && last.job.uid == facts.job && last.proc == facts.proc;
        let own = is_own.then(|| slot.name().clone());
        let Some(name) = own.or_else(|| self.slot_of_later_proc(facts)) else { return };
        // The proc that the claim's object names may have been given to the claim.
        self.withdraw(&name);
        self.edit_slot(&name, |slot| {
            slot.serve(facts.proc);
            slot.pod_ends(facts, now);
        });
        self.keep_remains(&name, &facts.job);
    }

    pub(super) fn keep_remains(&mut self, name: &SlotName, job: &JobUid) {
        if let Some(job) = self.jobs.get_mut(job) {
            job.remains.insert(name.clone());
        }
    }

    /// Notes that nothing is left of a slot's pod: the claim has no pod any more.
    pub fn let_remains_go(&mut self, name: &SlotName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.pod_is_over();
        let uid = slot.claim().last.job.uid.clone();
        let Some(job) = self.jobs.get_mut(&uid) else { return };
        job.remains.remove(name);
        if job.removing {
            self.changed(Change::Job(&uid));
        }
    }

    /// Whether containers may still run of pods of the job's ended procs.
    pub fn has_remains(&self, job: &JobUid) -> bool {
        let left = |slot: &Slot| slot.claim().last.job.uid == *job && slot.has_ended();
        let slots = self.jobs.get(job).into_iter().flat_map(|job| &job.remains);
        slots.filter_map(|name| self.slots.get(name)).any(left)
    }

    /// The slot whose present proc runs in this pod. Labels alone prove nothing, since anybody may write them:
    /// namespace, name and claim must be those that the operator chose.
    fn slot_for(&self, facts: &PodFacts) -> Option<SlotName> {
        let slot = self.slot_of(&facts.claim)?;
        let claim = &slot.claim();
        let same_pod = match slot.activation() {
            Activation::Vacant => false,
            // A pod whose finalizer was taken off blocks the name of the proc's next pod until the pod is gone.
            // So does a pod of an earlier run whose end is recorded: the claim may have served other procs since.
            Activation::Assigned | Activation::Requested { .. } => {
                !self.untracking.contains_key(&facts.pod.uid) && !self.is_of_earlier_run(facts)
            }
            Activation::Active(running) | Activation::Ended(running, _) => running.pod.uid == facts.pod.uid,
        };
        (same_pod
            && claim.last.job.uid == facts.job
            && claim.last.proc == facts.proc
            && claim.last.job.namespace == facts.pod.namespace
            && *claim.pod_name() == *facts.pod.name)
            .then(|| slot.name().clone())
    }

    /// Whether a pod is over whose end an earlier leader saw: the leader counted the pod's run, or took the pod's finalizer off. A pod
    /// that never ran counts as no run.
    fn is_of_earlier_run(&self, facts: &PodFacts) -> bool {
        let booked = || self.jobs.get(&facts.job).is_some_and(|job| job.is_booked(facts));
        facts.is_over() && (!facts.tracked || booked())
    }

    fn pod_lives(&mut self, name: &SlotName, facts: PodFacts, now: Time) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let uid = facts.job.clone();
        match slot.pod_lives(facts, now) {
            PodNews::Nothing => {}
            PodNews::Pod => {
                // The record of an act may have waited for the deletion of the pod to be seen.
                if slot.removal().is_some_and(Removal::is_asked) {
                    self.changed(Change::JobStatus(&uid));
                }
                self.changed(Change::Slot(name));
            }
            PodNews::Started => {
                self.lasts_from(name, now);
                self.changed(Change::Started(name));
                if let Some(job) = self.jobs.get_mut(&uid) {
                    job.first_start.get_or_insert(now);
                    self.changed(Change::JobStatus(&uid));
                }
            }
        }
    }

    pub(super) fn pod_gone(&mut self, mut facts: PodFacts, now: Time) {
        if facts.claim.as_str().is_empty()
            && let Some(claim) = self.claim_that_runs(&facts)
        {
            facts.claim = claim;
        }
        let uid = &facts.pod.uid;
        let slot = self.slot_for(&facts);
        self.unseen.seen(uid);
        self.orphan_gone(uid, now);
        self.untracking.remove(uid);
        self.drop_outside(uid);
        // The pod went and no end was seen: somebody took the finalizer off. The run is over, and its work is lost.
        if let Some(name) = slot {
            let end = facts.end.clone().filter(|_| facts.is_over());
            let end = end.unwrap_or(End::Evicted { why: "its pod was deleted".into() });
            let facts = PodFacts { remains: Remains::Nothing, ..facts.clone() };
            self.pod_ended(&name, &facts, end, now);
            self.vanished.insert(uid.clone());
        }
        self.forget_earlier_pod(&facts);
        self.changed(Change::Job(&facts.job));
    }

    pub(super) fn pod_created(&mut self, name: &SlotName, claim: &ClaimId, pod: PodRef, now: Time) {
        // The answer may be late: the claim may serve another proc now, whose pod has another name.
        if let Some(slot) = self.slots.get_mut(name)
            && slot.claim().id == *claim
            && *slot.claim().pod_name() == *pod.name
            && slot.claim().last.job.namespace == pod.namespace
            && slot.is_requested()
        {
            self.unseen.made(pod.clone(), name.clone(), now);
            slot.pod_is_created(&pod);
            let (job, proc) = (slot.claim().last.job.uid.clone(), slot.claim().last.proc);
            self.changed(Change::Slot(name));
            self.pod_is_accepted(&job, proc, now);
        }
    }

    /// Notes that the API server has accepted a proc's new pod. An earlier refusal of the job's pods is over, and more of the job's procs
    /// may be tried.
    fn pod_is_accepted(&mut self, job: &JobUid, proc: u32, now: Time) {
        if self.jobs.get(job).is_some_and(|job| job.refused.is_some()) {
            self.edit_job(job, |job| job.refused = None);
        }
        if self.jobs.get_mut(job).is_some_and(|job| job.pod_is_accepted(proc, now)) {
            self.changed(Change::Released);
        }
    }

    pub(super) fn pod_refused(&mut self, name: &SlotName, of: (&ClaimId, &ProcId), why: &str, now: Time) {
        let Some(slot) = self.claimed_mut(name, of) else { return };
        let Some(Assignment { job, proc, .. }) = slot.pod_is_refused() else { return };
        self.changed(Change::Slot(name));
        self.send_back(&job.uid, proc, format!("got no pod ({why})"), now);
        if let Some(job) = self.jobs.get_mut(&job.uid) {
            let until = job.rest(now);
            self.wake_at(until);
        }
        self.warn(
            &job,
            "PodRefused",
            "CreatePod",
            format!("the pod of proc {proc} could not be made: {why}"),
        );
    }

    pub(super) fn slot_refused(&mut self, name: &SlotName, of: (&ClaimId, &ProcId), why: &str, now: Time) {
        let Some(slot) = self.claimed_mut(name, of).filter(|slot| slot.record() != Record::Written) else {
            return;
        };
        slot.write_failed(now);
        let withdrawn = slot.withdraw();
        self.changed(Change::Slot(name));
        if let Some(Assignment { job, proc, .. }) = withdrawn {
            self.send_back(&job.uid, proc, format!("got no slot ({why})"), now);
            self.warn(
                &job,
                "ClaimRefused",
                "Claim",
                format!("the claim on {name} could not be written: {why}"),
            );
        } else {
            self.wake_slot_at(name, now + CLAIM_RETRY);
        }
    }

    /// The slot, if it still has this claim for this proc. Answers may be late.
    fn claimed_mut(&mut self, name: &SlotName, (claim, proc): (&ClaimId, &ProcId)) -> Option<&mut Slot> {
        self.slots
            .get_mut(name)
            .filter(|slot| slot.claim().id == *claim && slot.claim().last.proc_id() == *proc)
    }
}
