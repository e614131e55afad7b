//! Drains: what each `DrainRequest` asks for, and how far it has come.

use std::sync::Arc;

use super::Pool;
use super::effect::{Notice, Subject};
use super::ids::MachineName;
use super::indexed::About;
use super::job::Problem;
use super::marks::Change;
use super::time::Time;
use classad::Expr;

/// The reason of a request that waits because its node does not exist.
const NO_SUCH_NODE: &str = "NoSuchNode";

/// How jobs leave a machine that is drained: `condor_drain`'s schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schedule {
    /// Jobs have their retirement and vacating times.
    Graceful,
    /// Jobs have only their vacating times.
    Quick,
    /// Jobs are killed at once.
    Fast,
}

/// The drain that a `DrainRequest` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainSpec {
    /// The machine to drain.
    pub machine: MachineName,
    /// How jobs leave.
    pub schedule: Schedule,
    /// Whether the machine takes jobs again once it is drained.
    pub resume: bool,
    /// An expression that must be true of every slot when the drain begins.
    pub check: Option<Expr>,
    /// The `START` that holds during the drain.
    pub start: Option<Expr>,
    /// Why the machine is drained, in the words of whoever asked.
    pub reason: Option<Arc<str>>,
}

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// The drain has not begun; the problem says why.
    Waiting(Problem),
    /// The drain will never begin; the problem says why.
    Refused(Problem),
    /// Jobs are leaving.
    Draining {
        /// When the drain began.
        since: Time,
    },
    /// All slots are drained, and stay so.
    Drained {
        /// When the drain began.
        since: Time,
        /// When all slots were drained.
        at: Time,
    },
    /// All slots were drained, and take jobs again.
    Resumed {
        /// When the drain began.
        since: Time,
        /// When all slots were drained.
        at: Time,
    },
}

impl Phase {
    /// When the drain began.
    pub fn began(&self) -> Option<Time> {
        match self {
            Self::Waiting(_) | Self::Refused(_) => None,
            Self::Draining { since } | Self::Drained { since, .. } | Self::Resumed { since, .. } => {
                Some(*since)
            }
        }
    }

    /// When all slots were drained.
    pub fn completed(&self) -> Option<Time> {
        match self {
            Self::Drained { at, .. } | Self::Resumed { at, .. } => Some(*at),
            Self::Waiting(_) | Self::Refused(_) | Self::Draining { .. } => None,
        }
    }

    /// The phase's name, and a sentence about it: for the request's condition and for its events.
    pub fn says(&self) -> (&'static str, String) {
        let (reason, message) = match self {
            Self::Waiting(why) => return (why.reason, why.message.clone()),
            Self::Refused(why) => return ("Refused", why.message.clone()),
            Self::Draining { .. } => {
                ("Draining", "jobs are leaving the node; see status.claims for how many are left")
            }
            Self::Drained { .. } => {
                ("Drained", "all slots of the node are drained, until this DrainRequest is deleted")
            }
            Self::Resumed { .. } => ("Resumed", "all slots of the node were drained, and take jobs again"),
        };
        (reason, message.to_owned())
    }

    /// Whether the phase is worth an event: not if the request is about to begin.
    fn is_told(&self) -> bool {
        !matches!(self, Self::Waiting(why) if ["Waiting", NO_SUCH_NODE].contains(&why.reason))
    }

    /// Whether the request has no further effect: it was refused, or the machine takes jobs again.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Resumed { .. })
    }
}

/// The cost of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU seconds for which jobs had run that were evicted by the drain, and whose work is lost.
    pub badput: i64,
    /// CPU seconds of the machine that no claim used during the drain.
    pub unclaimed: i64,
}

impl Cost {
    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.badput = self.badput.saturating_add(other.badput);
        self.unclaimed = self.unclaimed.saturating_add(other.unclaimed);
    }
}

/// CPUs that no claim has, summed up over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclaimed {
    /// Thousandths of CPU seconds that were unclaimed until `since`.
    millis: i64,
    /// The number of unclaimed CPUs from `since` on.
    pub cpus: i64,
    /// The time of the last change.
    pub since: Time,
}

