//! HTCJob: what `condor_submit` makes of a submit file.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::common::Requests;
use super::pod_template::pod_template;
use super::schema;

/// The most procs of one job.
pub const MOST_PROCS: u32 = 100_000;

/// A job in HTCondor's sense, with `count` procs. Each proc runs in a pod made from the template, in a slot on which the job's and
/// the machine's expressions agree; in one pod after another if it is evicted or retried, until it is done.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "HTCJob",
    plural = "htcjobs",
    singular = "htcjob",
    shortname = "htcj",
    category = "slotwright",
    namespaced,
    doc = "A cluster of jobs, as HTCondor has it: a number of procs, each of which runs in pods of its own until it is done.",
    status = "HTCJobStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Id",
        type_ = "integer",
        json_path = ".status.clusterId",
        description = "HTCondor's ClusterId."
    ),
    printcolumn(
        name = "Submitter",
        type_ = "string",
        json_path = ".status.submitter",
        description = "Who is charged."
    ),
    printcolumn(
        name = "Prio",
        type_ = "integer",
        json_path = ".spec.priority",
        priority = 1,
        description = "JobPrio."
    ),
    printcolumn(
        name = "Procs",
        type_ = "integer",
        json_path = ".spec.count",
        description = "How many procs."
    ),
    printcolumn(
        name = "Idle",
        type_ = "integer",
        json_path = ".status.idle",
        description = "Procs that wait."
    ),
    printcolumn(
        name = "Running",
        type_ = "integer",
        json_path = ".status.running",
        description = "Procs that run."
    ),
    printcolumn(
        name = "Held",
        type_ = "integer",
        json_path = ".status.held",
        description = "Procs that are held: they wait until they are released."
    ),
    printcolumn(
        name = "Done",
        type_ = "integer",
        json_path = ".status.completed",
        description = "Procs that ended with exit code 0."
    ),
    printcolumn(
        name = "Failed",
        type_ = "integer",
        json_path = ".status.failed",
        description = "Procs that ended otherwise."
    ),
    printcolumn(
        name = "Removed",
        type_ = "integer",
        json_path = ".status.removed",
        priority = 1,
        description = "Procs that were removed."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.summary",
        description = "The job in one word."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.why",
        priority = 1,
        description = "Why procs wait or are held."
    )
)]
#[serde(rename_all = "camelCase")]
pub struct HTCJobSpec {
    /// How many procs. Raising it adds procs; lowering it removes those that have not started.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_PROCS))]
    pub count: i64,
    /// The request of each proc for a slot.
    #[serde(default)]
    pub requests: Requests,
    /// A ClassAd expression that a machine must make true. MY is the job, TARGET the machine; a bare name is looked up
    /// in the job, then in the machine. Example: TARGET.Arch == "X86_64" && TARGET.TotalSlotMemory > 64000. Unset
    /// means true. The requests above and the template's nodeSelector are checked besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub requirements: Option<String>,
    /// A ClassAd expression that says how much the job likes a machine; the higher the better. Undefined counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub rank: Option<String>,
    /// JobPrio: among the jobs of one submitter, a higher number goes first. It has no effect between submitters.
    #[serde(default)]
    pub priority: i32,
    /// The accounting group that is charged, such as physics.higgs. A GroupQuota must declare it. The submitter is then
    /// GROUP.OWNER, and OWNER alone without a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub accounting_group: Option<String>,
    /// The concurrency limits that each proc takes from, condor_submit's concurrency_limits: NAME or SET.NAME, with an
    /// amount as in FILESERVER:3. A ConcurrencyLimit says how much there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub concurrency_limits: Vec<String>,
    /// A ClassAd expression that gives such a list for the machine in TARGET, condor_submit's concurrency_limits_expr.
    /// Example: strcat("SWX:2 ", TARGET.Network). If the result is not a text, nothing is taken. Give this or
    /// concurrencyLimits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub concurrency_limits_expr: Option<String>,
    /// More attributes of the job's ad: attribute name to ClassAd expression. A string needs its own quotes. At most 256
    /// attributes, each with an expression of at most 16384 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 256,
        "additionalProperties" = { "type": "string", "maxLength": 16384 }
    ))]
    pub attributes: BTreeMap<String, String>,
    /// The values that each proc has of its own. Where this is set, if only to {}, the texts of the template refer to the proc:
    /// $(Process) or $(ProcId), $(Cluster) or $(ClusterId), $(Row) or $(ItemIndex), $(Step), and the variables below are replaced
    /// when a proc's pod is made. Any other $(NAME) stays for Kubernetes, and so does $$(NAME).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    /// Whether all procs are held, like suspend of a Job. Procs that run leave their slots, with the grace period of their pods,
    /// and no proc runs until this is false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hold: bool,
    /// Whether a proc's pod is kept once its end is recorded in status.
    #[serde(default)]
    pub pod_retention: PodRetention,
    /// A pod template, as in a Job. The first container gets the resources of the slot, less what other containers
    /// request. restartPolicy is Never: the operator decides whether a proc runs again. The operator sets nodeName.
    #[schemars(schema_with = "pod_template")]
    pub template: Template,
}

