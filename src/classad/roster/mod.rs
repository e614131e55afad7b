//! A roster: slots that are made ready for many matches.
//!
//! A negotiator asks the same slots about one job after another. A [`Roster`] answers such questions fast, and always
//! as [`symmetric_match`](super::symmetric_match), [`rank`](super::rank) and [`Expr::eval`](super::Expr::eval) would:
//!
//! - A slot's `Requirements` is lowered against the slot's ad once: what it says about the slot itself is decided,
//!   constants are folded, and clauses are left that only ask about a job. Equal clauses of different slots are one
//!   clause, which is evaluated once for each job.
//! - A job's `Requirements` is lowered the same way. The attributes that its clauses ask for are kept as columns: each
//!   value once, with the slots that have it. A clause about one attribute is evaluated once for each value; if it
//!   compares the attribute with a number, two searches find the slots that fail.
//! - Only the truth of the whole counts, and a chain of `&&` is true if each of its clauses is. So clauses are evaluated
//!   in any order, and the first clause that is not true ends the evaluation.
//! - The negotiator's ranks of a slot are lowered against the slot's ad, too. Jobs for which what is left reads the same
//!   values share the ranks: each slot is ranked once for all of them.
//! - Expressions that cannot be lowered go to the plain evaluator, one pair of job and slot at a time, after all that
//!   could be lowered: expressions that look at expressions or scopes, draw random numbers, make lists, or are huge.
//!
//! | part | holds |
//! | --- | --- |
//! | `lower`, `recall` | partial evaluation: what is left of an expression in its ad; outcomes that are remembered |
//! | `ir`, `calls` | the form of what is left, and its evaluation |
//! | `symbols`, `column`, `members`, `bits` | names, values of slots, sets of slots |
//! | `clauses`, `families` | requirements of slots; those that are bounds |
//! | `prepared`, `memo`, `meter` | a job that is made ready; verdicts that are remembered; what the job has cost |
//! | `one`, `all` | matching a pair; matching all slots |
//! | `ranks`, `questions` | the job's rank of slots; the negotiator's ranks and other questions |
//! | `answers` | the negotiator's ranks of slots, remembered |
//!
//! **Bounds.** Lowered expressions are so small that they cannot hit [`Limits`](super::Limits) of 150,000 steps, 400
//! levels, strings of 256 KiB and lists of 20,000 elements. With narrower limits, nothing is lowered. A lowered
//! expression that costs much for its size, because it reads long texts of the other ad, is left to the plain evaluator.
//!
//! **Shares.** [`Roster::prepare_within`] says how many steps all evaluations for a job may cost together. Once they
//! cost more, nothing matches the job any more, and [`Prepared::is_over`] says so.

mod all;
mod answers;
mod bits;
mod calls;
mod clauses;
mod column;
mod families;
mod ir;
mod lower;
mod members;
mod memo;
mod meter;
mod one;
mod prepared;
mod questions;
mod ranks;
mod recall;
mod symbols;

use smallvec::SmallVec;

pub use prepared::{Matching, Prepared};
pub use ranks::Ranks;

use super::ad::Ad;
use super::env::Env;
use super::expr::Expr;
use bits::Bits;
use clauses::{ClauseId, Clauses};
use column::Column;
use families::{Families, FamilySet};
use ir::Ir;
use lower::Condition;
use memo::Memo;
use meter::Meter;
use prepared::{Asks, Ranking};
use questions::{Asked, Questions, RANKS};
use recall::Recall;
use symbols::Symbols;

/// The most attributes of slots that are kept as columns. When jobs ask for more, the columns are dropped and made
/// anew.
const MAX_COLUMNS: usize = 512;

/// Slots, made ready to be matched with jobs.
///
/// Slots have places, small numbers that the caller gives them.
///
/// ```
/// use classad::{Ad, Env, Roster};
///
/// let mut roster = Roster::new(None, None);
/// roster.set(0, Ad::parse_new("[Memory = 1024; Requirements = TARGET.RequestMemory <= MY.Memory]")?);
/// roster.set(1, Ad::parse_new("[Memory = 4096; Requirements = TARGET.RequestMemory <= MY.Memory]")?);
/// let job = Ad::parse_new("[RequestMemory = 2048; Requirements = true; Rank = TARGET.Memory]")?;
/// let job = roster.prepare(&job, &Env::at(1_769_860_800));
/// assert!(roster.matching(&job).iter().eq([1]));
/// assert_eq!(roster.ranks(&job, 1).map(|ranks| ranks.job), Some(4096.0));
/// # Ok::<(), classad::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Roster {
    slots: Vec<Option<Slot>>,
    /// The slots that may match some job.
    open: Bits,
    /// The open slots whose clauses are not their whole condition: where all clauses are true, the plain evaluator
    /// must decide.
    doubtful: Bits,
    /// The attributes of jobs that slots ask for.
    asked: Symbols,
    clauses: Clauses,
    families: Families,
    /// The attributes of slots that jobs ask for; `columns` has their values.
    wanted: Symbols,
    columns: Vec<Column>,
    /// Counts how often the columns were made anew.
    epoch: u64,
    questions: Questions,
    recall: Recall,
}

