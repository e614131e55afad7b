//! Which slot a job gets.

use super::kit::{cycle, expr, jobs, jobs_with, no_ranks, single_cores, slot, slot_with, slots, submitter};
use crate::negotiator::config::{POST_JOB_RANK, PRE_JOB_RANK};
use crate::negotiator::{Candidate, Config, Cycle, Request, negotiate};

fn one(slots: Vec<Candidate>, request: Request) -> Cycle {
    cycle(slots, vec![submitter("a", 1.0, &[request])])
}

/// The manual's tables 3.1 and 3.2: "the schedd would be given slot5, slot3 and slot2".
#[test]
fn the_manuals_table() {
    let table = [(100, 1, 10), (100, 2, 20), (100, 2, 30), (0, 1, 40), (200, 1, 50)];
    let ranked =
        table.map(|(pre, job, post)| slot_with(1, &format!("Pre = {pre}\nLiked = {job}\nPost = {post}")));
    let mut cycle = one(ranked.to_vec(), jobs_with(3, "Rank = TARGET.Liked"));
    let (pre, post) = (Some(expr("MY.Pre")), Some(expr("MY.Post")));
    cycle.config = Config { pre_job_rank: pre, post_job_rank: post, ..Config::default() };
    assert_eq!(slots(&negotiate(&cycle)), [4, 2, 1]);
    cycle.submitters[0].requests[0].count = 5;
    assert_eq!(slots(&negotiate(&cycle)), [4, 2, 1, 0, 3]);
}

#[test]
fn default_ranks_parse_and_are_htcondors() {
    let config = Config::default();
    assert_eq!(config.pre_job_rank, Some(expr(PRE_JOB_RANK)));
    assert_eq!(config.post_job_rank, Some(expr(POST_JOB_RANK)));
}

/// The best slot of a list under the default ranks, by position, best first.
#[test]
fn default_ranks() {
    type Case = (&'static str, &'static [(i64, &'static str)], &'static str, &'static [usize]);
    let cases: [Case; 9] = [
        ("fewest cores first", &[(4, ""), (1, ""), (2, "")], "", &[1, 2, 0]),
        ("then the least memory", &[(1, "Memory = 4096"), (1, "Memory = 1024")], "", &[1, 0]),
        ("a slot's Rank of the job before all", &[(1, ""), (8, "Rank = TARGET.RequestCpus")], "", &[1, 0]),
        ("a job's Rank after cores and memory", &[(2, "Mips = 9"), (1, "Mips = 1")], "Rank = Mips", &[1, 0]),
        ("a job's Rank among equals", &[(1, "Mips = 1"), (1, "Mips = 9")], "Rank = TARGET.Mips", &[1, 0]),
        (
            "an undefined Rank is 0",
            &[(1, "Mips = -1"), (1, "X = 0"), (1, "Mips = 1")],
            "Rank = Mips",
            &[2, 1, 0],
        ),
        ("the faster one after that", &[(1, "KFlops = 10"), (1, "KFlops = 3000"), (1, "")], "", &[1, 2, 0]),
        ("the lower SlotID", &[(1, "SlotID = 3"), (1, "SlotID = 2")], "", &[1, 0]),
        ("those awake before those asleep", &[(1, "Offline = true"), (1, "SlotID = 99")], "", &[1, 0]),
    ];
    for (why, table, job, expected) in cases {
        let pool = table.iter().map(|(cpus, attributes)| match *attributes {
            "" => slot(*cpus),
            attributes => slot_with(*cpus, attributes),
        });
        assert_eq!(slots(&negotiate(&one(pool.collect(), jobs_with(9, job)))), expected, "{why}");
    }
}

#[test]
fn ties_go_by_list_order() {
    assert_eq!(slots(&negotiate(&one(single_cores(5), jobs(5)))), [0, 1, 2, 3, 4]);
}

/// All ranks have double precision. HTCondor's negotiator keeps its own ranks in single precision.
#[test]
fn precision() {
    let memory = |megabytes: i64| slot_with(1, &format!("Memory = {megabytes}\nRank = 1000.0"));
    // In 24 bits, ten billion would swallow a difference of one.
    assert_eq!(slots(&negotiate(&one(vec![memory(1025), memory(1024)], jobs(2)))), [1, 0]);
    let mut fine = one(
        vec![slot_with(1, "Big = 10000000000.0"), slot_with(1, "Big = 10000000001.0")],
        jobs_with(2, "Rank = TARGET.Big"),
    );
    fine.config = no_ranks();
    assert_eq!(slots(&negotiate(&fine)), [1, 0]);
}

/// A value that is no number ranks lowest, before and after the job's Rank. Booleans count as numbers.
#[test]
fn ranks_that_are_no_numbers() {
    let pool = ["Pre = \"x\"", "Pre = true", "Pre = 0.5", "Other = 1", "Pre = -1.0E+300", "Pre = 0.0/0.0"];
    let mut cycle = one(pool.map(|attributes| slot_with(1, attributes)).to_vec(), jobs(6));
    cycle.config = Config { pre_job_rank: Some(expr("Pre")), post_job_rank: None, ..Config::default() };
    assert_eq!(slots(&negotiate(&cycle)), [1, 2, 4, 0, 3, 5]);
}

#[test]
fn both_requirements_count() {
    let pool = vec![
        slot_with(1, "Requirements = TARGET.Owner == \"bob\""),
        slot_with(1, "Arch = \"ARM64\""),
        slot_with(1, "Arch = \"X86_64\""),
        slot_with(1, "Arch = \"X86_64\"\nRequirements = undefined"),
    ];
    let request = jobs_with(4, "Owner = \"alice\"\nRequirements = TARGET.Arch == \"X86_64\"");
    assert_eq!(slots(&negotiate(&one(pool, request))), [2]);
}

/// Requests are served in their order, even if an earlier one takes what a later one needs.
#[test]
fn requests_in_order() {
    let wide = || jobs_with(1, "RequestCpus = 4");
    let a = submitter("a", 1.0, &[wide(), jobs(2), wide()]);
    let mut cycle = cycle(vec![slot(1), slot(4), slot(4)], vec![a]);
    let outcome = negotiate(&cycle);
    assert_eq!(slots(&outcome), [1, 0, 2]);
    assert_eq!(outcome.matches.iter().map(|each| each.request).collect::<Vec<_>>(), [0, 1, 1]);
    cycle.submitters[0].requests.swap(1, 2);
    assert_eq!(slots(&negotiate(&cycle)), [1, 2, 0]);
}
