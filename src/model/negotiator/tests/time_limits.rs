//! `NEGOTIATOR_MAX_TIME_PER_*`: a submitter whose time is used up waits for the next cycle; matches made until then
//! stay.

use std::cell::Cell;
use std::time::Duration;

use super::kit::{cycle, jobs, rejections, single_cores, submitter, weights};
use crate::negotiator::{Config, Cycle, Outcome, Ready, RejectReason, Stopwatch, negotiate, negotiate_with};

const LONG: Duration = Duration::from_secs(100_000);

fn limits(per_cycle: Duration, per_submitter: Duration, per_piespin: Duration) -> Config {
    Config {
        max_time_per_cycle: per_cycle,
        max_time_per_submitter: per_submitter,
        max_time_per_piespin: per_piespin,
        ..Config::default()
    }
}

/// Two submitters of the same priority, each with jobs for half of a pool.
fn two(config: Config) -> Cycle {
    let submitters = vec![submitter("a", 1.0, &[jobs(20)]), submitter("b", 1.0, &[jobs(20)])];
    Cycle { config, ..cycle(single_cores(40), submitters) }
}

/// Runs a cycle that began `ago` seconds ago, and in which each look at the clock takes a second.
fn slowly(cycle: &Cycle, ago: u64) -> Outcome {
    let seconds = Cell::new(ago);
    let elapsed = || {
        seconds.set(seconds.get() + 1);
        Duration::from_secs(seconds.get())
    };
    negotiate_with(cycle, &mut Ready::default(), Stopwatch::showing(&elapsed))
}

#[test]
fn within_the_defaults_nothing_is_cut_short() {
    let cycle = two(Config::default());
    let none = || Duration::ZERO;
    let outcome = negotiate_with(&cycle, &mut Ready::default(), Stopwatch::showing(&none));
    assert_eq!(outcome, negotiate(&cycle));
    assert_eq!(weights(&cycle, &outcome), [20.0, 20.0]);
}

#[test]
fn when_the_cycle_has_had_its_time_no_turn_begins() {
    let cycle = two(limits(Duration::from_mins(1), LONG, LONG));
    let outcome = slowly(&cycle, 60);
    assert_eq!(weights(&cycle, &outcome), [0.0, 0.0]);
    let late = RejectReason::TimeLimit;
    assert_eq!(rejections(&outcome), [(0, 0, 20, late), (1, 0, 20, late)]);
}

#[test]
fn the_turn_in_which_the_cycle_has_had_its_time_ends_before_its_next_job() {
    let cycle = two(limits(Duration::from_mins(1), LONG, LONG));
    let outcome = slowly(&cycle, 50);
    let got = weights(&cycle, &outcome);
    assert!(got[0] > 0.0 && got[0] < 20.0 && got[1] == 0.0, "{got:?}");
    let reasons: Vec<RejectReason> = outcome.rejections.iter().map(|rejection| rejection.reason).collect();
    assert_eq!(reasons, [RejectReason::TimeLimit; 2]);
}

#[test]
fn a_submitter_that_has_had_its_time_leaves_the_others_theirs() {
    let cycle = two(limits(LONG, Duration::from_secs(10), LONG));
    let outcome = slowly(&cycle, 0);
    let got = weights(&cycle, &outcome);
    assert!(got.iter().all(|got| *got > 0.0 && *got < 20.0), "{got:?}");
    let reasons: Vec<RejectReason> = outcome.rejections.iter().map(|rejection| rejection.reason).collect();
    assert_eq!(reasons, [RejectReason::TimeLimit; 2]);
}

#[test]
fn who_has_had_its_time_of_a_spin_goes_on_in_the_next() {
    let cycle = two(limits(LONG, LONG, Duration::from_secs(10)));
    let outcome = slowly(&cycle, 0);
    assert_eq!(weights(&cycle, &outcome), [20.0, 20.0]);
    let spins = outcome.stats.pies.len();
    assert!(spins > 1 && negotiate(&cycle).stats.pies.len() == 1, "{spins}");
}

#[test]
fn none_at_all_is_no_time() {
    for config in [limits(Duration::ZERO, LONG, LONG), limits(LONG, Duration::ZERO, LONG)] {
        let cycle = two(config);
        assert_eq!(weights(&cycle, &negotiate(&cycle)), [0.0, 0.0]);
    }
}
