//! What happens next, in the order of times; at one time in the order in which it was said.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::pool::backfill::Plan;
use model::pool::{Event, JobUid, MachineName, PodPlan, PodRef, PodUid, Time};

/// Something that will happen.
#[derive(Debug)]
pub enum Happening {
    /// A source submits its next job.
    Arrival(usize),
    /// The owner of a machine comes, goes, or neither.
    Owner(usize),
    /// A machine leaves the pool.
    Leaves(usize),
    /// A machine comes back.
    Returns(usize),
    /// The pool hears of something.
    Heard(Box<Event>),
    /// The API server makes a pod.
    MakePod(Box<PodPlan>),
    /// A pod's container starts.
    PodStarts(PodUid),
    /// A pod's container ends by itself.
    PodEnds(PodUid),
    /// The API server deletes a pod, with this grace in seconds or its own; with none by force, where nobody is left to
    /// confirm it.
    DeletePod(PodRef, Option<u32>),
    /// A deleted pod's container has ended.
    PodKilled(PodUid),
    /// The API server makes a backfill pod.
    MakeBackfill(Box<Plan>),
    /// A backfill pod's container starts.
    BackfillStarts(PodUid),
    /// The API server deletes a backfill pod, with this grace in seconds or its own.
    DeleteBackfill(PodUid, Option<u32>),
    /// A deleted backfill pod's container has ended.
    BackfillEnds(PodUid),
    /// The agent of a pod's machine suspends it, or lets it go on.
    Suspend(PodRef, bool),
    /// The agent of a machine has run its benchmarks.
    Benchmarked(MachineName),
    /// The API server takes the finalizer off a pod, and deletes it if so asked.
    ReleasePod(PodRef, bool),
    /// A job's status is written.
    Status(JobUid),
    /// The tables get a row.
    Sample,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    number: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The events to come.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    said: u64,
}

impl Queue {
    /// Says what will happen.
    pub fn say(&mut self, at: Time, what: Happening) {
        self.said += 1;
        self.heap.push(Reverse(Entry { at, number: self.said, what }));
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// What happens next, if it happens until then.
    pub fn take(&mut self, until: Time) -> Option<Happening> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }
}
