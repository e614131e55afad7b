//! The status a kubelet writes, as one strategic merge patch per transition.
//!
//! Every patch carries the pod's uid: the API server answers 409 when a new pod of the same name is meant.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::admission::Rejection;
use super::devices::Assigned;
use super::script::{DEVICES, StartError};
use super::view::{Image, Phase, PodView};
use api::labels;

/// How and when the containers of a pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// When they started; `None` when they never did.
    pub started: Option<Timestamp>,
    /// When they ended.
    pub at: Timestamp,
    /// With which exit code.
    pub code: i32,
    /// The node's agent ended them: it could not renew its Lease for the lease of the claim.
    pub fenced: bool,
}

impl Exit {
    /// Succeeded for exit code 0, else Failed.
    pub fn phase(&self) -> Phase {
        if self.code == 0 { Phase::Succeeded } else { Phase::Failed }
    }
}

/// Where a pod runs and what it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The pod's address.
    pub pod_ip: String,
    /// The node's address.
    pub host_ip: String,
    /// When the kubelet took the pod.
    pub start_time: Timestamp,
    /// Devices of the pod.
    pub devices: Assigned,
}

/// Still Pending: the containers do not start.
pub fn waiting(pod: &PodView, place: &Place, error: &StartError) -> Value {
    let state = json!({"waiting": {"reason": error.reason, "message": error.message}});
    let of = |image: &Image| {
        json!({
            "name": image.container, "image": image.image, "imageID": "",
            "ready": false, "started": false, "restartCount": 0, "state": state,
        })
    };
    let not_ready = json!({"status": "False", "reason": "ContainersNotReady", "lastTransitionTime": Time(place.start_time)});
    let initialized = json!({"status": "True", "lastTransitionTime": Time(place.start_time)});
    let types = [("Initialized", &initialized), ("Ready", &not_ready), ("ContainersReady", &not_ready)];
    let containers = pod.containers.iter().map(of).collect();
    on_node(pod, place, Phase::Pending, conditions(pod, place.start_time, types), containers)
}

/// A pod that a kubelet took and that has not ended.
fn on_node(
    pod: &PodView,
    place: &Place,
    phase: Phase,
    conditions: Vec<Value>,
    containers: Vec<Value>,
) -> Value {
    json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "phase": phase.as_str(),
            "hostIP": place.host_ip,
            "podIP": place.pod_ip,
            "podIPs": [{"ip": place.pod_ip}],
            "startTime": Time(place.start_time),
            "conditions": conditions,
            "containerStatuses": containers,
        }
    })
}

/// Pending to Running.
pub fn running(pod: &PodView, place: &Place, since: Timestamp) -> Value {
    let state = |image: &Image| {
        let state = json!({"running": {"startedAt": Time(since)}});
        container_status(pod, image, (true, true), &state)
    };
    let ready = json!({"status": "True", "lastTransitionTime": Time(since)});
    let types = [("Initialized", &ready), ("Ready", &ready), ("ContainersReady", &ready)];
    let containers = pod.containers.iter().map(state).collect();
    let mut body = on_node(pod, place, Phase::Running, conditions(pod, place.start_time, types), containers);
    let inits = init_statuses(pod, since);
    put(&mut body, "status", "initContainerStatuses", (!inits.is_empty()).then(|| Value::from(inits)));
    let devices = (!place.devices.is_empty()).then(|| json!({DEVICES: json!(place.devices).to_string()}));
    put(&mut body, "metadata", "annotations", devices);
    body
}

/// To Succeeded or Failed, after the containers ended.
pub fn ended(pod: &PodView, place: &Place, exit: &Exit) -> Value {
    let state = |image: &Image| container_status(pod, image, (false, false), &terminated(pod, image, exit));
    let reason = if exit.code == 0 { "PodCompleted" } else { "PodFailed" };
    let initialized = json!({"status": "True", "lastTransitionTime": Time(exit.started.unwrap_or(exit.at))});
    let not_ready = json!({"status": "False", "reason": reason, "lastTransitionTime": Time(exit.at)});
    let types = [("Initialized", &initialized), ("Ready", &not_ready), ("ContainersReady", &not_ready)];
    json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "phase": exit.phase().as_str(),
            "startTime": Time(place.start_time),
            "conditions": conditions(pod, place.start_time, types),
            "containerStatuses": pod.containers.iter().map(state).collect::<Vec<_>>(),
        }
    })
}

