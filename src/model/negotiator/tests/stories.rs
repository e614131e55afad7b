//! Fair share over days: the accountant and the cycle together.

use super::kit::{cycle, jobs, single_cores, submitter, weights};
use crate::negotiator::accountant::Account;
use crate::negotiator::negotiate;

const HOUR: i64 = 3_600_000;
const HALFLIFE: f64 = 86_400.0;

/// A user with endless jobs of one hour each.
struct User {
    record: Account,
    factor: f64,
}

impl User {
    fn new(factor: f64) -> Self {
        Self { record: Account::new(0), factor }
    }
}

/// Passes an hour on a pool of 100 cores: all jobs have ended, and all cores are given away anew. Returns what each
/// user got.
fn hour(users: &mut [&mut User], now: i64) -> Vec<f64> {
    let entries = users.iter().enumerate().map(|(index, user)| {
        let priority = user.record.at(now, HALFLIFE).effective_priority(user.factor);
        submitter(&format!("u{index}"), priority, &[jobs(1000)])
    });
    let cycle = cycle(single_cores(100), entries.collect());
    let outcome = negotiate(&cycle);
    for (index, user) in users.iter_mut().enumerate() {
        user.record.reconcile(0, 0.0, now, HALFLIFE);
        for each in outcome.matches.iter().filter(|each| each.submitter == index) {
            user.record.charge(each.cost, now, HALFLIFE);
        }
    }
    weights(&cycle, &outcome)
}

/// "At the 48 hour mark, user A's RUP should be about 75. User A's share of the pool will drop from all 100
/// cores to less than one core immediately, but will quickly rebound to a handful of cores, and will
/// asymptotically approach half of the pool as user B gets the inverse."
#[test]
fn a_newcomer_gets_nearly_all_then_half() {
    let (mut a, mut b) = (User::new(1.0), User::new(1.0));
    for now in 0..48 {
        assert_eq!(hour(&mut [&mut a], now * HOUR), [100.0]);
    }
    b.record.advance(48 * HOUR, HALFLIFE);
    let mut share_of_a = Vec::new();
    for now in 48..48 + 24 * 10 {
        share_of_a.push(hour(&mut [&mut a, &mut b], now * HOUR)[0]);
    }
    // The share is two thirds of a core, which is rounded up to one.
    assert_eq!(share_of_a.first(), Some(&1.0));
    assert!((3.0..15.0).contains(&share_of_a[3]), "a handful after three hours: {}", share_of_a[3]);
    assert!((48.0..=51.0).contains(share_of_a.last().unwrap()), "half in the end: {:?}", share_of_a.last());
    assert!(share_of_a.windows(2).all(|pair| pair[1] >= pair[0] - 2.0), "and ever more: {share_of_a:?}");
}

/// In the long run, the shares of a full pool are proportional to the inverse square roots of the factors: the priority
/// is usage times the factor, and usage is proportional to the inverse of the priority.
#[test]
fn factors_in_the_long_run() {
    let (mut a, mut b) = (User::new(1000.0), User::new(4000.0));
    let mut last = Vec::new();
    for now in 0..24 * 20 {
        last = hour(&mut [&mut a, &mut b], now * HOUR);
    }
    assert!((65.0..=68.0).contains(&last[0]), "{last:?}");
}

/// A heavy user who uses nothing for a few days has as good a priority as any other.
#[test]
fn the_past_is_forgotten() {
    let (mut a, mut b) = (User::new(1.0), User::new(1.0));
    for now in 0..48 {
        hour(&mut [&mut a], now * HOUR);
    }
    a.record.reconcile(0, 0.0, 48 * HOUR, HALFLIFE);
    let later = (48 + 24 * 10) * HOUR;
    b.record.advance(later, HALFLIFE);
    assert_eq!(hour(&mut [&mut a, &mut b], later), [50.0, 50.0]);
}
