//! The custom resources of group `slotwright.dev`, version `v1alpha1`: one file a kind, types only.
//!
//! The meaning of a field is told once, in its doc comment: `kubectl explain` shows the same text. Behavior lives in
//! the deciders; this room only says what an object looks like and what the API server refuses by schema.

// Docs here are what `kubectl explain` prints: knobs stand without Markdown's marks.
#![allow(clippy::doc_markdown)]
// Printer columns repeat their keys.
#![allow(clippy::duplicated_attributes)]

mod absent_machine;
mod common;
mod concurrency_limit;
mod drain_request;
mod fnv;
mod group_quota;
pub mod history;
mod htcjob;
pub mod labels;
pub mod names;
mod negotiator;
mod node_policy;
mod node_report;
mod partitionable_slot;
mod pod_template;
mod portable;
mod rejections;
mod schema;
mod slot;
mod submit_policy;
mod submitter;

pub use absent_machine::{AbsentMachine, AbsentMachineSpec, AbsentMachineStatus, AbsentSlot};
pub use common::{Requests, SlotActivity, SlotResources, SlotState, Transition, condition};
pub use concurrency_limit::{ConcurrencyLimit, ConcurrencyLimitSpec, ConcurrencyLimitStatus, LimitInUse};
pub use drain_request::{DrainCompletion, DrainRequest, DrainRequestSpec, DrainRequestStatus, DrainSchedule};
pub use fnv::fnv;
pub use group_quota::{GroupQuota, GroupQuotaSpec, GroupQuotaStatus};
pub use htcjob::{
    HTCJob, HTCJobSpec, HTCJobStatus, HeldProcs, Items, JobPolicy, MOST_PROCS, PodRetention, ProcRuns,
    ProcUsage, Template, TransformedProcs,
};
pub use negotiator::{CycleStatistics, Negotiator, NegotiatorSpec, NegotiatorStatus};
pub use node_policy::{NodePolicy, NodePolicySpec, NodePolicyStatus, PolicyBackfill, PolicyToleration};
pub use node_report::{
    LastInput, LastInputs, NodeCron, NodeCronAutopublish, NodeCronJob, NodeCronMode, NodeReport,
    NodeReportSpec, NodeReportStatus, PodDevices, PodUsage, ReportedDevice, ReportedSlotAd,
};
pub use partitionable_slot::{PartitionableSlot, PartitionableSlotSpec, PartitionableSlotStatus};
pub use rejections::{FailedClauseStatus, RejectionStatus, RequirementsOf};
pub use slot::{JobReference, Slot, SlotClaim, SlotRunning, SlotSpec, SlotStatus, SlotType};
pub use submit_policy::{JobOwner, OwnerSource, SubmitPolicy, SubmitPolicySpec, SubmitPolicyStatus};
pub use submitter::{AccountCorrection, AccountStatus, Submitter, SubmitterSpec, SubmitterStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The API group of every kind here.
pub const GROUP: &str = "slotwright.dev";
/// The version that is served and stored.
pub const VERSION: &str = "v1alpha1";

/// Every definition, in the order in which a reader meets them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    [
        HTCJob::crd(),
        Slot::crd(),
        PartitionableSlot::crd(),
        Submitter::crd(),
        GroupQuota::crd(),
        ConcurrencyLimit::crd(),
        NodePolicy::crd(),
        SubmitPolicy::crd(),
        Negotiator::crd(),
        NodeReport::crd(),
        DrainRequest::crd(),
        AbsentMachine::crd(),
    ]
    .map(portable::portable)
    .into()
}

#[cfg(test)]
mod tests;
