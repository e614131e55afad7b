//! Prepared slots are kept for the next cycle as long as they can be of use.

use super::kit::{cycle, jobs, slot, slot_with, submitter};
use crate::negotiator::{Ready, Stopwatch, negotiate_with};

/// The ads of a pool that a cycle has filled would take as much memory as all of its claims.
#[test]
fn a_slot_that_a_match_has_changed_is_not_kept() {
    let partitionable = slot_with(4, "PartitionableSlot = true\nMachineResources = \"Cpus\"");
    let slots = vec![slot(1), partitionable, slot(1)];
    let all = cycle(slots, vec![submitter("a", 1.0, &[jobs(3)])]);
    let mut ready = Ready::default();
    let outcome = negotiate_with(&all, &mut ready, Stopwatch::STOPPED);
    let roster = ready.take(&all);
    for place in 0..all.slots.len() {
        let matched = outcome.matches.iter().any(|found| found.slot == place);
        assert_eq!(roster.get(place).is_some(), !matched, "{place}: {:?}", outcome.matches);
    }
    assert_eq!(outcome.matches.len(), 3);
}
