//! The pie spins of one group: divide the pie, give each submitter a turn, divide what is left.

use super::cycle::{Pie, RejectReason, Slice, SubmitterInput};
use super::groups::ROOT;
use super::in_use::{GroupFacts, SubmitterFacts};
use super::negotiation::Negotiation;
use super::pie::{Division, Limits, starvation};
use super::turn::{Turn, Verdict};

/// The spins of one group.
#[derive(Debug)]
pub(super) struct Spins<'r, 'a> {
    negotiation: &'r mut Negotiation<'a>,
    group: Option<usize>,
    /// The most that the group's submitters may use in all; none without groups.
    quota: Option<f64>,
    /// The number of the spin, from 1.
    spin: u32,
    /// Whether submitters take up to their floors in this spin, and not up to their shares.
    floors: bool,
    /// Whether a submitter whose limit is less than the lightest slot's weight may take a slot all the same.
    round_up: bool,
}

/// Whether the group gets another spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Continue,
    Stop,
}

impl<'r, 'a> Spins<'r, 'a> {
    pub(super) fn new(
        negotiation: &'r mut Negotiation<'a>,
        group: Option<usize>,
        quota: Option<f64>,
    ) -> Self {
        Self { negotiation, group, quota, spin: 0, floors: false, round_up: false }
    }

    /// Runs one spin in which submitters take up to their floors, whatever their shares are. `members` are submitters that use
    /// less than their floor.
    pub(super) fn raise_to_floors(mut self, mut members: Vec<usize>) {
        self.floors = true;
        self.spin = 1;
        self.spin(&mut members);
    }

    /// Spins until a spin neither gives a slot to a submitter nor drops a submitter that is done.
    ///
    /// HTCondor stops there. Slots may then stay idle because no submitter's share has room for one more slot, though the unused
    /// parts of all shares together have. Mostly the first spin of the next cycle rounds one of the shares up. Rounding does not
    /// help if a part of the pie belongs to a submitter that wants no more of it (`lasting`), nor if this cycle gave nothing at
    /// all, because the next cycle would do the same (`idle_cycle`). In both cases one more spin lets each submitter, in the
    /// order of turns, take one slot beyond its share, as long as the unused parts of the shares last.
    pub(super) fn run(mut self, mut members: Vec<usize>) {
        let lasting = members.iter().any(|submitter| !self.negotiation.has_jobs(*submitter));
        let mut idle_cycle = true;
        loop {
            self.spin += 1;
            if self.quota_used_up() {
                return self.stop(&members, RejectReason::GroupQuota);
            }
            if !self.negotiation.cycle.config.consider_preemption {
                members.retain(|submitter| self.negotiation.has_jobs(*submitter));
            }
            let before = members.len();
            let (flow, taken) = self.spin(&mut members);
            let progress = taken > 0.0 || members.len() < before;
            let more = !members.is_empty() && !self.negotiation.shared.judge.is_empty();
            idle_cycle &= taken <= 0.0;
            let crumbs = !self.round_up && (lasting || idle_cycle);
            if flow == Flow::Stop || !more || !(progress || crumbs) {
                return;
            }
            self.round_up = !progress;
        }
    }

    /// Runs one spin. Removes submitters that are done from `members`. Returns the slot weight taken.
    fn spin(&mut self, members: &mut Vec<usize>) -> (Flow, f64) {
        let division = self.divide(members);
        let mut slices = self.slices(members, division);
        let mut pie_left: f64 = slices.iter().map(|slice| slice.limit).sum();
        if !self.negotiation.cycle.config.consider_preemption && pie_left <= 0.0 {
            self.stop(members, RejectReason::SubmitterLimit);
            return (Flow::Stop, 0.0);
        }
        if self.spin == 1 {
            self.sort(members, &slices);
            slices = self.slices(members, division);
        }
        self.note(pie_left, slices);
        let mut taken = 0.0;
        let mut stay = Vec::with_capacity(members.len());
        for (place, submitter) in members.iter().copied().enumerate() {
            if self.quota_used_up() {
                let rest: Vec<usize> = members.iter().copied().skip(place).collect();
                self.stop(&rest, RejectReason::GroupQuota);
                return (Flow::Stop, taken);
            }
            let limits = self.limits(submitter, division).1.within(pie_left);
            let (verdict, cost) = self.turn(submitter, limits, pie_left);
            pie_left -= cost;
            taken += cost;
            if verdict == Verdict::Resume {
                stay.push(submitter);
            }
        }
        *members = stay;
        (Flow::Continue, taken)
    }

