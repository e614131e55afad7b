//! Why a claim ends, how its job is sent away, and who takes the slot.

use std::sync::Arc;
use std::time::Duration;

use super::slot::Claim;
use super::time::Time;

/// How much longer a pod may run than its deletion says. The kubelet gives each container at least two seconds, and the
/// clocks of node and API server differ.
pub const KUBELET_SLACK: Duration = Duration::from_secs(5);

/// The grace period of a pod that is killed, in seconds. With a grace period of 0, the API server would delete the pod before its end is
/// confirmed.
pub const KILL_GRACE: u32 = 1;

/// The deletion of a pod, as the object shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Whether the pod is being deleted.
    pub deleting: bool,
    /// The longest grace period of the pod's deletions, as far as the pod shows them; `None` if the pod is not being deleted.
    pub grace: Option<Duration>,
    /// The grace period that a deletion gives the pod if the deletion names none.
    pub own_grace: Duration,
}

/// For how long the deletions of a pod let it run. A later deletion with a shorter grace period changes nothing: a
/// kubelet that has begun to end a pod ignores the shorter one (kubernetes#83916).
///
/// The time counts from when the operator saw that the pod was being deleted, whoever deleted it. The time at which the
/// operator asked for the deletion says little: a webhook of the namespace may delay the call, and the call may be
/// repeated. The times in the object are by the API server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The longest grace period of all deletions.
    grace: Duration,
    /// When the last grace period is over, if the pod was deleted when the operator asked for the deletion.
    ends_by: Time,
    /// Whether the pod has been seen to be deleted since.
    seen: bool,
}

impl Granted {
    /// The result after the operator asks for a deletion now.
    pub fn by_deletion(known: Option<Self>, grace: Duration, now: Time) -> Self {
        let (longest, ends_by) = known.map_or((grace, now), |known| (known.grace.max(grace), known.ends_by));
        let seen = known.is_some_and(|known| known.seen);
        Self { grace: longest, ends_by: ends_by.max(now + grace), seen }
    }

    /// The result after the pod was seen with this deletion; `known` is the result before.
    ///
    /// If this operator knows of no deletion before, the pod may have been deleted more than once, last with a shorter grace
    /// period or by force. The API server has forgotten the first grace period then, to which the kubelet keeps. The first deletion
    /// is assumed to have named no grace period, as a deletion by kubectl or by an eviction does, unless it shows a longer one.
    pub(super) fn seen(known: Option<Self>, shown: Deletion, now: Time) -> Option<Self> {
        if !shown.deleting {
            return known;
        }
        match known {
            Some(known) => Some(known.shown(shown.grace.unwrap_or_default(), now)),
            None => shown.grace.map(|grace| Self::found(grace, shown.own_grace, now)),
        }
    }

    /// The result after a pod was seen to be deleted that this operator has not deleted.
    fn found(shown: Duration, own: Duration, now: Time) -> Self {
        Self { seen: true, ..Self::by_deletion(None, shown.max(own), now) }
    }

    /// The result after the pod was seen to be deleted with this grace period.
    pub(crate) fn shown(self, grace: Duration, now: Time) -> Self {
        // The kubelet learns of a deletion when it takes effect, not when the operator asks for it.
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

    /// When it is certain that a kubelet, if there is one, has ended the pod; `None` if the pod was not seen to be
    /// deleted.
    pub fn gone_by(self) -> Option<Time> {
        self.seen.then_some(self.ends_by + KUBELET_SLACK)
    }

    /// Whether it is certain that a kubelet, if there is one, has ended the pod.
    pub fn is_gone(self, now: Time) -> bool {
        self.gone_by().is_some_and(|gone_by| gone_by <= now)
    }
}

/// Why a claim is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `PREEMPT` became true. Such a claim never unretires, whatever `PREEMPT` says later.
    Preempt,
    /// A better claim waits. The claim unretires if that claim is withdrawn.
    BetterClaim,
    /// The machine is being drained. The claim unretires if the drain is canceled.
    Draining,
    /// The machine is gone.
    MachineGone,
    /// The machine has been silent for the claim's lease.
    LeaseExpired,
}

impl Cause {
    /// Whether the job may go on in its slot once the cause is gone.
    pub fn is_reversible(self) -> bool {
        matches!(self, Self::BetterClaim | Self::Draining)
    }
}

/// A claim in retirement, and what follows: the eviction of its job.
#[derive(Clone, Debug, PartialEq)]
pub struct Retirement {
    /// Why the claim is being ended.
    pub cause: Cause,
    /// How the job is sent away, once the slot is in Preempting.
    pub eviction: Option<Eviction>,
}

impl Retirement {
    /// A retirement that begins now. The job is not sent away yet.
    pub const fn new(cause: Cause) -> Self {
        Self { cause, eviction: None }
    }
}

/// How the job of a claim in Preempting is sent away.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// When vacating ends and killing begins.
    pub until: Time,
    /// When the job was killed.
    pub killed: Option<Time>,
    /// Whether the agent was asked to kill, because the kubelet lets the pod run for longer than killing may take.
    pub by_agent: bool,
    /// Whether `KILLING_TIMEOUT` has passed: then the agent was asked to kill what is left, and people were warned.
    pub agent_asked: bool,
    /// The hold that the proc gets, if `WANT_HOLD` is true.
    pub hold: Option<HoldReason>,
}

impl Eviction {
    /// An eviction that lets the job vacate until this time. `hold` is the hold that its proc gets afterwards.
    pub const fn until(until: Time, hold: Option<HoldReason>) -> Self {
        Self { until, killed: None, by_agent: false, agent_asked: false, hold }
    }
}

/// Why a proc is held. A held proc does not run until it is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldReason {
    /// `HoldReasonCode`.
    pub code: i64,
    /// `HoldReasonSubCode`.
    pub subcode: i64,
    /// `HoldReason`.
    pub reason: Arc<str>,
}

/// The reason, with HTCondor's code, and with the subcode if it is not 0.
impl std::fmt::Display for HoldReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subcode {
            0 => write!(f, "{} (code {})", self.reason, self.code),
            subcode => write!(f, "{} (code {}, subcode {subcode})", self.reason, self.code),
        }
    }
}

/// A claim that waits until a slot's present claim has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Preemptor {
    /// The claim.
    pub claim: Claim,
    /// The slot's `RANK` for the claim's job.
    pub rank: f64,
    /// Whether the slot is one of several that the claim waits for ([`Gathering`](super::Gathering)). Such a slot makes
    /// room, and is not taken over.
    pub part: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deletion counts from when the pod is seen to be deleted: the call may have hung, and been repeated.
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

    /// A new leader finds a pod that was killed with 1 s. Nobody says whether an eviction had given the pod its own 30 s before.
    #[test]
    fn a_deletion_that_nobody_was_seen_to_ask_for_may_have_been_shortened() {
        let (at, secs) = (Time::from_secs, Duration::from_secs);
        for (case, shown, gone) in [
            ("shortened, perhaps", 1, 135),
            ("deleted by force", 0, 135),
            ("deleted with a longer grace period than its own", 600, 705),
        ] {
            assert_eq!(Granted::found(secs(shown), secs(30), at(100)).gone_by(), Some(at(gone)), "{case}");
        }
        let killed = Granted::by_deletion(None, secs(1), at(100));
        assert_eq!(killed.shown(secs(1), at(100)).gone_by(), Some(at(106)), "this operator killed it");
    }
}
