//! Pods: those of the pool, and others on its nodes.

mod end;
mod marks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};

use self::end::{disrupted, ending, first_asked, forced, is_terminal, main_container, remains};
use self::marks::{Made, PodMarks, is_tracked};
use super::sighting::{keep_once, told};
use super::{Names, News, Stage, Watched};
use crate::cache::Kind;
use crate::convert::{self, SlimPodSpec, SlimRequirements};
use answers::decode::known_time;
use answers::{Decode, Item, Parts};
use api::labels;
use model::pool::{
    Capacity, ClaimId, Deletion, Event, HoldReason, JobUid, MachineName, Obstacle, PodFacts, PodRef, PodUid,
    SlotName, VacateReason, backfill,
};

/// The part of a pod that the operator reads.
#[derive(kube::Resource, Clone, Debug, Default)]
#[resource(inherit = "k8s_openapi::api::core::v1::Pod")]
pub struct SlimPod {
    /// Standard metadata.
    pub metadata: ObjectMeta,
    /// The part of the spec that the operator reads.
    pub spec: SlimPodSpec,
    /// The part of the status that the operator reads.
    pub status: SlimPodStatus,
}

impl Decode for SlimPod {
    type Of = Self;

    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error> {
        let metadata = parts.metadata().clone();
        Ok(Self { metadata, spec: parts.part("spec")?, status: parts.part("status")? })
    }
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
    #[serde(deserialize_with = "known_time")]
    last_transition_time: Option<Time>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimContainerStatus {
    name: String,
    state: SlimContainerState,
    resources: SlimRequirements,
    allocated_resources: BTreeMap<String, Quantity>,
}

impl SlimPodStatus {
    /// The status of a pod in which a container may run.
    fn running() -> Self {
        let state =
            SlimContainerState { running: Some(SlimRunning::default()), ..SlimContainerState::default() };
        let container = SlimContainerStatus { state, ..SlimContainerStatus::default() };
        Self { phase: "Running".into(), container_statuses: vec![container], ..Self::default() }
    }
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
    #[serde(deserialize_with = "known_time")]
    started_at: Option<Time>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct SlimTerminated {
    exit_code: i32,
    reason: Option<String>,
    message: Option<String>,
    #[serde(deserialize_with = "known_time")]
    started_at: Option<Time>,
    #[serde(deserialize_with = "known_time")]
    finished_at: Option<Time>,
}

/// The part of a pod that is kept as long as the pod is there.
#[derive(Clone, Debug)]
pub enum KeptPod {
    /// A pod of a proc.
    Ours(Arc<PodFacts>),
    /// A backfill pod.
    Backfill(Box<backfill::Facts>),
    /// A pod that is not the pool's. These are many.
    Other(PodUid),
}

impl SlimPod {
    /// Whether the pod's phase is a last one.
    pub(crate) fn has_ended(&self) -> bool {
        is_terminal(self)
    }
}

impl Watched for SlimPod {
    type Object = Self;
    /// `None` for a pod without uid.
    type Kept = Option<KeptPod>;
    const KIND: Kind = Kind::of(&("Pod", "pods"));
    const STAGE: Stage = Stage::Pods;

    fn api(client: Client) -> Api<Item<Self>> {
        Api::all(client)
    }

    fn keep(pod: &Self, before: Option<&Self::Kept>) -> Self::Kept {
        let uid: PodUid = pod.metadata.uid.as_deref()?.into();
        let known = before.and_then(Option::as_ref).and_then(KeptPod::marks);
        Some(match known.or_else(|| PodMarks::on(pod)).and_then(|marks| of_the_pool(pod, &uid, marks)) {
            Some(PodView::Ours(facts)) => KeptPod::Ours(facts),
            Some(PodView::Backfill(facts)) => KeptPod::Backfill(Box::new(facts)),
            _ => KeptPod::Other(uid),
        })
    }

    fn share(kept: &mut Self::Kept, near: &Self::Kept) {
        if let (Some(KeptPod::Ours(facts)), Some(KeptPod::Ours(near))) = (kept, near) {
            let facts = Arc::make_mut(facts);
            keep_once(&mut facts.pod.namespace, &near.pod.namespace);
            keep_once(&mut facts.job, &near.job);
        }
    }

