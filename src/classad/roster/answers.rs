//! The negotiator's ranks of slots, remembered.
//!
//! The ranks read much of a slot and little of a job. All jobs for which they read the same values share the answers, so
//! that each slot is ranked once for all of these jobs, whatever the jobs' own ranks are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::questions::RANKS;
use crate::env::Env;

/// For how many kinds of jobs answers are remembered. Most pools have one kind.
const KINDS: usize = 8;

/// The negotiator's ranks of a slot. `None`: the value is no number.
pub(super) type Pair = [Option<f64>; RANKS];

/// The remembered answers for the last few kinds of jobs.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    kinds: Vec<Answers>,
    /// Which kind is forgotten next.
    oldest: usize,
    /// Counts the kinds, to tell them from kinds that are forgotten.
    met: u64,
}

/// A kind of jobs in [`Remembered`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    at: usize,
    number: u64,
}

/// The answers for one kind of jobs.
#[derive(Debug)]
pub(super) struct Answers {
    number: u64,
    env: Env,
    /// The values that the ranks read of such a job.
    key: Box<[u8]>,
    /// By the slots' places; made when the first answer is asked for.
    cells: OnceLock<Box<[Cells]>>,
}

impl Remembered {
    /// Returns the kind of the jobs for which the ranks read the values in `key`. A new kind may replace the oldest
    /// one.
    pub(super) fn kind(&mut self, env: &Env, key: Vec<u8>) -> Kind {
        let known = self.kinds.iter().position(|kind| *kind.key == *key && kind.env == *env);
        if let Some((at, kind)) = known.and_then(|at| Some((at, self.kinds.get(at)?))) {
            return Kind { at, number: kind.number };
        }
        self.met += 1;
        let kind =
            Answers { number: self.met, env: env.clone(), key: key.into(), cells: OnceLock::default() };
        let at = self.oldest;
        self.oldest = (self.oldest + 1) % KINDS;
        match self.kinds.get_mut(at) {
            Some(old) => *old = kind,
            None => self.kinds.push(kind),
        }
        Kind { at, number: self.met }
    }

    /// The answers for a kind of jobs; `None` if the kind is forgotten.
    pub(super) fn answers(&self, kind: Kind) -> Option<&Answers> {
        self.kinds.get(kind.at).filter(|known| known.number == kind.number)
    }

    /// Forgets the answers about the slot in a place.
    pub(super) fn forget(&mut self, place: usize) {
        for kind in &mut self.kinds {
            if let Some(cells) = kind.cells.get_mut().and_then(|cells| cells.get_mut(place)) {
                *cells = Cells::default();
            }
        }
    }

    /// Forgets all answers.
    pub(super) fn clear(&mut self) {
        self.kinds.clear();
        self.oldest = 0;
    }
}

/// A clone starts empty.
impl Clone for Remembered {
    fn clone(&self) -> Self {
        Self { met: self.met, ..Self::default() }
    }
}

impl Answers {
    /// Room for the answers about the slot in a place, among so many. `None`: the slot came later than the room was made.
    pub(super) fn about(&self, place: usize, slots: usize) -> Option<&Cells> {
        self.cells.get_or_init(|| (0..slots).map(|_| Cells::default()).collect()).get(place)
    }
}

/// The answers about one slot. Two threads that find an answer find the same, so no order between them is needed.
#[derive(Debug)]
pub(super) struct Cells([AtomicU64; RANKS]);

/// Stands for an answer that is not known. Both codes are NaNs that no answer is stored as.
const UNKNOWN: u64 = u64::MAX;
const NO_NUMBER: u64 = u64::MAX - 1;

impl Default for Cells {
    fn default() -> Self {
        Self([const { AtomicU64::new(UNKNOWN) }; RANKS])
    }
}

impl Cells {
    /// The answers, if all are known.
    #[inline]
    pub(super) fn all(&self) -> Option<Pair> {
        let codes = self.0.each_ref().map(|cell| cell.load(Relaxed));
        if codes.contains(&UNKNOWN) {
            return None;
        }
        Some(codes.map(|code| (code != NO_NUMBER).then(|| f64::from_bits(code))))
    }

    /// Remembers an answer.
    pub(super) fn keep(&self, rank: usize, answer: Option<f64>) {
        let code = match answer {
            None => NO_NUMBER,
            // All NaNs are equal to expressions.
            Some(number) if number.is_nan() => f64::NAN.to_bits(),
            Some(number) => number.to_bits(),
        };
        if let Some(cell) = self.0.get(rank) {
            cell.store(code, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_remembered_as_it_was() {
        for answer in [Some(0.0), Some(-0.0), Some(-1.5), Some(f64::INFINITY), Some(f64::NAN), None] {
            let cells = Cells::default();
            assert_eq!(cells.all(), None);
            cells.keep(0, answer);
            assert_eq!(cells.all(), None, "the other is not known");
            cells.keep(1, Some(7.0));
            let [first, second] = cells.all().unwrap();
            assert_eq!(first.map(f64::to_bits), answer.map(f64::to_bits));
            assert_eq!(second, Some(7.0));
        }
    }

    #[test]
    fn a_kind_is_forgotten_when_so_many_others_came() {
        let (mut remembered, env) = (Remembered::default(), Env::at(0));
        let first = remembered.kind(&env, vec![0]);
        assert!(remembered.answers(first).unwrap().about(3, 4).is_some(), "there is room for four slots");
        assert!(remembered.answers(first).unwrap().about(4, 5).is_none(), "a fifth came too late");
        for other in 1..8 {
            remembered.kind(&env, vec![other]);
        }
        let again = remembered.kind(&env, vec![0]);
        assert_eq!(again.number, first.number);
        let later = remembered.kind(&Env::at(1), vec![0]);
        assert_ne!(later.number, first.number, "another time is another kind");
        assert!(remembered.answers(first).is_none());
        assert!(remembered.clone().answers(later).is_none());
    }
}
