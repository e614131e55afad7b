//! One attribute of all slots: its values, and which slots have each value.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ir::{Ir, Symbol, View};
use super::members::Members;
use crate::eval::Tri;
use crate::expr::Binary;
use crate::value::Value;

/// The number of a value in its column.
type ValueId = u32;

/// Stands for the value of a slot that was removed.
const GONE: ValueId = ValueId::MAX;

/// One attribute of all slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// The number of each slot's value.
    ids: Vec<ValueId>,
    values: Vec<Entry>,
    index: HashMap<Key, ValueId>,
    /// Entries that no slot has any more, to be used again.
    free: Vec<ValueId>,
    /// Counts the values that were added.
    version: u64,
    sorted: Option<Sorted>,
    /// Each slot's value as a rank, once somebody asked for ranks. NaN: the rank must be computed.
    ranks: Option<Vec<f64>>,
}

/// A value, and the slots that have it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `None`: the slots' values are no constant scalars.
    pub(super) value: Option<Value>,
    pub(super) slots: Members,
}

/// Identifies a value: equal keys are the same value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Other,
    Undefined,
    Error,
    Bool(bool),
    Int(i64),
    Real(u64),
    Str(Arc<str>),
}

impl Key {
    fn of(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Undefined) => Self::Undefined,
            Some(Value::Error) => Self::Error,
            Some(Value::Bool(value)) => Self::Bool(*value),
            Some(Value::Int(value)) => Self::Int(*value),
            Some(Value::Real(value)) => Self::Real(value.to_bits()),
            Some(Value::Str(text)) => Self::Str(text.clone()),
            _ => Self::Other,
        }
    }
}

/// The entries sorted by value: integers, reals except NaN, and all others.
#[derive(Clone, Debug, Default)]
struct Sorted {
    integers: BTreeMap<i64, ValueId>,
    reals: BTreeMap<Real, ValueId>,
    others: BTreeSet<ValueId>,
}

/// A real that is not NaN, in numeric order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Real(f64);

impl Eq for Real {}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Sorted {
    fn insert(&mut self, id: ValueId, value: Option<&Value>) {
        match value {
            Some(Value::Int(value)) => self.integers.insert(*value, id).is_none(),
            Some(Value::Real(value)) if !value.is_nan() => self.reals.insert(Real(*value), id).is_none(),
            _ => self.others.insert(id),
        };
    }

    fn remove(&mut self, id: ValueId, value: Option<&Value>) {
        match value {
            Some(Value::Int(value)) => self.integers.remove(value).is_some(),
            Some(Value::Real(value)) if !value.is_nan() => self.reals.remove(&Real(*value)).is_some(),
            _ => self.others.remove(&id),
        };
    }
}

impl Column {
    /// Sets a slot's value.
    pub(super) fn set(&mut self, slot: u32, value: Option<Value>) {
        self.unset(slot);
        let place = slot as usize;
        if let Some(ranks) = &mut self.ranks {
            if place >= ranks.len() {
                ranks.resize(place + 1, f64::NAN);
            }
            if let Some(rank) = ranks.get_mut(place) {
                *rank = counted(value.as_ref());
            }
        }
        let id = self.intern(value);
        if place >= self.ids.len() {
            self.ids.resize(place + 1, GONE);
        }
        if let (Some(at), Some(entry)) = (self.ids.get_mut(place), self.values.get_mut(id as usize)) {
            *at = id;
            entry.slots.insert(slot);
        }
    }

    /// Removes a slot.
    pub(super) fn unset(&mut self, slot: u32) {
        if let Some(rank) = self.ranks.as_mut().and_then(|ranks| ranks.get_mut(slot as usize)) {
            *rank = f64::NAN;
        }
        let Some(id) = self.ids.get_mut(slot as usize).map(|id| std::mem::replace(id, GONE)) else { return };
        let Some(entry) = self.values.get_mut(id as usize) else { return };
        entry.slots.remove(slot);
        if entry.slots.is_empty() {
            self.index.remove(&Key::of(entry.value.as_ref()));
            self.free.push(id);
            if let Some(sorted) = &mut self.sorted {
                sorted.remove(id, entry.value.as_ref());
            }
        }
    }

    fn intern(&mut self, value: Option<Value>) -> ValueId {
        let key = Key::of(value.as_ref());
        if let Some(id) = self.index.get(&key) {
            return *id;
        }
        self.version += 1;
        let entry = Entry { value, slots: Members::default() };
        let reused = self.free.pop();
        let id = reused.unwrap_or_else(|| ValueId::try_from(self.values.len()).unwrap_or(GONE));
        if let Some(sorted) = &mut self.sorted {
            sorted.insert(id, entry.value.as_ref());
        }
        match self.values.get_mut(id as usize) {
            Some(old) => *old = entry,
            None => self.values.push(entry),
        }
        self.index.insert(key, id);
        id
    }

    /// A slot's value; `None` if it is no constant scalar.
    pub(super) fn value(&self, slot: u32) -> Option<&Value> {
        let id = self.id(slot)?;
        self.values.get(id as usize)?.value.as_ref()
    }

