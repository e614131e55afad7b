//! The API server: objects, and for each kind the changes that its watch has not delivered yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::rng::Rng;
use crate::pool::Accounts;
use crate::pool::{
    Capacity, Claim, ClaimId, Effect, End, Event, Group, JobFacts, JobUid, MachineFacts, MachineName,
    NegotiatorFacts, Outcome, PodFacts, PodPlan, PodRef, PodUid, PolicyFacts, PolicyName, Ranges, Resources,
    Retry, SlotFacts, SlotName, SubmitterFacts, SubmitterName, Time,
};

/// How far a pod's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    Exited(i32),
    /// Ended by the node, or never admitted by it.
    Refused(&'static str),
}

/// A pod, and the process that its kubelet runs.
#[allow(clippy::struct_excessive_bools, clippy::struct_field_names, reason = "as many as the API server has")]
#[derive(Clone, Debug)]
pub struct Pod {
    pub pod: PodRef,
    pub plan: PodPlan,
    pub phase: Phase,
    pub deleting: bool,
    /// The kubelet has confirmed the deletion, or somebody forced it.
    pub confirmed: bool,
    pub tracked: bool,
    /// Its process lives.
    pub alive: bool,
    pub ends: Time,
}

impl Pod {
    pub fn ended(&self) -> bool {
        matches!(self.phase, Phase::Exited(_) | Phase::Refused(_))
    }

    /// As `controller/kinds/pod/` reads it.
    pub fn facts(&self) -> PodFacts {
        let evicted = |why: &str| Some(End::Evicted { why: why.into() });
        let end = match self.phase {
            Phase::Exited(0) => Some(End::Exited { code: 0 }),
            Phase::Refused(why) => evicted(why),
            Phase::Exited(_) if self.deleting => evicted("its pod was deleted"),
            Phase::Exited(code) => Some(End::Exited { code }),
            _ if self.confirmed => evicted("its pod was deleted"),
            _ => None,
        };
        PodFacts {
            pod: self.pod.clone(),
            machine: Some(self.plan.slot.machine.clone()),
            job: self.plan.job.uid.clone(),
            proc: self.plan.proc.proc,
            claim: self.plan.claim.id.clone(),
            running: matches!(self.phase, Phase::Running | Phase::Exited(0)),
            started: None,
            obstacle: None,
            hold: None,
            end,
            deleting: self.deleting,
            lease: None,
            tracked: self.tracked,
            requests: requests(&self.plan.resources),
        }
    }
}

fn requests(resources: &Resources) -> Capacity {
    Capacity {
        milli_cpu: resources.cpus * 1000,
        memory: resources.memory_mib << 20,
        disk: resources.disk_kib << 10,
        extended: resources.extended.clone(),
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It takes effect.
    Done,
    /// It does not, and says so.
    Failed,
    /// It does, and says that it failed: the answer was lost.
    Lost,
    /// Its first half does, and it says that it failed.
    Half,
    /// It does not come through until the line is free again.
    Stuck,
}

/// The status of a job, as far as the operator writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    pub succeeded: Ranges,
    pub failed: Ranges,
    pub cluster: Option<i64>,
    pub first_start: Option<Time>,
    pub completed_at: Option<Time>,
}

impl Status {
    pub fn of(facts: &JobFacts) -> Self {
        Self {
            succeeded: facts.succeeded.clone(),
            failed: facts.failed.clone(),
            cluster: facts.cluster,
            first_start: facts.first_start,
            completed_at: facts.completed_at,
        }
    }
}

/// A call of the operator.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "few live at a time")]
pub enum Call {
    Effect(Effect),
    Status { job: JobUid, version: u64, status: Status },
    Account(SubmitterName, Accounts),
}

/// What comes back.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "few live at a time")]
pub enum Reply {
    Event(Event),
    Seen(JobUid, u64, Status),
    Stale(JobUid),
}

/// The watches, in the order in which an operator that starts reads them.
pub const WATCHES: usize = 7;