/// A slot.
#[derive(Clone, Debug)]
struct Slot {
    ad: Ad,
    // Kept inside the slot: a look elsewhere would cost more than all the rest of matching a pair.
    clauses: SmallVec<[ClauseId; 6]>,
    /// The families in which the slot has a bound.
    families: FamilySet,
    never: bool,
    verify: bool,
    /// The answers to the negotiator's questions about the slot, as far as they are known.
    asked: Asked,
}

impl Roster {
    /// A roster without slots.
    ///
    /// The expressions are `NEGOTIATOR_PRE_JOB_RANK` and `NEGOTIATOR_POST_JOB_RANK`, in which MY is the slot and
    /// TARGET is the job.
    pub fn new(pre_job_rank: Option<Expr>, post_job_rank: Option<Expr>) -> Self {
        Self {
            slots: Vec::new(),
            open: Bits::default(),
            doubtful: Bits::default(),
            asked: Symbols::default(),
            clauses: Clauses::default(),
            families: Families::default(),
            wanted: Symbols::default(),
            columns: Vec::new(),
            epoch: 0,
            questions: Questions::new([pre_job_rank, post_job_rank]),
            recall: Recall::default(),
        }
    }

    /// Adds questions about slots in use: expressions in which MY is the slot and TARGET is the job. Call this before
    /// slots are added.
    #[must_use]
    pub fn with_questions(mut self, exprs: impl IntoIterator<Item = Expr>) -> Self {
        self.questions.add(exprs);
        self
    }

    /// Puts a slot in a place; a slot that is there is replaced. A place beyond 2^32 - 1 is ignored.
    ///
    /// Jobs that were prepared before stay valid.
    pub fn set(&mut self, place: usize, ad: Ad) {
        self.put(place, ad, RANKS);
    }

    /// As [`Roster::set`], for a slot in use: the questions of [`Roster::with_questions`] are also asked about it.
    pub fn set_in_use(&mut self, place: usize, ad: Ad) {
        self.put(place, ad, self.questions.len());
    }

    fn put(&mut self, place: usize, ad: Ad, questions: usize) {
        let Ok(number) = u32::try_from(place) else { return };
        self.clear(place);
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        let condition = Condition::requirements(&ad, &mut self.asked, Some(&mut self.recall));
        if !condition.never {
            self.open.insert(number);
        }
        if condition.verify {
            self.doubtful.insert(number);
        }
        for (name, column) in self.wanted.names().iter().zip(&mut self.columns) {
            column.set(number, lower::closed(&ad, name));
        }
        let (mut clauses, mut families) = (SmallVec::new(), FamilySet::default());
        for clause in condition.clauses {
            if !self.families.take(&clause, number, &mut families) {
                clauses.push(self.clauses.add(clause, number));
            }
        }
        let asked = self.questions.lower(&ad, questions, &mut self.asked);
        let slot = Slot { ad, clauses, families, never: condition.never, verify: condition.verify, asked };
        if let Some(at) = self.slots.get_mut(place) {
            *at = Some(slot);
        }
    }

    /// Removes the slot in a place, and returns its ad.
    pub fn clear(&mut self, place: usize) -> Option<Ad> {
        let slot = self.slots.get_mut(place)?.take()?;
        let number = u32::try_from(place).ok()?;
        self.open.remove(number);
        self.doubtful.remove(number);
        for column in &mut self.columns {
            column.unset(number);
        }
        for clause in slot.clauses {
            self.clauses.remove(clause, number);
        }
        self.families.remove(slot.families, number);
        self.questions.forget(place, &slot.asked);
        Some(slot.ad)
    }

    /// Removes the slots in the places from `places` on.
    pub fn truncate(&mut self, places: usize) {
        for place in places..self.slots.len() {
            self.clear(place);
        }
        self.slots.truncate(places);
    }

    /// The ad of the slot in a place.
    pub fn get(&self, place: usize) -> Option<&Ad> {
        self.slot(place).map(|slot| &slot.ad)
    }

    fn slot(&self, place: usize) -> Option<&Slot> {
        self.slots.get(place)?.as_ref()
    }

    /// Forgets the negotiator's ranks that were found for jobs. Jobs that are prepared afterwards pay for them again, as
    /// they would with a new roster.
    pub fn forget_answers(&mut self) {
        self.questions.forget_answers();
    }

    /// Makes a job ready for matching. The result is valid for this roster only, and for this environment.
    pub fn prepare(&mut self, job: &Ad, env: &Env) -> Prepared {
        self.prepare_within(job, env, u64::MAX)
    }

