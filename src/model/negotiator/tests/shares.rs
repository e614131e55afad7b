//! Shares of the pie, spins, rounding and ceilings.

use super::assert_near;
use super::kit::{
    cycle, jobs, jobs_with, no_ranks, rejections, single_cores, slot, slots, submitter, weights,
};
use crate::negotiator::RejectReason::{Ceiling, NoMatch, NoSlots, SubmitterLimit};
use crate::negotiator::limits::{Capacity, LimitBook};
use crate::negotiator::{Config, Cycle, SubmitterInput, negotiate};

fn using(mut submitter: SubmitterInput, weighted_used: f64) -> SubmitterInput {
    submitter.weighted_used = weighted_used;
    submitter
}

/// If every submitter wants everything, effective priorities decide who gets how much.
#[test]
fn shares_go_by_the_inverse_of_priorities() {
    // Priorities, number of free cores, what each submitter gets.
    let cases: [(&[f64], usize, &[f64]); 6] = [
        // "User A with EUP=5 will receive twice as many slots as user B with EUP=10 and four times as many
        // slots as user C with EUP=20."
        (&[5.0, 10.0, 20.0], 70, &[40.0, 20.0, 10.0]),
        (&[10.0, 20.0, 40.0], 700, &[400.0, 200.0, 100.0]),
        // The order of the submitters in the input does not matter.
        (&[40.0, 10.0, 20.0], 70, &[10.0, 40.0, 20.0]),
        // "Priority factor of 2,000": half of what a factor of 1,000 gets, with the same usage.
        (&[500.0, 1000.0], 30, &[20.0, 10.0]),
        (&[7.0], 13, &[13.0]),
        // A newcomer against a heavy user: 150 times the share. The heavy user's share is less than a core, and is
        // rounded up.
        (&[75.0, 0.5], 100, &[1.0, 99.0]),
    ];
    for (priorities, cores, expected) in cases {
        let submitters =
            priorities.iter().map(|priority| submitter(&format!("u{priority}"), *priority, &[jobs(1000)]));
        let cycle = cycle(single_cores(cores), submitters.collect());
        let got = weights(&cycle, &negotiate(&cycle));
        assert_eq!(got, expected, "{priorities:?} of {cores}");
    }
}

/// The outcome tells the shares and limits behind the first case, and the order of turns.
#[test]
fn the_pie_is_told() {
    let three =
        [("c", 20.0), ("a", 5.0), ("b", 10.0)].map(|(name, prio)| submitter(name, prio, &[jobs(1000)]));
    let outcome = negotiate(&cycle(single_cores(70), three.to_vec()));
    let pie = &outcome.stats.pies[0];
    assert_eq!((pie.group, pie.spin, pie.weight, pie.left.round()), (None, 1, 70.0, 70.0));
    let order: Vec<usize> = pie.slices.iter().map(|slice| slice.submitter).collect();
    assert_eq!(order, [1, 2, 0]);
    for (slice, (share, limit)) in
        pie.slices.iter().zip([(4.0 / 7.0, 40.0), (2.0 / 7.0, 20.0), (1.0 / 7.0, 10.0)])
    {
        assert_near(slice.share, share);
        assert_near(slice.limit, limit);
    }
    assert_eq!(outcome.stats.pies.len(), 1, "nothing is left to divide again");
    assert_eq!(outcome.stats.submitters, 3);
    assert_eq!(outcome.stats.jobs, 3000);
    assert_eq!(outcome.stats.requests_considered, 3);
    assert_eq!(outcome.stats.pairs_considered, 70 + 30 + 10, "once a request, not once a job");
}

/// "If A does not use the full number of slots that A may be given, the available slots are repartitioned and
/// distributed among remaining users according to the inverse ratio rule."
#[test]
fn what_one_leaves_goes_to_the_others_in_the_next_spin() {
    let a = submitter("a", 5.0, &[jobs(10)]);
    let (b, c) = (submitter("b", 10.0, &[jobs(1000)]), submitter("c", 20.0, &[jobs(1000)]));
    let cycle = cycle(single_cores(70), vec![a, b, c]);
    let outcome = negotiate(&cycle);
    // The first spin gives 20 and 10; then two thirds and one third of the whole pie, less what they have. As the whole
    // pie is divided again, including A's part, less is left for the last than the ratio says.
    assert_eq!(weights(&cycle, &outcome), [10.0, 46.0, 14.0]);
    let second: Vec<(usize, f64)> =
        outcome.stats.pies[1].slices.iter().map(|slice| (slice.submitter, slice.limit.round())).collect();
    assert_eq!(second, [(1, 27.0), (2, 13.0)]);
    assert_eq!(rejections(&outcome), [(1, 0, 954, SubmitterLimit), (2, 0, 986, NoSlots)]);
}

