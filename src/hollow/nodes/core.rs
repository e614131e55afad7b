//! One hollow kubelet as a pure function: [`step`] takes an event and the time, changes the state, and says what to
//! write to the API server. No clock, no I/O: the shell brings both.
//!
//! Invariants, whatever events come in whatever order:
//! - the pods that were admitted and have not ended never use more than the node's allocatable, unless they already
//!   ran when the kubelet (re)started;
//! - a pod reports Running at most once and its end at most once, in that order;
//! - a pod is removed only after its end was reported.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use super::admission::{NodeFacts, admit};
use super::agent::Held;
use super::devices::{Assigned, DevicePool};
use super::life::{KILLED, Life, Run, after};
use super::resources::{CPU, Resources};
use super::shape::NodeShape;
use super::status::{self, Addresses, Exit, Place};
use super::view::{Phase, PodKey, PodView};

/// What a kubelet learns.
#[derive(Debug, Clone)]
pub enum Event {
    /// A pod that is bound to this node, new or changed.
    Pod(Box<PodView>),
    /// The pod with this uid is no longer in the API.
    Gone(String),
    /// The node's agent starts to do as pods' annotations say, or no longer does. What it holds still stays so.
    Agent(bool),
    /// The agent sent a renewal of its Lease then, and it succeeded.
    Renewed(Timestamp),
    /// Time passed.
    Tick,
}

/// What a kubelet writes. Actions on one pod must be carried out in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patch the pod's status.
    Report {
        /// Which pod.
        pod: PodKey,
        /// The phase it goes to.
        phase: Phase,
        /// The patch, a strategic merge patch of the status subresource.
        patch: Value,
    },
    /// Delete the pod with grace 0 and its uid as precondition: the containers are gone.
    Remove(PodKey),
}

#[derive(Debug, Clone)]
struct Hosted {
    view: PodView,
    place: Place,
    life: Life,
    /// The last delete request was seen to be for now, or answered by [`Action::Remove`].
    removed: bool,
}

/// All that one kubelet remembers. Lost when it dies and rebuilt from the API when it starts.
#[derive(Debug, Clone)]
pub struct NodeState {
    name: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    allocatable: Resources,
    host_ip: String,
    addresses: Addresses,
    devices: DevicePool,
    /// An agent is at work.
    agent: bool,
    /// When the agent sent the last renewal of its Lease that succeeded. It promises to end the pods of claims whose lease has
    /// passed since, and that holds though it dies.
    renewed: Option<Timestamp>,
    /// By uid.
    pods: BTreeMap<String, Hosted>,
}

impl NodeState {
    /// A kubelet that just started on a node of this shape; `number` sets its addresses apart from other nodes'.
    pub fn new(shape: &NodeShape, number: u16) -> Self {
        Self {
            name: shape.name.clone(),
            labels: shape.all_labels(),
            taints: shape.taints.clone(),
            allocatable: shape.allocatable(),
            host_ip: host_ip(number),
            addresses: Addresses::new(number),
            devices: DevicePool::new(&shape.name, &shape.gpus),
            agent: shape.agent.is_some(),
            renewed: None,
            pods: BTreeMap::new(),
        }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When [`step`] wants a [`Event::Tick`] at the latest; `None` while nothing is to come.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let next = |hosted: &Hosted| {
            [hosted.life.next(&hosted.view.script), self.lease_ends(hosted)].into_iter().flatten().min()
        };
        self.pods.values().filter_map(next).min()
    }

    /// When a pod has to be ended, unless the agent renews its Lease.
    fn lease_ends(&self, hosted: &Hosted) -> Option<Timestamp> {
        let (renewed, lease) = self.renewed.zip(hosted.view.lease)?;
        hosted.life.takes_resources().then(|| after(renewed, lease))
    }

