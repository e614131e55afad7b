//! Matching one job with all slots.

use super::Roster;
use super::bits::Bits;
use super::column::{Column, Entry, Single, Values};
use super::ir::{Ir, Unknown};
use super::members::Members;
use super::memo::Verdict;
use super::prepared::{Group, Prepared};
use crate::eval::Tri;

/// The state of a search: the slots that are left, and the slots about which the plain evaluator must be asked.
struct Search {
    left: Bits,
    /// The slots whose own requirements the plain evaluator must decide.
    ask_slot: Bits,
    /// The slots for which the plain evaluator must decide the job's requirements.
    ask_job: Bits,
}

/// Whose requirements a verdict is about.
#[derive(Clone, Copy)]
enum Of {
    Job,
    Slot,
}

impl Search {
    /// Notes a verdict on slots.
    fn note(&mut self, verdict: Verdict, slots: &Members, of: Of) {
        let asked = match (verdict, of) {
            (Ok(true), _) => return,
            (Ok(false), _) => return slots.take_from(&mut self.left),
            (Err(Unknown), Of::Job) => &mut self.ask_job,
            (Err(Unknown), Of::Slot) => &mut self.ask_slot,
        };
        slots.add_to(asked);
    }
}

impl Roster {
    /// The slots that match a job: of all slots, or of those in `among`.
    pub(super) fn all(&self, job: &Prepared, among: Option<&Bits>) -> Bits {
        if job.asks.never {
            return Bits::default();
        }
        let mut search =
            Search { left: self.open.clone(), ask_slot: self.doubtful.clone(), ask_job: Bits::default() };
        if let Some(among) = among {
            search.left.keep(among);
        }
        if search.left.is_empty() {
            return search.left;
        }
        self.ask_slots(job, &mut search);
        if job.asks.verify || job.epoch != self.epoch {
            search.ask_job = self.open.clone();
        }
        if job.epoch == self.epoch {
            for group in &job.asks.groups {
                match self.columns.get(group.symbol as usize) {
                    Some(column) => self.ask_column(job, group, column, &mut search),
                    None => search.ask_job = self.open.clone(),
                }
            }
            for clause in &job.asks.others {
                self.ask_rows(job, clause, &mut search);
            }
        }
        self.settle(job, search)
    }

    /// Asks each clause of the slots about the job.
    fn ask_slots(&self, job: &Prepared, search: &mut Search) {
        for clause in self.clauses.all() {
            let Some(slot) = clause.slots.any().and_then(|slot| self.slot(slot as usize)) else {
                continue;
            };
            if job.is_over() {
                return;
            }
            let scene = job.scene(Values(&job.view), &slot.ad, &job.ad);
            let verdict = clause.ir.truth(&scene).map(|truth| truth == Tri::True);
            search.note(verdict, &clause.slots, Of::Slot);
        }
        self.bounds(job, &mut |verdict, slots| search.note(verdict, slots, Of::Slot));
    }

    /// Asks the job's clauses about one attribute, once for each value of the attribute.
    fn ask_column(&self, job: &Prepared, group: &Group, column: &Column, search: &mut Search) {
        for clause in &group.clauses {
            if column.comparison(clause, &mut |entry| entry.slots.take_from(&mut search.left)) {
                for entry in column.not_numbers() {
                    search.note(self.about(job, clause, entry), &entry.slots, Of::Job);
                }
            } else {
                for entry in column.entries() {
                    search.note(self.about(job, clause, entry), &entry.slots, Of::Job);
                }
            }
        }
    }

    /// Whether a job's clause about one attribute is true of a value.
    fn about(&self, job: &Prepared, clause: &Ir, entry: &Entry) -> Verdict {
        let Some(slot) = entry.slots.any().and_then(|slot| self.slot(slot as usize)) else {
            return Ok(true);
        };
        if job.is_over() {
            return Ok(false);
        }
        let view = Single(entry.value.as_ref());
        let truth = clause.truth(&job.scene(view, &job.ad, &slot.ad))?;
        Ok(truth == Tri::True)
    }

    /// Asks a clause of the job about each slot that is left.
    fn ask_rows(&self, job: &Prepared, clause: &Ir, search: &mut Search) {
        let slots: Vec<u32> = search.left.iter().collect();
        for number in slots {
            let place = number as usize;
            let verdict = match self.slot(place) {
                Some(slot) if !job.is_over() => {
                    self.row(job, place, slot).and_then(|scene| Ok(clause.truth(&scene)? == Tri::True))
                }
                _ => Ok(false),
            };
            match verdict {
                Ok(true) => {}
                Ok(false) => search.left.remove(number),
                Err(Unknown) => search.ask_job.insert(number),
            }
        }
    }

    /// Asks the plain evaluator where it must decide, and returns the slots that match.
    fn settle(&self, job: &Prepared, search: Search) -> Bits {
        let Search { mut left, mut ask_slot, mut ask_job } = search;
        ask_slot.keep(&left);
        for number in ask_slot.iter() {
            let slot = self.slot(number as usize);
            if !slot.is_some_and(|slot| !job.is_over() && job.is_accepted_by(&slot.ad)) {
                left.remove(number);
            }
        }
        ask_job.keep(&left);
        for number in ask_job.iter() {
            let slot = self.slot(number as usize);
            if !slot.is_some_and(|slot| !job.is_over() && job.accepts(&slot.ad)) {
                left.remove(number);
            }
        }
        if job.is_over() { Bits::default() } else { left }
    }
}