#[test]
fn what_is_in_use_counts() {
    // Two submitters of equal priority in a pool of 100: one has 60 already, so that the other gets all 40 that are
    // free.
    let a = using(submitter("a", 10.0, &[jobs(100)]), 60.0);
    let cycle1 = cycle(single_cores(40), vec![a, submitter("b", 10.0, &[jobs(100)])]);
    assert_eq!(weights(&cycle1, &negotiate(&cycle1)), [0.0, 40.0]);
    // A submitter that uses slots and has no waiting jobs has a share only in the first spin, so that nothing is lost.
    let a = using(submitter("a", 10.0, &[]), 20.0);
    let cycle2 = cycle(single_cores(80), vec![a, submitter("b", 10.0, &[jobs(100)])]);
    let outcome = negotiate(&cycle2);
    assert_eq!(weights(&cycle2, &outcome), [0.0, 80.0]);
    let slices = outcome.stats.pies.iter().flat_map(|pie| &pie.slices);
    let limits: Vec<f64> =
        slices.filter(|slice| slice.submitter == 1).map(|slice| slice.limit.round()).collect();
    assert_eq!(limits, [50.0, 50.0]);
}

/// Among equal priorities the submitter that has the smaller part of its due goes first, then the first in the input.
#[test]
fn ties_of_priority_go_by_starvation_then_by_order() {
    let equals = [("a", 8.0), ("b", 2.0), ("c", 2.0)]
        .map(|(name, used)| using(submitter(name, 1.0, &[jobs(9)]), used));
    let cycle = cycle(single_cores(18), equals.to_vec());
    let order: Vec<usize> =
        negotiate(&cycle).stats.pies[0].slices.iter().map(|slice| slice.submitter).collect();
    assert_eq!(order, [1, 2, 0]);
}

/// The rule is "used + cost <= limit", or the first match of a turn.
#[test]
fn rounding_lets_everybody_overshoot_once() {
    // Weights of the slots in the order of the list; number of submitters of equal priority; what each gets.
    let cases: [(&[i64], usize, &[f64]); 6] = [
        // 4 cores for three submitters, with limits of 1.33 each.
        (&[1, 1, 1, 1], 3, &[1.0, 1.0, 1.0]),
        // Slots of 4, limits of 4: exactly one slot each.
        (&[4, 4], 2, &[4.0, 4.0]),
        // Limits of 2.67: each may overshoot with its first match, so that two take everything.
        (&[4, 4], 3, &[4.0, 4.0, 0.0]),
        // One large slot for two submitters: the first overshoots, and nothing is left.
        (&[8], 2, &[8.0, 0.0]),
        // A limit of 6: a slot of 4 fits; another of 4 does not, but one of 2 does.
        (&[4, 4, 2, 2], 2, &[6.0, 6.0]),
        // A limit of 5 allows one slot of 4, but not 4 and 2.
        (&[4, 4, 2], 2, &[4.0, 4.0]),
    ];
    for (sizes, count, expected) in cases {
        let submitters = (0..count).map(|index| submitter(&format!("u{index}"), 1.0, &[jobs(100)])).collect();
        let slots = sizes.iter().map(|cpus| slot(*cpus)).collect();
        let mut cycle = cycle(slots, submitters);
        cycle.config = super::kit::no_ranks();
        let outcome = negotiate(&cycle);
        let first: Vec<f64> = first_spin(&cycle, &outcome);
        assert_eq!(first, expected, "{sizes:?} for {count}");
    }
}

/// The weight that each submitter got in the first spin.
fn first_spin(cycle: &Cycle, outcome: &crate::negotiator::Outcome) -> Vec<f64> {
    let mut got = vec![0.0; cycle.submitters.len()];
    let mut last = 0;
    for each in &outcome.matches {
        if each.submitter < last {
            break;
        }
        last = each.submitter;
        got[each.submitter] += each.cost;
    }
    got
}

/// If one submitter overshoots its share, the others may take that much less in the same spin.
#[test]
fn the_pie_gets_smaller_by_what_is_taken() {
    let submitters = (0..3).map(|index| submitter(&format!("u{index}"), 1.0, &[jobs(100)])).collect();
    let mut cycle = cycle([vec![slot(8)], single_cores(20)].concat(), submitters);
    cycle.config = super::kit::no_ranks();
    // There are more slots than the pie counts, as with NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT.
    cycle.pool_weight = 16.0;
    let outcome = negotiate(&cycle);
    // The shares are 5.33. The first submitter takes 8 and the second 5, which leaves 3; after that two more are due to
    // the last.
    let limit = |pie: usize| outcome.stats.pies[pie].slices[2].limit;
    assert_near(limit(0), 16.0 / 3.0);
    assert_near(limit(1), 16.0 / 3.0 - 3.0);
    assert_eq!(weights(&cycle, &outcome), [8.0, 5.0, 5.0]);
}

/// A crumb in three parts, each less than a slot, is left for the next cycle, which rounds one of the parts up.
#[test]
fn crumbs_are_given_away_in_the_next_cycle() {
    let users =
        |used: f64| (0..3).map(move |index| using(submitter(&format!("u{index}"), 1.0, &[jobs(100)]), used));
    let first = cycle(single_cores(10), users(0.0).collect());
    assert_eq!(weights(&first, &negotiate(&first)), [3.0, 3.0, 3.0]);
    let second = cycle(single_cores(1), users(3.0).collect());
    assert_eq!(weights(&second, &negotiate(&second)), [1.0, 0.0, 0.0]);
}

