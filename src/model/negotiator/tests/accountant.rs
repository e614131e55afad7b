//! The accountant against the manual's examples, and the laws of its arithmetic.

use proptest::prelude::*;

use super::assert_near;
use crate::negotiator::accountant::{Account, Correction, MIN_REAL_PRIORITY};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const HALFLIFE: f64 = 86_400.0;
const START: i64 = 1_700_000_000_000;

fn with_usage(slots: u64, weight: f64, priority: f64) -> Account {
    let mut account = Account::new(START);
    account.reconcile(slots, weight, START, HALFLIFE);
    account.real_priority = priority;
    account
}

/// The manual's figure of a new user with 100 cores in use. The priority is 100 less what is left of the initial 99.5.
#[test]
fn priority_grows_to_the_cores_in_use() {
    let account = with_usage(100, 100.0, MIN_REAL_PRIORITY);
    let cases = [(0, 0.5), (12, 29.642_875), (24, 50.25), (48, 75.125), (72, 87.5625), (24 * 10, 99.902_832)];
    for (hours, expected) in cases {
        let priority = account.at(START + hours * HOUR, HALFLIFE).real_priority;
        assert!((priority - expected).abs() < 1e-6, "after {hours} h: {priority}, not {expected}");
    }
}

/// "RUP of 10 and no running jobs: 5 one day later, 2.5 two days later", and 0.5 at the end.
#[test]
fn priority_halves_each_day_without_jobs() {
    let account = with_usage(0, 0.0, 10.0);
    for (days, expected) in [(1, 5.0), (2, 2.5), (3, 1.25), (4, 0.625), (5, 0.5), (500, 0.5)] {
        assert_near(account.at(START + days * DAY, HALFLIFE).real_priority, expected);
    }
}

/// "100 cores for 24 hours, then removes all the jobs."
#[test]
fn priority_rises_then_falls() {
    let mut account = with_usage(100, 100.0, MIN_REAL_PRIORITY);
    account.reconcile(0, 0.0, START + DAY, HALFLIFE);
    assert_near(account.real_priority, 50.25);
    assert_near(account.at(START + 2 * DAY, HALFLIFE).real_priority, 25.125);
    assert_near(account.weighted_accumulated_usage, 100.0 * 86_400.0);
}

/// "User A's RUP should be about 75 at the 48 hour mark, and user B will still be the minimum of .5. At that
/// instance, user B deserves 150 times user A."
#[test]
fn newcomer_deserves_150_times_the_share() {
    let a = with_usage(100, 100.0, MIN_REAL_PRIORITY).at(START + 2 * DAY, HALFLIFE);
    let b = Account::new(START + 2 * DAY);
    let ratio = a.effective_priority(1.0) / b.effective_priority(1.0);
    assert!((ratio - 150.0).abs() < 1.0, "{ratio}");
}

#[test]
fn effective_priority_is_real_times_factor() {
    let account = with_usage(10, 10.0, 10.0);
    for (factor, expected) in [(1000.0, 10_000.0), (2000.0, 20_000.0), (1.0, 10.0), (0.0, 10.0), (-3.0, 10.0)]
    {
        assert_near(account.effective_priority(factor), expected);
    }
}

#[test]
fn usage_counts_slots_and_weight_from_the_moment_of_the_claim() {
    let mut account = Account::new(START);
    account.charge(4.0, START + HOUR, HALFLIFE);
    account.charge(2.0, START + 2 * HOUR, HALFLIFE);
    account.stop_charging(4.0, START + 3 * HOUR, HALFLIFE);
    account.advance(START + 5 * HOUR, HALFLIFE);
    assert_eq!(account.resources_used, 1);
    assert_near(account.weighted_resources_used, 2.0);
    assert_near(account.accumulated_usage, 3600.0 * (1.0 + 2.0 + 1.0 + 1.0));
    assert_near(account.weighted_accumulated_usage, 3600.0 * (4.0 + 6.0 + 2.0 + 2.0));
    assert_eq!(account.begin_usage_time, Some((START + HOUR) / 1000));
    assert_eq!(account.last_usage_time, Some((START + 5 * HOUR) / 1000));
    account.stop_charging(2.0, START + 6 * HOUR, HALFLIFE);
    account.advance(START + 9 * HOUR, HALFLIFE);
    assert_eq!(account.last_usage_time, Some((START + 6 * HOUR) / 1000));
    assert_eq!(account.begin_usage_time, Some((START + HOUR) / 1000));
}

