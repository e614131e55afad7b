//! A part of a trace, at another pace, of other people.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::{Trace, TraceJob, whole};

/// The name in [`Selection::people`] that stands for all who are not named.
pub const OTHERS: &str = "*";

/// What of a trace to use, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Only jobs that were submitted in this span, in seconds from the trace's first submission. What is taken counts
    /// from the span's start.
    pub window: Range<u64>,
    /// By what times between submissions are multiplied: with 0.5, jobs come twice as fast.
    pub pace: f64,
    /// Who stands for whom, by the owner's name in the trace; `*` is for all who are not named.
    pub people: BTreeMap<String, Person>,
    /// At most so many jobs, the first.
    pub jobs: usize,
}

/// Who submits what an owner of the trace did. What is not said stays as it is in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The owner.
    pub owner: Option<String>,
    /// The accounting group; none where it is empty.
    pub group: Option<String>,
}

impl Default for Selection {
    /// All, as it was.
    fn default() -> Self {
        Self { window: 0..u64::MAX, pace: 1.0, people: BTreeMap::new(), jobs: usize::MAX }
    }
}

/// A selection that selects nothing that makes sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// The window has no second in it.
    #[error("the window ends, at {} s, where it starts, at {} s, or before", .0.end, .0.start)]
    Window(Range<u64>),
    /// The pace is no positive number.
    #[error("the pace is {0}: it must be more than 0 and at most 1000000")]
    Pace(f64),
}

impl Selection {
    fn check(&self) -> Result<(), SelectionError> {
        if self.window.is_empty() {
            return Err(SelectionError::Window(self.window.clone()));
        }
        if !(self.pace > 0.0 && self.pace <= 1e6) {
            return Err(SelectionError::Pace(self.pace));
        }
        Ok(())
    }
}

impl Trace {
    /// The part of the trace that the selection is of. What was skipped stays listed.
    pub fn select(mut self, selection: &Selection) -> Result<Self, SelectionError> {
        selection.check()?;
        let mut people = People::new(&selection.people);
        self.jobs.retain(|job| selection.window.contains(&job.submitted));
        self.jobs.truncate(selection.jobs);
        for job in &mut self.jobs {
            job.submitted = scaled(job.submitted.saturating_sub(selection.window.start), selection.pace);
            people.stand_in(job);
        }
        let start = i64::try_from(selection.window.start).unwrap_or(i64::MAX);
        self.began = self.began.map(|began| began.saturating_add(start));
        Ok(self)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a trace's seconds are below 2^53")]
fn scaled(seconds: u64, pace: f64) -> u64 {
    // What is beyond a thousand years comes no later.
    whole((seconds as f64 * pace).min(super::LONGEST)).unwrap_or(seconds)
}

/// Who stands for whom, with names that jobs share.
struct People<'a> {
    named: BTreeMap<&'a str, StandIn>,
    others: StandIn,
}

#[derive(Clone, Default)]
struct StandIn {
    owner: Option<Arc<str>>,
    group: Grouping,
}

/// What becomes of a job's group.
#[derive(Clone, Default)]
enum Grouping {
    #[default]
    Kept,
    Dropped,
    Replaced(Arc<str>),
}

impl Grouping {
    fn new(group: Option<&str>) -> Self {
        match group {
            None => Self::Kept,
            Some("") => Self::Dropped,
            Some(group) => Self::Replaced(group.into()),
        }
    }
}

impl<'a> People<'a> {
    fn new(people: &'a BTreeMap<String, Person>) -> Self {
        let named: BTreeMap<&str, StandIn> = people
            .iter()
            .map(|(name, person)| {
                let owner = person.owner.as_deref().map(Arc::from);
                (name.as_str(), StandIn { owner, group: Grouping::new(person.group.as_deref()) })
            })
            .collect();
        Self { others: named.get(OTHERS).cloned().unwrap_or_default(), named }
    }

    fn stand_in(&mut self, job: &mut TraceJob) {
        let StandIn { owner, group } = self.named.get(&*job.owner).unwrap_or(&self.others);
        if let Some(owner) = owner {
            job.owner = owner.clone();
        }
        match group {
            Grouping::Kept => {}
            Grouping::Dropped => job.group = None,
            Grouping::Replaced(group) => job.group = Some(group.clone()),
        }
    }
}
