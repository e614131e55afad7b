//! What a slot keeps of the job that runs in it and of how that job is sent away.

use std::sync::Arc;
use std::time::Duration;

use super::event::{Forced, PodFacts};
use super::ids::PodUid;
use super::job::End;
use super::slot::Claim;
use super::stuck::{Obstacle, Stuck};
use super::time::Time;

/// How much longer than its deletion says a pod may run: the kubelet gives each container two seconds at least, and the clocks of
/// node and API server differ.
pub const KUBELET_SLACK: Duration = Duration::from_secs(5);

/// How long the deletions of a pod let it run. A later deletion with a shorter grace period changes nothing about that: a
/// kubelet that has begun to end a pod does not look again (kubernetes#83916).
///
/// The time counts from when the operator saw that the pod was deleted, whoever deleted it. When the operator asked for the
/// deletion tells nothing of that: the call may take long, as a webhook of the namespace wants, and be made again. What the API
/// server writes of the time is by another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The longest grace period.
    grace: Duration,
    /// When the last of them is over, if the pod was deleted when the operator asked for that.
    ends_by: Time,
    /// Whether the pod has been seen to be deleted since.
    seen: bool,
}

impl Granted {
    /// The operator asks for a deletion now.
    pub fn by_deletion(known: Option<Self>, grace: Duration, now: Time) -> Self {
        let (longest, ends_by) = known.map_or((grace, now), |known| (known.grace.max(grace), known.ends_by));
        let seen = known.is_some_and(|known| known.seen);
        Self { grace: longest, ends_by: ends_by.max(now + grace), seen }
    }

    /// What is known once a pod is seen.
    pub(super) fn seen(known: Option<Self>, facts: &PodFacts, now: Time) -> Option<Self> {
        if !facts.deleting {
            return known;
        }
        let Some(known) = known else {
            return facts.grace.map(|grace| Self { seen: true, ..Self::by_deletion(None, grace, now) });
        };
        // The grace period of a pod that was deleted by force is a guess, for those who have seen no other.
        let shown = facts.grace.filter(|_| facts.forced == Forced::No).unwrap_or_default();
        Some(known.shown(shown, now))
    }

    /// What is known once the pod is seen to be deleted with a grace period.
    pub(crate) fn shown(self, grace: Duration, now: Time) -> Self {
        // The kubelet is told when the deletion takes effect, and not when the operator asks for it.
        let known = if self.seen { self } else { Self::by_deletion(Some(self), self.grace, now) };
        let longer = if grace > known.grace { Self::by_deletion(Some(known), grace, now) } else { known };
        Self { seen: true, ..longer }
    }

    /// The longest grace period.
    pub fn grace(self) -> Duration {
        self.grace
    }

    /// When the last grace period is over.
    pub fn ends_by(self) -> Time {
        self.ends_by
    }

    /// When it is certain that a kubelet, if there is one, has ended the pod; never while the pod was not seen to be deleted.
    pub fn gone_by(self) -> Option<Time> {
        self.seen.then_some(self.ends_by + KUBELET_SLACK)
    }

    /// Whether it is certain that a kubelet, if there is one, has ended the pod.
    pub fn is_gone(self, now: Time) -> bool {
        self.gone_by().is_some_and(|gone_by| gone_by <= now)
    }
}

