//! The view of a pod that a kubelet works with: what it needs from the API object, parsed once.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus};

use super::devices::Assigned;
use super::placement::Placement;
use super::resources::{Resources, pod_requests};
use super::script::{DEVICES, Script};
use api::labels;

/// The grace period of a pod whose spec names none.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The identity of a pod. A later pod may have the same name, but never the same uid.
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
    /// No container has started yet. A pod without a phase counts as Pending.
    Pending,
    /// At least one container has started.
    Running,
    /// All containers exited with 0.
    Succeeded,
    /// At least one container failed, or the kubelet rejected the pod.
    Failed,
}

impl Phase {
    /// Parses `status.phase`. An unknown phase counts as Pending.
    pub fn parse(text: &str) -> Self {
        match text {
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Pending,
        }
    }

    /// The phase as the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether the pod has ended. A pod that has ended takes no resources.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A container's name and image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The container's name.
    pub container: String,
    /// The container's image.
    pub image: String,
}

/// The end of a container that an earlier kubelet reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenExit {
    /// When the container started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub at: Timestamp,
    /// Its exit code.
    pub code: i32,
}

/// One pod as the kubelet sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PodView {
    /// The pod's identity.
    pub key: PodKey,
    /// `spec.nodeName`; empty while the pod is not bound.
    pub node: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `status.phase`.
    pub phase: Phase,
    /// The grace period, if the pod is being deleted.
    pub deletion: Option<Duration>,
    /// `spec.terminationGracePeriodSeconds`.
    pub own_grace: Duration,
    /// The requests of the pod.
    pub requests: Resources,
    /// The demands of the pod on the node's labels and taints.
    pub(super) placement: Placement,
    /// The containers.
    pub containers: Vec<Image>,
    /// The init containers that are no sidecars. Hollow init containers end at once.
    pub init_containers: Vec<Image>,
    /// The native sidecars: init containers with `restartPolicy: Always`, which run beside the others.
    pub sidecars: Vec<Image>,
    /// The script of the containers.
    pub script: Script,
    /// Whether the pod belongs to the pool, as its labels say.
    pub pooled: bool,
    /// Whether an annotation asks the node's agent to suspend the pod.
    pub suspend: bool,
    /// Whether an annotation asks the node's agent to kill the pod.
    pub kill: bool,
    /// The lease of the pod's claim. The node's agent ends the pod once it could not renew its own Lease for so long.
    pub lease: Option<Duration>,
    /// Why the kubelet cannot run the pod: an annotation or a quantity that cannot be read.
    pub problem: Option<String>,
    /// `status.startTime`: when a kubelet first handled the pod.
    pub start_time: Option<Timestamp>,
    /// When the containers started, if the status says that they run.
    pub running_since: Option<Timestamp>,
    /// How the main container ended, if the status says so.
    pub exited: Option<SeenExit>,
    /// When the condition `PodScheduled` became true.
    pub scheduled_at: Option<Timestamp>,
    /// The devices that a kubelet assigned to the pod earlier.
    pub(super) devices: Assigned,
}

impl PodView {
    /// Reads a pod. Returns `None` for a pod without a name, uid or spec, which no API server sends.
    pub fn from_pod(pod: &Pod) -> Option<Self> {
        let (metadata, spec) = (&pod.metadata, pod.spec.as_ref()?);
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let ends = spec.restart_policy.as_deref() == Some("Never");
        let script = Script::parse(&annotations, ends);
        let requests = pod_requests(spec);
        let inits = spec.init_containers.as_deref().unwrap_or_default();
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
            own_grace: spec
                .termination_grace_period_seconds
                .map_or(DEFAULT_GRACE, |seconds| grace(Some(seconds))),
            containers: spec.containers.iter().map(image).collect(),
            init_containers: inits.iter().filter(|c| !is_sidecar(c)).map(image).collect(),
            sidecars: inits.iter().filter(|c| is_sidecar(c)).map(image).collect(),
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
            exited: exited(spec, &status),
            scheduled_at: scheduled.and_then(|c| c.last_transition_time.as_ref()).map(|time| time.0),
            devices: annotations
                .get(DEVICES)
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
        })
    }
}

/// Namespace, name and uid of a pod; `None` if it has no name or no uid.
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

fn image(container: &Container) -> Image {
    Image { container: container.name.clone(), image: container.image.clone().unwrap_or_default() }
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// How the main container ended, if the status says so.
fn exited(spec: &PodSpec, status: &PodStatus) -> Option<SeenExit> {
    let main = spec.containers.first()?;
    let found = status.container_statuses.iter().flatten().find(|found| found.name == main.name)?;
    let terminated = found.state.as_ref()?.terminated.as_ref()?;
    let started = terminated.started_at.as_ref().map(|time| time.0);
    Some(SeenExit { started, at: terminated.finished_at.as_ref()?.0, code: terminated.exit_code })
}
