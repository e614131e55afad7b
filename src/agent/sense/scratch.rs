//! The free scratch space of a node, measured in a thread of its own.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long a measurement may take for its answer to be waited for. A local file system answers within microseconds.
const PATIENCE: Duration = Duration::from_millis(100);

/// Measures the free space of a directory's file system.
///
/// A file system that hangs, such as NFS whose server is gone, holds whoever asks: a thread that has nothing else to do. As long as it
/// does not answer, the space that was measured last counts.
#[derive(Debug)]
pub struct Scratch {
    ask: Sender<()>,
    answers: Receiver<io::Result<u64>>,
    /// Whether an answer is still to come.
    asked: bool,
    /// The space that was measured last, in KiB.
    last: Option<u64>,
}

impl Scratch {
    /// Measures the file system of this directory.
    pub fn new(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::by(move || super::machine::free_scratch_kib(&directory))
    }

    fn by(measure: impl Fn() -> io::Result<u64> + Send + 'static) -> Self {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        // Ends with the agent. If no thread can be made, nothing is ever measured.
        let _ = std::thread::Builder::new()
            .name("scratch".to_owned())
            .spawn(move || while asked.recv().is_ok() && answer.send(measure()).is_ok() {});
        Self { ask, answers, asked: false, last: None }
    }

    /// Returns the free space in KiB; none if it cannot be measured. Waits a moment for a measurement that begins, and not at all for one
    /// that takes longer.
    pub fn free_kib(&mut self) -> Option<u64> {
        let began = !self.asked;
        if began {
            self.asked = self.ask.send(()).is_ok();
        }
        let answer = self.answers.recv_timeout(if began { PATIENCE } else { Duration::ZERO });
        match answer {
            Ok(measured) => {
                if !began {
                    tracing::info!("the file system of the scratch space answers again");
                }
                (self.asked, self.last) = (false, measured.ok());
            }
            Err(RecvTimeoutError::Timeout) if began => {
                tracing::warn!(
                    "the file system of the scratch space does not answer: the space that was measured last counts"
                );
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.last = None,
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Asks until the answer is the expected one, with a bound that a test under load does not reach.
    fn tells(scratch: &mut Scratch, expected: impl Fn(Option<u64>) -> bool) -> bool {
        (0..60_000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(1));
            expected(scratch.free_kib())
        })
    }

    #[test]
    fn a_file_system_that_hangs_holds_nobody_up_and_what_was_measured_last_counts() {
        let (release, held) = channel();
        let held = Mutex::new(held);
        let mut scratch = Scratch::by(move || held.lock().unwrap().recv().unwrap_or(Ok(0)));
        release.send(Ok(7)).unwrap();
        assert!(tells(&mut scratch, |free| free == Some(7)));
        for _ in 0..3 {
            assert_eq!(scratch.free_kib(), Some(7), "the file system hangs");
        }
        release.send(Ok(9)).unwrap();
        assert!(tells(&mut scratch, |free| free == Some(9)), "the answer came late");
        release.send(Err(io::Error::other("gone"))).unwrap();
        assert!(tells(&mut scratch, |free| free.is_none()), "an old amount must not outlive an error");
    }

    #[test]
    fn free_space_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        assert!(tells(&mut Scratch::new(directory.path()), |free| free.is_some_and(|free| free > 0)));
    }
}
