//! The operator's log of its deciding. The deciders do not log: the lines follow from what the deciders ask, tell and change.
//!
//! At `info` there is one line for each thing that happened: an eviction, a drain that begins or ends, a hold or release, a
//! refusal, a node that takes no new jobs any more or takes jobs again, a job that is complete. At `debug` every transition of
//! the slots, every cycle and every call is added. A pass of the loop in which nothing happens logs nothing.

use std::collections::{BTreeMap, BTreeSet};

use tracing::field::display;
use tracing::{debug, info};

use model::decide::Negotiation;
use model::negotiator::Outcome;
use model::pool::{Document, Effect, JobUid, Machine, MachineName, Noted, Notice, Pool, State, Subject};

/// The state that was logged last, so that only changes are logged.
#[derive(Debug, Default)]
pub struct Journal {
    /// Whether the state at the start was taken over.
    begun: bool,
    nodes: BTreeMap<MachineName, LoggedNode>,
    /// How many procs of a job are held, for jobs that have any.
    held: BTreeMap<JobUid, usize>,
}

/// The state of a node, as the log has told it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LoggedNode {
    /// Why the node takes no new jobs; `Offered` if it takes them.
    offer: &'static str,
    drain: Drain,
}

/// How far a node is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    Draining,
    Drained,
}

impl LoggedNode {
    fn of(machine: &Machine) -> Self {
        let drain = match &machine.draining {
            None => Drain::No,
            Some(draining) if draining.done.is_some() => Drain::Drained,
            Some(_) => Drain::Draining,
        };
        Self { offer: machine.offer.reason(), drain }
    }
}

impl Journal {
    /// Takes over the pool's state after the deciders have looked at everything for the first time.
    fn begin(&mut self, pool: &Pool) {
        self.begun = true;
        self.nodes =
            pool.machines().iter().map(|(name, machine)| (name.clone(), LoggedNode::of(machine))).collect();
        let held = pool.jobs().iter().map(|(uid, job)| (uid.clone(), job.on_hold.len()));
        self.held = held.filter(|(_, held)| *held > 0).collect();
        info!(
            machines = pool.machines().len(),
            slots = pool.slots().len(),
            jobs = pool.jobs().len(),
            "everything is known, the operator begins"
        );
    }

    /// Logs what has become of the nodes and jobs whose documents are stale. The first time, the deciders have just begun, and
    /// only how much there is is logged.
    pub fn changed(&mut self, pool: &Pool, stale: &BTreeSet<Document>) {
        if !self.begun {
            self.begin(pool);
            return;
        }
        for document in stale {
            match document {
                Document::PartitionableSlot(slot) | Document::Slot(slot) if slot.dynamic.is_none() => {
                    self.node(pool, &slot.machine);
                }
                Document::Job(uid) => self.job(pool, uid),
                _ => {}
            }
        }
    }

    fn node(&mut self, pool: &Pool, name: &MachineName) {
        let Some(machine) = pool.machines().get(name) else {
            if self.nodes.remove(name).is_some() {
                info!(node = %name, "a node is forgotten: nothing of the pool is left there");
            }
            return;
        };
        let now = LoggedNode::of(machine);
        let Some(before) = self.nodes.insert(name.clone(), now.clone()) else {
            info!(node = %name, reason = %now.offer, "a node is new");
            return;
        };
        if before.offer != now.offer {
            let why = machine.offer.message();
            if now.offer == "Offered" {
                info!(node = %name, before = %before.offer, "a node takes jobs again");
            } else {
                info!(node = %name, reason = %now.offer, why, "a node takes no new jobs");
            }
        }
        match (before.drain, now.drain, &machine.draining) {
            (Drain::No, Drain::Draining | Drain::Drained, Some(draining)) => {
                info!(node = %name, schedule = ?draining.schedule, reason = %draining.reason, "a drain begins");
            }
            (Drain::Draining, Drain::Drained, Some(draining)) => {
                info!(node = %name, reason = %draining.reason, "all slots of a node are drained");
            }
            (Drain::Draining | Drain::Drained, Drain::No, _) => info!(node = %name, "a drain ends"),
            _ => {}
        }
    }

    /// Logs a release. Notices tell of holds, and nothing tells of a release: it shows in how many procs are held.
    fn job(&mut self, pool: &Pool, uid: &JobUid) {
        let job = pool.jobs().get(uid);
        let now = job.map_or(0, |job| job.on_hold.len());
        let before = if now > 0 { self.held.insert(uid.clone(), now) } else { self.held.remove(uid) };
        if let Some(job) = job
            && let Some(released) = before.and_then(|before| before.checked_sub(now)).filter(|n| *n > 0)
        {
            info!(job = %job.key.name, namespace = %job.key.namespace, procs = released, "procs are released");
        }
        // A job with held procs may go without a release.
        if self.held.len() > pool.jobs().len() {
            self.held.retain(|uid, _| pool.jobs().contains_key(uid));
        }
    }
}

