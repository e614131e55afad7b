//! The content of the permit, and whether the agent may promise to end pods when it is cut off. Pure.
//!
//! The operator relies on a promise for the pods that the agent's report has named. So while a promise may be in force, the
//! agent names a pod only once the guard has read a permit that has the pod; and the agent begins to promise only once the guard
//! has read a permit that has all pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::permit::{Heartbeat, Permit};
use crate::pods::{Pod, Pods};
use model::startd::SHORTEST_LEASE;

/// The pause between two looks for pods that have left the node.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// How long nothing must be seen of a pod that must not run again before the pod is forgotten. A kubelet that comes back may
/// be shown a list of its pods that is some minutes old.
const FORGET_AFTER: Duration = Duration::from_mins(10);

/// How long an API server may take to carry out a call that nobody waits for any more: its request timeout.
const LATE: Duration = Duration::from_mins(1);

/// Whether a pod that a list shows is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) deleting: bool,
}

/// The agent's knowledge of its promise.
#[derive(Debug)]
pub(crate) struct Keeper {
    boot: String,
    /// The permit as it should be.
    permit: Permit,
    /// The permit in the directory, once this agent has written one.
    written: Option<Permit>,
    /// The number of the first permit that had the pod.
    since: BTreeMap<String, u64>,
    /// The number of the permit that last changed what must not run again.
    settled_by: u64,
    /// When the last renewal that succeeded was sent.
    renewed: Option<Duration>,
    /// The renewal that the last list of the node's pods followed: when it was sent.
    listed: Option<Duration>,
    /// Whether the operator may see a promise.
    in_force: bool,
    /// When the last promising renewal was sent, unless it has succeeded.
    asked: Option<Duration>,
    /// When the agent sent the last of the promising renewals that it has given up. Such a renewal may still take
    /// effect.
    given_up: Option<Duration>,
    /// The pods that were named while a promise was in force; none if any pod may have been named.
    named: Option<BTreeSet<String>>,
    /// The number of the permit by which the guard acts; none if the guard is silent.
    guard: Option<u64>,
    /// For each pod that must not run again, by uid: since when nothing has been seen of the pod.
    quiet: BTreeMap<String, Duration>,
    swept: Duration,
}

impl Keeper {
    /// The state of an agent that starts in the boot `boot`, and finds this permit and a guard that has read the permit of this
    /// number. Until the agent has renewed its Lease, it writes no permit.
    pub(crate) fn new(boot: &str, found: Option<Permit>, read: u64) -> Self {
        let mut permit = found.unwrap_or_else(|| Permit::empty(boot, 0));
        let uids = permit.pods.keys().chain(permit.held.keys());
        let since = uids.map(|uid| (uid.clone(), permit.sequence)).collect();
        // The directory may have been emptied while the guard ran: no number may be used twice.
        permit.sequence = permit.sequence.max(read);
        Self {
            boot: boot.to_owned(),
            permit,
            written: None,
            since,
            settled_by: 0,
            renewed: None,
            listed: None,
            in_force: true,
            asked: None,
            given_up: None,
            named: None,
            guard: None,
            quiet: BTreeMap::new(),
            swept: Duration::ZERO,
        }
    }

    /// Takes note of a renewal that is sent at `sent`, with or without the promise. The renewal before has succeeded or
    /// has been given up.
    pub(crate) fn renewal_sent(&mut self, sent: Duration, promises: bool) {
        self.given_up = self.asked.take().or(self.given_up);
        if !promises {
            return;
        }
        self.asked = Some(sent);
        if self.named.is_none() {
            let named = self.since.keys().filter(|uid| self.is_guarded(uid)).cloned().collect();
            self.named = Some(named);
        }
        self.in_force = true;
    }

    /// Takes note of a renewal that succeeded. It was sent at `sent`.
    pub(crate) fn renewed(&mut self, sent: Duration, promised: bool, now: Duration) {
        self.renewed = self.renewed.max(Some(sent));
        self.asked = None;
        // A renewal without the promise ends the promise, unless a promising renewal that was given up may still take
        // effect after this one.
        if !promised && self.given_up.is_none_or(|given_up| sent >= given_up.saturating_add(LATE)) {
            (self.in_force, self.named) = (false, None);
        }
        self.follow(now);
    }

