//! The happenings of a claimed slot. Each method is one happening, and keeps the slot's facts consistent.

use std::time::Duration;

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

/// The news when the operator has seen a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNews {
    /// Nothing on which the slot's next step depends.
    Nothing,
    /// The pod, its deletion, or whether waiting for the pod's start is hopeless.
    Pod,
    /// The pod's containers have started.
    Started,
}

/// For how long a slot that a new leader has taken over may be in another activity before it enters the one that the earlier leader
/// recorded.
const IN_PASSING: Duration = Duration::from_mins(1);

/// Happenings of the claim's object.
impl Slot {
    /// The slot as taken over from an earlier leader, whose object has the claim. `assigned` says whether the claim has
    /// a proc to run. `recorded` counts once the job's pod is seen.
    #[must_use]
    pub fn adopted(self, assigned: bool, removal: Option<Removal>, recorded: Option<Recorded>) -> Self {
        let activation = if assigned { Activation::Assigned } else { Activation::Vacant };
        let named = Some(self.claim.last.proc);
        let recorded = recorded.map(Box::new);
        Self { record: Record::Written, sent: true, named, activation, removal, recorded, ..self }
    }

    /// Returns the slot with a claim that need not be written before the claim's first pod is created.
    #[must_use]
    pub fn unwritten(self) -> Self {
        Self { record: Record::Unwritten, ..self }
    }

    /// The claim must be written: the claim is new, or the object does not have the claim as the pool has it.
    pub const fn claim_is_due(&mut self) {
        self.record = Record::Due;
    }

    /// The operator begins to write the claim.
    pub const fn write_begins(&mut self) {
        (self.record, self.sent) = (Record::Writing, true);
    }

    /// The operator has written the claim.
    pub const fn claim_is_written(&mut self) {
        (self.record, self.shown) = (Record::Written, Shown::Own);
        self.named = Some(self.claim.last.proc);
    }

    /// The operator heard at this time that a write of the claim failed.
    pub const fn write_failed(&mut self, at: Time) {
        self.record = Record::Refused { at };
    }

    /// The claim is over, and the operator begins to delete its object; for a static slot, to take the claim off the
    /// object.
    pub fn deletion_begins(&mut self) {
        if self.name.dynamic.is_none() && self.record != Record::Written {
            self.shown = Shown::Unheard;
        }
        self.record = Record::Deleting;
    }

    /// The deletion of the object failed, so that the object still has the claim.
    pub const fn deletion_failed(&mut self) {
        self.record = Record::Written;
    }

    /// The object under the slot's name was seen, with the slot's own claim or without. Changes nothing for a static
    /// slot, whose object exists with and without a claim.
    pub const fn object_shows(&mut self, own_claim: bool) {
        if self.name.dynamic.is_some() {
            self.shown = if own_claim { Shown::Own } else { Shown::Another };
        }
    }

    /// The object under the slot's name is gone. Changes nothing for a static slot.
    pub const fn object_is_gone(&mut self) {
        self.object_shows(true);
    }

    /// The claim takes these units of concurrency limits from now on. The units that the claim took before count as
    /// well, until the object names the new ones.
    pub(in crate::pool) fn take_limits(&mut self, limits: Wants) {
        let before = std::mem::replace(&mut self.claim.limits, limits);
        self.carry_limits(&before);
    }

    /// Counts units of concurrency limits that the slot's object may still name.
    pub(in crate::pool) fn carry_limits(&mut self, limits: &Wants) {
        self.carried_limits = self.carried_limits.or_more(limits);
    }

    /// Notes that the object names the units of concurrency limits that the claim takes now. Units that the object
    /// named before no longer count.
    pub(in crate::pool) fn limits_are_written(&mut self) {
        self.carried_limits = Wants::default();
    }
}

/// Happenings of the claim's proc and its pod.
impl Slot {
    /// A proc is assigned to the claim, which takes these units of concurrency limits for the proc.
    ///
    /// The claim must then be written, unless neither proc takes concurrency limits, and the pod itself tells a new
    /// leader which proc the claim serves. The pod tells it if the object has the claim for an earlier proc of the same
    /// job ([`Slot::serve`]), and if no object has the claim yet ([`Record::Unwritten`]).
    pub fn assign(&mut self, proc: Assignment, limits: &Wants) {
        let is_told_by_pod =
            match self.record {
                Record::Unwritten => true,
                Record::Written => self.claim.last.job.uid == proc.job.uid,
                Record::Due | Record::Writing | Record::Refused { .. } | Record::Deleting => false,
            } && [&self.claim.limits, &self.carried_limits, limits].iter().all(|taken| taken.is_empty());
        if !is_told_by_pod {
            self.record = Record::Due;
        }
        self.claim.last = proc;
        self.activation = Activation::Assigned;
        self.removal = None;
    }

