//! NodeReport: what the agent of a node senses, and what the operator asks of the agent.

// The lint is allowed in the whole module, since a derive makes a second struct of the fields.
#![allow(clippy::struct_excessive_bools, reason = "each flag of a cron job is one of HTCondor's knobs")]

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::schema;

/// The report of a node's agent, in an object of the node's name. The agent makes the object, and writes the status only when
/// something has changed: idle times follow from the time of the last input. The agent says that it lives by renewing its Lease
/// slotwright-agent-NODE in kube-node-lease. The operator writes its requests to the agent into the spec.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "NodeReport",
    plural = "nodereports",
    singular = "nodereport",
    shortname = "nrep",
    category = "slotwright",
    doc = "The report of a node's agent: its owner's activity, load, benchmarks, suspended pods.",
    status = "NodeReportStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Keyboard",
        type_ = "string",
        json_path = ".status.lastInput.keyboard",
        description = "When somebody last touched a keyboard or mouse."
    ),
    printcolumn(
        name = "Load",
        type_ = "string",
        json_path = ".status.load",
        description = "Load average of the node."
    ),
    printcolumn(
        name = "Pool",
        type_ = "string",
        json_path = ".status.poolLoad",
        description = "The part of that load that the pool's pods cause."
    ),
    printcolumn(name = "Mips", type_ = "integer", json_path = ".status.mips"),
    printcolumn(name = "KFlops", type_ = "integer", json_path = ".status.kflops", priority = 1),
    printcolumn(name = "Benchmarked", type_ = "date", json_path = ".status.benchmarkedAt", priority = 1),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the agent can do its work."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeReportSpec {
    /// A request for a benchmark run that ends at this time or later; status.benchmarkedAt answers. Written by the
    /// operator when RUNBENCHMARKS is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub benchmark: Option<Time>,
    /// The average of Mips over the runs before the requested one. Written by the operator together with benchmark: the
    /// new Mips is three quarters of this plus a quarter of what the run measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mips_so_far: Option<i64>,
    /// The same of KFlops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kflops_so_far: Option<i64>,
    /// The programs that the agent runs: STARTD_CRON_JOBLIST of the NodePolicy that governs the node. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<NodeCron>,
}

/// The cron jobs of a node.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCron {
    /// The jobs, in the order of STARTD_CRON_JOBLIST.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub jobs: Vec<NodeCronJob>,
    /// STARTD_CRON_MAX_JOB_LOAD: no job starts that would make the sum of the loads of those that run greater.
    pub max_job_load: f64,
    /// STARTD_CRON_AUTOPUBLISH: when output is written.
    #[serde(default)]
    pub autopublish: NodeCronAutopublish,
    /// STARTD_CRON_LOG_NON_ZERO_EXIT: whether the agent logs the exit code and the output of a run that fails.
    #[serde(default)]
    pub log_non_zero_exit: bool,
}

/// A cron job: STARTD_CRON_<JobName>_*.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCronJob {
    /// The job's name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The program. Its path is below the agent's directory of programs, or is relative to that directory.
    #[schemars(length(min = 1, max = 4096))]
    pub executable: String,
    /// The program's arguments, after the job's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// The program's environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 4096,
        "additionalProperties" = { "type": "string", "maxLength": 4096 }
    ))]
    pub env: BTreeMap<String, String>,
    /// The directory in which the program starts. Unset means the directory of programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub cwd: Option<String>,
    /// When the program runs.
    #[serde(default)]
    pub mode: NodeCronMode,
    /// The seconds between two starts; for WaitForExit, from the end to the next start. Nothing for OneShot.
    #[serde(default)]
    #[schemars(schema_with = "schema::whole")]
    pub period_seconds: u32,
    /// The prefix of the name of each attribute.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub prefix: String,
    /// Whether a run that still goes on when the next is due is killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
    /// Whether the program gets SIGHUP when the node's cron jobs have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconfig: bool,
    /// Whether a OneShot job runs again when the node's cron jobs have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconfig_rerun: bool,
    /// The numbers of the slots whose ads have the output. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::slot_numbers")]
    pub slots: Vec<u32>,
    /// The load that the job is assumed to make.
    pub load: f64,
    /// The metrics of custom resources that the job measures: SUM:GPUs or PEAK:GPUsMemory. Empty if the job is no monitor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 5, max = 80)))]
    pub metrics: Vec<String>,
    /// True while the job's CONDITION is not true: no run starts, and what earlier runs have said stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// When the program of a cron job runs.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum NodeCronMode {
    /// Each period.
    #[default]
    Periodic,
    /// A period after its end.
    WaitForExit,
    /// Once, when the agent starts.
    OneShot,
}

/// When the output of cron jobs is written. Output that changes nothing is never written.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum NodeCronAutopublish {
    /// Once a minute at most.
    #[default]
    Never,
    /// At once.
    IfChanged,
    /// At once, and with LastUpdate, which changes with each run.
    Always,
}

