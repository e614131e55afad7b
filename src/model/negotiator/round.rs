//! A negotiation: its state, those of no group, and the bill. `rounds` is where there are groups.

use super::candidates::Judge;
use super::cycle::{Cycle, Outcome, RejectReason, Rejection, Stats, SubmitterInput};
use super::ledger::Ledger;
use super::ready::Ready;
use super::spin::Spins;
use super::time_limits::{TimeLimits, Watch};
use super::turn::{Progress, Table};

/// The state of a negotiation.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) cycle: &'a Cycle,
    pub(super) table: Table<'a>,
    pub(super) ledger: Ledger,
    /// For each submitter, for each request.
    pub(super) progress: Vec<Vec<Progress>>,
    /// Why each submitter's last turn ended before its requests did.
    pub(super) stopped: Vec<Option<RejectReason>>,
    /// The weight of the lightest slot.
    pub(super) min_slot_weight: f64,
    pub(super) time: TimeLimits<'a>,
}

impl<'a> Round<'a> {
    pub(super) fn new(cycle: &'a Cycle, ready: &mut Ready, watch: Watch<'a>) -> Self {
        let judge = Judge::new(cycle, ready.take(cycle));
        let jobs = |submitter: &SubmitterInput| -> Vec<Progress> {
            let requests = submitter.requests.iter();
            requests.map(|request| Progress { left: request.count, reason: None, regrouped: false }).collect()
        };
        let progress: Vec<Vec<Progress>> = cycle.submitters.iter().map(jobs).collect();
        let stats = Stats {
            slots: cycle.slots.len(),
            submitters: progress.iter().filter(|requests| has_jobs(requests)).count(),
            jobs: progress.iter().flatten().fold(0, |sum: u64, request| sum.saturating_add(request.left)),
            ..Stats::default()
        };
        Self {
            cycle,
            min_slot_weight: judge.least_cost(),
            ledger: Ledger::new(cycle),
            stopped: vec![None; cycle.submitters.len()],
            progress,
            time: TimeLimits::new(&cycle.config, cycle.submitters.len(), watch),
            table: Table {
                judge,
                limits: cycle.limits.clone(),
                env: cycle.env(),
                matches: Vec::new(),
                stats,
            },
        }
    }

    /// Negotiates with everybody.
    pub(super) fn run(mut self, ready: &mut Ready) -> Outcome {
        let allocations = if self.cycle.groups.is_empty() {
            let everybody: Vec<usize> =
                (0..self.cycle.submitters.len()).filter(|submitter| self.counts(*submitter)).collect();
            self.raise_to_floors(None, None, &everybody);
            if everybody.iter().any(|submitter| self.has_jobs(*submitter)) {
                Spins::new(&mut self, None, None).run(everybody);
            }
            None
        } else {
            Some(self.negotiate_groups())
        };
        let rejections = self.rejections();
        ready.keep(&self.cycle.config, self.table.judge.into_roster());
        Outcome { matches: self.table.matches, rejections, allocations, stats: self.table.stats }
    }

    /// Whether a submitter has a part in the pie.
    pub(super) fn counts(&self, submitter: usize) -> bool {
        self.has_jobs(submitter) || self.ledger.used(submitter) > 0.0
    }

    /// How much slot weight a submitter is below its floor.
    pub(super) fn below_floor(&self, submitter: usize) -> f64 {
        let floor = self.cycle.submitters.get(submitter).and_then(|input| input.floor).unwrap_or(0.0);
        (floor - self.ledger.used(submitter)).max(0.0)
    }

    /// Lets the members of a group take who are below their floor.
    ///
    /// HTCondor does so only where there are no groups, and then as far as their shares go.
    pub(super) fn raise_to_floors(&mut self, group: Option<usize>, quota: Option<f64>, members: &[usize]) {
        let below = |submitter: &usize| self.has_jobs(*submitter) && self.below_floor(*submitter) > 0.0;
        let below: Vec<usize> = members.iter().copied().filter(below).collect();
        if !below.is_empty() {
            Spins::new(self, group, quota).raise_to_floors(below);
        }
    }

    /// Whether a submitter has jobs that wait.
    pub(super) fn has_jobs(&self, submitter: usize) -> bool {
        self.progress.get(submitter).is_some_and(|requests| has_jobs(requests))
    }

    /// Why jobs are left, for each request of which there are.
    fn rejections(&self) -> Vec<Rejection> {
        let otherwise =
            if self.table.judge.is_empty() { RejectReason::NoSlots } else { RejectReason::SubmitterLimit };
        let submitters = self.progress.iter().zip(&self.stopped).enumerate();
        submitters
            .flat_map(|(submitter, (requests, stopped))| {
                let left = requests.iter().enumerate().filter(|(_, progress)| progress.left > 0);
                left.map(move |(request, progress)| Rejection {
                    submitter,
                    request,
                    left: progress.left,
                    reason: progress.reason.or(*stopped).unwrap_or(otherwise),
                })
            })
            .collect()
    }
}

fn has_jobs(requests: &[Progress]) -> bool {
    requests.iter().any(|request| request.left > 0)
}
