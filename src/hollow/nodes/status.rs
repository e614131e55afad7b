//! The pod status that a kubelet writes, as one strategic merge patch for each transition.
//!
//! Every patch names the pod's uid: if another pod has taken the name, the API server answers 409.

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
    /// When they started; `None` if they never did.
    pub started: Option<Timestamp>,
    /// When they ended.
    pub at: Timestamp,
    /// Their exit code.
    pub code: i32,
    /// Whether the node's agent ended them because it could not renew its Lease for as long as the lease of the claim.
    pub fenced: bool,
}

impl Exit {
    /// The pod's phase after this exit: Succeeded for exit code 0, else Failed.
    pub fn phase(&self) -> Phase {
        if self.code == 0 { Phase::Succeeded } else { Phase::Failed }
    }
}

/// The addresses and devices of a pod on its node, and when the kubelet admitted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The pod's address.
    pub pod_ip: String,
    /// The node's address.
    pub host_ip: String,
    /// `status.startTime`: when a kubelet first handled the pod.
    pub start_time: Timestamp,
    /// The devices that are assigned to the pod.
    pub devices: Assigned,
}

/// The patch of a pod that stays Pending because its containers cannot start.
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

/// The patch of a pod that a kubelet has admitted and that has not ended.
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

/// The patch from Pending to Running.
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

/// The patch to Succeeded or Failed, after the containers have ended.
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

/// The patch to Failed of a pod that the kubelet rejects.
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

/// The patch to Failed that the pod garbage collector makes when the pod's node no longer exists.
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
        // Kubelet reports this for a container that it never created.
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

/// The conditions of a pod. `PodScheduled` is among them because no binding set it on a pod that was created with a
/// node name.
fn conditions(pod: &PodView, start: Timestamp, types: [(&str, &Value); 3]) -> Vec<Value> {
    let scheduled = json!({"status": "True", "lastTransitionTime": Time(pod.scheduled_at.unwrap_or(start))});
    let all = types.into_iter().chain([("PodScheduled", &scheduled)]);
    all.map(|(type_, condition)| {
        let mut condition = condition.clone();
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("type".to_owned(), type_.into());
            // A strategic merge patch keeps fields that it does not name: null removes the reason of the last state.
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

/// The pod addresses of one node. Freed addresses are assigned again, lowest first.
#[derive(Debug, Clone)]
pub struct Addresses {
    prefix: String,
    /// The uid of the pod that has this last byte of the address.
    assigned: BTreeMap<u8, String>,
}

impl Addresses {
    /// The addresses `10.x.y.0/24` of the node with this number.
    pub fn new(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        Self { prefix: format!("10.{}.{low}", 128_u8.saturating_add(high)), assigned: BTreeMap::new() }
    }

    /// Assigns an address to pod `uid`. If a node has more than 254 pods, which no shape here allows, the rest share
    /// the last address.
    pub fn assign(&mut self, uid: &str) -> String {
        let last = (1..=254_u8).find(|n| !self.assigned.contains_key(n)).unwrap_or(254);
        self.assigned.insert(last, uid.to_owned());
        format!("{}.{last}", self.prefix)
    }

    /// Frees the address of pod `uid`.
    pub fn free(&mut self, uid: &str) {
        self.assigned.retain(|_, pod| pod != uid);
    }
}
