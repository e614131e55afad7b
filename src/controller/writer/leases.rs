//! Leases of agents: read where a watch may be behind.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::calls::{Failure, attempt};
use super::{Context, Reply};
use crate::kinds::lease::{NAMESPACE, renewal};
use answers::Item;
use api::labels::AGENT_LEASE_PREFIX;
use model::pool::{MachineName, Outcome, Retry};

/// Reads the Lease of a machine's agent. The API server answers the read of one object without a version from its storage
/// and not from its cache: the read misses nothing that took effect before.
pub(super) async fn read(context: &Context, machine: MachineName) -> Vec<Reply> {
    let leases: Api<Item<Lease>> = Api::namespaced(context.tools.client.clone(), NAMESPACE);
    let name = format!("{AGENT_LEASE_PREFIX}{machine}");
    let outcome = match attempt(context, || leases.get(&name)).await {
        Ok(lease) => Outcome::AgentLeaseRead { found: Some(renewal(lease.metadata())), machine },
        Err(Failure::NotFound) => Outcome::AgentLeaseRead { found: None, machine },
        Err(failure) => {
            tracing::warn!(%machine, error = %failure, "the Lease of an agent was not read");
            Outcome::Failed(Retry::AgentLease(machine))
        }
    };
    vec![Reply::Outcome(outcome)]
}
