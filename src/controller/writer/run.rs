//! How a task that has begun comes to its calls, and what ends the task before.

use std::future::pending;

use tokio::sync::oneshot;

use super::lanes::Work;
use super::{AGAIN_AFTER, Context, Reply, Task, calls, pods};
use model::pool::{ClaimId, Outcome, PodPlan, PodRef, SlotName};

/// The pod that a task is to make, once a watch shows the pod.
pub struct Sighted(pub Option<oneshot::Receiver<PodRef>>);

impl Sighted {
    /// Waits until a watch shows the pod; for ever if the task makes no pod.
    async fn pod(&mut self) -> PodRef {
        if let Some(pod) = &mut self.0
            && let Ok(pod) = pod.await
        {
            return pod;
        }
        // The writer has nobody to tell any more.
        pending().await
    }
}

/// Makes the calls of a task, as soon as there is a place for the first.
///
/// Thousands of tasks may wait for their places. This future is small, therefore: the task is in a box, and the future of its calls,
/// which is large, exists only once there is a place.
pub async fn run(context: Context, work: Box<Work>, mut sighted: Sighted) -> Vec<Reply> {
    let plan = work.task.pod_plan();
    let begun = tokio::select! {
        biased;
        pod = sighted.pod() => Err(created(plan.map(claim_of), pod)),
        begun = context.begin(&work) => begun.map_err(|turned_away| {
            plan.map(|plan| pods::refused(plan, turned_away.to_string())).unwrap_or_default()
        }),
    };
    match begun {
        Ok(()) => Box::pin(perform(context, work.task, sighted)).await,
        Err(replies) => replies,
    }
}

/// The answers to a write that will be asked for again, after a pause.
pub async fn told_later(replies: Vec<Reply>) -> Vec<Reply> {
    tokio::time::sleep(AGAIN_AFTER).await;
    replies
}

/// Makes the calls of a task for which there is a place.
async fn perform(context: Context, task: Task, mut sighted: Sighted) -> Vec<Reply> {
    let claim = task.pod_plan().map(claim_of);
    tokio::select! {
        biased;
        pod = sighted.pod() => created(claim, pod),
        replies = calls::perform(&context, task) => replies,
    }
}

/// The outcome that the pod of a claim was created.
pub fn created(claim: Option<(SlotName, ClaimId)>, pod: PodRef) -> Vec<Reply> {
    let created = claim.map(|(slot, claim)| Outcome::PodCreated { slot, claim, pod });
    created.map(Reply::Outcome).into_iter().collect()
}

/// The slot and the claim that a pod is for.
pub fn claim_of(plan: &PodPlan) -> (SlotName, ClaimId) {
    (plan.slot.clone(), plan.claim.id.clone())
}
