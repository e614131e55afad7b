//! The marks by which a pod is known as the pool's. Whoever may edit a pod may take its marks off, or change them: a pod whose
//! uid is known stays the pod that it was.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;

use super::SlimPod;
use super::end::is_terminal;
use api::labels;
use model::pool::{ClaimId, JobUid, PlainSize, SlotName, backfill};
use model::startd::SHORTEST_LEASE;

use super::KeptPod;

/// The marks that the operator wrote on a pod: what the pod does for the pool.
#[derive(Clone, Debug)]
pub(super) enum PodMarks {
    /// A proc's pod.
    Proc { job: JobUid, proc: u32, claim: ClaimId, made: Made },
    /// A backfill pod: its machine slot, if that can be read, and the hash of its template.
    Backfill { slot: Option<SlotName>, mark: Arc<str> },
}

/// The facts about a proc's pod that are known since its first version, whatever somebody does to the pod later: the marks that the
/// operator wrote on it, besides those that say whose pod it is, and since when the pod is asked to go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// The lease of the pod's claim.
    pub(super) lease: Option<Duration>,
    /// How many runs of the proc came before.
    pub(super) run: Option<u32>,
    /// The resources that the pod requests of its slot.
    pub(super) size: Option<PlainSize>,
    /// The earliest second since which a version of the pod showed that the pod was asked to go.
    pub(super) asked: Option<i64>,
}

impl Made {
    fn on(pod: &SlimPod) -> Self {
        let number = |name| pod.annotations().get(name)?.parse().ok();
        let run = pod.annotations().get(labels::RUN).and_then(|run| run.parse().ok());
        let size = pod.annotations().get(labels::RESOURCES).and_then(|text| text.parse().ok());
        // The node's agent never acts by a shorter one.
        let lease = number(labels::LEASE_SECONDS).map(|said| Duration::from_secs(said).max(SHORTEST_LEASE));
        Self { lease, run, size, asked: None }
    }
}

impl PodMarks {
    /// The marks on a pod; none of a pod that is not the pool's.
    pub(super) fn on(pod: &SlimPod) -> Option<Self> {
        Self::of_proc(pod).or_else(|| Self::of_backfill(pod)).or_else(|| Self::left(pod))
    }

    fn of_proc(pod: &SlimPod) -> Option<Self> {
        let job = pod.labels().get(labels::JOB_UID)?;
        let proc = pod.labels().get(labels::PROC)?.parse().ok()?;
        let claim = pod.annotations().get(labels::CLAIM)?;
        let made = Made::on(pod);
        Some(Self::Proc { job: job.as_str().into(), proc, claim: claim.as_str().into(), made })
    }

    fn of_backfill(pod: &SlimPod) -> Option<Self> {
        pod.labels().get(labels::BACKFILL)?;
        let slot = pod.annotations().get(labels::SLOT).and_then(|name| SlotName::parse(name).ok());
        let mark = pod.annotations().get(labels::BACKFILL_TEMPLATE).map(String::as_str).unwrap_or_default();
        Some(Self::Backfill { slot, mark: mark.into() })
    }

    /// The marks of a proc's pod whose labels or claim somebody took off while no operator knew the pod. The owner is
    /// the job, and the proc's number follows from the pod's name. The proc's next pod has the same name, and cannot be
    /// created while this pod is there. A pod with nothing but the tracking finalizer, which only the operator puts on
    /// pods, is not disturbed until it ends. Then the operator takes the finalizer off.
    fn left(pod: &SlimPod) -> Option<Self> {
        let owner = pod.owner_references().iter().find(|owner| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            owner.kind == "HTCJob" && group == Some(api::GROUP) && owner.controller == Some(true)
        });
        let claim = pod.annotations().get(labels::CLAIM).map(String::as_str).unwrap_or_default().into();
        let number = |job: &str| pod.name_any().strip_prefix(job)?.strip_prefix('-')?.parse().ok();
        if let Some((owner, proc)) = owner.and_then(|owner| Some((owner, number(&owner.name)?))) {
            return Some(Self::Proc { job: owner.uid.as_str().into(), proc, claim, made: Made::on(pod) });
        }
        let over = is_terminal(pod) || pod.metadata.deletion_timestamp.is_some();
        let nobodys = Self::Proc { job: "".into(), proc: 0, claim, made: Made::default() };
        (is_tracked(pod) && over).then_some(nobodys)
    }
}

impl KeptPod {
    /// The marks by which the operator knew the pod.
    pub(super) fn marks(&self) -> Option<PodMarks> {
        match self {
            Self::Ours(facts) => Some(PodMarks::Proc {
                job: facts.job.clone(),
                proc: facts.proc,
                claim: facts.claim.clone(),
                made: Made { lease: facts.lease, run: facts.run, size: facts.size, asked: facts.asked },
            }),
            Self::Backfill(facts) => {
                Some(PodMarks::Backfill { slot: slot_of(facts), mark: facts.mark.clone() })
            }
            Self::Other(_) => None,
        }
    }
}

fn slot_of(facts: &backfill::Facts) -> Option<SlotName> {
    Some(SlotName { machine: facts.machine.clone(), slot: facts.slot?, dynamic: None })
}

/// Whether a pod has the tracking finalizer.
pub(super) fn is_tracked(pod: &SlimPod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == labels::TRACKING_FINALIZER)
}
