//! Properties of every cycle.

use proptest::prelude::*;

use super::kit::{expr, jobs_with, slot_with, weights};
use crate::negotiator::{Candidate, Config, Cycle, GroupInput, Outcome, Request, SubmitterInput, negotiate};

fn any_slot() -> impl Strategy<Value = Candidate> {
    (1_i64..6, 0..3, 0..3, any::<bool>()).prop_map(|(cpus, kind, liked, picky)| {
        let requirements = if picky { "TARGET.Kind == MY.Kind" } else { "TARGET.RequestCpus <= MY.Cpus" };
        slot_with(cpus, &format!("Kind = {kind}\nLiked = {liked}\nRequirements = {requirements}"))
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    (0_u64..8, 1..5, 0..3, -1..2).prop_map(|(count, cpus, kind, sign)| {
        let rank = format!("Rank = {sign} * TARGET.Liked");
        jobs_with(
            count,
            &format!("RequestCpus = {cpus}\nKind = {kind}\nRequirements = TARGET.Cpus >= {cpus}\n{rank}"),
        )
    })
}

fn any_submitter() -> impl Strategy<Value = SubmitterInput> {
    let requests = prop::collection::vec(any_request(), 0..4);
    let ceiling = prop::option::weighted(0.2, (0_u32..9).prop_map(f64::from));
    let group = prop::option::of(0_usize..3);
    (0_u8..6, 1_u32..5, 0_u32..6, ceiling, group, requests).prop_map(
        |(name, priority, used, ceiling, group, requests)| SubmitterInput {
            name: format!("u{name}"),
            effective_priority: f64::from(priority) * 0.5,
            weighted_used: f64::from(used),
            ceiling,
            group,
            requests,
            ..SubmitterInput::default()
        },
    )
}

prop_compose! {
    fn any_cycle()(
        slots in prop::collection::vec(any_slot(), 0..25),
        mut submitters in prop::collection::vec(any_submitter(), 0..7),
        quotas in prop::option::of([0_u32..30, 0_u32..30, 0_u32..30]),
        ranked in any::<bool>(), consider_preemption in any::<bool>(), use_slot_weights in any::<bool>(),
    ) -> Cycle {
        // Entries of the same name have the same usage, priority and group.
        let first = submitters.clone();
        for submitter in &mut submitters {
            let twin = first.iter().find(|twin| twin.name == submitter.name).unwrap();
            submitter.effective_priority = twin.effective_priority;
            submitter.weighted_used = twin.weighted_used;
            submitter.group = twin.group;
        }
        let groups: Vec<GroupInput> = quotas.into_iter().flatten().enumerate().map(|(index, quota)| GroupInput {
            name: format!("g{index}"),
            quota: f64::from(quota),
            subtree_quota: f64::from(quota),
            weighted_used: 0.0,
            parent: (index == 2).then_some(0),
            ..GroupInput::default()
        }).collect();
        let mut cycle = super::kit::cycle(slots, submitters);
        cycle.groups = groups;
        cycle.config = Config { consider_preemption, use_slot_weights, ..Config::default() };
        if !ranked {
            cycle.config.pre_job_rank = Some(expr("0 - MY.Kind"));
            cycle.config.post_job_rank = None;
        }
        cycle
    }
}

/// Checks what must hold for any outcome.
fn check(cycle: &Cycle, outcome: &Outcome) {
    let mut taken = vec![false; cycle.slots.len()];
    for each in &outcome.matches {
        assert!(!std::mem::replace(&mut taken[each.slot], true), "slot {} twice", each.slot);
        let cost = if cycle.config.use_slot_weights { cycle.slots[each.slot].weight } else { 1.0 };
        assert!((each.cost - cost).abs() < f64::EPSILON);
    }
    for (index, submitter) in cycle.submitters.iter().enumerate() {
        for (place, request) in submitter.requests.iter().enumerate() {
            let of = |each: (usize, usize)| each == (index, place);
            let matched = outcome.matches.iter().filter(|each| of((each.submitter, each.request))).count();
            let left: Vec<u64> = outcome
                .rejections
                .iter()
                .filter(|each| of((each.submitter, each.request)))
                .map(|each| each.left)
                .collect();
            let expected = request.count - u64::try_from(matched).unwrap();
            assert_eq!(left, if expected > 0 { vec![expected] } else { Vec::new() }, "each job once");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Each job is matched or rejected, and each slot is matched once and at its price. The same cycle gives the same
    /// outcome.
    #[test]
    fn nothing_is_lost_or_doubled(cycle in any_cycle()) {
        let outcome = negotiate(&cycle);
        check(&cycle, &outcome);
        prop_assert_eq!(&outcome, &negotiate(&cycle));
    }

    /// Slots that are kept from earlier cycles do not change the outcome of any cycle.
    #[test]
    fn what_is_kept_changes_nothing(cycles in prop::collection::vec(any_cycle(), 1..4)) {
        use crate::negotiator::{Ready, Stopwatch, negotiate_with};
        let mut ready = Ready::default();
        for mut cycle in cycles {
            ready.prepare(&cycle);
            for _ in 0..2 {
                prop_assert_eq!(negotiate_with(&cycle, &mut ready, Stopwatch::STOPPED), negotiate(&cycle));
                // Somebody uses the slot now.
                if let Some(slot) = cycle.slots.first_mut() {
                    slot.ad.set("RemoteUser", "somebody");
                    slot.ad.set("Rank", 1.0);
                    slot.ad.set("CurrentRank", 0.0);
                }
            }
        }
    }

    /// Ranking the slots once for a request gives the same matches as ranking them anew for each job.
    #[test]
    fn match_lists_change_nothing(mut cycle in any_cycle()) {
        let cached = negotiate(&cycle);
        cycle.config.match_list_caching = false;
        let naive = negotiate(&cycle);
        prop_assert_eq!(cached.matches, naive.matches);
        prop_assert_eq!(cached.rejections, naive.rejections);
        prop_assert_eq!(cached.stats.pies, naive.stats.pies);
        prop_assert!(cached.stats.pairs_considered <= naive.stats.pairs_considered);
    }

    /// A slot that is left matches no request whose jobs were rejected because nothing matched. A job is rejected
    /// because there are no slots only if there are none.
    #[test]
    fn rejections_are_true(cycle in any_cycle()) {
        use classad::{Env, symmetric_match};
        use crate::negotiator::RejectReason;
        let outcome = negotiate(&cycle);
        let free: Vec<usize> = (0..cycle.slots.len())
            .filter(|slot| outcome.matches.iter().all(|each| each.slot != *slot))
            .collect();
        for each in &outcome.rejections {
            let request = &cycle.submitters[each.submitter].requests[each.request].ad;
            let fits = |slot: &usize| symmetric_match(request, &cycle.slots[*slot].ad, &Env::at(cycle.now));
            match each.reason {
                RejectReason::NoMatch => prop_assert!(!free.iter().any(fits)),
                RejectReason::NoSlots => prop_assert!(free.is_empty()),
                RejectReason::GroupQuota => prop_assert!(!cycle.groups.is_empty()),
                RejectReason::Ceiling => prop_assert!(cycle.submitters[each.submitter].ceiling.is_some()),
                RejectReason::SubmitterLimit => {}
                RejectReason::ConcurrencyLimit
                | RejectReason::PreemptionPolicy
                | RejectReason::PreemptionRank
                | RejectReason::EvaluationShare
                | RejectReason::TooExpensive
                | RejectReason::TimeLimit => {
                    prop_assert!(false, "there is no limit, and no slot is in use: {:?}", each);
                }
            }
        }
    }

    /// A submitter stays within its limits, except for one match that may overshoot in each turn.
    #[test]
    fn limits_hold_but_for_one_overshoot_a_turn(cycle in any_cycle()) {
        let outcome = negotiate(&cycle);
        let heaviest = cycle.slots.iter().map(|slot| slot.weight).fold(1.0, f64::max);
        for pie in &outcome.stats.pies {
            prop_assert!(pie.weight <= cycle.pool_weight + 1e-9);
            let shares: f64 = pie.slices.iter().map(|slice| slice.share).sum();
            prop_assert!(shares > 0.0 && pie.slices.iter().all(|slice| slice.share <= 1.0 + 1e-9));
        }
        for (index, got) in weights(&cycle, &outcome).into_iter().enumerate() {
            let slices = outcome.stats.pies.iter().flat_map(|pie| &pie.slices);
            let limits: Vec<f64> = slices.filter(|slice| slice.submitter == index).map(|slice| slice.limit).collect();
            let turns = limits.iter().filter(|limit| **limit > 0.0).map(|limit| limit + heaviest).sum::<f64>();
            prop_assert!(got <= turns + 1e-9, "{got} with limits {limits:?}");
            if let Some(ceiling) = cycle.submitters[index].ceiling {
                prop_assert!(got <= ceiling + 1e-6, "{got} with a ceiling of {ceiling}");
            }
        }
    }

    /// The order of the slots decides only between equals. If each slot has another rank, the order decides nothing.
    #[test]
    fn order_of_slots_only_breaks_ties(mut cycle in any_cycle(), seed in any::<u64>()) {
        for (index, slot) in cycle.slots.iter_mut().enumerate() {
            slot.ad.set("Id", i64::try_from(index).unwrap());
        }
        cycle.config.post_job_rank = Some(expr("MY.Id"));
        let ids = |cycle: &Cycle| -> Vec<(usize, usize, Option<i64>)> {
            let id = |slot: usize| cycle.slots[slot].ad.eval_attr("Id", None, &classad::Env::at(0)).as_int();
            negotiate(cycle).matches.iter().map(|each| (each.submitter, each.request, id(each.slot))).collect()
        };
        let before = ids(&cycle);
        let mut state = seed;
        cycle.slots.sort_by_cached_key(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        });
        prop_assert_eq!(before, ids(&cycle));
    }

    /// No group, and no group together with the groups inside it, takes more than its quota.
    #[test]
    fn groups_stay_within_quotas(mut cycle in any_cycle()) {
        cycle.config.use_slot_weights = true;
        let outcome = negotiate(&cycle);
        let got = weights(&cycle, &outcome);
        for (index, group) in cycle.groups.iter().enumerate() {
            let of_group = |group: Option<usize>| {
                let pairs = cycle.submitters.iter().zip(&got);
                pairs.filter(|(submitter, _)| submitter.group == group).map(|(_, got)| got).sum::<f64>()
            };
            let mut used = of_group(Some(index));
            if index == 0 {
                used += of_group(Some(2));
            }
            prop_assert!(used <= group.subtree_quota + 1e-6, "{used} of {}", group.subtree_quota);
        }
    }
}