/// To Failed, because the kubelet refused the pod.
pub fn rejected(pod: &PodView, rejection: &Rejection, now: Timestamp) -> Value {
    json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "phase": "Failed",
            "reason": rejection.reason,
            "message": rejection.message,
            "startTime": Time(pod.start_time.unwrap_or(now)),
        }
    })
}

/// To Failed, because the pod's node is no more: what the pod garbage collector writes.
pub fn orphaned(pod: &PodView, now: Timestamp) -> Value {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists", "lastTransitionTime": Time(now),
    });
    json!({"metadata": {"uid": pod.key.uid}, "status": {"phase": "Failed", "conditions": [condition]}})
}

fn container_status(pod: &PodView, image: &Image, (ready, started): (bool, bool), state: &Value) -> Value {
    json!({
        "name": image.container,
        "image": image.image,
        "imageID": format!("hollow://{}", image.image),
        "containerID": container_id(pod, image),
        "ready": ready,
        "started": started,
        "restartCount": 0,
        "state": state,
    })
}

fn container_id(pod: &PodView, image: &Image) -> String {
    format!("hollow://{}/{}", pod.key.uid, image.container)
}

fn terminated(pod: &PodView, image: &Image, exit: &Exit) -> Value {
    let Some(started) = exit.started else {
        // What kubelet reports of a container that never came to be.
        let message = "The container could not be located when the pod was deleted.";
        return json!({"terminated": {
            "exitCode": exit.code, "reason": "ContainerStatusUnknown", "message": message,
            "startedAt": null, "finishedAt": null,
        }});
    };
    let mut state = json!({"terminated": {
        "exitCode": exit.code,
        "reason": if exit.code == 0 { "Completed" } else { "Error" },
        "startedAt": Time(started),
        "finishedAt": Time(exit.at),
        "containerID": container_id(pod, image),
    }});
    put(&mut state, "terminated", "message", exit.fenced.then(|| json!(labels::FENCED)));
    state
}

fn init_statuses(pod: &PodView, at: Timestamp) -> Vec<Value> {
    let done = |image: &Image| {
        let state = terminated(pod, image, &Exit { started: Some(at), at, code: 0, fenced: false });
        container_status(pod, image, (true, false), &state)
    };
    pod.init_containers.iter().map(done).collect()
}

/// The condition list; `PodScheduled` is included for pods that were created with a node and so never bound.
fn conditions(pod: &PodView, start: Timestamp, types: [(&str, &Value); 3]) -> Vec<Value> {
    let scheduled = json!({"status": "True", "lastTransitionTime": Time(pod.scheduled_at.unwrap_or(start))});
    let all = types.into_iter().chain([("PodScheduled", &scheduled)]);
    all.map(|(type_, condition)| {
        let mut condition = condition.clone();
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("type".to_owned(), type_.into());
            // A strategic merge keeps what is not named: an old reason must not outlive its state.
            fields.entry("reason").or_insert(Value::Null);
        }
        condition
    })
    .collect()
}

fn put(body: &mut Value, part: &str, key: &str, value: Option<Value>) {
    if let (Some(value), Some(fields)) = (value, body.get_mut(part).and_then(Value::as_object_mut)) {
        fields.insert(key.to_owned(), value);
    }
}

/// Pod addresses of one node, by pod uid: lowest free one first, so that a busy node does not run out.
#[derive(Debug, Clone)]
pub struct Addresses {
    prefix: String,
    held: BTreeMap<u8, String>,
}

impl Addresses {
    /// The range `10.x.y.0/24` of the node with this number.
    pub fn new(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        Self { prefix: format!("10.{}.{low}", 128_u8.saturating_add(high)), held: BTreeMap::new() }
    }

    /// An address for pod `uid`. With 254 pods or more the last one is shared; no node is that large.
    pub fn assign(&mut self, uid: &str) -> String {
        let last = (1..=254_u8).find(|n| !self.held.contains_key(n)).unwrap_or(254);
        self.held.insert(last, uid.to_owned());
        format!("{}.{last}", self.prefix)
    }

    /// Takes back the address of pod `uid`.
    pub fn release(&mut self, uid: &str) {
        self.held.retain(|_, holder| holder != uid);
    }
}
