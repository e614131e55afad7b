//! A world in memory: Slots, pods and job statuses as the API server would have them, and kubelets that run pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::invariants;
use crate::decide::{self, Decision};
use crate::kit;
use crate::negotiator;
use crate::pool::{
    Act, Claim, Effect, Event, Group, JobFacts, JobKey, MachineFacts, Noted, Obstacle, Pauses, PodFacts,
    PodPlan, PodUid, Pool, Quota, Ranges, Recorded, Renewal, ReportFacts, Request, Requester, Resources,
    SlotFacts, SlotName, StartdConfig, State, SubmitterFacts, SubmitterName, Time, UnknownCreator, Verb,
    Whom, backfill,
};
use crate::schedd::{Submission, submit};
use classad::Ad;

/// A pod as the API server has it.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) facts: PodFacts,
    pub(super) plan: PodPlan,
    pub(super) ends: Time,
    pub(super) code: i32,
    /// When the program ends because its kubelet told it to: by the first grace period that the kubelet was told.
    pub(super) dies: Option<Time>,
    /// When the kubelet confirms that nothing of the pod is left.
    pub(super) settles: Option<Time>,
}

/// The world.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent: each is one way in which the world behaves"
)]
pub(super) struct World {
    pub(super) pool: Pool,
    pub(super) now: Time,
    pub(super) machines: BTreeMap<String, MachineFacts>,
    pub(super) slots: BTreeMap<SlotName, (Resources, Claim)>,
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) jobs: BTreeMap<String, JobFacts>,
    /// Negotiators, policies, groups, limits and DrainRequests as people wrote them, in the order in which an operator
    /// that starts sees them.
    objects: BTreeMap<(u8, String), Event>,
    /// Submitters: what people wrote, with the accounts that the operator wrote.
    pub(super) submitters: BTreeMap<SubmitterName, SubmitterFacts>,
    /// If set: after so many more calls the operator dies in the middle of its effects, and another starts.
    pub(super) calls_left: Option<u32>,
    /// Which of the effects that are left when the operator dies still reach the API server, by their place.
    pub(super) outlives: fn(usize) -> bool,
    pub(super) log: Vec<String>,
    /// How many times the pod of each proc succeeded, by pod name.
    pub(super) runs: BTreeMap<String, u32>,
    /// How many seconds a proc runs, and its exit code, by pod name.
    pub(super) fate: fn(&str) -> (u64, i32),
    /// How long after the ends of pods the operator learns of these ends.
    pub(super) told_late: Duration,
    /// The obstacle that keeps a pod from starting, by pod name.
    pub(super) obstacle: fn(&str) -> Option<Obstacle>,
    /// Pods that an agent has suspended.
    pub(super) still: BTreeSet<PodUid>,
    /// How many procs of each job are suspended, as its status says.
    pub(super) shown_suspended: BTreeMap<String, usize>,
    /// Whether a new leader is told of Slots after their pods.
    pub(super) slots_are_told_late: bool,
    /// How long a new leader lists objects before all are known.
    pub(super) start_takes: Duration,
    /// The highest `ClusterId` that the pool's Lease names to the next leader.
    pub(super) given: i64,
    /// Whether pods end at once when they are told to.
    pub(super) obeys: bool,
    /// The name of a job: the server answers no call that creates a pod of this job.
    pub(super) hangs: Option<&'static str>,
    /// The pods of that job that the server was asked to create, and when.
    pub(super) hung: Vec<(Time, PodPlan)>,
    /// How many seconds a program takes to end after it was told to, by pod name; `None` if `obeys` decides. With
    /// `Some`, kubelets act like real ones: a later, shorter grace period has no effect, and for a second after the
    /// main container's end something is left of the pod.
    pub(super) handler: fn(&str) -> Option<u64>,
    /// Nodes that are cut off: they are not heard, and hear nothing.
    pub(super) cut: BTreeSet<String>,
    /// The Leases of agents, with the version of each last renewal.
    pub(super) agents: BTreeMap<String, Renewal>,
    /// The agents' reports.
    pub(super) reports: BTreeMap<String, ReportFacts>,
    /// The nodes whose agents name no pods in their reports.
    pub(super) forgetful: BTreeSet<String>,
    /// The records of running jobs in the statuses of Slots.
    pub(super) recorded: BTreeMap<SlotName, Recorded>,
    /// Backfill pods by name.
    pub(super) backfill: BTreeMap<String, backfill::Facts>,
    /// Whether backfill pods run as soon as they are made, and end as soon as they are told to.
    pub(super) backfill_obeys: bool,
    /// Why the API server refuses each pod of a proc, if it does.
    pub(super) pods_refused: Option<&'static str>,
    /// Whether watches show a new pod before the answer to its creation.
    pub(super) watches_first: bool,
    /// How many living pods of procs the API server admits, if a quota says so.
    pub(super) quota: Option<usize>,
    /// Why backfill pods cannot be created, and whether that is certain.
    pub(super) backfill_refused: Option<(&'static str, bool)>,
    /// How many times a backfill pod was asked for.
    pub(super) backfill_asked: u32,
    /// Transitions from and to Backfill: the slot and the transition's number.
    pub(super) backfill_numbers: Vec<String>,
    /// Whether agents kill the pods that they are asked to kill.
    pub(super) agent_kills: bool,
    /// The grace periods with which pods were deleted.
    pub(super) graces: Vec<Option<u32>>,
    /// The transitions that slots took.
    pub(super) taken: Vec<Noted>,
    /// The numbers of the transitions that claimed slots took.
    pub(super) numbers: Vec<u8>,
    pub(super) next_uid: u32,
    /// The history, if there is one: how often each proc was handed over, by its `GlobalJobId`, and its last final ad.
    pub(super) history: Option<BTreeMap<String, (u32, Ad)>>,
    /// Whether the disk of the history takes nothing, and never answers.
    pub(super) disk_hangs: bool,
}

