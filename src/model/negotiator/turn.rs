//! One submitter's turn in a spin: its requests one after another, each job the best slot.

use super::candidates::{Judge, Offer, Search};
use super::cycle::{Match, PreemptState, RejectReason, Request, Stats};
use super::in_use::Asking;
use super::limits::{LimitBook, Wants};
use super::pie::{Limits, permits};
use super::time_limits::Deadline;
use classad::{Ad, Env};

/// What is known about a request from one spin to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Jobs without a match.
    pub(super) left: u64,
    /// Why the last of them got none, once one got none.
    pub(super) reason: Option<RejectReason>,
    /// It was asked for in the root's turn though it is of a group.
    pub(super) regrouped: bool,
}

impl Progress {
    /// Slots and limits only become fewer within a cycle: what no slot matched, none will.
    fn hopeless(self) -> bool {
        use RejectReason::{ConcurrencyLimit, NoMatch, PreemptionPolicy, PreemptionRank};
        let hopeless = [NoMatch, ConcurrencyLimit, PreemptionPolicy, PreemptionRank];
        self.reason.is_some_and(|reason| hopeless.contains(&reason))
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The submitter wants nothing more that could be had.
    Done,
    /// It may want more in the next spin.
    Resume,
}

/// A turn: who, on what terms.
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    pub(super) submitter: usize,
    /// The accountant's name.
    pub(super) name: &'a str,
    pub(super) requests: &'a [Request],
    pub(super) limits: Limits,
    /// The slot weight to the submitter's ceiling; infinite without one.
    pub(super) ceiling: f64,
    /// What its jobs' ads say of it.
    pub(super) asking: Asking<'a>,
    /// Match all jobs of a request from one list of candidates.
    pub(super) caching: bool,
    /// Give up at the first request that the limit stands against: nothing smaller will come.
    pub(super) one_size: bool,
    /// Jobs of a request fill one slot after the other: `NEGOTIATOR_DEPTH_FIRST`.
    pub(super) depth_first: bool,
    /// No job is thrown out for a better priority.
    pub(super) idle_only: bool,
    /// Past its limit the submitter may still have slots that rank its jobs higher than their own.
    pub(super) beyond_limit: bool,
    pub(super) deadline: Deadline<'a>,
}

/// What turns work on.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) limits: LimitBook,
    pub(super) env: Env,
    pub(super) matches: Vec<Match>,
    pub(super) stats: Stats,
}

/// What a turn has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// In all.
    all: f64,
    /// Of slots that nobody used.
    unclaimed: f64,
}

/// What a request wants of concurrency limits.
enum Limited {
    /// The same of whatever slot.
    Always(Wants),
    /// What an expression says that looks at the slot.
    BySlot,
}

impl Limited {
    fn of(request: &Ad, env: &Env) -> Self {
        Wants::on_any_slot(request, env).map_or(Self::BySlot, Self::Always)
    }

    /// What a match with a slot wants.
    fn with(&self, request: &Ad, slot: Option<&Ad>, env: &Env) -> Wants {
        match (self, slot) {
            (Self::Always(wants), _) => wants.clone(),
            (Self::BySlot, Some(slot)) => Wants::on_slot(request, slot, env),
            (Self::BySlot, None) => Wants::default(),
        }
    }
}

