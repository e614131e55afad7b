//! A result that is computed once for many questions, until the pool changes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A result, with the number of the pool's changes and the second for which it was computed.
type Entry<T> = (u64, i64, Arc<T>);

/// A place for one result. A clone of the place is empty.
pub(super) struct LatestResult<T>(Mutex<Option<Entry<T>>>);

impl<T> LatestResult<T> {
    /// The result for this number of changes and this second. `make` computes the result if another one is kept.
    pub(super) fn at(&self, changes: u64, second: i64, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((known, of, result)) if (*known, *of) == (changes, second) => Arc::clone(result),
            _ => {
                let result = Arc::new(make());
                *kept = Some((changes, second, Arc::clone(&result)));
                result
            }
        }
    }
}

impl<T> Default for LatestResult<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Clone for LatestResult<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> fmt::Debug for LatestResult<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LatestResult")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_holds_until_something_changes_or_a_second_passes() {
        let kept = LatestResult::default();
        let made = [(1, 5, 'a'), (1, 5, 'b'), (2, 5, 'c'), (2, 6, 'd'), (2, 6, 'e')]
            .map(|(changes, second, result)| *kept.at(changes, second, || result));
        assert_eq!(made, ['a', 'a', 'c', 'd', 'd']);
        assert_eq!(*kept.clone().at(2, 6, || 'f'), 'f');
    }
}
