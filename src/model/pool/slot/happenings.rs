//! What happens to a claimed slot. Each method is one happening, and keeps the slot's facts consistent.

use super::activation::{Activation, Recorded, Running};
use super::claim::{Assignment, Claim};
use super::record::{Record, Shown};
use super::state::LastTransition;
use super::{Latched, Removal, Slot, State};
use crate::pool::event::{PodFacts, Remains};
use crate::pool::ids::PodRef;
use crate::pool::job::End;
use crate::pool::leaving::{Cause, Eviction, HoldReason, Preemptor, Retirement};
use crate::pool::limits::Wants;
use crate::pool::machine::Load;
use crate::pool::time::Time;

/// What is new after a pod was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing that the slot's next step depends on.
    Nothing,
    /// The pod, its deletion, or what keeps the pod from starting.
    Pod,
    /// The pod began to run.
    Started,
}

/// The claim's object.
impl Slot {
    /// An earlier leader's slot, taken over as the slot's object shows it. What was `recorded` of a job counts once the job's
    /// pod is seen.
    #[must_use]
    pub fn adopted(self, assigned: bool, removal: Option<Removal>, recorded: Option<Recorded>) -> Self {
        let activation = if assigned { Activation::Assigned } else { Activation::Vacant };
        Self { record: Record::Written, activation, removal, recorded, ..self }
    }

    /// The claim has to be written: it is new, or the object does not have it as it is here.
    pub const fn claim_is_due(&mut self) {
        self.record = Record::Due;
    }

    /// A write of the claim begins.
    pub const fn write_begins(&mut self) {
        self.record = Record::Writing;
    }

    /// A write of the claim succeeded.
    pub const fn claim_is_written(&mut self) {
        (self.record, self.shown) = (Record::Written, Shown::Own);
    }

    /// A write of the claim failed.
    pub const fn write_failed(&mut self, at: Time) {
        self.record = Record::Refused { at };
    }

    /// The claim is over, and the deletion of its object begins.
    pub fn deletion_begins(&mut self) {
        if self.name.dynamic.is_none() && self.record != Record::Written {
            self.shown = Shown::Unheard;
        }
        self.record = Record::Deleting;
    }

    /// The deletion of the object failed: the object still has the claim.
    pub const fn deletion_failed(&mut self) {
        self.record = Record::Written;
    }

    /// An object is seen under a dynamic slot's name, with the slot's own claim or without.
    pub const fn object_shows(&mut self, own_claim: bool) {
        if self.name.dynamic.is_some() {
            self.shown = if own_claim { Shown::Own } else { Shown::Another };
        }
    }

    /// No object is left under a dynamic slot's name.
    pub const fn object_is_gone(&mut self) {
        self.object_shows(true);
    }

    /// The claim takes this of limited things. What the claim took before counts until the object says so too.
    pub(in crate::pool) fn take_limits(&mut self, limits: Wants) {
        let before = std::mem::replace(&mut self.claim.limits, limits);
        self.carry_limits(&before);
    }

    /// The object may still say that the slot holds this of limited things.
    pub(in crate::pool) fn carry_limits(&mut self, limits: &Wants) {
        self.carried_limits = self.carried_limits.or_more(limits);
    }

    /// The object says what the claim holds of limited things.
    pub(in crate::pool) fn limits_are_written(&mut self) {
        self.carried_limits = Wants::default();
    }
}

/// The claim's proc and its pod.
impl Slot {
    /// The claim is given a proc.
    pub fn assign(&mut self, proc: Assignment) {
        self.claim.last = proc;
        self.activation = Activation::Assigned;
        self.removal = None;
        self.record = Record::Due;
    }

    /// A vacant claim has its last proc again: it was another claim's by mistake.
    pub fn assign_again(&mut self) {
        if self.is_vacant() {
            self.activation = Activation::Assigned;
        }
    }

    /// A proc that has no pod yet leaves its claim. Returns the proc; none if the claim has no such proc.
    pub fn withdraw(&mut self) -> Option<Assignment> {
        self.is_assigned().then(|| {
            self.activation = Activation::Vacant;
            self.claim.last.clone()
        })
    }

    /// The operator asks for the pod, made of this generation of the job, to which the machine gives this `RANK`.
    pub fn request_pod(&mut self, generation: Option<i64>, rank: f64) {
        self.rank = rank;
        self.activation = Activation::Requested { generation };
    }

    /// The API server has created the pod.
    pub fn pod_is_created(&mut self, pod: &PodRef) {
        self.activation = Activation::Active(self.activation.take_pod(pod));
    }

    /// The API server has not created the pod. Returns the proc; none if no pod was requested.
    pub fn pod_is_refused(&mut self) -> Option<Assignment> {
        self.is_requested().then(|| {
            self.activation = Activation::Vacant;
            self.claim.last.clone()
        })
    }

