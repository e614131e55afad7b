//! The agent's own Lease, by which the operator knows that the agent lives.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use answers::Item;
use api::labels::{AGENT_LEASE_PREFIX, FENCES};

/// How long after a renewal the operator takes the agent for living.
pub(crate) const LASTS: Duration = Duration::from_secs(40);
/// How often the agent renews the Lease, by and large.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(10);
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
    owner: Owner,
) -> Result<Owner, Error> {
    let leases: Api<Item<Lease>> = Api::namespaced(client.clone(), NAMESPACE);
    let name = format!("{AGENT_LEASE_PREFIX}{node}");
    // An apply, though the agent writes often and a merge patch would cost the API server less: a merge patch creates no Lease. With an
    // apply a renewal is one call, which has one time limit and takes effect once or not at all, whether the Lease is there or not.
    let params = PatchParams::apply(MANAGER).force();
    let owner = owner.known(client, &node).await;
    let body = body(&name, &node, promises, now, owner.node.as_deref());
    let lease = leases.patch(&name, &params, &Patch::Apply(body)).await?;
    Ok(owner.after(lease.metadata().uid.as_deref()))
}

/// The Node that owns the Lease, so that the Lease goes when the node leaves the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The uid of the Node, once it is known.
    node: Option<Arc<str>>,
    /// The uid of the Lease that was renewed last.
    lease: Option<Arc<str>>,
}

impl Owner {
    /// Reads the Node, unless its uid is known. While the Node cannot be read, nobody owns the Lease.
    async fn known(mut self, client: Client, node: &str) -> Self {
        if self.node.is_none() {
            let nodes: Api<Item<Node>> = Api::all(client);
            let found = nodes.get(node).await.inspect_err(
                |error| tracing::warn!(error = %answers::chain(error), "the agent's Node cannot be read"),
            );
            self.node = found.ok().and_then(|node| Some(node.metadata().uid.as_deref()?.into()));
        }
        self
    }

    /// The knowledge after a renewal of this Lease. If another Lease was renewed before, somebody has deleted that: perhaps its Node
    /// was deleted and made anew. Then the Node is read again.
    fn after(self, lease: Option<&str>) -> Self {
        let is_another = self.lease.is_some() && self.lease.as_deref() != lease;
        Self { node: self.node.filter(|_| !is_another), lease: lease.map(Arc::from) }
    }
}

/// The Lease as the agent applies it. The API server takes an annotation away that the agent applied before and applies no
/// longer.
fn body(name: &str, node: &str, promises: bool, now: jiff::Timestamp, owner: Option<&str>) -> Value {
    let annotations = if promises { json!({FENCES: "true"}) } else { json!({}) };
    let owners: Vec<Value> = owner
        .iter()
        .map(|uid| json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}))
        .collect();
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "annotations": annotations, "ownerReferences": owners},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": LASTS.as_secs(), "renewTime": MicroTime(now)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_is_an_annotation_of_the_renewal() {
        for promises in [true, false] {
            let body = body("n", "node", promises, jiff::Timestamp::UNIX_EPOCH, None);
            let said =
                body.pointer("/metadata/annotations").and_then(|all| all.get("slotwright.dev/fences-claims"));
            assert_eq!(said, promises.then(|| json!("true")).as_ref());
        }
    }

    #[test]
    fn the_lease_goes_with_its_node() {
        let body = body("n", "node", false, jiff::Timestamp::UNIX_EPOCH, Some("u1"));
        let expected = json!([{"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "u1"}]);
        assert_eq!(body.pointer("/metadata/ownerReferences"), Some(&expected));
    }

    #[test]
    fn a_node_that_was_made_anew_is_read_again() {
        let owner = Owner { node: Some("u1".into()), lease: None };
        let renewed = owner.after(Some("l1"));
        assert_eq!(renewed, Owner { node: Some("u1".into()), lease: Some("l1".into()) });
        assert_eq!(renewed.clone().after(Some("l1")), renewed);
        assert_eq!(renewed.after(Some("l2")), Owner { node: None, lease: Some("l2".into()) });
    }
}
