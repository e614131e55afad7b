//! The calls on Node objects, Leases and NodeReports: what a kubelet and an agent write about themselves, and what
//! the node lifecycle controller would write.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::shape::{NodeShape, ready_condition};
use api::labels::{AGENT_LEASE_PREFIX, FENCES};
use api::{NodeReport, NodeReportSpec};

/// The namespace of the kubelets' Leases.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The taint of a node whose kubelet says that it is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint of a node whose kubelet has not renewed its Lease for too long.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The taint of a cordoned node.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a change of taints is tried if somebody else writes the node at the same time.
const TAINT_ATTEMPTS: usize = 10;

/// An error of a call on a hollow node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a call about a node.
    #[error("node {node}: {action} failed: {source}")]
    Api {
        /// The node.
        node: String,
        /// The action that failed.
        action: &'static str,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// A call about a node took longer than half a minute, or met a conflict every time that it was tried.
    #[error("node {node}: {action} got no answer in time: check that the API server is up")]
    Timeout {
        /// The node.
        node: String,
        /// The action that failed.
        action: &'static str,
    },
    /// No hollow node of this set has that name.
    #[error("node {0}: no hollow node of this set has that name")]
    Unknown(String),
    /// Two shapes have the same name.
    #[error("node {0}: there is a hollow node of that name already; give each shape a name of its own")]
    Duplicate(String),
    /// The nodes were shut down.
    #[error("the hollow nodes are shut down")]
    Down,
}

/// The readiness that a node's conditions and taints show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Ready is True.
    Ready,
    /// Ready is False, as the kubelet reports it.
    NotReady,
    /// Ready is Unknown, because the node's lease ran out.
    Unknown,
}

/// Calls on nodes and leases.
#[derive(Clone)]
pub(super) struct Registry {
    nodes: Api<Node>,
    leases: Api<Lease>,
    namespaces: Api<Namespace>,
    reports: Api<NodeReport>,
    lease_seconds: i32,
}