    /// A pod of the pool that a new leader cannot decode may run: the pod counts as one that lives and of which no more is
    /// known, on the machine of the slot that the operator wrote on the pod.
    fn taken_for(metadata: ObjectMeta) -> Option<Self> {
        let slot = metadata.annotations.as_ref().and_then(|all| SlotName::parse(all.get(labels::SLOT)?).ok());
        let node_name = slot.map(|slot| slot.machine.as_str().to_owned());
        let pod = Self { metadata, spec: SlimPodSpec::on(node_name), status: SlimPodStatus::running() };
        PodMarks::on(&pod).is_some().then_some(pod)
    }

    fn there(pod: Self, kept: &Self::Kept) -> Vec<News> {
        match kept.clone() {
            Some(KeptPod::Ours(facts)) => vec![News::Pod(facts)],
            Some(KeptPod::Backfill(facts)) => told(Event::Backfill(*facts)),
            Some(KeptPod::Other(uid)) => told(match of_others(&pod, uid) {
                PodView::Foreign(pod, machine, requests) => Event::ForeignPod { pod, machine, requests },
                PodView::Neither(uid) => Event::ForeignPodGone(uid),
                // A pod that was kept as another's is not the pool's.
                PodView::Ours(_) | PodView::Backfill(_) => return Vec::new(),
            }),
            None => Vec::new(),
        }
    }