/// Logs what the deciders ask for.
pub fn asked(pool: &Pool, effect: &Effect) {
    match effect {
        Effect::Tell(notice) => told(notice),
        Effect::DeletePod { pod, slot, grace, why: Some(why), .. } => {
            let claim = slot.as_ref().and_then(|slot| pool.slots().get(slot)).map(model::pool::Slot::claim);
            info!(
                job = claim.map(|claim| display(&claim.last.job.name)),
                namespace = %pod.namespace,
                proc = claim.map(|claim| claim.last.proc),
                slot = slot.as_ref().map(display),
                node = slot.as_ref().map(|slot| display(&slot.machine)),
                pod = %pod.name,
                grace,
                reason = %why.reason.name(),
                why = &*why.message,
                "a proc is evicted"
            );
        }
        Effect::KillByAgent { pod, slot } => {
            info!(%slot, node = %slot.machine, namespace = %pod.namespace, pod = %pod.name, "an agent is asked to kill");
        }
        Effect::DeletePod { pod, slot, grace, .. } => {
            let slot = slot.as_ref().map(display);
            debug!(call = %"DeletePod", namespace = %pod.namespace, pod = %pod.name, slot, grace, "a call");
        }
        Effect::CreatePod(plan) => {
            debug!(call = %"CreatePod", namespace = %plan.claim.last.job.namespace, pod = %plan.claim.pod_name(), slot = %plan.slot, "a call");
        }
        Effect::WriteSlot(plan) => {
            debug!(call = %"WriteSlot", slot = %plan.slot, claim = %plan.claim.id, "a call");
        }
        Effect::DeleteSlot { slot, claim, .. } => {
            debug!(call = %"DeleteSlot", %slot, claim = claim.as_ref().map(display), "a call");
        }
        Effect::Suspend { pod, slot, suspended } => {
            debug!(call = %"Suspend", namespace = %pod.namespace, pod = %pod.name, %slot, suspended, "a call");
        }
        Effect::UntrackPod { pod, delete } => {
            debug!(call = %"UntrackPod", namespace = %pod.namespace, pod = %pod.name, delete, "a call");
        }
        other => debug!(call = ?other, "a call"),
    }
}

/// Whether a notice is logged at `info`: warnings, but for programs that failed, and the two ends of a job.
fn is_notable(notice: &Notice) -> bool {
    matches!(notice.reason, "Submitted" | "Completed") || (notice.warning && notice.reason != "ProcFailed")
}

fn told(notice: &Notice) {
    let (about, reason, note) = (&notice.about, display(notice.reason), &notice.note);
    match about {
        Subject::Job(job) if is_notable(notice) => {
            info!(job = %job.name, namespace = %job.namespace, reason, note, "told of a job");
        }
        Subject::Job(job) => {
            debug!(job = %job.name, namespace = %job.namespace, reason, note, "told of a job");
        }
        Subject::Policy { name, .. } => info!(policy = %name, reason, note, "told of a NodePolicy"),
        Subject::Negotiator { name, .. } => info!(policy = %name, reason, note, "told of a Negotiator"),
        Subject::SubmitPolicy { name, .. } => info!(policy = %name, reason, note, "told of a SubmitPolicy"),
        Subject::Drain { name, .. } => info!(request = %name, reason, note, "told of a DrainRequest"),
    }
}

/// Whether the log's filter lets transitions pass. The filter may name this module alone.
pub fn tells_of_transitions() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// Logs the transitions that slots took.
pub fn moved(transitions: &[Noted]) {
    let activity = |state: State| format!("{}/{}", state.state(), state.activity());
    for noted in transitions {
        debug!(
            slot = %noted.slot,
            number = %noted.taken.number,
            from = %activity(noted.from),
            to = %activity(noted.to),
            job = noted.proc.as_ref().map(|(job, _)| display(job)),
            proc = noted.proc.as_ref().map(|(_, proc)| *proc),
            why = %noted.taken.why,
            "a transition"
        );
    }
}

/// Logs what a negotiation cycle found.
pub fn negotiated(negotiation: &Negotiation, found: &Outcome) {
    debug!(
        negotiator = ?negotiation.negotiator,
        submitters = negotiation.cycle.submitters.len(),
        slots = negotiation.cycle.slots.len(),
        matches = found.matches.len(),
        rejections = found.rejections.len(),
        "a cycle has ended"
    );
}
