//! Pods: those of the pool, and those of others that use its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::quantity::millis;
use crate::api::labels;
use crate::controller::render::DISRUPTION_TARGET;
use crate::pool::{
    Capacity, End, MachineName, Obstacle, OnHold, PODS, PodFacts, PodRef, PodUid, SlotName, VacateReason,
    backfill,
};

/// Of a pod, what is read.
#[derive(kube::Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = "k8s_openapi::api::core::v1::Pod")]
pub struct SlimPod {
    /// Standard metadata.
    pub metadata: ObjectMeta,
    /// What runs.
    #[serde(default)]
    pub spec: SlimPodSpec,
    /// How it goes.
    #[serde(default)]
    pub status: SlimPodStatus,
}

/// Of a pod's spec, what is read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodSpec {
    node_name: Option<String>,
    containers: Vec<SlimContainer>,
    init_containers: Vec<SlimContainer>,
    overhead: BTreeMap<String, Quantity>,
}

/// Of a container, what is read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimContainer {
    name: String,
    resources: SlimRequirements,
    restart_policy: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
struct SlimRequirements {
    requests: BTreeMap<String, Quantity>,
    limits: BTreeMap<String, Quantity>,
}

/// Of a pod's status, what is read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodStatus {
    phase: String,
    reason: Option<String>,
    message: Option<String>,
    init_container_statuses: Vec<SlimContainerStatus>,
    container_statuses: Vec<SlimContainerStatus>,
    conditions: Vec<SlimCondition>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimContainerStatus {
    name: String,
    state: SlimContainerState,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
struct SlimContainerState {
    waiting: Option<SlimWaiting>,
    running: Option<SlimRunning>,
    terminated: Option<SlimTerminated>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
struct SlimWaiting {
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimRunning {
    started_at: Option<Time>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimTerminated {
    exit_code: i32,
    message: Option<String>,
    finished_at: Option<Time>,
}

/// What a pod is to the pool.
#[derive(Clone, Debug, PartialEq)]
pub enum PodView {
    /// One of its own.
    Ours(PodFacts),
    /// One that does backfill work.
    Backfill(backfill::Facts),
    /// Somebody else's, with what it takes from a node.
    Foreign(PodUid, MachineName, Capacity),
    /// Of no concern: not on a node, or ended.
    Neither(PodUid),
}

/// What the pool knows of a pod.
pub fn pod(pod: &SlimPod) -> Option<PodView> {
    let uid: PodUid = pod.metadata.uid.as_deref()?.into();
    let machine = pod.spec.node_name.as_deref().filter(|name| !name.is_empty()).map(MachineName::from);
    if let Some(facts) = ours(pod, &uid, machine.clone()) {
        return Some(PodView::Ours(facts));
    }
    if let Some(facts) = machine.as_ref().and_then(|machine| backfill_pod(pod, &uid, machine)) {
        return Some(PodView::Backfill(facts));
    }
    Some(match machine {
        Some(machine) if !is_terminal(pod) => PodView::Foreign(uid, machine, requests(pod)),
        _ => PodView::Neither(uid),
    })
}

fn ours(pod: &SlimPod, uid: &PodUid, machine: Option<MachineName>) -> Option<PodFacts> {
    let job = pod.labels().get(labels::JOB_UID)?;
    let proc = pod.labels().get(labels::PROC)?.parse().ok()?;
    let claim = pod.annotations().get(labels::CLAIM)?;
    Some(PodFacts {
        pod: PodRef {
            namespace: pod.namespace().unwrap_or_default().into(),
            name: pod.name_any().into(),
            uid: uid.clone(),
        },
        machine,
        job: job.as_str().into(),
        proc,
        claim: claim.as_str().into(),
        running: matches!(pod.status.phase.as_str(), "Running" | "Succeeded"),
        started: started(pod),
        end: end(pod),
        hold: hold(pod),
        obstacle: obstacle(pod).map(Arc::new),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        lease: pod
            .annotations()
            .get(labels::LEASE_SECONDS)
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs),
        tracked: pod.finalizers().iter().any(|finalizer| finalizer == labels::TRACKING_FINALIZER),
        requests: requests(pod),
    })
}

fn backfill_pod(pod: &SlimPod, uid: &PodUid, machine: &MachineName) -> Option<backfill::Facts> {
    pod.labels().get(labels::BACKFILL)?;
    let slot = pod.annotations().get(labels::SLOT).and_then(|name| SlotName::parse(name).ok());
    let mark = pod.annotations().get(labels::BACKFILL_TEMPLATE).map(String::as_str).unwrap_or_default();
    let phase = if end(pod).is_some() {
        backfill::Phase::Over
    } else if pod.status.phase == "Running" {
        backfill::Phase::Runs
    } else {
        backfill::Phase::Waits
    };
    Some(backfill::Facts {
        pod: PodRef {
            namespace: pod.namespace().unwrap_or_default().into(),
            name: pod.name_any().into(),
            uid: uid.clone(),
        },
        machine: machine.clone(),
        slot: slot.filter(|slot| slot.machine == *machine && slot.dynamic.is_none()).map(|slot| slot.slot),
        mark: mark.into(),
        phase,
        started: started(pod),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        requests: requests(pod),
    })
}

/// Why a container of a pod cannot start, if one cannot: the first of them, init containers before the others.
fn obstacle(pod: &SlimPod) -> Option<Obstacle> {
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    all.filter_map(|container| Some((container, container.state.waiting.as_ref()?))).find_map(
        |(container, waits)| {
            let reason = waits.reason.as_deref().unwrap_or_default();
            Obstacle::of(&container.name, reason, waits.message.as_deref().unwrap_or_default())
        },
    )
}

/// What the pod's proc is held for, as the operator says on pods that it deletes for that.
fn hold(pod: &SlimPod) -> Option<OnHold> {
    let disrupted = disrupted(pod)?;
    let code = VacateReason::named(disrupted.reason.as_deref()?)?.hold_code()?;
    Some(OnHold { code, subcode: 0, reason: disrupted.message.as_deref().unwrap_or_default().into() })
}

/// When the main container started to run, while it does.
fn started(pod: &SlimPod) -> Option<crate::pool::Time> {
    let state = &main_container(pod)?.state;
    state.running.as_ref()?.started_at.as_ref().map(super::time)
}

fn is_terminal(pod: &SlimPod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// How a pod ended, if it has.
fn end(pod: &SlimPod) -> Option<End> {
    match pod.status.phase.as_str() {
        // A program that ends well because it was told to stop has not done its work.
        "Succeeded" if finished(pod, After::Asked) => Some(deleted(pod)),
        "Succeeded" => Some(End::Exited { code: 0 }),
        "Failed" => Some(failed(pod)),
        // Nothing but our finalizer holds it: the kubelet has confirmed, or somebody forced it.
        _ if pod.metadata.deletion_timestamp.is_some()
            && pod.metadata.deletion_grace_period_seconds == Some(0) =>
        {
            Some(deleted(pod))
        }
        _ => None,
    }
}

fn failed(pod: &SlimPod) -> End {
    // A reason is given when something else than the job's own process ended the pod, except for its own deadline.
    if let Some(reason) = pod.status.reason.as_deref().filter(|reason| *reason != "DeadlineExceeded") {
        return evicted(&format!(
            "{reason}: {}",
            pod.status.message.as_deref().unwrap_or("the node gave no message")
        ));
    }
    let said = main_status(pod).and_then(|terminated| terminated.message.as_deref());
    if said.is_some_and(|said| said.starts_with(labels::FENCED)) {
        return evicted(
            "the node's agent could not reach the API server for the lease of the claim, and ended it",
        );
    }
    // The operator says why before it deletes, and may have seen too little by then: when the pod ended counts, as below.
    let said_by_us =
        |disrupted: &&SlimCondition| disrupted.reason.as_deref().and_then(VacateReason::named).is_some();
    if disrupted(pod).is_some_and(|disrupted| !said_by_us(&disrupted)) {
        return deleted(pod);
    }
    // Times have no fractions: what dies in the second in which it is told to has most likely obeyed.
    if finished(pod, After::OrWhenAsked) {
        return deleted(pod);
    }
    End::Exited { code: exit_code(pod).unwrap_or(1) }
}

/// Why a pod was disrupted: the operator, the pod garbage collector, the eviction API and taints say it by condition before
/// they delete.
fn disruption(pod: &SlimPod) -> Option<String> {
    let disrupted = disrupted(pod)?;
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "not said".to_owned());
    Some(format!("{}: {}", said(&disrupted.reason), said(&disrupted.message)))
}

fn disrupted(pod: &SlimPod) -> Option<&SlimCondition> {
    pod.status.conditions.iter().find(|c| c.type_ == DISRUPTION_TARGET && c.status == "True")
}

/// A pod that was ended because it was deleted.
fn deleted(pod: &SlimPod) -> End {
    evicted(&disruption(pod).unwrap_or_else(|| "its pod was deleted".to_owned()))
}

/// When a container must have ended to have been told to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Asked,
    OrWhenAsked,
}

/// Whether the main container ended after the pod's deletion was asked for: it was told to stop, and is no end of the job's
/// own. Where nobody says when it ended, it was.
fn finished(pod: &SlimPod, after: After) -> bool {
    let Some(deadline) = &pod.metadata.deletion_timestamp else { return false };
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    let asked = deadline.0.as_second().saturating_sub(grace);
    let Some(at) = main_status(pod).and_then(|terminated| terminated.finished_at.as_ref()) else {
        return true;
    };
    at.0.as_second() > asked || (at.0.as_second() == asked && after == After::OrWhenAsked)
}

fn main_container(pod: &SlimPod) -> Option<&SlimContainerStatus> {
    let main = pod.spec.containers.first()?;
    pod.status.container_statuses.iter().find(|status| status.name == main.name)
}

fn main_status(pod: &SlimPod) -> Option<&SlimTerminated> {
    main_container(pod)?.state.terminated.as_ref()
}

fn evicted(why: &str) -> End {
    End::Evicted { why: Arc::from(why) }
}

/// The main container's exit code; another's where that one ended well and the pod failed all the same.
fn exit_code(pod: &SlimPod) -> Option<i32> {
    let main = pod.spec.containers.first().map(|container| container.name.as_str());
    let mut codes: Vec<(bool, i32)> = pod
        .status
        .container_statuses
        .iter()
        .filter_map(|status| {
            Some((Some(status.name.as_str()) != main, status.state.terminated.as_ref()?.exit_code))
        })
        .filter(|(_, code)| *code != 0)
        .collect();
    codes.sort_by_key(|(other, _)| *other);
    codes.first().map(|(_, code)| *code)
}

/// What pods of this spec request.
pub fn requests_of(spec: &PodSpec) -> Capacity {
    // By way of JSON: the rule is written once, over the parts of a pod that are read.
    let spec = serde_json::to_value(spec).and_then(serde_json::from_value).unwrap_or_default();
    requests(&SlimPod { spec, ..SlimPod::default() })
}

/// What a pod requests, by the scheduler's rule: the sum over containers and sidecars, or a larger init container, and the
/// overhead.
fn requests(pod: &SlimPod) -> Capacity {
    let mut sum = Capacity::default();
    for container in &pod.spec.containers {
        sum.add(&capacity(container));
    }
    let mut sidecars = Capacity::default();
    let mut peak = Capacity::default();
    for container in &pod.spec.init_containers {
        let mut own = capacity(container);
        own.add(&sidecars);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = own.clone();
        }
        peak = larger(&peak, &own);
    }
    sum.add(&sidecars);
    let mut total = larger(&sum, &peak);
    total.add(&amounts(&pod.spec.overhead));
    // Every pod is one of those that the kubelet takes.
    total.extended.insert(PODS.into(), 1);
    total
}

fn larger(a: &Capacity, b: &Capacity) -> Capacity {
    let mut extended = a.extended.clone();
    for (name, amount) in &b.extended {
        let most = extended.entry(name.clone()).or_default();
        *most = (*most).max(*amount);
    }
    Capacity {
        milli_cpu: a.milli_cpu.max(b.milli_cpu),
        memory: a.memory.max(b.memory),
        disk: a.disk.max(b.disk),
        extended,
    }
}

/// What a container requests; a limit without a request is a request.
fn capacity(container: &SlimContainer) -> Capacity {
    let mut requests = container.resources.limits.clone();
    requests.extend(container.resources.requests.clone());
    amounts(&requests)
}

fn amounts(requests: &BTreeMap<String, Quantity>) -> Capacity {
    let mut capacity = Capacity::default();
    for (name, quantity) in requests {
        let amount = millis(quantity).unwrap_or(0);
        match name.as_str() {
            "cpu" => capacity.milli_cpu = amount,
            "memory" => capacity.memory = amount / 1000,
            "ephemeral-storage" => capacity.disk = amount / 1000,
            other if other.contains('/') => {
                capacity.extended.insert(other.into(), amount / 1000);
            }
            _ => {}
        }
    }
    capacity
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn view(object: Value) -> PodView {
        pod(&serde_json::from_value(object).unwrap()).unwrap()
    }

    fn ours(status: Value, metadata: Value) -> PodFacts {
        let mut object = json!({
            "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "labels": {labels::JOB_UID: "job", labels::PROC: "1"},
                         "annotations": {labels::CLAIM: "c"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}, {"name": "side"}]},
            "status": status,
        });
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        match view(object) {
            PodView::Ours(facts) => facts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ends_of_pods() {
        let status =
            |name: &str, code: i32| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
        for (case, status, metadata, end) in [
            ("waits", json!({"phase": "Pending"}), json!({}), None),
            ("runs", json!({"phase": "Running"}), json!({}), None),
            ("ends well", json!({"phase": "Succeeded"}), json!({}), Some(End::Exited { code: 0 })),
            (
                "fails",
                json!({"phase": "Failed", "containerStatuses": [status("side", 7), status("main", 3)]}),
                json!({}),
                Some(End::Exited { code: 3 }),
            ),
            (
                "a side container fails",
                json!({"phase": "Failed", "containerStatuses": [status("side", 7), status("main", 0)]}),
                json!({}),
                Some(End::Exited { code: 7 }),
            ),
            (
                "is refused",
                json!({"phase": "Failed", "reason": "OutOfcpu", "message": "no"}),
                json!({}),
                Some(evicted("OutOfcpu: no")),
            ),
            (
                "takes too long",
                json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
                json!({}),
                Some(End::Exited { code: 1 }),
            ),
            (
                "its node is gone",
                json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
                       "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists"}]}),
                json!({}),
                Some(evicted("DeletionByPodGC: PodGC: node no longer exists")),
            ),
            (
                "fails though it is no target of a disruption",
                json!({"phase": "Failed", "containerStatuses": [status("main", 3)],
                       "conditions": [{"type": "DisruptionTarget", "status": "False"}]}),
                json!({}),
                Some(End::Exited { code: 3 }),
            ),
        ] {
            assert_eq!(ours(status, metadata).end, end, "{case}");
        }
    }

    #[test]
    fn what_keeps_a_container_from_starting() {
        let waits = |name: &str, reason: &str| json!({"name": name, "state": {"waiting": {"reason": reason, "message": "no"}}});
        let runs = json!({"name": "main", "state": {"running": {}}});
        for (case, status, expected) in [
            ("nothing is said yet", json!({"phase": "Pending"}), None),
            (
                "it takes its time",
                json!({"phase": "Pending", "containerStatuses": [waits("main", "ContainerCreating")]}),
                None,
            ),
            (
                "no image",
                json!({"phase": "Pending", "containerStatuses": [waits("main", "ErrImagePull")]}),
                Some((35, "container main cannot start: ErrImagePull: no")),
            ),
            (
                "one beside the main one",
                json!({"phase": "Running", "containerStatuses": [runs, waits("side", "CreateContainerConfigError")]}),
                Some((6, "container side cannot start: CreateContainerConfigError: no")),
            ),
            (
                "an init container goes first",
                json!({"phase": "Pending", "initContainerStatuses": [waits("fetch", "ImagePullBackOff")],
                       "containerStatuses": [waits("main", "PodInitializing")]}),
                Some((35, "container fetch cannot start: ImagePullBackOff: no")),
            ),
        ] {
            let facts = ours(status, json!({}));
            let found = facts.obstacle.map(|found| (found.hold.code, found.hold.reason.to_string()));
            assert_eq!(found, expected.map(|(code, reason)| (code, reason.to_owned())), "{case}");
        }
    }

    #[test]
    fn what_a_proc_is_held_for_stands_on_its_pod() {
        for (reason, code) in [
            ("StartdHeldJob", Some(21)),
            ("InvalidDockerImage", Some(35)),
            ("FailedToCreateProcess", Some(6)),
            ("StartdDraining", None),
            ("EvictionByEvictionAPI", None),
        ] {
            let said =
                json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "so"}]);
            let found = ours(json!({"phase": "Failed", "conditions": said}), json!({})).hold;
            let expected = code.map(|code| OnHold { code, subcode: 0, reason: "so".into() });
            assert_eq!(found, expected, "{reason}");
        }
    }

    #[test]
    fn ends_of_deleted_pods() {
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30});
        let forced = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0});
        // Deletion was asked for 30 s before the deadline.
        let ends = |code: i32, time: &str| json!({"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": time}}});
        let at = |time: &str| ends(0, time);
        let vacated = json!([{"type": "DisruptionTarget", "status": "True", "reason": "StartdDraining", "message": "firmware"}]);
        for (case, status, metadata, end) in [
            ("is being deleted", json!({"phase": "Running"}), deleted.clone(), None),
            (
                "was deleted",
                json!({"phase": "Failed"}),
                deleted.clone(),
                Some(evicted("its pod was deleted")),
            ),
            (
                "ended well because it was told to stop",
                json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:40Z")]}),
                deleted.clone(),
                Some(evicted("its pod was deleted")),
            ),
            (
                "ended well before it was deleted",
                json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:20Z")]}),
                deleted.clone(),
                Some(End::Exited { code: 0 }),
            ),
            (
                "ended well in the second in which it was deleted",
                json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:30Z")]}),
                deleted.clone(),
                Some(End::Exited { code: 0 }),
            ),
            (
                "died in the second in which it was deleted",
                json!({"phase": "Failed", "containerStatuses": [ends(143, "2025-12-31T23:59:30Z")]}),
                deleted.clone(),
                Some(evicted("its pod was deleted")),
            ),
            (
                "failed before the operator evicted it",
                json!({"phase": "Failed", "containerStatuses": [ends(3, "2025-12-31T23:59:20Z")], "conditions": vacated}),
                deleted.clone(),
                Some(End::Exited { code: 3 }),
            ),
            (
                "died when the operator evicted it",
                json!({"phase": "Failed", "containerStatuses": [ends(143, "2025-12-31T23:59:40Z")], "conditions": vacated}),
                deleted.clone(),
                Some(evicted("StartdDraining: firmware")),
            ),
            (
                "failed before it was deleted",
                json!({"phase": "Failed", "containerStatuses": [ends(3, "2025-12-31T23:59:20Z")]}),
                deleted,
                Some(End::Exited { code: 3 }),
            ),
            ("was forced", json!({"phase": "Running"}), forced, Some(evicted("its pod was deleted"))),
        ] {
            assert_eq!(ours(status, metadata).end, end, "{case}");
        }
    }

    #[test]
    fn requests_follow_the_schedulers_rule() {
        let PodView::Foreign(_, machine, requests) = view(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                               {"name": "b", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}],
                "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                                   {"name": "i", "resources": {"requests": {"cpu": "3"}}}],
                "overhead": {"cpu": "10m"}},
            "status": {"phase": "Running"}
        })) else {
            panic!("not foreign")
        };
        assert_eq!(machine.as_str(), "n1");
        assert_eq!((requests.milli_cpu, requests.memory), (3_110, 1 << 30));
        assert_eq!(requests.extended.values().copied().collect::<Vec<_>>(), [1, 1], "a GPU and a pod");
    }

    #[test]
    fn pods_that_hold_nothing_are_of_no_concern() {
        for object in [
            json!({"metadata": {"name": "p", "uid": "u"}}),
            json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}),
        ] {
            assert!(matches!(view(object), PodView::Neither(_)));
        }
    }
}