    /// The claim serves another proc of the job that its object names: an earlier leader gave the proc to the claim,
    /// without writing the claim again, and the proc's pod was seen.
    pub(in crate::pool) fn serve(&mut self, proc: u32) {
        self.claim.last.proc = proc;
        self.activation = Activation::Assigned;
    }

    /// Assigns to a vacant claim the proc that the claim names: the proc was meanwhile assigned to another claim by mistake, or
    /// its pod was found, and the claim was made again from the pod.
    pub fn assign_again(&mut self) {
        if self.is_vacant() {
            self.activation = Activation::Assigned;
        }
    }

    /// Takes a proc that has no pod yet from the claim. Returns the proc; `None` if the claim has no such proc.
    pub fn withdraw(&mut self) -> Option<Assignment> {
        self.is_assigned().then(|| {
            self.activation = Activation::Vacant;
            self.claim.last.clone()
        })
    }

    /// The operator asks for the pod, which is created from this generation of the job. `rank` is the slot's `RANK` for
    /// the job.
    pub fn request_pod(&mut self, generation: Option<i64>, rank: f64) {
        self.rank = rank;
        self.activation = Activation::Requested { generation };
    }

    /// The API server has created the pod.
    pub fn pod_is_created(&mut self, pod: &PodRef) {
        self.activation = Activation::Active(self.activation.take_pod(pod));
    }

    /// The API server has not created the pod. Returns the proc, which is then no longer the claim's; `None` if no pod
    /// was requested.
    pub fn pod_is_refused(&mut self) -> Option<Assignment> {
        self.is_requested().then(|| {
            self.activation = Activation::Vacant;
            self.claim.last.clone()
        })
    }

    /// The pod was seen, and its proc has not ended.
    pub fn pod_lives(&mut self, facts: PodFacts, now: Time) -> PodNews {
        let face = |running: &Running| {
            let hopeless = running.stuck.as_ref().map(|stuck| stuck.obstacle.hopeless);
            let deletion = (running.deleting, running.doomed, running.granted, running.forced);
            (running.pod.clone(), running.runs, deletion, hopeless)
        };
        let before = self.active().map(face);
        let ran = self.active().is_some_and(|running| running.runs);
        let mut running = self.activation.take_pod(&facts.pod);
        running.note_deletion(&facts, now);
        running.created.get_or_insert(facts.created.unwrap_or(now));
        running.runs = facts.running;
        running.deleting |= facts.deleting;
        running.lease = facts.lease.max(running.lease);
        running.ended = running.ended.or(facts.end.filter(|_| !facts.told).map(Box::new));
        // The earlier leader's last words may reach the pod after this leader has seen the pod first.
        running.found_suspended = facts.suspended && (before.is_none() || running.found_suspended);
        if facts.running {
            running.started.get_or_insert(facts.started.unwrap_or(now));
        }
        running.meet(facts.obstacle, now);
        let seen = match before {
            _ if facts.running && !ran => PodNews::Started,
            Some(before) if before == face(&running) => PodNews::Nothing,
            _ => PodNews::Pod,
        };
        self.activation = Activation::Active(running);
        seen
    }

    /// The pod was seen, and its proc has ended, now or earlier.
    pub fn pod_ends(&mut self, facts: &PodFacts, now: Time) {
        let mut running = self.activation.take_pod(&facts.pod);
        running.note_deletion(facts, now);
        running.deleting = facts.deleting;
        let remains = match facts.remains {
            Remains::Others if facts.end.is_none() => Remains::Program,
            remains => remains,
        };
        self.activation = Activation::Ended(running, remains);
    }

    /// The proc has ended, and `end` is how the pod's status says so. Returns the end that counts, which the caller
    /// books.
    pub fn book_end(&mut self, facts: &PodFacts, end: End, now: Time) -> End {
        let ran = self.active().is_none_or(|running| running.runs) || facts.running;
        self.spent |= !ran && matches!(end, End::Evicted { .. });
        self.pod_ends(facts, now);
        // If the program was seen to end before anybody asked the pod to go, the program was not told to end.
        let before = self.activation.running_mut().and_then(|running| running.ended.take());
        before.filter(|_| facts.told).map_or(end, |before| *before)
    }

    /// Nothing of the pod is left: the claim has no proc any more.
    pub fn pod_is_over(&mut self) {
        self.activation = Activation::Vacant;
    }