    /// The pod is seen, and its proc has not ended.
    pub fn pod_lives(&mut self, facts: PodFacts, now: Time) -> Seen {
        let face = |running: &Running| {
            let hopeless = running.stuck.as_ref().map(|stuck| stuck.obstacle.hopeless);
            let deletion = (running.deleting, running.doomed, running.granted, running.forced);
            (running.pod.clone(), running.runs, deletion, hopeless)
        };
        let before = self.active().map(face);
        let ran = self.active().is_some_and(|running| running.runs);
        let mut running = self.activation.take_pod(&facts.pod);
        running.note_deletion(&facts, now);
        running.runs = facts.running;
        running.deleting |= facts.deleting;
        running.lease = facts.lease.max(running.lease);
        running.ended = running.ended.or(facts.end.filter(|_| !facts.told));
        if facts.running {
            running.started.get_or_insert(facts.started.unwrap_or(now));
        }
        running.meet(facts.obstacle, now);
        let seen = match before {
            _ if facts.running && !ran => Seen::Started,
            Some(before) if before == face(&running) => Seen::Nothing,
            _ => Seen::Pod,
        };
        self.activation = Activation::Active(running);
        seen
    }

    /// The proc's end is seen, or more is seen of the pod of a proc that has ended.
    pub fn pod_ends(&mut self, facts: &PodFacts, now: Time) {
        let mut running = self.activation.take_pod(&facts.pod);
        running.note_deletion(facts, now);
        running.deleting = facts.deleting;
        self.activation = Activation::Ended(running, facts.remains);
    }

    /// The end of a proc is booked, which was seen as `end`. Returns how the proc ended.
    pub fn book_end(&mut self, facts: &PodFacts, end: End, now: Time) -> End {
        let ran = self.active().is_none_or(|running| running.runs) || facts.running;
        self.spent |= !ran && matches!(end, End::Evicted { .. });
        self.pod_ends(facts, now);
        // A program that had ended before anybody asked its pod to go was not told to.
        let before = self.activation.running_mut().and_then(|running| running.ended.take());
        before.filter(|_| facts.told).unwrap_or(end)
    }

    /// Nothing of the pod is left.
    pub fn pod_is_over(&mut self) {
        self.activation = Activation::Vacant;
    }

    /// The proc must go.
    pub fn must_go(&mut self, why: Removal) {
        match why {
            Removal::JobRemoved => self.removal = self.removal.or(Some(why)),
            Removal::MachineGone => self.removal = Some(why),
        }
    }

    /// The operator deletes the pod, as in [`Running::delete`]. Returns the pod, if there is one.
    pub fn delete_pod(&mut self, grace: Option<u32>, now: Time) -> Option<PodRef> {
        Some(self.activation.running_mut()?.delete(grace, now))
    }

    /// The operator deletes the pod by force: the pod is taken off its kubelet. Returns the pod, if there is one.
    pub fn delete_pod_by_force(&mut self, now: Time) -> Option<PodRef> {
        let running = self.activation.running_mut()?;
        running.asked_by_force = true;
        Some(running.delete(Some(0), now))
    }

    /// The operator deletes a pod that cannot start. Returns the pod, and what its proc is held for.
    pub fn give_up_pod(&mut self, now: Time) -> Option<(PodRef, HoldReason)> {
        let running = self.activation.running_mut()?;
        let stuck = running.stuck.as_mut()?;
        stuck.given_up = true;
        let hold = stuck.obstacle.hold.clone();
        Some((running.delete(None, now), hold))
    }

    /// The operator asks the agent to suspend the job, or to continue it. Returns the pod, if the proc has not ended.
    pub fn ask_to_freeze(&mut self, suspended: bool) -> Option<PodRef> {
        let Activation::Active(running) = &mut self.activation else { return None };
        running.frozen = Some(suspended);
        Some(running.pod.clone())
    }

    /// A call about the pod failed: nobody knows whether the operator was heard, so the operator asks again.
    pub fn forget_asked(&mut self) {
        if let Some(running) = self.activation.running_mut() {
            (running.deleting, running.frozen, running.asked_by_force) = (false, None, false);
        }
        if let Some(eviction) = self.eviction_mut() {
            (eviction.by_agent, eviction.agent_asked) = (false, false);
        }
    }
}

/// States and what follows from them.
impl Slot {
    /// Enters a state and activity by a transition.
    pub fn enter(&mut self, to: State, taken: LastTransition) {
        self.phase.enter(to, taken);
    }

    /// Sets since when the slot is in its state and activity, as its object says.
    pub const fn recall(&mut self, state: Time, activity: Time) {
        self.phase.recall(state, activity);
    }

