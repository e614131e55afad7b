//! Slots in use: their users, and whether a job may preempt the jobs there.
//!
//! Source: the manual, "The Negotiation Cycle" and "Preemption"; `matchmaker.cpp` for what the manual leaves out: if a slot ranks
//! two jobs equally, one may preempt the other wherever PREEMPTION_REQUIREMENTS is true. Only that expression compares
//! priorities.

use std::collections::HashMap;

use super::allocation::root_quota;
use super::config::Config;
use super::cycle::{Cycle, PreemptState, RejectReason, SubmitterInput};
use super::groups::ROOT;
use classad::{Ad, Env, Expr, Matching as Places, Prepared, Roster, Value};

/// The attributes of a slot's ad that name the user who is charged for the slot. The first that is set counts.
const USERS: [&str; 4] = ["PreemptingAccountingGroup", "PreemptingUser", "AccountingGroup", "RemoteUser"];

/// The effective priority of a user of whom nothing is known: that of a new user with the default factor.
const UNKNOWN_PRIORITY: f64 = super::accountant::MIN_REAL_PRIORITY * 1000.0;

/// How many matching slots in use are examined to say why a job may not have any of them.
const LOOKED_AT: usize = 1000;

/// An expression that is evaluated for each slot in use. The discriminants are the numbers that [`Roster::answer`] takes.
#[derive(Clone, Copy)]
enum Question {
    /// The slot ranks the job higher than the job that runs there.
    RankAbove,
    /// The slot ranks the job at least as high as the job that runs there.
    RankEqual,
    /// PREEMPTION_REQUIREMENTS is true.
    Requirements,
    /// PREEMPTION_RANK.
    Rank,
}

/// The expressions that are evaluated for slots in use, in the order of [`Question`].
pub(super) fn questions(config: &Config) -> Vec<Expr> {
    let parse = |text: &str| Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error));
    let requirements = match &config.preemption_requirements {
        // Only `true` counts, not a number, and not undefined.
        Some(expr) => parse(&format!("({expr}) =?= true")),
        None => Expr::literal(Value::Bool(true)),
    };
    let rank = config.preemption_rank.clone().unwrap_or_else(|| Expr::literal(Value::Int(0)));
    vec![parse("MY.Rank > MY.CurrentRank"), parse("MY.Rank >= MY.CurrentRank"), requirements, rank]
}

/// The user who is charged for a slot; none if the slot is not in use.
pub(super) fn user(ad: &Ad, env: &Env) -> Option<String> {
    let mut said = USERS.iter().filter(|name| ad.contains(name)).map(|name| ad.eval_attr(name, None, env));
    said.find_map(|user| user.as_str().filter(|user| !user.is_empty()).map(str::to_owned))
}

/// Whether the negotiator considers a slot in use for preemption: not while its job has retirement time left, unless
/// NEGOTIATOR_CONSIDER_EARLY_PREEMPTION is set.
pub(super) fn is_preemptible(config: &Config, ad: &Ad, env: &Env) -> bool {
    let retirement = || ad.eval_attr("RetirementTimeRemaining", None, env).as_number();
    config.consider_early_preemption || !retirement().is_some_and(|left| left > 0.0)
}

/// Whether a job may have a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Availability {
    /// The slot is not in use.
    Unclaimed,
    /// The slot is in use, and the job may preempt the job there, for this reason; with the value of PREEMPTION_RANK.
    Preempt(PreemptState, f64),
    /// The slot is in use, and the job may not have it.
    Unavailable,
}

/// The slots in use.
#[derive(Clone, Debug)]
pub(super) struct InUse {
    /// The number of each user who uses a slot.
    numbers: HashMap<String, u32>,
    /// The number of the user of each slot, by the slot's place.
    user_numbers: HashMap<usize, u32>,
    /// The group that each user is charged to, by the user's number, as [`SubmitterInput::group`] has it; none for a user of whom
    /// the cycle knows nothing.
    groups: HashMap<u32, Option<usize>>,
    /// The slots that no job may have because PREEMPTION_REQUIREMENTS is never true there.
    refused_by_policy: Places,
    /// The slots that no job may have because they rank every other job lower.
    refused_by_rank: Places,
    any_rank: bool,
    users: HashMap<String, UserFacts>,
}