    /// As [`Roster::prepare`], for a job whose evaluations may cost so many steps in all. Once they cost more, no slot
    /// matches the job.
    pub fn prepare_within(&mut self, job: &Ad, env: &Env, share: u64) -> Prepared {
        if self.columns.len() > MAX_COLUMNS {
            self.columns.clear();
            self.wanted = Symbols::default();
            self.epoch += 1;
        }
        let mut prepared = Prepared {
            ad: job.clone(),
            env: env.clone(),
            epoch: self.epoch,
            view: Vec::new(),
            asks: Asks::of(Condition::unknown()),
            memo: Memo::default(),
            rank: Ranking::Plain,
            kind: None,
            meter: Meter::with_share(share),
        };
        if !lower::allowed(&env.limits) {
            return prepared;
        }
        let condition = Condition::requirements(job, &mut self.wanted, None);
        prepared.meter.pay(condition.size);
        prepared.asks = Asks::of(condition);
        prepared.rank = Ranking::of(lower::attribute(job, "Rank", &mut self.wanted));
        prepared.view = self.asked.names().iter().map(|name| lower::closed(job, name)).collect();
        prepared.kind = self.questions.kind(&prepared);
        self.fill();
        self.ready(&mut prepared);
        prepared
    }

    /// Whether all attributes of slots that an expression reads are constant scalars.
    fn constant(&self, ir: &Ir) -> bool {
        let mut constant = true;
        ir.symbols(&mut |symbol| {
            constant &= self.columns.get(symbol as usize).is_some_and(Column::constant);
        });
        constant
    }

    /// Adds the columns that are missing.
    fn fill(&mut self) {
        for name in self.wanted.names().get(self.columns.len()..).unwrap_or_default() {
            let mut column = Column::default();
            for (slot, number) in self.slots.iter().zip(0..) {
                if let Some(slot) = slot {
                    column.set(number, lower::closed(&slot.ad, name));
                }
            }
            self.columns.push(column);
        }
    }

    /// Sorts what the job searches, and makes room for the verdicts on it.
    fn ready(&mut self, job: &mut Prepared) {
        self.families.sort();
        job.memo = Memo::new(self.clauses.version(), self.clauses.all().len());
        for group in &mut job.asks.groups {
            let Some(column) = self.columns.get_mut(group.symbol as usize) else { continue };
            if group.clauses.iter().any(Column::orders) {
                column.sort();
            }
            group.memo = Memo::new(column.version(), column.entries().len());
        }
        if let Ranking::Ir(ir) = &job.rank
            && let Ir::Other(symbol) = **ir
            && let Some(column) = self.columns.get_mut(symbol as usize)
        {
            column.count();
        }
    }

    /// Whether a job and the slot in a place accept each other: [`symmetric_match`](super::symmetric_match).
    pub fn matches(&self, job: &Prepared, place: usize) -> bool {
        self.slot(place).is_some_and(|slot| self.pair(job, place, slot))
    }

    /// The slots that match a job.
    pub fn matching(&self, job: &Prepared) -> Matching {
        Matching(self.all(job, None))
    }

    /// The slots among `among` that match a job.
    pub fn matching_among(&self, job: &Prepared, among: &Matching) -> Matching {
        Matching(self.all(job, Some(&among.0)))
    }

    /// The answer to a question of [`Roster::with_questions`] about a slot in use and a job, as a number; true is 1,
    /// false is 0. `None`: the answer is no number, or there is no such slot or question.
    pub fn answer(&self, job: &Prepared, place: usize, question: usize) -> Option<f64> {
        self.questions.answer(job, self.slot(place)?, RANKS + question)
    }

    /// As [`Roster::answer`], if the answer is the same for every job; else the outer `None`.
    pub fn constant_answer(&self, place: usize, question: usize) -> Option<Option<f64>> {
        match self.slot(place)?.asked.get(RANKS + question)? {
            Ranking::Constant(answer) => Some(*answer),
            Ranking::Ir(_) | Ranking::Plain => None,
        }
    }

    /// A key of what all ranks and answers depend on. As long as the slots stay, jobs with equal keys have equal ranks
    /// and answers about every slot. `None`: what they depend on is not known.
    pub fn rank_key(&self, job: &Prepared) -> Option<Box<[u8]>> {
        let mut key = Vec::new();
        match &job.rank {
            Ranking::Constant(rank) => key.extend_from_slice(&rank.unwrap_or(0.0).to_bits().to_le_bytes()),
            Ranking::Ir(ir) if job.epoch == self.epoch && self.constant(ir) => {
                key.push(b'i');
                key.extend_from_slice(&self.epoch.to_le_bytes());
                ir.key(&mut key);
            }
            Ranking::Ir(_) | Ranking::Plain => return None,
        }
        self.questions.key(job, &mut key).then(|| key.into())
    }

    /// The ranks of a job and the slot in a place, whether they match or not. `None`: there is no such slot.
    pub fn ranks(&self, job: &Prepared, place: usize) -> Option<Ranks> {
        self.ranker(job).ranks(place)
    }

    /// The ranks of a job and each slot in `matching`, in the order of places.
    pub fn ranked<'a>(
        &'a self,
        job: &'a Prepared,
        matching: Matching,
    ) -> impl Iterator<Item = (usize, Ranks)> + 'a {
        let ranker = self.ranker(job);
        let places = matching.0.into_numbers().map(|place| place as usize);
        places.filter_map(move |place| Some((place, ranker.ranks(place)?)))
    }
}
