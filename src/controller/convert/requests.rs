//! The resources that a pod requests of its node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};

use super::millis;
use model::pool::{Capacity, PODS};

/// The part of a pod's spec that the operator reads.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodSpec {
    pub(crate) node_name: Option<String>,
    pub(crate) containers: Vec<SlimContainer>,
    init_containers: Vec<SlimContainer>,
    overhead: BTreeMap<String, Quantity>,
    termination_grace_period_seconds: Option<i64>,
    resources: SlimRequirements,
}

/// The part of a container that the operator reads.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SlimContainer {
    pub(crate) name: String,
    resources: SlimRequirements,
    restart_policy: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
struct SlimRequirements {
    requests: BTreeMap<String, Quantity>,
    limits: BTreeMap<String, Quantity>,
}

/// The resources that a pod of this spec requests.
pub fn requests_of(spec: &PodSpec) -> Capacity {
    // The spec is converted by way of JSON, because the rule is written for the slim form only.
    let spec: SlimPodSpec = serde_json::to_value(spec).and_then(serde_json::from_value).unwrap_or_default();
    spec.requests()
}

/// The grace period of a pod that says nothing of one, in seconds.
const DEFAULT_GRACE_PERIOD: u64 = 30;

impl SlimContainer {
    /// Whether this init container is a sidecar, which runs beside the main container.
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// The container's memory limit in bytes, if it has one.
    pub(crate) fn memory_limit(&self) -> Option<i64> {
        self.resources.limits.get("memory").and_then(|limit| millis(limit).ok()).map(|milli| milli / 1000)
    }
}

impl SlimPodSpec {
    /// The spec of a pod that cannot be decoded: the spec has the name of the pod's node, if the name is known, and
    /// nothing else.
    pub(crate) fn on(node_name: Option<String>) -> Self {
        Self { node_name, ..Self::default() }
    }

    /// Whether an init container of this name is a sidecar.
    pub(crate) fn is_sidecar(&self, name: &str) -> bool {
        self.init_containers.iter().any(|container| container.name == name && container.is_sidecar())
    }

    /// The pod's own grace period in seconds. The API server stores negative ones, and deletes such pods as with 1 s.
    pub(crate) fn grace_period(&self) -> u64 {
        let given = self.termination_grace_period_seconds;
        given.map_or(DEFAULT_GRACE_PERIOD, |seconds| u64::try_from(seconds).unwrap_or(1))
    }

    /// The resources that a pod requests, by the scheduler's rule: the sum of its containers and sidecars, or its largest init
    /// container if this container requests more, plus the overhead. CPUs and memory that the pod requests as a whole (KEP-2837)
    /// replace those of its containers.
    pub(crate) fn requests(&self) -> Capacity {
        let mut sum = Capacity::default();
        for container in &self.containers {
            sum.add(&capacity(&container.resources));
        }
        let mut sidecars = Capacity::default();
        let mut peak = Capacity::default();
        for container in &self.init_containers {
            let mut own = capacity(&container.resources);
            own.add(&sidecars);
            if container.is_sidecar() {
                sidecars = own.clone();
            }
            peak = larger(&peak, &own);
        }
        sum.add(&sidecars);
        let mut total = larger(&sum, &peak);
        let whole = capacity(&self.resources);
        for (own, all) in [(whole.milli_cpu, &mut total.milli_cpu), (whole.memory, &mut total.memory)] {
            *all = if own > 0 { own } else { *all };
        }
        total.add(&amounts(&self.overhead));
        // Every pod takes one of the node's `pods`.
        total.extended.insert(PODS.into(), 1);
        total
    }
}

fn larger(a: &Capacity, b: &Capacity) -> Capacity {
    let mut extended = a.extended.clone();
    for (name, amount) in b.extended.iter() {
        extended.change(name, |most| most.max(*amount));
    }
    Capacity {
        milli_cpu: a.milli_cpu.max(b.milli_cpu),
        memory: a.memory.max(b.memory),
        disk: a.disk.max(b.disk),
        extended,
    }
}

/// The resources that a container, or a pod as a whole, requests. A limit without a request counts as a request.
fn capacity(said: &SlimRequirements) -> Capacity {
    amounts(said.limits.iter().chain(&said.requests))
}

/// Quantities by resource. If a resource is given twice, the last quantity counts. Resources that the pool does not give
/// to jobs are left out.
pub fn amounts<'a>(quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Capacity {
    let mut capacity = Capacity::default();
    for (name, quantity) in quantities {
        let amount = millis(quantity).unwrap_or(0);
        match name.as_str() {
            "cpu" => capacity.milli_cpu = amount,
            "memory" => capacity.memory = amount / 1000,
            "ephemeral-storage" => capacity.disk = amount / 1000,
            other if other.contains('/') => {
                capacity.extended.insert(other.into(), amount / 1000);
            }
            _ => {}
        }
    }
    capacity
}
