//! What people and nodes do meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::server::Server;
use crate::negotiator::Config;
use crate::pool::{
    Capacity, Claim, Event, Group, JobFacts, JobKey, JobUid, MachineFacts, NegotiatorConfig, NegotiatorFacts,
    PodUid, Policy, PolicyFacts, Problem, Quota, Ranges, Request, Retention, Selector, SlotConfig, SlotName,
    StartdConfig, SubmitterFacts, Time,
};
use crate::schedd::{Submission, submit};
use classad::Expr;

/// Names are few, so that they meet.
const NODES: [&str; 3] = ["n0", "n1", "n2"];
const JOBS: [&str; 5] = ["sweep", "scan", "fold", "train", "forever"];
const OWNERS: [&str; 2] = ["alice", "bob"];
pub const GROUPS: [&str; 4] = ["physics", "physics.higgs", "Physics.top", "biology"];

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// Seconds go by.
    Pass(u8),
    /// The operator dies, and another starts.
    Restart,
    Node {
        node: usize,
        cpus: i64,
        gpus: i64,
    },
    NodeGone(usize),
    Cordon(usize, bool),
    Ready(usize, bool),
    Foreign {
        pod: u8,
        node: usize,
        cpus: i64,
    },
    ForeignGone(u8),
    Submit(Order),
    Edit(Order),
    Remove(usize),
    /// Somebody takes the operator's finalizer off a job.
    Unhold(usize),
    DeletePod {
        pick: u8,
        force: bool,
    },
    /// Somebody deletes a pod and takes its finalizers off.
    StripPod(u8),
    DeleteSlot(u8),
    /// Somebody edits a Slot: its claim goes, or becomes another.
    EditSlot {
        pick: u8,
        how: u8,
    },
    /// Somebody makes a Slot of their own.
    MakeSlot {
        pick: u8,
        dynamic: Option<u32>,
    },
    Group {
        group: usize,
        quota: u8,
    },
    GroupGone(usize),
    Ceiling {
        owner: usize,
        group: Option<usize>,
        ceiling: Option<u8>,
        factor: Option<u8>,
    },
    Policy {
        policy: u8,
        how: u8,
    },
    PolicyGone(u8),
    /// Somebody says which slots a negotiator has, perhaps some that another has, too, and whom it preempts.
    Negotiator {
        negotiator: u8,
        how: u8,
        preempts: u8,
    },
    NegotiatorGone(u8),
}

/// A job as somebody writes it.
#[derive(Clone, Debug)]
pub struct Order {
    pub job: usize,
    pub owner: usize,
    pub group: Option<usize>,
    pub count: i64,
    pub cpus: i64,
    pub gpus: i64,
    pub priority: i32,
    pub requirements: u8,
    pub retention: u8,
}

impl Order {
    /// A job of that many procs of one CPU each.
    pub fn simple(job: &str, count: i64) -> Self {
        let job = JOBS.iter().position(|name| *name == job).unwrap();
        let (owner, group, requirements) = (0, None, 0);
        Self { job, owner, group, count, cpus: 1, gpus: 0, priority: 0, requirements, retention: 0 }
    }
}

fn order() -> impl Strategy<Value = Order> {
    let group = prop::option::weighted(0.3, 0..GROUPS.len());
    let cpus = prop_oneof![8 => 1_i64..4, 1 => Just(64), 1 => Just(0)];
    let gpus = prop_oneof![5 => Just(0_i64), 1 => 1_i64..3];
    let text = prop_oneof![6 => Just(0_u8), 3 => 1_u8..6];
    (0..JOBS.len(), 0..OWNERS.len(), group, 0_i64..7, cpus, gpus, -1_i32..2, text, 0_u8..3).prop_map(
        |(job, owner, group, count, cpus, gpus, priority, requirements, retention)| Order {
            job,
            owner,
            group,
            count,
            cpus,
            gpus,
            priority,
            requirements,
            retention,
        },
    )
}

