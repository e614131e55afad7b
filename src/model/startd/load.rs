//! A machine's load, divided among its slots.
//!
//! Source: the manual's "Load Average for Multi-core Machines". First each slot gets the load that its job causes. The
//! rest is the owner's load. Slots in Owner get their parts of the owner's load first, then unclaimed slots, then all
//! others, each at most as much as it has CPUs. If load remains when all slots have that much, the first slot gets the
//! remainder, so that no load is lost.

use crate::pool::Load;

/// The order in which slots get their parts of the owner's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// The slot is in Owner.
    Owner,
    /// The slot is unclaimed.
    Unclaimed,
    /// The slot is in any other state.
    Other,
}

/// A slot, as far as the division of load is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bearer {
    /// When the slot gets its part of the owner's load.
    pub(super) turn: Turn,
    /// The slot's CPUs: the most of the owner's load that it gets before all others have theirs.
    pub(super) cpus: f64,
    /// Whether a job runs in the slot.
    pub(super) busy: bool,
}

/// Divides a machine's load among its slots, which are in the order of their names. The pool's load is known only for
/// all jobs together; each job is assumed to cause it in proportion to its CPUs.
pub(super) fn divide(bearers: &[Bearer], owner: f64, condor: f64) -> Vec<Load> {
    let mut loads = vec![Load::default(); bearers.len()];
    let busy: f64 = bearers.iter().filter(|bearer| bearer.busy).map(|bearer| bearer.cpus).sum();
    for (load, bearer) in loads.iter_mut().zip(bearers).filter(|(_, bearer)| bearer.busy && busy > 0.0) {
        load.condor = condor.max(0.0) * bearer.cpus / busy;
    }
    let mut left = owner.max(0.0);
    for turn in [Turn::Owner, Turn::Unclaimed, Turn::Other] {
        for (load, bearer) in loads.iter_mut().zip(bearers).filter(|(_, bearer)| bearer.turn == turn) {
            load.owner = left.min(bearer.cpus.max(0.0));
            left -= load.owner;
        }
    }
    let first = bearers.iter().enumerate().min_by_key(|(at, bearer)| (bearer.turn, *at)).map(|(at, _)| at);
    if let Some(load) = first.and_then(|first| loads.get_mut(first)) {
        load.owner += left;
    }
    loads
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(turn: Turn, cpus: f64, busy: bool) -> Bearer {
        Bearer { turn, cpus, busy }
    }

    #[test]
    fn the_manuals_examples() {
        let owner = of(Turn::Owner, 1.0, false);
        let shown =
            |loads: &[Load]| -> Vec<(f64, f64)> { loads.iter().map(|l| (l.owner, l.condor)).collect() };
        assert_eq!(shown(&divide(&[owner, owner], 0.340, 0.0)), [(0.340, 0.0), (0.0, 0.0)]);
        let busy = of(Turn::Other, 1.0, true);
        assert_eq!(shown(&divide(&[owner, busy], 0.254, 0.996)), [(0.254, 0.0), (0.0, 0.996)]);
    }

    #[test]
    fn owners_come_first_then_the_unclaimed_then_the_rest_and_then_the_first_again() {
        let slots =
            [of(Turn::Other, 1.0, true), of(Turn::Unclaimed, 2.0, false), of(Turn::Owner, 1.0, false)];
        for (owner, expected) in
            [(0.5, [0.0, 0.0, 0.5]), (1.5, [0.0, 0.5, 1.0]), (3.5, [0.5, 2.0, 1.0]), (5.0, [1.0, 2.0, 2.0])]
        {
            let given: Vec<f64> = divide(&slots, owner, 0.0).iter().map(|load| load.owner).collect();
            assert_eq!(given, expected, "{owner}");
        }
        assert_eq!(divide(&[], 1.0, 1.0), []);
    }

    proptest! {
        #[test]
        fn nothing_of_the_load_is_lost_and_nothing_is_made_up(
            slots in prop::collection::vec((0..3_u8, 0..16_u8, any::<bool>()), 1..20),
            owner in 0.0..40.0_f64, condor in 0.0..40.0_f64,
        ) {
            let turns = [Turn::Owner, Turn::Unclaimed, Turn::Other];
            let bearers: Vec<Bearer> =
                slots.iter().map(|(turn, cpus, busy)| of(turns[usize::from(*turn)], f64::from(*cpus), *busy)).collect();
            let loads = divide(&bearers, owner, condor);
            let sum: f64 = loads.iter().map(|load| load.owner).sum();
            prop_assert!((sum - owner).abs() < 1e-9);
            let sum: f64 = loads.iter().map(|load| load.condor).sum();
            let any_busy = bearers.iter().any(|bearer| bearer.busy && bearer.cpus > 0.0);
            let expected = if any_busy { condor } else { 0.0 };
            prop_assert!((sum - expected).abs() < 1e-9);
        }
    }
}