/// The job that a claim runs, as far as time and policy look at it. It begins with the claim's activation. What of it a new
/// leader has to know is [`Recorded`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// When its containers started, once they have: `JobStart`.
    pub started: Option<Time>,
    /// How long it was suspended, without the present time: of `TotalJobSuspendTime`.
    pub suspended: Duration,
    /// Since when it is suspended.
    pub suspended_since: Option<Time>,
    /// `MachineMaxVacateTime` as it was at activation, in seconds: later changes do not concern the job.
    pub pledged_vacate: i64,
    /// The job's own `MaxJobRetirementTime` as it was at activation, in seconds: for `RetirementTimeRemaining`.
    pub own_retirement: Option<i64>,
    /// How long it might run in all, and how long vacate, in seconds, as machine and job said at activation: for what a drain
    /// would cost.
    pub pledged: (i64, i64),
    /// The lease of the claim, as the pod carries it: the agent of its node goes by that.
    pub lease: Option<Duration>,
    /// When its pod was first seen to be deleted.
    pub doomed: Option<Time>,
    /// How long the deletions of its pod let it run.
    pub granted: Option<Granted>,
    /// How its program was seen to end before anybody had asked its pod to go. The kubelet says in a moment whether the
    /// kubelet itself ended the program.
    pub ended: Option<End>,
    /// Whether its pod was taken off its kubelet.
    pub forced: Forced,
    /// Whether the operator has asked for that: the pod is deleted without waiting for its kubelet.
    pub asked_by_force: bool,
    /// Whether somebody has said on its pod why it is disrupted.
    pub disrupted: bool,
    /// Its pod cannot start.
    pub stuck: Option<Stuck>,
    /// The generation of the job that its pod was made of, where this leader made it.
    pub generation: Option<i64>,
}

impl Running {
    /// Whether the job was edited since its pod was made, as far as this leader knows.
    pub fn is_of_before(&self, generation: i64) -> bool {
        self.generation.is_some_and(|made_of| made_of != generation)
    }

    /// Takes note of what the pod shows of its deletion. Whether that is news.
    pub(super) fn note_deletion(&mut self, facts: &PodFacts, now: Time) -> bool {
        let before = (self.doomed, self.granted, self.forced);
        if facts.deleting {
            self.doomed.get_or_insert(now);
        }
        self.granted = Granted::seen(self.granted, facts, now);
        self.forced = facts.forced;
        self.disrupted |= facts.disrupted;
        before != (self.doomed, self.granted, self.forced)
    }

    /// Takes note of what keeps the pod from starting, or that nothing does any more. Whether that is news.
    pub(super) fn meet(&mut self, obstacle: Option<Arc<Obstacle>>, runs: bool, now: Time) -> bool {
        let before = self.stuck.take();
        let hopeless = |stuck: &Option<Stuck>| stuck.as_ref().map(|stuck| stuck.obstacle.hopeless);
        let was = hopeless(&before);
        self.stuck = match (obstacle, before) {
            (Some(obstacle), Some(stuck)) => Some(Stuck { obstacle, ..stuck }),
            (Some(obstacle), None) => Some(Stuck { obstacle, since: now, given_up: false }),
            // Of a pod that is deleted the kubelet says no longer what it waits for.
            (None, before) => before.filter(|stuck| stuck.given_up && !runs),
        };
        was != hopeless(&self.stuck)
    }

    /// How long the job has been suspended: `TotalJobSuspendTime`.
    pub fn suspend_time(&self, now: Time) -> Duration {
        self.suspended + self.suspended_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// How long the job has run, suspensions left out: `TotalJobRunTime`.
    pub fn run_time(&self, now: Time) -> Duration {
        let all = self.started.map_or(Duration::ZERO, |started| now.since(started));
        all.saturating_sub(self.suspend_time(now))
    }
}

/// What the API server has of a job that runs: in the status of its Slot, written when that changes activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its pod.
    pub pod: PodUid,
    /// As in [`Running`].
    pub pledged_vacate: i64,
    /// As in [`Running`].
    pub suspended: Duration,
    /// As in [`Running`].
    pub suspended_since: Option<Time>,
}

impl Running {
    /// Goes on from what an earlier leader recorded of the job. It stood still until now: nobody else lets it go on.
    pub fn resume(&mut self, recorded: &Recorded, now: Time) {
        self.pledged_vacate = recorded.pledged_vacate;
        let since = recorded.suspended_since.map_or(Duration::ZERO, |since| now.since(since));
        self.suspended = recorded.suspended + since;
    }
}

