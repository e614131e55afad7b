//! How far the proc of a claim has come in its slot, and the pod that runs the proc.

use std::sync::Arc;
use std::time::Duration;

use super::state::Claimed;
use crate::pool::event::{Forced, PodFacts, Remains};
use crate::pool::ids::{PodRef, PodUid};
use crate::pool::job::End;
use crate::pool::leaving::Granted;
use crate::pool::stuck::{Obstacle, Stuck};
use crate::pool::time::Time;

/// How far the proc of a claim has come in its slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// The claim has no proc to run.
    Vacant,
    /// The claim's proc has no pod yet. The operator creates the pod once the claim is written.
    Assigned,
    /// The pod's creation is under way.
    Requested {
        /// The generation of the job's spec from which the pod is created.
        generation: Option<i64>,
    },
    /// The pod exists, and the proc has not ended.
    Active(Box<Running>),
    /// The proc has ended. The tracking finalizer keeps the pod until the end is recorded and nothing of the pod is
    /// left.
    Ended(Box<Running>, Remains),
}

impl Activation {
    /// The pod; `None` while no pod is known.
    pub fn running(&self) -> Option<&Running> {
        match self {
            Self::Active(running) | Self::Ended(running, _) => Some(running),
            Self::Vacant | Self::Assigned | Self::Requested { .. } => None,
        }
    }

    /// The pod of a proc that has not ended; `None` otherwise.
    pub fn active(&self) -> Option<&Running> {
        match self {
            Self::Active(running) => Some(running),
            _ => None,
        }
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut Running> {
        match self {
            Self::Active(running) | Self::Ended(running, _) => Some(running),
            Self::Vacant | Self::Assigned | Self::Requested { .. } => None,
        }
    }

    /// Takes the pod with this reference out, with everything that the activation knows about the pod, and leaves the
    /// activation vacant. The caller puts the pod back in its new condition.
    pub(super) fn take_pod(&mut self, pod: &PodRef) -> Box<Running> {
        match std::mem::replace(self, Self::Vacant) {
            Self::Active(mut running) | Self::Ended(mut running, _) if running.pod == *pod => {
                // The names in memory are those that the watch keeps from now on, and not a second copy.
                running.pod = pod.clone();
                running
            }
            Self::Requested { generation } => Box::new(Running { generation, ..Running::of(pod.clone()) }),
            _ => Box::new(Running::of(pod.clone())),
        }
    }
}

/// The pod of a claim's proc, and what timers and policy need to know about the job in the pod. [`Recorded`] and the
/// pod itself keep the part that a new leader must know.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Running {
    /// The pod.
    pub pod: PodRef,
    /// Whether the pod's containers have started.
    pub runs: bool,
    /// Whether the pod is being deleted, or the operator has asked for its deletion.
    pub deleting: bool,
    /// When the proc got the slot for this run: when its pod was created, or was first seen.
    pub created: Option<Time>,
    /// `JobStart`: when the containers started; `None` until they have.
    pub started: Option<Time>,
    /// For how long the job was suspended, without the present suspension: part of `TotalJobSuspendTime`.
    pub suspended: Duration,
    /// When the present suspension began; `None` if the job is not suspended.
    pub suspended_since: Option<Time>,
    /// Whether the operator last asked the agent to suspend the job (true) or to continue it (false). `None` if this
    /// leader has asked for neither, or does not know whether its call took effect; an earlier leader may have asked.
    pub frozen: Option<bool>,
    /// Whether an earlier leader asked the agent to suspend the job, and this leader has not dealt with that yet.
    pub found_suspended: bool,
    /// `MachineMaxVacateTime` at activation, in seconds. Later changes do not affect the job.
    pub pledged_vacate: i64,
    /// The job's own `MaxJobRetirementTime` at activation, in seconds: for `RetirementTimeRemaining`.
    pub own_retirement: Option<i64>,
    /// How long the job may run in all, and how long it may vacate, in seconds, as machine and job said at activation:
    /// for what a drain would cost.
    pub pledged: (i64, i64),
    /// The lease of the claim, as written on the pod. The agent of the pod's node enforces this lease.
    pub lease: Option<Duration>,
    /// When the pod was first seen to be deleted.
    pub doomed: Option<Time>,
    /// For how long the deletions of the pod let it run.
    pub granted: Option<Granted>,
    /// How the program was seen to end, before anybody had asked the pod to go. In a moment the kubelet will report
    /// whether the kubelet itself ended the program.
    pub ended: Option<Box<End>>,
    /// Whether the pod was taken off its kubelet.
    pub forced: Forced,
    /// Whether the operator has asked to delete the pod by force, which takes the pod off its kubelet.
    pub asked_by_force: bool,
    /// Whether the pod's condition says already why the pod is disrupted.
    pub disrupted: bool,
    /// The obstacle that keeps the pod from starting, if there is one.
    pub stuck: Option<Box<Stuck>>,
    /// The generation of the job's spec from which the pod was created; `None` if an earlier leader created the pod.
    pub generation: Option<i64>,
}

