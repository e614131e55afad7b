//! Who was heard of, and until when that counts.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::MachineName;
use super::time::Time;

/// Until when each machine counts as alive, by the Lease that its kubelet renews. Judged by when a renewal was seen here,
/// never by another machine's clock.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    /// When each was heard of last, and until when that counts.
    until: BTreeMap<MachineName, (Time, Time)>,
    by_time: BTreeSet<(Time, MachineName)>,
}

impl Heartbeats {
    /// The machine was heard of, which counts until `until`.
    pub fn beat(&mut self, machine: &MachineName, now: Time, until: Time) {
        self.forget(machine);
        self.until.insert(machine.clone(), (now, until));
        self.by_time.insert((until, machine.clone()));
    }

    /// Nothing is known of the machine any more.
    pub fn forget(&mut self, machine: &MachineName) {
        if let Some((_, until)) = self.until.remove(machine) {
            self.by_time.remove(&(until, machine.clone()));
        }
    }

    /// Whether anything was heard of the machine: from one that has no Lease nothing will be.
    pub fn knows(&self, machine: &MachineName) -> bool {
        self.until.contains_key(machine)
    }

    /// Whether the machine was heard of once, and not again in time.
    pub fn is_silent(&self, machine: &MachineName, now: Time) -> bool {
        self.silent_since(machine, now).is_some()
    }

    /// When a machine was last heard of that is silent now.
    pub fn silent_since(&self, machine: &MachineName, now: Time) -> Option<Time> {
        self.until.get(machine).filter(|(_, until)| *until <= now).map(|(heard, _)| *heard)
    }

    /// Those that have become silent since this was asked last.
    pub fn lapsed(&mut self, now: Time) -> Vec<MachineName> {
        let mut lapsed = Vec::new();
        while self.by_time.first().is_some_and(|(until, _)| *until <= now) {
            lapsed.extend(self.by_time.pop_first().map(|(_, machine)| machine));
        }
        lapsed
    }

    /// When the next one becomes silent, unless it is heard of.
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
