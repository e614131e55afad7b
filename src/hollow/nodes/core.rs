//! One hollow kubelet as a pure function: [`step`] takes an event and the time, changes the state, and returns what
//! to write to the API server. This file has no clock and does no I/O; `kubelets` brings both.
//!
//! Invariants, whatever events come in whatever order:
//! - the pods that were admitted and have not ended never use more than the node's allocatable, unless they already
//!   ran when the kubelet started;
//! - a pod reports at most once each, and in this order, that its containers run, that the main container has ended
//!   (the phase stays Running), and its terminal phase;
//! - a pod is removed only after its terminal phase was reported;
//! - containers that were told to end run for their first grace period, whatever becomes of their pod's object.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use super::admission::{NodeFacts, admit};
mod ends;

use super::agent::PodActivity;
use super::devices::{Assigned, DevicePool};
use super::life::{Ending, KILLED, Life, Run, after, shifted};
use super::resources::{CPU, Resources};
use super::shape::NodeShape;
use super::status::{self, Addresses, Cause, Exit, Lost, Place};
use super::view::{Phase, PodKey, PodView};

/// The exit code of a container whose command cannot be run.
const CANNOT_RUN: i32 = 128;

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
    /// Somebody has deleted the pod.
    deleted: bool,
    /// The kubelet has asked for the removal of the pod's object.
    removed: bool,
    /// The pod's object no longer exists: there is nothing to report any more.
    gone: bool,
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
    /// By how much the node's clock is ahead of the API server's.
    ahead: SignedDuration,
    /// How the kubelet reports containers of before the node's start, if the node has lost them.
    lost: Option<Lost>,
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
            ahead: shape.clock_ahead,
            lost: None,
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
        self.pods.values().filter_map(|hosted| self.wake_of(hosted)).min()
    }

    /// When the agent must end the pod, unless it renews its Lease first; `None` if the pod has ended, has no
    /// lease, or the agent has never renewed its own.
    fn lease_ends(&self, hosted: &Hosted) -> Option<Timestamp> {
        let (renewed, lease) = self.renewed.zip(hosted.view.lease)?;
        hosted.life.is_before_exit().then(|| after(renewed, lease))
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
        let is_it = |h: &&Hosted| h.view.key.namespace == namespace && h.view.key.name == name && !h.gone;
        let hosted = self.pods.values().find(|h| is_it(h) && h.life.takes_resources())?;
        Some(hosted.place.devices.clone())
    }

    /// Sets whether the node's agent runs. For a state that has not handled any event yet.
    pub fn set_agent(&mut self, works: bool) {
        self.agent = works;
    }

    /// Makes the node one that has started again and has lost its containers. For a state that has not handled any event
    /// yet.
    pub fn set_lost(&mut self, lost: Option<Lost>) {
        self.lost = lost;
    }

    /// Sets when the agent renewed its Lease last. For a state that has not handled any event yet.
    pub fn set_renewed(&mut self, renewed: Option<Timestamp>) {
        self.renewed = renewed;
    }

    /// Whether the node's agent runs.
    pub fn has_agent(&self) -> bool {
        self.agent
    }

    /// The facts about the node's pods that the agent senses.
    pub fn pod_activity(&self) -> PodActivity {
        let mut activity = PodActivity::default();
        for hosted in self.pods.values() {
            if hosted.view.lease.is_some() && hosted.life.is_before_exit() {
                activity.covered.insert(hosted.view.key.uid.clone());
            }
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
        (hosted.view.suspend, hosted.view.kill, hosted.view.phase) = (view.suspend, view.kill, view.phase);
        if let (true, Life::Running(run)) = (view.phase.is_terminal(), &mut hosted.life) {
            // Somebody else wrote a final phase. A kubelet then ends the containers, and leaves the phase alone.
            run.terminate(now, view.deletion.unwrap_or(view.own_grace), &hosted.view.script);
        }
        self.delete(view, now, actions);
    }

    /// Adds a pod that this kubelet has not seen. The pod is new, or an earlier kubelet of this node ran it.
    fn add(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let uid = view.key.uid.clone();
        let mut life = Life::Ended;
        let ran = view.phase == Phase::Running;
        if ran && self.lost.is_none() {
            life = self.earlier(view, now);
        } else if !ran && !view.phase.is_terminal() && view.deletion.is_some() {
            // Somebody deleted the pod before it started, so it needs no admission: `delete` below ends it.
            life = Life::Starting { at: Timestamp::MAX };
        } else if !ran && !view.phase.is_terminal() {
            match self.admission(view) {
                Ok(()) => life = Life::Starting { at: after(now, view.script.start_delay) },
                Err(rejection) => {
                    let patch = status::rejected(view, &rejection, shifted(now, self.ahead));
                    actions.push(Action::Report { pod: view.key.clone(), phase: Phase::Failed, patch });
                }
            }
        }
        let place = self.place(view, now, life.takes_resources());
        if let Some(how) = self.lost.filter(|_| ran) {
            let patch = status::lost(view, &place, how, shifted(now, self.ahead));
            actions.push(Action::Report { pod: view.key.clone(), phase: Phase::Failed, patch });
        }
        let hosted = Hosted { view: view.clone(), place, life, deleted: false, removed: false, gone: false };
        self.pods.insert(uid, hosted);
        self.delete(view, now, actions);
    }

    /// The life of a pod that an earlier kubelet of this node ran.
    fn earlier(&self, view: &PodView, now: Timestamp) -> Life {
        let mine = |at: Timestamp| shifted(at, -self.ahead);
        let since = view.running_since.map(mine).or(view.start_time).unwrap_or(now);
        let Some(seen) = view.exited else { return Life::Running(Run::new(since)) };
        let started = seen.started.map_or(since, mine);
        let exit = Exit { started: Some(started), at: mine(seen.at), code: seen.code, cause: Cause::Exited };
        Life::Ending(Ending { exit, run: Run::new(started) })
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

    /// Does what the pod's annotations ask of the agent, if the agent runs: suspend, continue or kill the pod.
    fn suspend_or_kill(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(uid).filter(|_| self.agent) else { return };
        let (suspend, kill) = (hosted.view.suspend, hosted.view.kill);
        let Life::Running(run) = &mut hosted.life else { return };
        run.set_suspended(suspend, now);
        if kill {
            let exit = Exit { started: Some(run.since), at: now, code: KILLED, cause: Cause::Exited };
            self.stop(uid, exit, actions);
        }
    }

    /// Frees the devices and the address of a pod.
    fn free(&mut self, uid: &str) {
        self.devices.free(uid);
        self.addresses.free(uid);
    }
}

impl Hosted {
    fn start(&mut self, at: Timestamp, ahead: SignedDuration, actions: &mut Vec<Action>) {
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
            patch: status::running(&self.view, &self.place, shifted(at, ahead)),
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
        Event::Gone(uid) => state.vanish(&uid, now),
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
