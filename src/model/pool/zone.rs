//! Time zones: how far local time is from Greenwich, and until when.

use std::sync::Arc;

use super::time::Time;

/// A time zone, for `ClockMin` and `ClockDay` of the machines in it. Its table is the shell's to make: none is looked up here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Local time before the first change, in seconds east of Greenwich.
    first: i32,
    /// When it changes, in order, and to what.
    changes: Arc<[(Time, i32)]>,
}

impl Zone {
    /// A zone with this offset in seconds, and these changes of it. They are put in order.
    pub fn new(first: i32, mut changes: Vec<(Time, i32)>) -> Self {
        changes.sort_unstable();
        Self { first, changes: changes.into() }
    }

    /// Seconds east of Greenwich.
    pub fn offset(&self, now: Time) -> i32 {
        let passed = self.changes.partition_point(|(at, _)| *at <= now);
        passed
            .checked_sub(1)
            .and_then(|last| self.changes.get(last))
            .map_or(self.first, |(_, offset)| *offset)
    }

    /// When the offset changes next.
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
