//! The three ranks of a job and a slot.

use super::answers::{Answers, Cells};
use super::column::Column;
use super::ir::{Ir, Unknown, number};
use super::prepared::{Prepared, Ranking};
use super::{Roster, Slot};

/// The three ranks of a job and a slot, by which a negotiator sorts matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// The value of `NEGOTIATOR_PRE_JOB_RANK`. `None`: the value is no number, or the roster has no such expression.
    pub pre_job: Option<f64>,
    /// The job's `Rank` of the slot, as [`crate::rank`] returns it.
    pub job: f64,
    /// The value of `NEGOTIATOR_POST_JOB_RANK`. `None`: the value is no number, or the roster has no such expression.
    pub post_job: Option<f64>,
}

/// Ranks slots for one job.
pub(super) struct Ranker<'a> {
    roster: &'a Roster,
    job: &'a Prepared,
    /// The column of the attribute that the job's rank is, if it is one attribute.
    column: Option<&'a Column>,
    /// The negotiator's ranks that are known already.
    known: Option<&'a Answers>,
}

impl Roster {
    pub(super) fn ranker<'a>(&'a self, job: &'a Prepared) -> Ranker<'a> {
        let column = match &job.rank {
            Ranking::Ir(ir) if job.epoch == self.epoch => match **ir {
                Ir::Other(symbol) => self.columns.get(symbol as usize),
                _ => None,
            },
            _ => None,
        };
        Ranker { roster: self, job, column, known: self.questions.known(job) }
    }

    /// The job's `Rank` of a slot.
    fn job_rank(&self, job: &Prepared, place: usize, slot: &Slot) -> f64 {
        let plain = |Unknown| {
            let done = job.ad.evaluate_attr("Rank", Some(&slot.ad), &job.env);
            job.meter.count_own(&done);
            done.value.as_number().unwrap_or(0.0)
        };
        match &job.rank {
            Ranking::Constant(rank) => rank.unwrap_or(0.0),
            Ranking::Ir(ir) => {
                let scene = self.row(job, place, slot);
                let value = scene.and_then(|scene| Ok(number(&ir.eval(&scene)?).unwrap_or(0.0)));
                value.unwrap_or_else(plain)
            }
            Ranking::Plain => plain(Unknown),
        }
    }
}

impl Ranker<'_> {
    /// The ranks of the slot in a place.
    pub(super) fn ranks(&self, place: usize) -> Option<Ranks> {
        if self.job.is_over() {
            return None;
        }
        let job = match &self.job.rank {
            Ranking::Constant(rank) => Some(rank.unwrap_or(0.0)),
            _ => self.column.and_then(|column| column.rank(place)),
        };
        let cells = self.known.and_then(|known| known.about(place, self.roster.slots.len()));
        let known = cells.and_then(Cells::all);
        if let (Some([pre_job, post_job]), Some(job)) = (known, job) {
            // The slot is not touched: fetching it into the processor's cache takes longer than all the rest.
            self.job.meter.pay(1);
            return Some(Ranks { pre_job, job, post_job });
        }
        let slot = self.roster.slot(place)?;
        let job = job.unwrap_or_else(|| self.roster.job_rank(self.job, place, slot));
        let [pre_job, post_job] = known.unwrap_or_else(|| self.roster.questions.ranks(self.job, slot, cells));
        Some(Ranks { pre_job, job, post_job })
    }
}
