//! One submitter's turn in a spin: the submitter's requests are served one after the other, and each job gets the slot that is
//! preferred most.

use std::collections::BTreeSet;

use super::candidates::{Judge, Offer, Search};
use super::cycle::{Match, PreemptState, RejectReason, Request, Stats};
use super::in_use::SubmitterFacts;
use super::limits::{LimitBook, Wants};
use super::pie::{Limits, permits};
use super::shares::Shares;
use super::time_limits::Deadline;
use classad::{Ad, Env, Prepared};

/// How far a request has come, from one spin to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// How many jobs of the request have no match yet.
    pub(super) left: u64,
    /// Why the last job that was considered got no slot.
    pub(super) reason: Option<RejectReason>,
    /// Whether no later turn of the cycle can match the request. Slots and free units of limits only become fewer within a cycle: a
    /// request that no slot matched, or whose every match a concurrency limit refused, is never matched later.
    pub(super) hopeless: bool,
    /// Whether the request of a group's submitter was considered in the root's turn.
    pub(super) regrouped: bool,
    /// The steps that evaluating the request has cost so far.
    pub(super) spent: u64,
}

impl Progress {
    /// Notes why the job that was considered last got no slot. The reason may be another in a later turn.
    fn waits(&mut self, reason: RejectReason) {
        (self.reason, self.hopeless) = (Some(reason), false);
    }

    /// Notes why the request gets no slot in the rest of the cycle.
    fn ends(&mut self, reason: RejectReason) {
        (self.reason, self.hopeless) = (Some(reason), true);
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The submitter takes no part in further spins: no slot is left for its jobs, or no job.
    Done,
    /// The submitter may get more slots in the next spin.
    Resume,
}

/// A turn: the submitter, and the rules for this turn.
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    pub(super) submitter: usize,
    /// The accountant's name.
    pub(super) name: &'a str,
    /// The group that the submitter is charged to; none for the root.
    pub(super) group: Option<usize>,
    pub(super) requests: &'a [Request],
    pub(super) limits: Limits,
    /// How much slot weight the submitter may take before it reaches its ceiling; infinite without a ceiling.
    pub(super) ceiling: f64,
    /// The facts that the ads of the submitter's jobs tell about the submitter.
    pub(super) asking: SubmitterFacts<'a>,
    /// Whether all jobs of a request are matched from one search: `NEGOTIATOR_MATCHLIST_CACHING`.
    pub(super) caching: bool,
    /// Whether all matches have the same cost: the turn then ends at the first request that the submitter's limit refuses.
    pub(super) one_size: bool,
    /// Whether the jobs of a request fill one slot after the other: `NEGOTIATOR_DEPTH_FIRST`.
    pub(super) depth_first: bool,
    /// Whether the submitter may not preempt jobs for its better priority in this turn.
    pub(super) idle_only: bool,
    /// Whether the submitter, past its limit, may still have slots that rank its jobs higher than the jobs there.
    pub(super) beyond_limit: bool,
    pub(super) deadline: Deadline<'a>,
}

/// The state that all turns of a negotiation share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) limits: LimitBook,
    pub(super) env: Env,
    pub(super) shares: Shares,
    pub(super) matches: Vec<Match>,
    pub(super) stats: Stats,
}

/// The slot weight that a turn has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// The slot weight that the turn has taken in all.
    pub(super) all: f64,
    /// The slot weight that the turn has taken from slots that were not in use.
    unclaimed: f64,
    /// The slot weight that the turn adds to the use of the submitter's group. A slot that another member of the group
    /// gives up adds nothing.
    pub(super) of_group: f64,
}

/// Which concurrency limits a request uses.
enum Limited {
    /// The same on every slot.
    Always(Wants),
    /// Limits that an expression names for each slot, because it reads the slot's ad.
    BySlot,
}

impl Limited {
    fn of(request: &Ad, env: &Env) -> Self {
        Wants::on_any_slot(request, env).map_or(Self::BySlot, Self::Always)
    }

    /// The limits that a match with a slot uses.
    fn with(&self, request: &Prepared, slot: Option<&Ad>, env: &Env) -> Wants {
        match (self, slot) {
            (Self::Always(wants), _) => wants.clone(),
            (Self::BySlot, Some(slot)) => {
                let (wants, done) = Wants::evaluated_on_slot(request.ad(), slot, env);
                request.note(&done);
                wants
            }
            (Self::BySlot, None) => Wants::default(),
        }
    }
}

