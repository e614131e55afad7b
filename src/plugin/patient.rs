//! Waits for what the operator does with many jobs.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// How long the operator is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The most jobs that are written or waited for at a time.
pub(crate) const AT_ONCE: usize = 16;

/// How often a write is tried again after somebody else has written the object.
pub(crate) const TRIES: usize = 20;

/// The pause before an object is read again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The patience of a command. Once the operator has done nothing for as long as it is waited for, the command looks only once at each
/// thing that it is still to wait for: an operator that does not answer for some jobs hardly answers for the next.
#[derive(Debug, Default)]
pub(crate) struct Patient {
    /// When the operator was last seen to have done something.
    done: Cell<Option<Instant>>,
    lost: Cell<bool>,
}

impl Patient {
    /// Calls `done` until `done` returns true, with a pause between two calls. Returns false once [`PATIENCE`] is over, or after one call
    /// if the operator was given up before.
    ///
    /// # Errors
    /// When `done` fails.
    pub(crate) async fn wait<E, F>(&self, pause: Duration, done: impl Fn() -> F) -> Result<bool, E>
    where
        F: Future<Output = Result<bool, E>>,
    {
        let begun = Instant::now();
        loop {
            if done().await? {
                self.done.set(Some(Instant::now()));
                self.lost.set(false);
                return Ok(true);
            }
            if self.lost.get() {
                return Ok(false);
            }
            if begun.elapsed() >= PATIENCE {
                self.lost.set(self.done.get().is_none_or(|at| at.elapsed() >= PATIENCE));
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
        let begun = Instant::now();
        assert_eq!(patient.wait(pause, after(3)).await, Ok(true));
        assert_eq!((begun.elapsed(), looks.get()), (2 * pause, 3));
        assert_eq!(patient.wait(pause, after(u32::MAX)).await, Ok(false));
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE && waited <= PATIENCE + 3 * pause, "{waited:?}");
        assert!(patient.lost.get(), "nothing was done for all that time");
        let looked = looks.get();
        assert_eq!(patient.wait(pause, after(u32::MAX)).await, Ok(false));
        assert_eq!((begun.elapsed(), looks.get()), (waited, looked + 1));
    }
    /// One job that waits for something else does not end the patience with the others.
    #[tokio::test(start_paused = true)]
    async fn patience_lasts_while_the_operator_does_something() {
        let patient = Patient::default();
        let pause = Duration::from_millis(100);
        let never = async || Ok::<_, Infallible>(false);
        let others = async {
            for _ in 0..15 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert_eq!(patient.wait(pause, async || Ok::<_, Infallible>(true)).await, Ok(true));
            }
        };
        assert_eq!(futures::join!(patient.wait(pause, never), others).0, Ok(false));
        assert!(!patient.lost.get());
    }
}
