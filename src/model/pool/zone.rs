//! Time zones: the offset of local time from UTC, and when it changes.

use std::sync::Arc;

use super::time::Time;

/// A time zone, for `ClockMin` and `ClockDay` of the machines in it. The shell supplies the table of changes; nothing
/// is looked up here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// The offset of local time before the first change, in seconds east of Greenwich.
    first: i32,
    /// The times at which the offset changes, in order, each with the new offset.
    changes: Arc<[(Time, i32)]>,
}

impl Zone {
    /// A zone that begins with the offset `first`, in seconds. The changes may be in any order.
    pub fn new(first: i32, mut changes: Vec<(Time, i32)>) -> Self {
        changes.sort_unstable();
        Self { first, changes: changes.into() }
    }

    /// The offset at the time `now`, in seconds east of Greenwich.
    pub fn offset(&self, now: Time) -> i32 {
        let passed = self.changes.partition_point(|(at, _)| *at <= now);
        passed
            .checked_sub(1)
            .and_then(|last| self.changes.get(last))
            .map_or(self.first, |(_, offset)| *offset)
    }

    /// When the offset next changes after `now`.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        self.changes.get(self.changes.partition_point(|(at, _)| *at <= now)).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_that_has_come_counts() {
        let at = Time::from_secs;
        let zone = Zone::new(3600, vec![(at(200), 3600), (at(100), 7200)]);
        for (now, offset, next) in
            [(99, 3600, Some(100)), (100, 7200, Some(200)), (199, 7200, Some(200)), (200, 3600, None)]
        {
            assert_eq!((zone.offset(at(now)), zone.next_change(at(now))), (offset, next.map(at)), "{now}");
        }
        assert_eq!(Zone::default().offset(at(0)), 0);
    }
}
