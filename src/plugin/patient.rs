//! Waits for what the operator does with many jobs.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

/// How long the operator is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most jobs that are written or waited for at a time.
pub(crate) const AT_ONCE: usize = 16;

/// The patience of a command. A command that has waited in vain once looks only once at each thing that it is still to wait for:
/// an operator that does not answer for one job hardly answers for the next.
#[derive(Debug, Default)]
pub(crate) struct Patient {
    lost: Cell<bool>,
}

impl Patient {
    /// Looks until `done` says so, with a pause between two looks. False if that took too long.
    ///
    /// # Errors
    /// When `done` fails.
    pub(crate) async fn wait<E, F>(&self, pause: Duration, done: impl Fn() -> F) -> Result<bool, E>
    where
        F: Future<Output = Result<bool, E>>,
    {
        let begun = tokio::time::Instant::now();
        loop {
            if done().await? {
                return Ok(true);
            }
            if self.lost.get() || begun.elapsed() >= PATIENCE {
                self.lost.set(true);
                return Ok(false);
            }
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[tokio::test(start_paused = true)]
    async fn patience_is_lost_once_for_all() {
        let (patient, looks) = (Patient::default(), Cell::new(0));
        let after = |least: u32| {
            let looks = &looks;
            move || async move {
                looks.set(looks.get() + 1);
                Ok::<_, Infallible>(looks.get() >= least)
            }
        };
        let pause = Duration::from_millis(100);
        let begun = tokio::time::Instant::now();
        assert_eq!(patient.wait(pause, after(3)).await, Ok(true));
        assert_eq!((begun.elapsed(), looks.get()), (2 * pause, 3));
        assert_eq!(patient.wait(pause, after(u32::MAX)).await, Ok(false));
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE && waited <= PATIENCE + 3 * pause, "{waited:?}");
        let looked = looks.get();
        assert_eq!(patient.wait(pause, after(u32::MAX)).await, Ok(false));
        assert_eq!((begun.elapsed(), looks.get()), (waited, looked + 1));
    }
}
