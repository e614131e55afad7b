//! Types that several kinds share.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// Names of the condition types, so that writers and readers agree.
pub mod condition {
    /// The spec was understood and is in force.
    pub const ACCEPTED: &str = "Accepted";
    /// Every proc has ended.
    pub const COMPLETE: &str = "Complete";
    /// Everything that the configuration text says is acted on.
    pub const FULLY_APPLIED: &str = "FullyApplied";
    /// Slots of a negotiator are also within another's NEGOTIATOR_SLOT_CONSTRAINT.
    pub const OVERLAPS: &str = "Overlaps";
    /// There is a machine that could run an idle proc of this job, now or once it is free.
    pub const MATCHABLE: &str = "Matchable";
    /// The API server refused the pod of a proc that waits.
    pub const POD_REFUSED: &str = "PodRefused";
    /// The slot offers its resources to jobs.
    pub const OFFERED: &str = "Offered";
    /// All slots of the node are drained.
    pub const DRAINED: &str = "Drained";
    /// Procs are held: they do not run until they are released.
    pub const HELD: &str = "Held";
    /// The slot is claimed.
    pub const CLAIMED: &str = "Claimed";
    /// False on a Slot whose pod was killed, while nobody knows whether the pod has ended.
    pub const END_CONFIRMED: &str = "EndConfirmed";
    /// An agent is at work on the node.
    pub const AGENT_READY: &str = "AgentReady";
    /// The agent that writes a NodeReport can do its work.
    pub const READY: &str = "Ready";
    /// The cron jobs of a NodeReport's node run, and their output can be used.
    pub const CRON_JOBS: &str = "CronJobs";
}

/// The request of one proc for a slot: `RequestCpus`, `RequestMemory`, `RequestDisk` and `Request<name>`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Whole CPUs: the job's RequestCpus. Unset means JOB_DEFAULT_REQUESTCPUS of the SubmitPolicy, or 1 without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cpus: Option<i64>,
    /// Memory, as a Kubernetes quantity such as 2Gi: the job's RequestMemory. Rounded up to whole MiB, and by the
    /// startd's default MODIFY_REQUEST_EXPR_REQUESTMEMORY to a multiple of 128 MiB. Unset means JOB_DEFAULT_REQUESTMEMORY
    /// of the SubmitPolicy at the time of submission, or 128Mi without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub memory: Option<Quantity>,
    /// Scratch space (ephemeral storage), as a Kubernetes quantity such as 10Gi: the job's RequestDisk. Rounded up to
    /// whole MiB. Unset means JOB_DEFAULT_REQUESTDISK of the SubmitPolicy, or 1Gi without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub disk: Option<Quantity>,
    /// GPUs: the job's RequestGPUs. The pod gets them as the node's GPU resource, which is nvidia.com/gpu unless
    /// something else is configured.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1024))]
    pub gpus: i64,
    /// A ClassAd expression that the properties of each GPU must make true: the job's RequireGPUs, and condor_submit's
    /// require_gpus. Example: Capability >= 8.0 && GlobalMemoryMb > 16000. A node whose GPUs have no known properties
    /// does not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub require_gpus: Option<String>,
    /// The least compute capability of each GPU, such as 8.0: condor_submit's gpus_minimum_capability. This bound and
    /// those below are added to RequireGPUs, except where requireGpus mentions the same property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_minimum_capability: Option<f64>,
    /// The greatest compute capability of each GPU: gpus_maximum_capability. No less than gpusMinimumCapability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_maximum_capability: Option<f64>,
    /// The least memory of each GPU, as a Kubernetes quantity such as 16Gi: gpus_minimum_memory. Rounded up to whole MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub gpus_minimum_memory: Option<Quantity>,
    /// The least version of CUDA that the driver of each GPU supports, such as 12.1, or 12010: gpus_minimum_runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub gpus_minimum_runtime: Option<String>,
    /// Other extended resources by their Kubernetes name, for example example.com/fpga: 1. In ClassAds the part behind
    /// the slash names the resource: RequestFpga. A resource that only a NodePolicy declares, as MACHINE_RESOURCE_Cogs
    /// does, is requested by that name, Cogs: 2, and not from the kubelet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 64,
        "additionalProperties" = { "type": "integer", "format": "int64", "minimum": 0 }
    ))]
    pub resources: BTreeMap<String, i64>,
}

/// The resources of a slot.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotResources {
    /// CPUs.
    pub cpus: i64,
    /// Memory in MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: i64,
    /// Scratch space in KiB.
    #[serde(rename = "diskKiB")]
    pub disk_kib: i64,
    /// GPUs and other extended resources by their Kubernetes name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, i64>,
    /// The ids of the slot's GPUs and other devices, where these are known, by the resource's Kubernetes name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, Vec<String>>,
}

/// The states of the manual's machine states and transitions.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum SlotState {
    Owner,
    Unclaimed,
    Matched,
    Claimed,
    Preempting,
    Backfill,
    Drained,
}

/// The activities of the manual's machine states and transitions.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum SlotActivity {
    Idle,
    Busy,
    Suspended,
    Retiring,
    Cleaning,
    Vacating,
    Killing,
    Benchmarking,
}

/// The last change of state or activity.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// The transition's number in the manual's diagram of machine states and activities: 1 to 37, or "12a".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<IntOrString>,
    /// Why the transition was taken, for people.
    pub reason: String,
    /// When the transition was taken.
    #[schemars(schema_with = "schema::time")]
    pub time: Option<Time>,
}
