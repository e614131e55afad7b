//! Fences. An agent may promise to end the pods of claims whose lease expires while the agent cannot renew its own
//! Lease. This module says when the operator may rely on such a promise.
//!
//! The promise covers the pods that the agent has named in its report. A node may be cut off before its agent has learned of a
//! pod that its kubelet runs; nobody ends such a pod.
//!
//! `docs/reference/agents.md` has the argument. The agent counts from the time at which it *sent* its last successful
//! renewal. The operator counts from the time at which it *saw* that renewal, which is later, by its own clock. Since a
//! watch may be behind, the operator asks the API server whether the Lease was renewed meanwhile before it relies on
//! the promise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Pool;
use super::ids::{MachineName, PodUid};
use super::marks::Change;
use super::time::Time;

/// How long the operator waits in addition to the lease. The agent has half of this time to end the pods; the other
/// half allows for clocks that run at different speeds.
pub const FENCE_MARGIN: Duration = Duration::from_secs(30);

/// A renewal of an agent's Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The resourceVersion of the Lease, which changes with each write.
    pub version: Arc<str>,
    /// Whether the agent promises to end the pods of claims whose lease expires.
    pub fences: bool,
}

/// Whether the agent of a machine has ended a pod, as it promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// The agent made no promise, or its promise does not cover the pod.
    #[default]
    None,
    /// The agent will have ended the pod by this time, unless it renews its Lease before.
    At(Time),
    /// By what was seen, the agent has ended the pod. The Lease must be read to make sure.
    Due,
    /// The Lease is being read.
    Asked,
    /// The agent has ended the pod: it does not run, and never will again.
    Held,
}

/// Whether the Lease was read to find a renewal that no watch has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    No,
    /// A call that reads the Lease has been under way since this time.
    Asked(Time),
    /// A call that began at this time has found no newer renewal.
    Confirmed(Time),
}

#[derive(Clone, Debug)]
struct LastRenewal {
    renewal: Renewal,
    at: Time,
    reading: Reading,
}

/// The last renewal of each agent's Lease, and when the operator first saw it; and the pods that the promises cover.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    seen: BTreeMap<MachineName, LastRenewal>,
    /// Each covered pod, with the time at which the operator first saw that its agent named the pod.
    covered: BTreeMap<MachineName, BTreeMap<PodUid, Time>>,
}

/// A pod that an agent may have promised to end.
#[derive(Clone, Copy, Debug)]
pub struct Fenced<'a> {
    /// The pod.
    pub uid: &'a PodUid,
    /// The lease of the pod's claim.
    pub lease: Duration,
    /// When the operator first saw that the pod is being deleted.
    pub doomed: Time,
}

impl Fences {
    /// Notes a renewal that was seen. A renewal that is known already changes nothing.
    pub fn see(&mut self, machine: &MachineName, renewal: Renewal, now: Time) {
        if self.seen.get(machine).is_none_or(|seen| seen.renewal != renewal) {
            self.seen.insert(machine.clone(), LastRenewal { renewal, at: now, reading: Reading::No });
        }
    }

    /// The Lease is gone, and with it the agent's promise.
    pub fn forget(&mut self, machine: &MachineName) {
        self.seen.remove(machine);
    }

    /// Whether the agent of a machine makes the promise.
    pub fn promised(&self, machine: &MachineName) -> bool {
        self.seen.get(machine).is_some_and(|seen| seen.renewal.fences)
    }

    /// Notes that a call reads the Lease from now on.
    pub fn ask(&mut self, machine: &MachineName, now: Time) {
        if let Some(seen) = self.seen.get_mut(machine) {
            seen.reading = Reading::Asked(now);
        }
    }

    /// The call read the Lease; `found` is `None` if there is none.
    pub fn answer(&mut self, machine: &MachineName, found: Option<Renewal>, now: Time) {
        let Some(found) = found else { return self.forget(machine) };
        if let Some(seen) = self.seen.get_mut(machine)
            && seen.renewal == found
            && let Reading::Asked(asked) = seen.reading
        {
            seen.reading = Reading::Confirmed(asked);
        } else {
            self.see(machine, found, now);
        }
    }