    /// Lets the permit follow the last renewal. A pod whose lease has passed since the renewal before must not run until the node's
    /// pods are listed: the operator may have relied on the pod's end. The other pods need not wait for the list.
    fn follow(&mut self, now: Duration) {
        let Some(renewed) = self.renewed else { return };
        let permit = &mut self.permit;
        let (over, running): (BTreeMap<_, _>, _) = std::mem::take(&mut permit.pods)
            .into_iter()
            .partition(|(_, lease)| permit.is_over(*lease, &self.boot, now));
        if !over.is_empty() {
            // The kubelet may have been cut off, too: what nothing was seen of meanwhile may still come back.
            self.quiet.clear();
        }
        permit.ended.extend(over.keys().cloned());
        permit.held.extend(over);
        (permit.pods, permit.renewed) = (running, renewed);
        permit.boot.clone_from(&self.boot);
    }

    /// When the renewal was sent after which the node's pods have to be listed; none if they need not be listed. The list must
    /// begin after that renewal has succeeded. There is one list after a renewal at most: a list that came too late for a pod would
    /// come too late again.
    pub(crate) fn wants_list(&self) -> Option<Duration> {
        self.renewed.filter(|_| !self.has_decided()).filter(|renewed| self.listed < Some(*renewed))
    }

    /// Whether no pod waits for a list.
    pub(crate) fn has_decided(&self) -> bool {
        self.permit.held.is_empty()
    }

    /// Takes note of a list of the node's pods, by uid, that [`Keeper::wants_list`] asked for after the renewal sent at `sent`. A
    /// pod whose lease had passed runs again if the list has the pod and the pod is not being deleted. Otherwise the pod never runs
    /// again. A pod whose lease has passed since `sent`, too, waits for a list after a later renewal: it may be younger than this list,
    /// and the operator may have relied on its end since.
    pub(crate) fn listed(&mut self, sent: Duration, list: &BTreeMap<String, Listed>, now: Duration) {
        self.listed = self.listed.max(Some(sent));
        for (uid, lease) in std::mem::take(&mut self.permit.held) {
            let comes_late = now >= sent.saturating_add(Duration::from_secs(lease));
            match list.get(&uid) {
                Some(Listed { deleting: true }) => drop(self.since.remove(&uid)),
                _ if comes_late => drop(self.permit.held.insert(uid, lease)),
                None => drop(self.since.remove(&uid)),
                Some(Listed { deleting: false }) => {
                    self.permit.ended.remove(&uid);
                    self.permit.pods.insert(uid, lease);
                }
            }
        }
    }

