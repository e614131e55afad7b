//! Tasks that wait until their lane may begin more.
//!
//! After a large negotiation cycle, tens of thousands of tasks wait. With the future of its calls and all that belongs to the future, a
//! task takes 2 KB. So a lane has only [`MOST_BEGUN`] tasks that have begun; the others are held here, in the order in which they were
//! asked for.

use std::collections::{BTreeMap, VecDeque};

use tokio::time::Instant;

use super::places::Lane;
use super::task::{Line, Task};
use crate::cache::Identity;

/// The most tasks of a lane that have begun and not ended. They are many more than there are places, so that those that pause do not
/// keep others from beginning.
pub const MOST_BEGUN: usize = 1024;

/// A task whose turn it is among the tasks about its object.
#[derive(Debug)]
pub struct Work {
    /// The task.
    pub task: Task,
    /// Whose places the calls of the task take.
    pub lane: Lane,
    /// The task's object as the operator had last seen it when the turn came to the task.
    pub identity: Option<Identity>,
    /// Since when it is the task's turn.
    pub since: Instant,
}

impl Work {
    /// The work of a task whose turn it is now.
    pub fn new(task: Task, identity: Option<Identity>) -> Box<Self> {
        Box::new(Self { lane: task.lane(), task, identity, since: Instant::now() })
    }
}

/// The lanes that have tasks.
#[derive(Debug, Default)]
pub struct Lanes(BTreeMap<Lane, Tasks>);

/// The tasks of a lane.
#[derive(Debug, Default)]
struct Tasks {
    /// How many have begun and not ended.
    begun: usize,
    /// The lines of those that are held. A line whose task has ended by itself stays until its turn comes.
    held: VecDeque<Line>,
}

impl Lanes {
    /// Whether no lane has tasks.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a task of this lane may begin now.
    pub fn has_room(&self, lane: &Lane) -> bool {
        self.0.get(lane).is_none_or(|tasks| tasks.begun < MOST_BEGUN && tasks.held.is_empty())
    }

    /// Holds the task of a line until the lane has room.
    pub fn hold(&mut self, lane: &Lane, of: Line) {
        self.0.entry(lane.clone()).or_default().held.push_back(of);
    }

    /// Counts a task that begins.
    pub fn begins(&mut self, lane: &Lane) {
        self.0.entry(lane.clone()).or_default().begun += 1;
    }

    /// Counts a task that has ended.
    pub fn ended(&mut self, lane: &Lane) {
        if let Some(tasks) = self.0.get_mut(lane) {
            tasks.begun = tasks.begun.saturating_sub(1);
        }
    }

    /// Takes out the line that has been held for longest, if the lane has room for its task. Forgets a lane without tasks.
    pub fn next(&mut self, lane: &Lane) -> Option<Line> {
        let tasks = self.0.get_mut(lane)?;
        let next = (tasks.begun < MOST_BEGUN).then(|| tasks.held.pop_front()).flatten();
        if next.is_none() && tasks.begun == 0 {
            self.0.remove(lane);
        }
        next
    }
}
