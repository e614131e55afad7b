//! Names by number.

use std::collections::HashMap;
use std::sync::Arc;

use super::calls::Call;
use super::ir::Symbol;
use crate::name::Name;

/// How many calls are kept. Jobs bring new ones without end; those that are in use live on anyway.
const CALLS: usize = 1024;

/// Names of attributes, numbered from 0 in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    numbers: HashMap<Name, Symbol>,
    names: Vec<Name>,
    /// Calls whose arguments are about these symbols, by [`Call::key`]: compiled patterns are in them.
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

    /// The names in order.
    pub(super) fn names(&self) -> &[Name] {
        &self.names
    }

    /// A call that was kept.
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