impl Unclaimed {
    /// A sum of `seconds` CPU seconds until `now`, with `cpus` unclaimed CPUs from `now` on.
    pub fn new(seconds: i64, cpus: i64, now: Time) -> Self {
        Self { millis: seconds.saturating_mul(1000), cpus, since: now }
    }

    /// Adds the time until `now`. From `now` on, `cpus` CPUs are unclaimed.
    pub fn advance(&mut self, cpus: i64, now: Time) {
        let span = i64::try_from(now.since(self.since).as_millis()).unwrap_or(i64::MAX);
        self.millis = self.millis.saturating_add(span.saturating_mul(self.cpus));
        (self.cpus, self.since) = (cpus, now.max(self.since));
    }

    /// Whole CPU seconds until the last change.
    pub fn seconds(&self) -> i64 {
        self.millis / 1000
    }
}

/// The cost of past drains of a machine, and when the last drain was: for the machine's ads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The sum over drains that ended since the operator began. Drains whose `DrainRequest` still exists count even if
    /// they ended earlier.
    pub cost: Cost,
    /// `LastDrainStartTime`.
    pub started: Option<Time>,
    /// `LastDrainStopTime`.
    pub stopped: Option<Time>,
}

/// The facts of a `DrainRequest`, as the shell sees them.
#[derive(Clone, Debug)]
pub struct DrainFacts {
    /// The object's name.
    pub name: Arc<str>,
    /// The object's uid.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Time,
    /// The content of the spec, or everything that is wrong with the spec.
    pub spec: Result<Arc<DrainSpec>, Vec<Problem>>,
    /// The phase that the object's status records, if that is more than waiting.
    pub recorded: Option<Phase>,
    /// The cost that the object's status records.
    pub cost: Cost,
}

/// A `DrainRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// The object's uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// When the object was created. If there are several requests for a machine, the earliest comes first.
    pub created: Time,
    /// The content of the spec; `None` if the spec is not valid.
    pub spec: Option<Arc<DrainSpec>>,
    /// The problems with the present spec.
    pub problems: Vec<Problem>,
    /// How far the request has come.
    pub phase: Phase,
    /// The cost of the drain, as of the last time that the number of claims changed.
    pub cost: Cost,
    /// How many claims were left at that time.
    pub claims: usize,
}

impl About for Drain {
    /// The machine to drain.
    type Subject = MachineName;

    fn subjects(&self) -> impl IntoIterator<Item = MachineName> {
        self.spec.as_ref().map(|spec| spec.machine.clone())
    }
}

/// Why a machine is drained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainedFor {
    /// Because of a `DrainRequest` of this name.
    Request(Arc<str>),
    /// Because its node is cordoned.
    Cordon,
}

/// A drain of a machine that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Draining {
    /// Why the machine is drained.
    pub why: DrainedFor,
    /// How jobs leave.
    pub schedule: Schedule,
    /// Whether the machine takes jobs again once it is drained.
    pub resume: bool,
    /// The `START` that holds as long as a claim lives that existed before the drain.
    pub start: Option<Expr>,
    /// The reason, for people and for expressions.
    pub reason: Arc<str>,
    /// When the drain began.
    pub since: Time,
    /// When all slots were drained.
    pub done: Option<Time>,
    /// When the retirement of the last job ends that ran before the drain. The other jobs are evicted no earlier, so
    /// that all slots come free together. `None` if no job has any retirement left, or if the schedule grants none.
    pub deadline: Option<Time>,
    /// CPU seconds of lost work of jobs that were evicted by the drain.
    pub badput: i64,
    /// CPUs that no claim has had since the drain began.
    pub unclaimed: Unclaimed,
}

impl Draining {
    /// The cost of the drain, as of the last change of its claims.
    pub fn cost(&self) -> Cost {
        Cost { badput: self.badput, unclaimed: self.unclaimed.seconds() }
    }
}

impl Pool {
    /// The drain requests for a machine, by the name of their object.
    pub fn drains_of(&self, machine: &MachineName) -> impl Iterator<Item = (&Arc<str>, &Drain)> {
        self.drains.about(machine)
    }