/// Anything that may happen.
pub fn action() -> impl Strategy<Value = Action> {
    let node = 0..NODES.len();
    prop_oneof![
        8 => (1_u8..30).prop_map(Action::Pass),
        3 => Just(Action::Restart),
        3 => (node.clone(), 1_i64..9, 0_i64..3).prop_map(|(node, cpus, gpus)| Action::Node { node, cpus, gpus }),
        1 => node.clone().prop_map(Action::NodeGone),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, on)| Action::Cordon(node, on)),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, on)| Action::Ready(node, on)),
        1 => (0_u8..3, node, 0_i64..12).prop_map(|(pod, node, cpus)| Action::Foreign { pod, node, cpus }),
        1 => (0_u8..3).prop_map(Action::ForeignGone),
        6 => order().prop_map(Action::Submit),
        3 => order().prop_map(Action::Edit),
        2 => (0..JOBS.len()).prop_map(Action::Remove),
        1 => (0..JOBS.len()).prop_map(Action::Unhold),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(pick, force)| Action::DeletePod { pick, force }),
        1 => any::<u8>().prop_map(Action::StripPod),
        1 => any::<u8>().prop_map(Action::DeleteSlot),
        1 => (any::<u8>(), 0_u8..3).prop_map(|(pick, how)| Action::EditSlot { pick, how }),
        1 => (any::<u8>(), prop::option::of(1_u32..4))
            .prop_map(|(pick, dynamic)| Action::MakeSlot { pick, dynamic }),
        2 => (0..GROUPS.len(), 0_u8..9).prop_map(|(group, quota)| Action::Group { group, quota }),
        1 => (0..GROUPS.len()).prop_map(Action::GroupGone),
        1 => (0..OWNERS.len(), prop::option::weighted(0.3, 0..GROUPS.len()), prop::option::of(0_u8..6), prop::option::of(0_u8..6))
            .prop_map(|(owner, group, ceiling, factor)| Action::Ceiling { owner, group, ceiling, factor }),
        1 => (0_u8..2, 0_u8..5).prop_map(|(policy, how)| Action::Policy { policy, how }),
        1 => (0_u8..2).prop_map(Action::PolicyGone),
        2 => (0_u8..3, 0_u8..6, 0_u8..4).prop_map(|(negotiator, how, preempts)| Action::Negotiator { negotiator, how, preempts }),
        1 => (0_u8..3).prop_map(Action::NegotiatorGone),
    ]
}

fn pick<K: Clone, V>(from: &BTreeMap<K, V>, pick: u8) -> Option<K> {
    from.keys().nth(usize::from(pick) % from.len().max(1)).cloned()
}

impl Action {
    /// Does it, as far as the API server is concerned.
    pub fn perform(&self, server: &mut Server, now: Time) {
        match self {
            Self::Pass(_) | Self::Restart => {}
            Self::Node { node, cpus, gpus } => server.node(machine(NODES[*node], *cpus, *gpus)),
            Self::NodeGone(node) => server.node_gone(&NODES[*node].into()),
            Self::Cordon(node, on) => edit_node(server, *node, |facts| facts.cordoned = *on),
            Self::Ready(node, on) => edit_node(server, *node, |facts| facts.ready = *on),
            Self::Foreign { pod, node, cpus } => foreign(server, *pod, *node, *cpus),
            Self::ForeignGone(pod) => foreign_gone(server, *pod),
            Self::Submit(order) => submit_job(server, order, now),
            Self::Edit(order) => edit_job(server, order),
            Self::Remove(job) => remove_job(server, JOBS[*job]),
            Self::Unhold(job) => {
                if let Some(uid) = job_named(server, JOBS[*job]) {
                    server.job(&uid, |facts| facts.held = false);
                }
            }
            Self::DeletePod { pick: n, force } => {
                if let Some(name) = pick(&server.pods, *n) {
                    server.pod(&name, |pod| {
                        pod.deleting = true;
                        pod.confirmed |= *force;
                    });
                }
            }
            Self::StripPod(n) => strip_pod(server, *n),
            Self::DeleteSlot(n) => {
                if let Some(name) = pick(&server.slots, *n) {
                    server.edited = true;
                    server.tampered.insert(name.clone());
                    server.slot_gone(&name);
                }
            }
            Self::EditSlot { pick: n, how } => edit_slot(server, *n, *how),
            Self::MakeSlot { pick: n, dynamic } => make_slot(server, *n, *dynamic),
            Self::Group { group, quota } => {
                let quota = match quota {
                    8 => Quota::Dynamic(0.5),
                    n => Quota::Static(f64::from(*n)),
                };
                declare(server, GROUPS[*group], quota);
            }
            Self::GroupGone(group) => {
                let object: Arc<str> = GROUPS[*group].to_ascii_lowercase().into();
                if server.groups.remove(&object).is_some() {
                    server.tell(1, object.to_string(), Event::GroupGone(object));
                }
            }
            Self::Ceiling { owner, group, ceiling, factor } => {
                edit_submitter(server, *owner, *group, *ceiling, *factor);
            }
            Self::Policy { policy, how } => set_policy(server, *policy, *how),
            Self::PolicyGone(policy) => {
                let name = format!("policy{policy}").as_str().into();
                if server.policies.remove(&name).is_some() {
                    server.tell(0, name.to_string(), Event::PolicyGone(name));
                }
            }
            Self::Negotiator { negotiator, how, preempts } => {
                set_negotiator(server, *negotiator, *how, *preempts);
            }
            Self::NegotiatorGone(negotiator) => {
                let name: Arc<str> = format!("negotiator{negotiator}").into();
                if server.negotiators.remove(&name).is_some() {
                    server.tell(0, name.to_string(), Event::NegotiatorGone(name));
                }
            }
        }
    }
}

