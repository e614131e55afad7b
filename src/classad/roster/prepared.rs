//! A job, made ready to be matched with the slots of a roster.

use super::bits::Bits;
use super::ir::{Ir, Symbol, Unknown};
use super::lower::Condition;
use crate::classad::ad::Ad;
use crate::classad::env::Env;
use crate::classad::eval::Tri;
use crate::classad::value::Value;

/// A job, made ready by [`Roster::prepare`](super::Roster::prepare) to be matched with slots.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) ad: Ad,
    pub(super) env: Env,
    /// The state of the roster's columns that symbols in here are about.
    pub(super) epoch: u64,
    /// What slots ask of the job, by the roster's symbols.
    pub(super) view: Vec<Option<Value>>,
    /// What the job asks of slots.
    pub(super) asks: Asks,
    pub(super) rank: Ranking,
    /// Where the roster has the negotiator's ranks for jobs like this one.
    pub(super) table: Option<usize>,
}

/// What a job asks of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    pub(super) clauses: Vec<JobClause>,
    /// See [`Condition`].
    pub(super) never: bool,
    pub(super) verify: bool,
}

/// A clause of a job's `Requirements`.
#[derive(Clone, Debug)]
pub(super) struct JobClause {
    pub(super) ir: Ir,
    pub(super) reads: Reads,
    /// The answers for the values of a column, where they are dear.
    pub(super) answers: Option<Answers>,
}

/// What a clause about one attribute says of each of its values.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// [`Column::version`](super::column::Column::version) then.
    pub(super) version: u64,
    /// By the value's number. `Err`: see [`Unknown`].
    pub(super) of: Box<[Result<Tri, Unknown>]>,
}

/// Which attributes of slots a clause reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// None: it is about time.
    Nothing,
    One(Symbol),
    Several,
}

/// An expression whose value is taken as a number.
#[derive(Clone, Debug)]
pub(super) enum Ranking {
    Constant(Option<f64>),
    Ir(Box<Ir>),
    /// Only the plain evaluator can tell.
    Plain,
}

impl Ranking {
    pub(super) fn of<E>(lowered: Result<Ir, E>) -> Self {
        match lowered {
            Ok(Ir::Const(value)) => Self::Constant(value.as_number()),
            Ok(ir) => Self::Ir(Box::new(ir)),
            Err(_) => Self::Plain,
        }
    }
}

impl Asks {
    pub(super) fn of(condition: Condition) -> Self {
        let clause = |ir: Ir| {
            let mut reads = Reads::Nothing;
            ir.symbols(&mut |symbol| {
                reads = match reads {
                    Reads::Nothing => Reads::One(symbol),
                    Reads::One(known) if known == symbol => reads,
                    _ => Reads::Several,
                }
            });
            JobClause { ir, reads, answers: None }
        };
        let mut clauses: Vec<JobClause> = condition.clauses.into_iter().map(clause).collect();
        // Their order does not matter: the dear ones last.
        clauses.sort_by_cached_key(|clause| (clause.reads == Reads::Several, clause.ir.calls()));
        Self { clauses, never: condition.never, verify: condition.verify }
    }
}

/// The slots that match a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching(pub(super) Bits);

impl Matching {
    /// Whether the slot in this place matches.
    pub fn contains(&self, place: usize) -> bool {
        u32::try_from(place).is_ok_and(|place| self.0.contains(place))
    }

    /// How many slots match.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places of the slots that match, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|place| place as usize)
    }
}

/// What the three ranks make of a match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// The value of the first of the roster's expressions; `None` if it is no number or there is no
    /// expression.
    pub pre_job: Option<f64>,
    /// The job's `Rank` of the slot, as [`rank`](crate::classad::rank) has it.
    pub job: f64,
    /// The value of the second of the roster's expressions.
    pub post_job: Option<f64>,
}
