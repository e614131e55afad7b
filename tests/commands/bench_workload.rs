//! Checks that the benchmark's machines and jobs are those of the reference workload, byte for byte.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test, and a benchmark's module"
)]

#[path = "../../benches/matchmaking/workload.rs"]
mod workload;

use std::process::Command;

const SLOTS: u64 = 0xd76e_682a_f9c7_4444;
const JOBS: u64 = 0x6835_85e9_52ff_950d;

/// FNV-1a.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn slots() -> String {
    (0..10_000).map(|slot| workload::long(&workload::slot(slot)) + "\n").collect()
}

fn jobs() -> String {
    (0..1000).map(|job| workload::long(&workload::job(job, 1000, 1000, 10)) + "\n").collect()
}

/// The digests of what `workload.py slots --slots 10000` and `workload.py jobs --jobs 1000 --autoclusters 1000
/// --submitters 10` print.
#[test]
fn the_ads_are_the_references() {
    assert_eq!(digest(&slots()), SLOTS);
    assert_eq!(digest(&jobs()), JOBS);
}

/// Compares with the output of the reference program itself, if `BENCH_WORKLOAD` names it.
#[test]
fn the_ads_are_what_the_reference_prints() {
    let Ok(program) = std::env::var("BENCH_WORKLOAD") else { return };
    let prints = |arguments: &[&str]| {
        let done = Command::new("python3").arg(&program).args(arguments).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let same = |ours: String, theirs: String| {
        let differ = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None);
        assert_eq!(ours.len(), theirs.len());
    };
    same(slots(), prints(&["slots", "--slots", "10000"]));
    same(jobs(), prints(&["jobs", "--jobs", "1000", "--autoclusters", "1000", "--submitters", "10"]));
}