/// A node.
pub fn machine(name: &str, cpus: i64, gpus: i64) -> MachineFacts {
    MachineFacts {
        name: name.into(),
        arch: "amd64".into(),
        os: "linux".into(),
        // Of the first node nobody knows which GPUs it has.
        labels: if name == NODES[0] { Arc::default() } else { Arc::new(gpu_labels()) },
        allocatable: Capacity {
            milli_cpu: cpus * 1000,
            memory: 8 << 30,
            disk: 100 << 30,
            extended: BTreeMap::from([("nvidia.com/gpu".into(), gpus)]),
        },
        ready: true,
        cordoned: false,
        taints: vec![],
        system: crate::pool::System::default(),
    }
}

fn gpu_labels() -> BTreeMap<String, String> {
    BTreeMap::from([("nvidia.com/gpu.memory".to_owned(), "16000".to_owned())])
}

fn edit_node(server: &mut Server, node: usize, edit: impl FnOnce(&mut MachineFacts)) {
    if let Some(mut facts) = server.nodes.get(&NODES[node].into()).cloned() {
        edit(&mut facts);
        server.node(facts);
    }
}

fn foreign(server: &mut Server, pod: u8, node: usize, cpus: i64) {
    let uid: PodUid = format!("foreign{pod}").into();
    // Where a pod is bound it stays.
    foreign_gone(server, pod);
    let requests = Capacity { milli_cpu: cpus * 1000 - 500, ..Capacity::default() };
    server.foreign.insert(uid.clone(), (NODES[node].into(), requests.clone()));
    let event = Event::ForeignPod { pod: uid.clone(), machine: NODES[node].into(), requests };
    server.tell(6, uid.to_string(), event);
}

fn foreign_gone(server: &mut Server, pod: u8) {
    let uid: PodUid = format!("foreign{pod}").into();
    if server.foreign.remove(&uid).is_some() {
        server.tell(6, uid.to_string(), Event::ForeignPodGone(uid));
    }
}

fn job_named(server: &Server, name: &str) -> Option<JobUid> {
    server.jobs.values().find(|(_, facts)| &*facts.key.name == name).map(|(_, facts)| facts.key.uid.clone())
}

fn submission(order: &Order, submitted: Time) -> Submission {
    let requirements = match order.requirements {
        0 => None,
        1 => Some("TARGET.Cpus >= && 3"),
        2 => Some("TARGET.Cpus > 3"),
        3 => Some("error"),
        4 => Some("TARGET.NoSuchThing > 1"),
        _ => Some("TARGET.Machine != \"n0\""),
    };
    Submission {
        name: JOBS[order.job].to_owned(),
        namespace: "default".to_owned(),
        owner: OWNERS[order.owner].to_owned(),
        submitted,
        count: order.count,
        request: Request {
            cpus: order.cpus,
            memory_mib: 100 * order.cpus,
            disk_kib: 1024,
            gpus: order.gpus,
            ..Request::default()
        },
        requirements: requirements.map(str::to_owned),
        priority: order.priority,
        group: order.group.map(|group| GROUPS[group].to_owned()),
        retention: match order.retention {
            0 => Retention::Keep,
            1 => Retention::KeepFailed,
            _ => Retention::Delete,
        },
        ..Submission::default()
    }
}

