//! A job and one slot.

use super::column::{Row, Values};
use super::ir::{Scene, Unknown, number};
use super::prepared::{JobClause, Prepared, Ranking, Reads};
use super::{Roster, Slot};
use crate::classad::eval::Tri;
use crate::classad::matching::accepts;

impl Roster {
    /// Whether a job and a slot accept each other.
    pub(super) fn pair(&self, job: &Prepared, place: usize, slot: &Slot) -> bool {
        !slot.never
            && !job.asks.never
            && self.job_accepts(job, place, slot).unwrap_or_else(|Unknown| accepts(&job.ad, &slot.ad, &job.env))
            && self.slot_accepts(job, slot).unwrap_or_else(|Unknown| accepts(&slot.ad, &job.ad, &job.env))
    }

    /// What a job sees of a slot.
    pub(super) fn row<'a>(&'a self, job: &'a Prepared, place: usize, slot: &'a Slot) -> Result<Scene<'a, Row<'a>>, Unknown> {
        if job.epoch != self.epoch {
            return Err(Unknown);
        }
        let slot_number = u32::try_from(place).map_err(|_| Unknown)?;
        let view = Row { columns: &self.columns, slot: slot_number };
        Ok(Scene { view, my: &job.ad, target: &slot.ad, env: &job.env })
    }

    fn job_accepts(&self, job: &Prepared, place: usize, slot: &Slot) -> Result<bool, Unknown> {
        let scene = self.row(job, place, slot)?;
        for clause in &job.asks.clauses {
            let known = self.known(clause, scene.view.slot);
            if known.unwrap_or_else(|| clause.ir.truth(&scene))? != Tri::True {
                return Ok(false);
            }
        }
        if job.asks.verify { Err(Unknown) } else { Ok(true) }
    }

    /// What was found out before.
    fn known(&self, clause: &JobClause, slot: u32) -> Option<Result<Tri, Unknown>> {
        let (Some(answers), Reads::One(symbol)) = (&clause.answers, clause.reads) else { return None };
        let column = self.columns.get(symbol as usize)?;
        let id = column.id(slot).filter(|_| answers.version == column.version())?;
        answers.of.get(id as usize).copied()
    }

    fn slot_accepts(&self, job: &Prepared, slot: &Slot) -> Result<bool, Unknown> {
        let scene = Scene { view: Values(&job.view), my: &slot.ad, target: &job.ad, env: &job.env };
        for clause in &slot.clauses {
            let clause = self.clauses.get(*clause).ok_or(Unknown)?;
            if clause.ir.truth(&scene)? != Tri::True {
                return Ok(false);
            }
        }
        if slot.verify { Err(Unknown) } else { Ok(true) }
    }

    /// The job's `Rank` of a slot.
    pub(super) fn job_rank(&self, job: &Prepared, place: usize, slot: &Slot) -> f64 {
        let plain = |Unknown| crate::classad::rank(&job.ad, &slot.ad, &job.env);
        match &job.rank {
            Ranking::Constant(rank) => rank.unwrap_or(0.0),
            Ranking::Ir(ir) => {
                let value = self.row(job, place, slot).and_then(|scene| {
                    Ok(number(&ir.eval(&scene)?).unwrap_or(0.0))
                });
                value.unwrap_or_else(plain)
            }
            Ranking::Plain => plain(Unknown),
        }
    }
}