/// The state of the node and of the pool's pods there, as the agent senses it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReportStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When somebody last used the node by hand. If unset, KeyboardIdle and ConsoleIdle are undefined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_input: Option<LastInputs>,
    /// The load average of the node over the last minute, in processes: TotalLoadAvg. Written when it has moved by a tenth
    /// or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The part of that load that the pool's pods cause: TotalCondorLoadAvg. The rest is the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_load: Option<f64>,
    /// Mips: millions of integer instructions a second, by Dhrystone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mips: Option<i64>,
    /// KFlops: thousands of floating point operations a second, by Linpack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kflops: Option<i64>,
    /// LastBenchmark: when the run ended that mips and kflops are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub benchmarked_at: Option<Time>,
    /// The uids of pods whose processes the agent has suspended, as the annotation slotwright.dev/suspend asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub suspended_pods: Vec<String>,
    /// The usage of the pool's pods. Written once a minute at most, when some amount has moved by a tenth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub usage: Vec<PodUsage>,
    /// The devices that the kubelet has given to the pool's pods: AssignedGPUs. Empty unless the site lets the agents ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub pod_devices: Vec<PodDevices>,
    /// Free scratch space in KiB. If unset, the node's allocatable ephemeral storage counts.
    #[serde(default, rename = "diskKiB", skip_serializing_if = "Option::is_none")]
    pub disk_kib: Option<i64>,
    /// VirtualMemory: free swap space in KiB.
    #[serde(default, rename = "virtualMemoryKiB", skip_serializing_if = "Option::is_none")]
    pub virtual_memory_kib: Option<i64>,
    /// Devices of extended resources, with their properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub devices: Vec<ReportedDevice>,
    /// More attributes of the machine's ad, attribute name to ClassAd expression. A string needs its own quotes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 512))]
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the ads of some slots only, as cron jobs tell them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub slot_ads: Vec<ReportedSlotAd>,
    /// Ready, and CronJobs if the node has cron jobs. While Ready is False, the
    /// node counts as a node without an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// When somebody last used a node by hand.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastInputs {
    /// Input on any terminal, including the console: a time, or ongoing. KeyboardIdle is 0 while the input is ongoing,
    /// and counts from the time otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyboard: Option<LastInput>,
    /// Input on the console, which is the keyboard and mouse of the node itself: a time, or ongoing. ConsoleIdle follows
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<LastInput>,
}

/// When input was last seen.
#[derive(Clone, Debug, PartialEq)]
pub enum LastInput {
    /// There is input now.
    Ongoing,
    /// Input was last seen at this time.
    At(Time),
}

/// The word for [`LastInput::Ongoing`].
const ONGOING: &str = "ongoing";

impl Serialize for LastInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ongoing => serializer.serialize_str(ONGOING),
            Self::At(time) => time.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LastInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == ONGOING {
            return Ok(Self::Ongoing);
        }
        let time = text.parse().map_err(|error| {
            de::Error::custom(format_args!("{text:?} is neither {ONGOING:?} nor a time in RFC 3339: {error}"))
        })?;
        Ok(Self::At(Time(time)))
    }
}

impl JsonSchema for LastInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LastInput".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(ongoing|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))$"
        })
    }
}

impl fmt::Display for LastInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ongoing => f.write_str(ONGOING),
            Self::At(time) => write!(f, "{}", time.0),
        }
    }
}

/// One device.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
pub struct ReportedDevice {
    /// The extended resource of the device, such as nvidia.com/gpu.
    pub resource: String,
    /// The device's id, as the device plugin gives it.
    pub id: String,
    /// The device's properties, attribute name to ClassAd expression, for RequireGPUs and the constraints of slot types.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub properties: BTreeMap<String, String>,
}

/// The devices of one resource that a pod has.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct PodDevices {
    /// The pod's uid.
    pub uid: String,
    /// The extended resource, such as nvidia.com/gpu.
    pub resource: String,
    /// The ids of the devices, as the device plugin gives them.
    #[schemars(length(max = 1024))]
    pub ids: Vec<String>,
}

/// Attributes of the ads of some slots.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
pub struct ReportedSlotAd {
    /// The numbers of the slots. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::slot_numbers")]
    pub slots: Vec<u32>,
    /// Attribute name to ClassAd expression. SlotMergeConstraint, SlotName or Name, SlotTypeId and SlotId say into which slots'
    /// ads the others go: the first of them that is there decides.
    #[schemars(extend("maxProperties" = 256))]
    pub attributes: BTreeMap<String, String>,
}

/// The usage of a pod.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
pub struct PodUsage {
    /// The pod's uid.
    pub uid: String,
    /// Memory in use in MiB, rounded up, without file pages that the kernel may drop at once: MemoryUsage.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<i64>,
    /// Memory in KiB that belongs to no file: ResidentSetSize.
    #[serde(default, rename = "residentKiB", skip_serializing_if = "Option::is_none")]
    pub resident_kib: Option<i64>,
    /// Disk in use in KiB, as the kubelet counts it: writable layers, logs and emptyDirs: DiskUsage.
    #[serde(default, rename = "diskKiB", skip_serializing_if = "Option::is_none")]
    pub disk_kib: Option<i64>,
    /// CPUs in use, averaged over the last minute: CpusUsage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// KiB read from disks since the pod started, without what the kernel still had in memory: BlockReadKbytes.
    #[serde(default, rename = "blockReadKiB", skip_serializing_if = "Option::is_none")]
    pub block_read_kib: Option<i64>,
    /// KiB written to disks: BlockWriteKbytes.
    #[serde(default, rename = "blockWriteKiB", skip_serializing_if = "Option::is_none")]
    pub block_write_kib: Option<i64>,
    /// How many operations read from disks: BlockReads.
    #[serde(default, rename = "blockReads", skip_serializing_if = "Option::is_none")]
    pub block_reads: Option<i64>,
    /// How many operations wrote to disks: BlockWrites.
    #[serde(default, rename = "blockWrites", skip_serializing_if = "Option::is_none")]
    pub block_writes: Option<i64>,
    /// The measurements of cron jobs with METRICS, by the name of the attribute: GPUsAverageUsage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub metrics: BTreeMap<String, f64>,
}
