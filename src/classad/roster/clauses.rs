//! The requirements of slots: each distinct clause once, with the slots that require it.

use std::collections::HashMap;

use super::ir::Ir;
use super::members::Members;

/// The number of a clause.
pub(super) type ClauseId = u32;

/// A clause, and the slots that require it.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) ir: Ir,
    key: Box<[u8]>,
    pub(super) slots: Members,
}

/// The clauses of all slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Clauses {
    all: Vec<Clause>,
    index: HashMap<Box<[u8]>, ClauseId>,
    free: Vec<ClauseId>,
    /// Counts the clauses that were added.
    version: u64,
}

impl Clauses {
    /// Notes that a slot requires a clause, and returns the clause's number.
    pub(super) fn add(&mut self, ir: Ir, slot: u32) -> ClauseId {
        let mut key = Vec::new();
        ir.key(&mut key);
        let id = match self.index.get(key.as_slice()) {
            Some(id) => *id,
            None => self.create(ir, key.into()),
        };
        if let Some(clause) = self.all.get_mut(id as usize) {
            clause.slots.insert(slot);
        }
        id
    }

    fn create(&mut self, ir: Ir, key: Box<[u8]>) -> ClauseId {
        self.version += 1;
        let clause = Clause { ir, key: key.clone(), slots: Members::default() };
        let reused = self.free.pop();
        let id = reused.unwrap_or_else(|| ClauseId::try_from(self.all.len()).unwrap_or(ClauseId::MAX));
        match self.all.get_mut(id as usize) {
            Some(old) => *old = clause,
            None => self.all.push(clause),
        }
        self.index.insert(key, id);
        id
    }

    /// Notes that a slot no longer requires a clause.
    pub(super) fn remove(&mut self, id: ClauseId, slot: u32) {
        let Some(clause) = self.all.get_mut(id as usize) else { return };
        if clause.slots.is_empty() {
            return;
        }
        clause.slots.remove(slot);
        if clause.slots.is_empty() {
            self.index.remove(&clause.key);
            self.free.push(id);
        }
    }

    /// The clause with this number.
    pub(super) fn get(&self, id: ClauseId) -> Option<&Clause> {
        self.all.get(id as usize)
    }

    /// A number that changes when a clause's number begins to mean another clause.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// All clauses, with those that no slot requires any more.
    pub(super) fn all(&self) -> &[Clause] {
        &self.all
    }
}
