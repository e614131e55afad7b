//! How far the watches are: which of them have not told everything, and how many objects nobody could decode.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::cache::Kind;
use answers::decode::short;
use model::pool::Time;

/// `/readyz` reports a watch that has not told everything for this long. A list of many objects takes less, and so does
/// a restart of the API server.
const STALE_AFTER: Duration = Duration::from_mins(3);
/// The longest error that is told, in characters.
const LONGEST_ERROR: usize = 300;

/// How far all watches are.
#[derive(Debug, Default)]
pub struct Progress(Mutex<BTreeMap<Kind, State>>);

/// How far one watch is.
#[derive(Debug, Default)]
struct State {
    /// None while the watch has told everything.
    behind: Option<Behind>,
    undecodable: usize,
}

/// A watch that has not told everything.
#[derive(Debug)]
struct Behind {
    since: Time,
    error: Option<String>,
}

impl Progress {
    fn states(&self) -> MutexGuard<'_, BTreeMap<Kind, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a watch has begun, or has failed with `error`. From now on the watch may have changes to tell.
    pub fn behind(&self, kind: Kind, error: Option<&str>, now: Time) {
        let mut states = self.states();
        let behind = &mut states.entry(kind).or_default().behind;
        let behind = behind.get_or_insert(Behind { since: now, error: None });
        if let Some(error) = error {
            behind.error = Some(short(error, LONGEST_ERROR));
        }
    }

    /// Notes that a watch has told everything, and now tells what changes.
    pub fn caught_up(&self, kind: Kind) {
        self.states().entry(kind).or_default().behind = None;
    }

    /// How many objects of a kind cannot be decoded now.
    pub fn undecodable(&self, kind: Kind, count: usize) {
        self.states().entry(kind).or_default().undecodable = count;
    }

    /// For each kind: its plural, for how long its watch has not told everything, and how many of its objects cannot be
    /// decoded.
    pub fn each(&self, now: Time, mut tell: impl FnMut(&'static str, Duration, usize)) {
        for (kind, state) in self.states().iter() {
            let stale = state.behind.as_ref().map_or(Duration::ZERO, |behind| now.since(behind.since));
            tell(kind.plural(), stale, state.undecodable);
        }
    }

    /// The watches that have not told everything for [`STALE_AFTER`], and why, as a sentence; none if all have.
    pub fn complaint(&self, now: Time) -> Option<String> {
        let states = self.states();
        let stale = states.iter().filter_map(|(kind, state)| {
            let behind = state.behind.as_ref()?;
            let stale = now.since(behind.since);
            let error = behind.error.as_deref().unwrap_or("the list has not ended");
            (stale >= STALE_AFTER).then(|| {
                format!(
                    "the watch of {} has not told everything for {} s: {error}",
                    kind.plural(),
                    stale.as_secs()
                )
            })
        });
        let all: Vec<String> = stale.collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Kind = Kind::of(&("Pod", "pods"));

    #[test]
    fn a_watch_that_tells_nothing_for_minutes_is_named_with_its_last_error() {
        let at = Time::from_secs;
        let progress = Progress::default();
        progress.behind(PODS, None, at(100));
        assert_eq!(progress.complaint(at(279)), None);
        assert!(
            progress
                .complaint(at(280))
                .unwrap()
                .ends_with("pods has not told everything for 180 s: the list has not ended")
        );
        for error in ["first".to_owned(), "x".repeat(900)] {
            progress.behind(PODS, Some(&error), at(290));
        }
        let complaint = progress.complaint(at(300)).unwrap();
        assert!(complaint.contains("for 200 s: xxx") && complaint.chars().count() < 400, "{complaint}");
        let mut told = Vec::new();
        progress.undecodable(PODS, 2);
        progress.each(at(300), |kind, stale, undecodable| told.push((kind, stale.as_secs(), undecodable)));
        progress.caught_up(PODS);
        progress.each(at(300), |kind, stale, undecodable| told.push((kind, stale.as_secs(), undecodable)));
        assert_eq!(told, [("pods", 200, 2), ("pods", 0, 2)]);
        assert_eq!(progress.complaint(at(9999)), None);
    }
}
