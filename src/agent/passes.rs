//! When the agent passes over the node's pods. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The pause between two passes over the pods.
const PASS_EVERY: Duration = Duration::from_secs(2);
/// The pause between two passes while the processes of a pod do not do what they are to do.
const HURRY: Duration = Duration::from_millis(100);
/// The least pause between two passes that act on changes. A tenant may edit its pods as often as it likes.
const CHANGE_PACE: Duration = Duration::from_secs(1);
/// After so many hurried passes in a row the agent is patient again: there is a process that cannot be frozen or killed,
/// such as one that waits for a disk.
const HURRIED: u32 = 50;

/// The times of the passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passes {
    next: Instant,
    /// Whether the next pass acts on a change.
    changed: bool,
    /// When the last pass ended that acted on a change.
    acted: Option<Instant>,
    /// How many passes in a row have found a pod whose processes do not do what they are to do.
    hurried: u32,
}

impl Passes {
    /// Passes that begin now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { next: now, changed: false, acted: None, hurried: 0 }
    }

    /// When the next pass is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes note of a change that a pass is to act on: at once, unless a pass that acted on another change ended less than a second
    /// ago.
    pub(crate) fn hasten(&mut self, now: Instant) {
        let due = self.acted.map_or(now, |acted| now.max(acted + CHANGE_PACE));
        (self.next, self.hurried, self.changed) = (self.next.min(due), 0, true);
    }

    /// Takes note of a pass that has ended. `settled` tells whether the processes of all pods do what they are to do.
    pub(crate) fn passed(&mut self, settled: bool, now: Instant) {
        if std::mem::take(&mut self.changed) {
            self.acted = Some(now);
        }
        self.hurried = if settled { 0 } else { self.hurried.saturating_add(1) };
        self.next = now + if settled || self.hurried > HURRIED { PASS_EVERY } else { HURRY };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A tenant may edit its pod as often as it likes.
    #[test]
    fn a_pod_that_changes_all_the_time_causes_a_pass_a_second() {
        let began = Instant::now();
        let mut passes = Passes::new(began);
        passes.passed(true, began);
        let mut times = Vec::new();
        for time in (150..4000).step_by(50) {
            let now = began + millis(time);
            passes.hasten(now);
            if passes.next() <= now {
                times.push(time);
                passes.passed(true, now);
            }
        }
        assert_eq!(times, [150, 1150, 2150, 3150], "the first one at once");
        assert_eq!(passes.next(), began + millis(4150), "the last change is acted on in any case");
    }

    #[test]
    fn passes_hurry_while_a_process_does_not_do_what_it_is_to_do_but_not_for_ever() {
        let began = Instant::now();
        let (mut passes, mut now) = (Passes::new(began), began);
        let mut pause = |settled: bool| {
            passes.passed(settled, now);
            let pause = passes.next() - now;
            now = passes.next();
            pause
        };
        assert_eq!(pause(true), PASS_EVERY);
        for _ in 0..HURRIED {
            assert_eq!(pause(false), HURRY);
        }
        assert_eq!(
            (pause(false), pause(false), pause(true), pause(false)),
            (PASS_EVERY, PASS_EVERY, PASS_EVERY, HURRY)
        );
        passes.hasten(began);
        passes.hasten(now + millis(10));
        assert!(passes.next() <= now, "a change never lets a pass wait that is due anyway");
    }
}
