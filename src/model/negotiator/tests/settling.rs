//! Preemption does not go round in circles: with a fixed set of jobs and priorities, the pool settles.

use proptest::prelude::*;

use super::kit::{cycle, expr, jobs_with, slot_with, submitter};
use crate::negotiator::{Match, PreemptState, negotiate};
use classad::Env;

/// Who uses a slot: the submitter, and which of its kinds of jobs.
type Holder = Option<(usize, usize)>;

/// A pool and its users.
#[derive(Clone, Debug)]
struct Scene {
    /// Each slot's Rank.
    ranks: Vec<&'static str>,
    /// Each submitter's effective priority, and how many jobs of each kind it has.
    users: Vec<(u32, Vec<u64>)>,
}

prop_compose! {
    fn any_scene()(
        ranks in prop::collection::vec(
            prop::sample::select(vec!["0.0", "TARGET.Kind", "0 - TARGET.Kind", "ifThenElse(TARGET.Kind == 1, 5, 1)"]), 1..8),
        users in prop::collection::vec((1_u32..5, prop::collection::vec(0_u64..6, 1..4)), 1..5),
    ) -> Scene {
        Scene { ranks, users }
    }
}

/// Runs one cycle, and updates who uses which slot.
fn negotiated(scene: &Scene, holders: &mut [Holder], requirements: &str) -> Vec<Match> {
    let job = |kind: usize| jobs_with(1, &format!("Kind = {kind}")).ad;
    let slots = scene.ranks.iter().zip(&*holders).map(|(rank, holder)| {
        let mut slot = slot_with(1, &format!("Rank = {rank}"));
        if let Some((user, kind)) = holder {
            let current = slot.ad.eval_attr("Rank", Some(&job(*kind)), &Env::at(0));
            slot.ad.set("CurrentRank", current);
            slot.ad.set("RemoteUser", format!("u{user}").as_str());
            slot.ad.set("RemoteOwner", format!("u{user}").as_str());
        }
        slot
    });
    let slots: Vec<_> = slots.collect();
    let users = scene.users.iter().enumerate().map(|(user, (priority, kinds))| {
        let has = |kind: usize| holders.iter().filter(|holder| **holder == Some((user, kind))).count() as u64;
        let waits = |(kind, count): (usize, &u64)| {
            let mut request = jobs_with(count - has(kind), &format!("Kind = {kind}"));
            request.ad = job(kind);
            request
        };
        let requests: Vec<_> = kinds.iter().enumerate().map(waits).collect();
        let mut input = submitter(&format!("u{user}"), f64::from(*priority), &requests);
        input.weighted_used =
            holders.iter().flatten().filter(|(holder, _)| *holder == user).map(|_| 1.0).sum();
        input
    });
    let mut cycle = cycle(slots, users.collect());
    cycle.pool_weight = f64::from(u32::try_from(scene.ranks.len()).unwrap());
    cycle.config.preemption_requirements = Some(expr(requirements));
    let matches = negotiate(&cycle).matches;
    for found in &matches {
        assert_eq!(holders[found.slot].is_some(), found.preempt != PreemptState::None);
        holders[found.slot] = Some((found.submitter, found.request));
    }
    matches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Each preemption leaves a slot with a job that it ranks higher, or with a job of a better user that it ranks no
    /// lower. So there is no way back, as long as PREEMPTION_REQUIREMENTS compares the priorities.
    #[test]
    fn a_pool_settles(scene in any_scene()) {
        let mut holders = vec![None; scene.ranks.len()];
        // A slot's rank has at most four values, a user's priority four.
        let steps = 16 * scene.ranks.len() + 2;
        let settled = (0..steps).any(|_| {
            negotiated(&scene, &mut holders, "RemoteUserPrio > TARGET.SubmitterUserPrio").is_empty()
        });
        prop_assert!(settled, "{holders:?}");
        // No job waits while a slot is free.
        let waits = scene.users.iter().flat_map(|(_, kinds)| kinds).sum::<u64>();
        let free = holders.iter().filter(|holder| holder.is_none()).count();
        let running = holders.len() - free;
        prop_assert!(free == 0 || waits == running as u64, "{holders:?}");
    }
}
