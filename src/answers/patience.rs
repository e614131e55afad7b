//! The pauses between the attempts of a watch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{Event, Result};
use tokio::time::Instant;

use crate::Pauses;

/// A watch that has not failed for this long begins with the shortest pause again, though no object changed since.
const FORGETS_AFTER: Duration = Duration::from_mins(2);

/// The pauses of a watch: they grow from one failure to the next, until [`Patience::regain`] is told that objects arrive.
///
/// kube begins with the shortest pause again after each event that is no error. Such an event also says that a list begins, before the
/// first call of the list: by kube's rule the pauses between lists that fail would never grow.
#[derive(Clone)]
pub struct Patience(Arc<Mutex<State>>);

struct State {
    pauses: Pauses,
    failed: Option<Instant>,
}

impl Patience {
    /// The pauses of one watch.
    #[must_use]
    pub fn new(pauses: Pauses) -> Self {
        Self(Arc::new(Mutex::new(State { pauses, failed: None })))
    }

    /// Notes that the API server told about objects, or that a list is complete.
    pub fn regain(&self) {
        self.state().pauses.reset();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let mut state = self.state();
        let failed = state.failed.replace(Instant::now());
        if failed.is_some_and(|failed| failed.elapsed() >= FORGETS_AFTER) {
            state.pauses.reset();
        }
        state.pauses.next()
    }
}

impl Backoff for Patience {
    fn reset(&mut self) {}
}

/// The events of a watch that begins anew after each failure, with [`Patience`].
pub fn patient<K>(
    events: impl Stream<Item = Result<Event<K>>>,
    pauses: Pauses,
) -> impl Stream<Item = Result<Event<K>>> {
    let patience = Patience::new(pauses);
    events.backoff(patience.clone()).inspect(move |event| {
        if matches!(event, Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone)) {
            patience.regain();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_objects_arrive_or_nothing_fails_for_a_while() {
        let mut patience = Patience::new(Pauses::new(7));
        let grown = patience.by_ref().take(6).last().unwrap();
        patience.reset();
        assert!(patience.next().unwrap() > Duration::from_secs(20) && grown > Duration::from_secs(20));
        patience.regain();
        assert!(patience.next().unwrap() < Duration::from_secs(2));
        let grown = patience.by_ref().take(6).last().unwrap();
        assert!(grown > Duration::from_secs(20));
        tokio::time::advance(FORGETS_AFTER).await;
        assert!(patience.next().unwrap() < Duration::from_secs(2));
    }
}
