//! Decides when a status is written: each object's at most once in [`PACE`], however often it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::pool::{Document, Time};

/// The least time between two writes of one object's status.
pub const PACE: Duration = Duration::from_secs(1);

/// The statuses that wait to be written, and when each was last written.
#[derive(Debug, Default)]
pub struct Publisher {
    waiting: BTreeSet<Document>,
    last: BTreeMap<Document, Time>,
}

impl Publisher {
    /// Notes that these documents no longer say what the pool says.
    pub fn mark(&mut self, documents: impl IntoIterator<Item = Document>) {
        self.waiting.extend(documents);
    }

    /// The documents that may be written now. They count as written.
    pub fn due(&mut self, now: Time) -> Vec<Document> {
        self.last.retain(|_, at| now.since(*at) < PACE);
        let due: Vec<Document> =
            self.waiting.iter().filter(|d| !self.last.contains_key(*d)).cloned().collect();
        for document in &due {
            self.waiting.remove(document);
            self.last.insert(document.clone(), now);
        }
        due
    }

    /// The time at which [`Publisher::due`] next has a document; `None` if no document waits.
    pub fn next(&self) -> Option<Time> {
        self.waiting.iter().filter_map(|document| self.last.get(document)).min().map(|at| *at + PACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_at_most_once_a_second() {
        let at = |millis| Time::from_millis(millis);
        let job = Document::Job("u1".into());
        let other = Document::Job("u2".into());
        let mut publisher = Publisher::default();
        publisher.mark([job.clone()]);
        assert_eq!(publisher.due(at(0)), std::slice::from_ref(&job));
        publisher.mark([job.clone(), other.clone()]);
        assert_eq!(publisher.due(at(400)), [other]);
        assert_eq!(publisher.next(), Some(at(1000)));
        publisher.mark([job.clone()]);
        assert_eq!(publisher.due(at(999)), []);
        assert_eq!(publisher.due(at(1000)), [job]);
        assert_eq!(publisher.next(), None);
    }
}