    /// Gives a submitter a turn, if it may have one. Returns how the turn ended, and the slot weight taken.
    fn turn(&mut self, submitter: usize, limits: Limits, pie_left: f64) -> (Verdict, f64) {
        let cycle = self.negotiation.cycle;
        let Some(input) = cycle.submitters.get(submitter) else { return (Verdict::Done, 0.0) };
        if !self.negotiation.has_jobs(submitter) && self.spin == 1 {
            return (Verdict::Done, 0.0);
        }
        let Some(deadline) = self.negotiation.time.begin(submitter) else {
            self.stop(&[submitter], RejectReason::TimeLimit);
            return (Verdict::Done, 0.0);
        };
        let least = self.negotiation.min_slot_weight;
        let ceiling = self.negotiation.ceiling_left(submitter, input);
        if ceiling <= 0.0 || ceiling < least {
            self.stop(&[submitter], RejectReason::Ceiling);
            return (Verdict::Done, 0.0);
        }
        let needed = if self.round_up { f64::MIN_POSITIVE } else { least };
        if self.spin > 1 && (limits.limit < needed || pie_left < needed) {
            self.stop(&[submitter], limits.reason());
            return (Verdict::Resume, 0.0);
        }
        let config = &cycle.config;
        let stable = config.preemption_requirements_stable && config.preemption_rank_stable;
        let turn = Turn {
            submitter,
            name: &input.name,
            group: self.negotiation.ledger.group(submitter),
            requests: &input.requests,
            limits,
            ceiling,
            asking: self.asking(submitter, input),
            caching: config.match_list_caching && stable,
            one_size: !config.use_slot_weights && !config.consider_preemption,
            depth_first: config.depth_first,
            idle_only: self.round_up,
            beyond_limit: self.spin == 1 && config.consider_preemption,
            deadline,
        };
        let Some(progress) = self.negotiation.progress.get_mut(submitter) else {
            return (Verdict::Done, 0.0);
        };
        let (verdict, used) = turn.take(&mut self.negotiation.shared, progress);
        self.negotiation.time.end(submitter, deadline);
        if let Some(reason) = turn.reached(used.all, &self.negotiation.shared.judge) {
            self.stop(&[submitter], reason);
        }
        self.negotiation.charge(submitter, used);
        (verdict, used.all)
    }

    /// The facts that the ads of a submitter's jobs tell about the submitter.
    fn asking(&self, submitter: usize, input: &SubmitterInput) -> SubmitterFacts<'a> {
        let cycle = self.negotiation.cycle;
        let name = |group: Option<usize>| {
            group.and_then(|group| cycle.groups.get(group)).map_or(ROOT, |group| group.name.as_str())
        };
        let own = input.group.and_then(|group| cycle.groups.get(group));
        SubmitterFacts {
            priority: input.effective_priority,
            used: self.negotiation.ledger.used(submitter),
            group: GroupFacts::of(
                cycle,
                input.group,
                self.negotiation.ledger.group_used(input.group),
                self.negotiation.root_quota,
            ),
            negotiating_group: name(self.group),
            autoregroup: self.group.is_none() && own.is_some_and(|group| group.autoregroup),
        }
    }

    /// Whether the group uses all that it may. With preemption the first spin ignores this, so that each submitter gets a turn.
    fn quota_used_up(&self) -> bool {
        let ignored = self.spin == 1 && self.negotiation.cycle.config.consider_preemption;
        let used = self.negotiation.ledger.group_used(self.group);
        !ignored && self.quota.is_some_and(|quota| used >= quota)
    }

    /// The slot weight to divide, including what is in use.
    fn weight(&self) -> f64 {
        let pool = self.negotiation.cycle.pool_weight.max(0.0);
        self.quota.map_or(pool, |quota| quota.min(pool))
    }

    /// Divides the pie among the members. Entries of the same name get one share.
    fn divide(&self, members: &[usize]) -> Division {
        let mut names: Vec<(usize, f64)> = members
            .iter()
            .filter_map(|submitter| {
                let input: &SubmitterInput = self.negotiation.cycle.submitters.get(*submitter)?;
                Some((self.negotiation.ledger.account(*submitter), input.effective_priority))
            })
            .collect();
        names.sort_by_key(|(account, _)| *account);
        names.dedup_by_key(|(account, _)| *account);
        Division::among(names.iter().map(|(_, priority)| *priority))
    }

    /// A submitter's share, and its limits given what is in use now.
    fn limits(&self, submitter: usize, division: Division) -> (f64, Limits) {
        let round = &*self.negotiation;
        let share = round
            .cycle
            .submitters
            .get(submitter)
            .map_or(0.0, |input| division.share(input.effective_priority));
        let used = round.ledger.used(submitter);
        let group_left =
            self.quota.map_or(f64::INFINITY, |quota| quota - round.ledger.group_used(self.group));
        let config = &round.cycle.config;
        let limits = if self.floors {
            Limits::to_floor(config, round.below_floor(submitter), group_left)
        } else {
            Limits::new(config, share, self.weight(), used, group_left)
        };
        (share, limits)
    }

    fn slices(&self, members: &[usize], division: Division) -> Vec<Slice> {
        let slice = |submitter: &usize| {
            let (share, limits) = self.limits(*submitter, division);
            Slice { submitter: *submitter, share, limit: limits.limit }
        };
        members.iter().map(slice).collect()
    }

    /// Sorts the members into the order of turns: the best priority first, then the submitter that has the smallest part of what
    /// it may have, then the order of the cycle. (HTCondor breaks the last ties by chance.)
    fn sort(&self, members: &mut Vec<usize>, slices: &[Slice]) {
        let mut keyed: Vec<(f64, f64, usize)> = slices
            .iter()
            .map(|slice| {
                let input = self.negotiation.cycle.submitters.get(slice.submitter);
                let priority =
                    input.map_or(f64::MAX, |input| super::pie::sane_priority(input.effective_priority));
                (
                    priority,
                    starvation(self.negotiation.ledger.used(slice.submitter), slice.limit),
                    slice.submitter,
                )
            })
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        *members = keyed.into_iter().map(|(_, _, submitter)| submitter).collect();
    }

    /// Records how the pie was divided.
    fn note(&mut self, left: f64, slices: Vec<Slice>) {
        let (group, spin, floors) = (self.group, self.spin, self.floors);
        let pie = Pie { group, spin, floors, weight: self.weight(), left, slices };
        self.negotiation.shared.stats.pies.push(pie);
    }

    /// Records why submitters' turns ended although the submitters had jobs left.
    fn stop(&mut self, submitters: &[usize], reason: RejectReason) {
        for submitter in submitters {
            if let Some(stopped) = self.negotiation.stopped.get_mut(*submitter) {
                *stopped = Some(reason);
            }
        }
    }
}