fn submit_job(server: &mut Server, order: &Order, now: Time) {
    let name = JOBS[order.job];
    if job_named(server, name).is_some() {
        return;
    }
    server.uids += 1;
    // Jobs are listed in another order than they were made in.
    let uid: JobUid = format!("j{}", 9999 - server.uids).into();
    let facts = JobFacts {
        key: JobKey { uid: uid.clone(), namespace: "default".into(), name: name.into() },
        generation: 1,
        submitted: now,
        owner: submission(order, now).owner.into(),
        spec: submit(&submission(order, now)).map(Arc::new),
        removing: false,
        held: false,
        cluster: None,
        succeeded: Ranges::default(),
        failed: Ranges::default(),
        first_start: None,
        completed_at: None,
        defaults: None,
        on_hold: BTreeMap::new(),
    };
    server.jobs.insert(uid.clone(), (1, facts.clone()));
    server.tell(4, uid.to_string(), Event::Job(facts));
}

fn edit_job(server: &mut Server, order: &Order) {
    if let Some(uid) = job_named(server, JOBS[order.job]) {
        server.job(&uid, |facts| {
            facts.generation += 1;
            facts.spec = submit(&submission(order, facts.submitted)).map(Arc::new);
        });
    }
}

fn remove_job(server: &mut Server, name: &str) {
    if let Some(uid) = job_named(server, name) {
        server.job(&uid, |facts| facts.removing = true);
    }
}

fn strip_pod(server: &mut Server, n: u8) {
    let Some(name) = pick(&server.pods, n) else { return };
    // Who strips a pod that has ended takes its end away with it: nobody can know it then.
    if server.pods.get(&name).is_some_and(super::server::Pod::ended) {
        return;
    }
    server.pod(&name, |pod| {
        (pod.deleting, pod.confirmed, pod.tracked, pod.alive) = (true, true, false, false);
    });
}

fn edit_slot(server: &mut Server, n: u8, how: u8) {
    let Some(name) = pick(&server.slots, n) else { return };
    let Some((resources, claim)) = server.slots.get(&name).cloned() else { return };
    let claim = match (how, claim) {
        (0, _) | (_, None) => None,
        (1, Some(claim)) => Some(Claim { id: "mine".into(), ..claim }),
        (_, Some(claim)) => Some(Claim { proc: claim.proc + 1, ..claim }),
    };
    server.edited = true;
    server.tampered.insert(name.clone());
    server.slot(&name, resources, claim);
}

/// A Slot that claims what another claims, under a name that the operator may want.
fn make_slot(server: &mut Server, n: u8, dynamic: Option<u32>) {
    let Some(found) = pick(&server.slots, n) else { return };
    let name = SlotName { dynamic, ..found.clone() };
    if server.slots.contains_key(&name) {
        return;
    }
    let Some((resources, claim)) = server.slots.get(&found).cloned() else { return };
    server.edited = true;
    server.tampered.insert(name.clone());
    server.slot(&name, resources, claim);
}

/// Declares a group, as somebody may spell it.
pub fn declare(server: &mut Server, name: &str, quota: Quota) {
    let object: Arc<str> = name.to_ascii_lowercase().into();
    let generation = server.groups.get(&object).map_or(1, |group| group.generation + 1);
    let group = Group {
        object: object.clone(),
        generation,
        name: name.into(),
        quota,
        accept_surplus: None,
        autoregroup: None,
        priority_factor: None,
    };
    server.groups.insert(object.clone(), group.clone());
    server.tell(1, object.to_string(), Event::Group(group));
}

fn edit_submitter(
    server: &mut Server,
    owner: usize,
    group: Option<usize>,
    ceiling: Option<u8>,
    factor: Option<u8>,
) {
    let name = match group {
        Some(group) => format!("{}.{}", GROUPS[group], OWNERS[owner]),
        None => OWNERS[owner].to_owned(),
    };
    let old = server.submitters.get(&name.as_str().into());
    let facts = SubmitterFacts {
        generation: old.map_or(1, |old| old.generation + 1),
        accounts: old.map(|old| old.accounts.clone()).unwrap_or_default(),
        name: name.as_str().into(),
        factor: factor.map(f64::from),
        ceiling: ceiling.map(f64::from),
        floor: None,
        correction: None,
        corrected: None,
    };
    server.submitters.insert(facts.name.clone(), facts.clone());
    server.tell(2, name, Event::Submitter(facts));
}