/// A change that a watch has not delivered: of which object, whether the object is gone, and the job's version.
#[derive(Clone, Debug)]
pub struct Change {
    pub key: String,
    pub gone: bool,
    pub event: Event,
    pub version: u64,
}

/// The API server.
#[derive(Default)]
pub struct Server {
    pub policies: BTreeMap<PolicyName, PolicyFacts>,
    pub negotiators: BTreeMap<Arc<str>, NegotiatorFacts>,
    pub groups: BTreeMap<Arc<str>, Group>,
    pub submitters: BTreeMap<SubmitterName, SubmitterFacts>,
    pub nodes: BTreeMap<MachineName, MachineFacts>,
    pub jobs: BTreeMap<JobUid, (u64, JobFacts)>,
    pub slots: BTreeMap<SlotName, (Resources, Option<Claim>)>,
    pub pods: BTreeMap<Arc<str>, Pod>,
    pub foreign: BTreeMap<PodUid, (MachineName, Capacity)>,
    pub watches: [VecDeque<Change>; WATCHES],
    /// Slots that somebody changed since the operator last wrote them.
    pub tampered: std::collections::BTreeSet<SlotName>,
    /// Somebody has put one claim in another's place: a new operator cannot know better, and evicts.
    pub edited: bool,
    /// Pods whose making the operator was told had failed.
    pub denied: std::collections::BTreeSet<PodUid>,
    /// How often each proc's process ended well.
    pub successes: BTreeMap<(JobUid, u32), u32>,
    pub uids: u64,
}

impl Server {
    pub fn tell(&mut self, watch: usize, key: String, event: Event) {
        let version = match &event {
            Event::Job(facts) => self.jobs.get(&facts.key.uid).map_or(0, |(version, _)| *version),
            _ => 0,
        };
        let gone = matches!(
            event,
            Event::PodGone(_)
                | Event::JobGone(_)
                | Event::SlotGone { .. }
                | Event::MachineGone(_)
                | Event::ForeignPodGone(_)
                | Event::GroupGone(_)
                | Event::PolicyGone(_)
                | Event::NegotiatorGone(_)
                | Event::SubmitterGone(_)
        );
        if let Some(queue) = self.watches.get_mut(watch) {
            queue.push_back(Change { key, gone, event, version });
        }
    }

    /// Leaves of several changes of an object the last, as a watch that was interrupted and listed anew does.
    pub fn coalesce(&mut self, watch: usize) {
        let Some(queue) = self.watches.get_mut(watch) else { return };
        let all: Vec<Change> = queue.drain(..).collect();
        for (at, change) in all.iter().enumerate() {
            let next = all.iter().skip(at + 1).find(|later| later.key == change.key);
            if change.gone || next.is_none_or(|later| later.gone) {
                queue.push_back(change.clone());
            }
        }
    }

    pub fn node(&mut self, facts: MachineFacts) {
        self.nodes.insert(facts.name.clone(), facts.clone());
        self.tell(3, facts.name.to_string(), Event::Machine(facts));
    }

    pub fn node_gone(&mut self, name: &MachineName) {
        if self.nodes.remove(name).is_some() {
            self.tell(3, name.to_string(), Event::MachineGone(name.clone()));
        }
    }

    pub fn job(&mut self, uid: &JobUid, edit: impl FnOnce(&mut JobFacts)) {
        let Some((version, facts)) = self.jobs.get_mut(uid) else { return };
        edit(facts);
        *version += 1;
        let (facts, gone) = (facts.clone(), facts.removing && !facts.held);
        if gone {
            self.jobs.remove(uid);
            self.tell(4, uid.to_string(), Event::JobGone(uid.clone()));
        } else {
            self.tell(4, uid.to_string(), Event::Job(facts));
        }
    }

    pub fn slot(&mut self, name: &SlotName, resources: Resources, claim: Option<Claim>) {
        self.slots.insert(name.clone(), (resources.clone(), claim.clone()));
        self.tell(
            5,
            name.to_string(),
            Event::Slot(SlotFacts { name: name.clone(), resources, claim, recorded: None }),
        );
    }