    /// The claim is activated, with what is pledged to the job: `MachineMaxVacateTime` and the job's `MaxJobRetirementTime` in
    /// seconds, how long the job may run in all and vacate, in seconds, and `RANK`.
    pub fn activate(
        &mut self,
        vacate: i64,
        retirement: Option<i64>,
        pledged: (i64, i64),
        rank: f64,
        now: Time,
    ) {
        self.rank = rank;
        let recorded = self.recorded.take();
        let Some(running) = self.activation.running_mut() else { return };
        (running.pledged_vacate, running.own_retirement, running.pledged) = (vacate, retirement, pledged);
        if let Some(recorded) = recorded.filter(|recorded| recorded.pod == running.pod.uid) {
            running.resume(&recorded, now);
        }
    }

    /// The job is suspended from now on.
    pub fn suspend(&mut self, now: Time) {
        if let Some(running) = self.activation.running_mut() {
            running.suspended_since.get_or_insert(now);
        }
    }

    /// The job goes on, if it was suspended.
    pub fn continue_job(&mut self, now: Time) {
        if let Some(running) = self.activation.running_mut() {
            running.continues(now);
        }
    }

    /// The claim is in retirement.
    pub fn retire(&mut self, cause: Cause) {
        self.retirement.get_or_insert(Retirement::new(cause)).cause = cause;
    }

    /// The claim is in retirement no longer.
    pub fn unretire(&mut self) {
        self.retirement = None;
    }

    /// The job of a claim in retirement is sent away; `cause` counts for a claim that is in no retirement.
    pub fn evict(&mut self, cause: Cause, eviction: Eviction) {
        self.retirement.get_or_insert(Retirement::new(cause)).eviction = Some(eviction);
    }

    /// The job is killed.
    pub fn kill(&mut self, now: Time) {
        let retirement = self.retirement.get_or_insert(Retirement::new(Cause::MachineGone));
        let eviction = retirement.eviction.get_or_insert(Eviction::until(now, None));
        eviction.killed.get_or_insert(now);
    }

    /// The agent is asked to kill a pod that its kubelet lets run for long yet.
    pub fn kill_by_agent(&mut self) {
        if let Some(eviction) = self.eviction_mut() {
            eviction.by_agent = true;
        }
    }

    /// `KILLING_TIMEOUT` is over, and the agent is asked to kill what is left.
    pub fn killing_takes_too_long(&mut self) {
        if let Some(eviction) = self.eviction_mut() {
            eviction.agent_asked = true;
        }
    }

    /// Nothing of the job is left, and the claim goes on.
    pub fn settle(&mut self) {
        self.retirement = None;
    }

    /// The claim that waited takes the slot. Its work life begins now: it has not worked yet.
    pub fn succeed(&mut self, now: Time) {
        self.settle();
        (self.removal, self.spent) = (None, false);
        if let Some(next) = self.preempting.take() {
            self.claim = Claim { since: now, ..next.claim };
            self.rank = next.rank;
            self.record = Record::Due;
        }
    }

    fn eviction_mut(&mut self) -> Option<&mut Eviction> {
        self.retirement.as_mut()?.eviction.as_mut()
    }
}

/// What surrounds the slot.
impl Slot {
    /// A claim waits for the slot.
    pub(in crate::pool) fn is_awaited_by(&mut self, next: Preemptor) {
        self.preempting = Some(Box::new(next));
    }

    /// The claim that waited goes, if `which` says so. Returns the claim.
    pub(in crate::pool) fn is_awaited_no_longer(
        &mut self,
        which: impl FnOnce(&Preemptor) -> bool,
    ) -> Option<Preemptor> {
        self.preempting.take_if(|next| which(next)).map(|next| *next)
    }

    /// The machine's `RANK` for the claim's job.
    pub const fn set_rank(&mut self, rank: f64) {
        self.rank = rank;
    }

    /// The slot's part of the machine's load.
    pub const fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    /// The values of the latches.
    pub fn set_latched(&mut self, latched: Vec<Latched>) {
        self.latched = latched;
    }

    /// When the policy is looked at again. Returns when the policy was to be looked at before.
    pub(in crate::pool) const fn set_alarm(&mut self, at: Option<Time>) -> Option<Time> {
        std::mem::replace(&mut self.alarm, at)
    }

    /// Whether the submitter is not charged for the slot.
    pub(in crate::pool) const fn set_discounted(&mut self, discounted: bool) {
        self.discounted = discounted;
    }
}

impl Slot {
    /// Whether something of a pod is left whose proc has ended.
    pub fn remains(&self) -> Option<Remains> {
        match self.activation {
            Activation::Ended(_, remains) => Some(remains),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
