//! Verdicts that are remembered.

use std::sync::atomic::{AtomicU8, Ordering};

use super::ir::Unknown;

/// Whether a condition is true, or that the plain evaluator must decide.
pub(super) type Verdict = Result<bool, Unknown>;

const YES: u8 = 1;
const NO: u8 = 2;
const UNKNOWN: u8 = 3;

/// Verdicts by number, each computed when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// The version of the table in which the numbers are indices.
    version: u64,
    verdicts: Box<[AtomicU8]>,
}

impl Memo {
    /// Room for verdicts on the numbers below `size` in this version of the table.
    pub(super) fn new(version: u64, size: usize) -> Self {
        Self { version, verdicts: (0..size).map(|_| AtomicU8::new(0)).collect() }
    }

    /// The verdict on a number, which `find` computes if it is not known. With another version, no verdict is known.
    #[inline]
    pub(super) fn verdict(&self, version: u64, number: u32, find: impl FnOnce() -> Verdict) -> Verdict {
        // Two threads that compute the same verdict get the same result, so no order between them is needed.
        let place = self.verdicts.get(number as usize).filter(|_| version == self.version);
        match place.map(|place| place.load(Ordering::Relaxed)) {
            Some(YES) => return Ok(true),
            Some(NO) => return Ok(false),
            Some(UNKNOWN) => return Err(Unknown),
            _ => {}
        }
        let found = find();
        if let Some(place) = place {
            let code = match found {
                Ok(true) => YES,
                Ok(false) => NO,
                Err(Unknown) => UNKNOWN,
            };
            place.store(code, Ordering::Relaxed);
        }
        found
    }
}

/// A clone starts empty.
impl Clone for Memo {
    fn clone(&self) -> Self {
        Self::new(self.version, self.verdicts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_found_once_a_version() {
        let memo = Memo::new(7, 2);
        for (number, verdict) in [(0, Ok(true)), (1, Err(Unknown))] {
            assert_eq!(memo.verdict(7, number, || verdict), verdict);
            assert_eq!(memo.verdict(7, number, || Ok(false)), verdict, "known");
        }
        assert_eq!(memo.verdict(8, 0, || Ok(false)), Ok(false), "another version");
        assert_eq!(memo.verdict(7, 2, || Ok(false)), Ok(false), "no room");
        assert_eq!(memo.clone().verdict(7, 0, || Ok(false)), Ok(false));
    }
}
