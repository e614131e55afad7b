//! Decides when a status is written. The operator writes an object's status at most once in its pace, however often the
//! object changes (that of a PartitionableSlot whose free resources rest may be written before), and of the statuses of
//! slots at most [`AT_ONCE`] at the same time.

use std::time::Duration;

use model::pool::{Document, Time, Timers};

/// The least time between two writes of one object's status.
const PACE: Duration = Duration::from_secs(1);
/// The least time between two writes of a PartitionableSlot's status. Each claim that begins or ends changes the free resources. On a
/// busy pool the operator would write every object each second, for people who may not look.
const PACE_OF_WHAT_IS_FREE: Duration = Duration::from_secs(5);
/// By how much each resting object, of any kind, lengthens the pace of PartitionableSlots. While the procs of 25 to 150 nodes come and go,
/// the statuses of their PartitionableSlots cost five writes a second together.
const FOR_EACH: Duration = Duration::from_millis(200);
/// The longest pace of PartitionableSlots, however many objects rest.
const SLOWEST: Duration = Duration::from_secs(30);
/// An object that rests is written early once it has stayed the same for this long.
const QUIET: Duration = PACE_OF_WHAT_IS_FREE;

/// How many statuses of slots are written at the same time: several times as many as the API server is asked for at once, so that
/// these writes are as fast as the server bears. A status that is worked out and waits for its turn takes twenty times the memory of a
/// note that the status has changed.
const AT_ONCE: usize = 512;

/// The least time between two writes of this status, where `resting` objects were written a short while ago.
fn pace(document: &Document, resting: usize) -> Duration {
    match document {
        Document::PartitionableSlot(_) => {
            let resting = u32::try_from(resting).unwrap_or(u32::MAX);
            FOR_EACH.saturating_mul(resting).clamp(PACE_OF_WHAT_IS_FREE, SLOWEST)
        }
        _ => PACE,
    }
}

/// The statuses that wait to be written. A look costs as much as there is to write, not as much as waits: there may be a
/// hundred thousand Slots.
#[derive(Debug, Default)]
pub struct Publisher {
    /// When each status that waits may be written, but those of slots.
    waiting: Timers<Document>,
    /// When each status of a slot that waits may be written.
    slots: Timers<Document>,
    /// For each status that was written a short while ago: until when its next write waits.
    rests: Timers<Document>,
}

impl Publisher {
    /// Notes at this time that these documents no longer say what the pool says. The document that has waited longest comes first.
    pub fn mark(&mut self, documents: impl IntoIterator<Item = Document>, now: Time) {
        for document in documents {
            let rests = self.rests.get(&document);
            let waiting = if document.is_of_slot() { &mut self.slots } else { &mut self.waiting };
            let before = waiting.get(&document);
            // An object that rests is written when the rest is over, or earlier once it has stayed the same for long enough.
            let at = rests.map_or_else(|| before.unwrap_or(now), |until| until.min(now + QUIET));
            if before != Some(at) {
                waiting.set(&document, Some(at));
            }
        }
    }

    /// The next document that may be written now; it counts as written. `slots` is the number of statuses of slots that are being
    /// written.
    pub fn due(&mut self, now: Time, slots: usize) -> Option<Document> {
        while self.rests.pop_due(now).is_some() {}
        let of_slot = || (slots < AT_ONCE).then(|| self.slots.pop_due(now)).flatten();
        let document = self.waiting.pop_due(now).or_else(of_slot)?;
        let pace = pace(&document, self.rests.len());
        self.rests.set(&document, Some(now + pace));
        Some(document)
    }

