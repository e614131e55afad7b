//! Counts the clauses of Requirements that keep a job from matching, and on how many slots each of them does.

use std::sync::Arc;

use crate::pool::{FailedClause, Side};
use classad::{Ad, Env, SideReport, explain_match};

/// The most different clauses that are counted for a job. There must be a bound: each of many policies may refuse the job by
/// another clause.
const COUNTED: usize = 64;
/// The most clauses that are kept for a job.
const KEPT: usize = 5;

/// The most bytes that are kept of a clause's text.
const LENGTH: usize = 256;

/// Counts the slots on which each clause fails.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<FailedClause>);

/// The result of looking at a slot.
pub(super) enum Look {
    /// The slot and the job match.
    Match,
    /// The slot and the job do not match, and the clauses that fail are counted.
    Counted {
        /// How far the slot is from a match: the more clauses fail, the farther.
        failed: usize,
        /// The steps that the look took.
        steps: u64,
    },
}

impl Tally {
    /// A tally that starts with the clauses that were counted before.
    pub(super) fn of(clauses: Vec<FailedClause>) -> Self {
        Self(clauses)
    }

    /// The clauses that were counted, to go on with.
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
        let sides = [&report.my, &report.target].into_iter().filter(|side| !side.accepts);
        let failed: usize = sides.map(|side| side.failed().count().max(1)).sum();
        // If two slots lack equally much, a slot that the job accepts is nearer.
        let failed = 2 * failed + usize::from(!report.my.accepts);
        Look::Counted { failed, steps: report.my.steps + report.target.steps }
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

    /// The clauses that fail on most slots, most slots first. If clauses fail on equally many slots, the job's come
    /// before the machines', and clauses that were counted earlier come first.
    pub(super) fn into_clauses(mut self) -> Arc<[FailedClause]> {
        self.0.sort_by_key(|clause| (std::cmp::Reverse(clause.slots), clause.side));
        self.0.truncate(KEPT);
        self.0.into()
    }
}

/// The part of a clause's text that is kept.
fn shortened(text: &str) -> &str {
    let end = (0..=LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
