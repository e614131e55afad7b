//! Jobs whose expressions cost much to evaluate: a job or submitter that has used up its share of steps is set aside,
//! and costs others nothing.

use super::kit::{cycle, jobs, jobs_with, rejections, single_cores, slot_with, submitter, weights};
use crate::negotiator::{RejectReason, Request, negotiate};

/// A job whose Requirements cannot be evaluated within the bound.
fn unbounded() -> Request {
    let text = "a".repeat(11_000);
    jobs_with(5, &format!("B = \"{text}\"\nRequirements = regexp(\"(a{{1,110}}){{1,110}}b\", B)\n"))
}

/// A job whose Requirements take a third of the steps that one evaluation may take.
fn expensive() -> Request {
    let text = "ab".repeat(2000);
    let requirements = "regexp(\"[ab]*a[ab]{40}c\", strcat(B, TARGET.Nothing ?: \"\"))";
    jobs_with(5, &format!("B = \"{text}\"\nRequirements = {requirements}\n"))
}

#[test]
fn a_job_of_which_no_evaluation_ends_is_told_from_one_that_nothing_matches() {
    let cycle =
        cycle(single_cores(3), vec![submitter("a", 1.0, &[unbounded()]), submitter("b", 1.0, &[jobs(3)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(weights(&cycle, &outcome), [0.0, 3.0]);
    assert_eq!(rejections(&outcome), [(0, 0, 5, RejectReason::TooExpensive)]);
}

/// Only slots that match are ranked. So a Rank that is too expensive costs nothing if no slot matches, and otherwise
/// counts like Requirements.
#[test]
fn a_rank_counts_like_requirements_where_slots_match() {
    let text = "a".repeat(11_000);
    let rank = "regexp(\"(a{1,110}){1,110}b\", strcat(B, TARGET.Nothing ?: \"\"))";
    for (requirements, reason) in
        [("TARGET.Cpus > 1", RejectReason::NoMatch), ("TARGET.Cpus > 0", RejectReason::TooExpensive)]
    {
        let job = jobs_with(2, &format!("B = \"{text}\"\nRank = {rank}\nRequirements = {requirements}\n"));
        let outcome = negotiate(&cycle(single_cores(3), vec![submitter("a", 1.0, &[job])]));
        assert_eq!(rejections(&outcome), [(0, 0, 2, reason)], "{requirements}");
    }
}

#[test]
fn a_job_that_has_had_its_share_of_a_cycle_waits_for_the_next() {
    let cycle =
        cycle(single_cores(60), vec![submitter("a", 1.0, &[expensive()]), submitter("b", 1.0, &[jobs(60)])]);
    let outcome = negotiate(&cycle);
    assert_eq!(weights(&cycle, &outcome), [0.0, 60.0]);
    assert_eq!(rejections(&outcome), [(0, 0, 5, RejectReason::EvaluationShare)]);
    assert_eq!(negotiate(&cycle), outcome);
}

#[test]
fn a_submitter_that_has_had_its_share_of_a_cycle_leaves_its_other_jobs_for_the_next() {
    let mut many = vec![expensive(); 40];
    many.push(jobs(5));
    let cycle = cycle(single_cores(60), vec![submitter("a", 1.0, &many), submitter("b", 1.0, &[jobs(60)])]);
    let outcome = negotiate(&cycle);
    assert!((weights(&cycle, &outcome)[1] - 60.0).abs() < 1e-9);
    let reasons: Vec<RejectReason> = outcome.rejections.iter().map(|rejection| rejection.reason).collect();
    assert_eq!(reasons, [RejectReason::EvaluationShare; 41]);
}

#[test]
fn what_slots_spend_on_a_job_is_the_jobs_to_pay_but_no_cause_to_hold_it() {
    let policy = "Requirements = !regexp(\"(a{1,110}){1,110}b\", TARGET.B)\n";
    let text = "a".repeat(11_000);
    let outcome = negotiate(&cycle(
        vec![slot_with(1, policy); 30],
        vec![
            submitter("a", 1.0, &[jobs_with(5, &format!("B = \"{text}\"\n"))]),
            submitter("b", 1.0, &[jobs(60)]),
        ],
    ));
    let reasons: Vec<RejectReason> = outcome.rejections.iter().map(|rejection| rejection.reason).collect();
    assert!(!reasons.contains(&RejectReason::TooExpensive), "{reasons:?}");
}
