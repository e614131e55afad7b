//! One submitter's turn in a spin: its requests one after another, each job the best slot.

use std::collections::BinaryHeap;

use super::candidates::{Judge, Liking, Pool};
use super::cycle::{Candidate, Match, RejectReason, Request, Stats};
use super::pie::{Limits, permits};

/// What is known about a request from one spin to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Jobs without a match.
    pub(super) left: u64,
    /// Why the last of them got none, once one got none.
    pub(super) reason: Option<RejectReason>,
}

impl Progress {
    /// Slots only become fewer within a cycle: what no slot matched, none will.
    fn hopeless(self) -> bool {
        self.left == 0 || self.reason == Some(RejectReason::NoMatch)
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The submitter wants nothing more that could be had.
    Done,
    /// It may want more in the next spin.
    Resume,
}

/// A turn: who, on what terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn<'a> {
    pub(super) submitter: usize,
    pub(super) requests: &'a [Request],
    pub(super) limits: Limits,
    /// The slot weight to the submitter's ceiling; infinite without one.
    pub(super) ceiling: f64,
    /// Match all jobs of a request from one list of candidates.
    pub(super) caching: bool,
    /// Give up at the first request that the limit stands against: nothing smaller will come.
    pub(super) one_size: bool,
}

/// What turns work on.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) pool: Pool,
    pub(super) slots: &'a [Candidate],
    pub(super) matches: Vec<Match>,
    pub(super) stats: Stats,
}

impl Turn<'_> {
    /// Takes the turn. Returns how it ended and the slot weight taken. A request that got less than it wants
    /// isn't asked again in this turn.
    pub(super) fn take(&self, table: &mut Table<'_>, progress: &mut [Progress]) -> (Verdict, f64) {
        let mut used = 0.0;
        let mut limited = false;
        for (index, (request, progress)) in self.requests.iter().zip(progress.iter_mut()).enumerate() {
            if progress.hopeless() {
                continue;
            }
            if self.reached(used, &table.pool).is_some() {
                return (Verdict::Resume, used);
            }
            table.stats.requests_considered += 1;
            self.serve(table, index, request, progress, &mut used);
            limited |= progress.left > 0 && progress.reason == Some(self.limits.reason());
            if limited && self.one_size {
                return (Verdict::Resume, used);
            }
        }
        let resume = limited || self.reached(used, &table.pool).is_some();
        (if resume { Verdict::Resume } else { Verdict::Done }, used)
    }

    /// What bars any further match, once so much is taken.
    ///
    /// In the first spin HTCondor goes on past the submitter's limit with slots that rank the job above
    /// the one they run; among slots that nobody uses there are none of these.
    pub(super) fn reached(&self, used: f64, pool: &Pool) -> Option<RejectReason> {
        if pool.is_empty() {
            Some(RejectReason::NoSlots)
        } else if used >= self.limits.limit {
            Some(self.limits.reason())
        } else if used >= self.ceiling {
            Some(RejectReason::Ceiling)
        } else {
            None
        }
    }

    /// Matches jobs of one request until none is left, no slot will do or nothing more may be taken.
    fn serve(
        &self,
        table: &mut Table<'_>,
        index: usize,
        request: &Request,
        progress: &mut Progress,
        used: &mut f64,
    ) {
        let mut candidates = BinaryHeap::new();
        let mut fresh = false;
        let mut exceeded = false;
        while progress.left > 0 {
            if let Some(reason) = self.reached(*used, &table.pool) {
                progress.reason = Some(reason);
                return;
            }
            if !(fresh && self.caching) {
                table.stats.pairs_considered += u64::try_from(table.pool.len()).unwrap_or(u64::MAX);
                candidates = table.judge.candidates(&table.pool, &request.ad);
                fresh = true;
            }
            // Whatever exceeds the limit now will do so for the rest of the turn: it may be dropped.
            let best = std::iter::from_fn(|| candidates.pop()).find_map(|liking: Liking| {
                let place = liking.slot();
                let cost = table.judge.cost(place, table.slots.get(place)?, &request.ad);
                let fits = permits(*used, cost, self.limits.unclaimed);
                exceeded |= !fits;
                fits.then_some((liking, cost))
            });
            let Some((liking, cost)) = best else {
                progress.reason = Some(if exceeded { self.limits.reason() } else { RejectReason::NoMatch });
                return;
            };
            candidates.extend(table.judge.take(&mut table.pool, liking.slot(), &request.ad));
            table.matches.push(Match {
                submitter: self.submitter,
                request: index,
                slot: liking.slot(),
                cost,
                preempt: liking.preempt,
            });
            *used += cost;
            progress.left -= 1;
        }
    }
}
