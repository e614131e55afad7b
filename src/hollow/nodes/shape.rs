//! The shape of a hollow node: its sizes, labels and taints, and the Node object that is made of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::devices::fnv64;
use super::owner::Owner;
use super::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};

/// The extended resource of NVIDIA's device plugin.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// The label that every hollow node has; `kubectl delete nodes` can select all hollow nodes by it.
const HOLLOW: &str = "hollow.slotwright.dev/node";

/// One gibibyte.
pub const GIB: i64 = 1 << 30;
/// The memory that kubelet reserves by its default hard eviction threshold: 100 MiB.
const MEMORY_RESERVED: i64 = 100 << 20;

/// A GPU model, for the labels of NVIDIA's GPU feature discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuModel {
    /// `nvidia.com/gpu.product`.
    pub product: &'static str,
    /// `nvidia.com/gpu.family`.
    pub family: &'static str,
    /// `nvidia.com/gpu.memory`, in MiB.
    pub memory_mib: i64,
    /// `nvidia.com/gpu.compute.major` and `.minor`.
    pub compute: (u8, u8),
}

/// NVIDIA A100 with 40 GB.
pub const A100: GpuModel =
    GpuModel { product: "NVIDIA-A100-SXM4-40GB", family: "ampere", memory_mib: 40_960, compute: (8, 0) };
/// NVIDIA T4.
pub const T4: GpuModel =
    GpuModel { product: "Tesla-T4", family: "turing", memory_mib: 15_360, compute: (7, 5) };

/// The description of a hollow node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeShape {
    /// The name, which must be a DNS subdomain.
    pub name: String,
    /// Allocatable CPU in millicores; the capacity is the same.
    pub cpus: i64,
    /// Allocatable memory in bytes; the capacity is 100 MiB more.
    pub memory: i64,
    /// Allocatable local disk in bytes.
    pub ephemeral_storage: i64,
    /// Devices by extended resource name.
    pub gpus: BTreeMap<String, i64>,
    /// Labels in addition to those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// The most pods at a time; kubelet's default is 110.
    pub pods_max: i64,
    /// The label `kubernetes.io/arch`.
    pub arch: String,
    /// The label `kubernetes.io/os`.
    pub os: String,
    /// By how much the node's clock is ahead of the API server's; negative if it is behind.
    pub clock_ahead: SignedDuration,
    /// The owner whose visits the node's agent senses; `None` if the node has no agent.
    pub agent: Option<Owner>,
}

impl NodeShape {
    /// An amd64 Linux node with room for 110 pods and 100 GiB of disk, without devices, taints or an agent. `cpus` is
    /// in millicores, `memory` in bytes.
    pub fn new(name: impl Into<String>, cpus: i64, memory: i64) -> Self {
        Self {
            name: name.into(),
            cpus,
            memory,
            ephemeral_storage: 100 * GIB,
            gpus: BTreeMap::new(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            pods_max: 110,
            arch: "amd64".to_owned(),
            os: "linux".to_owned(),
            clock_ahead: SignedDuration::ZERO,
            agent: None,
        }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds an agent that senses this owner. The API server must serve NodeReports, which the agent writes.
    #[must_use]
    pub fn agent(mut self, owner: Owner) -> Self {
        self.agent = Some(owner);
        self
    }

    /// Sets the node's clock ahead of the API server's by this much, or behind it.
    #[must_use]
    pub fn clock_ahead(mut self, by: SignedDuration) -> Self {
        self.clock_ahead = by;
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let (key, effect) = (key.to_owned(), effect.to_owned());
        self.taints.push(Taint { key, value: Some(value.to_owned()), effect, time_added: None });
        self
    }

    /// Adds `count` GPUs of one model, with the labels that feature discovery would set.
    #[must_use]
    pub fn gpu(mut self, model: GpuModel, count: i64) -> Self {
        self.gpus.insert(NVIDIA_GPU.to_owned(), count);
        self.label("nvidia.com/gpu.product", model.product)
            .label("nvidia.com/gpu.family", model.family)
            .label("nvidia.com/gpu.memory", &model.memory_mib.to_string())
            .label("nvidia.com/gpu.compute.major", &model.compute.0.to_string())
            .label("nvidia.com/gpu.compute.minor", &model.compute.1.to_string())
    }

    /// All labels of the Node object: those that kubelet and feature discovery set, and the shape's own. If both have
    /// the same label, the shape's counts.
    pub fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), self.name.clone()),
            ("kubernetes.io/arch".to_owned(), self.arch.clone()),
            ("kubernetes.io/os".to_owned(), self.os.clone()),
            (HOLLOW.to_owned(), "true".to_owned()),
        ]);
        if let Some(count) = self.gpus.get(NVIDIA_GPU) {
            labels.insert("nvidia.com/gpu.present".to_owned(), "true".to_owned());
            labels.insert("nvidia.com/gpu.count".to_owned(), count.to_string());
        }
        labels.extend(self.labels.clone());
        labels
    }

    /// The node's `status.allocatable`: what its pods may request together.
    pub fn allocatable(&self) -> Resources {
        let mut resources = Resources::from([
            (CPU, self.cpus),
            (MEMORY, self.memory),
            (EPHEMERAL_STORAGE, self.ephemeral_storage),
            (PODS, self.pods_max),
        ]);
        for (name, count) in &self.gpus {
            resources.set(name, *count);
        }
        resources
    }

    /// The Node object as the kubelet registers it, Ready from the start.
    pub fn node(&self, address: &str, now: Timestamp) -> Node {
        let metadata = json!({"name": self.name, "labels": self.all_labels()});
        let spec = json!({"taints": self.taints});
        let node = json!({"metadata": metadata, "spec": spec, "status": self.status(address, now)});
        serde_json::from_value(node).unwrap_or_default()
    }

    /// The `status` of the Node object.
    pub fn status(&self, address: &str, now: Timestamp) -> Value {
        let mut capacity = self.allocatable();
        capacity.set(MEMORY, self.memory.saturating_add(MEMORY_RESERVED));
        let id = format!("{:016x}", fnv64(&self.name));
        json!({
            "allocatable": self.allocatable().to_quantities(),
            "capacity": capacity.to_quantities(),
            "conditions": conditions(true, now),
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {
                "architecture": self.arch, "operatingSystem": self.os, "osImage": "Hollow",
                "kernelVersion": "6.1.0-hollow", "containerRuntimeVersion": "hollow://1",
                "kubeletVersion": "v1.33.0-hollow", "kubeProxyVersion": "",
                "machineID": id, "systemUUID": id, "bootID": id,
            },
        })
    }
}

fn conditions(ready: bool, now: Timestamp) -> Vec<Value> {
    let fine = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ];
    let condition = |(type_, reason, message)| {
        json!({"type": type_, "status": "False", "reason": reason, "message": message,
            "lastHeartbeatTime": Time(now), "lastTransitionTime": Time(now)})
    };
    fine.into_iter().map(condition).chain([ready_condition(ready, now)]).collect()
}

/// The Ready condition as kubelet words it.
pub(super) fn ready_condition(ready: bool, now: Timestamp) -> Value {
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        ("False", "KubeletNotReady", "container runtime is down")
    };
    json!({"type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": Time(now), "lastTransitionTime": Time(now)})
}
