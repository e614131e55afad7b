//! Counts the clauses of Requirements that keep a job from matching, and on how many slots each of them does.

use std::sync::Arc;

use super::analysis::no;
use crate::pool::{FailedClause, Matchable, Side};
use classad::{Ad, Env, SideReport, explain_match};

/// The most different clauses that are counted for a job. There must be a bound: each of many policies may refuse the job by
/// another clause.
const COUNTED: usize = 64;
/// The most clauses that are kept for a job.
const KEPT: usize = 5;

/// The most bytes that are kept of a clause's text.
const LENGTH: usize = 256;

/// The most clauses that a message names.
const NAMED: usize = 3;

/// Counts the slots on which each clause fails.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<FailedClause>);

/// What looking at a slot came to.
pub(super) enum Look {
    /// The slot and the job match.
    Match,
    /// They do not, and the clauses that fail are counted. The look cost so many steps.
    Counted(u64),
}

impl Tally {
    /// Goes on with what was counted before.
    pub(super) fn of(clauses: Vec<FailedClause>) -> Self {
        Self(clauses)
    }

    /// What was counted, to go on with.
    pub(super) fn into_counted(self) -> Vec<FailedClause> {
        self.0
    }

    /// Looks at a slot, and counts it if it does not match. The slot's clauses count only if the job's Requirements accept the
    /// slot.
    pub(super) fn look(&mut self, job: &Ad, slot: &Ad, env: &Env) -> Look {
        let report = explain_match(job, slot, env);
        if report.matches() {
            return Look::Match;
        }
        if report.my.accepts {
            self.count_side(Side::Machine, &report.target);
        } else {
            self.count_side(Side::Job, &report.my);
        }
        Look::Counted(report.my.steps + report.target.steps)
    }

    fn count_side(&mut self, side: Side, report: &SideReport) {
        let mut clauses = report.failed().map(|clause| shortened(&clause.text)).peekable();
        if clauses.peek().is_none() {
            // No clause fails, but Requirements is not true: it is missing, or its evaluation takes too many steps.
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

    /// The clauses that fail on most slots, most slots first. Of clauses that fail on equally many, the job's come before the
    /// machines', and otherwise those that were counted first.
    pub(super) fn into_clauses(mut self) -> Arc<[FailedClause]> {
        self.0.sort_by_key(|clause| (std::cmp::Reverse(clause.slots), clause.side));
        self.0.truncate(KEPT);
        self.0.into()
    }
}

/// The explanation for a job that matches none of `slots` slots.
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

/// The part of a clause's text that is kept.
fn shortened(text: &str) -> &str {
    let end = (0..=LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
