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

/// The requests and limits of a container, of a pod as a whole, or as the kubelet has applied them.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub(crate) struct SlimRequirements {
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
pub const DEFAULT_GRACE_PERIOD: u32 = 30;

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
        given.map_or(DEFAULT_GRACE_PERIOD.into(), |seconds| u64::try_from(seconds).unwrap_or(1))
    }

    /// The resources that a pod requests, by the scheduler's rule: the sum of its containers and sidecars, or its largest init
    /// container if this container requests more, plus the overhead. CPUs and memory that the pod requests as a whole (KEP-2837)
    /// replace those of its containers. An absurd amount counts as [`Capacity::of_one_pod`] says.
    pub(crate) fn requests(&self) -> Capacity {
        self.requests_by(|container| capacity(&container.resources))
    }

    /// The requests of a pod whose containers the kubelet may be resizing (KEP-1287), by the scheduler's rule: for each container the largest
    /// of what its spec says and of what the kubelet has allocated and applied, which `applied` tells for the container of a name. A resize
    /// that the node cannot make (`infeasible`) does not count.
    pub(crate) fn requests_while_resized(
        &self,
        infeasible: bool,
        applied: impl Fn(&str) -> Option<Capacity>,
    ) -> Capacity {
        self.requests_by(|container| {
            let said = capacity(&container.resources);
            match applied(&container.name) {
                Some(applied) if infeasible => applied,
                Some(applied) => larger(&said, &applied),
                None => said,
            }
        })
    }

    fn requests_by(&self, of: impl Fn(&SlimContainer) -> Capacity) -> Capacity {
        let mut sum = Capacity::default();
        for container in &self.containers {
            sum.add(&of(container));
        }
        let mut sidecars = Capacity::default();
        let mut peak = Capacity::default();
        for container in &self.init_containers {
            let sidecar = container.is_sidecar();
            let mut own = if sidecar { of(container) } else { capacity(&container.resources) };
            own.add(&sidecars);
            if sidecar {
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
        total.of_one_pod()
    }
}

/// The largest amounts that a kubelet has applied to a container and allocated to the container; `None` if the kubelet says nothing of
/// either, as kubelets before 1.33 do.
pub(crate) fn applied(
    resources: &SlimRequirements,
    allocated: &BTreeMap<String, Quantity>,
) -> Option<Capacity> {
    let known = !resources.requests.is_empty() || !allocated.is_empty();
    known.then(|| larger(&capacity(resources), &amounts(allocated)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(quantities: &[(&str, &str)]) -> Capacity {
        let requests =
            quantities.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned())));
        let resources = SlimRequirements { requests: requests.collect(), ..SlimRequirements::default() };
        let container = SlimContainer { resources, ..SlimContainer::default() };
        SlimPodSpec { containers: vec![container], ..SlimPodSpec::default() }.requests()
    }

    /// A pod's only container requests two CPUs by its spec. The table of KEP-1287.
    #[test]
    fn a_pod_that_is_resized_holds_what_the_scheduler_counts() {
        let cpus = |cpus: i64| [("cpu".to_owned(), Quantity(cpus.to_string()))].into();
        for (what, resources, allocated, infeasible, held) in [
            ("an old kubelet says nothing", None, None, false, 2),
            ("as the spec says", Some(2), Some(2), false, 2),
            ("shrinks, and the kubelet has not begun", Some(4), Some(4), false, 4),
            ("shrinks, and the container still has more", Some(4), Some(2), false, 4),
            ("grows, and waits for room", Some(1), Some(1), false, 2),
            ("asks for more than the node has", Some(1), Some(1), true, 1),
        ] {
            let said = |said: Option<i64>| said.map(cpus).unwrap_or_default();
            let container = SlimContainer {
                name: "main".into(),
                resources: SlimRequirements { requests: cpus(2), ..SlimRequirements::default() },
                ..SlimContainer::default()
            };
            let spec = SlimPodSpec { containers: vec![container], ..SlimPodSpec::default() };
            let resources = SlimRequirements { requests: said(resources), ..SlimRequirements::default() };
            let applied = |_: &str| applied(&resources, &said(allocated));
            assert_eq!(spec.requests_while_resized(infeasible, applied).milli_cpu, held * 1000, "{what}");
        }
    }

    /// A user may create such a pod on any node. The kubelet refuses the pod, and the node's other pods must count as before.
    #[test]
    fn a_pod_that_requests_more_than_anybody_has_leaves_the_sum_as_it_was() {
        let most = "9223372036854775807";
        let absurd = requests(&[
            ("cpu", most),
            ("memory", "8E"),
            ("ephemeral-storage", most),
            ("nvidia.com/gpu", most),
        ]);
        let other = requests(&[
            ("cpu", "6"),
            ("memory", "1Gi"),
            ("ephemeral-storage", "1Gi"),
            ("nvidia.com/gpu", "2"),
        ]);
        let mut sum = other.clone();
        for _ in 0..100 {
            sum.add(&absurd);
        }
        assert!(sum.milli_cpu > 1 << 56 && sum.memory > 1 << 56 && sum.disk > 1 << 56);
        for _ in 0..100 {
            sum.subtract(&absurd);
        }
        assert_eq!(sum.extended.get("nvidia.com/gpu"), Some(&2));
        assert_eq!((sum.milli_cpu, sum.memory, sum.disk), (other.milli_cpu, other.memory, other.disk));
    }
}
