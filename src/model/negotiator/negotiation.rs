//! The state of one negotiation, and its steps in a pool without groups. `rounds` has the steps in a pool with groups.

use super::allocation::root_quota;
use super::candidates::Judge;
use super::cycle::{Cycle, Outcome, RejectReason, Rejection, Stats, SubmitterInput};
use super::ledger::Ledger;
use super::pie::ceiling_left;
use super::ready::Ready;
use super::shares::Shares;
use super::spin::Spins;
use super::time_limits::{Stopwatch, TimeLimits};
use super::turn::{Progress, Shared, Used};

/// The state of one negotiation.
#[derive(Debug)]
pub(super) struct Negotiation<'a> {
    pub(super) cycle: &'a Cycle,
    pub(super) shared: Shared<'a>,
    pub(super) ledger: Ledger,
    /// How far each request of each submitter has come.
    pub(super) progress: Vec<Vec<Progress>>,
    /// Why each submitter's last turn ended although the submitter had jobs left.
    pub(super) stopped: Vec<Option<RejectReason>>,
    /// The least that a match can cost.
    pub(super) min_slot_weight: f64,
    /// The quota of the submitters of no group.
    pub(super) root_quota: f64,
    pub(super) time: TimeLimits<'a>,
}

impl<'a> Negotiation<'a> {
    pub(super) fn new(cycle: &'a Cycle, ready: &mut Ready, stopwatch: Stopwatch<'a>) -> Self {
        let judge = Judge::new(cycle, ready.take(cycle));
        let jobs = |submitter: &SubmitterInput| -> Vec<Progress> {
            let requests = submitter.requests.iter();
            requests
                .map(|request| Progress {
                    left: request.count,
                    reason: None,
                    hopeless: false,
                    regrouped: false,
                    spent: 0,
                })
                .collect()
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
            root_quota: root_quota(cycle),
            stopped: vec![None; cycle.submitters.len()],
            progress,
            time: TimeLimits::new(&cycle.config, cycle.submitters.len(), stopwatch),
            shared: Shared {
                judge,
                limits: cycle.limits.clone(),
                env: cycle.env(),
                shares: Shares::new(cycle.slots.len(), cycle.submitters.len()),
                matches: Vec::new(),
                stats,
            },
        }
    }

    /// Negotiates with all submitters.
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
        ready.keep(self.cycle, &self.shared.matches, self.shared.judge.into_roster());
        Outcome { matches: self.shared.matches, rejections, allocations, stats: self.shared.stats }
    }

    /// Whether a submitter gets a slice of the pie.
    pub(super) fn counts(&self, submitter: usize) -> bool {
        self.has_jobs(submitter) || self.ledger.used(submitter) > 0.0
    }

    /// By how much slot weight a submitter is below its floor; 0 if it is not.
    pub(super) fn below_floor(&self, submitter: usize) -> f64 {
        let floor = self.cycle.submitters.get(submitter).and_then(|input| input.floor).unwrap_or(0.0);
        (floor - self.ledger.used(submitter)).max(0.0)
    }

    /// The slot weight that a submitter may take before it, or its owner, reaches the ceiling.
    pub(super) fn ceiling_left(&self, submitter: usize, input: &SubmitterInput) -> f64 {
        let own = ceiling_left(input.ceiling, self.ledger.used(submitter));
        let owner = input
            .owner
            .and_then(|owner| Some((self.cycle.owners.get(owner)?, self.ledger.owner_used(owner))));
        owner.map_or(own, |(owner, used)| own.min(ceiling_left(Some(owner.ceiling), used)))
    }

    /// Charges a submitter, its group and its owner.
    pub(super) fn charge(&mut self, submitter: usize, used: Used) {
        let owner = self.cycle.submitters.get(submitter).and_then(|input| input.owner);
        self.ledger.charge(submitter, owner, used.all, used.of_group);
    }

    /// Lets those members of a group that are below their floor take slots up to it.
    ///
    /// HTCondor does so, too, but a submitter takes the whole floor once more whatever it uses, and no more than its share.
    pub(super) fn raise_to_floors(&mut self, group: Option<usize>, quota: Option<f64>, members: &[usize]) {
        let below = |submitter: &usize| self.has_jobs(*submitter) && self.below_floor(*submitter) > 0.0;
        let below: Vec<usize> = members.iter().copied().filter(below).collect();
        if !below.is_empty() {
            Spins::new(self, group, quota).raise_to_floors(below);
        }
    }

    /// Whether a submitter has jobs that still wait.
    pub(super) fn has_jobs(&self, submitter: usize) -> bool {
        self.progress.get(submitter).is_some_and(|requests| has_jobs(requests))
    }

    /// Why jobs are left without a match: one entry for each request of which jobs are left.
    fn rejections(&self) -> Vec<Rejection> {
        let otherwise =
            if self.shared.judge.is_empty() { RejectReason::NoSlots } else { RejectReason::SubmitterLimit };
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
