//! Names by number.

use std::collections::HashMap;

use super::ir::Symbol;
use crate::classad::name::Name;

/// Names of attributes, numbered from 0 in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    numbers: HashMap<Name, Symbol>,
    names: Vec<Name>,
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
}
