//! Transitions of slots that are not claimed: 1 to 7 and 26 to 37.

use crate::pool::{Backfill, BackfillStage, Drained, State, Unclaimed};
use crate::startd::{Pace, Surroundings, Wanted, without_claim};

const OWNER: State = State::Owner;
const IDLE: State = State::Unclaimed(Unclaimed::Idle);
const BENCHMARKING: State = State::Unclaimed(Unclaimed::Benchmarking);
const BACKFILL: State = State::Backfill(Backfill::Idle);
const BACKFILL_BUSY: State = State::Backfill(Backfill::Busy);
const BACKFILL_KILLING: State = State::Backfill(Backfill::Killing);
const DRAINING: State = State::Drained(Drained::Retiring);
const DRAINED: State = State::Drained(Drained::Idle);

fn around(edit: impl FnOnce(&mut Surroundings)) -> Surroundings {
    let mut around = Surroundings::default();
    edit(&mut around);
    around
}

fn drained() -> Surroundings {
    around(|s| s.draining = Some(Pace::Graceful))
}

#[test]
fn each_transition_is_taken_when_the_manual_says() {
    for (number, from, surroundings) in [
        (1, OWNER, around(|_| {})),
        (2, IDLE, around(|s| s.owner = true)),
        (3, IDLE, around(|s| s.benchmark = true)),
        (4, BENCHMARKING, around(|_| {})),
        (5, IDLE, around(|s| s.wanted = Wanted::Claimed)),
        (6, IDLE, around(|s| s.wanted = Wanted::Matched)),
        (7, IDLE, around(|s| s.start_backfill = true)),
        (26, BACKFILL, around(|s| s.backfill = BackfillStage::Runs)),
        (27, BACKFILL_BUSY, around(|_| {})),
        (28, BACKFILL_BUSY, around(|s| (s.backfill, s.evict_backfill) = (BackfillStage::Runs, true))),
        (28, BACKFILL_BUSY, around(|s| (s.backfill, s.wanted) = (BackfillStage::Runs, Wanted::Matched))),
        (28, BACKFILL_BUSY, around(|s| (s.backfill, s.owner) = (BackfillStage::Runs, true))),
        (28, BACKFILL_BUSY, around(|s| (s.backfill, s.clear) = (BackfillStage::Coming, true))),
        (29, BACKFILL_KILLING, around(|_| {})),
        (30, BACKFILL, around(|s| s.evict_backfill = true)),
        (30, BACKFILL, drained()),
        (31, BACKFILL, around(|s| s.wanted = Wanted::Claimed)),
        (32, BACKFILL, around(|s| s.wanted = Wanted::Matched)),
        (33, DRAINING, Surroundings { all_drained: true, ..drained() }),
        (34, DRAINING, around(|_| {})),
        (35, DRAINED, around(|_| {})),
        (36, OWNER, drained()),
        (37, IDLE, drained()),
    ] {
        let (transition, why) = without_claim(from, &surroundings).expect("a transition");
        assert_eq!(
            (transition.number.whole(), transition.from),
            (Some(number), from),
            "{surroundings:?}: {why}"
        );
        assert!(!why.is_empty());
    }
}

#[test]
fn nothing_is_taken_otherwise() {
    for (state, surroundings) in [
        (OWNER, around(|s| s.owner = true)),
        (IDLE, around(|_| {})),
        (BENCHMARKING, around(|s| s.benchmarking = true)),
        (BACKFILL, around(|_| {})),
        (BACKFILL_BUSY, around(|s| s.backfill = BackfillStage::Runs)),
        (BACKFILL_KILLING, around(|s| s.backfill = BackfillStage::Runs)),
        // A pod whose creation was asked for ends before its slot leaves Backfill.
        (BACKFILL, around(|s| (s.backfill, s.owner) = (BackfillStage::Coming, true))),
        (BACKFILL, around(|s| (s.backfill, s.wanted) = (BackfillStage::Coming, Wanted::Matched))),
        (DRAINING, drained()),
        (DRAINED, drained()),
        (State::Matched, drained()),
    ] {
        assert_eq!(without_claim(state, &surroundings), None, "{state:?} {surroundings:?}");
    }
}

#[test]
fn the_first_rule_counts() {
    let all = |draining| Surroundings {
        owner: true,
        draining,
        all_drained: false,
        benchmark: true,
        benchmarking: false,
        start_backfill: true,
        evict_backfill: false,
        backfill: BackfillStage::None,
        clear: false,
        wanted: Wanted::Matched,
    };
    let number =
        |surroundings: &Surroundings| without_claim(IDLE, surroundings).and_then(|(t, _)| t.number.whole());
    assert_eq!(number(&all(Some(Pace::Quick))), Some(37));
    assert_eq!(number(&all(None)), Some(2));
    assert_eq!(number(&Surroundings { owner: false, ..all(None) }), Some(6));
    assert_eq!(number(&Surroundings { owner: false, wanted: Wanted::No, ..all(None) }), Some(7));
}

/// The state in which a slot comes to rest, and the transitions on the way.
fn rests(mut state: State, surroundings: &Surroundings) -> (State, Vec<u8>) {
    let mut numbers = Vec::new();
    while let Some((transition, _)) = without_claim(state, surroundings) {
        state = transition.to;
        numbers.extend(transition.number.whole());
        assert!(numbers.len() < 10, "{numbers:?}");
    }
    (state, numbers)
}

#[test]
fn benchmarks_and_backfill_that_are_in_the_way_end_first() {
    let matched = around(|s| (s.benchmarking, s.wanted) = (true, Wanted::Matched));
    assert_eq!(rests(BENCHMARKING, &matched), (State::Matched, vec![4, 6]));
    let drained = drained();
    assert_eq!(rests(BENCHMARKING, &Surroundings { benchmarking: true, ..drained }), (DRAINING, vec![4, 37]));
    assert_eq!(rests(BACKFILL_KILLING, &drained), (DRAINING, vec![29, 30, 36]));
    let evicted = around(|s| (s.evict_backfill, s.owner) = (true, true));
    assert_eq!(rests(BACKFILL_KILLING, &evicted), (OWNER, vec![29, 30]));
}
