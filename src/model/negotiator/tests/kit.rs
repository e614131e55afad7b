//! Builds pools and submitters for tests, and reads outcomes.

use crate::negotiator::{Candidate, Config, Cycle, Outcome, RejectReason, Request, SubmitterInput};
use classad::{Ad, Expr};

/// A slot that accepts any job, with this many cores and the same weight.
pub fn slot(cpus: i64) -> Candidate {
    let mut ad = Ad::new().with("Cpus", cpus).with("Memory", 1024_i64).with("SlotID", 1_i64);
    ad.set("Rank", 0.0);
    ad.insert("Requirements", expr("TARGET.RequestCpus <= MY.Cpus"));
    #[allow(clippy::cast_precision_loss, reason = "small")]
    Candidate::new(ad, cpus as f64)
}

/// A slot that accepts any job, with additional attributes in the long form.
pub fn slot_with(cpus: i64, attributes: &str) -> Candidate {
    let mut slot = slot(cpus);
    slot.ad.update(&Ad::parse_long(attributes).unwrap());
    slot
}

/// This many slots of one core.
pub fn single_cores(count: usize) -> Vec<Candidate> {
    vec![slot(1); count]
}

/// A request for this many jobs of one core, which run anywhere.
pub fn jobs(count: u64) -> Request {
    jobs_with(count, "")
}

/// A request for this many jobs, with additional attributes in the long form.
pub fn jobs_with(count: u64, attributes: &str) -> Request {
    let mut ad = Ad::new().with("RequestCpus", 1_i64);
    ad.set("Requirements", true);
    if !attributes.is_empty() {
        ad.update(&Ad::parse_long(attributes).unwrap());
    }
    Request { ad, count }
}

/// A submitter of no group that uses nothing.
pub fn submitter(name: &str, effective_priority: f64, requests: &[Request]) -> SubmitterInput {
    SubmitterInput {
        name: name.to_owned(),
        effective_priority,
        requests: requests.to_vec(),
        ..Default::default()
    }
}

/// A cycle over a pool that consists of these slots and of what the submitters use.
pub fn cycle(slots: Vec<Candidate>, submitters: Vec<SubmitterInput>) -> Cycle {
    let free: f64 = slots.iter().map(|slot| slot.weight).sum();
    let used: f64 = submitters.iter().map(|submitter| submitter.weighted_used).sum();
    Cycle { now: 1_700_000_000, slots, submitters, pool_weight: free + used, ..Cycle::default() }
}

/// A configuration without ranks, so that the first slot in the list is the best.
pub fn no_ranks() -> Config {
    Config { pre_job_rank: None, post_job_rank: None, ..Config::default() }
}

pub fn expr(text: &str) -> Expr {
    Expr::parse(text).unwrap()
}

/// The slot weight that each submitter got.
pub fn weights(cycle: &Cycle, outcome: &Outcome) -> Vec<f64> {
    let mut weights = vec![0.0; cycle.submitters.len()];
    for each in &outcome.matches {
        weights[each.submitter] += each.cost;
    }
    weights
}

/// The slots, in the order in which they were matched.
pub fn slots(outcome: &Outcome) -> Vec<usize> {
    outcome.matches.iter().map(|each| each.slot).collect()
}

/// For each request with jobs left: submitter, request, jobs, reason.
pub fn rejections(outcome: &Outcome) -> Vec<(usize, usize, u64, RejectReason)> {
    let rejections = outcome.rejections.iter();
    rejections.map(|each| (each.submitter, each.request, each.left, each.reason)).collect()
}