    /// Uids of the pods it knows.
    pub fn uids(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str)
    }

    /// How many pods take resources, and how much they take together.
    pub fn used(&self) -> (i64, Resources) {
        let (mut count, mut sum) = (0, Resources::default());
        for hosted in self.pods.values().filter(|hosted| hosted.life.takes_resources()) {
            count += 1;
            sum.add(&hosted.view.requests);
        }
        (count, sum)
    }

    /// The devices that pod `namespace/name` holds now, if it is here.
    pub fn devices_of(&self, namespace: &str, name: &str) -> Option<Assigned> {
        let is_it = |h: &&Hosted| h.view.key.namespace == namespace && h.view.key.name == name;
        let hosted = self.pods.values().find(|h| is_it(h) && h.life.takes_resources())?;
        Some(hosted.place.devices.clone())
    }

    /// Says whether an agent is at work, before anything has happened.
    pub fn set_agent(&mut self, works: bool) {
        self.agent = works;
    }

    /// Says when the agent renewed its Lease last, before anything has happened.
    pub fn set_renewed(&mut self, renewed: Option<Timestamp>) {
        self.renewed = renewed;
    }

    /// Whether an agent is at work.
    pub fn has_agent(&self) -> bool {
        self.agent
    }

    /// What the agent sees of the pods.
    pub fn held(&self) -> Held {
        let mut held = Held::default();
        for hosted in self.pods.values() {
            let Life::Running(run) = hosted.life else { continue };
            if run.suspended.is_some() {
                held.suspended.insert(hosted.view.key.uid.clone());
            } else if hosted.view.pooled {
                held.pool_milli += hosted.view.requests.get(CPU);
            } else {
                held.other_milli += hosted.view.requests.get(CPU);
            }
        }
        held
    }

    fn observe(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(&view.key.uid) else { return self.take(view, now, actions) };
        (hosted.view.suspend, hosted.view.kill) = (view.suspend, view.kill);
        if view.phase.is_terminal() && hosted.life.takes_resources() {
            // Somebody else ended it; a kubelet kills the containers of such a pod and reports nothing new.
            hosted.life = Life::Ended;
            self.release(&view.key.uid);
        }
        self.delete(view, now, actions);
    }

    /// A pod this kubelet has not seen: new, or known to an earlier kubelet of this node.
    fn take(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let uid = view.key.uid.clone();
        let mut life = Life::Ended;
        if view.phase == Phase::Running {
            let since = view.running_since.or(view.start_time).unwrap_or(now);
            life = Life::Running(Run::new(since));
        } else if !view.phase.is_terminal() && view.deletion.is_some() {
            // Deleted before anything started: admission would be in vain.
            life = Life::Starting { at: Timestamp::MAX };
        } else if !view.phase.is_terminal() {
            match self.admission(view) {
                Ok(()) => life = Life::Starting { at: after(now, view.script.start_delay) },
                Err(rejection) => actions.push(Action::Report {
                    pod: view.key.clone(),
                    phase: Phase::Failed,
                    patch: status::rejected(view, &rejection, now),
                }),
            }
        }
        let place = self.place(view, now, life.takes_resources());
        self.pods.insert(uid, Hosted { view: view.clone(), place, life, removed: false });
        self.delete(view, now, actions);
    }

    fn admission(&self, view: &PodView) -> Result<(), super::admission::Rejection> {
        let (count, used) = self.used();
        let Self { name, labels, taints, allocatable, .. } = self;
        admit(view, NodeFacts { name, labels, taints, allocatable }, &used, count)
    }

    fn place(&mut self, view: &PodView, now: Timestamp, takes_resources: bool) -> Place {
        let uid = &view.key.uid;
        let mut place = Place {
            pod_ip: String::new(),
            host_ip: self.host_ip.clone(),
            start_time: view.start_time.unwrap_or(now),
            devices: Assigned::new(),
        };
        if takes_resources {
            place.pod_ip = self.addresses.assign(uid);
            place.devices = if !view.devices.is_empty() && self.devices.adopt(uid, &view.devices) {
                view.devices.clone()
            } else {
                self.devices.assign(uid, view.requests.iter())
            };
        }
        place
    }

    /// Starts or shortens the end of a pod that somebody deleted.
    fn delete(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(grace) = view.deletion else { return };
        let Some(hosted) = self.pods.get_mut(&view.key.uid) else { return };
        // With grace 0 the API server deleted it already and only finalizers keep the object.
        hosted.removed |= grace.is_zero();
        match &mut hosted.life {
            Life::Starting { .. } => {
                let exit = Exit { started: None, at: now, code: KILLED, fenced: false };
                self.end(&view.key.uid, &exit, true, actions);
            }
            Life::Running(run) => run.terminate(now, grace, &hosted.view.script),
            Life::Ended => hosted.remove(actions),
        }
    }

    /// Carries out what is due, pod by pod.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let over = |hosted: &Hosted| self.lease_ends(hosted).is_some_and(|at| at <= now);
        let due = |hosted: &Hosted| {
            hosted.life.next(&hosted.view.script).is_some_and(|at| at <= now) || over(hosted)
        };
        let uids: Vec<String> =
            self.pods.iter().filter(|(_, h)| due(h)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            if let Some(hosted) = self.pods.get_mut(&uid) {
                hosted.start(now, actions);
            }
            self.fence(&uid, now, actions);
            self.obey(&uid, now, actions);
            let exit = self.pods.get(&uid).and_then(|hosted| hosted.life.exit(&hosted.view.script));
            if let Some(exit) = exit.filter(|exit| exit.at <= now) {
                let deleted = self.pods.get(&uid).is_some_and(|hosted| hosted.life.is_terminating());
                self.end(&uid, &exit, deleted, actions);
            }
        }
    }

    fn end(&mut self, uid: &str, exit: &Exit, deleted: bool, actions: &mut Vec<Action>) {
        self.release(uid);
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        hosted.life = Life::Ended;
        actions.push(Action::Report {
            pod: hosted.view.key.clone(),
            phase: exit.phase(),
            patch: status::ended(&hosted.view, &hosted.place, exit),
        });
        if deleted {
            hosted.remove(actions);
        }
    }

    /// Ends a pod whose lease has passed since the agent renewed its own, unless it had ended by then.
    fn fence(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get(uid) else { return };
        let Some(at) = self.lease_ends(hosted).filter(|at| *at <= now) else { return };
        let own = hosted.life.exit(&hosted.view.script).filter(|exit| exit.at <= at);
        let started = match hosted.life {
            Life::Running(run) => Some(run.since),
            Life::Starting { .. } | Life::Ended => None,
        };
        let deleted = hosted.life.is_terminating();
        let exit = own.unwrap_or(Exit { started, at, code: KILLED, fenced: true });
        self.end(uid, &exit, deleted, actions);
    }

    /// The agent does with a pod as its annotations say.
    fn obey(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(uid).filter(|_| self.agent) else { return };
        let (suspend, kill) = (hosted.view.suspend, hosted.view.kill);
        let Life::Running(run) = &mut hosted.life else { return };
        run.hold(suspend, now);
        if kill {
            let exit = Exit { started: Some(run.since), at: now, code: KILLED, fenced: false };
            let deleted = run.term.is_some();
            self.end(uid, &exit, deleted, actions);
        }
    }

    fn release(&mut self, uid: &str) {
        self.devices.release(uid);
        self.addresses.release(uid);
    }
}

