//! Names that many jobs share, each kept once in memory.

use std::collections::HashSet;
use std::sync::Arc;

/// The names so far.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    /// The shared text that equals `name`.
    pub fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}