    /// The uids of the pods of the permit, of which [`Keeper::observe`] asks whether something of them remains.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &str> {
        self.permit.pods.keys().chain(&self.permit.ended).map(String::as_str)
    }

    /// Takes note of the pods on the node. `remains` tells whether something of a pod is left on the node.
    pub(crate) fn observe(&mut self, pods: &Pods, remains: impl Fn(&str) -> bool, now: Duration) {
        if self.renewed.is_none() || !pods.are_known() {
            return;
        }
        for pod in pods.iter().filter(|pod| !self.permit.ended.contains(&*pod.uid)) {
            let known = self.permit.pods.get(&*pod.uid).copied();
            let lease = match (known, pod.lease()) {
                (Some(known), Some(said)) => known.min(said),
                (Some(lease), None) | (None, Some(lease)) => lease,
                // The operator wrote no shorter one.
                (None, None) => SHORTEST_LEASE.as_secs(),
            };
            // If the agent first learns of a pod after the pod's lease has passed, the pod stays out of the permit:
            // the guard must not end a pod that no promise covers yet.
            if known.is_some() || !self.permit.is_over(lease, &self.boot, now) {
                self.permit.pods.insert(pod.uid.to_string(), lease);
            }
        }
        if now.saturating_sub(self.swept) >= SWEEP_EVERY {
            self.swept = now;
            self.sweep(|uid| pods.knows(uid) || remains(uid), now);
        }
    }

    /// Takes pods out of the permit that have left the node while the agent was connected, and forgets those that must not run
    /// again once nothing has been seen of them for long.
    fn sweep(&mut self, is_there: impl Fn(&str) -> bool, now: Duration) {
        let permit = &self.permit;
        let left = permit
            .pods
            .iter()
            .filter(|(uid, lease)| !permit.is_over(**lease, &self.boot, now) && !is_there(uid));
        for uid in left.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
            self.permit.pods.remove(&uid);
            self.since.remove(&uid);
        }
        let (quiet, held, since) = (&mut self.quiet, &mut self.permit.held, &mut self.since);
        self.permit.ended.retain(|uid| {
            if is_there(uid) {
                quiet.remove(uid);
                return true;
            }
            let is_kept = now.saturating_sub(*quiet.entry(uid.clone()).or_insert(now)) < FORGET_AFTER;
            if !is_kept {
                quiet.remove(uid);
                held.remove(uid);
                since.remove(uid);
            }
            is_kept
        });
    }

    /// Takes note of the guard's heartbeat.
    pub(crate) fn heard(&mut self, heartbeat: Option<&Heartbeat>, now: Duration) {
        let lives = heartbeat.filter(|heartbeat| heartbeat.lives(&self.boot, now));
        self.guard = lives.map(|heartbeat| heartbeat.sequence);
    }

    /// The permit that has to be written, if one has. On a node without pods of the pool, none is written at each renewal.
    pub(crate) fn due_write(&mut self) -> Option<Permit> {
        let same = self.written.as_ref().is_some_and(|written| {
            let renewed = written.renewed == self.permit.renewed || self.permit.pods.is_empty();
            let (was, is) = (written, &self.permit);
            renewed && was.pods == is.pods && was.ended == is.ended && was.held == is.held
        });
        if same || self.renewed.is_none() {
            return None;
        }
        // A write that fails may have had its effect: its number is not used again.
        self.permit.sequence += 1;
        Some(self.permit.clone())
    }

    /// Takes note of a permit that was written.
    pub(crate) fn wrote(&mut self, permit: Permit) {
        for uid in permit.pods.keys() {
            self.since.entry(uid.clone()).or_insert(permit.sequence);
        }
        if self.written.as_ref().is_none_or(|before| before.ended != permit.ended) {
            self.settled_by = permit.sequence;
        }
        self.written = Some(permit);
    }

    /// Whether the guard lives, and has read a permit that has the pod.
    fn is_guarded(&self, uid: &str) -> bool {
        let since = self.since.get(uid);
        self.guard.zip(since).is_some_and(|(read, since)| *since <= read)
    }

    /// Whether the guard lives.
    pub(crate) fn is_guarded_at_all(&self) -> bool {
        self.guard.is_some()
    }

    /// Whether the agent may promise now: the guard lives, and has read a permit that has all pods that the report may have
    /// named, and all pods that must not run again.
    pub(crate) fn may_promise(&self, pods: &Pods) -> bool {
        let written = self.written.as_ref().is_some_and(|written| written.ended == self.permit.ended);
        let settled = written && self.guard.is_some_and(|read| read >= self.settled_by);
        let named = |pod: &Pod| self.named.as_ref().is_none_or(|named| named.contains(&*pod.uid));
        let safe = |pod: &Pod| self.permit.ended.contains(&*pod.uid) || self.is_guarded(&pod.uid);
        settled && pods.are_known() && pods.iter().filter(|pod| named(pod)).all(safe)
    }

    /// Whether the report may name the pod. Backfill work is treated like a proc: which of the two a pod runs is said by labels,
    /// which somebody may have changed.
    pub(crate) fn may_name(&mut self, pod: &Pod) -> bool {
        if !self.in_force {
            return true;
        }
        let guarded = self.is_guarded(&pod.uid);
        match &mut self.named {
            Some(named) if guarded => {
                named.insert(pod.uid.to_string());
                true
            }
            Some(named) => named.contains(&*pod.uid),
            None => guarded,
        }
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
