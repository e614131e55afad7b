//! Partitionable slots: a cycle may match them many times, each time with a part of the slot.

use super::kit::{cycle, jobs_with, rejections, slot_with, slots, submitter, weights};
use crate::negotiator::{Candidate, RejectReason, Request, negotiate};

/// A partitionable slot of this many cores and MiB.
fn pslot(cpus: i64, memory: i64) -> Candidate {
    let said = format!(
        "PartitionableSlot = true\nMemory = {memory}\nDisk = 1000000\nSlotWeight = Cpus\n\
         Requirements = TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory"
    );
    slot_with(cpus, &said)
}

fn wanting(count: u64, cpus: i64, memory: i64) -> Request {
    jobs_with(count, &format!("RequestCpus = {cpus}\nRequestMemory = {memory}\nRequestDisk = 100"))
}

#[test]
fn a_slot_is_filled_in_one_cycle() {
    let cycle = cycle(vec![pslot(8, 4096)], vec![submitter("a", 1.0, &[wanting(9, 2, 100)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(slots(&outcome), [0, 0, 0, 0]);
    assert_eq!(outcome.matches.iter().map(|each| each.cost).collect::<Vec<_>>(), [2.0; 4], "its cores");
    assert_eq!(rejections(&outcome), [(0, 0, 5, RejectReason::NoSlots)]);
}

/// The startd gives memory in multiples of 128 MiB: 5 times 200 becomes 5 times 256.
#[test]
fn parts_are_what_the_startd_carves() {
    let cycle = cycle(vec![pslot(8, 1024)], vec![submitter("a", 1.0, &[wanting(9, 1, 200)])]);
    assert_eq!(slots(&negotiate(&cycle)).len(), 4);
}

/// A match costs what it takes, so that shares are of cores and not of machines.
#[test]
fn shares_of_one_slot() {
    let users =
        vec![submitter("a", 1.0, &[wanting(99, 1, 100)]), submitter("b", 3.0, &[wanting(99, 1, 100)])];
    let cycle = cycle(vec![pslot(8, 65_536)], users);
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [6.0, 2.0]);
}

/// The fullest slot that is large enough comes first, so that wide jobs find room. NEGOTIATOR_PRE_JOB_RANK is evaluated
/// again as slots fill.
#[test]
fn narrow_jobs_leave_room_for_wide_ones() {
    let requests = [wanting(3, 1, 100), wanting(1, 4, 100)];
    let cycle = cycle(vec![pslot(4, 4096), pslot(4, 4096)], vec![submitter("a", 1.0, &requests)]);
    assert_eq!(slots(&negotiate(&cycle)), [0, 0, 0, 1]);
}

/// If jobs of several kinds share an order, each sees which slots the others have filled.
#[test]
fn orders_learn_of_changes() {
    let ranked = |rank: &str, count: u64| {
        let mut request = wanting(count, 1, 100);
        request.ad.insert("Rank", super::kit::expr(rank));
        request
    };
    let requests = [
        ranked("TARGET.Cpus", 1),
        ranked("-TARGET.Cpus", 1),
        ranked("TARGET.Cpus", 2),
        ranked("-TARGET.Cpus", 9),
    ];
    let mut cycle = cycle(vec![pslot(2, 4096), pslot(3, 4096)], vec![submitter("a", 1.0, &requests)]);
    cycle.config = super::kit::no_ranks();
    // The first job prefers most cores, the second fewest, the next two most, the others fewest; among equals the first slot
    // is taken. The slots have 2 and 3 cores left, then 2 and 2, 1 and 2, 1 and 1, 0 and 1, and nothing in the end.
    assert_eq!(slots(&negotiate(&cycle)), [1, 0, 1, 0, 1]);
}

/// A node that does not report its disk gives as much disk as jobs want.
#[test]
fn disk_of_which_nobody_knows() {
    let mut slot = pslot(4, 4096);
    slot.ad.set("Disk", 0);
    let cycle = cycle(vec![slot], vec![submitter("a", 1.0, &[wanting(9, 1, 100)])]);
    assert_eq!(slots(&negotiate(&cycle)).len(), 4);
}

/// If a slot's Requirements are true but the startd cannot carve for the job, the job is matched with the whole slot.
#[test]
fn what_cannot_be_carved_goes_whole() {
    let slot = slot_with(4, "PartitionableSlot = true\nMemory = 100\nDisk = 100\nRequirements = true");
    let cycle = cycle(vec![slot], vec![submitter("a", 1.0, &[wanting(2, 1, 5000)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(outcome.matches.iter().map(|each| each.cost).collect::<Vec<_>>(), [4.0]);
}

/// A match costs the weight of the part that is carved, which its claim is charged, and not the fall of the slot's weight.
#[test]
fn a_weight_that_is_no_sum_of_its_parts() {
    let mut slot = pslot(64, 262_144);
    slot.ad.insert("SlotWeight", super::kit::expr("max({Cpus, Memory / 4096})"));
    let outcome = negotiate(&cycle(vec![slot], vec![submitter("a", 1.0, &[wanting(2, 1, 32_768)])]));
    assert_eq!(outcome.matches.iter().map(|each| each.cost).collect::<Vec<_>>(), [8.0; 2]);
}

/// When one slot is full, the same request takes the next slot.
#[test]
fn one_slot_after_another() {
    let cycle = cycle(vec![pslot(3, 4096); 4], vec![submitter("a", 1.0, &[wanting(8, 1, 100)])]);
    assert_eq!(slots(&negotiate(&cycle)), [0, 0, 0, 1, 1, 1, 2, 2]);
    // The same if the slots' Requirements read more of the job than its requests.
    let mut cycle = cycle;
    let request = &mut cycle.submitters[0].requests[0];
    request
        .ad
        .insert("RequestDisk", super::kit::expr("MAX({1024, (TransferInputSizeMB + 1) * 1.25}) * 1024"));
    request.ad.set("TransferInputSizeMB", 0);
    for slot in &mut cycle.slots {
        slot.ad.set("Disk", 100_000_000);
        slot.ad.insert(
            "Requirements",
            super::kit::expr("TARGET.RequestCpus <= MY.Cpus && TARGET.RequestDisk <= MY.Disk"),
        );
    }
    assert_eq!(slots(&negotiate(&cycle)), [0, 0, 0, 1, 1, 1, 2, 2]);
}
