//! The queue of what will happen, in the order of time. Entries of one time come in the order in which they were
//! scheduled.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::pool::backfill::Plan;
use model::pool::{Event, JobUid, MachineName, PodPlan, PodRef, PodUid, Time};

/// Something that will happen.
#[derive(Debug)]
pub enum Happening {
    /// A source submits its next job.
    Arrival(usize),
    /// The owner of a machine may come or go.
    Owner(usize),
    /// A machine leaves the pool.
    Leaves(usize),
    /// A machine comes back.
    Returns(usize),
    /// The pool receives an event.
    Heard(Box<Event>),
    /// The API server makes a pod.
    MakePod(Box<PodPlan>),
    /// A pod's container starts.
    PodStarts(PodUid),
    /// A pod's container ends by itself.
    PodEnds(PodUid),
    /// The API server deletes a pod with this grace in seconds, or with the pod's own grace. A grace of 0 deletes the
    /// pod at once, because its node is gone and no kubelet can confirm its end.
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
    /// The agent of a pod's machine suspends the pod (true) or resumes it (false).
    Suspend(PodRef, bool),
    /// The agent of a machine has run its benchmarks.
    Benchmarked(MachineName),
    /// The API server takes the finalizer off a pod, and deletes the pod if the flag is set.
    UntrackPod(PodRef, bool),
    /// The API server takes a write of a job's status.
    Status(JobUid),
    /// The measurements are sampled.
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

/// The queue of future events, by time.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
}

impl Queue {
    /// Adds an entry.
    pub fn schedule(&mut self, at: Time, what: Happening) {
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { at, number: self.scheduled, what }));
    }

    /// The time of the next entry.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes and returns the next entry, if its time is not after `until`.
    pub fn take(&mut self, until: Time) -> Option<Happening> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }
}