fn set_policy(server: &mut Server, policy: u8, how: u8) {
    let expr = |text: &str| Some(Expr::parse(text).unwrap());
    let start = |text: &str| Policy { start: expr(text), ..Policy::default() };
    let config = match how {
        0 => Err(vec![Problem { reason: "Bad", field: "spec".to_owned(), message: "bad".to_owned() }]),
        1 => Ok(SlotConfig { policy: start("TARGET.RequestCpus > 1"), ..SlotConfig::default() }.into()),
        2 => Ok(SlotConfig { slot_weight: expr("Cpus / 2.0"), ..SlotConfig::default() }.into()),
        3 => {
            Ok(SlotConfig { policy: start("error"), slot_weight: expr("error"), ..SlotConfig::default() }
                .into())
        }
        _ => Ok(StartdConfig::default()),
    };
    let name: crate::pool::PolicyName = format!("policy{policy}").into();
    let generation = server.policies.get(&name).map_or(1, |old| old.generation + 1);
    let facts = PolicyFacts {
        name: name.clone(),
        uid: "u".into(),
        generation,
        selector: Selector::default(),
        precedence: i32::from(policy),
        config: config.map(Arc::new),
        warnings: None,
        spec: "".into(),
        recorded: None,
    };
    server.policies.insert(name.clone(), facts.clone());
    server.tell(0, name.to_string(), Event::Policy(facts));
}

/// By `preempts` nobody is thrown out, or wide jobs throw out narrow ones, or everybody everybody: several at once or one by one.
fn set_negotiator(server: &mut Server, negotiator: u8, how: u8, preempts: u8) {
    let name: Arc<str> = format!("negotiator{negotiator}").into();
    let wrong = || vec![Problem { reason: "Bad", field: "spec".to_owned(), message: "bad".to_owned() }];
    let constraint = match how {
        0 => "error",
        1 => "true",
        2 => "Machine == \"n0\"",
        3 => "Machine != \"n0\"",
        4 => "Cpus > 2",
        _ => "Cpus >",
    };
    let (allow_pslot_preemption, requirements) = match preempts {
        0 => (false, "false"),
        1 => (true, "TARGET.RequestCpus > MY.Cpus"),
        2 => (true, "true"),
        _ => (false, "true"),
    };
    let config = Expr::parse(constraint).map_err(|_| wrong()).map(|constraint| {
        let knobs = Config {
            slot_constraint: Some(constraint),
            allow_pslot_preemption,
            preemption_requirements: Expr::parse(requirements).ok(),
            ..Config::default()
        };
        Arc::new(NegotiatorConfig::from(knobs))
    });
    let facts = NegotiatorFacts {
        name: name.clone(),
        uid: name.clone(),
        generation: server.negotiators.get(&name).map_or(1, |old| old.generation + 1),
        config,
        warnings: None,
        spec: format!("{constraint} {preempts}").into(),
        recorded: None,
    };
    server.negotiators.insert(name.clone(), facts.clone());
    server.tell(0, name.to_string(), Event::Negotiator(facts));
}

/// Mends everything that people broke: every job that is well can run.
pub fn mend(server: &mut Server) {
    for node in NODES {
        server.node(machine(node, 8, 2));
    }
    for policy in 0..2 {
        Action::PolicyGone(policy).perform(server, Time::default());
    }
    for negotiator in 0..3 {
        Action::NegotiatorGone(negotiator).perform(server, Time::default());
    }
    for pod in 0..3 {
        foreign_gone(server, pod);
    }
    for group in GROUPS {
        declare(server, group, Quota::Static(10.0));
    }
    let submitters: Vec<_> = server.submitters.values().cloned().collect();
    for facts in submitters {
        let facts = SubmitterFacts { ceiling: None, generation: facts.generation + 1, ..facts };
        server.submitters.insert(facts.name.clone(), facts.clone());
        server.tell(2, facts.name.to_string(), Event::Submitter(facts));
    }
    remove_job(server, "forever");
}
