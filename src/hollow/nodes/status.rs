//! The pod status that a kubelet writes, as one strategic merge patch for each transition.
//!
//! Every patch names the pod's uid: if another pod has taken the name, the API server answers 409.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::admission::Rejection;
use super::devices::Assigned;
use super::life::Ending;
use super::script::{DEVICES, NO_COMMAND, StartError};
use super::view::{Image, Phase, PodView};
use api::labels;

/// The cause of a container's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It exited, by itself or by a signal.
    Exited,
    /// It was killed for its use of memory.
    OutOfMemory,
    /// Its command cannot be run: it never ran.
    NoCommand,
    /// The kubelet evicted the pod.
    Evicted,
    /// The node's agent ended it because it could not renew its Lease for as long as the lease of the claim.
    Fenced,
}

/// How and when a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// When it started; `None` if it never did.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub at: Timestamp,
    /// Its exit code.
    pub code: i32,
    /// The cause of the end.
    pub cause: Cause,
}

impl Exit {
    /// The pod's phase after this exit: Succeeded for exit code 0, else Failed.
    pub fn phase(&self) -> Phase {
        if self.code == 0 { Phase::Succeeded } else { Phase::Failed }
    }
}

/// The kubelet's status of a container that ran before its node started again, and that the kubelet cannot find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The container waits, and its last state is `ContainerStatusUnknown`.
    Waiting,
    /// The container is terminated, with reason `Unknown` and exit code 255.
    Unknown,
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
    let mut inits = init_statuses(pod, since);
    inits.extend(pod.sidecars.iter().map(state));
    put(&mut body, "status", "initContainerStatuses", (!inits.is_empty()).then(|| Value::from(inits)));
    let devices = (!place.devices.is_empty()).then(|| json!({DEVICES: json!(place.devices).to_string()}));
    put(&mut body, "metadata", "annotations", devices);
    body
}

/// The statuses of the containers of a pod whose main container has ended, at this time, and of its init containers.
fn statuses(pod: &PodView, ending: &Ending, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
    let others = ending.others(&pod.script);
    let of = |(place, image): (usize, &Image)| {
        let exit = if place == 0 { &ending.exit } else { &others };
        if exit.at > now {
            let state = json!({"running": {"startedAt": Time(ending.run.since)}});
            return container_status(pod, image, (true, true), &state);
        }
        container_status(pod, image, (false, false), &terminated(pod, image, exit))
    };
    let containers = pod.containers.iter().enumerate().map(of).collect();
    let mut inits = init_statuses(pod, ending.run.since);
    let over = ending.sidecars_over(pod);
    inits.extend(pod.sidecars.iter().map(|image| {
        let exit = Exit { started: Some(ending.run.since), at: over, code: 0, cause: Cause::Exited };
        let running = json!({"running": {"startedAt": Time(ending.run.since)}});
        let state = if over > now { running } else { terminated(pod, image, &exit) };
        container_status(pod, image, (over > now, over > now), &state)
    }));
    (containers, inits)
}

/// The patch that says that the main container has ended, while the pod's phase stays as it is.
pub fn stopped(pod: &PodView, place: &Place, ending: &Ending) -> Value {
    let exit = &ending.exit;
    let (containers, inits) = statuses(pod, ending, exit.at);
    let not_ready =
        json!({"status": "False", "reason": "ContainersNotReady", "lastTransitionTime": Time(exit.at)});
    let initialized = json!({"status": "True", "lastTransitionTime": Time(ending.run.since)});
    let types = [("Initialized", &initialized), ("Ready", &not_ready), ("ContainersReady", &not_ready)];
    let mut body = json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "startTime": Time(place.start_time),
            "conditions": conditions(pod, place.start_time, types),
            "containerStatuses": containers,
        }
    });
    put(&mut body, "status", "initContainerStatuses", (!inits.is_empty()).then(|| Value::from(inits)));
    body
}