#[test]
fn ceilings_hold() {
    let capped = |ceiling: f64, used: f64| {
        let mut capped = using(submitter("a", 1.0, &[jobs(100)]), used);
        capped.ceiling = Some(ceiling);
        capped
    };
    for (ceiling, used, expected) in [
        (5.0, 0.0, 5.0),
        (5.0, 3.0, 2.0),
        (5.0, 5.0, 0.0),
        (5.0, 9.0, 0.0),
        (0.0, 0.0, 0.0),
        (100.0, 0.0, 10.0),
        // No ceiling.
        (-1.0, 0.0, 10.0),
        // HTCondor counts the usage as 4 here, so that one slot more would fit.
        (5.0, 4.9, 0.0),
    ] {
        let mut cycle =
            cycle(single_cores(20), vec![capped(ceiling, used), submitter("b", 1.0, &[jobs(10)])]);
        cycle.pool_weight = 20.0 + used;
        let outcome = negotiate(&cycle);
        let got = weights(&cycle, &outcome);
        assert_eq!(got, [expected, 10.0], "ceiling {ceiling}, used {used}");
        let ceiling_binds = expected < 10.0;
        assert_eq!(rejections(&outcome).iter().any(|each| each.3 == Ceiling), ceiling_binds);
    }
}

#[test]
fn reasons_say_why() {
    let cycle = cycle(
        vec![slot(1), slot(4)],
        vec![submitter(
            "a",
            1.0,
            &[jobs_with(2, "RequestCpus = 8"), jobs_with(1, "RequestCpus = 4"), jobs(3), jobs(2)],
        )],
    );
    let outcome = negotiate(&cycle);
    assert_eq!(slots(&outcome), [1, 0]);
    assert_eq!(rejections(&outcome), [(0, 0, 2, NoMatch), (0, 2, 2, NoSlots), (0, 3, 2, NoSlots)]);
}

/// Two entries of one name (jobs from two queues) have one share, and one usage.
#[test]
fn entries_of_one_name_share() {
    let a = || submitter("a", 1.0, &[jobs(100)]);
    let cycle = cycle(single_cores(30), vec![a(), submitter("b", 1.0, &[jobs(100)]), a()]);
    let got = weights(&cycle, &negotiate(&cycle));
    assert_eq!((got[0] + got[2], got[1]), (15.0, 15.0));
}

#[test]
fn knobs() {
    let pair = || vec![submitter("a", 1.0, &[jobs(100)]), submitter("b", 2.0, &[jobs(100)])];
    let mut all = cycle(single_cores(30), pair());
    all.config.ignore_user_priorities = true;
    assert_eq!(weights(&all, &negotiate(&all)), [30.0, 0.0]);
    let mut unweighted = cycle(vec![slot(1), slot(8), slot(4)], pair());
    unweighted.config = Config { use_slot_weights: false, consider_preemption: false, ..Config::default() };
    unweighted.pool_weight = 3.0;
    assert_eq!(weights(&unweighted, &negotiate(&unweighted)), [2.0, 1.0]);
}

#[test]
fn nothing_comes_of_nothing() {
    for cycle in [
        Cycle::default(),
        cycle(single_cores(3), Vec::new()),
        cycle(single_cores(3), vec![submitter("a", 1.0, &[])]),
        cycle(single_cores(3), vec![submitter("a", 1.0, &[jobs(0)])]),
    ] {
        let outcome = negotiate(&cycle);
        assert!(outcome.matches.is_empty() && outcome.rejections.is_empty() && outcome.stats.pies.is_empty());
    }
    let outcome = negotiate(&cycle(Vec::new(), vec![submitter("a", 1.0, &[jobs(2)])]));
    assert_eq!(rejections(&outcome), [(0, 0, 2, NoSlots)]);
    let mut weird =
        cycle(single_cores(3), vec![submitter("a", f64::NAN, &[jobs(9)]), submitter("b", -4.0, &[jobs(9)])]);
    weird.submitters[0].weighted_used = f64::NAN;
    assert_eq!(negotiate(&weird).matches.len(), 3);
}

/// A job whose limits depend on the slot: one match is refused by a limit, another by the submitter's share. HTCondor's negotiator goes on
/// with the submitter in the next spin (MM_RESUME), when the share is larger.
#[test]
fn a_limit_for_one_slot_does_not_end_what_the_share_refuses() {
    let limited = "ConcurrencyLimits = ifThenElse(TARGET.Cpus == 2, \"gone\", \"free\")";
    let a = submitter("a", 1.0, &[jobs_with(3, limited)]);
    let b = submitter("b", 1.0, &[jobs_with(1, "Requirements = TARGET.Cpus == 2")]);
    let mut cycle = cycle(vec![slot(1), slot(2), slot(3)], vec![a, b]);
    cycle.config = no_ranks();
    let named = |name: &str, units| (name.to_owned(), Capacity::Named(units));
    cycle.limits = LimitBook::new([named("gone", 0.0), named("free", 9.0)], 0.0);
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [4.0, 2.0]);
}