    /// The proc must leave the slot. A stronger reason replaces a weaker one, never the other way round: `MachineGone` is the
    /// strongest, and `AtOnce` is stronger than `ByUser`.
    pub fn must_go(&mut self, why: Removal) {
        self.removal = match (self.removal, why) {
            (Some(known), Removal::ByUser) | (Some(known @ Removal::MachineGone), Removal::AtOnce) => {
                Some(known)
            }
            (_, why) => Some(why),
        };
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

    /// The operator deletes the pod, because the pod cannot start. Returns the pod, and the hold that its proc gets.
    pub fn give_up_pod(&mut self, now: Time) -> Option<(PodRef, HoldReason)> {
        let running = self.activation.running_mut()?;
        let stuck = running.stuck.as_mut()?;
        stuck.given_up = true;
        let hold = stuck.obstacle.hold.clone();
        Some((running.delete(None, now), hold))
    }

    /// The operator asks the agent to suspend the job (true), or to continue it (false). Returns the pod, if the proc
    /// has not ended.
    pub fn ask_to_freeze(&mut self, suspended: bool) -> Option<PodRef> {
        let Activation::Active(running) = &mut self.activation else { return None };
        (running.frozen, running.found_suspended) = (Some(suspended), false);
        Some(running.pod.clone())
    }

    /// Forgets what the operator asked for the pod: a call failed, and nobody knows whether the calls took effect.
    /// Everything is asked for again.
    pub fn forget_asked(&mut self) {
        if let Some(running) = self.activation.running_mut() {
            (running.deleting, running.frozen, running.asked_by_force) = (false, None, false);
        }
        if let Some(eviction) = self.eviction_mut() {
            (eviction.by_agent, eviction.agent_asked) = (false, false);
        }
    }
}

/// Happenings of the state and activity, and of the job with them.
impl Slot {
    /// Enters a state and activity by a transition. A slot that was taken over from an earlier leader, for the pod that the leader
    /// recorded, has been in its state since the recorded time; and in its activity, if the slot enters the recorded activity within
    /// [`IN_PASSING`].
    pub fn enter(&mut self, to: State, taken: LastTransition) {
        let (before, now) = (self.phase.entered_activity(), taken.at);
        self.phase.enter(to, taken);
        let pod = self.active().map(|running| &running.pod.uid);
        let recorded = self.recorded.as_ref().filter(|recorded| Some(&recorded.pod) == pod);
        if let (Some(entered), State::Claimed(activity)) =
            (recorded.and_then(|recorded| recorded.entered), to)
        {
            let same = activity == entered.activity && now.since(before) <= IN_PASSING;
            let since = if same { entered.activity_since.min(now) } else { now };
            self.phase.recall(entered.state_since.min(now), since);
        }
    }

    /// The slot rests after transitions. What an earlier leader recorded is of no more use once the job's pod is known and the slot
    /// has entered the recorded activity, or has left the state Claimed.
    pub fn rests(&mut self) {
        let entered = self.recorded.as_ref().and_then(|recorded| recorded.entered);
        let expects = entered.is_some_and(
            |entered| matches!(self.state(), State::Claimed(activity) if activity != entered.activity),
        );
        if self.active().is_some() && !expects {
            self.recorded = None;
        }
    }

    /// Sets since when the slot has been in its state and activity, as its object says.
    pub fn recall(&mut self, state: Time, activity: Time) {
        self.phase.recall(state, activity);
    }

    /// The claim is activated, and the slot keeps what is pledged to the job, in seconds: `vacate` is
    /// `MachineMaxVacateTime`, `retirement` the job's own `MaxJobRetirementTime`, and `pledged` says how long the job
    /// may run in all and how long it may vacate. `rank` is the slot's `RANK` for the job.
    pub fn activate(
        &mut self,
        vacate: i64,
        retirement: Option<i64>,
        pledged: (i64, i64),
        rank: f64,
        now: Time,
    ) {
        self.rank = rank;
        let Some(running) = self.activation.running_mut() else { return };
        (running.pledged_vacate, running.own_retirement, running.pledged) = (vacate, retirement, pledged);
        if let Some(recorded) = self.recorded.as_ref().filter(|recorded| recorded.pod == running.pod.uid) {
            running.resume(recorded, now);
        }
    }

    /// The job is suspended from now on.
    pub fn suspend(&mut self, now: Time) {
        if let Some(running) = self.activation.running_mut() {
            running.suspended_since.get_or_insert(now);
        }
    }