#[test]
fn nothing_is_left_of_sums_that_round() {
    let mut account = Account::new(START);
    (0..10).for_each(|_| account.charge(0.1, START, HALFLIFE));
    (0..11).for_each(|_| account.stop_charging(0.1, START, HALFLIFE));
    assert_eq!((account.resources_used, account.weighted_resources_used), (0, 0.0));
}

#[test]
fn a_clock_that_jumps_back_charges_nothing_and_never_twice() {
    let mut account = with_usage(10, 10.0, 1.0);
    account.advance(START + DAY, HALFLIFE);
    let before = account.clone();
    account.advance(START, HALFLIFE);
    account.advance(i64::MIN, HALFLIFE);
    assert_eq!(account, before);
    account.charge(1.0, START + HOUR, HALFLIFE);
    assert_near(account.weighted_accumulated_usage, before.weighted_accumulated_usage);
    account.advance(START + DAY, HALFLIFE);
    assert_near(account.weighted_accumulated_usage, 10.0 * 86_400.0);
}

/// `condor_userprio -setprio` and `-resetusage`: slots in use stay charged.
#[test]
fn a_correction_sets_what_it_says_and_leaves_the_rest() {
    let mut account = with_usage(10, 20.0, 8.0);
    let nothing = Correction {
        negotiator: None,
        id: "1".into(),
        real_priority: None,
        accumulated_usage: None,
        weighted_accumulated_usage: None,
        begin_usage_time: None,
        last_usage_time: None,
    };
    let later = account.at(START + HOUR, HALFLIFE);
    account.correct(&nothing, START + HOUR, HALFLIFE);
    assert_eq!(account, later, "time until then is charged");
    let reset = Correction {
        real_priority: Some(3.0),
        accumulated_usage: Some(0.0),
        weighted_accumulated_usage: Some(0.0),
        begin_usage_time: Some(START / 1000 + 7),
        ..nothing.clone()
    };
    account.correct(&reset, START + HOUR, HALFLIFE);
    assert_near(account.real_priority, 3.0);
    assert_near(account.weighted_accumulated_usage, 0.0);
    assert_eq!(
        (account.resources_used, account.begin_usage_time, account.last_usage_time),
        (10, Some(START / 1000 + 7), later.last_usage_time)
    );
    let nonsense = Correction { real_priority: Some(f64::NAN), ..nothing };
    account.correct(&nonsense, START + HOUR, HALFLIFE);
    assert_near(account.real_priority, MIN_REAL_PRIORITY);
}

#[test]
fn nonsense_in_a_record_is_repaired() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let mut account = with_usage(1, 1.0, bad);
        account.weighted_accumulated_usage = -5.0;
        account.advance(START + DAY, HALFLIFE);
        assert!(account.real_priority >= MIN_REAL_PRIORITY && account.real_priority.is_finite());
        assert_near(account.weighted_accumulated_usage, 86_400.0);
    }
}

#[test]
fn without_a_halflife_the_present_is_all() {
    for halflife in [0.0, -1.0, f64::NAN] {
        assert_near(with_usage(7, 7.0, 100.0).at(START + 1, halflife).real_priority, 7.0);
    }
}

proptest! {
    /// Advancing in many steps gives the same account as advancing at once.
    #[test]
    fn steps_do_not_matter(
        slots in 0_u64..1000, weight in 0.0..1e4_f64, priority in 0.5..1e5_f64,
        steps in prop::collection::vec(0_i64..10 * DAY, 1..20), halflife in 1.0..1e7_f64,
    ) {
        let once = with_usage(slots, weight, priority).at(START + steps.iter().sum::<i64>(), halflife);
        let mut stepped = with_usage(slots, weight, priority);
        let mut now = START;
        for step in steps {
            now += step;
            stepped.advance(now, halflife);
        }
        assert_near(stepped.real_priority, once.real_priority);
        assert_near(stepped.accumulated_usage, once.accumulated_usage);
        assert_near(stepped.weighted_accumulated_usage, once.weighted_accumulated_usage);
        prop_assert_eq!(stepped.updated_at, once.updated_at);
        prop_assert_eq!(stepped.last_usage_time, once.last_usage_time);
    }

    /// The priority moves towards the weight in use, and never beyond it.
    #[test]
    fn priority_stays_between_past_and_present(
        weight in 0.0..1e4_f64, priority in 0.5..1e4_f64, after in 0_i64..100 * DAY,
    ) {
        let later = with_usage(1, weight, priority).at(START + after, HALFLIFE).real_priority;
        let (low, high) = (priority.min(weight).max(0.5), priority.max(weight));
        prop_assert!(low - 1e-9 <= later && later <= high + 1e-9, "{low} <= {later} <= {high}");
    }
}
