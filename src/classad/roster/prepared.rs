//! A job that is made ready for matching with the slots of a roster.

use super::answers::Kind;
use super::bits::Bits;
use super::ir::{Ir, Scene, Symbol, View};
use super::lower::Condition;
use super::memo::{Memo, Verdict};
use super::meter::Meter;
use crate::ad::Ad;
use crate::env::Env;
use crate::eval::{Evaluation, Tri};
use crate::value::Value;

/// A job that [`Roster::prepare`](super::Roster::prepare) made ready for matching.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) ad: Ad,
    pub(super) env: Env,
    /// The roster's epoch in which symbols of slots' attributes are numbered.
    pub(super) epoch: u64,
    /// The values of the attributes that slots ask for, by the roster's symbols.
    pub(super) view: Vec<Option<Value>>,
    /// The demands of the job on slots.
    pub(super) asks: Asks,
    /// Whether each clause of slots is true of the job.
    pub(super) memo: Memo,
    pub(super) rank: Ranking,
    /// The jobs with which the job shares the negotiator's ranks of slots.
    pub(super) kind: Option<Kind>,
    pub(super) meter: Meter,
}

impl Prepared {
    /// The job's ad.
    pub fn ad(&self) -> &Ad {
        &self.ad
    }

    /// How many steps the evaluations for the job have cost so far.
    pub fn spent(&self) -> u64 {
        self.meter.spent()
    }

    /// Whether the evaluations for the job have cost more than they may: since then, no slot has matched the job.
    pub fn is_over(&self) -> bool {
        self.meter.is_over()
    }

    /// Whether an evaluation of one of the job's own expressions hit [`Bound::Steps`](crate::Bound::Steps). The slots'
    /// expressions are left aside: whether the job or the slot is the cause is not known.
    pub fn is_bounded(&self) -> bool {
        self.meter.is_bounded()
    }

    /// Counts an evaluation of one of the job's expressions that the caller has made.
    pub fn note(&self, done: &Evaluation) {
        self.meter.count_own(done);
    }

    /// Whether the job's `Requirements` is true of a slot.
    pub(super) fn accepts(&self, slot: &Ad) -> bool {
        let done = self.ad.evaluate_attr("Requirements", Some(slot), &self.env);
        self.meter.count_own(&done);
        done.value.as_bool_equiv() == Some(true)
    }

    /// Whether a slot's `Requirements` is true of the job.
    pub(super) fn is_accepted_by(&self, slot: &Ad) -> bool {
        let done = slot.evaluate_attr("Requirements", Some(&self.ad), &self.env);
        self.meter.count(&done);
        done.value.as_bool_equiv() == Some(true)
    }

    /// The scene for expressions of `my`.
    pub(super) fn scene<'a, V>(&'a self, view: V, my: &'a Ad, target: &'a Ad) -> Scene<'a, V> {
        Scene::new(view, my, target, &self.env, &self.meter)
    }
}

/// The demands of a job on slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    /// Clauses about one attribute each.
    pub(super) groups: Vec<Group>,
    /// Clauses about several attributes, or about the time alone.
    pub(super) others: Vec<Ir>,
    /// See [`Condition`].
    pub(super) never: bool,
    pub(super) verify: bool,
}

/// Clauses about one attribute of slots.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) symbol: Symbol,
    pub(super) clauses: Vec<Ir>,
    /// Whether all clauses of the group are true of a value, by the number of the value.
    pub(super) memo: Memo,
}

impl Group {
    /// Whether all clauses are true.
    pub(super) fn holds<'a, V: View<'a>>(&'a self, scene: &Scene<'a, V>) -> Verdict {
        all_true(&self.clauses, scene)
    }
}

/// Whether all clauses are true.
pub(super) fn all_true<'a, V: View<'a>>(clauses: &'a [Ir], scene: &Scene<'a, V>) -> Verdict {
    for clause in clauses {
        if clause.truth(scene)? != Tri::True {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An expression whose value is taken as a number.
#[derive(Clone, Debug)]
pub(super) enum Ranking {
    Constant(Option<f64>),
    Ir(Box<Ir>),
    /// Only the plain evaluator can tell the value.
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
    /// Groups clauses by the attributes that they read. The order of clauses does not matter.
    pub(super) fn of(condition: Condition) -> Self {
        let mut asks = Self { never: condition.never, verify: condition.verify, ..Self::default() };
        for clause in condition.clauses {
            match only_symbol(&clause) {
                Some(symbol) => asks.add(symbol, clause),
                None => asks.others.push(clause),
            }
        }
        asks
    }

    fn add(&mut self, symbol: Symbol, clause: Ir) {
        match self.groups.iter_mut().find(|group| group.symbol == symbol) {
            Some(group) => group.clauses.push(clause),
            None => self.groups.push(Group { symbol, clauses: vec![clause], memo: Memo::default() }),
        }
    }
}

/// The attribute that an expression reads; `None` if it reads several or none.
fn only_symbol(ir: &Ir) -> Option<Symbol> {
    let mut first = None;
    let mut several = false;
    ir.symbols(&mut |symbol| several |= *first.get_or_insert(symbol) != symbol);
    first.filter(|_| !several)
}

/// A set of places of slots, such as those that match a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching(pub(super) Bits);

impl Matching {
    /// Whether the place is in the set.
    pub fn contains(&self, place: usize) -> bool {
        u32::try_from(place).is_ok_and(|place| self.0.contains(place))
    }

    /// Adds a place. A place beyond 2^32 - 1 is ignored.
    pub fn insert(&mut self, place: usize) {
        if let Ok(place) = u32::try_from(place) {
            self.0.insert(place);
        }
    }

    /// Removes a place.
    pub fn remove(&mut self, place: usize) {
        if let Ok(place) = u32::try_from(place) {
            self.0.remove(place);
        }
    }

    /// Whether the two sets have a place in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.meets(&other.0)
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no places.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the places that are not wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let unwanted: Vec<u32> = self.0.iter().filter(|place| !wanted(*place as usize)).collect();
        for place in unwanted {
            self.0.remove(place);
        }
    }

    /// The places in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|place| place as usize)
    }
}