    /// The Lease could not be read: whether it was renewed stays unknown.
    pub fn give_up(&mut self, machine: &MachineName) {
        if let Some(seen) = self.seen.get_mut(machine) {
            seen.reading = Reading::No;
        }
    }

    /// Notes the pods that an agent names. A pod that was named before stays covered as long as `there` has it, even if the
    /// agent no longer names it. Returns whether a pod is covered that was not before.
    pub(super) fn cover(
        &mut self,
        machine: &MachineName,
        named: impl Iterator<Item = PodUid>,
        there: &BTreeSet<PodUid>,
        now: Time,
    ) -> bool {
        let covered = self.covered.entry(machine.clone()).or_default();
        let mut more = false;
        let named: BTreeMap<PodUid, Time> = named
            .map(|uid| {
                let since = covered.get(&uid).copied();
                more |= since.is_none();
                (uid, since.unwrap_or(now))
            })
            .collect();
        covered.retain(|uid, _| there.contains(uid));
        covered.extend(named);
        if covered.is_empty() {
            self.covered.remove(machine);
        }
        more
    }

    /// Whether the agent of a machine has ended a pod. The promise counts from the pod's deletion at the earliest: an
    /// agent that comes back may let a pod run that is not being deleted. Nor does the promise count from a time before
    /// the operator first saw the agent name the pod: the agent may have come back just before, which a Lease that the
    /// operator read earlier does not show.
    pub fn of(&self, machine: &MachineName, pod: &Fenced, now: Time) -> Fence {
        let named = self.covered.get(machine).and_then(|covered| covered.get(pod.uid));
        let seen = self.seen.get(machine).filter(|seen| seen.renewal.fences);
        let Some((seen, named)) = seen.zip(named) else { return Fence::None };
        let at = (seen.at + pod.lease + FENCE_MARGIN).max(pod.doomed).max(*named + FENCE_MARGIN);
        match seen.reading {
            Reading::Confirmed(asked) if asked >= at => Fence::Held,
            _ if now < at => Fence::At(at),
            Reading::Asked(_) => Fence::Asked,
            Reading::No | Reading::Confirmed(_) => Fence::Due,
        }
    }
}

impl Pool {
    /// An agent's Lease was read.
    pub(super) fn agent_lease_read(&mut self, name: &MachineName, found: Option<Renewal>, now: Time) {
        self.fences.answer(name, found, now);
        self.changed(Change::ClaimsOn(name));
    }

