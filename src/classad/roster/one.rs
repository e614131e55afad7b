//! Matching one job with one slot.

use super::column::{Row, Values};
use super::ir::{Scene, Unknown};
use super::memo::Verdict;
use super::prepared::{Prepared, all_true};
use super::{Roster, Slot};
use crate::eval::Tri;

impl Roster {
    /// Whether a job and a slot accept each other.
    pub(super) fn pair(&self, job: &Prepared, place: usize, slot: &Slot) -> bool {
        !slot.never
            && !job.asks.never
            && !job.is_over()
            && self.slot_accepts(job, place, slot).unwrap_or_else(|Unknown| job.is_accepted_by(&slot.ad))
            && self.job_accepts(job, place, slot).unwrap_or_else(|Unknown| job.accepts(&slot.ad))
    }

    /// The scene for a job's expressions about a slot.
    pub(super) fn row<'a>(
        &'a self,
        job: &'a Prepared,
        place: usize,
        slot: &'a Slot,
    ) -> Result<Scene<'a, Row<'a>>, Unknown> {
        if job.epoch != self.epoch {
            return Err(Unknown);
        }
        let number = u32::try_from(place).map_err(|_| Unknown)?;
        let view = Row { columns: &self.columns, slot: number };
        Ok(job.scene(view, &job.ad, &slot.ad))
    }

    /// The scene for a slot's expressions about a job.
    fn view<'a>(job: &'a Prepared, slot: &'a Slot) -> Scene<'a, Values<'a>> {
        job.scene(Values(&job.view), &slot.ad, &job.ad)
    }

    fn job_accepts(&self, job: &Prepared, place: usize, slot: &Slot) -> Verdict {
        let scene = self.row(job, place, slot)?;
        for group in &job.asks.groups {
            let column = self.columns.get(group.symbol as usize).ok_or(Unknown)?;
            let id = column.id(scene.view.slot).ok_or(Unknown)?;
            if !group.memo.verdict(column.version(), id, || group.holds(&scene))? {
                return Ok(false);
            }
        }
        if !all_true(&job.asks.others, &scene)? {
            return Ok(false);
        }
        if job.asks.verify { Err(Unknown) } else { Ok(true) }
    }

    fn slot_accepts(&self, job: &Prepared, place: usize, slot: &Slot) -> Verdict {
        let number = u32::try_from(place).map_err(|_| Unknown)?;
        if !self.within_bounds(job, number, slot)? {
            return Ok(false);
        }
        let version = self.clauses.version();
        for id in &slot.clauses {
            let find = || {
                let clause = self.clauses.get(*id).ok_or(Unknown)?;
                Ok(clause.ir.truth(&Self::view(job, slot))? == Tri::True)
            };
            if !job.memo.verdict(version, *id, find)? {
                return Ok(false);
            }
        }
        if slot.verify { Err(Unknown) } else { Ok(true) }
    }
}