impl Registry {
    pub(super) fn new(client: &Client, lease: Duration) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), LEASE_NAMESPACE),
            namespaces: Api::all(client.clone()),
            reports: Api::all(client.clone()),
            lease_seconds: i32::try_from(lease.as_secs()).unwrap_or(i32::MAX).max(1),
        }
    }

    /// Creates the namespace of the leases if it does not exist.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(LEASE_NAMESPACE.to_owned());
        let created = create(&self.namespaces, LEASE_NAMESPACE, "creating the namespace", &namespace).await;
        exists_is_fine(created).map(|_| ())
    }

    /// Registers the node, or updates the Node that an earlier kubelet registered; then renews its lease and removes
    /// the taints `not-ready` and `unreachable`. Other taints, a cordon, and labels that others set stay.
    pub(super) async fn register(
        &self,
        shape: &NodeShape,
        address: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let name = shape.name.as_str();
        let node = shape.node(address, now);
        let created = create(&self.nodes, name, "registering", &node).await;
        if exists_is_fine(created)?.is_none() {
            let labels = json!({"metadata": {"labels": shape.all_labels()}});
            merge(&self.nodes, name, "updating labels", &labels).await?;
            self.patch_status(name, &json!({"status": shape.status(address, now)})).await?;
        }
        self.renew(name, now).await?;
        self.set_taints(name, Readiness::Ready, now).await
    }

    /// Renews the kubelet's lease, or creates it.
    pub(super) async fn renew(&self, node: &str, now: Timestamp) -> Result<(), Error> {
        self.renew_lease(node, node, node, now).await
    }

    /// Renews the agent's lease, or creates it.
    pub(super) async fn renew_agent(&self, node: &str, now: Timestamp) -> Result<(), Error> {
        self.renew_lease(node, &agent_lease(node), AGENT, now).await
    }

    async fn renew_lease(&self, node: &str, name: &str, holder: &str, now: Timestamp) -> Result<(), Error> {
        let (action, params) = ("renewing the lease", PatchParams::default());
        let renewed = Patch::Merge(json!({
            "metadata": {"annotations": promise(holder)},
            "spec": {"holderIdentity": holder, "renewTime": MicroTime(now)},
        }));
        match call(node, action, self.leases.patch(name, &params, &renewed)).await {
            Err(error) if code(&error) == Some(404) => self.create_lease(node, name, holder, now).await,
            other => other.map(|_| ()),
        }
    }

    async fn create_lease(&self, node: &str, name: &str, holder: &str, now: Timestamp) -> Result<(), Error> {
        let owner = self.owner(node).await?;
        let metadata = json!({"name": name, "annotations": promise(holder), "ownerReferences": [owner]});
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": self.lease_seconds, "renewTime": MicroTime(now)});
        let lease: Lease =
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap_or_default();
        exists_is_fine(create(&self.leases, node, "creating the lease", &lease).await).map(|_| ())
    }

    /// The owner reference of an object that must be deleted with its node.
    async fn owner(&self, node: &str) -> Result<Value, Error> {
        let found = call(node, "reading", self.nodes.get(node)).await?;
        Ok(json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": found.metadata.uid}))
    }

    /// Patches the status of the node's report. Creates the report first if it does not exist.
    pub(super) async fn report(&self, node: &str, patch: &Value) -> Result<(), Error> {
        match self.patch_report(node, patch).await {
            Err(error) if code(&error) == Some(404) => {}
            other => return other,
        }
        let metadata = json!({"name": node, "ownerReferences": [self.owner(node).await?]});
        let mut report = NodeReport::new(node, NodeReportSpec::default());
        report.metadata = serde_json::from_value(metadata).unwrap_or_default();
        exists_is_fine(create(&self.reports, node, "making its NodeReport", &report).await)?;
        self.patch_report(node, patch).await
    }

    async fn patch_report(&self, node: &str, patch: &Value) -> Result<(), Error> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.reports.patch_status(node, &params, &patch);
        call(node, "reporting", patched).await.map(|_| ())
    }

    /// Writes the Ready condition; with `taints` also the taints that go with it.
    pub(super) async fn set_readiness(
        &self,
        name: &str,
        to: Readiness,
        taints: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        let condition = match to {
            Readiness::Ready => ready_condition(true, now),
            Readiness::NotReady => ready_condition(false, now),
            Readiness::Unknown => json!({
                "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.", "lastTransitionTime": Time(now),
            }),
        };
        self.patch_status(name, &json!({"status": {"conditions": [condition]}})).await?;
        if taints { self.set_taints(name, to, now).await } else { Ok(()) }
    }

    /// Sets `spec.unschedulable` and the taint that goes with it.
    pub(super) async fn cordon(&self, name: &str, unschedulable: bool) -> Result<(), Error> {
        self.change_taints(name, Some(unschedulable), |taints| {
            taints.retain(|taint| taint.key != UNSCHEDULABLE);
            if unschedulable {
                taints.push(taint(UNSCHEDULABLE, "NoSchedule", None));
            }
        })
        .await
    }

    /// Deletes leases, report and node.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let params = DeleteParams::default();
        let lease = agent_lease(name);
        missing_is_fine(call(name, "deleting its agent's lease", self.leases.delete(&lease, &params)).await)?;
        missing_is_fine(call(name, "deleting its NodeReport", self.reports.delete(name, &params)).await)?;
        missing_is_fine(call(name, "deleting the lease", self.leases.delete(name, &params)).await)?;
        missing_is_fine(call(name, "deleting", self.nodes.delete(name, &params)).await)
    }

    async fn patch_status(&self, name: &str, body: &Value) -> Result<(), Error> {
        let (params, patch) = (PatchParams::default(), Patch::Strategic(body));
        call(name, "updating the status", self.nodes.patch_status(name, &params, &patch)).await.map(|_| ())
    }

    async fn set_taints(&self, name: &str, to: Readiness, now: Timestamp) -> Result<(), Error> {
        let key = match to {
            Readiness::Ready => None,
            Readiness::NotReady => Some(NOT_READY),
            Readiness::Unknown => Some(UNREACHABLE),
        };
        self.change_taints(name, None, |taints| {
            taints.retain(|taint| taint.key != NOT_READY && taint.key != UNREACHABLE);
            let effects = [("NoSchedule", None), ("NoExecute", Some(now))];
            taints
                .extend(key.iter().flat_map(|key| effects.map(|(effect, added)| taint(key, effect, added))));
        })
        .await
    }

    /// Reads the node's taints, changes them, and writes them back. If somebody else wrote the node in between, this
    /// starts again, up to [`TAINT_ATTEMPTS`] times.
    async fn change_taints(
        &self,
        name: &str,
        unschedulable: Option<bool>,
        change: impl Fn(&mut Vec<Taint>),
    ) -> Result<(), Error> {
        for _ in 0..TAINT_ATTEMPTS {
            let node = call(name, "reading", self.nodes.get(name)).await?;
            let spec = node.spec.unwrap_or_default();
            let before = spec.taints.unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            if after == before
                && unschedulable.is_none_or(|wanted| spec.unschedulable.unwrap_or(false) == wanted)
            {
                return Ok(());
            }
            let mut body = json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": after},
            });
            if let (Some(wanted), Some(spec)) =
                (unschedulable, body.get_mut("spec").and_then(Value::as_object_mut))
            {
                spec.insert("unschedulable".to_owned(), if wanted { true.into() } else { Value::Null });
            }
            match merge(&self.nodes, name, "changing taints", &body).await {
                Err(error) if code(&error) == Some(409) => {}
                other => return other,
            }
        }
        Err(Error::Timeout { node: name.to_owned(), action: "changing taints" })
    }
}

/// The `holderIdentity` of the leases of hollow agents.
const AGENT: &str = "hollow-agent";

/// The annotations of a lease. An agent promises with its lease to end a pod once it could not renew the lease for
/// as long as the pod's claim allows; a kubelet promises nothing.
fn promise(holder: &str) -> Value {
    if holder == AGENT { json!({FENCES: "true"}) } else { json!({}) }
}

/// The name of an agent's lease.
fn agent_lease(node: &str) -> String {
    format!("{AGENT_LEASE_PREFIX}{node}")
}

fn taint(key: &str, effect: &str, added: Option<Timestamp>) -> Taint {
    Taint { key: key.to_owned(), value: None, effect: effect.to_owned(), time_added: added.map(Time) }
}

async fn create<K>(api: &Api<K>, node: &str, action: &'static str, object: &K) -> Result<K, Error>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let params = PostParams::default();
    call(node, action, api.create(&params, object)).await
}

/// Applies a JSON merge patch to the object that is named as the node.
async fn merge<K>(api: &Api<K>, node: &str, action: &'static str, body: &Value) -> Result<(), Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    let (params, patch) = (PatchParams::default(), Patch::Merge(body));
    call(node, action, api.patch(node, &params, &patch)).await.map(|_| ())
}

async fn call<T>(
    node: &str,
    action: &'static str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Api { node: node.to_owned(), action, source: Box::new(source) }),
        Err(_) => Err(Error::Timeout { node: node.to_owned(), action }),
    }
}

/// The HTTP status of an error answer; `None` if the API server did not answer.
fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        },
        _ => None,
    }
}

fn exists_is_fine<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(error) if code(&error) == Some(409) => Ok(None),
        other => other.map(Some),
    }
}

fn missing_is_fine<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if code(&error) == Some(404) => Ok(()),
        other => other.map(|_| ()),
    }
}
