//! The last signs of life of machines or agents, and how long each of them counts.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::MachineName;
use super::time::Time;

/// Until when each machine counts as alive, by the Lease that its kubelet (or agent) renews. The operator judges by its
/// own clock when it saw a renewal, never by another machine's clock.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    /// When each machine was last heard of, and until when that counts.
    until: BTreeMap<MachineName, (Time, Time)>,
    by_time: BTreeSet<(Time, MachineName)>,
}

impl Heartbeats {
    /// Notes that the machine was heard of; that counts until `until`.
    pub fn beat(&mut self, machine: &MachineName, now: Time, until: Time) {
        self.forget(machine);
        self.until.insert(machine.clone(), (now, until));
        self.by_time.insert((until, machine.clone()));
    }

    /// Forgets the machine, whose Lease is gone.
    pub fn forget(&mut self, machine: &MachineName) {
        if let Some((_, until)) = self.until.remove(machine) {
            self.by_time.remove(&(until, machine.clone()));
        }
    }

    /// Whether the machine was ever heard of. A machine without a Lease never is.
    pub fn knows(&self, machine: &MachineName) -> bool {
        self.until.contains_key(machine)
    }

    /// Whether the machine was heard of before, but not in time since.
    pub fn is_silent(&self, machine: &MachineName, now: Time) -> bool {
        self.silent_since(machine, now).is_some()
    }

    /// When a machine that is silent now was last heard of; `None` if it is not silent.
    pub fn silent_since(&self, machine: &MachineName, now: Time) -> Option<Time> {
        self.until.get(machine).filter(|(_, until)| *until <= now).map(|(heard, _)| *heard)
    }

    /// The machines that have become silent since the last call.
    pub fn lapsed(&mut self, now: Time) -> Vec<MachineName> {
        let mut lapsed = Vec::new();
        while self.by_time.first().is_some_and(|(until, _)| *until <= now) {
            lapsed.extend(self.by_time.pop_first().map(|(_, machine)| machine));
        }
        lapsed
    }

    /// When the next machine will become silent, unless it is heard of before.
    pub fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(until, _)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_once_and_ends_with_a_beat() {
        let (at, node) = (Time::from_secs, MachineName::from("n1"));
        let mut heartbeats = Heartbeats::default();
        assert!(!heartbeats.is_silent(&node, at(100)), "a machine never heard of is not silent");
        heartbeats.beat(&node, at(0), at(40));
        heartbeats.beat(&node, at(10), at(50));
        assert_eq!((heartbeats.next(), heartbeats.lapsed(at(49))), (Some(at(50)), vec![]));
        assert_eq!(heartbeats.lapsed(at(50)), std::slice::from_ref(&node));
        assert!(heartbeats.is_silent(&node, at(50)));
        assert_eq!(
            (heartbeats.silent_since(&node, at(49)), heartbeats.silent_since(&node, at(50))),
            (None, Some(at(10)))
        );
        assert_eq!((heartbeats.next(), heartbeats.lapsed(at(60))), (None, vec![]));
        heartbeats.beat(&node, at(60), at(90));
        assert!(!heartbeats.is_silent(&node, at(60)));
        heartbeats.forget(&node);
        assert!(!heartbeats.is_silent(&node, at(100)) && heartbeats.next().is_none());
    }
}
