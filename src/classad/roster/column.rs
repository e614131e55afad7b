//! One attribute of all slots: which values it has, and which slots have each.

use std::collections::HashMap;
use std::sync::Arc;

use super::ir::{Ir, Symbol, View};
use crate::classad::eval::Tri;
use crate::classad::expr::Binary;
use crate::classad::value::Value;

/// The number of a value in its column.
type ValueId = u32;

/// Stands for the value of a slot that is gone.
const GONE: ValueId = ValueId::MAX;

/// One attribute of all slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// For each slot.
    ids: Vec<ValueId>,
    values: Vec<Entry>,
    index: HashMap<Key, ValueId>,
    /// Entries that no slot has any more.
    free: Vec<ValueId>,
    /// Counts the values that came.
    version: u64,
    sorted: Option<Sorted>,
    /// For each slot, its value as a rank, where that has been asked for; NaN where it is to be asked for
    /// again.
    ranks: Option<Vec<f64>>,
}

/// A value and who has it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `None`: no constant scalar.
    pub(super) value: Option<Value>,
    /// In order.
    pub(super) slots: Vec<u32>,
}

/// What tells values apart.
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

/// The entries by their values: integers, reals that are numbers, and all others.
#[derive(Clone, Debug, Default)]
struct Sorted {
    integers: Vec<(i64, ValueId)>,
    reals: Vec<(f64, ValueId)>,
    others: Vec<ValueId>,
}

impl Column {
    /// Sets a slot's value.
    pub(super) fn set(&mut self, slot: u32, value: Option<Value>) {
        self.unset(slot);
        self.ranks = None;
        let id = self.intern(value);
        let place = slot as usize;
        if place >= self.ids.len() {
            self.ids.resize(place + 1, GONE);
        }
        if let (Some(at), Some(entry)) = (self.ids.get_mut(place), self.values.get_mut(id as usize)) {
            *at = id;
            if let Err(place) = entry.slots.binary_search(&slot) {
                entry.slots.insert(place, slot);
            }
        }
    }

    /// Forgets a slot.
    pub(super) fn unset(&mut self, slot: u32) {
        self.ranks = None;
        let Some(id) = self.ids.get_mut(slot as usize).map(|id| std::mem::replace(id, GONE)) else { return };
        let Some(entry) = self.values.get_mut(id as usize) else { return };
        if let Ok(place) = entry.slots.binary_search(&slot) {
            entry.slots.remove(place);
        }
        if entry.slots.is_empty() {
            self.index.remove(&Key::of(entry.value.as_ref()));
            self.free.push(id);
            self.sorted = None;
        }
    }

    fn intern(&mut self, value: Option<Value>) -> ValueId {
        let key = Key::of(value.as_ref());
        if let Some(id) = self.index.get(&key) {
            return *id;
        }
        self.sorted = None;
        self.version += 1;
        let entry = Entry { value, slots: Vec::new() };
        let reused = self.free.pop();
        let id = reused.unwrap_or_else(|| ValueId::try_from(self.values.len()).unwrap_or(GONE));
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

    /// The number of a slot's value.
    pub(super) fn id(&self, slot: u32) -> Option<ValueId> {
        self.ids.get(slot as usize).copied()
    }

    /// Changes when a value's number begins to mean another value.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The values; those that no slot has any more are among them.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.values
    }

    /// Sorts the values, that [`Column::comparison`] finds its way.
    pub(super) fn sort(&mut self) {
        if self.sorted.is_some() {
            return;
        }
        let mut sorted = Sorted::default();
        for (entry, id) in self.values.iter().zip(0..) {
            match &entry.value {
                _ if entry.slots.is_empty() => {}
                Some(Value::Int(value)) => sorted.integers.push((*value, id)),
                Some(Value::Real(value)) if !value.is_nan() => sorted.reals.push((*value, id)),
                _ => sorted.others.push(id),
            }
        }
        sorted.integers.sort_unstable();
        sorted.reals.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.sorted = Some(sorted);
    }

    /// Makes the values ready for [`Column::rank`].
    pub(super) fn count(&mut self) {
        if self.ranks.is_none() {
            let rank = |id: &ValueId| {
                let value = self.values.get(*id as usize)?.value.as_ref()?;
                Some(value.as_number().unwrap_or(0.0))
            };
            self.ranks = Some(self.ids.iter().map(|id| rank(id).unwrap_or(f64::NAN)).collect());
        }
    }

    /// A slot's value as a rank: 0 where it is no number. `None`: this cannot tell.
    pub(super) fn rank(&self, place: usize) -> Option<f64> {
        self.ranks.as_ref()?.get(place).copied().filter(|rank| !rank.is_nan())
    }

    /// Whether the clause orders this column's numbers by a number, so that those that pass are at one end.
    pub(super) fn orders(clause: &Ir) -> bool {
        threshold(clause).is_some()
    }

    /// Calls back with the entries of which an ordering clause is not true. `false`: the column is not sorted
    /// or it is no such clause, nothing was done.
    pub(super) fn comparison(&self, clause: &Ir, failing: &mut dyn FnMut(&Entry)) -> bool {
        let (Some(sorted), Some((op, bound))) = (&self.sorted, threshold(clause)) else { return false };
        let mut fail = |id: ValueId| {
            if let Some(entry) = self.values.get(id as usize) {
                failing(entry);
            }
        };
        // As the bound is, so are the comparisons: exact between integers, in doubles otherwise.
        let low_passes = matches!(op, Binary::Less | Binary::LessOrEqual);
        let passes = |value: &Value| super::ir::compare(op, value, bound) == Tri::True;
        let split = sorted.integers.partition_point(|(value, _)| passes(&Value::Int(*value)) == low_passes);
        let (low, high) = sorted.integers.split_at_checked(split).unwrap_or_default();
        (if low_passes { high } else { low }).iter().for_each(|(_, id)| fail(*id));
        let split = sorted.reals.partition_point(|(value, _)| passes(&Value::Real(*value)) == low_passes);
        let (low, high) = sorted.reals.split_at_checked(split).unwrap_or_default();
        (if low_passes { high } else { low }).iter().for_each(|(_, id)| fail(*id));
        true
    }

    /// The entries that [`Column::comparison`] says nothing about.
    pub(super) fn not_numbers(&self) -> impl Iterator<Item = &Entry> {
        let ids = self.sorted.as_ref().map_or(&[][..], |sorted| &sorted.others);
        ids.iter().filter_map(|id| self.values.get(*id as usize))
    }
}

/// The operator and the number of a clause that is `attribute < number`, or `<=`, `>`, `>=`.
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

/// One attribute's value, whatever its name.
pub(super) struct Single<'a>(pub(super) Option<&'a Value>);

impl<'a> View<'a> for Single<'a> {
    fn value(&self, _: Symbol) -> Option<&'a Value> {
        self.0
    }
}

/// The values of all attributes, by symbol.
pub(super) struct Values<'a>(pub(super) &'a [Option<Value>]);

impl<'a> View<'a> for Values<'a> {
    fn value(&self, symbol: Symbol) -> Option<&'a Value> {
        self.0.get(symbol as usize)?.as_ref()
    }
}
