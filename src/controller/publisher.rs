//! Decides when a status is written: each object's at most once in a while, however often it changes.

use std::time::Duration;

use model::pool::{Document, Time, Timers};

/// The least time between two writes of one object's status.
const PACE: Duration = Duration::from_secs(1);
/// The least time between two writes of a PartitionableSlot's status. Each claim that is made or over changes what is free, and
/// on a busy pool every object would be written each second for people who may not look.
const PACE_OF_WHAT_IS_FREE: Duration = Duration::from_secs(5);

/// The least time between two writes of this status.
const fn pace(document: &Document) -> Duration {
    match document {
        Document::PartitionableSlot(_) => PACE_OF_WHAT_IS_FREE,
        _ => PACE,
    }
}

/// The statuses that wait to be written. A look costs as much as there is to write, not as much as waits: there may be a
/// hundred thousand Slots.
#[derive(Debug, Default)]
pub struct Publisher {
    /// When each status that waits may be written.
    waiting: Timers<Document>,
    /// For each status that was written a short while ago: until when its next write waits.
    rests: Timers<Document>,
}

impl Publisher {
    /// Notes that these documents no longer say what the pool says.
    pub fn mark(&mut self, documents: impl IntoIterator<Item = Document>) {
        for document in documents {
            if self.waiting.get(&document).is_none() {
                self.waiting.set(&document, Some(self.rests.get(&document).unwrap_or_default()));
            }
        }
    }

    /// The documents that may be written now, in their order. They count as written.
    pub fn due(&mut self, now: Time) -> Vec<Document> {
        while self.rests.pop_due(now).is_some() {}
        let mut due = Vec::new();
        while let Some(document) = self.waiting.pop_due(now) {
            self.rests.set(&document, Some(now + pace(&document)));
            due.push(document);
        }
        due.sort_unstable();
        due
    }

    /// The time at which [`Publisher::due`] next has a document; `None` if no document waits.
    pub fn next(&self) -> Option<Time> {
        self.waiting.next()
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

    #[test]
    fn what_is_free_is_written_at_once_and_then_every_five_seconds() {
        let at = |millis| Time::from_millis(millis);
        let pslot = Document::PartitionableSlot(model::pool::SlotName::parse("slot1@n1").unwrap());
        let mut publisher = Publisher::default();
        let mut written = Vec::new();
        for second in 0..12 {
            publisher.mark([pslot.clone()]);
            written.extend(publisher.due(at(second * 1000)).iter().map(|_| second));
        }
        assert_eq!(written, [0, 5, 10]);
        assert!(publisher.due(at(14_999)).is_empty());
        assert_eq!((publisher.next(), publisher.due(at(15_000)).len()), (Some(at(15_000)), 1));
        publisher.due(at(30_000));
        assert!(
            publisher.rests.is_empty() && publisher.waiting.is_empty(),
            "nothing is kept of what is not about to be written"
        );
    }
}
