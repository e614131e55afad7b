//! Slot objects, read back by a new leader.

use std::sync::Arc;
use std::time::Duration;

use super::{kube_time, time};
use api;
use model::pool::limits::Wants;
use model::pool::{Claim, JobKey, Recorded, Resources, SlotFacts, SlotName, Time};

/// What the pool knows of a Slot.
pub fn slot(slot: &api::Slot) -> Option<SlotFacts> {
    let name = SlotName::parse(&slot.spec.name).ok()?;
    // Its name says which object it is; one under another name is not ours.
    (slot.metadata.name.as_deref() == Some(&name.object_name())).then_some(())?;
    Some(SlotFacts {
        name,
        resources: resources(&slot.spec.resources),
        claim: slot.spec.claim.as_ref().and_then(claim),
        recorded: slot.status.as_ref().and_then(|status| status.running.as_ref()).map(recorded),
    })
}

fn recorded(running: &api::SlotRunning) -> Recorded {
    Recorded {
        pod: running.pod_uid.as_str().into(),
        pledged_vacate: running.max_vacate_seconds.max(0),
        suspended: Duration::from_secs(u64::try_from(running.suspended_seconds).unwrap_or(0)),
        suspended_since: running.suspended_since.as_ref().map(time),
    }
}

fn resources(resources: &api::SlotResources) -> Resources {
    Resources {
        cpus: resources.cpus.max(0),
        memory_mib: resources.memory_mib.max(0),
        disk_kib: resources.disk_kib.max(0),
        extended: resources
            .extended
            .iter()
            .map(|(name, amount)| (Arc::from(name.as_str()), (*amount).max(0)))
            .collect(),
        devices: resources
            .devices
            .iter()
            .map(|(name, ids)| {
                (Arc::from(name.as_str()), ids.iter().map(|id| Arc::from(id.as_str())).collect())
            })
            .collect(),
    }
}

fn claim(claim: &api::SlotClaim) -> Option<Claim> {
    Some(Claim {
        id: claim.id.as_str().into(),
        submitter: claim.submitter.as_str().into(),
        group: claim.accounting_group.as_deref().map(Into::into),
        negotiator: claim.negotiator.as_deref().into(),
        regrouped: claim.autoregroup,
        weight: claim.weight,
        limits: Wants::parse(&claim.matched_concurrency_limits.join(",")),
        since: claim.claimed_at.as_ref().map_or(Time::default(), time),
        job: JobKey {
            uid: claim.job.uid.as_str().into(),
            namespace: claim.job.namespace.as_str().into(),
            name: claim.job.name.as_str().into(),
        },
        cluster: claim.job_id.split_once('.').and_then(|(cluster, _)| cluster.parse().ok())?,
        proc: u32::try_from(claim.proc).ok()?,
    })
}

/// A claim as a Slot carries it.
pub fn claim_of(claim: &Claim) -> api::SlotClaim {
    api::SlotClaim {
        id: claim.id.to_string(),
        submitter: claim.submitter.to_string(),
        accounting_group: claim.group.as_ref().map(ToString::to_string),
        negotiator: claim.negotiator.name().map(ToString::to_string),
        autoregroup: claim.regrouped,
        weight: claim.weight,
        matched_concurrency_limits: claim.limits.each().collect(),
        claimed_at: Some(kube_time(claim.since)),
        job_id: claim.job_id(),
        job: api::JobReference {
            namespace: claim.job.namespace.to_string(),
            name: claim.job.name.to_string(),
            uid: claim.job.uid.to_string(),
        },
        proc: i64::from(claim.proc),
        pod: claim.pod_name(),
    }
}
