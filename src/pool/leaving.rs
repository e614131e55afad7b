//! What a slot keeps of the job that runs in it and of how that job is sent away.

use std::sync::Arc;
use std::time::Duration;

use super::slot::Claim;
use super::time::Time;

/// The job that a claim runs, as far as time and policy look at it. It begins with the claim's activation.
///
/// Of this the API server has only the pod's start: a new leader knows the run time, but not how much of it the job stood
/// still, nor what was pledged: that is evaluated anew.
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
    pub granted: (i64, i64),
    /// `RANK` for it: `CurrentRank`.
    pub rank: f64,
}

impl Running {
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
    /// The agent was asked to kill.
    pub agent_asked: bool,
    /// `WANT_HOLD`: what becomes of the proc.
    pub hold: Option<OnHold>,
}

/// A proc that is held: it does not run until it is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnHold {
    /// `HoldReasonCode`.
    pub code: i64,
    /// `HoldReasonSubCode`.
    pub subcode: i64,
    /// `HoldReason`.
    pub reason: Arc<str>,
}

/// A claim that waits until the present one has gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Preemptor {
    /// The claim.
    pub claim: Claim,
    /// The slot's `RANK` for its job.
    pub rank: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

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
