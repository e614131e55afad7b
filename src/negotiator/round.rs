//! A negotiation: group after group, then the bill.
//!
//! Floors (a spin before all others), surplus between groups and further rounds have their place here, around
//! [`Round::negotiate_group`].

use super::candidates::Judge;
use super::cycle::{Cycle, Outcome, RejectReason, Rejection, Stats, SubmitterInput};
use super::ledger::Ledger;
use super::spin::Spins;
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
}

impl<'a> Round<'a> {
    pub(super) fn new(cycle: &'a Cycle) -> Self {
        let judge = Judge::new(cycle);
        let jobs = |submitter: &SubmitterInput| -> Vec<Progress> {
            let requests = submitter.requests.iter();
            requests.map(|request| Progress { left: request.count, reason: None }).collect()
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
    pub(super) fn run(mut self) -> Outcome {
        for (group, members) in self.groups() {
            self.negotiate_group(group, members);
        }
        let rejections = self.rejections();
        Outcome { matches: self.table.matches, rejections, stats: self.table.stats }
    }

    /// Whether a submitter has jobs that wait.
    pub(super) fn has_jobs(&self, submitter: usize) -> bool {
        self.progress.get(submitter).is_some_and(|requests| has_jobs(requests))
    }

    /// The groups with their submitters, in the order in which they negotiate: by the part of its quota that
    /// each uses, those of no group last. (The default of `GROUP_SORT_EXPR`.)
    fn groups(&self) -> Vec<(Option<usize>, Vec<usize>)> {
        let count = self.cycle.groups.len();
        let mut members = vec![Vec::new(); count + 1];
        for (index, submitter) in self.cycle.submitters.iter().enumerate() {
            let counts = self.has_jobs(index) || self.ledger.used(index) > 0.0;
            let group = submitter.group.filter(|group| *group < count).unwrap_or(count);
            if let Some(members) = members.get_mut(group).filter(|_| counts) {
                members.push(index);
            }
        }
        let named = |(group, members)| (Some(group).filter(|group| *group < count), members);
        let mut order: Vec<(Option<usize>, Vec<usize>)> =
            members.into_iter().enumerate().map(named).collect();
        order.retain(|(_, members)| members.iter().any(|submitter| self.has_jobs(*submitter)));
        order.sort_by(|(a, _), (b, _)| self.sort_key(*a).total_cmp(&self.sort_key(*b)));
        order
    }

    /// What the default of `GROUP_SORT_EXPR` says of a group.
    fn sort_key(&self, group: Option<usize>) -> f64 {
        let Some(quota) = group.and_then(|group| self.cycle.groups.get(group)).map(|group| group.quota)
        else {
            return 3.4e38;
        };
        if quota > 0.0 { self.ledger.group_used(group) / quota } else { 3.3e38 }
    }

    /// Divides what a group may have among its submitters until nothing more comes of it.
    fn negotiate_group(&mut self, group: Option<usize>, members: Vec<usize>) {
        let quota = self.quota(group);
        Spins::new(self, group, quota).run(members);
    }

    /// What a group's own submitters may use in all; none without groups.
    ///
    /// HTCondor cuts this to an integer, which leaves slots of fractional weight idle; we do not.
    fn quota(&self, group: Option<usize>) -> Option<f64> {
        if self.cycle.groups.is_empty() {
            return None;
        }
        let named = group.and_then(|group| self.cycle.groups.get(group)).map(|group| group.quota);
        let quota = named.unwrap_or_else(|| {
            let tops = self.cycle.groups.iter().filter(|group| group.parent.is_none());
            self.cycle.pool_weight - tops.map(|group| group.subtree_quota).sum::<f64>()
        });
        let quota = quota.max(0.0);
        if !self.cycle.config.strict_enforce_quota {
            return Some(quota);
        }
        Some(quota.min(self.ledger.group_used(group) + self.ledger.headroom(group)))
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
