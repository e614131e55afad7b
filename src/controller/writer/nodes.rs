//! Nodes: read where a watch may be behind.

use kube::Api;

use super::Context;
use crate::kinds::node::SlimNode;
use answers::Item;
use model::pool::{MachineName, OUT_OF_SERVICE};

/// Whether a node is gone, or an admin has tainted the node as out of service. The API server answers the read of one
/// object without a version from its storage and not from its cache. Kubernetes' own pod garbage collector reads the node
/// in the same way before it deletes the pods of a node that its watch says is gone.
pub(super) async fn is_off(context: &Context, machine: &MachineName) -> Result<bool, kube::Error> {
    let nodes: Api<Item<SlimNode>> = Api::all(context.tools.client.clone());
    let taints = match nodes.get_opt(machine.as_str()).await? {
        // A node that cannot be decoded is there, and nobody knows that it is off.
        Some(node) => node.object().map(|node| node.spec.taints).unwrap_or_default(),
        None => return Ok(true),
    };
    Ok(taints.iter().any(|taint| taint.key == OUT_OF_SERVICE))
}