    pub(super) fn drain_seen(&mut self, facts: DrainFacts) {
        let known = facts.spec.as_ref().is_ok_and(|spec| self.machines.contains_key(&spec.machine));
        let waiting = || {
            let (reason, message) = match &facts.spec {
                // A spec that is not valid begins nothing. The request waits for another spec.
                Err(problems) => {
                    let reason = problems.first().map_or("InvalidSpec", |problem| problem.reason);
                    let each =
                        problems.iter().map(|Problem { field, message, .. }| format!("{field}: {message}"));
                    (reason, each.collect::<Vec<_>>().join("; "))
                }
                Ok(_) if known => ("Waiting", "the drain has not begun".to_owned()),
                Ok(_) => {
                    (NO_SUCH_NODE, "there is no node of this name; the drain begins when there is".to_owned())
                }
            };
            Phase::Waiting(Problem { reason, field: "spec.node".to_owned(), message })
        };
        let before = self.drains.get(&facts.name);
        // A changed spec is another request: the phase and cost of the old spec do not count.
        let (phase, cost) = match before {
            Some(before) if before.spec.is_some() && before.spec.as_ref() == facts.spec.as_ref().ok() => {
                (before.phase.clone(), before.cost)
            }
            Some(_) => (waiting(), Cost::default()),
            None => facts.recorded.map_or_else(|| (waiting(), Cost::default()), |phase| (phase, facts.cost)),
        };
        let claims = before.map_or(usize::MAX, |before| before.claims);
        let (spec, problems) = match facts.spec {
            Ok(spec) => (Some(spec), Vec::new()),
            Err(problems) => (None, problems),
        };
        let drain = Drain {
            uid: facts.uid,
            generation: facts.generation,
            created: facts.created,
            spec,
            problems,
            phase,
            cost,
            claims,
        };
        if before == Some(&drain) {
            return;
        }
        let is_news =
            !drain.problems.is_empty() && before.is_none_or(|before| before.problems != drain.problems);
        let specs = [before.and_then(|before| before.spec.clone()), drain.spec.clone()];
        let machines = specs.each_ref().map(|spec| spec.as_ref().map(|spec| &spec.machine));
        self.changed(Change::Drain { request: Some(&facts.name), machines });
        self.drains.insert(facts.name.clone(), drain);
        if is_news {
            self.tell_of_drain(&facts.name);
        }
    }

    /// Tells the people who look at a `DrainRequest` in which phase the request is, if the phase is worth an event.
    pub(super) fn tell_of_drain(&mut self, request: &Arc<str>) {
        let Some(drain) = self.drains.get(request).filter(|drain| drain.phase.is_told()) else { return };
        let (reason, note) = drain.phase.says();
        let warning = matches!(drain.phase, Phase::Refused(_)) || !drain.problems.is_empty();
        let about = Subject::Drain { name: Arc::clone(request), uid: Arc::clone(&drain.uid) };
        self.notices.push(Notice { about, warning, reason, action: "Drain", note });
    }

    /// Adds the cost of drains that are over to their machines, from the records of their requests. A drain that is
    /// under way adds its own cost later.
    pub(super) fn recall_drains(&mut self) {
        for drain in self.drains.values() {
            let Some(machine) = drain.spec.as_ref().and_then(|spec| self.machines.get_mut(&spec.machine))
            else {
                continue;
            };
            if let Phase::Resumed { since, at } = drain.phase {
                machine.drains.cost.add(drain.cost);
                machine.drains.started = machine.drains.started.max(Some(since));
                machine.drains.stopped = machine.drains.stopped.max(Some(at));
            }
        }
    }

    /// A drain is under way and has `claims` claims left. The cost grows all the time, so that it is recorded only when
    /// the number of claims changes.
    pub fn drain_goes_on(&mut self, request: &Arc<str>, claims: usize, cost: Cost) {
        self.changed(Change::DrainStatus(request));
        if self.drains.get(request).is_some_and(|drain| drain.claims != claims) {
            self.drains.edit(request, |drain| (drain.claims, drain.cost) = (claims, cost));
        }
    }

    /// A drain of a machine is over: the machine's next request may begin.
    pub fn next_drain(&mut self, machine: &MachineName) {
        self.changed(Change::Machine(machine));
    }

    pub(super) fn drain_gone(&mut self, name: &str) {
        if let Some(spec) = self.drains.remove(name).and_then(|drain| drain.spec) {
            self.changed(Change::Drain { request: None, machines: [Some(&spec.machine), None] });
        }
    }
}
