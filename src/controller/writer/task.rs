//! Writes to make: what each is about, and whose places its calls take.

use std::sync::Arc;

use serde_json::Value;

use super::places::Lane;
use super::{reports, slots};
use crate::cache::ObjectKey;
use crate::kinds::{Unread, job};
use crate::render::KeptTemplate;
use model::pool::backfill::pod_name;
use model::pool::{Document, Effect, MachineName, PodPlan, Subject};

/// A write to make.
#[derive(Debug)]
pub enum Task {
    /// An effect of the deciders, with the job's template where a pod is to be made.
    Effect(Effect, Option<Arc<KeptTemplate>>),
    /// An object that cannot be decoded: a warning.
    Unread(Box<Unread>),
    /// A status, as a merge patch over a version that was seen.
    Status {
        /// The document whose object is written.
        document: Document,
        /// The object.
        object: ObjectKey,
        /// The uid of the object.
        uid: String,
        /// The version that the patch was made over.
        version: String,
        /// The patch of `status`.
        patch: Value,
    },
    /// An object of the operator's own, which is not there yet.
    Create {
        /// The document whose object is created.
        document: Document,
        /// The object's name.
        object: ObjectKey,
        /// The object.
        body: Value,
    },
    /// An object of the operator's own that is no longer wanted.
    Delete {
        /// The document whose object is deleted.
        document: Document,
        /// The object.
        object: ObjectKey,
        /// The uid of the object: an object of the same name with another uid stays.
        uid: String,
        /// The `resourceVersion` of the object: an object that somebody has changed since stays.
        version: String,
    },
}

impl Task {
    /// The subject of the task.
    pub fn line(&self) -> Line {
        match self {
            Self::Effect(effect, _) => match effect {
                Effect::WriteSlot(plan) => Line::Object(slots::key(&plan.slot)),
                Effect::DeleteSlot { slot, .. } => Line::Object(slots::key(slot)),
                Effect::CreatePod(plan) => {
                    Line::Pod(plan.claim.last.job.namespace.clone(), plan.claim.pod_name().into())
                }
                Effect::CreateBackfill(plan) => {
                    Line::Pod(plan.template.namespace.clone(), plan.pod_name().into())
                }
                Effect::LookForBackfill { slot, namespace } => {
                    Line::Pod(namespace.clone(), pod_name(slot).into())
                }
                Effect::DeletePod { pod, .. }
                | Effect::DeleteBackfill { pod, .. }
                | Effect::Suspend { pod, .. }
                | Effect::KillByAgent { pod, .. }
                | Effect::LookAtPod { pod, .. }
                | Effect::UntrackPod { pod, .. } => Line::Pod(pod.namespace.clone(), pod.name.clone()),
                Effect::Benchmark { machine, .. } | Effect::Cron { machine, .. } => {
                    Line::Object(reports::key(machine))
                }
                Effect::ReadAgentLease { machine } => Line::AgentLease(machine.clone()),
                Effect::AddJobFinalizer(job) | Effect::RemoveJobFinalizer(job) => Line::Object(job::key(job)),
                Effect::Tell(notice) => Line::Notice(notice.about.uid().into()),
            },
            Self::Unread(object) => Line::Notice(object.uid.as_str().into()),
            Self::Status { object, .. } | Self::Create { object, .. } | Self::Delete { object, .. } => {
                Line::Object(object.clone())
            }
        }
    }

    /// Whose places the calls of the task take.
    pub fn lane(&self) -> Lane {
        match self {
            Self::Effect(effect, _) => match effect {
                Effect::CreatePod(plan) => Lane::Making(plan.claim.last.job.namespace.clone()),
                Effect::CreateBackfill(plan) => Lane::Making(plan.template.namespace.clone()),
                Effect::LookForBackfill { namespace, .. } => Lane::Keeping(namespace.clone()),
                Effect::DeletePod { pod, .. }
                | Effect::DeleteBackfill { pod, .. }
                | Effect::Suspend { pod, .. }
                | Effect::KillByAgent { pod, .. }
                | Effect::LookAtPod { pod, .. }
                | Effect::UntrackPod { pod, .. } => Lane::Keeping(pod.namespace.clone()),
                Effect::AddJobFinalizer(job) | Effect::RemoveJobFinalizer(job) => {
                    Lane::Keeping(job.namespace.clone())
                }
                Effect::Tell(notice) => match &notice.about {
                    Subject::Job(job) => Lane::Keeping(job.namespace.clone()),
                    Subject::Policy { .. }
                    | Subject::Negotiator { .. }
                    | Subject::SubmitPolicy { .. }
                    | Subject::Drain { .. } => Lane::Cluster,
                },
                Effect::WriteSlot(_) | Effect::DeleteSlot { .. } => Lane::Claims,
                Effect::Benchmark { .. } | Effect::Cron { .. } | Effect::ReadAgentLease { .. } => {
                    Lane::Cluster
                }
            },
            Self::Unread(object) => {
                object.namespace.as_deref().map_or(Lane::Cluster, |namespace| Lane::Keeping(namespace.into()))
            }
            Self::Status { object, .. } | Self::Create { object, .. } | Self::Delete { object, .. } => {
                object.namespace.as_deref().map_or(Lane::Cluster, |namespace| Lane::Keeping(namespace.into()))
            }
        }
    }

    /// The pod that the task creates for a proc.
    pub fn pod_plan(&self) -> Option<&PodPlan> {
        match self {
            Self::Effect(Effect::CreatePod(plan), _) => Some(plan),
            _ => None,
        }
    }

    /// Whether the task only looks at a pod that no watch has shown for a while.
    pub fn is_look(&self) -> bool {
        matches!(self, Self::Effect(Effect::LookAtPod { .. }, _))
    }

    /// Whether the task writes the status of a slot, or makes or deletes a slot's object for its status.
    pub fn is_status_of_slot(&self) -> bool {
        self.document().is_some_and(Document::is_of_slot)
    }

    /// The document that the task brings into line; `None` for a task that the deciders or a watch asked for.
    const fn document(&self) -> Option<&Document> {
        match self {
            Self::Status { document, .. } | Self::Create { document, .. } | Self::Delete { document, .. } => {
                Some(document)
            }
            Self::Effect(..) | Self::Unread(_) => None,
        }
    }
}

/// The subject of a task. Tasks with the same subject run one after another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// An object of the operator's own API, or a job.
    Object(ObjectKey),
    /// A pod, by namespace and name.
    Pod(Arc<str>, Arc<str>),
    /// Events about the object with this uid.
    Notice(Arc<str>),
    /// The Lease of a machine's agent.
    AgentLease(MachineName),
}

impl Line {
    /// The object of the operator's own kinds that the line is about.
    pub const fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(key) => Some(key),
            Self::Pod(..) | Self::Notice(_) | Self::AgentLease(_) => None,
        }
    }
}