/// The facts about a slot's user that the negotiator adds to the slot's ad.
#[derive(Clone, Debug)]
struct UserFacts {
    priority: f64,
    floor: f64,
    used: f64,
    place: Option<usize>,
    group: Option<GroupFacts>,
}

impl InUse {
    pub(super) fn new(cycle: &Cycle) -> Self {
        let known = cycle.others.iter().chain(&cycle.submitters);
        let of_root = root_quota(cycle);
        let users = known.map(|submitter| (submitter.name.clone(), UserFacts::of(cycle, submitter, of_root)));
        Self {
            numbers: HashMap::new(),
            user_numbers: HashMap::new(),
            groups: HashMap::new(),
            refused_by_policy: Places::default(),
            refused_by_rank: Places::default(),
            any_rank: false,
            users: users.collect(),
        }
    }

    /// The ad of a slot in use as expressions see it: with what the negotiator knows about the slot's user. If a job already
    /// waits to preempt the job there, the rank of the waiting job counts.
    pub(super) fn ad_with_user(&self, ad: &Ad, user: &str) -> Ad {
        let mut seen = ad.clone();
        if let Some(rank) = ad.get("PreemptingRank") {
            seen.insert("CurrentRank", rank.clone());
        }
        match self.users.get(user) {
            Some(user) => {
                seen.set("RemoteUserPrio", user.priority);
                seen.set("RemoteUserFloor", user.floor);
                seen.set("RemoteUserResourcesInUse", user.used);
                if let Some(group) = &user.group {
                    seen.set("RemoteGroup", group.name.as_str());
                    seen.set("RemoteGroupResourcesInUse", group.used);
                    seen.set("RemoteGroupQuota", group.quota);
                }
            }
            None => seen.set("RemoteUserPrio", UNKNOWN_PRIORITY),
        }
        seen
    }

    /// Adds a slot in use, which the roster has prepared. Returns whether some job may have it.
    pub(super) fn add(&mut self, place: usize, user: &str, roster: &Roster) -> bool {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(user.to_owned()).or_insert(next);
        self.user_numbers.insert(place, number);
        if let Some(user) = self.users.get(user) {
            self.groups.insert(number, user.place);
        }
        // An answer that depends on the job is not constant, so that it may be yes.
        let never = |question: Question| {
            roster.constant_answer(place, question as usize).is_some_and(|answer| answer != Some(1.0))
        };
        let above = !never(Question::RankAbove);
        self.any_rank |= above;
        if above {
            return true;
        }
        if never(Question::RankEqual) {
            self.refused_by_rank.insert(place);
            return false;
        }
        if never(Question::Requirements) {
            self.refused_by_policy.insert(place);
            return false;
        }
        true
    }

    /// Whether some slot may rank another job higher than the job that runs there.
    pub(super) fn any_rank(&self) -> bool {
        self.any_rank
    }

    /// Whether a slot is in use and no job may have it.
    pub(super) fn is_unavailable(&self, place: usize) -> bool {
        self.refused_by_policy.contains(place) || self.refused_by_rank.contains(place)
    }

    /// The number of a user; none if the user uses no slot.
    pub(super) fn number(&self, user: &str) -> Option<u32> {
        self.numbers.get(user).copied()
    }

    /// The number of the user of a slot; none if the slot is not in use.
    pub(super) fn user_number(&self, place: usize) -> Option<u32> {
        self.user_numbers.get(&place).copied()
    }

    /// Whether the user of a slot is charged to a group; to the root for `None`.
    pub(super) fn is_charged_to(&self, place: usize, group: Option<usize>) -> bool {
        let charged = self.user_number(place).and_then(|number| self.groups.get(&number));
        charged.is_some_and(|charged| *charged == group)
    }

    /// Whether a job may have a slot. The answer is the same if the job's submitter is the slot's user.
    pub(super) fn availability(&self, roster: &Roster, job: &Prepared, place: usize) -> Availability {
        if !self.user_numbers.contains_key(&place) {
            return Availability::Unclaimed;
        }
        if self.is_unavailable(place) {
            return Availability::Unavailable;
        }
        let answer = |question: Question| roster.answer(job, place, question as usize);
        let holds = |question: Question| answer(question) == Some(1.0);
        let rank = || answer(Question::Rank).unwrap_or(f64::MIN);
        if holds(Question::RankAbove) {
            Availability::Preempt(PreemptState::Rank, rank())
        } else if holds(Question::Requirements) && holds(Question::RankEqual) {
            Availability::Preempt(PreemptState::Priority, rank())
        } else {
            Availability::Unavailable
        }
    }

