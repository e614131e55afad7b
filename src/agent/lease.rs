//! The agent's own Lease, by which the operator knows that the agent lives.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use api::labels::{AGENT_LEASE_PREFIX, FENCES};

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

/// Renews the Lease of the agent of a node, with or without the promise; creates the Lease if there is none.
///
/// # Errors
/// When the API server refuses the renewal, or does not answer.
pub(crate) async fn renew(
    client: Client,
    node: String,
    promises: bool,
    now: jiff::Timestamp,
) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let name = format!("{AGENT_LEASE_PREFIX}{node}");
    let params = PatchParams::apply(MANAGER).force();
    leases.patch(&name, &params, &Patch::Apply(body(&name, &node, promises, now))).await.map(drop)
}

/// The Lease as the agent applies it. The API server takes an annotation away that the agent applied before and applies no
/// longer.
fn body(name: &str, node: &str, promises: bool, now: jiff::Timestamp) -> Value {
    let annotations = if promises { json!({FENCES: "true"}) } else { json!({}) };
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": LASTS.as_secs(), "renewTime": MicroTime(now)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_is_an_annotation_of_the_renewal() {
        for promises in [true, false] {
            let body = body("n", "node", promises, jiff::Timestamp::UNIX_EPOCH);
            let said =
                body.pointer("/metadata/annotations").and_then(|all| all.get("slotwright.dev/fences-claims"));
            assert_eq!(said, promises.then(|| json!("true")).as_ref());
        }
    }
}
