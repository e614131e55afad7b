//! Jobs that no slot can tell apart.

use crate::negotiator::PRE_JOB_RANK;
use crate::negotiator::autoclusters::{Autoclusters, Significant, slot_attributes};
use classad::{Ad, Expr};

fn ad(text: &str) -> Ad {
    Ad::parse_long(text).unwrap()
}

fn significant(slots: &[&str], exprs: &[&str]) -> Vec<String> {
    let slots: Vec<Ad> = slots.iter().map(|text| ad(text)).collect();
    let exprs: Vec<Expr> = exprs.iter().map(|text| Expr::parse(text).unwrap()).collect();
    let names = Significant::of(&slots, &exprs.iter().collect::<Vec<_>>());
    let always = Significant::of([], &[]);
    let own = names.names().filter(|name| always.names().all(|other| other != *name));
    own.map(ToString::to_string).collect()
}

/// The autocluster numbers of jobs, for a slot with these attributes.
fn numbers(slot: &str, jobs: &[&str]) -> Vec<usize> {
    let mut autoclusters = Autoclusters::new(&Significant::of([&ad(slot)], &[]));
    jobs.iter().map(|job| autoclusters.number(&ad(job))).collect()
}

#[test]
fn what_any_expression_of_a_slot_reads_of_jobs_is_significant() {
    let slot = "Cpus = 4\nStart = TARGET.Owner == \"alice\" && RequestCpus <= Cpus\nPreempt = other.Nice";
    assert_eq!(significant(&[slot], &[]), ["Nice", "Owner", "RequestCpus"]);
}

#[test]
fn a_bare_name_is_the_jobs_where_some_slot_lacks_it() {
    assert_eq!(significant(&["Start = Site == \"a\"\nSite = \"a\""], &[]), <[&str; 0]>::default());
    assert_eq!(significant(&["Start = Site == \"a\"\nSite = \"a\"", "Start = Site == \"a\""], &[]), ["Site"]);
}

#[test]
fn the_negotiators_expressions_count_for_every_slot() {
    let slot = "Cpus = 4\nMemory = 1024\nRank = 0\n";
    assert_eq!(significant(&[slot], &["TARGET.Department == MY.Department"]), ["Department"]);
    assert_eq!(significant(&[slot], &[PRE_JOB_RANK]), <[&str; 0]>::default());
}

#[test]
fn what_the_negotiator_adds_and_what_changes_by_itself_is_not_significant() {
    let slot = "Start = TARGET.SubmitterUserPrio < 10 && TARGET.DiskUsage < 5 && TARGET.Slot1_State == 1 && TARGET.slot_x \
                && TARGET.SlotsWanted > 1";
    assert_eq!(significant(&[slot], &[]), ["SlotsWanted"]);
}

#[test]
fn jobs_that_agree_on_what_is_significant_are_one_autocluster_wherever_they_stand() {
    let jobs = ["Size = 1\nProcId = 0", "Size = 2\nProcId = 1", "Size = 1\nProcId = 2", "ProcId = 3"];
    assert_eq!(numbers("Start = TARGET.Size < 5", &jobs), [0, 1, 0, 2]);
}

#[test]
fn attributes_that_a_jobs_requirements_read_tell_jobs_apart() {
    let job = |floor: i32| {
        format!("Requirements = Memory > Floor\nFloor = 2 * Base\nBase = {floor}\nNote = \"{floor}\"")
    };
    let (one, two) = (job(1), job(2));
    assert_eq!(numbers("", &[&one, &two, &one]), [0, 1, 0]);
    assert_eq!(numbers("", &["Requirements = true\nBase = 1", "Requirements = true\nBase = 2"]), [0, 0]);
}

#[test]
fn expressions_differ_where_their_text_does() {
    assert_eq!(
        numbers("Start = TARGET.X", &["X = 1", "X = 1.0", "X = \"1\"", "X = 0 + 1", "x =  1"]),
        [0, 1, 2, 3, 0]
    );
}

#[test]
fn a_chained_ad_counts_as_one_with_its_parent() {
    let parent = ad("Size = 1");
    let mut chained = ad("ProcId = 1");
    chained.chain(Some(parent.clone()));
    let mut autoclusters = Autoclusters::new(&Significant::of([&ad("Start = TARGET.Size < 5")], &[]));
    assert_eq!(autoclusters.number(&parent), autoclusters.number(&chained));
}

#[test]
fn slots_that_no_job_tells_apart_are_one_class() {
    let job = ad("Requirements = TARGET.Memory > RequestMemory\nRequestMemory = 5");
    let rank = Expr::parse("MY.Kflops").unwrap();
    let mut classes = Autoclusters::new(&slot_attributes([&job], &[&rank]));
    let slots =
        ["Memory = 1\nName = \"a\"", "Memory = 1\nName = \"b\"", "Memory = 2", "Memory = 1\nKFlops = 3"];
    let numbers: Vec<usize> = slots.iter().map(|slot| classes.number(&ad(slot))).collect();
    assert_eq!(numbers, [0, 0, 1, 2]);
}
