//! Fences: agents that promise to end the pods of claims whose lease passes while they cannot renew their Lease, and when
//! the operator may count on that.
//!
//! `docs/reference/agents.md` has the argument. The agent counts from when it *sent* its last renewal that succeeded; here it counts
//! from when that renewal was *seen*, which is later, by the clock of the one that waits. A watch may be behind: that there
//! was no renewal since is asked of the API server before it is believed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Pool;
use super::ids::MachineName;
use super::marks::Change;
use super::time::Time;

/// What is waited for beyond the lease: the agent has half of it to end the pods, the rest is for clocks that go at
/// different speeds.
pub const FENCE_MARGIN: Duration = Duration::from_secs(30);

/// A renewal of an agent's Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Which: the Lease's version, which is another after each write.
    pub version: Arc<str>,
    /// The agent promises to end the pods of claims whose lease passes.
    pub fences: bool,
}

/// Whether the agent of a machine has ended a pod, as it promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// Nobody promised.
    #[default]
    None,
    /// It will have at this time, unless its Lease is renewed before.
    At(Time),
    /// By what was seen it has; its Lease is to be read before that is believed.
    Due,
    /// Its Lease is being read.
    Asked,
    /// It has: the pod does not run, and never will again.
    Held,
}

/// How far the question has come whether there was a renewal since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    No,
    /// Under way since.
    Asked(Time),
    /// It was asked then, and there was none.
    Confirmed(Time),
}

#[derive(Clone, Debug)]
struct Seen {
    renewal: Renewal,
    at: Time,
    reading: Reading,
}

/// The last renewal of each agent's Lease, and when it was seen first.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    seen: BTreeMap<MachineName, Seen>,
}

impl Fences {
    /// A Lease was seen. The same renewal seen again is nothing new.
    pub fn see(&mut self, machine: &MachineName, renewal: Renewal, now: Time) {
        if self.seen.get(machine).is_none_or(|seen| seen.renewal != renewal) {
            self.seen.insert(machine.clone(), Seen { renewal, at: now, reading: Reading::No });
        }
    }

    /// There is no Lease any more: nobody promises anything.
    pub fn forget(&mut self, machine: &MachineName) {
        self.seen.remove(machine);
    }

    /// Whether the agent of a machine promised.
    pub fn promised(&self, machine: &MachineName) -> bool {
        self.seen.get(machine).is_some_and(|seen| seen.renewal.fences)
    }

    /// The Lease is read from now on.
    pub fn ask(&mut self, machine: &MachineName, now: Time) {
        if let Some(seen) = self.seen.get_mut(machine) {
            seen.reading = Reading::Asked(now);
        }
    }

    /// What the Lease was when it was read; none where there is none.
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

    /// The Lease could not be read: nobody knows.
    pub fn give_up(&mut self, machine: &MachineName) {
        if let Some(seen) = self.seen.get_mut(machine) {
            seen.reading = Reading::No;
        }
    }

    /// Whether the agent has ended a pod that carries this lease and was seen to be deleted at `doomed`. One that was not
    /// being deleted when the agent came back it may let run.
    pub fn of(&self, machine: &MachineName, lease: Duration, doomed: Time, now: Time) -> Fence {
        let Some(seen) = self.seen.get(machine).filter(|seen| seen.renewal.fences) else {
            return Fence::None;
        };
        let at = (seen.at + lease + FENCE_MARGIN).max(doomed);
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

    fn fences() -> (Fences, MachineName) {
        let (mut fences, node) = (Fences::default(), MachineName::from("n1"));
        fences.see(&node, renewal("1"), at(1000));
        (fences, node)
    }

    #[test]
    fn a_promise_is_believed_after_lease_and_margin_and_a_look() {
        let (mut fences, node) = fences();
        let of = |fences: &Fences, now| fences.of(&node, LEASE, at(1050), at(now));
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
        assert_eq!(fences.of(&node, LEASE, at(1050), at(1131)), Fence::At(at(1261)));
    }

    #[test]
    fn a_look_holds_for_what_was_due_when_it_was_asked_for() {
        let (mut fences, node) = fences();
        fences.ask(&node, at(1130));
        fences.answer(&node, Some(renewal("1")), at(1131));
        assert_eq!(fences.of(&node, LEASE * 2, at(1050), at(1200)), Fence::At(at(1230)), "a longer lease");
        assert_eq!(fences.of(&node, LEASE * 2, at(1050), at(1230)), Fence::Due, "is asked about again");
        assert_eq!(fences.of(&node, LEASE, at(1140), at(1150)), Fence::Due, "and one doomed since");
    }

    #[test]
    fn nobody_is_counted_on_who_did_not_promise() {
        let (mut fences, node) = fences();
        fences.see(&node, Renewal { fences: false, ..renewal("2") }, at(1010));
        assert!(!fences.promised(&node));
        assert_eq!(fences.of(&node, LEASE, at(1050), at(9000)), Fence::None);
        fences.see(&node, renewal("3"), at(1020));
        fences.forget(&node);
        assert_eq!(fences.of(&node, LEASE, at(1050), at(9000)), Fence::None);
    }
}