impl Turn<'_> {
    /// Takes the turn. Returns how it ended and the slot weight taken. A request that got less than it wants
    /// isn't asked again in this turn.
    pub(super) fn take(&self, table: &mut Table<'_>, progress: &mut [Progress]) -> (Verdict, f64) {
        let mut used = Used::default();
        let mut limited = false;
        for (index, (request, progress)) in self.requests.iter().zip(progress.iter_mut()).enumerate() {
            // Slots see that it is regrouped: those that did not match before may now.
            let otherwise = self.asking.autoregroup && !progress.regrouped;
            if progress.left == 0 || progress.hopeless() && !otherwise {
                continue;
            }
            if self.reached(used.all, &table.judge).is_some() {
                return (Verdict::Resume, used.all);
            }
            progress.regrouped = self.asking.autoregroup;
            table.stats.requests_considered += 1;
            limited |= self.serve(table, index, request, progress, &mut used);
            if limited && self.one_size {
                return (Verdict::Resume, used.all);
            }
        }
        let resume =
            limited || used.all >= self.limits.limit || self.reached(used.all, &table.judge).is_some();
        (if resume { Verdict::Resume } else { Verdict::Done }, used.all)
    }

    /// What bars any further match, once so much is taken.
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

    /// Matches jobs of one request until none is left, no slot will do or nothing more may be taken. Whether it is the
    /// submitter's limit that stands against more.
    fn serve(
        &self,
        table: &mut Table<'_>,
        index: usize,
        request: &Request,
        progress: &mut Progress,
        used: &mut Used,
    ) -> bool {
        let limited = Limited::of(&self.seen(request, 0.0), &table.env);
        // As long as the search: what was passed over for an earlier job is not among the slots for the next.
        let mut barred = Barred::default();
        let mut search: Option<Search> = None;
        let mut filling: Option<usize> = None;
        while progress.left > 0 {
            if let Some(reason) = self.reached(used.all, &table.judge) {
                progress.reason = Some(reason);
                return reason == self.limits.reason();
            }
            if let Limited::Always(wants) = &limited
                && table.limits.blocked(wants).is_some()
            {
                progress.reason = Some(RejectReason::ConcurrencyLimit);
                return false;
            }
            let mut look = search.take().unwrap_or_else(|| {
                barred = Barred::default();
                table.stats.pairs_considered += u64::try_from(table.judge.len()).unwrap_or(u64::MAX);
                table.judge.search(&self.seen(request, used.all), self.name)
            });
            let Some((offer, wants)) = self.best(table, &mut look, filling, &limited, *used, &mut barred)
            else {
                let only_rank = used.all >= self.limits.limit;
                let otherwise = if only_rank {
                    self.limits.reason()
                } else {
                    table.judge.refusal(&look).unwrap_or(RejectReason::NoMatch)
                };
                progress.reason = Some(barred.by.map_or(otherwise, |bar| bar.reason(self)));
                return barred.limit || only_rank;
            };
            let dynamic = table.judge.take(&mut look, &offer);
            table.limits.take(&wants);
            let Offer { place: slot, preempt, cost } = offer;
            let submitter = self.submitter;
            let regrouped = self.asking.autoregroup;
            table.matches.push(Match { submitter, request: index, slot, cost, preempt, regrouped, dynamic });
            used.all += cost;
            used.unclaimed += if preempt == PreemptState::None { cost } else { 0.0 };
            progress.left -= 1;
            search = self.caching.then_some(look);
            filling = self.depth_first.then_some(slot);
        }
        false
    }

    /// A request's ad as slots see it, when so much is taken.
    fn seen(&self, request: &Request, used: f64) -> Ad {
        self.asking.said_of(&request.ad, used)
    }

    /// The slot that is being filled, or else the best slot, that the terms allow. Whatever they bar now they bar for the rest of
    /// the turn: it may be passed over.
    fn best(
        &self,
        table: &mut Table<'_>,
        search: &mut Search,
        filling: Option<usize>,
        limited: &Limited,
        used: Used,
        barred: &mut Barred,
    ) -> Option<(Offer, Wants)> {
        let only_rank = used.all >= self.limits.limit;
        let mut again = filling.filter(|_| !only_rank).and_then(|place| table.judge.again(search, place));
        loop {
            let wanted = |preempt| !only_rank || preempt == PreemptState::Rank;
            let offer = match again.take() {
                Some(again) => again,
                None => table.judge.next(search, wanted)?,
            };
            if !self.allows(&offer, used, barred) {
                continue;
            }
            let wants = limited.with(search.request(), table.judge.ad(offer.place), &table.env);
            if table.limits.blocked(&wants).is_some() {
                barred.note(Bar::Concurrency);
                continue;
            }
            return Some((offer, wants));
        }
    }

    fn allows(&self, offer: &Offer, used: Used, barred: &mut Barred) -> bool {
        if self.idle_only && offer.preempt == PreemptState::Priority {
            // The limit won't be higher in the next spin: what is left of the pie is for others then.
            barred.note(Bar::Limit);
            return false;
        }
        let fits = match offer.preempt {
            PreemptState::None => permits(used.unclaimed, offer.cost, self.limits.unclaimed),
            PreemptState::Priority => permits(used.all, offer.cost, self.limits.limit),
            // Whom the owner of a machine prefers has it, whatever others have had.
            PreemptState::Rank => true,
        };
        let promised = used.all + offer.cost;
        if promised > self.ceiling + SLACK {
            barred.note(Bar::Ceiling);
        } else if promised > self.limits.quota + SLACK {
            barred.note(Bar::Quota);
        } else if !fits {
            barred.limit = true;
            barred.note(Bar::Limit);
        } else {
            return true;
        }
        false
    }
}

/// Sums of weights that are no whole numbers may be off by so much.
const SLACK: f64 = 1e-9;

/// What stands against a slot that matches. Of several the last is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bar {
    Ceiling,
    Quota,
    Limit,
    Concurrency,
}

impl Bar {
    fn reason(self, turn: &Turn<'_>) -> RejectReason {
        match self {
            Self::Ceiling => RejectReason::Ceiling,
            Self::Quota => RejectReason::GroupQuota,
            Self::Limit => turn.limits.reason(),
            Self::Concurrency => RejectReason::ConcurrencyLimit,
        }
    }
}

/// What stood against slots that match.
#[derive(Clone, Copy, Debug, Default)]
struct Barred {
    by: Option<Bar>,
    /// Whether the submitter's limit did: it may be higher in the next spin.
    limit: bool,
}

impl Barred {
    fn note(&mut self, bar: Bar) {
        self.by = self.by.max(Some(bar));
    }
}