/// A pool that knows nothing, writes claims once they last, and pauses between cycles as HTCondor does.
fn empty() -> Pool {
    let mut pool = Pool::default();
    pool.write_claims_late();
    pool.set_pauses(Pauses::Htcondors);
    pool
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            pool: empty(),
            now: Time::from_secs(1_700_000_000),
            machines: BTreeMap::new(),
            slots: BTreeMap::new(),
            pods: BTreeMap::new(),
            jobs: BTreeMap::new(),
            objects: BTreeMap::new(),
            submitters: BTreeMap::new(),
            calls_left: None,
            outlives: |place| place % 2 == 1,
            log: Vec::new(),
            runs: BTreeMap::new(),
            fate: |_| (30, 0),
            told_late: Duration::ZERO,
            obstacle: |_| None,
            still: BTreeSet::new(),
            shown_suspended: BTreeMap::new(),
            slots_are_told_late: false,
            start_takes: Duration::ZERO,
            given: 0,
            obeys: true,
            hangs: None,
            hung: Vec::new(),
            handler: |_| None,
            cut: BTreeSet::new(),
            agents: BTreeMap::new(),
            reports: BTreeMap::new(),
            forgetful: BTreeSet::new(),
            recorded: BTreeMap::new(),
            backfill: BTreeMap::new(),
            backfill_obeys: true,
            pods_refused: None,
            watches_first: false,
            quota: None,
            backfill_refused: None,
            backfill_asked: 0,
            backfill_numbers: Vec::new(),
            agent_kills: true,
            graces: Vec::new(),
            taken: Vec::new(),
            numbers: Vec::new(),
            next_uid: 0,
            history: None,
            disk_hangs: false,
        };
        world.pool.begin_trace();
        world.pool.apply(Event::Synced, world.now);
        world
    }

    pub(super) fn node(&mut self, name: &str, cpus: i64, gpus: i64) {
        let mut facts = kit::machine(name, cpus, cpus * 4);
        if gpus > 0 {
            facts.allocatable.extended.insert("nvidia.com/gpu".into(), gpus);
        }
        self.set_node(facts);
    }

    /// Adds or changes the policy `p`, which selects all nodes. Another text makes it another spec.
    pub(super) fn govern(&mut self, config: StartdConfig, spec: &str) {
        self.sees(Event::Policy(kit::policy("p", config, spec)));
        self.settle();
    }

    pub(super) fn set_node(&mut self, facts: MachineFacts) {
        self.machines.insert(facts.name.to_string(), facts.clone());
        self.pool.apply(Event::Machine(facts), self.now);
    }

    /// The operator sees what people wrote into the API server. Each operator that starts later sees it, too.
    pub(super) fn sees(&mut self, event: Event) {
        match &event {
            Event::Submitter(facts) => {
                let accounts = self.submitters.get(&facts.name).map(|known| known.accounts.clone());
                let facts = SubmitterFacts {
                    accounts: accounts.unwrap_or_else(|| facts.accounts.clone()),
                    ..facts.clone()
                };
                self.submitters.insert(facts.name.clone(), facts);
            }
            Event::NegotiatorGone(name) => drop(self.objects.remove(&(0, name.to_string()))),
            Event::DrainGone(name) => drop(self.objects.remove(&(4, name.to_string()))),
            other => {
                let key = match other {
                    Event::Negotiator(facts) => (0, facts.name.to_string()),
                    Event::Policy(facts) => (1, facts.name.to_string()),
                    Event::Group(group) => (2, group.object.to_string()),
                    Event::Limit(limit) => (3, limit.object.to_string()),
                    Event::Drain(facts) => (4, facts.name.to_string()),
                    other => panic!("people write no {other:?}"),
                };
                self.objects.insert(key, event.clone());
            }
        }
        self.pool.apply(event, self.now);
    }

    pub(super) fn group(&mut self, name: &str, quota: f64) {
        self.group_with(name, quota, |_| {});
    }

    pub(super) fn group_with(&mut self, name: &str, quota: f64, edit: impl FnOnce(&mut Group)) {
        let mut group = Group {
            owners: Some(vec!["*".to_owned()]),
            object: name.into(),
            generation: 1,
            created: None,
            name: name.into(),
            quota: Quota::Static(quota),
            share_unused: false,
            accept_surplus: None,
            autoregroup: None,
            priority_factor: None,
        };
        edit(&mut group);
        self.sees(Event::Group(group));
    }

    pub(super) fn submit(&mut self, name: &str, owner: &str, count: i64, edit: impl FnOnce(&mut Submission)) {
        let facts = self.new_job(name, owner, count, edit);
        self.submit_facts(facts);
    }

    /// Submits a job of one proc in a namespace, which is its owner unless the SubmitPolicy asks for the requester.
    pub(super) fn submit_as(&mut self, name: &str, namespace: &str, requester: Option<Requester>) {
        let mut facts = self.new_job(name, namespace, 1, |_| {});
        facts.key.namespace = namespace.into();
        self.submit_facts(JobFacts { requester: requester.ok_or_else(UnknownCreator::default), ..facts });
    }

    /// Submits a job in a namespace, which is its owner.
    pub(super) fn submit_in(&mut self, name: &str, namespace: &str, count: i64) {
        let mut facts = self.new_job(name, namespace, count, |_| {});
        facts.key.namespace = namespace.into();
        self.submit_facts(facts);
    }

    fn submit_facts(&mut self, facts: JobFacts) {
        self.jobs.insert(facts.key.uid.to_string(), facts.clone());
        self.pool.apply(Event::Job(facts), self.now);
    }

    fn new_job(&self, name: &str, owner: &str, count: i64, edit: impl FnOnce(&mut Submission)) -> JobFacts {
        let mut submission = submission(name, owner, count, self.now);
        edit(&mut submission);
        let key =
            JobKey { uid: format!("uid-{name}").into(), namespace: "default".into(), name: name.into() };
        JobFacts::new(key, self.now, submit(&submission).map(Arc::new))
    }

    /// Edits a job's spec as its author would.
    pub(super) fn edit(&mut self, name: &str, owner: &str, edit: impl FnOnce(&mut Submission)) {
        let facts = self.jobs[&format!("uid-{name}")].clone();
        let mut submission = submission(name, owner, 1, facts.submitted);
        edit(&mut submission);
        let spec = submit(&submission).map(Arc::new);
        let facts =
            JobFacts { generation: facts.generation + 1, spec, accepted: false, transformed: None, ..facts };
        self.jobs.insert(facts.key.uid.to_string(), facts.clone());
        self.pool.apply(Event::Job(facts), self.now);
    }

    /// Writes an act on a job's object, as people do. Returns the act's number.
    pub(super) fn act(&mut self, name: &str, verb: Verb, procs: &str, reason: &str) -> u64 {
        let Some(facts) = self.jobs.get_mut(&format!("uid-{name}")) else { return 0 };
        let id = facts.life.acts.last().map_or(facts.life.last_act, |act| act.id) + 1;
        let whom = if procs.is_empty() { Whom::All } else { Whom::Some(Ranges::parse(procs).unwrap()) };
        facts.life.acts.push(Act { id, verb, whom, reason: reason.into(), subcode: 0 });
        let facts = facts.clone();
        self.pool.apply(Event::Job(facts), self.now);
        id
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(facts) = self.jobs.get_mut(&format!("uid-{name}")) {
            facts.removing = true;
            let facts = facts.clone();
            self.pool.apply(Event::Job(facts), self.now);
        }
    }

    /// Decides, performs the effects, and tells the pool the consequences, until nothing is asked for any more.
    pub(super) fn settle(&mut self) {
        'rounds: for _ in 0..1000 {
            let before: BTreeSet<SlotName> = self.pool.slots().keys().cloned().collect();
            let twin = decide::decide(&mut self.pool.clone(), self.now);
            let Decision { effects, negotiation, ends, .. } = decide::decide(&mut self.pool, self.now);
            assert_eq!(twin.ends, ends, "deciding twice hands over the same ends");
            let taken = self.pool.take_trace();
            let claimed = taken.iter().filter(|noted| {
                !matches!(
                    noted.from,
                    State::Owner | State::Unclaimed(_) | State::Backfill(_) | State::Drained(_)
                )
            });
            let fills = |state: State| matches!(state, State::Backfill(_));
            let backfill = taken.iter().filter(|noted| fills(noted.from) || fills(noted.to));
            let shown = backfill.map(|noted| format!("{} {}", noted.slot, noted.taken.number));
            self.backfill_numbers.extend(shown);
            self.numbers.extend(claimed.map(|noted| noted.taken.number.listed()));
            self.taken.extend(taken);
            assert_eq!(twin.effects, effects, "deciding twice gives the same effects");
            invariants::claims_made(&self.pool, &before);
            if self.dies() {
                self.die(effects);
                continue;
            }
            let archived = ends.is_some_and(|batch| self.archive(&batch));
            if self.dies() {
                self.die(effects);
                continue;
            }
            let statuses = self.write_statuses();
            self.check();
            if effects.is_empty() && negotiation.is_none() && !statuses && !archived {
                return;
            }
            let mut effects = effects.into_iter();
            while let Some(effect) = effects.next() {
                if self.dies() {
                    self.die(std::iter::once(effect).chain(effects).collect());
                    continue 'rounds;
                }
                self.perform(effect);
            }
            if let Some(negotiation) = negotiation {
                let outcome = negotiator::negotiate(&negotiation.cycle);
                let before: BTreeSet<SlotName> = self.pool.slots().keys().cloned().collect();
                decide::conclude(&mut self.pool, &negotiation, &outcome, self.now);
                invariants::claims_made(&self.pool, &before);
            }
        }
        panic!("the deciders never come to rest");
    }

    /// Begins a history.
    pub(super) fn keep_history(&mut self) {
        self.history = Some(BTreeMap::new());
        self.pool.keep_history();
    }

    /// Lets time pass, second by second.
    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.settle();
            self.now = self.now + Duration::from_secs(1);
            self.run_pods();
        }
        self.settle();
        for (uid, job) in self.pool.jobs() {
            let shown = self.shown_suspended.get(uid.as_str()).copied().unwrap_or_default();
            assert_eq!(
                shown,
                self.pool.suspended_procs(job),
                "the status of {} counts suspended procs",
                job.key.name
            );
        }
    }

    /// Whether the operator dies before this call.
    fn dies(&mut self) -> bool {
        let Some(left) = self.calls_left else { return false };
        self.calls_left = left.checked_sub(1);
        left == 0
    }

    /// The operator dies in the middle of its effects, and another starts. Calls about different objects run in
    /// parallel, so that some of the rest still reach the API server.
    fn die(&mut self, effects: Vec<Effect>) {
        let outlives = self.outlives;
        let reach = effects.into_iter().enumerate().filter(|(place, _)| outlives(*place));
        reach.for_each(|(_, effect)| self.perform(effect));
        self.now = self.now + Duration::from_millis(1);
        self.restart();
    }

    /// Kills the operator and starts another, which knows only what the API server has.
    pub(super) fn restart(&mut self) {
        self.pool = empty();
        self.pool.begin_trace();
        if self.history.is_some() {
            self.pool.keep_history();
        }
        let mut events = vec![Event::ClusterIdsGiven(self.given)];
        events.extend(self.objects.values().cloned());
        events.extend(self.submitters.values().cloned().map(Event::Submitter));
        events.extend(self.machines.values().cloned().map(Event::Machine));
        events.extend(self.reports.values().cloned().map(Event::Report));
        events.extend(self.jobs.values().cloned().map(Event::Job));
        let slots = self.slots.iter().map(|(name, (resources, claim))| {
            Event::Slot(SlotFacts {
                name: name.clone(),
                resources: resources.clone(),
                claim: Some(claim.clone()),
                recorded: self.recorded.get(name).cloned(),
            })
        });
        let pods = self.pods.values().map(|pod| Event::Pod(pod.facts.clone()));
        if self.slots_are_told_late {
            events.extend(pods.chain(slots));
        } else {
            events.extend(slots.chain(pods));
        }
        events.extend(self.backfill.values().cloned().map(Event::Backfill));
        for event in events {
            self.pool.apply(event, self.now);
        }
        self.now = self.now + self.start_takes;
        self.pool.apply(Event::Synced, self.now);
    }
}

fn submission(name: &str, owner: &str, count: i64, submitted: Time) -> Submission {
    Submission {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        owner: owner.to_owned(),
        submitted,
        count,
        request: Request { cpus: 1, memory_mib: 128, disk_kib: 1024, ..Request::default() },
        ..Submission::default()
    }
}
