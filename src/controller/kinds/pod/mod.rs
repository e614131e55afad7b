//! Pods: those of the pool, and others on its nodes.

mod end;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};

use self::end::{disrupted, ending, forced, is_terminal, main_container, remains};
use super::sighting::told;
use super::{News, Stage, Watched};
use crate::cache::Kind;
use crate::convert::{self, SlimPodSpec};
use api::labels;
use model::pool::{
    Capacity, Event, Forced, HoldReason, MachineName, Obstacle, PodFacts, PodRef, PodUid, SlotName,
    VacateReason, backfill,
};

/// The part of a pod that the operator reads.
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

/// The part of a pod's status that the operator reads.
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
    last_transition_time: Option<Time>,
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
    reason: Option<String>,
    message: Option<String>,
    started_at: Option<Time>,
    finished_at: Option<Time>,
}

impl Watched for SlimPod {
    type Object = Self;
    const KIND: Kind = Kind { name: "Pod", plural: "pods" };
    const STAGE: Stage = Stage::Pods;

    fn api(client: Client) -> Api<Self> {
        Api::all(client)
    }

    fn there(pod: Self) -> Vec<News> {
        match view(&pod) {
            Some(PodView::Ours(facts)) => {
                vec![News::PodSeen(facts.pod.clone(), facts.claim.clone()), Event::Pod(facts).into()]
            }
            Some(PodView::Backfill(facts)) => told(Event::Backfill(facts)),
            Some(PodView::Foreign(pod, machine, requests)) => {
                told(Event::ForeignPod { pod, machine, requests })
            }
            Some(PodView::Neither(uid)) => told(Event::ForeignPodGone(uid)),
            None => Vec::new(),
        }
    }

    fn gone(pod: Self) -> Vec<News> {
        told(view(&pod).map(|pod| match pod {
            PodView::Ours(facts) => Event::PodGone(facts),
            PodView::Backfill(facts) => Event::BackfillGone(facts.machine, facts.pod.uid),
            PodView::Foreign(uid, ..) | PodView::Neither(uid) => Event::ForeignPodGone(uid),
        }))
    }
}

/// What a pod is to the pool.
#[derive(Clone, Debug, PartialEq)]
pub enum PodView {
    /// A pod of a proc.
    Ours(PodFacts),
    /// A backfill pod.
    Backfill(backfill::Facts),
    /// A pod that is not the pool's, its node, and what it takes from the node.
    Foreign(PodUid, MachineName, Capacity),
    /// A pod that is not the pool's and takes nothing: it is on no node, or has ended.
    Neither(PodUid),
}

/// What a pod is to the pool; none if the pod has no uid.
pub fn view(pod: &SlimPod) -> Option<PodView> {
    let uid: PodUid = pod.metadata.uid.as_deref()?.into();
    let machine = pod.spec.node_name.as_deref().filter(|name| !name.is_empty()).map(MachineName::from);
    if let Some(facts) = ours(pod, &uid, machine.clone()) {
        return Some(PodView::Ours(facts));
    }
    if let Some(facts) = machine.as_ref().and_then(|machine| backfill_pod(pod, &uid, machine)) {
        return Some(PodView::Backfill(facts));
    }
    Some(match machine {
        Some(machine) if !is_terminal(pod) => PodView::Foreign(uid, machine, pod.spec.requests()),
        _ => PodView::Neither(uid),
    })
}

fn ours(pod: &SlimPod, uid: &PodUid, machine: Option<MachineName>) -> Option<PodFacts> {
    let job = pod.labels().get(labels::JOB_UID)?;
    let proc = pod.labels().get(labels::PROC)?.parse().ok()?;
    let claim = pod.annotations().get(labels::CLAIM)?;
    let ending = ending(pod);
    let told = ending.as_ref().is_some_and(|ending| ending.told);
    let (end, held) = ending.map_or((None, None), |ending| (Some(ending.end), ending.hold));
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
        remains: remains(pod),
        end,
        told,
        hold: hold(pod).or(held),
        obstacle: obstacle(pod).map(Arc::new),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        grace: grace(pod),
        forced: forced(pod),
        disrupted: disrupted(pod).is_some(),
        lease: pod
            .annotations()
            .get(labels::LEASE_SECONDS)
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs),
        tracked: pod.finalizers().iter().any(|finalizer| finalizer == labels::TRACKING_FINALIZER),
        requests: pod.spec.requests(),
    })
}

fn backfill_pod(pod: &SlimPod, uid: &PodUid, machine: &MachineName) -> Option<backfill::Facts> {
    pod.labels().get(labels::BACKFILL)?;
    let slot = pod.annotations().get(labels::SLOT).and_then(|name| SlotName::parse(name).ok());
    let mark = pod.annotations().get(labels::BACKFILL_TEMPLATE).map(String::as_str).unwrap_or_default();
    let gone =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    let phase = if is_terminal(pod) || gone {
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
        requests: pod.spec.requests(),
    })
}

/// Why a container of a pod cannot start: the first such container, init containers before the others.
fn obstacle(pod: &SlimPod) -> Option<Obstacle> {
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    all.filter_map(|container| Some((container, container.state.waiting.as_ref()?))).find_map(
        |(container, waits)| {
            let reason = waits.reason.as_deref().unwrap_or_default();
            Obstacle::of(&container.name, reason, waits.message.as_deref().unwrap_or_default())
        },
    )
}

/// The hold reason of the pod's proc, which the operator writes on a pod that it deletes because of a hold.
fn hold(pod: &SlimPod) -> Option<HoldReason> {
    let disrupted = disrupted(pod)?;
    let code = VacateReason::named(disrupted.reason.as_deref()?)?.hold_code()?;
    Some(HoldReason { code, subcode: 0, reason: disrupted.message.as_deref().unwrap_or_default().into() })
}

/// When the main container started, if it did.
fn started(pod: &SlimPod) -> Option<model::pool::Time> {
    let state = &main_container(pod)?.state;
    let running = state.running.as_ref().and_then(|running| running.started_at.as_ref());
    running.or_else(|| state.terminated.as_ref()?.started_at.as_ref()).map(convert::time)
}

/// The longest grace period of a pod's deletions, as far as the pod shows them. The API server forgets a period that somebody
/// shortens: the operator writes that period on the pod before it does so itself. A pod that others deleted by force may
/// have had its own grace period.
fn grace(pod: &SlimPod) -> Option<Duration> {
    pod.metadata.deletion_timestamp.as_ref()?;
    let written = pod.annotations().get(labels::GRANTED_SECONDS).and_then(|seconds| seconds.parse().ok());
    let shown = match forced(pod) {
        Forced::No => pod.metadata.deletion_grace_period_seconds.and_then(|seconds| seconds.try_into().ok()),
        Forced::Idle | Forced::Running => Some(pod.spec.grace_period()),
    };
    shown.max(written).map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
