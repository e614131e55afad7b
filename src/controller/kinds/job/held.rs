//! The held procs of a job, as its status shows them.

use std::collections::BTreeMap;

use api::HeldProcs;
use model::pool::{HOLD_CODES, HoldReason, Ranges};

/// The most hold reasons that the status of one job shows. Procs beyond that are shown as held for `another reason`.
const REASONS: usize = 64;

/// The held procs by reason. A new leader reads this record back.
pub(super) fn held_procs(on_hold: &BTreeMap<u32, HoldReason>) -> Vec<HeldProcs> {
    let mut held: Vec<(HoldReason, Ranges)> = Vec::new();
    for (proc, hold) in on_hold {
        let known = held.iter().any(|(known, _)| known == hold);
        // Each code may need an `another reason` of its own.
        let shown = if known || held.len() + HOLD_CODES.len() < REASONS {
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
    use super::*;

    /// kubectl explain tells of every code, and last of those that an edit of the spec releases.
    #[test]
    fn the_schema_explains_every_code() {
        let crd = serde_json::to_value(&api::definitions()[0]).unwrap();
        let code = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/heldProcs/items/properties/code/description";
        let text = crd.pointer(code).unwrap().as_str().unwrap();
        let numbers = |text: &str| -> Vec<i64> {
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
        };
        let (codes, released) = text.split_once("An edit of the spec releases").unwrap();
        let sorted = |mut codes: Vec<i64>| {
            codes.sort_unstable();
            codes
        };
        assert_eq!(sorted(numbers(codes)), sorted(HOLD_CODES.to_vec()));
        let hold = |code| HoldReason { code, subcode: 0, reason: "".into() };
        let ends = HOLD_CODES.into_iter().filter(|code| !hold(*code).outlasts_edits()).collect();
        assert_eq!(sorted(numbers(released)), sorted(ends));
    }

    /// The schema allows no more, and a status that is refused is never written.
    #[test]
    fn however_many_reasons_there_are_no_more_are_shown_than_the_schema_allows() {
        let codes = HOLD_CODES.into_iter().cycle();
        let with_code = |(proc, code): (u32, i64)| {
            (proc, HoldReason { code, subcode: 0, reason: format!("no container of pod {proc}").into() })
        };
        let held = held_procs(&(0..100).zip(codes).map(with_code).collect());
        assert_eq!(held.len(), REASONS);
        let others = held.iter().filter(|held| held.reason == "another reason").count();
        assert_eq!(others, HOLD_CODES.len());
    }
}
