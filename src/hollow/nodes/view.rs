//! What a kubelet needs to know of a pod, taken from the API object once.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::devices::Assigned;
use super::placement::Placement;
use super::resources::{Resources, pod_requests};
use super::script::{DEVICES, Script};
use api::labels;

/// Which pod, for ever: names come back, uids do not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl std::fmt::Display for PodKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Accepted, no container started yet (also when the API object has no phase).
    Pending,
    /// At least one container started.
    Running,
    /// All containers exited with 0.
    Succeeded,
    /// At least one container failed, or the kubelet refused the pod.
    Failed,
}

impl Phase {
    /// Reads `status.phase`; what is not known counts as Pending.
    pub fn parse(text: &str) -> Self {
        match text {
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Pending,
        }
    }

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether nothing more can happen to the containers: such a pod takes no resources.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A container's name and image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The container.
    pub container: String,
    /// Its image.
    pub image: String,
}

/// One pod as the kubelet sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PodView {
    /// Which pod.
    pub key: PodKey,
    /// `spec.nodeName`, empty when unbound.
    pub node: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `status.phase`.
    pub phase: Phase,
    /// The grace period of a pod that is being deleted.
    pub deletion: Option<Duration>,
    /// What the pod takes from the node.
    pub requests: Resources,
    /// What the pod wants of the node.
    pub placement: Placement,
    /// The containers.
    pub containers: Vec<Image>,
    /// The init containers; hollow ones are done at once.
    pub init_containers: Vec<Image>,
    /// What the containers will do.
    pub script: Script,
    /// It runs for the pool.
    pub pooled: bool,
    /// The node's agent is to hold its containers still.
    pub suspend: bool,
    /// The node's agent is to kill its containers.
    pub kill: bool,
    /// The lease of its claim: the node's agent ends it once it could not renew its own Lease for so long.
    pub lease: Option<Duration>,
    /// Why the pod cannot run at all: an annotation or a quantity that nobody can read.
    pub problem: Option<String>,
    /// `status.startTime`: when a kubelet first took the pod.
    pub start_time: Option<Timestamp>,
    /// When the containers started, if the status says they run.
    pub running_since: Option<Timestamp>,
    /// When the `PodScheduled` condition became true.
    pub scheduled_at: Option<Timestamp>,
    /// Devices that a kubelet gave the pod earlier.
    pub devices: Assigned,
}

impl PodView {
    /// Takes what matters from a pod. `None` without a uid or a spec: no API server sends such a pod.
    pub fn from_pod(pod: &Pod) -> Option<Self> {
        let (metadata, spec) = (&pod.metadata, pod.spec.as_ref()?);
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let ends = spec.restart_policy.as_deref() == Some("Never");
        let script = Script::parse(&annotations, ends);
        let requests = pod_requests(spec);
        let problem = script.as_ref().err().map(ToString::to_string);
        let problem = problem.or_else(|| requests.as_ref().err().map(ToString::to_string));
        let asked = |name: &str| annotations.get(name).is_some_and(|value| value == "true");
        let status = pod.status.clone().unwrap_or_default();
        let started = |s: &k8s_openapi::api::core::v1::ContainerStatus| {
            s.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|time| time.0)
        };
        let scheduled =
            status.conditions.iter().flatten().find(|c| c.type_ == "PodScheduled" && c.status == "True");
        Some(Self {
            key: key_of(pod)?,
            node: spec.node_name.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            phase: Phase::parse(status.phase.as_deref().unwrap_or_default()),
            deletion: metadata
                .deletion_timestamp
                .as_ref()
                .map(|_| grace(metadata.deletion_grace_period_seconds)),
            requests: requests.unwrap_or_default(),
            placement: Placement::of(spec),
            containers: images(&spec.containers),
            init_containers: images(spec.init_containers.as_deref().unwrap_or_default()),
            script: script.unwrap_or_default(),
            pooled: metadata.labels.iter().flatten().any(|(name, _)| name == labels::JOB_UID),
            suspend: asked(labels::SUSPEND),
            kill: asked(labels::KILL),
            lease: annotations
                .get(labels::LEASE_SECONDS)
                .and_then(|seconds| seconds.parse().ok())
                .map(Duration::from_secs),
            problem,
            start_time: status.start_time.as_ref().map(|time| time.0),
            running_since: status.container_statuses.iter().flatten().filter_map(started).min(),
            scheduled_at: scheduled.and_then(|c| c.last_transition_time.as_ref()).map(|time| time.0),
            devices: annotations
                .get(DEVICES)
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
        })
    }
}

/// Namespace, name and uid of a pod that has all three.
pub fn key_of(pod: &Pod) -> Option<PodKey> {
    let metadata = &pod.metadata;
    Some(PodKey {
        namespace: metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        name: metadata.name.clone()?,
        uid: metadata.uid.clone()?,
    })
}

fn grace(seconds: Option<i64>) -> Duration {
    Duration::from_secs(seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0))
}

fn images(containers: &[Container]) -> Vec<Image> {
    let image =
        |c: &Container| Image { container: c.name.clone(), image: c.image.clone().unwrap_or_default() };
    containers.iter().map(image).collect()
}