    /// The job remains suspended, as an earlier leader left it: since the time that the leader recorded, or since now if the leader
    /// had no time to record that.
    pub fn remain_suspended(&mut self, now: Time) {
        let recorded = self.recorded.take();
        let Some(running) = self.activation.running_mut() else { return };
        running.found_suspended = false;
        let recorded = recorded.filter(|recorded| recorded.pod == running.pod.uid);
        match recorded.and_then(|recorded| Some((recorded.suspended, recorded.suspended_since?))) {
            Some((before, since)) => {
                (running.suspended, running.suspended_since) = (before, Some(since.min(now)));
            }
            None => _ = running.suspended_since.get_or_insert(now),
        }
    }

    /// The job continues, if it was suspended.
    pub fn continue_job(&mut self, now: Time) {
        if let Some(running) = self.activation.running_mut() {
            running.continues(now);
        }
    }

    /// The claim is in retirement from now on, or remains in retirement for another cause.
    pub fn retire(&mut self, cause: Cause) {
        self.retired(cause).cause = cause;
    }

    /// The claim is no longer in retirement, and its job is not sent away.
    pub fn unretire(&mut self) {
        self.retirement = None;
    }

    /// The job is sent away. `cause` counts only if the claim was in no retirement.
    pub fn evict(&mut self, cause: Cause, eviction: Eviction) {
        self.retired(cause).eviction = Some(eviction);
    }

    /// The operator kills the job. A job that is killed already keeps the time at which the killing began.
    pub fn kill(&mut self, now: Time) {
        let retired = self.retired(Cause::MachineGone);
        let eviction = retired.eviction.get_or_insert(Eviction::until(now, None));
        eviction.killed.get_or_insert(now);
    }

    /// The operator asks the agent to kill the pod, because the kubelet would let the pod run for much longer.
    pub fn kill_by_agent(&mut self) {
        if let Some(eviction) = self.eviction_mut() {
            eviction.by_agent = true;
        }
    }

    /// `KILLING_TIMEOUT` has passed, and the operator asks the agent to kill what is left.
    pub fn killing_takes_too_long(&mut self) {
        if let Some(eviction) = self.eviction_mut() {
            eviction.agent_asked = true;
        }
    }

    /// Nothing of the job is left, and the claim stays.
    pub fn settle(&mut self) {
        self.retirement = None;
    }

    /// The claim that waited takes the slot over. The claim's work life begins now, since the claim has not run a job
    /// yet.
    pub fn succeed(&mut self, now: Time) {
        self.settle();
        (self.removal, self.spent) = (None, false);
        if let Some(next) = self.preempting.take() {
            self.claim = Claim { since: now, ..next.claim };
            self.rank = next.rank;
            self.record = Record::Due;
        }
    }

    /// The claim's retirement; if the claim is in none, one for this cause begins.
    fn retired(&mut self, cause: Cause) -> &mut Retirement {
        self.retirement.get_or_insert_with(|| Box::new(Retirement::new(cause)))
    }

    fn eviction_mut(&mut self) -> Option<&mut Eviction> {
        self.retirement.as_mut()?.eviction.as_mut()
    }
}

/// Happenings around the slot: claims that wait, values that are evaluated, charges.
impl Slot {
    /// A claim waits for the slot from now on, instead of any that waited before.
    pub(in crate::pool) fn is_awaited_by(&mut self, next: Preemptor) {
        self.preempting = Some(Box::new(next));
    }

    /// Ends the wait of the claim that waits for the slot, if `which` is true of that claim. Returns the claim.
    pub(in crate::pool) fn is_awaited_no_longer(
        &mut self,
        which: impl FnOnce(&Preemptor) -> bool,
    ) -> Option<Preemptor> {
        self.preempting.take_if(|next| which(next)).map(|next| *next)
    }

    /// Sets the slot's `RANK` for the claim's job.
    pub const fn set_rank(&mut self, rank: f64) {
        self.rank = rank;
    }

    /// Sets the slot's part of the machine's load.
    pub const fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    /// Sets the values of the slot's latched expressions.
    pub fn set_latched(&mut self, latched: Vec<Latched>) {
        self.latched = latched;
    }

    /// Sets when the deciders look at the slot again. Returns the alarm before.
    pub(in crate::pool) const fn set_alarm(&mut self, at: Option<Time>) -> Option<Time> {
        std::mem::replace(&mut self.alarm, at)
    }

    /// Sets whether the submitter is not charged for the claim at present.
    pub(in crate::pool) const fn set_discounted(&mut self, discounted: bool) {
        self.discounted = discounted;
    }
}

#[cfg(test)]
mod tests;