    /// An agent's Lease could not be read.
    pub(super) fn agent_lease_unread(&mut self, name: &MachineName) {
        self.fences.give_up(name);
        self.changed(Change::ClaimsOn(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(100);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    fn renewal(version: &str) -> Renewal {
        Renewal { version: version.into(), fences: true }
    }

    /// An agent that promises, and has named the pod `p`.
    fn fences() -> (Fences, MachineName) {
        let (mut fences, node) = (Fences::default(), MachineName::from("n1"));
        fences.see(&node, renewal("1"), at(1000));
        assert!(fences.cover(&node, named(&["p"]), &uids(&[]), at(1000)));
        (fences, node)
    }

    fn named(uids: &[&'static str]) -> impl Iterator<Item = PodUid> {
        uids.iter().map(|uid| PodUid::from(*uid))
    }

    fn uids(uids: &[&'static str]) -> BTreeSet<PodUid> {
        named(uids).collect()
    }

    /// The fence at `now` of the pod `p`, whose deletion was seen at `doomed`.
    fn of(fences: &Fences, lease: Duration, doomed: i64, now: i64) -> Fence {
        of_pod(fences, "p", lease, doomed, now)
    }

    fn of_pod(fences: &Fences, uid: &str, lease: Duration, doomed: i64, now: i64) -> Fence {
        let pod = Fenced { uid: &uid.into(), lease, doomed: at(doomed) };
        fences.of(&"n1".into(), &pod, at(now))
    }

    #[test]
    fn a_promise_is_believed_after_lease_and_margin_and_a_look() {
        let (mut fences, node) = fences();
        let of = |fences: &Fences, now| of(fences, LEASE, 1050, now);
        assert_eq!(of(&fences, 1100), Fence::At(at(1130)));
        fences.see(&node, renewal("1"), at(1120));
        assert_eq!(of(&fences, 1129), Fence::At(at(1130)), "the same renewal is none");
        assert_eq!(of(&fences, 1130), Fence::Due);
        fences.ask(&node, at(1130));
        assert_eq!(of(&fences, 1131), Fence::Asked);
        fences.give_up(&node);
        assert_eq!(of(&fences, 1137), Fence::Due, "nobody knows: it is asked again");
        fences.ask(&node, at(1137));
        fences.answer(&node, Some(renewal("1")), at(1138));
        assert_eq!(of(&fences, 1138), Fence::Held);
        fences.answer(&node, None, at(1140));
        assert_eq!(of(&fences, 1140), Fence::None, "there is no Lease any more");
    }

    #[test]
    fn a_renewal_that_no_watch_told_of_begins_the_wait_anew() {
        let (mut fences, node) = fences();
        fences.ask(&node, at(1130));
        fences.answer(&node, Some(renewal("7")), at(1131));
        assert_eq!(of(&fences, LEASE, 1050, 1131), Fence::At(at(1261)));
    }

    #[test]
    fn a_look_holds_for_what_was_due_when_it_was_asked_for() {
        let (mut fences, node) = fences();
        fences.ask(&node, at(1130));
        fences.answer(&node, Some(renewal("1")), at(1131));
        assert_eq!(of(&fences, LEASE * 2, 1050, 1200), Fence::At(at(1230)), "a longer lease");
        assert_eq!(of(&fences, LEASE * 2, 1050, 1230), Fence::Due, "is asked about again");
        assert_eq!(of(&fences, LEASE, 1140, 1150), Fence::Due, "and one doomed since");
    }

    /// The agent is cut off before it names the pod, its Lease is read, and the agent comes back: its report may be seen before
    /// its renewal.
    #[test]
    fn a_pod_that_is_named_late_is_waited_for_and_the_lease_read_again() {
        let (mut fences, node) = fences();
        fences.ask(&node, at(1130));
        fences.answer(&node, Some(renewal("1")), at(1131));
        assert!(fences.cover(&node, named(&["q"]), &uids(&["p", "q"]), at(1200)));
        let of = |fences: &Fences, now| of_pod(fences, "q", LEASE, 1050, now);
        assert_eq!(of(&fences, 1200), Fence::At(at(1230)), "the Lease that was read is an old one");
        assert_eq!(of(&fences, 1230), Fence::Due);
        fences.ask(&node, at(1230));
        fences.answer(&node, Some(renewal("2")), at(1231));
        assert_eq!(of(&fences, 1231), Fence::At(at(1361)), "the agent was back");
    }

    #[test]
    fn nobody_is_counted_on_who_did_not_promise() {
        let (mut fences, node) = fences();
        fences.see(&node, Renewal { fences: false, ..renewal("2") }, at(1010));
        assert!(!fences.promised(&node));
        assert_eq!(of(&fences, LEASE, 1050, 9000), Fence::None);
        fences.see(&node, renewal("3"), at(1020));
        fences.forget(&node);
        assert_eq!(of(&fences, LEASE, 1050, 9000), Fence::None);
    }

    #[test]
    fn a_pod_that_no_report_named_is_not_covered() {
        let (mut fences, node) = fences();
        assert_eq!(of_pod(&fences, "q", LEASE, 1050, 1100), Fence::None);
        assert!(!fences.cover(&node, named(&["p"]), &uids(&["p", "q"]), at(1001)), "nothing new");
        assert!(fences.cover(&node, named(&["q"]), &uids(&["p", "q"]), at(1002)));
        for uid in ["p", "q"] {
            assert_eq!(of_pod(&fences, uid, LEASE, 1050, 1100), Fence::At(at(1130)), "{uid} stays covered");
        }
        assert!(!fences.cover(&node, named(&["q"]), &uids(&["q"]), at(1003)));
        assert_eq!(of(&fences, LEASE, 1050, 1100), Fence::None, "a pod that is gone is forgotten");
        let other = Fenced { uid: &"q".into(), lease: LEASE, doomed: at(1050) };
        assert_eq!(
            fences.of(&"n2".into(), &other, at(1100)),
            Fence::None,
            "another machine promised nothing"
        );
    }
}
