//! Attribute names by number.

use std::collections::HashMap;
use std::sync::Arc;

use super::calls::Call;
use super::ir::Symbol;
use crate::name::Name;

/// The most calls that are kept for others. Jobs bring new calls without end; a call in use lives on without being
/// kept.
const CALLS: usize = 1024;

/// Attribute names, numbered from 0 in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    numbers: HashMap<Name, Symbol>,
    names: Vec<Name>,
    /// Calls with arguments that use these symbols, by [`Call::key`]. They own compiled patterns.
    calls: HashMap<Box<[u8]>, Arc<Call>>,
}

impl Symbols {
    /// The number of a name.
    pub(super) fn intern(&mut self, name: &Name) -> Symbol {
        if let Some(symbol) = self.numbers.get(name) {
            return *symbol;
        }
        let symbol = Symbol::try_from(self.names.len()).unwrap_or(Symbol::MAX);
        self.numbers.insert(name.clone(), symbol);
        self.names.push(name.clone());
        symbol
    }

    /// The name with this number.
    pub(super) fn name(&self, symbol: Symbol) -> Option<&Name> {
        self.names.get(symbol as usize)
    }

    /// The names in the order of their numbers.
    pub(super) fn names(&self) -> &[Name] {
        &self.names
    }

    /// The call with this key, if it was kept.
    pub(super) fn call(&self, key: &[u8]) -> Option<&Arc<Call>> {
        self.calls.get(key)
    }

    /// Keeps a call for others that are the same.
    pub(super) fn keep(&mut self, call: &Arc<Call>) {
        if self.calls.len() >= CALLS {
            self.calls.clear();
        }
        self.calls.insert(call.key.clone(), Arc::clone(call));
    }
}