impl Turn<'_> {
    /// Takes the turn. Returns how the turn ended, and the slot weight taken. A request that got fewer slots than it asks for is
    /// not considered again in this turn.
    pub(super) fn take(&self, shared: &mut Shared<'_>, progress: &mut [Progress]) -> (Verdict, Used) {
        let mut used = Used::default();
        let mut limited = false;
        for (index, (request, progress)) in self.requests.iter().zip(progress.iter_mut()).enumerate() {
            // Slots can read `SubmitterAutoregroup`: a slot that did not match the request before may match it now.
            let otherwise = self.asking.autoregroup && !progress.regrouped;
            if progress.left == 0 || progress.hopeless && !otherwise {
                continue;
            }
            if self.reached(used.all, &shared.judge).is_some() {
                return (Verdict::Resume, used);
            }
            progress.regrouped = self.asking.autoregroup;
            shared.stats.requests_considered += 1;
            limited |= self.serve(shared, index, request, progress, &mut used);
            if limited && self.one_size {
                return (Verdict::Resume, used);
            }
        }
        let resume =
            limited || used.all >= self.limits.limit || self.reached(used.all, &shared.judge).is_some();
        (if resume { Verdict::Resume } else { Verdict::Done }, used)
    }

    /// Why no further match can be made in this turn, once `used` is taken; none if a match may still be made.
    pub(super) fn reached(&self, used: f64, judge: &Judge<'_>) -> Option<RejectReason> {
        if judge.is_empty() {
            Some(RejectReason::NoSlots)
        } else if used >= self.limits.limit && !(self.beyond_limit && judge.any_rank()) {
            Some(self.limits.reason())
        } else if used >= self.ceiling {
            Some(RejectReason::Ceiling)
        } else if self.deadline.is_over() {
            Some(RejectReason::TimeLimit)
        } else {
            None
        }
    }

    /// Matches the jobs of one request until all are matched, no slot suits them or no more may be taken. Returns whether the
    /// submitter's limit was the reason to stop.
    fn serve(
        &self,
        shared: &mut Shared<'_>,
        index: usize,
        request: &Request,
        progress: &mut Progress,
        used: &mut Used,
    ) -> bool {
        let limited = Limited::of(&self.seen(request, 0.0), &shared.env);
        // `barred` lives as long as the search: the search does not return slots again that it passed over for an earlier job.
        let mut barred = Barred::default();
        let mut search: Option<Search> = None;
        let mut counted = 0;
        let mut filling: Option<usize> = None;
        while progress.left > 0 {
            if let Some(reason) = self.reached(used.all, &shared.judge) {
                progress.waits(reason);
                return reason == self.limits.reason();
            }
            if let Limited::Always(wants) = &limited
                && shared.limits.blocked(wants).is_some()
            {
                progress.ends(RejectReason::ConcurrencyLimit);
                return false;
            }
            let share = shared.shares.left(self.submitter, progress.spent);
            if share == 0 {
                progress.ends(RejectReason::EvaluationShare);
                return false;
            }
            let mut look = search.take().unwrap_or_else(|| {
                (barred, counted) = (Barred::default(), 0);
                shared.stats.pairs_considered += u64::try_from(shared.judge.len()).unwrap_or(u64::MAX);
                shared.judge.search(&self.seen(request, used.all), self.name, share)
            });
            let best = self.best(shared, &mut look, filling, &limited, *used, &mut barred);
            let spent = look.prepared.spent();
            progress.spent = progress.spent.saturating_add(spent - counted);
            shared.shares.spend(self.submitter, spent - counted);
            counted = spent;
            let Some((offer, wants)) = best else {
                return self.gives_up(shared, &look, &barred, *used, progress);
            };
            used.of_group += self.growth(&shared.judge, &look, &offer);
            let dynamic = shared.judge.take(&mut look, &offer);
            shared.limits.take(&wants);
            let Offer { place: slot, preempt, cost } = offer;
            let submitter = self.submitter;
            let regrouped = self.asking.autoregroup;
            shared.matches.push(Match { submitter, request: index, slot, cost, preempt, regrouped, dynamic });
            used.all += cost;
            used.unclaimed += if preempt == PreemptState::None { cost } else { 0.0 };
            progress.left -= 1;
            search = self.caching.then_some(look);
            filling = self.depth_first.then_some(slot);
        }
        false
    }

    /// Says why a search has found no slot for a job of a request. Returns whether the submitter's limit was the reason.
    fn gives_up(
        &self,
        shared: &Shared<'_>,
        look: &Search,
        barred: &Barred,
        used: Used,
        progress: &mut Progress,
    ) -> bool {
        if let Some(reason) = too_much(look) {
            progress.ends(reason);
            return false;
        }
        if self.deadline.is_over() {
            progress.waits(RejectReason::TimeLimit);
            return false;
        }
        let only_rank = used.all >= self.limits.limit;
        let bars = barred.now(self, used);
        match bars.last() {
            Some(bar) if bars.iter().all(|bar| *bar == Bar::Concurrency) => progress.ends(bar.reason(self)),
            Some(bar) => progress.waits(bar.reason(self)),
            None if only_rank => progress.waits(self.limits.reason()),
            None => progress.ends(shared.judge.refusal(look).unwrap_or(RejectReason::NoMatch)),
        }
        only_rank || bars.contains(&Bar::Limit)
    }

    /// A request's ad as slots see it, once `used` is taken in this turn.
    fn seen(&self, request: &Request, used: f64) -> Ad {
        self.asking.ad_with_facts(&request.ad, used)
    }

    /// Returns the slot that is being filled, or else the most preferred slot that the rules of the turn allow, and the limits
    /// that the match uses. A slot that is refused now stays refused for the rest of the turn: the search passes over it.
    fn best(
        &self,
        shared: &mut Shared<'_>,
        search: &mut Search,
        filling: Option<usize>,
        limited: &Limited,
        used: Used,
        barred: &mut Barred,
    ) -> Option<(Offer, Wants)> {
        let only_rank = used.all >= self.limits.limit;
        let mut again = filling.filter(|_| !only_rank).and_then(|place| shared.judge.again(search, place));
        loop {
            let wanted = |preempt| !only_rank || preempt == PreemptState::Rank;
            let offer = match again.take() {
                Some(again) => again,
                None => shared.judge.next(search, wanted)?,
            };
            let growth = self.growth(&shared.judge, search, &offer);
            let passed = Passed { preempt: offer.preempt, cost: offer.cost, growth };
            if self.bar(passed, used).is_some() {
                barred.note(passed);
                continue;
            }
            if self.deadline.is_over() || search.prepared.is_over() {
                return None;
            }
            let wants = limited.with(&search.prepared, shared.judge.ad(offer.place), &shared.env);
            if shared.limits.blocked(&wants).is_some() {
                barred.note(passed);
                continue;
            }
            return Some((offer, wants));
        }
    }

    /// By how much a match adds to what the submitter's group uses.
    fn growth(&self, judge: &Judge<'_>, search: &Search, offer: &Offer) -> f64 {
        (offer.cost - judge.freed(search, offer, self.group)).max(0.0)
    }

    /// Which of the submitter's ceiling, quota and limit refuses a match, once `used` is taken in this turn.
    fn bar(&self, offer: Passed, used: Used) -> Option<Bar> {
        if self.idle_only && offer.preempt == PreemptState::Priority {
            return Some(Bar::IdleOnly);
        }
        let fits = match offer.preempt {
            PreemptState::None => permits(used.unclaimed, offer.cost, self.limits.unclaimed),
            PreemptState::Priority => permits(used.all, offer.cost, self.limits.limit),
            // A job that the machine's owner prefers gets the slot, however much its submitter has had.
            PreemptState::Rank => true,
        };
        if used.all + offer.cost > self.ceiling + SLACK {
            Some(Bar::Ceiling)
        } else if offer.growth > 0.0 && used.of_group + offer.growth > self.limits.quota + SLACK {
            Some(Bar::Quota)
        } else {
            (!fits).then_some(Bar::Limit)
        }
    }
}

