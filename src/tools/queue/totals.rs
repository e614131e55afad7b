//! How many jobs are in each state.

use classad::{Ad, Env};

use super::{Source, status};

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// JobStatus 1.
    pub idle: usize,
    /// JobStatus 2, and 6: jobs that transfer output count as running.
    pub running: usize,
    /// JobStatus 3.
    pub removed: usize,
    /// JobStatus 4.
    pub completed: usize,
    /// JobStatus 5.
    pub held: usize,
    /// JobStatus 7.
    pub suspended: usize,
}

impl Totals {
    /// The totals of these jobs.
    pub fn of<'a>(ads: impl IntoIterator<Item = &'a Ad>, env: &Env) -> Self {
        let mut totals = Self::default();
        for ad in ads {
            match status(ad, env) {
                1 => totals.idle += 1,
                2 | 6 => totals.running += 1,
                3 => totals.removed += 1,
                4 => totals.completed += 1,
                5 => totals.held += 1,
                7 => totals.suspended += 1,
                _ => {}
            }
        }
        totals
    }

    fn all(&self) -> usize {
        self.idle + self.running + self.removed + self.completed + self.held + self.suspended
    }

    fn line(&self, of: &str) -> String {
        format!(
            "Total for {of}: {} jobs; {} completed, {} removed, {} idle, {} running, {} held, {} suspended",
            self.all(),
            self.completed,
            self.removed,
            self.idle,
            self.running,
            self.held,
            self.suspended
        )
    }

    /// The totals as an ad, which `-totals -long` prints.
    pub(super) fn ad(&self) -> Ad {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let mut ad = Ad::new()
            .with("MyType", "Summary")
            .with("Jobs", count(self.all()))
            .with("Completed", count(self.completed))
            .with("Removed", count(self.removed))
            .with("Idle", count(self.idle))
            .with("Running", count(self.running))
            .with("Held", count(self.held))
            .with("Suspended", count(self.suspended));
        // There is no scheduler universe here.
        for state in ["Jobs", "Completed", "Removed", "Idle", "Running", "Held"] {
            ad.set(format!("Scheduler{state}").as_str(), 0);
        }
        ad
    }
}

/// The lines under a table. Totals that are not known leave the spaces that condor_q leaves.
pub(super) fn footer(shown: &Totals, source: &Source) -> String {
    let mut lines = vec![shown.line("query")];
    if let Some((name, totals)) = &source.own {
        lines.push(totals.line(name));
    }
    if let Some(totals) = &source.everybody {
        lines.push(totals.line("all users"));
    }
    // condor_q has a column for each number, as wide as the number's name: Jobs, Completed, Removed, Idle, Running, Held, Suspended.
    let blank = match lines.len() {
        1 => " ".repeat(51),
        _ => String::new(),
    };
    lines.join(" \n") + &blank + "\n"
}