    /// Whether the value of every slot is a constant scalar.
    pub(super) fn constant(&self) -> bool {
        !self.index.contains_key(&Key::Other)
    }

    /// The number of a slot's value.
    pub(super) fn id(&self, slot: u32) -> Option<ValueId> {
        self.ids.get(slot as usize).copied()
    }

    /// A number that changes when a value's number begins to mean another value.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// All values, with those that no slot has any more.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.values
    }

    /// Sorts the values for [`Column::comparison`].
    pub(super) fn sort(&mut self) {
        if self.sorted.is_some() {
            return;
        }
        let mut sorted = Sorted::default();
        for (entry, id) in self.values.iter().zip(0..).filter(|(entry, _)| !entry.slots.is_empty()) {
            sorted.insert(id, entry.value.as_ref());
        }
        self.sorted = Some(sorted);
    }

    /// Prepares the ranks for [`Column::rank`].
    pub(super) fn count(&mut self) {
        if self.ranks.is_none() {
            let rank =
                |id: &ValueId| counted(self.values.get(*id as usize).and_then(|entry| entry.value.as_ref()));
            self.ranks = Some(self.ids.iter().map(rank).collect());
        }
    }

    /// A slot's value as a rank; 0 if it is no number. `None`: the column cannot tell.
    pub(super) fn rank(&self, place: usize) -> Option<f64> {
        self.ranks.as_ref()?.get(place).copied().filter(|rank| !rank.is_nan())
    }

    /// Whether the clause compares this attribute with a number by an order, so that all values that pass are at one
    /// end.
    pub(super) fn orders(clause: &Ir) -> bool {
        threshold(clause).is_some()
    }

    /// Calls back with the entries that fail an ordering clause. `false`: the column is not sorted, or the clause is
    /// no ordering one, and nothing was done.
    pub(super) fn comparison(&self, clause: &Ir, failing: &mut dyn FnMut(&Entry)) -> bool {
        let (Some(sorted), Some((op, bound))) = (&self.sorted, threshold(clause)) else { return false };
        let mut fail = |id: ValueId| {
            if let Some(entry) = self.values.get(id as usize) {
                failing(entry);
            }
        };
        // The bound decides how numbers compare: integers exactly with integers, everything else as doubles.
        let low_passes = matches!(op, Binary::Less | Binary::LessOrEqual);
        let passes = |value: &Value| super::ir::compare(op, value, bound) == Tri::True;
        let integers = sorted.integers.iter().map(|(value, id)| (Value::Int(*value), *id));
        let reals = sorted.reals.iter().map(|(value, id)| (Value::Real(value.0), *id));
        // The values that fail are at one end.
        if low_passes {
            integers.rev().take_while(|(value, _)| !passes(value)).for_each(|(_, id)| fail(id));
            reals.rev().take_while(|(value, _)| !passes(value)).for_each(|(_, id)| fail(id));
        } else {
            integers.take_while(|(value, _)| !passes(value)).for_each(|(_, id)| fail(id));
            reals.take_while(|(value, _)| !passes(value)).for_each(|(_, id)| fail(id));
        }
        true
    }

    /// The entries for which [`Column::comparison`] does not decide.
    pub(super) fn not_numbers(&self) -> impl Iterator<Item = &Entry> {
        let ids = self.sorted.iter().flat_map(|sorted| &sorted.others);
        ids.filter_map(|id| self.values.get(*id as usize))
    }
}

/// A value as a rank: 0 if it is no number, NaN if it is not known.
fn counted(value: Option<&Value>) -> f64 {
    value.map_or(f64::NAN, |value| value.as_number().unwrap_or(0.0))
}

/// The operator and the number of a clause `attribute < number`, or with `<=`, `>` or `>=`.
fn threshold(clause: &Ir) -> Option<(Binary, &Value)> {
    let Ir::Binary(op, operands) = clause else { return None };
    let ordering =
        matches!(op, Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual);
    match &**operands {
        (Ir::Other(_), Ir::Const(bound)) if ordering && is_number(bound) => Some((*op, bound)),
        _ => None,
    }
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Real(value) => !value.is_nan(),
        _ => false,
    }
}

/// The values of one slot.
pub(super) struct Row<'a> {
    pub(super) columns: &'a [Column],
    pub(super) slot: u32,
}

impl<'a> View<'a> for Row<'a> {
    fn value(&self, symbol: Symbol) -> Option<&'a Value> {
        self.columns.get(symbol as usize)?.value(self.slot)
    }
}

/// The value of one attribute, whichever attribute is asked for.
pub(super) struct Single<'a>(pub(super) Option<&'a Value>);

impl<'a> View<'a> for Single<'a> {
    fn value(&self, _: Symbol) -> Option<&'a Value> {
        self.0
    }
}

/// The values of all attributes, indexed by symbol.
pub(super) struct Values<'a>(pub(super) &'a [Option<Value>]);

impl<'a> View<'a> for Values<'a> {
    fn value(&self, symbol: Symbol) -> Option<&'a Value> {
        self.0.get(symbol as usize)?.as_ref()
    }
}