/// Variables, and their values for the procs of a job: the items of condor_submit's queue statement.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
pub struct Items {
    /// The names of the variables, as in $(name); case does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub variables: Vec<String>,
    /// The rows: a value for each variable. There must be spec.count / repeat rows, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::rows")]
    pub rows: Vec<Vec<String>>,
    /// How many procs there are for each row, which $(Step) counts.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = MOST_PROCS))]
    pub repeat: i64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(count: &i64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(number: &i64) -> bool {
    *number == 1
}

/// A pod template as its text. As a tree of values, a template that somebody filled with junk would take a hundred times as
/// much memory.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(transparent)]
pub struct Template(pub Box<RawValue>);

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Whether a proc's pod is kept once its end is recorded.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum PodRetention {
    /// Pods stay until the job is deleted, so that their logs can be read.
    #[default]
    Keep,
    /// Pods of procs that ended with exit code 0 are deleted, others stay.
    KeepFailed,
    /// Pods are deleted.
    Delete,
}

const fn one() -> i64 {
    1
}

/// The operator's report of a job.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HTCJobStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// HTCondor's ClusterId: procs are named ClusterId.ProcId.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<i64>,
    /// The submitter that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// The job in one word: Idle, Running, Suspended (all running procs are suspended), Completed, Failed (ended, and
    /// some procs with another exit code than 0), Removed (ended, and all others were removed), Held (the spec was not
    /// accepted, or no proc is left that is not held) or Removing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why procs wait or are held, in the words of the conditions. Unset while none waits and none is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Procs that wait for a slot.
    #[serde(default)]
    pub idle: i64,
    /// Procs that are held.
    #[serde(default)]
    pub held: i64,
    /// Procs that have a claim, but for those that were held or removed and are still ending.
    #[serde(default)]
    pub running: i64,
    /// The running procs that are suspended: their processes stand still until the policy of their slots lets them continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<i64>,
    /// Procs that ended with exit code 0.
    #[serde(default)]
    pub completed: i64,
    /// Procs that ended with another exit code.
    #[serde(default)]
    pub failed: i64,
    /// Procs that were removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: i64,
    /// Which procs ended with exit code 0, as ranges such as 0-4,7. This is the record: a proc named here never runs
    /// again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub completed_procs: String,
    /// Which procs ended with another exit code, as ranges.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_procs: String,
    /// Which procs were removed, as ranges. This is the record: a proc named here never runs again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub removed_procs: String,
    /// The number of the last act of the annotation slotwright.dev/acts that was carried out. This is the record: the status has
    /// this number and what the act changed in one write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_act: Option<i64>,
    /// Procs that are not done, and have run or were held: how often. This is the record of retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub runs: Vec<ProcRuns>,
    /// Attributes of the job's ad that its spec does not give, with their expressions: JOB_DEFAULT_REQUESTCPUS and the
    /// other defaults as they were when the job was submitted. This is the record: it stays, whatever happens to the
    /// SubmitPolicy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub defaults: BTreeMap<String, String>,
    /// Whose the job is, if the SubmitPolicy asked who created the job when the operator first saw the job; else unset, and the
    /// job is its namespace's. This is the record: it stays, whatever happens to the SubmitPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The changes that the SubmitPolicy's transforms made to the spec when the operator accepted it. This is the
    /// record: it stays, whatever happens to the SubmitPolicy, until the spec is edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<JobPolicy>,
    /// Procs that are not done and that the job's own TransformOnEvict changed, as retry_request_memory does. This is the record: the
    /// changes stay until the spec is edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub transformed_procs: Vec<TransformedProcs>,
    /// Procs that are held: they wait until they are released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub held_procs: Vec<HeldProcs>,
    /// When the first proc was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<Time>,
    /// When the last proc ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<Time>,
    /// The most that one proc was seen to use, of each amount, as the agents of the nodes reported. Unset if no agent has
    /// told of a proc of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ProcUsage>,
    /// Accepted, Matchable and Complete; Held where procs are held; PodRefused where the API server refuses their pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The most that one proc of a job used. The amounts may be of different procs and times.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
pub struct ProcUsage {
    /// Memory in MiB, rounded up, without file pages that the kernel may drop at once: MemoryUsage.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<i64>,
    /// Memory in KiB that belongs to no file: ResidentSetSize.
    #[serde(default, rename = "residentKiB", skip_serializing_if = "Option::is_none")]
    pub resident_kib: Option<i64>,
    /// Disk in KiB, where agents tell of it: DiskUsage.
    #[serde(default, rename = "diskKiB", skip_serializing_if = "Option::is_none")]
    pub disk_kib: Option<i64>,
    /// CPUs, averaged over a minute: CpusUsage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// KiB read from disks: BlockReadKbytes.
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
    /// The measurements of the nodes' monitors, by the name of the attribute: GPUsAverageUsage, GPUsMemoryUsage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub metrics: BTreeMap<String, f64>,
}

/// The changes that the SubmitPolicy's transforms made to a job.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPolicy {
    /// The transforms that were for the job, in the order in which they were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<String>,
    /// Attributes of the job's ad that the transforms set, with their expressions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the job's ad that the transforms removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// Procs of which the same attributes differ from the job's.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransformedProcs {
    /// Which procs, as ranges such as 0-4,7.
    pub procs: String,
    /// Attributes of the procs' ads, with their expressions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the job's ad that the procs' ads do not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// Procs that are held for one reason. This is the record: they do not run until they are released.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldProcs {
    /// Which procs, as ranges such as 0-4,7.
    pub procs: String,
    /// HTCondor's HoldReasonCode: 1 if a person or spec.hold asked for the hold, 3 if an expression of the job did, 26 if the
    /// SubmitPolicy did, 46 or 47 if the proc took longer than AllowedJobDuration or AllowedExecuteDuration; 21 if the slot's
    /// WANT_HOLD was true, 35 if an image cannot be had, 34 if the program went over its memory or its disk, 6 if a container
    /// cannot be made, or its program not started, for another reason, 5 if an expression of the job takes too many steps to
    /// evaluate, 20 if the proc missed its DeferralTime. An edit of the spec releases procs with code 5, 6, 20, 21, 34 or 35.
    pub code: i64,
    /// HTCondor's HoldReasonSubCode.
    #[serde(default)]
    pub subcode: i64,
    /// HTCondor's HoldReason.
    pub reason: String,
}

/// The history of procs that are not done.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcRuns {
    /// Which procs, as ranges such as 0-4,7.
    pub procs: String,
    /// NumJobStarts: how many runs have ended.
    #[serde(default)]
    pub starts: i64,
    /// NumJobCompletions: how often the program ended by itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completions: i64,
    /// NumHolds: how often the procs were held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds: i64,
    /// ExitCode, if the program last ended by itself with an exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// ExitSignal, if the program last ended by a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    /// Since when the procs are idle or held: EnteredCurrentStatus of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub since: Option<Time>,
    /// RemoteWallClockTime: how many seconds the runs that have ended took, of the proc with the most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wall_seconds: i64,
    /// CumulativeSuspensionTime: for how many seconds the program stood still, of the proc with the most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended_seconds: i64,
    /// JobStartDate: when the program of the first of the procs first started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub first_start: Option<Time>,
    /// LastVacateTime: when a run of one of the procs last ended that did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_vacate: Option<Time>,
}