    fn gone(_: &Names, kept: Self::Kept) -> Vec<News> {
        told(kept.map(|pod| match pod {
            KeptPod::Ours(facts) => Event::PodGone(Arc::unwrap_or_clone(facts)),
            KeptPod::Backfill(facts) => Event::BackfillGone(facts.machine, facts.pod.uid),
            KeptPod::Other(uid) => Event::ForeignPodGone(uid),
        }))
    }
}

/// A pod as the pool sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum PodView {
    /// A pod of a proc.
    Ours(Arc<PodFacts>),
    /// A backfill pod.
    Backfill(backfill::Facts),
    /// A pod that is not the pool's, its node, and what it takes from the node.
    Foreign(PodUid, MachineName, Capacity),
    /// A pod that is not the pool's and takes nothing: it is on no node, or has ended.
    Neither(PodUid),
}

/// Reads a pod for the pool; `None` if the pod has no uid.
pub fn view(pod: &SlimPod) -> Option<PodView> {
    let uid: PodUid = pod.metadata.uid.as_deref()?.into();
    let known = PodMarks::on(pod).and_then(|marks| of_the_pool(pod, &uid, marks));
    Some(known.unwrap_or_else(|| of_others(pod, uid)))
}

/// The node that a pod is on.
fn machine(pod: &SlimPod) -> Option<MachineName> {
    pod.spec.node_name.as_deref().filter(|name| !name.is_empty()).map(MachineName::from)
}

/// A pod that bears the pool's marks; none if it is a backfill pod on no node.
fn of_the_pool(pod: &SlimPod, uid: &PodUid, marks: PodMarks) -> Option<PodView> {
    match marks {
        PodMarks::Proc { job, proc, claim, made } => {
            Some(PodView::Ours(Arc::new(ours(pod, uid, (job, proc), (claim, made)))))
        }
        PodMarks::Backfill { slot, mark } => {
            Some(PodView::Backfill(backfill_pod(pod, uid, &machine(pod)?, (slot, mark))))
        }
    }
}

/// Returns the resources that a pod outside the pool holds of its node. The kubelet may be resizing containers of the pod.
fn held(pod: &SlimPod) -> Capacity {
    let status = &pod.status;
    let infeasible = status
        .conditions
        .iter()
        .any(|said| said.type_ == "PodResizePending" && said.reason.as_deref() == Some("Infeasible"));
    pod.spec.requests_while_resized(infeasible, |name| {
        let all = status.container_statuses.iter().chain(&status.init_container_statuses);
        let container = all.into_iter().find(|container| container.name == name)?;
        convert::applied(&container.resources, &container.allocated_resources)
    })
}

fn of_others(pod: &SlimPod, uid: PodUid) -> PodView {
    match machine(pod) {
        Some(machine) if !is_terminal(pod) => PodView::Foreign(uid, machine, held(pod)),
        _ => PodView::Neither(uid),
    }
}

fn ours(pod: &SlimPod, uid: &PodUid, (job, proc): (JobUid, u32), (claim, made): (ClaimId, Made)) -> PodFacts {
    let asked = first_asked(pod, made.asked);
    let ending = ending(pod, asked);
    let told = ending.as_ref().is_some_and(|ending| ending.told);
    let (end, held) = ending.map_or((None, None), |ending| (Some(ending.end), ending.hold));
    PodFacts {
        pod: PodRef {
            namespace: pod.namespace().unwrap_or_default().into(),
            name: pod.name_any().into(),
            uid: uid.clone(),
        },
        machine: machine(pod),
        job,
        proc,
        claim,
        running: matches!(pod.status.phase.as_str(), "Running" | "Succeeded"),
        created: pod.metadata.creation_timestamp.as_ref().map(convert::time),
        started: started(pod),
        finished: finished(pod),
        remains: remains(pod),
        end,
        told,
        asked,
        hold: hold(pod).or(held).map(Box::new),
        obstacle: obstacle(pod).map(Arc::new),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        grace: grace(pod).map(Into::into),
        own_grace: Duration::from_secs(pod.spec.grace_period()).into(),
        forced: forced(pod),
        disrupted: disrupted(pod).is_some(),
        suspended: pod.annotations().get(labels::SUSPEND).is_some_and(|says| says == "true"),
        lease: made.lease,
        run: made.run,
        size: made.size,
        tracked: is_tracked(pod),
        requests: pod.spec.requests(),
    }
}

fn backfill_pod(
    pod: &SlimPod,
    uid: &PodUid,
    machine: &MachineName,
    (slot, mark): (Option<SlotName>, Arc<str>),
) -> backfill::Facts {
    let gone =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    let phase = if is_terminal(pod) || gone {
        backfill::Phase::Over
    } else if pod.status.phase == "Running" {
        backfill::Phase::Runs
    } else {
        backfill::Phase::Waits
    };
    backfill::Facts {
        pod: PodRef {
            namespace: pod.namespace().unwrap_or_default().into(),
            name: pod.name_any().into(),
            uid: uid.clone(),
        },
        machine: machine.clone(),
        slot: slot.filter(|slot| slot.machine == *machine && slot.dynamic.is_none()).map(|slot| slot.slot),
        mark,
        phase,
        started: started(pod),
        deletion: Deletion {
            deleting: pod.metadata.deletion_timestamp.is_some(),
            grace: grace(pod),
            own_grace: Duration::from_secs(pod.spec.grace_period()),
        },
        // Every pod has a container: the spec of a pod without one stands for what could not be decoded.
        requests: (!pod.spec.containers.is_empty()).then(|| pod.spec.requests()),
    }
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
    known(running.or_else(|| state.terminated.as_ref()?.started_at.as_ref()))
}

/// When the main container ended, if it did.
pub fn finished(pod: &SlimPod) -> Option<model::pool::Time> {
    known(main_container(pod)?.state.terminated.as_ref()?.finished_at.as_ref())
}

/// A time of a container. A runtime that does not know the time reports 1970: of a container that was created and did not start.
fn known(time: Option<&Time>) -> Option<model::pool::Time> {
    time.map(convert::time).filter(|time| time.millis() > 0)
}

/// The longest grace period of a pod's deletions, as far as the pod shows them. If somebody shortens a grace period,
/// the API server forgets the longer one. So the operator writes the longer one on the pod before it shortens it.
fn grace(pod: &SlimPod) -> Option<Duration> {
    pod.metadata.deletion_timestamp.as_ref()?;
    let written = pod.annotations().get(labels::GRANTED_SECONDS).and_then(|seconds| seconds.parse().ok());
    let shown = pod.metadata.deletion_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Some(Duration::from_secs(shown.max(written).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
