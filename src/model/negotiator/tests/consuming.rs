//! "This differs from scheduler matchmaking in that multiple jobs can match with the partitionable slot during a single
//! negotiation cycle."

use super::kit::{cycle, jobs, jobs_with, rejections, slot, slot_with, slots, submitter, weights};
use crate::negotiator::{Candidate, RejectReason, negotiate};

/// A partitionable slot of 8 CPUs with a consumption policy.
fn pslot(more: &str) -> Candidate {
    let attributes = "PartitionableSlot = true\nMachineResources = \"Cpus Memory\"\nSlotWeight = Cpus\nNumClaims = 8\n\
                      ConsumptionCpus = quantize(TARGET.RequestCpus, {1})\n\
                      ConsumptionMemory = quantize(TARGET.RequestMemory ?: 0, {128})";
    slot_with(8, &format!("{attributes}\n{more}"))
}

#[test]
fn one_slot_matches_many_jobs_of_many_submitters() {
    let requests = |cpus: i64| [jobs_with(10, &format!("RequestCpus = {cpus}"))];
    let submitters = vec![submitter("a", 500.0, &requests(1)), submitter("b", 500.0, &requests(2))];
    let cycle = cycle(vec![pslot("")], submitters);
    let outcome = negotiate(&cycle);
    assert_eq!(weights(&cycle, &outcome), [4.0, 4.0], "each has half of what it weighs");
    assert_eq!(slots(&outcome), [0; 6]);
    assert_eq!(
        outcome.matches.iter().map(|found| found.cost).collect::<Vec<_>>(),
        [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    );
}

#[test]
fn each_match_costs_what_the_slot_weighs_less_after_it() {
    let slot = pslot("SlotWeight = Memory / 128");
    let cycle = cycle(vec![slot], vec![submitter("a", 500.0, &[jobs_with(2, "RequestMemory = 200")])]);
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [4.0]);
}

#[test]
fn a_slot_has_as_many_matches_in_a_cycle_as_it_has_claims() {
    let cycle = cycle(vec![pslot("NumClaims = 3"), slot(1)], vec![submitter("a", 500.0, &[jobs(8)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(outcome.matches.iter().filter(|found| found.slot == 0).count(), 3);
    assert_eq!(rejections(&outcome), [(0, 0, 4, RejectReason::NoSlots)]);
}

#[test]
fn requirements_see_what_would_be_consumed() {
    // Three CPUs are consumed, though the job requests one.
    let slot = pslot("ConsumptionCpus = 3\nRequirements = TARGET.RequestCpus >= 3");
    let cycle = cycle(vec![slot], vec![submitter("a", 500.0, &[jobs(8)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(outcome.matches.len(), 2, "2 of 8 CPUs are left, which is too little");
    assert_eq!(rejections(&outcome), [(0, 0, 6, RejectReason::NoMatch)]);
}

#[test]
fn devices_that_are_matched_are_not_matched_again() {
    let devices = "MachineResources = \"Cpus Memory GPUs\"\nGPUs = 3\nConsumptionGPUs = TARGET.RequestGPUs ?: 0\n\
                   A = [Id = \"a\"; Capability = 7.0]\nB = [Id = \"b\"; Capability = 8.0]\nC = [Id = \"c\"; Capability = 8.6]\n\
                   AvailableGPUs = {A, B, C}";
    let wants = |count: u64, least: f64| {
        let require = format!(
            "RequestGPUs = 1\nRequireGPUs = Capability >= {least}\n\
             Requirements = countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs"
        );
        jobs_with(count, &require)
    };
    let requests = [wants(2, 8.6), wants(2, 8.0), wants(2, 1.0)];
    let outcome = negotiate(&cycle(vec![pslot(devices)], vec![submitter("a", 500.0, &requests)]));
    assert_eq!(outcome.matches.iter().map(|found| found.request).collect::<Vec<_>>(), [0, 1, 2]);
    let expected = [0, 1, 2].map(|request| (0, request, 1, RejectReason::NoMatch));
    assert_eq!(rejections(&outcome), expected);
}