/// Why a search that finds nothing more was given up, if it was.
fn too_much(search: &Search) -> Option<RejectReason> {
    match &search.prepared {
        job if job.is_bounded() => Some(RejectReason::TooExpensive),
        job if job.is_over() => Some(RejectReason::EvaluationShare),
        _ => None,
    }
}

/// The rounding error that sums of fractional weights may have.
const SLACK: f64 = 1e-9;

/// Why a submitter may not have a slot that matches. If several slots are refused, the last reason of this list is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bar {
    Ceiling,
    Quota,
    /// The turn gives no slot that is in use. The limit is no higher in the next spin.
    IdleOnly,
    /// The limit may be higher in the next spin.
    Limit,
    Concurrency,
}

impl Bar {
    fn reason(self, turn: &Turn<'_>) -> RejectReason {
        match self {
            Self::Ceiling => RejectReason::Ceiling,
            Self::Quota => RejectReason::GroupQuota,
            Self::IdleOnly | Self::Limit => turn.limits.reason(),
            Self::Concurrency => RejectReason::ConcurrencyLimit,
        }
    }
}

/// The kind and the cost of a refused match.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Passed {
    preempt: PreemptState,
    cost: f64,
    /// By how much the match would have added to what the submitter's group uses.
    growth: f64,
}

/// The matches that a search found and that were refused: a match refused once is refused for the rest of the turn.
#[derive(Debug, Default)]
struct Barred {
    passed: Vec<Passed>,
}

impl Barred {
    fn note(&mut self, passed: Passed) {
        // The slots of a pool are mostly alike.
        if self.passed.last() != Some(&passed) {
            self.passed.push(passed);
        }
    }

    /// Why the matches are refused, once `used` is taken: each bar once, in the order of [`Bar`].
    ///
    /// The bars are asked for now and not when each match was passed over, because another bar may hold by now: a list of
    /// matches that serves several jobs says the same as a fresh search for the last job.
    fn now(&self, turn: &Turn<'_>, used: Used) -> Vec<Bar> {
        let bars = self.passed.iter().map(|passed| turn.bar(*passed, used).unwrap_or(Bar::Concurrency));
        bars.collect::<BTreeSet<Bar>>().into_iter().collect()
    }
}