impl Running {
    /// A pod about which nothing is known except that the pod exists.
    pub(super) fn of(pod: PodRef) -> Self {
        Self {
            pod,
            runs: false,
            deleting: false,
            created: None,
            started: None,
            suspended: Duration::ZERO,
            suspended_since: None,
            frozen: None,
            found_suspended: false,
            pledged_vacate: 0,
            own_retirement: None,
            pledged: (0, 0),
            lease: None,
            doomed: None,
            granted: None,
            ended: None,
            forced: Forced::No,
            asked_by_force: false,
            disrupted: false,
            stuck: None,
            generation: None,
        }
    }

    /// Whether the job, which now has this generation, was edited since its pod was created, as far as this leader
    /// knows.
    pub fn is_of_before(&self, generation: i64) -> bool {
        self.generation.is_some_and(|made_of| made_of != generation)
    }

    /// How long the job has been suspended: `TotalJobSuspendTime`.
    pub fn suspend_time(&self, now: Time) -> Duration {
        self.suspended + self.suspended_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// How long the job has run, without suspensions: `TotalJobRunTime`.
    pub fn run_time(&self, now: Time) -> Duration {
        let all = self.started.map_or(Duration::ZERO, |started| now.since(started));
        all.saturating_sub(self.suspend_time(now))
    }

    /// Notes what the pod shows of its deletion.
    pub(super) fn note_deletion(&mut self, facts: &PodFacts, now: Time) {
        if facts.deleting {
            self.doomed.get_or_insert(now);
        }
        self.granted = Granted::seen(self.granted, facts.deletion(), now);
        self.forced = facts.forced;
        self.disrupted |= facts.disrupted;
    }

    /// Notes what keeps the pod from starting; `None` if nothing does any more.
    pub(super) fn meet(&mut self, obstacle: Option<Arc<Obstacle>>, now: Time) {
        self.stuck = match (obstacle, self.stuck.take()) {
            (Some(obstacle), Some(stuck)) => Some(Box::new(Stuck { obstacle, ..*stuck })),
            (Some(obstacle), None) => Some(Box::new(Stuck { obstacle, since: now, given_up: false })),
            // A kubelet reports no obstacle of a pod that is being deleted. So the obstacle of a pod that was given
            // up is kept, unless the pod runs after all.
            (None, before) => before.filter(|stuck| stuck.given_up && !self.runs),
        };
    }

    /// Continues from what an earlier leader recorded. A job that was suspended then counts as suspended until now.
    pub(super) fn resume(&mut self, recorded: &Recorded, now: Time) {
        self.pledged_vacate = recorded.pledged_vacate;
        let since = recorded.suspended_since.map_or(Duration::ZERO, |since| now.since(since));
        self.suspended = recorded.suspended + since;
    }

    /// Ends the present suspension, if there is one.
    pub(super) fn continues(&mut self, now: Time) {
        if let Some(since) = self.suspended_since.take() {
            self.suspended += now.since(since);
        }
    }

    /// Marks the pod as being deleted with a grace period of so many seconds, and returns the pod. `None` means the
    /// pod's own grace period, which the pod shows.
    pub(super) fn delete(&mut self, grace: Option<u32>, now: Time) -> PodRef {
        self.deleting = true;
        // A deletion by force does not let the pod run any longer.
        if let Some(grace) = grace.filter(|grace| *grace > 0) {
            let grace = Duration::from_secs(grace.into());
            self.granted = Some(Granted::by_deletion(self.granted, grace, now));
        }
        self.pod.clone()
    }
}

/// The facts about the running job that the status of a Slot records. The status is written when the slot's activity changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The job's pod.
    pub pod: PodUid,
    /// As in [`Running`].
    pub pledged_vacate: i64,
    /// As in [`Running`].
    pub suspended: Duration,
    /// As in [`Running`].
    pub suspended_since: Option<Time>,
    /// The state and activity of the slot; `None` if the object does not say both.
    pub entered: Option<Entered>,
}

/// A state and activity of a claimed slot, and since when the slot has had them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The activity in the state Claimed.
    pub activity: Claimed,
    /// `EnteredCurrentState`.
    pub state_since: Time,
    /// `EnteredCurrentActivity`.
    pub activity_since: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_suspension_is_no_run_time() {
        let at = Time::from_secs;
        let pod = PodRef { namespace: "default".into(), name: "job-0".into(), uid: "pod-1".into() };
        let new = Running::of(pod);
        assert_eq!(new.run_time(at(1_000)), Duration::ZERO, "it has not started");
        let mut job = Running { started: Some(at(100)), ..new };
        assert_eq!(job.run_time(at(160)), Duration::from_mins(1));
        job.suspended_since = Some(at(160));
        assert_eq!((job.run_time(at(200)).as_secs(), job.suspend_time(at(200)).as_secs()), (60, 40));
        job.continues(at(200));
        assert_eq!((job.run_time(at(230)).as_secs(), job.suspend_time(at(230)).as_secs()), (90, 40));
        assert_eq!(job.run_time(at(90)), Duration::ZERO, "a clock that went back");
    }
}