impl Hosted {
    fn start(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let Life::Starting { at } = self.life else { return };
        if at > now {
            return;
        }
        if let Some(error) = &self.view.script.start_error {
            self.life = Life::Starting { at: Timestamp::MAX };
            actions.push(Action::Report {
                pod: self.view.key.clone(),
                phase: Phase::Pending,
                patch: status::waiting(&self.view, &self.place, error),
            });
            return;
        }
        self.life = Life::Running(Run::new(at));
        actions.push(Action::Report {
            pod: self.view.key.clone(),
            phase: Phase::Running,
            patch: status::running(&self.view, &self.place, at),
        });
    }

    fn remove(&mut self, actions: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.removed, true) {
            actions.push(Action::Remove(self.view.key.clone()));
        }
    }
}

/// Tells the kubelet of `state` that `event` happened, at `now`; returns what it writes, in order. Whatever is due
/// by `now` happens too, at the time it was due.
pub fn step(state: &mut NodeState, event: Event, now: Timestamp) -> Vec<Action> {
    let mut actions = Vec::new();
    // First what was due before: it may make room for what comes now.
    state.advance(now, &mut actions);
    match event {
        Event::Pod(view) => {
            state.observe(&view, now, &mut actions);
            state.obey(&view.key.uid, now, &mut actions);
        }
        Event::Agent(works) => {
            state.agent = works;
            let uids: Vec<String> = state.pods.keys().cloned().collect();
            for uid in uids {
                state.obey(&uid, now, &mut actions);
            }
        }
        Event::Renewed(at) => state.renewed = state.renewed.max(Some(at)),
        Event::Gone(uid) => {
            state.release(&uid);
            state.pods.remove(&uid);
        }
        Event::Tick => {}
    }
    state.advance(now, &mut actions);
    actions
}

/// The address of the node with this number.
pub(super) fn host_ip(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("172.18.{high}.{low}")
}
