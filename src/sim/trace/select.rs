//! Selects a part of a trace, changes its pace, and replaces its owners.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::{Trace, TraceJob, whole};

/// The name in [`Selection::people`] that stands for all owners who are not named there.
pub const OTHERS: &str = "*";

/// Which part of a trace to use, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The span whose jobs are used, in seconds from the trace's first submission. In the result, submissions count
    /// from the start of the span.
    pub window: Range<u64>,
    /// The factor for the times between submissions: with 0.5, jobs come twice as fast.
    pub pace: f64,
    /// Who replaces each owner of the trace, by the owner's name; `*` is for all who are not named.
    pub people: BTreeMap<String, Person>,
    /// The most jobs that are used: the first of the window.
    pub jobs: usize,
}

/// Who submits the jobs of an owner of the trace. A name that is unset stays as it is in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The new owner.
    pub owner: Option<String>,
    /// The new accounting group; an empty text removes the group.
    pub group: Option<String>,
}

impl Default for Selection {
    /// The whole trace, unchanged.
    fn default() -> Self {
        Self { window: 0..u64::MAX, pace: 1.0, people: BTreeMap::new(), jobs: usize::MAX }
    }
}

/// Why a selection makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// The window has no second in it.
    #[error("the window ends, at {} s, where it starts, at {} s, or before", .0.end, .0.start)]
    Window(Range<u64>),
    /// The pace is not a positive number, or is too large.
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
    /// The selected part of the trace. The list of skipped lines stays whole.
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
    // No job comes later than after a thousand years.
    whole((seconds as f64 * pace).min(super::LONGEST)).unwrap_or(seconds)
}

/// Who replaces each owner. All jobs of one owner share the texts of the new names.
struct People<'a> {
    named: BTreeMap<&'a str, StandIn>,
    others: StandIn,
}

#[derive(Clone, Default)]
struct StandIn {
    owner: Option<Arc<str>>,
    group: Grouping,
}

/// The rule for a job's accounting group.
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