    pub fn slot_gone(&mut self, name: &SlotName) {
        if let Some((_, claim)) = self.slots.remove(name) {
            let claim = claim.map(|claim| claim.id);
            self.tell(5, name.to_string(), Event::SlotGone { slot: name.clone(), claim });
        }
    }

    /// Changes a pod; it goes when nothing holds it any more.
    pub fn pod(&mut self, name: &str, edit: impl FnOnce(&mut Pod)) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        let before = (pod.facts(), pod.phase);
        edit(pod);
        let facts = pod.facts();
        let over = pod.deleting && !pod.tracked && (pod.confirmed || pod.ended());
        if over {
            self.pods.remove(name);
            self.tell(6, facts.pod.uid.to_string(), Event::PodGone(facts));
        } else if (facts.clone(), pod.phase) != before {
            self.tell(6, facts.pod.uid.to_string(), Event::Pod(facts));
        }
    }

    fn named(&self, pod: &PodRef) -> bool {
        self.pods.get(&pod.name).is_some_and(|found| found.pod == *pod)
    }

    /// Everything there is, in the order in which an operator that starts takes it in.
    pub fn list(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.negotiators.values().cloned().map(Event::Negotiator).collect();
        events.extend(self.policies.values().cloned().map(Event::Policy));
        events.extend(self.groups.values().cloned().map(Event::Group));
        events.extend(self.submitters.values().cloned().map(Event::Submitter));
        events.extend(self.nodes.values().cloned().map(Event::Machine));
        events.extend(self.jobs.values().map(|(_, facts)| Event::Job(facts.clone())));
        events.extend(self.slots.iter().map(|(name, (resources, claim))| {
            Event::Slot(SlotFacts {
                name: name.clone(),
                resources: resources.clone(),
                claim: claim.clone(),
                recorded: None,
            })
        }));
        events.extend(self.pods.values().map(|pod| Event::Pod(pod.facts())));
        events.extend(self.foreign.iter().map(|(pod, (machine, requests))| Event::ForeignPod {
            pod: pod.clone(),
            machine: machine.clone(),
            requests: requests.clone(),
        }));
        events
    }

    /// Performs a call, and says what the operator hears of it.
    pub fn perform(&mut self, call: Call, fate: Fate) -> Vec<Reply> {
        let effect = match call {
            Call::Status { job, version, status } => return self.write_status(job, version, status, fate),
            Call::Account(name, account) => {
                if fate != Fate::Failed {
                    self.write_account(&name, account);
                }
                return Vec::new();
            }
            Call::Effect(effect) => effect,
        };
        let outcome = match effect {
            Effect::WriteSlot { slot, resources, claim, again } => {
                Some(self.write_slot(slot, resources, claim, again, fate))
            }
            Effect::DeleteSlot { slot, claim, .. } => self.delete_slot(slot, claim, fate),
            Effect::CreatePod(plan) => Some(self.create_pod(plan, fate)),
            Effect::DeletePod { pod, slot, grace, .. } => self.delete_pod(pod, slot, grace, fate),
            Effect::ReleasePod { pod, delete } => self.release_pod(pod, delete, fate),
            Effect::HoldJob(key) => self.finalize(&key.uid, true, fate),
            Effect::ReleaseJob(key) => self.finalize(&key.uid, false, fate),
            Effect::LookAtPod { pod, slot } => {
                (fate == Fate::Done && !self.named(&pod)).then_some(Outcome::PodMissing { slot, pod })
            }
            // No node here has an agent, and no policy backfill work.
            Effect::CreateBackfill(_)
            | Effect::LookForBackfill { .. }
            | Effect::DeleteBackfill { .. }
            | Effect::Suspend { .. }
            | Effect::KillByAgent { .. }
            | Effect::Benchmark { .. }
            | Effect::ReadAgentLease { .. }
            | Effect::Tell(_) => None,
        };
        outcome.map(|outcome| Reply::Event(Event::Outcome(outcome))).into_iter().collect()
    }

    fn write_status(&mut self, job: JobUid, version: u64, status: Status, fate: Fate) -> Vec<Reply> {
        let Some((now, facts)) = self.jobs.get(&job) else { return Vec::new() };
        if *now != version {
            return vec![Reply::Seen(job.clone(), *now, Status::of(facts)), Reply::Stale(job)];
        }
        if fate == Fate::Failed {
            return vec![Reply::Stale(job)];
        }
        let written = status.clone();
        self.job(&job, |facts| {
            (facts.succeeded, facts.failed, facts.cluster) =
                (status.succeeded, status.failed, status.cluster);
            (facts.first_start, facts.completed_at) = (status.first_start, status.completed_at);
        });
        match fate {
            Fate::Done => vec![Reply::Seen(job, version + 1, written)],
            _ => vec![Reply::Stale(job)],
        }
    }

    fn write_account(&mut self, name: &SubmitterName, accounts: Accounts) {
        let facts = self.submitters.entry(name.clone()).or_insert_with(|| SubmitterFacts {
            name: name.clone(),
            generation: 1,
            factor: None,
            ceiling: None,
            floor: None,
            correction: None,
            corrected: None,
            accounts: Accounts::default(),
        });
        facts.accounts = accounts;
        let facts = facts.clone();
        self.tell(2, name.to_string(), Event::Submitter(facts));
    }

    fn write_slot(
        &mut self,
        slot: SlotName,
        resources: Resources,
        claim: Claim,
        again: bool,
        fate: Fate,
    ) -> Outcome {
        let (id, proc) = (claim.id.clone(), claim.proc_id());
        let refused = |why: &str| Outcome::SlotRefused {
            slot: slot.clone(),
            claim: id.clone(),
            proc: proc.clone(),
            why: why.to_owned(),
        };
        if fate == Fate::Failed {
            return refused("the API server does not answer");
        }
        let body = (resources, Some(claim));
        match self.slots.get(&slot) {
            Some(found) if *found == body => {}
            Some(_) if !again => return refused("a Slot of that name carries another claim"),
            _ => self.slot(&slot, body.0, body.1),
        }
        self.tampered.remove(&slot);
        match fate {
            Fate::Done => Outcome::SlotWritten { slot, claim: id, proc },
            _ => refused("the answer was lost"),
        }
    }

    fn delete_slot(&mut self, slot: SlotName, claim: Option<ClaimId>, fate: Fate) -> Option<Outcome> {
        if fate != Fate::Failed {
            self.check_unused(&slot);
            self.slot_gone(&slot);
            self.tampered.remove(&slot);
        }
        match fate {
            Fate::Done => claim.map(|claim| Outcome::SlotDeleted { slot, claim, there: true }),
            _ => Some(Outcome::Failed(Retry::Slot(slot))),
        }
    }

    /// A claim outlives its pod: nothing runs under one that goes.
    fn check_unused(&self, slot: &SlotName) {
        let Some((_, Some(claim))) = self.slots.get(slot) else { return };
        if self.edited || !claim.id.is_of(slot) {
            return;
        }
        for pod in self.pods.values().filter(|pod| pod.alive && pod.plan.claim.id == claim.id) {
            let known = !self.denied.contains(&pod.pod.uid) && !pod.confirmed;
            assert!(!known, "{slot} goes while {} runs under its claim", pod.pod.name);
        }
    }

    fn create_pod(&mut self, plan: PodPlan, fate: Fate) -> Outcome {
        let (slot, claim, proc) = (plan.slot.clone(), plan.claim.id.clone(), plan.proc.clone());
        let refused = |why: &str| Outcome::PodRefused {
            slot: slot.clone(),
            claim: claim.clone(),
            proc: proc.clone(),
            why: why.to_owned(),
        };
        if fate == Fate::Failed {
            return refused("the API server does not answer");
        }
        if !self.jobs.contains_key(&plan.job.uid) {
            return refused("the job is gone");
        }
        let name: Arc<str> = plan.claim.pod_name().into();
        let pod = match self.pods.get(&name) {
            Some(found)
                if found.plan.job == plan.job
                    && found.plan.proc == plan.proc
                    && found.plan.claim.id == plan.claim.id =>
            {
                found.pod.clone()
            }
            Some(_) => return refused("an earlier pod of that name has not gone yet"),
            None => self.make_pod(name, plan),
        };
        if fate == Fate::Done {
            return Outcome::PodCreated { slot, claim, pod };
        }
        self.denied.insert(pod.uid);
        refused("the answer was lost")
    }

    fn make_pod(&mut self, name: Arc<str>, plan: PodPlan) -> PodRef {
        let carried = self.slots.get(&plan.slot).and_then(|(_, claim)| claim.as_ref());
        let written = carried.is_some_and(|c| c.id == plan.claim.id && c.proc == plan.claim.proc);
        assert!(
            written || self.tampered.contains(&plan.slot),
            "{name} is made under a claim that {} does not carry: {carried:?}",
            plan.slot
        );
        self.uids += 1;
        let pod = PodRef {
            namespace: plan.job.namespace.clone(),
            name: name.clone(),
            uid: format!("p{}", self.uids).into(),
        };
        let made = Pod {
            pod: pod.clone(),
            plan,
            phase: Phase::Pending,
            deleting: false,
            confirmed: false,
            tracked: true,
            alive: false,
            ends: Time::default(),
        };
        let facts = made.facts();
        self.pods.insert(name, made);
        self.tell(6, pod.uid.to_string(), Event::Pod(facts));
        pod
    }

    fn delete_pod(
        &mut self,
        pod: PodRef,
        slot: Option<SlotName>,
        grace: Option<u32>,
        fate: Fate,
    ) -> Option<Outcome> {
        if fate != Fate::Failed && self.named(&pod) {
            self.pod(&pod.name, |found| {
                found.deleting = true;
                found.confirmed |= grace == Some(0);
            });
        }
        (fate != Fate::Done).then_some(Outcome::Failed(Retry::Pod(pod.uid, slot)))
    }

    fn release_pod(&mut self, pod: PodRef, delete: bool, fate: Fate) -> Option<Outcome> {
        if fate != Fate::Failed && self.named(&pod) {
            self.check_recorded(&pod);
            self.pod(&pod.name, |found| found.tracked = false);
            if delete && fate != Fate::Half && self.named(&pod) {
                self.pod(&pod.name, |found| (found.deleting, found.confirmed) = (true, true));
            }
        }
        (fate != Fate::Done).then_some(Outcome::Failed(Retry::Pod(pod.uid, None)))
    }

    /// No pod is let go before its end is in its job's status.
    fn check_recorded(&self, pod: &PodRef) {
        let Some(found) = self.pods.get(&pod.name).filter(|found| found.tracked) else { return };
        let facts = found.facts();
        assert!(facts.end.is_some(), "{} was let go while it lives", pod.name);
        let recorded = self
            .jobs
            .get(&facts.job)
            .is_none_or(|(_, job)| job.succeeded.contains(facts.proc) || job.failed.contains(facts.proc));
        assert!(
            recorded || !matches!(facts.end, Some(End::Exited { .. })),
            "{} was let go before its end was recorded",
            pod.name
        );
    }

    fn finalize(&mut self, uid: &JobUid, hold: bool, fate: Fate) -> Option<Outcome> {
        self.jobs.get(uid)?;
        if fate != Fate::Failed {
            self.job(uid, |facts| facts.held = hold && !facts.removing);
        }
        match fate {
            Fate::Done => hold.then(|| Outcome::JobHeld(uid.clone())),
            _ => Some(Outcome::Failed(Retry::Job(uid.clone()))),
        }
    }

    /// One second of the kubelets and of the garbage collector.
    pub fn kubelets(&mut self, now: Time, rng: &mut Rng) {
        let names: Vec<Arc<str>> = self.pods.keys().cloned().collect();
        for name in names {
            self.kubelet(&name, now, rng);
        }
    }

    fn kubelet(&mut self, name: &Arc<str>, now: Time, rng: &mut Rng) {
        let Some(pod) = self.pods.get(name).cloned() else { return };
        if !self.jobs.contains_key(&pod.plan.job.uid) && !pod.deleting {
            // Its owner is gone.
            self.pod(name, |pod| pod.deleting = true);
        }
        let Some(node) = self.nodes.get(&pod.plan.slot.machine) else {
            self.pod(name, |pod| pod.alive = false);
            if rng.one_in(3) {
                self.pod(name, |pod| (pod.deleting, pod.confirmed) = (true, true));
            }
            return;
        };
        if !node.ready {
            return;
        }
        match pod.phase {
            Phase::Pending if pod.deleting => self.pod(name, |pod| pod.confirmed = true),
            Phase::Pending => self.admit(name, now, rng),
            Phase::Running if pod.confirmed || !pod.alive => self.pod(name, |pod| {
                (pod.alive, pod.phase) = (false, Phase::Refused("its process is gone"));
            }),
            Phase::Running if pod.deleting => {
                let graceful = rng.one_in(4);
                self.exit(name, if graceful { 0 } else { 137 });
            }
            Phase::Running if pod.ends <= now => self.exit(name, code_of(name)),
            Phase::Running => {}
            Phase::Exited(_) | Phase::Refused(_) => self.pod(name, |pod| pod.confirmed |= pod.deleting),
        }
    }

    fn exit(&mut self, name: &Arc<str>, code: i32) {
        if code == 0
            && let Some(pod) = self.pods.get(name)
        {
            *self.successes.entry((pod.plan.job.uid.clone(), pod.plan.proc.proc)).or_default() += 1;
        }
        self.pod(name, |pod| (pod.alive, pod.phase) = (false, Phase::Exited(code)));
    }

    fn admit(&mut self, name: &Arc<str>, now: Time, rng: &mut Rng) {
        let Some(pod) = self.pods.get(name).cloned() else { return };
        let machine = &pod.plan.slot.machine;
        let mut left = self.nodes.get(machine).map(|node| node.allocatable.clone()).unwrap_or_default();
        for (_, requests) in self.foreign.values().filter(|(on, _)| on == machine) {
            left.subtract(requests);
        }
        for other in self.pods.values().filter(|other| other.alive && other.plan.slot.machine == *machine) {
            left.subtract(&requests(&other.plan.resources));
        }
        // A kubelet is asked for so many devices, and not for these.
        let asked = Resources { devices: BTreeMap::new(), ..pod.plan.resources.clone() };
        if !asked.fits_in(&left.whole()) || rng.fault(20) {
            self.pod(name, |pod| pod.phase = Phase::Refused("OutOfcpu"));
            return;
        }
        self.check_start(&pod);
        let span = span_of(name);
        self.pod(name, |pod| {
            (pod.alive, pod.phase) = (true, Phase::Running);
            pod.ends = now + std::time::Duration::from_secs(span);
        });
    }

    fn check_start(&self, pod: &Pod) {
        let (job, proc) = (&pod.plan.job.uid, pod.plan.proc.proc);
        let name = &pod.pod.name;
        let lives = |other: &Pod| other.alive && other.plan.job.uid == *job && other.plan.proc.proc == proc;
        assert!(!self.pods.values().any(lives), "{name} runs twice at a time");
        let successes = self.successes.get(&(job.clone(), proc));
        assert!(successes.is_none(), "{name} succeeded and is started again");
        let done = self
            .jobs
            .get(job)
            .is_some_and(|(_, facts)| facts.succeeded.contains(proc) || facts.failed.contains(proc));
        assert!(!done, "{name} is recorded as done and is started again");
    }
}

fn hash(name: &str) -> u64 {
    name.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// How a proc's process ends.
fn code_of(name: &str) -> i32 {
    i32::from(hash(name).is_multiple_of(5))
}

/// How long it takes, in seconds. The procs of jobs called `forever` take too long to wait for.
fn span_of(name: &str) -> u64 {
    if name.starts_with("forever") { 1_000_000 } else { 2 + hash(name) % 40 }
}