    /// The time at which [`Publisher::due`] next has a document, if `slots` statuses of slots are being written and none of these
    /// writes ends before; `None` if there is none.
    pub fn next(&self, slots: usize) -> Option<Time> {
        let of_slot = self.slots.next().filter(|_| slots < AT_ONCE);
        [self.waiting.next(), of_slot].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::SlotName;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// All documents that are due while this many statuses of slots are being written.
    fn all_due(publisher: &mut Publisher, now: Time, slots: usize) -> Vec<Document> {
        let mut due: Vec<Document> = Vec::new();
        let writing = |due: &[Document]| slots + due.iter().filter(|document| document.is_of_slot()).count();
        while let Some(document) = publisher.due(now, writing(&due)) {
            due.push(document);
        }
        due
    }

    #[test]
    fn an_object_is_written_at_most_once_a_second() {
        let job = Document::Job("u1".into());
        let other = Document::Job("u2".into());
        let mut publisher = Publisher::default();
        publisher.mark([job.clone()], at(0));
        assert_eq!(all_due(&mut publisher, at(0), 0), std::slice::from_ref(&job));
        publisher.mark([job.clone(), other.clone()], at(400));
        assert_eq!(all_due(&mut publisher, at(400), 0), [other]);
        assert_eq!(publisher.next(0), Some(at(1000)));
        publisher.mark([job.clone()], at(401));
        assert_eq!(all_due(&mut publisher, at(999), 0), []);
        assert_eq!(all_due(&mut publisher, at(1000), 0), [job]);
        assert_eq!(publisher.next(0), None);
    }

    /// When the status of the last of so many PartitionableSlots is written, if all of them change at these seconds.
    fn written(count: usize, changes: &[i64]) -> Vec<i64> {
        let pslot =
            |node: usize| Document::PartitionableSlot(SlotName::parse(&format!("slot1@n{node}")).unwrap());
        let mut publisher = Publisher::default();
        let mut written = Vec::new();
        for second in 0..200 {
            if changes.contains(&second) {
                publisher.mark((0..count).map(pslot), at(second * 1000));
            }
            let due = all_due(&mut publisher, at(second * 1000), 0);
            written.extend(due.iter().filter(|document| **document == pslot(count - 1)).map(|_| second));
        }
        assert!(
            publisher.rests.is_empty() && publisher.waiting.is_empty() && publisher.slots.is_empty(),
            "nothing is kept of what is not about to be written"
        );
        written
    }

    #[test]
    fn what_is_free_is_written_at_once_and_then_every_five_seconds() {
        assert_eq!(written(1, &[0]), [0]);
        assert_eq!(written(1, &[0, 1]), [0, 5]);
        assert_eq!(written(1, &(0..12).collect::<Vec<_>>()), [0, 5, 10, 15]);
        assert_eq!(written(1, &[0, 60]), [0, 60]);
    }

    #[test]
    fn what_is_free_in_a_large_pool_is_written_once_it_stays_the_same_or_every_half_minute() {
        assert_eq!(written(400, &[0]), [0]);
        assert_eq!(written(400, &[0, 1, 4, 40, 41, 44, 48]), [0, 9, 40, 53]);
        assert_eq!(written(400, &(0..95).collect::<Vec<_>>()), [0, 30, 60, 90, 99]);
    }

    /// A leader that begins may find that each of its slots shows something old.
    #[test]
    fn of_very_many_slots_some_are_written_at_a_time_and_jobs_do_not_wait_for_them() {
        let slot = |number: usize| Document::Slot(SlotName::parse(&format!("slot1_{number}@n1")).unwrap());
        let mut publisher = Publisher::default();
        publisher.mark((1..=AT_ONCE + 3).map(slot), at(0));
        assert_eq!(all_due(&mut publisher, at(0), 0).len(), AT_ONCE);
        publisher.mark([Document::Job("u1".into())], at(0));
        assert_eq!(publisher.next(AT_ONCE), Some(at(0)));
        assert_eq!(all_due(&mut publisher, at(0), AT_ONCE), [Document::Job("u1".into())]);
        assert_eq!(publisher.next(AT_ONCE), None, "the end of a write comes first");
        assert_eq!(publisher.next(AT_ONCE - 2), Some(at(0)));
        assert_eq!(all_due(&mut publisher, at(0), AT_ONCE - 2).len(), 2);
    }
    /// The API server may refuse the statuses of many slots again and again.
    #[test]
    fn a_slot_whose_status_is_refused_waits_behind_the_others() {
        let slot = |number: usize| Document::Slot(SlotName::parse(&format!("slot1_{number}@n1")).unwrap());
        let mut publisher = Publisher::default();
        publisher.mark((1..=2 * AT_ONCE).map(slot), at(0));
        let first = all_due(&mut publisher, at(0), 0);
        publisher.mark(first.clone(), at(10_000));
        let second = all_due(&mut publisher, at(10_000), 0);
        assert!(second.len() == AT_ONCE && second.iter().all(|document| !first.contains(document)));
    }
}
