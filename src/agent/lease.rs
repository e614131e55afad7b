//! The agent's own Lease, by which the operator knows that the agent lives.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use api::labels::AGENT_LEASE_PREFIX;

/// How long after a renewal the operator takes the agent for living.
const LASTS: Duration = Duration::from_secs(40);
/// How often the agent renews the Lease.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(10);
/// The pause after a renewal that failed.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The namespace of the Leases of nodes, and of their agents.
const NAMESPACE: &str = "kube-node-lease";
/// The field manager of the agent's objects.
const MANAGER: &str = "slotwright-agent";

/// Renews the Lease of the agent of a node; creates the Lease if there is none.
///
/// # Errors
/// When the API server refuses the renewal, or does not answer.
pub(crate) async fn renew(client: Client, node: String, now: jiff::Timestamp) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let name = format!("{AGENT_LEASE_PREFIX}{node}");
    let params = PatchParams::apply(MANAGER).force();
    leases.patch(&name, &params, &Patch::Apply(body(&name, &node, now))).await.map(drop)
}

fn body(name: &str, node: &str, now: jiff::Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": LASTS.as_secs(), "renewTime": MicroTime(now)},
    })
}
