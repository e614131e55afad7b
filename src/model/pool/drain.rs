//! Draining: what is asked for, and how far each request has come.

use std::sync::Arc;

use super::Pool;
use super::effect::{Notice, Subject};
use super::ids::MachineName;
use super::job::Problem;
use super::marks::Change;
use super::time::Time;
use classad::Expr;

/// The phase of a request for a node that is not there.
const NO_SUCH_NODE: &str = "NoSuchNode";

/// How jobs leave a machine that is drained: `condor_drain`'s schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schedule {
    /// With their retirement and vacating times.
    Graceful,
    /// With their vacating time only.
    Quick,
    /// At once.
    Fast,
}

/// What a `DrainRequest` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainSpec {
    /// The machine.
    pub machine: MachineName,
    /// How jobs leave.
    pub schedule: Schedule,
    /// The machine takes jobs again once it is drained.
    pub resume: bool,
    /// What must be true of every slot when the drain begins.
    pub check: Option<Expr>,
    /// `START` meanwhile.
    pub start: Option<Expr>,
    /// Why.
    pub reason: Option<Arc<str>>,
}

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It has not begun, and why.
    Waiting(Problem),
    /// It will not begin, and why.
    Refused(Problem),
    /// Jobs are leaving.
    Draining {
        /// Since when.
        since: Time,
    },
    /// All slots are drained, and stay so.
    Drained {
        /// Since when jobs were leaving.
        since: Time,
        /// When all slots were drained.
        at: Time,
    },
    /// All slots were drained, and take jobs again.
    Resumed {
        /// Since when jobs were leaving.
        since: Time,
        /// When all slots were drained.
        at: Time,
    },
}

impl Phase {
    /// When it began.
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

    /// Whether nothing more follows from it.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Resumed { .. })
    }
}

/// What a drain cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU seconds that jobs had run which were evicted for it: their work is lost.
    pub badput: i64,
    /// CPU seconds in which nobody had what the machine has.
    pub unclaimed: i64,
}

impl Cost {
    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.badput = self.badput.saturating_add(other.badput);
        self.unclaimed = self.unclaimed.saturating_add(other.unclaimed);
    }
}

/// CPUs that nobody has, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclaimed {
    /// Thousandths of CPU seconds until `since`.
    millis: i64,
    /// The CPUs that nobody has since then.
    pub cpus: i64,
    /// Since when that is so.
    pub since: Time,
}

impl Unclaimed {
    /// From now on nobody has this many, after so many CPU seconds.
    pub fn new(seconds: i64, cpus: i64, now: Time) -> Self {
        Self { millis: seconds.saturating_mul(1000), cpus, since: now }
    }

    /// From now on nobody has this many.
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

/// What drains have cost a machine, and when the last one was: for its ads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What those cost that are over, since the operator began; of those for a `DrainRequest` that is still there, also
    /// before.
    pub cost: Cost,
    /// `LastDrainStartTime`.
    pub started: Option<Time>,
    /// `LastDrainStopTime`.
    pub stopped: Option<Time>,
}

/// What the shell sees of a `DrainRequest`.
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
    /// What it asks for, or everything that is wrong with it.
    pub spec: Result<Arc<DrainSpec>, Vec<Problem>>,
    /// How far its status says that it has come, if that is more than waiting.
    pub recorded: Option<Phase>,
    /// What its status says that it has cost.
    pub cost: Cost,
}

/// A `DrainRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// The object's uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// When it was made: the earlier goes first.
    pub created: Time,
    /// What it asks for.
    pub spec: Option<Arc<DrainSpec>>,
    /// What is wrong with the present spec.
    pub problems: Vec<Problem>,
    /// How far it has come.
    pub phase: Phase,
    /// What it has cost, as of the last claim that came or went.
    pub cost: Cost,
    /// How many claims there were then.
    pub claims: usize,
}

/// What a machine is drained for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainedFor {
    /// A `DrainRequest`; the object's name.
    Request(Arc<str>),
    /// Its node is cordoned.
    Cordon,
}

/// A machine's drain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draining {
    /// What for.
    pub why: DrainedFor,
    /// How jobs leave.
    pub schedule: Schedule,
    /// The machine takes jobs again once it is drained.
    pub resume: bool,
    /// `START`, as long as claims live that were there before.
    pub start: Option<Expr>,
    /// The reason, for people and expressions.
    pub reason: Arc<str>,
    /// Since when.
    pub since: Time,
    /// When all slots were drained.
    pub done: Option<Time>,
    /// When the retirement of the last job ends that was there before: others are evicted no earlier, so that all slots are
    /// free together. None where no job has any left, and where retirement counts for nothing.
    pub deadline: Option<Time>,
    /// CPU seconds of work that it has cost.
    pub badput: i64,
    /// What nobody has had since it began.
    pub unclaimed: Unclaimed,
}

impl Draining {
    /// What it has cost, as of the last change.
    pub fn cost(&self) -> Cost {
        Cost { badput: self.badput, unclaimed: self.unclaimed.seconds() }
    }
}

impl Pool {
    pub(super) fn drain_seen(&mut self, facts: DrainFacts) {
        let known = facts.spec.as_ref().is_ok_and(|spec| self.machines.contains_key(&spec.machine));
        let waiting = || {
            let (reason, message) = match &facts.spec {
                // A spec that is not understood begins nothing, and waits for nothing but another spec.
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
        // Another spec is another request: what came of the old one does not count.
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
        self.changed(Change::Drain(Some(&facts.name), machines));
        self.drains.insert(facts.name.clone(), drain);
        if is_news {
            self.tell_of_drain(&facts.name);
        }
    }

    /// Tells the people who look at a `DrainRequest` in which phase it is, if that is worth an event.
    pub(super) fn tell_of_drain(&mut self, request: &Arc<str>) {
        let Some(drain) = self.drains.get(request).filter(|drain| drain.phase.is_told()) else { return };
        let (reason, note) = drain.phase.says();
        let warning = matches!(drain.phase, Phase::Refused(_)) || !drain.problems.is_empty();
        let about = Subject::Drain { name: Arc::clone(request), uid: Arc::clone(&drain.uid) };
        self.notices.push(Notice { about, warning, reason, action: "Drain", note });
    }

    /// What drains that are over cost machines, by the records of their requests. A drain that goes on brings its own.
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

    /// A drain goes on with so many claims left. The cost grows all the time: it is put on record when a claim has gone.
    pub fn drain_goes_on(&mut self, request: &Arc<str>, claims: usize, cost: Cost) {
        self.changed(Change::DrainStatus(request));
        if let Some(drain) = self.drains.get_mut(request).filter(|drain| drain.claims != claims) {
            (drain.claims, drain.cost) = (claims, cost);
        }
    }

    /// A drain of a machine is over: another may be next.
    pub fn next_drain(&mut self, machine: &MachineName) {
        self.changed(Change::Machine(machine));
    }

    pub(super) fn drain_gone(&mut self, name: &str) {
        if let Some(spec) = self.drains.remove(name).and_then(|drain| drain.spec) {
            self.changed(Change::Drain(None, [Some(&spec.machine), None]));
        }
    }
}
