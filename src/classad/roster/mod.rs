//! Slots made ready for many matches.
//!
//! A negotiator asks the same slots about one job after another. A [`Roster`] holds slots so that this is
//! fast, with the answers of [`symmetric_match`](super::symmetric_match), [`rank`](super::rank) and
//! [`Expr::eval`](super::Expr::eval), always:
//!
//! - A slot's `Requirements` is lowered against its own ad, once: what it says about the slot itself is
//!   decided, constants are folded, and clauses are left that only ask about a job. Equal clauses of
//!   different slots are one, so that each is evaluated once a job.
//! - A job's `Requirements` is lowered the same way. The attributes that its clauses ask for are kept as
//!   columns: each value once, with the slots that have it. A clause about one attribute is evaluated once
//!   a value; where it compares with a number, two searches find the slots that fail.
//! - Only the truth of the whole counts, and a chain of `&&` is true where each of its clauses is; so clauses may be
//!   evaluated in any order, and the first one that is not true ends it.
//! - What cannot be lowered (it looks at expressions or scopes, draws random numbers, makes lists, is huge) goes to the
//!   plain evaluator, a pair at a time, after all that could be lowered.
//!
//! | part | is |
//! | --- | --- |
//! | `lower`, `recall` | partial evaluation: an expression and its ad in, what is left out; what that came to before |
//! | `ir`, `calls` | what is left, and its evaluation |
//! | `symbols`, `column`, `members`, `bits` | names, values of slots, sets of slots |
//! | `clauses`, `families` | requirements of slots; those that are bounds |
//! | `prepared`, `memo` | a job made ready, and what was found out about it |
//! | `one`, `all` | matching a pair; matching all slots |
//! | `ranks`, `questions` | the job's rank of slots; the negotiator's ranks and other questions |
//!
//! **Bounds.** Lowered expressions are so small that none of [`Limits`](super::Limits) could be hit; with
//! limits narrower than that (150,000 steps, 400 levels, 256 KiB of text) nothing is lowered.

mod all;
mod bits;
mod calls;
mod clauses;
mod column;
mod families;
mod ir;
mod lower;
mod members;
mod memo;
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
use prepared::{Asks, Ranking};
use questions::{Asked, Questions, RANKS};
use recall::Recall;
use symbols::Symbols;

/// How many attributes of slots are kept as columns. A job that asks for more makes the roster begin anew.
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
    /// The slots that match some job, as far as one knows.
    open: Bits,
    /// Those of them whose clauses do not say all.
    doubtful: Bits,
    /// Attributes of jobs that slots ask for.
    asked: Symbols,
    clauses: Clauses,
    families: Families,
    /// Attributes of slots that jobs ask for, and their values.
    wanted: Symbols,
    columns: Vec<Column>,
    /// Counts how often the columns began anew.
    epoch: u64,
    questions: Questions,
    recall: Recall,
}

/// A slot.
#[derive(Clone, Debug)]
struct Slot {
    ad: Ad,
    // In here: what is elsewhere costs a pair more than all the rest.
    clauses: SmallVec<[ClauseId; 6]>,
    /// Those of its clauses that are bounds.
    families: FamilySet,
    never: bool,
    verify: bool,
    /// The negotiator's questions about it.
    asked: Asked,
}

impl Roster {
    /// A roster without slots.
    ///
    /// The expressions are `NEGOTIATOR_PRE_JOB_RANK` and `NEGOTIATOR_POST_JOB_RANK`: MY is the slot, TARGET
    /// the job.
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

    /// Has it answer more questions about slots in use: expressions of which MY is the slot, TARGET the job. Before there
    /// are slots.
    #[must_use]
    pub fn with_questions(mut self, exprs: impl IntoIterator<Item = Expr>) -> Self {
        self.questions.add(exprs);
        self
    }

    /// Puts a slot in a place, in the stead of one that is there. Places are numbers below 2^32; what is
    /// beyond is not taken.
    ///
    /// Jobs that are prepared stay so.
    pub fn set(&mut self, place: usize, ad: Ad) {
        self.put(place, ad, RANKS);
    }

    /// As [`Roster::set`], for a slot about which the further questions are asked, too.
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

    /// Takes the slot in a place away.
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
        self.questions.forget(&slot.asked);
        Some(slot.ad)
    }

    /// Takes the slots in this place and after it away.
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

    /// Makes a job ready. It is good for this roster only, and for the circumstances given.
    pub fn prepare(&mut self, job: &Ad, env: &Env) -> Prepared {
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
        };
        if !lower::allowed(&env.limits) {
            return prepared;
        }
        prepared.asks = Asks::of(Condition::requirements(job, &mut self.wanted, None));
        prepared.rank = Ranking::of(lower::attribute(job, "Rank", &mut self.wanted));
        prepared.view = self.asked.names().iter().map(|name| lower::closed(job, name)).collect();
        self.fill();
        self.ready(&mut prepared);
        prepared
    }

    /// Whether all that an expression reads of slots is constant.
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

    /// Makes the columns that the job asks for ready to be asked.
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

    /// Those of some slots that match a job.
    pub fn matching_among(&self, job: &Prepared, among: &Matching) -> Matching {
        Matching(self.all(job, Some(&among.0)))
    }

    /// The answer to one of the further questions about a slot in use and a job, as a number; a truth value is 1 or 0.
    pub fn answer(&self, job: &Prepared, place: usize, question: usize) -> Option<f64> {
        self.questions.answer(job, self.slot(place)?, RANKS + question)
    }

    /// The same, if it does not depend on the job.
    pub fn constant_answer(&self, place: usize, question: usize) -> Option<Option<f64>> {
        match self.slot(place)?.asked.get(RANKS + question)? {
            Ranking::Constant(answer) => Some(*answer),
            Ranking::Ir(_) | Ranking::Plain => None,
        }
    }

    /// What all ranks and answers about any slot depend on: jobs of equal keys have equal ones, as long as the slots stay.
    /// `None`: that is not known.
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

    /// The ranks of a job and the slot in a place, whether they match or not. `None`: there is no slot.
    pub fn ranks(&self, job: &Prepared, place: usize) -> Option<Ranks> {
        self.ranker(job).ranks(place)
    }

    /// The ranks of a job and slots that match it, in the order of places.
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
