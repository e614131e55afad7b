//! Which clauses keep a job from machines, and on how many slots.

use std::sync::Arc;

use super::analysis::no;
use crate::pool::{FailedClause, Matchable, Side};
use classad::{Ad, Env, SideReport, explain_match};

/// How many different clauses are counted for a job, and how many of them are kept: machines of many policies may refuse it
/// each in its own words.
const COUNTED: usize = 64;
const KEPT: usize = 5;

/// How many bytes of a clause are kept.
const LENGTH: usize = 256;

/// How many clauses a message names.
const NAMED: usize = 3;

/// Counts the slots on which each clause fails.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<FailedClause>);

impl Tally {
    /// Counts a slot that does not match. What a machine requires counts only where the job would take it.
    pub(super) fn count(&mut self, job: &Ad, slot: &Ad, env: &Env) {
        let report = explain_match(job, slot, env);
        if report.my.accepts {
            self.count_side(Side::Machine, &report.target);
        } else {
            self.count_side(Side::Job, &report.my);
        }
    }

    fn count_side(&mut self, side: Side, report: &SideReport) {
        let mut clauses = report.failed().map(|clause| shortened(&clause.text)).peekable();
        if clauses.peek().is_none() {
            // Not one clause fails, and yet the whole is not true: there is none, or it takes too much work.
            self.count_clause(side, "Requirements");
        }
        clauses.for_each(|clause| self.count_clause(side, clause));
    }

    fn count_clause(&mut self, side: Side, text: &str) {
        if let Some(known) = self.0.iter_mut().find(|known| known.side == side && &*known.text == text) {
            known.slots += 1;
        } else if self.0.len() < COUNTED {
            self.0.push(FailedClause { side, text: text.into(), slots: 1 });
        }
    }

    /// The clauses that fail on most slots, these first; of equals the job's, in the order in which they stand there.
    pub(super) fn into_clauses(mut self) -> Arc<[FailedClause]> {
        self.0.sort_by_key(|clause| (std::cmp::Reverse(clause.slots), clause.side));
        self.0.truncate(KEPT);
        self.0.into()
    }
}

/// What is told of a job that none of so many slots matches.
pub(super) fn verdict(clauses: &[FailedClause], slots: usize) -> Matchable {
    let Some((first, rest)) = clauses.split_first() else { return Matchable::Unknown };
    let rest: String = rest.iter().take(NAMED - 1).map(beside).collect();
    let FailedClause { side, text, slots: count } = first;
    match side {
        Side::Job => no(
            "RequirementsNotMet",
            "spec.requirements",
            format!(
                "{text} is not true on {count} of {slots} nodes{rest}, and no node matches; relax it, or add a node that meets it"
            ),
        ),
        Side::Machine => no(
            "RefusedByMachines",
            "status",
            format!(
                "{count} of {slots} nodes refuse the job by {text}{rest}, and no node takes it; see the START expression of their NodePolicy"
            ),
        ),
    }
}

fn beside(FailedClause { side, text, slots }: &FailedClause) -> String {
    match side {
        Side::Job => format!(", {text} not on {slots}"),
        Side::Machine => format!(", {slots} refuse it by {text}"),
    }
}

/// A clause's text as far as it is kept.
fn shortened(text: &str) -> &str {
    let end = (0..=LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
