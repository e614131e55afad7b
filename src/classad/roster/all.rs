//! A job and all slots.

use super::Roster;
use super::bits::Bits;
use super::column::{Entry, Single, Values};
use super::ir::{Ir, Scene, Symbol, Unknown};
use super::prepared::{JobClause, Prepared, Reads};
use crate::classad::eval::Tri;
use crate::classad::matching::accepts;

/// What is known so far: the slots that are left, and those where the plain evaluator must be asked.
struct Search {
    left: Bits,
    /// About the slot's requirements.
    ask_slot: Bits,
    /// About the job's requirements.
    ask_job: Bits,
}

impl Search {
    /// Takes note of what a clause says of slots.
    fn note(&mut self, answer: Result<Tri, Unknown>, slots: &[u32], of_job: bool) {
        match answer {
            Ok(Tri::True) => {}
            Ok(_) => slots.iter().for_each(|slot| self.left.remove(*slot)),
            Err(Unknown) => {
                let ask = if of_job { &mut self.ask_job } else { &mut self.ask_slot };
                slots.iter().for_each(|slot| ask.insert(*slot));
            }
        }
    }
}

impl Roster {
    /// The slots that match a job.
    pub(super) fn all(&self, job: &Prepared) -> Bits {
        if job.asks.never {
            return Bits::default();
        }
        let mut search =
            Search { left: self.open.clone(), ask_slot: self.doubtful.clone(), ask_job: Bits::default() };
        self.ask_slots(job, &mut search);
        if job.asks.verify || job.epoch != self.epoch {
            search.ask_job = self.open.clone();
        }
        if job.epoch == self.epoch {
            for clause in &job.asks.clauses {
                match clause.reads {
                    Reads::One(symbol) => self.ask_column(job, clause, symbol, &mut search),
                    Reads::Nothing | Reads::Several => self.ask_rows(job, &clause.ir, &mut search),
                }
            }
        }
        self.settle(job, search)
    }

    /// Asks each clause of the slots about the job.
    fn ask_slots(&self, job: &Prepared, search: &mut Search) {
        for clause in self.clauses.all() {
            let Some(slot) = clause.slots.first().and_then(|slot| self.slot(*slot as usize)) else { continue };
            let scene = Scene { view: Values(&job.view), my: &slot.ad, target: &job.ad, env: &job.env };
            search.note(clause.ir.truth(&scene), &clause.slots, false);
        }
    }

    /// Asks a clause about each value of a column.
    fn ask_column(&self, job: &Prepared, clause: &JobClause, symbol: Symbol, search: &mut Search) {
        let Some(column) = self.columns.get(symbol as usize) else {
            search.ask_job = self.open.clone();
            return;
        };
        if let Some(answers) = clause.answers.as_ref().filter(|answers| answers.version == column.version()) {
            for (entry, answer) in column.entries().iter().zip(&answers.of) {
                search.note(*answer, &entry.slots, true);
            }
            return;
        }
        let clause = &clause.ir;
        let sorted = column
            .comparison(clause, &mut |entry| entry.slots.iter().for_each(|slot| search.left.remove(*slot)));
        if sorted {
            column.not_numbers().for_each(|entry| search.note(self.about(job, clause, entry), &entry.slots, true));
        } else {
            for entry in column.entries() {
                search.note(self.about(job, clause, entry), &entry.slots, true);
            }
        }
    }

    /// What a job's clause about one attribute says of a value.
    pub(super) fn about(&self, job: &Prepared, clause: &Ir, entry: &Entry) -> Result<Tri, Unknown> {
        let slot = entry.slots.first().and_then(|slot| self.slot(*slot as usize)).ok_or(Unknown)?;
        let view = Single(entry.value.as_ref());
        clause.truth(&Scene { view, my: &job.ad, target: &slot.ad, env: &job.env })
    }

    /// Asks a clause about each slot that is left.
    fn ask_rows(&self, job: &Prepared, clause: &Ir, search: &mut Search) {
        let slots: Vec<u32> = search.left.iter().collect();
        for number in slots {
            let place = number as usize;
            let answer = match self.slot(place) {
                Some(slot) => self.row(job, place, slot).and_then(|scene| clause.truth(&scene)),
                None => Ok(Tri::False),
            };
            search.note(answer, &[number], true);
        }
    }

    /// Asks the plain evaluator where it must be.
    fn settle(&self, job: &Prepared, search: Search) -> Bits {
        let Search { mut left, mut ask_slot, mut ask_job } = search;
        ask_slot.keep(&left);
        for number in ask_slot.iter() {
            let slot = self.slot(number as usize);
            if !slot.is_some_and(|slot| accepts(&slot.ad, &job.ad, &job.env)) {
                left.remove(number);
            }
        }
        ask_job.keep(&left);
        for number in ask_job.iter() {
            let slot = self.slot(number as usize);
            if !slot.is_some_and(|slot| accepts(&job.ad, &slot.ad, &job.env)) {
                left.remove(number);
            }
        }
        left
    }
}