/// The patch to Succeeded or Failed, after all containers have ended. It names no phase if somebody else has written one.
pub fn settled(pod: &PodView, place: &Place, ending: &Ending) -> Value {
    let over = ending.sidecars_over(pod);
    let (containers, inits) = statuses(pod, ending, over);
    let phase = ending.phase(pod);
    let reason = if phase == Phase::Succeeded { "PodCompleted" } else { "PodFailed" };
    let initialized = json!({"status": "True", "lastTransitionTime": Time(ending.run.since)});
    let not_ready = json!({"status": "False", "reason": reason, "lastTransitionTime": Time(ending.exit.at)});
    let types = [("Initialized", &initialized), ("Ready", &not_ready), ("ContainersReady", &not_ready)];
    let mut all = conditions(pod, place.start_time, types);
    let evicted = pod.script.evicted.as_ref().filter(|_| ending.exit.cause == Cause::Evicted);
    all.extend(evicted.map(|message| {
        json!({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
            "message": message, "lastTransitionTime": Time(ending.exit.at)})
    }));
    let mut body = json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "startTime": Time(place.start_time),
            "conditions": all,
            "containerStatuses": containers,
        }
    });
    put(&mut body, "status", "initContainerStatuses", (!inits.is_empty()).then(|| Value::from(inits)));
    if !pod.phase.is_terminal() {
        put(&mut body, "status", "phase", Some(json!(phase.as_str())));
        put(&mut body, "status", "reason", evicted.map(|_| json!("Evicted")));
        put(&mut body, "status", "message", evicted.map(|message| json!(message)));
    }
    body
}

/// The patch to Failed of a pod whose containers never ran.
pub fn never_ran(pod: &PodView, place: &Place, exit: &Exit) -> Value {
    let state = |image: &Image| container_status(pod, image, (false, false), &terminated(pod, image, exit));
    failed(pod, place, exit.at, pod.containers.iter().map(state).collect())
}

/// The patch to Failed of a pod whose first init container failed: the other containers wait for ever.
pub fn init_failed(pod: &PodView, place: &Place, exit: &Exit) -> Value {
    let waits = json!({"waiting": {"reason": "PodInitializing"}});
    let state = |image: &Image| container_status(pod, image, (false, false), &waits);
    let mut body = failed(pod, place, exit.at, pod.containers.iter().map(state).collect());
    let inits = pod.init_containers.iter().enumerate().map(|(n, image)| {
        let ended = if n == 0 { terminated(pod, image, exit) } else { waits.clone() };
        container_status(pod, image, (false, false), &ended)
    });
    put(&mut body, "status", "initContainerStatuses", Some(inits.collect()));
    body
}

/// The patch to Failed of a pod whose node has started again and does not find its containers.
pub fn lost(pod: &PodView, place: &Place, how: Lost, now: Timestamp) -> Value {
    const UNFOUND: &str = "The container could not be located when the pod was terminated";
    let of = |image: &Image| {
        let unknown = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": UNFOUND,
            "startedAt": null, "finishedAt": null}});
        let (state, last) = match how {
            Lost::Waiting => (json!({"waiting": {"reason": "ContainerCreating"}}), unknown),
            Lost::Unknown => {
                let ended = json!({"exitCode": 255, "reason": "Unknown", "startedAt": Time(now), "finishedAt": Time(now)});
                (json!({"terminated": ended}), json!({}))
            }
        };
        let mut status = container_status(pod, image, (false, false), &state);
        if let Some(fields) = status.as_object_mut() {
            fields.insert("lastState".to_owned(), last);
        }
        status
    };
    failed(pod, place, now, pod.containers.iter().map(of).collect())
}

fn failed(pod: &PodView, place: &Place, at: Timestamp, containers: Vec<Value>) -> Value {
    let initialized = json!({"status": "True", "lastTransitionTime": Time(at)});
    let not_ready = json!({"status": "False", "reason": "PodFailed", "lastTransitionTime": Time(at)});
    let types = [("Initialized", &initialized), ("Ready", &not_ready), ("ContainersReady", &not_ready)];
    json!({
        "metadata": {"uid": pod.key.uid},
        "status": {
            "phase": "Failed",
            "startTime": Time(place.start_time),
            "conditions": conditions(pod, place.start_time, types),
            "containerStatuses": containers,
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
    if exit.cause == Cause::NoCommand {
        let message = pod.script.start_error.as_ref().map(|error| error.message.as_str());
        return json!({"terminated": {
            "exitCode": exit.code, "reason": NO_COMMAND, "message": message.unwrap_or_default(),
            "startedAt": "1970-01-01T00:00:00Z", "finishedAt": Time(exit.at),
            "containerID": container_id(pod, image),
        }});
    }
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
        "reason": match (exit.cause, exit.code) {
            (Cause::OutOfMemory, _) => "OOMKilled",
            (_, 0) => "Completed",
            _ => "Error",
        },
        "startedAt": Time(started),
        "finishedAt": Time(exit.at),
        "containerID": container_id(pod, image),
    }});
    put(&mut state, "terminated", "message", (exit.cause == Cause::Fenced).then(|| json!(labels::FENCED)));
    state
}

fn init_statuses(pod: &PodView, at: Timestamp) -> Vec<Value> {
    let done = |image: &Image| {
        let state = terminated(pod, image, &Exit { started: Some(at), at, code: 0, cause: Cause::Exited });
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
