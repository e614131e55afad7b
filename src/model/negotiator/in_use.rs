//! Slots in use: who has them, and whether a job may have them instead.
//!
//! Source: the manual, "The Negotiation Cycle" and "Preemption"; `matchmaker.cpp` for what it leaves out: of equal startd rank a
//! job may take a slot where PREEMPTION_REQUIREMENTS is true, which alone compares priorities.

use std::collections::HashMap;

use super::config::Config;
use super::cycle::{Cycle, PreemptState, RejectReason, SubmitterInput};
use super::groups::ROOT;
use classad::{Ad, Env, Expr, Matching as Places, Prepared, Roster, Value};

/// Where a slot's ad says who is charged for it, the first that is there.
const USERS: [&str; 4] = ["PreemptingAccountingGroup", "PreemptingUser", "AccountingGroup", "RemoteUser"];

/// The effective priority of somebody of whom nothing is known: new, with the default factor.
const UNKNOWN_PRIORITY: f64 = super::accountant::MIN_REAL_PRIORITY * 1000.0;

/// At how many slots in use that match a job is looked to say why it has none of them.
const LOOKED_AT: usize = 1000;

/// What is asked about slots in use, each of them a number of [`Roster::answer`].
#[derive(Clone, Copy)]
enum Question {
    /// The slot ranks the job higher than its own.
    RankAbove,
    /// The slot ranks it no lower.
    RankEqual,
    /// PREEMPTION_REQUIREMENTS is true.
    Requirements,
    /// PREEMPTION_RANK.
    Rank,
}

/// What is asked about slots in use, in the order of [`Question`].
pub(super) fn questions(config: &Config) -> Vec<Expr> {
    let parse = |text: &str| Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error));
    let requirements = match &config.preemption_requirements {
        // Nothing but true counts: no number, and not what is undefined.
        Some(expr) => parse(&format!("({expr}) =?= true")),
        None => Expr::literal(Value::Bool(true)),
    };
    let rank = config.preemption_rank.clone().unwrap_or_else(|| Expr::literal(Value::Int(0)));
    vec![parse("MY.Rank > MY.CurrentRank"), parse("MY.Rank >= MY.CurrentRank"), requirements, rank]
}

/// Who is charged for a slot; none if nobody uses it.
pub(super) fn user(ad: &Ad, env: &Env) -> Option<String> {
    let mut said = USERS.iter().filter(|name| ad.contains(name)).map(|name| ad.eval_attr(name, None, env));
    said.find_map(|user| user.as_str().filter(|user| !user.is_empty()).map(str::to_owned))
}

/// Whether a slot in use is looked at: NEGOTIATOR_CONSIDER_EARLY_PREEMPTION keeps those whose job has retirement time left.
pub(super) fn may_go(config: &Config, ad: &Ad, env: &Env) -> bool {
    let retirement = || ad.eval_attr("RetirementTimeRemaining", None, env).as_number();
    config.consider_early_preemption || !retirement().is_some_and(|left| left > 0.0)
}

/// How a slot stands to a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Unclaimed,
    /// It may be taken from its job, for this reason; with the value of PREEMPTION_RANK.
    Preempt(PreemptState, f64),
    /// Its job stays.
    Kept,
}

/// The slots in use.
#[derive(Clone, Debug)]
pub(super) struct InUse {
    /// The number of each user.
    numbers: HashMap<String, u32>,
    holders: HashMap<usize, u32>,
    /// Those that no job can have: PREEMPTION_REQUIREMENTS says so.
    by_policy: Places,
    /// Those that no job can have: they rank their own higher.
    by_rank: Places,
    any_rank: bool,
    users: HashMap<String, User>,
}

/// What is said of a slot's user in its ad.
#[derive(Clone, Debug)]
struct User {
    priority: f64,
    floor: f64,
    used: f64,
    group: String,
    group_used: f64,
    group_quota: f64,
}

impl InUse {
    pub(super) fn new(cycle: &Cycle) -> Self {
        let known = cycle.others.iter().chain(&cycle.submitters);
        let users = known.map(|submitter| (submitter.name.clone(), User::of(cycle, submitter)));
        Self {
            numbers: HashMap::new(),
            holders: HashMap::new(),
            by_policy: Places::default(),
            by_rank: Places::default(),
            any_rank: false,
            users: users.collect(),
        }
    }

    /// The ad of a slot in use as expressions see it: with what the negotiator knows of its user. What waits for the slot
    /// already counts as what runs there.
    pub(super) fn seen(&self, ad: &Ad, user: &str) -> Ad {
        let mut seen = ad.clone();
        if let Some(rank) = ad.get("PreemptingRank") {
            seen.insert("CurrentRank", rank.clone());
        }
        match self.users.get(user) {
            Some(user) => {
                seen.set("RemoteUserPrio", user.priority);
                seen.set("RemoteUserFloor", user.floor);
                seen.set("RemoteUserResourcesInUse", user.used);
                seen.set("RemoteGroup", user.group.as_str());
                seen.set("RemoteGroupResourcesInUse", user.group_used);
                seen.set("RemoteGroupQuota", user.group_quota);
            }
            None => seen.set("RemoteUserPrio", UNKNOWN_PRIORITY),
        }
        seen
    }