    /// Why a submitter's job may not have any of the slots in use that match it: by policy, if PREEMPTION_REQUIREMENTS refuses
    /// one of them, as in HTCondor; otherwise by rank. None if no slot of another user matches.
    pub(super) fn refusal(
        &self,
        roster: &Roster,
        job: &Prepared,
        matching: &Places,
        submitter: Option<u32>,
    ) -> Option<RejectReason> {
        let of_others =
            |place: &usize| self.user_number(*place).is_some_and(|holder| Some(holder) != submitter);
        if self.user_numbers.is_empty() {
            return None;
        }
        let refused_by_policy = |place: usize| {
            let allowed = || roster.answer(job, place, Question::Requirements as usize) == Some(1.0);
            self.refused_by_policy.contains(place) || !self.refused_by_rank.contains(place) && !allowed()
        };
        let mut refused = matching.iter().filter(of_others).take(LOOKED_AT).peekable();
        refused.peek()?;
        Some(if refused.any(refused_by_policy) {
            RejectReason::PreemptionPolicy
        } else {
            RejectReason::PreemptionRank
        })
    }
}

/// The facts about a user's accounting group that the negotiator adds to ads.
#[derive(Clone, Debug)]
pub(super) struct GroupFacts {
    name: String,
    used: f64,
    quota: f64,
}

impl GroupFacts {
    /// The facts about a group that uses `used`, or about the root, whose quota is `of_root`. A pool without groups has none, as in
    /// HTCondor: there the attributes are undefined.
    pub(super) fn of(cycle: &Cycle, group: Option<usize>, used: f64, of_root: f64) -> Option<Self> {
        let known = group.and_then(|group| cycle.groups.get(group));
        (!cycle.groups.is_empty()).then(|| Self {
            name: known.map_or(ROOT, |group| group.name.as_str()).to_owned(),
            used,
            quota: known.map_or(of_root, |group| group.quota),
        })
    }
}

/// The facts about a job's submitter that the negotiator adds to the job's ad, for expressions to read.
#[derive(Clone, Debug)]
pub(super) struct SubmitterFacts<'a> {
    pub(super) priority: f64,
    pub(super) used: f64,
    pub(super) group: Option<GroupFacts>,
    /// The group whose turn it is: the root if a group's submitter takes part in the root's turn.
    pub(super) negotiating_group: &'a str,
    /// Whether the submitter is in a group and takes part in the root's turn.
    pub(super) autoregroup: bool,
}

impl SubmitterFacts<'_> {
    /// Returns the job's ad with these facts as attributes. `taken` is the slot weight that the submitter has taken so
    /// far in its turn, and is added to the weights in use.
    pub(super) fn ad_with_facts(&self, job: &Ad, taken: f64) -> Ad {
        let mut seen = job.clone();
        // Policies still use the old spelling, `Submittor`.
        for name in ["SubmitterUserPrio", "SubmittorPrio"] {
            seen.set(name, self.priority);
        }
        seen.set("SubmitterUserResourcesInUse", self.used + taken);
        if let Some(group) = &self.group {
            seen.set("SubmitterGroup", group.name.as_str());
            seen.set("SubmitterGroupResourcesInUse", group.used + taken);
            seen.set("SubmitterGroupQuota", group.quota);
        }
        seen.set("SubmitterNegotiatingGroup", self.negotiating_group);
        seen.set("SubmitterAutoregroup", self.autoregroup);
        seen
    }
}

impl UserFacts {
    fn of(cycle: &Cycle, submitter: &SubmitterInput, of_root: f64) -> Self {
        let group = submitter.group.and_then(|group| cycle.groups.get(group));
        Self {
            priority: submitter.effective_priority,
            floor: submitter.floor.unwrap_or(0.0),
            used: submitter.weighted_used,
            place: submitter.group.filter(|_| group.is_some()),
            group: GroupFacts::of(
                cycle,
                submitter.group,
                group.map_or(cycle.ungrouped_used, |group| group.weighted_used),
                of_root,
            ),
        }
    }
}
