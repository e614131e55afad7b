//! One hollow kubelet as a pure function: [`step`] takes an event and the time, changes the state, and returns what
//! to write to the API server. This file has no clock and does no I/O; `kubelets` brings both.
//!
//! Invariants, whatever events come in whatever order:
//! - the pods that were admitted and have not ended never use more than the node's allocatable, unless they already
//!   ran when the kubelet started;
//! - a pod reports Running at most once and its end at most once, in that order;
//! - a pod is removed only after its end was reported.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use super::admission::{NodeFacts, admit};
use super::agent::PodActivity;
use super::devices::{Assigned, DevicePool};
use super::life::{KILLED, Life, Run, after};
use super::resources::{CPU, Resources};
use super::shape::NodeShape;
use super::status::{self, Addresses, Exit, Place};
use super::view::{Phase, PodKey, PodView};

/// An event that a kubelet handles.
#[derive(Debug, Clone)]
pub enum Event {
    /// The watch shows a new or changed pod that is bound to this node.
    Pod(Box<PodView>),
    /// The pod with this uid no longer exists in the API server.
    Gone(String),
    /// The node's agent starts (`true`) or stops (`false`) to suspend and kill pods as their annotations ask. When
    /// the agent stops, suspended pods stay suspended.
    Agent(bool),
    /// The agent renewed its Lease successfully, with a request that it sent at this time.
    Renewed(Timestamp),
    /// Time has passed.
    Tick,
}

/// A write that a kubelet asks for. The shell must make the writes to one pod in their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patch the pod's status.
    Report {
        /// The pod.
        pod: PodKey,
        /// The phase that the patch sets.
        phase: Phase,
        /// A strategic merge patch of the status subresource.
        patch: Value,
    },
    /// Delete the pod with grace period 0 and its uid as precondition, because its containers have ended.
    Remove(PodKey),
}

#[derive(Debug, Clone)]
struct Hosted {
    view: PodView,
    place: Place,
    life: Life,
    /// The pod needs no [`Action::Remove`]: the kubelet has asked for it, or somebody deleted the pod with grace
    /// period 0.
    removed: bool,
}

/// The state of one kubelet. It is lost when the kubelet dies, and rebuilt from the API when the kubelet starts.
#[derive(Debug, Clone)]
pub struct NodeState {
    name: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    allocatable: Resources,
    host_ip: String,
    addresses: Addresses,
    devices: DevicePool,
    /// Whether the node's agent runs.
    agent: bool,
    /// When the agent sent the last successful renewal of its Lease. A pod must end when the lease of its claim has
    /// passed since this time, even if the agent has died by then.
    renewed: Option<Timestamp>,
    /// The node's pods by uid.
    pods: BTreeMap<String, Hosted>,
}

impl NodeState {
    /// A kubelet that just started on a node of this shape. `number` must differ between nodes: the addresses of
    /// the node and of its pods are made from it.
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

