//! Leases in [`NAMESPACE`], by which kubelets and agents say that they live. The mark of who owns the pool is there too, and
//! says nothing of a machine.
//! An agent has a Lease of its own, `slotwright-agent-NODE`, because the node's Lease says only that the kubelet lives.
//! If an agent died and the operator did not notice, the agent's last report would be all that is known: the machine
//! would seem more and more idle while its owner works. The agent's Lease is in the namespace of the nodes' Leases, which
//! the operator watches anyway, and not in the operator's namespace: whoever may write Leases there could take the
//! leader's.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt};

use super::sighting::told;
use super::{News, Stage, Watched};
use crate::cache::Kind;
use api::labels::{AGENT_LEASE_PREFIX, FENCES, POOL_LEASE};
use model::pool::{Event, MachineName, Renewal};

/// Where kubelets and agents renew the Leases of their nodes.
pub const NAMESPACE: &str = "kube-node-lease";

impl Watched for Lease {
    type Object = Self;
    const KIND: Kind = Kind { name: "Lease", plural: "leases" };
    const STAGE: Stage = Stage::Machines;
    /// A renewal says that a kubelet or an agent lives. As long as no Lease has been seen, the pool concludes nothing
    /// from its absence; a cluster may have none.
    const AWAITED: bool = false;

    fn api(client: Client) -> Api<Self> {
        Api::namespaced(client, NAMESPACE)
    }

    fn there(lease: Self) -> Vec<News> {
        if is_mark(&lease) { Vec::new() } else { told(heartbeat(&lease)) }
    }

    fn gone(lease: Self) -> Vec<News> {
        if is_mark(&lease) { Vec::new() } else { told(heartbeats_ended(&lease)) }
    }
}

/// The duration, in seconds, of a Lease that does not give one: the default of kubelets.
const USUAL: u64 = 40;

/// The event of a Lease that was made or renewed.
fn heartbeat(lease: &Lease) -> Event {
    let ttl = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let ttl = Duration::from_secs(ttl.and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(USUAL));
    match agent_of(lease) {
        Some(machine) => Event::AgentHeartbeat { machine, ttl, renewal: renewal(lease) },
        None => Event::Heartbeat { machine: lease.name_any().into(), ttl },
    }
}

/// The renewal of an agent's Lease: its version, and whether the agent promises to fence.
pub fn renewal(lease: &Lease) -> Renewal {
    Renewal {
        version: lease.resource_version().unwrap_or_default().into(),
        fences: lease.annotations().get(FENCES).is_some_and(|said| said == "true"),
    }
}

/// The event of a Lease that was deleted.
fn heartbeats_ended(lease: &Lease) -> Event {
    match agent_of(lease) {
        Some(machine) => Event::AgentHeartbeatsEnded(machine),
        None => Event::HeartbeatsEnded(lease.name_any().into()),
    }
}

/// Whether a Lease is the mark of who owns the pool, and not of a node that has that name: a kubelet's Lease names the node
/// as its holder.
fn is_mark(lease: &Lease) -> bool {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    lease.name_any() == POOL_LEASE && holder != Some(POOL_LEASE)
}

/// The machine whose agent renews the Lease; none if a kubelet does. A node's name may begin as an agent's Lease does;
/// but a kubelet's Lease names the node itself as its holder.
fn agent_of(lease: &Lease) -> Option<MachineName> {
    let name = lease.name_any();
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    let machine = name.strip_prefix(AGENT_LEASE_PREFIX).filter(|_| holder != Some(&name))?;
    Some(machine.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(name: &str, holder: Option<&str>, seconds: Option<i32>) -> (String, String) {
        let lease = json!({"metadata": {"name": name},
                           "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}});
        let lease = serde_json::from_value(lease).unwrap();
        (format!("{:?}", heartbeat(&lease)), format!("{:?}", heartbeats_ended(&lease)))
    }

    #[test]
    fn a_lease_is_the_kubelets_or_the_agents() {
        let kubelet =
            (r#"Heartbeat { machine: "n1", ttl: 40s }"#.to_owned(), r#"HeartbeatsEnded("n1")"#.to_owned());
        assert_eq!(told("n1", Some("n1"), None), kubelet);
        assert_eq!(told("n1", None, Some(-1)), kubelet);
        let agent = (
            r#"AgentHeartbeat { machine: "n1", ttl: 60s, renewal: Renewal { version: "", fences: false } }"#
                .to_owned(),
            r#"AgentHeartbeatsEnded("n1")"#.to_owned(),
        );
        assert_eq!(told("slotwright-agent-n1", Some("slotwright-agent-x7b2"), Some(60)), agent);
        assert_eq!(told("slotwright-agent-n1", None, Some(60)), agent);
        let odd = told("slotwright-agent-n1", Some("slotwright-agent-n1"), Some(40)).0;
        assert_eq!(odd, r#"Heartbeat { machine: "slotwright-agent-n1", ttl: 40s }"#);
    }

    #[test]
    fn the_mark_is_no_machine() {
        for (holder, told) in
            [(Some("slotwright-system/slotwright-operator"), 0), (None, 0), (Some(POOL_LEASE), 1)]
        {
            let lease = json!({"metadata": {"name": POOL_LEASE}, "spec": {"holderIdentity": holder}});
            let lease: Lease = serde_json::from_value(lease).unwrap();
            assert_eq!(Lease::there(lease.clone()).len(), told);
            assert_eq!(Lease::gone(lease).len(), told);
        }
    }

    #[test]
    fn an_agents_promise_is_part_of_its_lease() {
        for (said, fences) in [(Some("true"), true), (Some("false"), false), (None, false)] {
            let lease = json!({"metadata": {"name": "slotwright-agent-n1", "resourceVersion": "7",
                "annotations": said.map(|said| json!({FENCES: said}))}});
            let lease: Lease = serde_json::from_value(lease).unwrap();
            assert_eq!(renewal(&lease), Renewal { version: "7".into(), fences }, "{said:?}");
        }
    }
}
