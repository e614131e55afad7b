//! Leases in [`NAMESPACE`], by which kubelets and agents say that they live. The pool's Lease is there too, and
//! says nothing of a machine.
//! An agent has a Lease of its own, `slotwright-agent-NODE`, because the node's Lease says only that the kubelet lives.
//! If an agent died and the operator did not notice, the agent's last report would be all that is known: the machine
//! would seem more and more idle while its owner works. The agent's Lease is in the namespace of the nodes' Leases, which
//! the operator watches anyway, and not in the operator's namespace: whoever may write Leases there could take the
//! leader's.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

use super::sighting::told;
use super::{Names, News, Stage, Watched};
use crate::cache::Kind;
use answers::Item;
use api::labels::{AGENT_LEASE_PREFIX, FENCES, POOL_LEASE};
use model::pool::{Event, MachineName, Renewal};

/// Where kubelets and agents renew the Leases of their nodes.
pub const NAMESPACE: &str = "kube-node-lease";

impl Watched for Lease {
    type Object = Self;
    type Kept = Whose;
    const KIND: Kind = Kind::of(&("Lease", "leases"));
    const STAGE: Stage = Stage::Machines;
    /// A renewal says that a kubelet or an agent lives. As long as no Lease has been seen, the pool concludes nothing
    /// from its absence; a cluster may have none.
    const AWAITED: bool = false;

    fn api(client: Client) -> Api<Item<Self>> {
        Api::namespaced(client, NAMESPACE)
    }

    fn keep(lease: &Self, _: Option<&Self::Kept>) -> Self::Kept {
        whose(lease)
    }

    fn there(lease: Self, whose: &Whose) -> Vec<News> {
        told(heartbeat(&lease, whose))
    }

    fn gone(_: &Names, whose: Whose) -> Vec<News> {
        told(heartbeats_ended(whose))
    }
}

/// Whose a Lease is.
#[derive(Clone, Debug)]
pub enum Whose {
    /// The machine's kubelet renews it.
    Kubelet(MachineName),
    /// The machine's agent renews it.
    Agent(MachineName),
    /// The pool's Lease, which says who owns the pool.
    Owner,
}

/// The duration, in seconds, of a Lease that does not give one: the default of kubelets.
const USUAL: u64 = 40;

/// The event of a Lease that was made or renewed.
fn heartbeat(lease: &Lease, whose: &Whose) -> Option<Event> {
    let ttl = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let ttl = Duration::from_secs(ttl.and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(USUAL));
    match whose.clone() {
        Whose::Agent(machine) => {
            Some(Event::AgentHeartbeat { machine, ttl, renewal: renewal(&lease.metadata) })
        }
        Whose::Kubelet(machine) => Some(Event::Heartbeat { machine, ttl }),
        Whose::Owner => None,
    }
}

/// The renewal of an agent's Lease: its version, and whether the agent promises to fence.
pub fn renewal(lease: &ObjectMeta) -> Renewal {
    let annotations = lease.annotations.as_ref();
    Renewal {
        version: lease.resource_version.as_deref().unwrap_or_default().into(),
        fences: annotations.and_then(|all| all.get(FENCES)).is_some_and(|said| said == "true"),
    }
}

/// The event of a Lease that was deleted.
fn heartbeats_ended(whose: Whose) -> Option<Event> {
    match whose {
        Whose::Agent(machine) => Some(Event::AgentHeartbeatsEnded(machine)),
        Whose::Kubelet(machine) => Some(Event::HeartbeatsEnded(machine)),
        Whose::Owner => None,
    }
}

/// Finds out who renews a Lease. The name does not always tell: a node may have the name of the pool's Lease, or a name that
/// begins as the Lease of an agent does. But a kubelet's Lease has the name of the node as its holder, too.
fn whose(lease: &Lease) -> Whose {
    let name = lease.name_any();
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    match name.strip_prefix(AGENT_LEASE_PREFIX) {
        _ if holder == Some(&name) => Whose::Kubelet(name.into()),
        _ if name == POOL_LEASE => Whose::Owner,
        Some(machine) => Whose::Agent(machine.into()),
        None => Whose::Kubelet(name.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(name: &str, holder: Option<&str>, seconds: Option<i32>) -> (String, String) {
        let lease = json!({"metadata": {"name": name},
                           "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}});
        let lease = serde_json::from_value(lease).unwrap();
        let (there, gone) = (heartbeat(&lease, &whose(&lease)), heartbeats_ended(whose(&lease)));
        (format!("{:?}", there.unwrap()), format!("{:?}", gone.unwrap()))
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
            [(Some("slotwright-system/slotwright-operator"), false), (None, false), (Some(POOL_LEASE), true)]
        {
            let lease = json!({"metadata": {"name": POOL_LEASE}, "spec": {"holderIdentity": holder}});
            let lease: Lease = serde_json::from_value(lease).unwrap();
            assert_eq!(heartbeat(&lease, &whose(&lease)).is_some(), told);
            assert_eq!(heartbeats_ended(whose(&lease)).is_some(), told);
        }
    }

    #[test]
    fn an_agents_promise_is_part_of_its_lease() {
        for (said, fences) in [(Some("true"), true), (Some("false"), false), (None, false)] {
            let lease = json!({"metadata": {"name": "slotwright-agent-n1", "resourceVersion": "7",
                "annotations": said.map(|said| json!({FENCES: said}))}});
            let lease: Lease = serde_json::from_value(lease).unwrap();
            assert_eq!(renewal(&lease.metadata), Renewal { version: "7".into(), fences }, "{said:?}");
        }
    }
}