    /// Takes note of a slot in use, which is in the roster. Whether any job may have it.
    pub(super) fn add(&mut self, place: usize, user: &str, roster: &Roster) -> bool {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(user.to_owned()).or_insert(next);
        self.holders.insert(place, number);
        // Nothing is known of what depends on the job.
        let never = |question: Question| {
            roster.constant_answer(place, question as usize).is_some_and(|answer| answer != Some(1.0))
        };
        let above = !never(Question::RankAbove);
        self.any_rank |= above;
        if above {
            return true;
        }
        if never(Question::RankEqual) {
            self.by_rank.insert(place);
            return false;
        }
        if never(Question::Requirements) {
            self.by_policy.insert(place);
            return false;
        }
        true
    }

    /// Whether some slot may rank some job higher than its own.
    pub(super) fn any_rank(&self) -> bool {
        self.any_rank
    }

    /// Whether a slot is in use and no job can have it.
    pub(super) fn is_closed(&self, place: usize) -> bool {
        self.by_policy.contains(place) || self.by_rank.contains(place)
    }

    /// The number of a user; none for one who uses no slot.
    pub(super) fn number(&self, user: &str) -> Option<u32> {
        self.numbers.get(user).copied()
    }

    /// The number of who uses a slot.
    pub(super) fn holder(&self, place: usize) -> Option<u32> {
        self.holders.get(&place).copied()
    }

    /// How a slot stands to a job, whoever has it.
    pub(super) fn standing(&self, roster: &Roster, job: &Prepared, place: usize) -> Standing {
        if !self.holders.contains_key(&place) {
            return Standing::Unclaimed;
        }
        if self.is_closed(place) {
            return Standing::Kept;
        }
        let answer = |question: Question| roster.answer(job, place, question as usize);
        let holds = |question: Question| answer(question) == Some(1.0);
        let rank = || answer(Question::Rank).unwrap_or(f64::MIN);
        if holds(Question::RankAbove) {
            Standing::Preempt(PreemptState::Rank, rank())
        } else if holds(Question::Requirements) && holds(Question::RankEqual) {
            Standing::Preempt(PreemptState::Priority, rank())
        } else {
            Standing::Kept
        }
    }

    /// Why slots that match a job of a submitter are not to be had, where none is: as in HTCondor by policy, if one of them is
    /// refused by that.
    pub(super) fn refusal(
        &self,
        roster: &Roster,
        job: &Prepared,
        matching: &Places,
        submitter: Option<u32>,
    ) -> Option<RejectReason> {
        let of_others = |place: &usize| self.holder(*place).is_some_and(|holder| Some(holder) != submitter);
        if self.holders.is_empty() {
            return None;
        }
        let by_policy = |place: usize| {
            let allowed = || roster.answer(job, place, Question::Requirements as usize) == Some(1.0);
            self.by_policy.contains(place) || !self.by_rank.contains(place) && !allowed()
        };
        let mut refused = matching.iter().filter(of_others).take(LOOKED_AT).peekable();
        refused.peek()?;
        Some(if refused.any(by_policy) {
            RejectReason::PreemptionPolicy
        } else {
            RejectReason::PreemptionRank
        })
    }
}

/// What is said of a job's submitter in its ad, so that expressions can look at it.
#[derive(Clone, Debug)]
pub(super) struct Asking<'a> {
    pub(super) priority: f64,
    pub(super) used: f64,
    pub(super) group: &'a str,
    pub(super) group_used: f64,
    pub(super) group_quota: f64,
    /// The group that negotiates: not the submitter's own where that takes part in the root's turn.
    pub(super) negotiating_group: &'a str,
    /// Whether it takes part in the root's turn though it is in a group.
    pub(super) autoregroup: bool,
}

impl Asking<'_> {
    /// The job's ad with all of this, when the submitter has taken so much in its turn.
    pub(super) fn said_of(&self, job: &Ad, taken: f64) -> Ad {
        let mut seen = job.clone();
        // An old spelling that policies still use.
        for name in ["SubmitterUserPrio", "SubmittorPrio"] {
            seen.set(name, self.priority);
        }
        seen.set("SubmitterUserResourcesInUse", self.used + taken);
        seen.set("SubmitterGroup", self.group);
        seen.set("SubmitterGroupResourcesInUse", self.group_used + taken);
        seen.set("SubmitterGroupQuota", self.group_quota);
        seen.set("SubmitterNegotiatingGroup", self.negotiating_group);
        seen.set("SubmitterAutoregroup", self.autoregroup);
        seen
    }
}

impl User {
    fn of(cycle: &Cycle, submitter: &SubmitterInput) -> Self {
        let group = submitter.group.and_then(|group| cycle.groups.get(group));
        Self {
            priority: submitter.effective_priority,
            floor: submitter.floor.unwrap_or(0.0),
            used: submitter.weighted_used,
            group: group.map_or_else(|| ROOT.to_owned(), |group| group.name.clone()),
            group_used: group.map_or(cycle.ungrouped_used, |group| group.weighted_used),
            group_quota: group.map_or(cycle.pool_weight, |group| group.quota),
        }
    }
}