/// Why a claim is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `PREEMPT` became true. It never unretires, whatever `PREEMPT` says later.
    Preempt,
    /// A better claim waits: retirement ends when that is withdrawn.
    BetterClaim,
    /// The machine is being drained: retirement ends when that is canceled.
    Draining,
    /// The machine is gone.
    MachineGone,
    /// Nothing was heard of the machine for the claim's lease.
    LeaseExpired,
}

impl Cause {
    /// Whether the job may go on where it is once the cause is gone.
    pub fn is_reversible(self) -> bool {
        matches!(self, Self::BetterClaim | Self::Draining)
    }
}

/// A claim that is being ended, once it is in Preempting.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// When vacating ends and killing begins: the job's grace.
    pub until: Time,
    /// When the job was killed.
    pub killed: Option<Time>,
    /// The agent was asked to kill, since the kubelet lets the pod run for longer than killing may take.
    pub by_agent: bool,
    /// `KILLING_TIMEOUT` passed: the agent was asked to kill what is left, and people were warned.
    pub agent_asked: bool,
    /// `WANT_HOLD`: what becomes of the proc.
    pub hold: Option<HoldReason>,
}

/// A proc that is held: it does not run until it is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldReason {
    /// `HoldReasonCode`.
    pub code: i64,
    /// `HoldReasonSubCode`.
    pub subcode: i64,
    /// `HoldReason`.
    pub reason: Arc<str>,
}

/// The reason, with HTCondor's code, and the subcode where there is one.
impl std::fmt::Display for HoldReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subcode {
            0 => write!(f, "{} (code {})", self.reason, self.code),
            subcode => write!(f, "{} (code {}, subcode {subcode})", self.reason, self.code),
        }
    }
}

/// A claim that waits until the present one has gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Preemptor {
    /// The claim.
    pub claim: Claim,
    /// The slot's `RANK` for its job.
    pub rank: f64,
    /// The slot is one of several that the claim waits for ([`Gathering`](super::Gathering)): it makes room and is not taken over.
    pub part: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deletion counts from when the pod is seen to be deleted: the call may have hung, and been made again.
    #[test]
    fn a_grace_period_begins_when_the_pod_is_deleted() {
        let (at, secs) = (Time::from_secs, Duration::from_secs);
        let asked = Granted::by_deletion(None, secs(10), at(100));
        assert_eq!((asked.ends_by(), asked.gone_by(), asked.is_gone(at(9999))), (at(110), None, false));
        let seen = asked.shown(secs(10), at(114));
        assert_eq!((seen.ends_by(), seen.gone_by()), (at(124), Some(at(129))));
        assert_eq!((seen.is_gone(at(128)), seen.is_gone(at(129))), (false, true));
        // The pod shows its deletion again, and a shorter one changes nothing.
        assert_eq!(seen.shown(secs(10), at(120)), seen);
        let killed = Granted::by_deletion(Some(seen), secs(1), at(115));
        assert_eq!((killed, killed.shown(secs(1), at(116))), (seen, seen));
        // Somebody else's deletion granted more than the operator's.
        assert_eq!(asked.shown(secs(30), at(102)).gone_by(), Some(at(137)));
    }

    #[test]
    fn time_in_suspension_is_no_run_time() {
        let at = Time::from_secs;
        let mut job = Running { started: Some(at(100)), ..Running::default() };
        assert_eq!(Running::default().run_time(at(1_000)), Duration::ZERO, "it has not started");
        assert_eq!(job.run_time(at(160)), Duration::from_mins(1));
        job.suspended_since = Some(at(160));
        assert_eq!((job.run_time(at(200)).as_secs(), job.suspend_time(at(200)).as_secs()), (60, 40));
        (job.suspended, job.suspended_since) = (Duration::from_secs(40), None);
        assert_eq!((job.run_time(at(230)).as_secs(), job.suspend_time(at(230)).as_secs()), (90, 40));
        assert_eq!(job.run_time(at(90)), Duration::ZERO, "a clock that went back");
    }
}
