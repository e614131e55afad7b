//! Clauses of slots that compare an attribute of the job with a number: `TARGET.RequestMemory <= 16384`.
//!
//! Such bounds differ from slot to slot, so there would be as many clauses as slots. A family turns them around: the
//! bounds of all slots are a column, and a job's value is compared with the bounds.

use super::column::{Column, Entry, Single};
use super::ir::{Ir, Symbol, Unknown};
use super::members::Members;
use super::memo::Verdict;
use super::prepared::Prepared;
use super::{Roster, Slot};
use crate::eval::Tri;
use crate::expr::Binary;
use crate::value::Value;

/// The number of a family.
type FamilyId = u32;

/// The families that a slot has a bound in, a bit each. When the bits are used up, a clause of a further family stays
/// a clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FamilySet(u64);

impl FamilySet {
    fn bit(id: FamilyId) -> Option<u64> {
        1_u64.checked_shl(id)
    }

    fn insert(&mut self, id: FamilyId) -> bool {
        let bit = Self::bit(id).filter(|bit| self.0 & bit == 0);
        self.0 |= bit.unwrap_or(0);
        bit.is_some()
    }

    fn iter(self) -> impl Iterator<Item = FamilyId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let id = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (id < 64).then_some(id)
        })
    }
}

/// Clauses that differ in their bound only.
#[derive(Clone, Debug)]
struct Family {
    /// The attribute of jobs that the clauses compare.
    symbol: Symbol,
    /// The operator with its operands swapped: the bound is on the left.
    op: Binary,
    bounds: Column,
}

/// The families of all slots of a roster.
#[derive(Clone, Debug, Default)]
pub(super) struct Families(Vec<Family>);

impl Families {
    /// Takes a slot's clause over. `false`: the clause has another form, or the slot has a clause of this family
    /// already.
    pub(super) fn take(&mut self, clause: &Ir, slot: u32, taken: &mut FamilySet) -> bool {
        let Some((symbol, op, bound)) = comparison(clause) else { return false };
        let known = self.0.iter().position(|family| family.symbol == symbol && family.op == op);
        let id = known.unwrap_or(self.0.len());
        if !FamilyId::try_from(id).is_ok_and(|id| taken.insert(id)) {
            return false;
        }
        if known.is_none() {
            self.0.push(Family { symbol, op, bounds: Column::default() });
        }
        if let Some(family) = self.0.get_mut(id) {
            family.bounds.set(slot, Some(bound.clone()));
        }
        true
    }

    /// Removes a slot's bounds.
    pub(super) fn remove(&mut self, taken: FamilySet, slot: u32) {
        for id in taken.iter() {
            if let Some(family) = self.0.get_mut(id as usize) {
                family.bounds.unset(slot);
            }
        }
    }

    /// Sorts all bounds, to be searched.
    pub(super) fn sort(&mut self) {
        for family in &mut self.0 {
            family.bounds.sort();
        }
    }
}

/// The attribute, the operator with its operands swapped, and the bound of a clause.
fn comparison(clause: &Ir) -> Option<(Symbol, Binary, &Value)> {
    let Ir::Binary(op, operands) = clause else { return None };
    let (symbol, op, bound) = match &**operands {
        (Ir::Other(symbol), Ir::Const(bound)) => (*symbol, turned(*op)?, bound),
        (Ir::Const(bound), Ir::Other(symbol)) => {
            turned(*op)?;
            (*symbol, *op, bound)
        }
        _ => return None,
    };
    matches!(bound, Value::Int(_) | Value::Real(_)).then_some((symbol, op, bound))
}

/// The operator that gives the same with its operands swapped; `None` if the operator does not order.
fn turned(op: Binary) -> Option<Binary> {
    match op {
        Binary::Less => Some(Binary::Greater),
        Binary::LessOrEqual => Some(Binary::GreaterOrEqual),
        Binary::Greater => Some(Binary::Less),
        Binary::GreaterOrEqual => Some(Binary::LessOrEqual),
        _ => None,
    }
}

impl Family {
    /// The clause about bounds that a job's value asks.
    fn question(&self, job: &Prepared) -> Result<Ir, Unknown> {
        let value = job.view.get(self.symbol as usize).and_then(Option::as_ref).ok_or(Unknown)?;
        Ok(Ir::Binary(self.op, Box::new((Ir::Other(0), Ir::Const(value.clone())))))
    }
}

impl Roster {
    /// Whether a slot's bounds allow the job.
    pub(super) fn within_bounds(&self, job: &Prepared, place: u32, slot: &Slot) -> Verdict {
        for id in slot.families.iter() {
            let family = self.families.0.get(id as usize).ok_or(Unknown)?;
            let bound = family.bounds.value(place).ok_or(Unknown)?;
            let value = job.view.get(family.symbol as usize).and_then(Option::as_ref).ok_or(Unknown)?;
            if super::ir::compare(family.op, bound, value) != Tri::True {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls back with what bounds say of the job, and the slots that have these bounds. Bounds that allow the job may
    /// be left out.
    pub(super) fn bounds(&self, job: &Prepared, each: &mut dyn FnMut(Verdict, &Members)) {
        for family in &self.families.0 {
            let entries = family.bounds.entries();
            let question = family.question(job);
            let compared = question.as_ref().is_ok_and(|question| {
                family.bounds.comparison(question, &mut |entry| each(Ok(false), &entry.slots))
            });
            let others = family.bounds.not_numbers().filter(|_| compared);
            let all = entries.iter().filter(|_| !compared);
            for entry in all.chain(others) {
                let verdict = question.as_ref().map_err(|unknown| *unknown);
                each(verdict.and_then(|question| allows(question, entry, job)), &entry.slots);
            }
        }
    }
}

fn allows(question: &Ir, entry: &Entry, job: &Prepared) -> Verdict {
    let view = Single(entry.value.as_ref());
    let scene = job.scene(view, &job.ad, &job.ad);
    Ok(question.truth(&scene)? == Tri::True)
}
