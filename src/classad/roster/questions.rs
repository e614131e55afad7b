//! The negotiator's own questions about slots: how it ranks a slot, and whether a slot in use may be preempted.
//!
//! The questions read much of slots and little of a job, so most jobs give the same answers.

use smallvec::SmallVec;

use super::answers::{Answers, Cells, Kind, Pair, Remembered};
use super::column::Values;
use super::ir::{Ir, Symbol, Unknown, number, value_key};
use super::prepared::{Prepared, Ranking};
use super::symbols::Symbols;
use super::{Slot, lower};
use crate::ad::Ad;
use crate::expr::Expr;

/// The number of ranks, which are the first questions.
pub(super) const RANKS: usize = 2;

/// The questions, and what their answers depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    exprs: Vec<Option<Expr>>,
    /// The attributes of jobs that the answers depend on, sorted.
    reads: Vec<Symbol>,
    /// How many answers need the plain evaluator. They may depend on everything in a job.
    plain: usize,
    /// The ranks that are known already.
    remembered: Remembered,
}

/// The questions about one slot, lowered against its ad.
pub(super) type Asked = SmallVec<[Ranking; RANKS]>;

impl Questions {
    pub(super) fn new(ranks: [Option<Expr>; RANKS]) -> Self {
        Self { exprs: ranks.into(), reads: Vec::new(), plain: 0, remembered: Remembered::default() }
    }

    /// Adds questions about slots in use.
    pub(super) fn add(&mut self, exprs: impl IntoIterator<Item = Expr>) {
        self.exprs.extend(exprs.into_iter().map(Some));
    }

    /// Lowers the first `count` questions against a slot's ad.
    pub(super) fn lower(&mut self, ad: &Ad, count: usize, symbols: &mut Symbols) -> Asked {
        let known = self.reads.len();
        let (reads, plain) = (&mut self.reads, &mut self.plain);
        let lowered = self.exprs.iter().take(count).map(|expr| {
            let Some(expr) = expr else { return Ranking::Constant(None) };
            let ranking = Ranking::of(lower::expression(ad, expr, symbols));
            match &ranking {
                Ranking::Ir(ir) => note_reads(ir, reads),
                Ranking::Plain => *plain += 1,
                Ranking::Constant(_) => {}
            }
            ranking
        });
        let lowered = lowered.collect();
        if self.reads.len() > known {
            // The ranks read more attributes now: jobs that were of one kind may differ in these attributes.
            self.remembered.clear();
        }
        lowered
    }

    /// Forgets the questions about the slot in a place.
    pub(super) fn forget(&mut self, place: usize, asked: &Asked) {
        self.remembered.forget(place);
        self.plain -= asked.iter().filter(|ranking| matches!(ranking, Ranking::Plain)).count();
    }

    /// How many questions there are.
    pub(super) fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Appends what the answers about any slot depend on. `false`: that is not known.
    pub(super) fn key(&self, job: &Prepared, out: &mut Vec<u8>) -> bool {
        if self.plain > 0 {
            return false;
        }
        out.extend_from_slice(&self.reads.len().to_le_bytes());
        self.reads.iter().all(|symbol| {
            let value = job.view.get(*symbol as usize).and_then(Option::as_ref);
            if let Some(value) = value {
                value_key(value, out);
            }
            value.is_some()
        })
    }

    /// The kind of jobs with which a job shares its answers. `None`: the answers may depend on everything in the job.
    pub(super) fn kind(&mut self, job: &Prepared) -> Option<Kind> {
        let mut key = Vec::new();
        self.key(job, &mut key).then(|| self.remembered.kind(&job.env, key))
    }

    /// The ranks that are known for jobs like this one.
    pub(super) fn known(&self, job: &Prepared) -> Option<&Answers> {
        self.remembered.answers(job.kind?)
    }

    /// Forgets which ranks are known.
    pub(super) fn forget_answers(&mut self) {
        self.remembered.clear();
    }

    /// The negotiator's ranks of a slot. The values are remembered in `cells`, but for those that only the plain
    /// evaluator can tell.
    pub(super) fn ranks(&self, job: &Prepared, slot: &Slot, cells: Option<&Cells>) -> Pair {
        let mut ranks = Pair::default();
        for (question, rank) in ranks.iter_mut().enumerate() {
            let lowered = slot.asked.get(question).map_or(Ok(None), |ranking| value(ranking, job, slot));
            if let (Ok(rank), Some(cells)) = (lowered, cells) {
                cells.keep(question, rank);
            }
            *rank = lowered.unwrap_or_else(|Unknown| self.plain(job, slot, question));
        }
        ranks
    }

    /// The answer about a slot, as a number; `None` if it is no number.
    pub(super) fn answer(&self, job: &Prepared, slot: &Slot, question: usize) -> Option<f64> {
        let lowered = value(slot.asked.get(question)?, job, slot);
        lowered.unwrap_or_else(|Unknown| self.plain(job, slot, question))
    }

    /// As [`Questions::answer`], by the plain evaluator.
    fn plain(&self, job: &Prepared, slot: &Slot, question: usize) -> Option<f64> {
        let expr = self.exprs.get(question)?.as_ref()?;
        let done = expr.evaluate(Some(&slot.ad), Some(&job.ad), &job.env);
        job.meter.count(&done);
        done.value.as_number()
    }
}

fn value(ranking: &Ranking, job: &Prepared, slot: &Slot) -> Result<Option<f64>, Unknown> {
    match ranking {
        Ranking::Constant(rank) => Ok(*rank),
        Ranking::Ir(ir) => {
            let scene = job.scene(Values(&job.view), &slot.ad, &job.ad);
            Ok(number(&ir.eval(&scene)?))
        }
        Ranking::Plain => Err(Unknown),
    }
}

/// Adds the attributes that an expression reads to a sorted list.
fn note_reads(ir: &Ir, reads: &mut Vec<Symbol>) {
    ir.symbols(&mut |symbol| {
        if let Err(place) = reads.binary_search(&symbol) {
            reads.insert(place, symbol);
        }
    });
}