    /// The time by which the shell must send an [`Event::Tick`]; `None` if nothing will happen by itself.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let next = |hosted: &Hosted| {
            [hosted.life.next(&hosted.view.script), self.lease_ends(hosted)].into_iter().flatten().min()
        };
        self.pods.values().filter_map(next).min()
    }

    /// When the agent must end the pod, unless it renews its Lease first; `None` if the pod has ended, has no
    /// lease, or the agent has never renewed its own.
    fn lease_ends(&self, hosted: &Hosted) -> Option<Timestamp> {
        let (renewed, lease) = self.renewed.zip(hosted.view.lease)?;
        hosted.life.takes_resources().then(|| after(renewed, lease))
    }

    /// Uids of the pods that the kubelet knows.
    pub fn uids(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str)
    }

    /// How many pods take resources, and what these pods request together.
    pub fn used(&self) -> (i64, Resources) {
        let (mut count, mut sum) = (0, Resources::default());
        for hosted in self.pods.values().filter(|hosted| hosted.life.takes_resources()) {
            count += 1;
            sum.add(&hosted.view.requests);
        }
        (count, sum)
    }

    /// The devices that pod `namespace/name` has now; `None` if no such pod takes resources here.
    pub fn devices_of(&self, namespace: &str, name: &str) -> Option<Assigned> {
        let is_it = |h: &&Hosted| h.view.key.namespace == namespace && h.view.key.name == name;
        let hosted = self.pods.values().find(|h| is_it(h) && h.life.takes_resources())?;
        Some(hosted.place.devices.clone())
    }

    /// Sets whether the node's agent runs. For a state that has not handled any event yet.
    pub fn set_agent(&mut self, works: bool) {
        self.agent = works;
    }

    /// Sets when the agent renewed its Lease last. For a state that has not handled any event yet.
    pub fn set_renewed(&mut self, renewed: Option<Timestamp>) {
        self.renewed = renewed;
    }

    /// Whether the node's agent runs.
    pub fn has_agent(&self) -> bool {
        self.agent
    }

    /// What the agent senses of the node's pods.
    pub fn pod_activity(&self) -> PodActivity {
        let mut activity = PodActivity::default();
        for hosted in self.pods.values() {
            let Life::Running(run) = hosted.life else { continue };
            if run.suspended.is_some() {
                activity.suspended.insert(hosted.view.key.uid.clone());
            } else if hosted.view.pooled {
                activity.pool_milli += hosted.view.requests.get(CPU);
            } else {
                activity.other_milli += hosted.view.requests.get(CPU);
            }
        }
        activity
    }

    fn observe(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(&view.key.uid) else { return self.add(view, now, actions) };
        (hosted.view.suspend, hosted.view.kill) = (view.suspend, view.kill);
        if view.phase.is_terminal() && hosted.life.takes_resources() {
            // Somebody else wrote a final phase, such as an eviction. A kubelet kills the containers of such a pod
            // and leaves its phase alone.
            hosted.life = Life::Ended;
            self.free(&view.key.uid);
        }
        self.delete(view, now, actions);
    }

    /// Adds a pod that this kubelet has not seen. The pod is new, or an earlier kubelet of this node ran it.
    fn add(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let uid = view.key.uid.clone();
        let mut life = Life::Ended;
        if view.phase == Phase::Running {
            let since = view.running_since.or(view.start_time).unwrap_or(now);
            life = Life::Running(Run::new(since));
        } else if !view.phase.is_terminal() && view.deletion.is_some() {
            // Somebody deleted the pod before it started, so it needs no admission: `delete` below ends it.
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

    /// Ends a pod that somebody deleted, or gives it the grace period that the deletion asks for.
    fn delete(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(grace) = view.deletion else { return };
        let Some(hosted) = self.pods.get_mut(&view.key.uid) else { return };
        // With grace period 0 the API server needs no second delete from the kubelet: only finalizers keep the pod.
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

    /// Does what is due by `now`, pod by pod.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let lease_over = |hosted: &Hosted| self.lease_ends(hosted).is_some_and(|at| at <= now);
        let due = |hosted: &Hosted| {
            hosted.life.next(&hosted.view.script).is_some_and(|at| at <= now) || lease_over(hosted)
        };
        let uids: Vec<String> =
            self.pods.iter().filter(|(_, h)| due(h)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            if let Some(hosted) = self.pods.get_mut(&uid) {
                hosted.start(now, actions);
            }
            self.fence(&uid, now, actions);
            self.suspend_or_kill(&uid, now, actions);
            let exit = self.pods.get(&uid).and_then(|hosted| hosted.life.exit(&hosted.view.script));
            if let Some(exit) = exit.filter(|exit| exit.at <= now) {
                let deleted = self.pods.get(&uid).is_some_and(|hosted| hosted.life.is_terminating());
                self.end(&uid, &exit, deleted, actions);
            }
        }
    }

    /// Reports the end of a pod; `deleted` removes it too.
    fn end(&mut self, uid: &str, exit: &Exit, deleted: bool, actions: &mut Vec<Action>) {
        self.free(uid);
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

    /// Ends a pod once the lease of its claim has passed since the agent renewed its own Lease, unless the pod had
    /// ended by itself before that time.
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

    /// Does what the pod's annotations ask of the agent, if the agent runs: suspend, continue or kill the pod.
    fn suspend_or_kill(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(uid).filter(|_| self.agent) else { return };
        let (suspend, kill) = (hosted.view.suspend, hosted.view.kill);
        let Life::Running(run) = &mut hosted.life else { return };
        run.set_suspended(suspend, now);
        if kill {
            let exit = Exit { started: Some(run.since), at: now, code: KILLED, fenced: false };
            let deleted = run.term.is_some();
            self.end(uid, &exit, deleted, actions);
        }
    }

    /// Frees the devices and the address of a pod.
    fn free(&mut self, uid: &str) {
        self.devices.free(uid);
        self.addresses.free(uid);
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

/// Handles `event` at `now` and returns the kubelet's writes in order.
///
/// Also does whatever is due by `now`, with the time at which it was due: it does not matter how late the shell calls.
pub fn step(state: &mut NodeState, event: Event, now: Timestamp) -> Vec<Action> {
    let mut actions = Vec::new();
    // Before the event, because a pod that has ended meanwhile makes room for the pod of the event.
    state.advance(now, &mut actions);
    match event {
        Event::Pod(view) => {
            state.observe(&view, now, &mut actions);
            state.suspend_or_kill(&view.key.uid, now, &mut actions);
        }
        Event::Agent(works) => {
            state.agent = works;
            let uids: Vec<String> = state.pods.keys().cloned().collect();
            for uid in uids {
                state.suspend_or_kill(&uid, now, &mut actions);
            }
        }
        Event::Renewed(at) => state.renewed = state.renewed.max(Some(at)),
        Event::Gone(uid) => {
            state.free(&uid);
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
