//! The negotiator's own ranks of slots.
//!
//! They are about slots; of a job they ask little, and most jobs answer alike. So the ranks of all slots
//! are kept for the answers of the last few jobs.

use super::column::Values;
use super::ir::{Ir, Scene, Symbol, Unknown, number, value_key};
use super::prepared::{Prepared, Ranking};
use super::symbols::Symbols;
use super::{Slot, lower};
use crate::classad::ad::Ad;
use crate::classad::env::Env;
use crate::classad::expr::Expr;

/// For how many different answers of jobs the ranks are kept.
const TABLES: usize = 8;

/// The ranks of slots.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    exprs: [Option<Expr>; 2],
    /// The attributes of jobs that the ranks of slots read, in order.
    reads: Vec<Symbol>,
    kept: Vec<Table>,
    /// Which table is the next to go.
    next: usize,
    /// Counts the tables that were made, to tell those that are gone.
    made: usize,
}

/// The ranks of all slots for jobs of one kind.
#[derive(Clone, Debug)]
struct Table {
    number: usize,
    env: Env,
    /// The answers, as [`value_key`] tells them apart.
    view: Vec<u8>,
    /// By place; `None` until a second job asks. There is none for a slot whose ranks depend on more.
    ranks: Option<Vec<Option<Pair>>>,
}

/// Two ranks of a slot.
pub(super) type Pair = [Option<f64>; 2];

impl Tables {
    pub(super) fn new(exprs: [Option<Expr>; 2]) -> Self {
        Self { exprs, reads: Vec::new(), kept: Vec::new(), next: 0, made: 0 }
    }

    /// Makes the ranks of a slot ready.
    pub(super) fn lower(&mut self, ad: &Ad, symbols: &mut Symbols) -> [Ranking; 2] {
        self.changed();
        let reads = &mut self.reads;
        self.exprs.each_ref().map(|expr| {
            let Some(expr) = expr else { return Ranking::Constant(None) };
            let ranking = Ranking::of(lower::expression(ad, expr, symbols));
            if let Ranking::Ir(ir) = &ranking {
                note_reads(ir, reads);
            }
            ranking
        })
    }

    /// Forgets what it knows: the slots are others.
    pub(super) fn changed(&mut self) {
        self.kept.clear();
    }

    /// The number of the table for jobs like this one, if there is reason to have one: it is made when the second job
    /// asks.
    pub(super) fn find(&mut self, job: &Prepared, slots: &[Option<Slot>]) -> Option<usize> {
        let mut view = Vec::new();
        for symbol in &self.reads {
            // What a job answers may be no constant: then jobs of equal answers are not alike.
            value_key(job.view.get(*symbol as usize)?.as_ref()?, &mut view);
        }
        let known = self.kept.iter().position(|table| table.env == job.env && table.view == view);
        let Some(known) = known else {
            self.made += 1;
            let table = Table { number: self.made, env: job.env.clone(), view, ranks: None };
            match self.kept.get_mut(self.next) {
                Some(old) => *old = table,
                None => self.kept.push(table),
            }
            self.next = (self.next + 1) % TABLES;
            return None;
        };
        let missing = self.kept.get(known)?.ranks.is_none();
        let ranks = missing.then(|| {
            let one = |slot: &Option<Slot>| slot.as_ref().and_then(|slot| lowered(job, slot));
            slots.iter().map(one).collect()
        });
        let table = self.kept.get_mut(known)?;
        table.ranks = ranks.or(table.ranks.take());
        Some(table.number)
    }

    /// The ranks of slots for a job, by place, as far as they are known.
    pub(super) fn known(&self, job: &Prepared) -> &[Option<Pair>] {
        let table = job.table.and_then(|number| self.kept.iter().find(|table| table.number == number));
        table.and_then(|table| table.ranks.as_deref()).unwrap_or_default()
    }

    /// The ranks of a slot for a job.
    pub(super) fn evaluate(&self, job: &Prepared, slot: &Slot) -> Pair {
        let mut pair = [None; 2];
        for ((rank, ranking), expr) in pair.iter_mut().zip(&slot.ranks).zip(&self.exprs) {
            *rank = value(ranking, job, slot).unwrap_or_else(|Unknown| plain(expr.as_ref(), slot, job));
        }
        pair
    }
}

/// The ranks of a slot, if they depend on nothing but what the slot asks of the job.
fn lowered(job: &Prepared, slot: &Slot) -> Option<Pair> {
    let [pre_job, post_job] = &slot.ranks;
    Some([value(pre_job, job, slot).ok()?, value(post_job, job, slot).ok()?])
}

fn value(ranking: &Ranking, job: &Prepared, slot: &Slot) -> Result<Option<f64>, Unknown> {
    let scene = Scene { view: Values(&job.view), my: &slot.ad, target: &job.ad, env: &job.env };
    match ranking {
        Ranking::Constant(rank) => Ok(*rank),
        Ranking::Ir(ir) => Ok(number(&ir.eval(&scene)?)),
        Ranking::Plain => Err(Unknown),
    }
}

fn plain(expr: Option<&Expr>, slot: &Slot, job: &Prepared) -> Option<f64> {
    expr?.eval(Some(&slot.ad), Some(&job.ad), &job.env).as_number()
}

/// Adds the attributes that an expression reads.
fn note_reads(ir: &Ir, reads: &mut Vec<Symbol>) {
    ir.symbols(&mut |symbol| {
        if let Err(place) = reads.binary_search(&symbol) {
            reads.insert(place, symbol);
        }
    });
}
