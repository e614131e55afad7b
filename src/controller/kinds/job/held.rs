//! The held procs of a job, as its status shows them.

use std::collections::BTreeMap;

use api::HeldProcs;
use model::pool::{HoldReason, Ranges, VacateReason};

/// The most hold reasons that the status of one job shows. Procs beyond that are shown as held for `another reason`.
const REASONS: usize = 64;

/// The codes for which procs are held: those of pods that could not start or were sent away,
/// [`JOB_POLICY_UNDEFINED`](model::pool::JOB_POLICY_UNDEFINED) and
/// [`JOB_OUT_OF_RESOURCES`](model::pool::JOB_OUT_OF_RESOURCES).
const CODES: usize = VacateReason::HOLDS.len() + 2;

/// The held procs by reason. A new leader reads this record back.
pub(super) fn held_procs(on_hold: &BTreeMap<u32, HoldReason>) -> Vec<HeldProcs> {
    let mut held: Vec<(HoldReason, Ranges)> = Vec::new();
    for (proc, hold) in on_hold {
        let known = held.iter().any(|(known, _)| known == hold);
        // Each code may need an `another reason` of its own.
        let shown = if known || held.len() + CODES < REASONS {
            hold.clone()
        } else {
            HoldReason { code: hold.code, subcode: 0, reason: "another reason".into() }
        };
        if let Some((_, procs)) = held.iter_mut().find(|(known, _)| *known == shown) {
            procs.insert(*proc);
        } else {
            let mut procs = Ranges::default();
            procs.insert(*proc);
            held.push((shown, procs));
        }
    }
    let shown = |(hold, procs): (HoldReason, Ranges)| HeldProcs {
        procs: procs.to_string(),
        code: hold.code,
        subcode: hold.subcode,
        reason: hold.reason.to_string(),
    };
    held.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use model::pool::{JOB_OUT_OF_RESOURCES, JOB_POLICY_UNDEFINED};

    use super::*;

    /// The schema allows no more, and a status that is refused is never written.
    #[test]
    fn however_many_reasons_there_are_no_more_are_shown_than_the_schema_allows() {
        let codes = VacateReason::HOLDS.map(|(_, code)| code).into_iter();
        let codes = codes.chain([JOB_POLICY_UNDEFINED, JOB_OUT_OF_RESOURCES]);
        let codes = codes.collect::<Vec<_>>().into_iter().cycle();
        let with_code = |(proc, code): (u32, i64)| {
            (proc, HoldReason { code, subcode: 0, reason: format!("no container of pod {proc}").into() })
        };
        let held = held_procs(&(0..100).zip(codes).map(with_code).collect());
        assert_eq!(held.len(), REASONS);
        assert_eq!(held.iter().filter(|held| held.reason == "another reason").count(), 5);
    }
}
