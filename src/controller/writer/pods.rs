//! Pods: made under a written claim, deleted with a grace period, and untracked once their end is recorded.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ObjectMeta, Patch};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::calls::{Failure, attempt, attempt_to_create, of_uid, patch_params, post_params};
use super::{Context, Reply, nodes};
use crate::kinds::pod::SlimPod;
use crate::render::{self, KeptTemplate};
use answers::Item;
use answers::wire;
use api::labels;
use model::pool::{MachineName, Outcome, PodPlan, PodRef, Retry, SlotName, Vacate};

pub(super) fn pods(client: &Client, namespace: &str) -> Api<Item<SlimPod>> {
    Api::namespaced(client.clone(), namespace)
}

/// Makes a proc's pod. If there is a pod of that name, made under the same claim, then an earlier creation took effect
/// and its answer was lost: that pod counts as made.
pub(super) async fn create(
    context: &Context,
    plan: PodPlan,
    template: Option<Arc<KeptTemplate>>,
) -> Vec<Reply> {
    match make(context, &plan, template).await {
        Ok(pod) => {
            let (slot, claim) = (plan.slot, plan.claim.id);
            vec![Reply::Outcome(Outcome::PodCreated { slot, claim, pod })]
        }
        Err(why) => refused(&plan, why),
    }
}

/// The replies for a proc's pod that was not created, with the reason `why`.
pub(super) fn refused(plan: &PodPlan, why: String) -> Vec<Reply> {
    let (slot, claim, proc) = (plan.slot.clone(), plan.claim.id.clone(), plan.claim.last.proc_id());
    vec![Reply::Outcome(Outcome::PodRefused { slot, claim, proc, why })]
}

async fn make(
    context: &Context,
    plan: &PodPlan,
    template: Option<Arc<KeptTemplate>>,
) -> Result<PodRef, String> {
    let template = template.and_then(|kept| kept.of_proc(plan.claim.last.cluster_id, plan.claim.last.proc));
    let template = template.ok_or("the operator has no usable template of the job; the job may be gone")?;
    let pod = render::pod(&template, plan).map_err(|error| error.to_string())?;
    let api = pods(&context.tools.client, &plan.claim.last.job.namespace);
    let params = post_params();
    match attempt_to_create(context, || wire::make_for_metadata(&api, &params, &pod)).await {
        Ok(made) => Ok(reference(&made)),
        Err(Failure::AlreadyExists) => {
            existing(context, &api, plan, || "an earlier pod of that name was just deleted".to_owned()).await
        }
        // One of the attempts may have taken effect.
        Err(failure @ Failure::GivenUp { .. }) => existing(context, &api, plan, || failure.to_string()).await,
        Err(failure) => Err(failure.to_string()),
    }
}

/// The pod that has the planned name, if the pod was made for this proc under this claim. The error says what stands
/// in the way; the error is `none()` if no pod has the name.
async fn existing(
    context: &Context,
    api: &Api<Item<SlimPod>>,
    plan: &PodPlan,
    none: impl Fn() -> String,
) -> Result<PodRef, String> {
    let name = plan.claim.pod_name();
    let found = match attempt(context, || api.get(&name)).await {
        Ok(found) => found,
        Err(Failure::NotFound) => return Err(none()),
        Err(failure) => return Err(failure.to_string()),
    };
    let same_job =
        found.labels().get(labels::JOB_UID).map(String::as_str) == Some(plan.claim.last.job.uid.as_str());
    let same_claim =
        found.annotations().get(labels::CLAIM).map(String::as_str) == Some(plan.claim.id.as_str());
    let same_proc = found.labels().get(labels::PROC).map(String::as_str)
        == Some(plan.claim.last.proc.to_string().as_str());
    let metadata = found.metadata().clone();
    // A pod that cannot be decoded exists and counts as not ended: its watch cannot tell more, either.
    let ended = found.object().is_ok_and(|pod| pod.has_ended());
    let over = metadata.deletion_timestamp.is_some() || ended;
    // A pod that is over and still tracked is this claim's too: it ended before the operator heard that it was made.
    let tracked =
        metadata.finalizers.iter().flatten().any(|finalizer| finalizer == labels::TRACKING_FINALIZER);
    if same_job && same_claim && same_proc && (tracked || !over) {
        return Ok(reference(&metadata));
    }
    if same_job {
        return Err(format!("an earlier pod {name} of this proc has not gone yet"));
    }
    Err(format!("a pod {name} exists that is not this job's; delete it, or give the job another name"))
}

fn reference(pod: &ObjectMeta) -> PodRef {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
    PodRef {
        namespace: text(&pod.namespace),
        name: text(&pod.name),
        uid: pod.uid.as_deref().unwrap_or_default().into(),
    }
}

/// Reads whether a pod exists. If the read fails, there is no reply, and the deciders ask again.
pub(super) async fn look(context: &Context, pod: PodRef, slot: SlotName) -> Vec<Reply> {
    let api = pods(&context.tools.client, &pod.namespace);
    let missing = match attempt(context, || api.get(&pod.name)).await {
        Ok(found) => found.uid().as_deref() != Some(pod.uid.as_str()),
        Err(Failure::NotFound) => true,
        Err(_) => false,
    };
    if missing { vec![Reply::Outcome(Outcome::PodMissing { slot, pod })] } else { Vec::new() }
}

/// How a pod is deleted.
#[derive(Debug, Default)]
pub(super) struct Deletion {
    /// The grace period in seconds, if it is not the pod's own.
    pub(super) grace: Option<u32>,
    /// The grace period of an earlier deletion, where this one shortens it.
    pub(super) granted: Option<Duration>,
    /// The pod is deleted only while this node is off.
    pub(super) off: Option<MachineName>,
}

/// Writes on a pod why it is evicted, and deletes the pod. If the pod was not deleted, the deciders decide again.
pub(super) async fn evict(
    context: &Context,
    pod: PodRef,
    slot: Option<SlotName>,
    deletion: &Deletion,
    why: Option<Vacate>,
) -> Vec<Reply> {
    if let Some(why) = why {
        say_why(context, &pod, &why).await;
    }
    let kept = match deletion.granted {
        Some(grace) => keep_grace(context, &pod, grace).await,
        None => true,
    };
    if kept && is_deleted(context, &pod, deletion.grace, deletion.off.as_ref()).await {
        return Vec::new();
    }
    vec![Reply::Outcome(Outcome::Failed(Retry::Pod(pod.uid, slot)))]
}

/// Writes on a pod for how long its kubelet may let it run. Returns false if the API server refuses.
async fn keep_grace(context: &Context, pod: &PodRef, grace: Duration) -> bool {
    let annotations = json!({labels::GRANTED_SECONDS: grace.as_secs().to_string()});
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid.as_str(), "annotations": annotations}}));
    let (api, params) = (pods(&context.tools.client, &pod.namespace), patch_params(labels::FIELD_MANAGER));
    match attempt(context, || wire::patch_for_metadata(&api, &pod.name, &params, &patch)).await {
        Ok(_) | Err(Failure::NotFound) => true,
        Err(failure) => {
            tracing::warn!(pod = %pod.name, error = %failure, "the grace period of a pod was not kept");
            false
        }
    }
}

/// Deletes a pod. A pod that is gone, or replaced by another, counts as deleted. Returns false if the API server refuses,
/// or if the node that is to be off is not. The node is read in each attempt: it may come back in the pause between two.
pub(super) async fn is_deleted(
    context: &Context,
    pod: &PodRef,
    grace: Option<u32>,
    off: Option<&MachineName>,
) -> bool {
    let api = pods(&context.tools.client, &pod.namespace);
    let mut params = of_uid(pod.uid.as_str());
    params.grace_period_seconds = grace;
    let delete = || async {
        if let Some(node) = off
            && !nodes::is_off(context, node).await?
        {
            return Ok(false);
        }
        wire::remove(&api, &pod.name, &params).await.map(|_| true)
    };
    match attempt(context, delete).await {
        Ok(true) | Err(Failure::NotFound | Failure::Conflict(_)) => true,
        Ok(false) => {
            tracing::info!(pod = %pod.name, "a pod is not deleted by force: its node is back");
            false
        }
        Err(failure) => {
            tracing::warn!(pod = %pod.name, error = %failure, "a pod was not deleted");
            false
        }
    }
}

/// Writes on a pod why it is evicted, for those who read the pod. The pod is deleted even if that fails.
async fn say_why(context: &Context, pod: &PodRef, why: &Vacate) {
    let api = pods(&context.tools.client, &pod.namespace);
    let patch = Patch::Strategic(render::disruption_target(pod, why, context.tools.clock.timestamp()));
    let params = patch_params(labels::STATUS_MANAGER);
    match attempt(context, || api.patch_status(&pod.name, &params, &patch)).await {
        Ok(_) | Err(Failure::NotFound) => {}
        Err(failure) => {
            tracing::warn!(pod = %pod.name, error = %failure, "a pod is evicted without a word why");
        }
    }
}

/// Writes annotations on a pod by which the agent of its node acts. A pod that is gone needs none.
pub(super) async fn ask_agent(
    context: &Context,
    pod: PodRef,
    slot: SlotName,
    annotations: Value,
) -> Vec<Reply> {
    let api = pods(&context.tools.client, &pod.namespace);
    // The uid makes the patch invalid for a pod made later under the same name.
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid.as_str(), "annotations": annotations}}));
    let params = patch_params(labels::FIELD_MANAGER);
    match attempt(context, || wire::patch_for_metadata(&api, &pod.name, &params, &patch)).await {
        Ok(_) | Err(Failure::NotFound) => Vec::new(),
        Err(failure) => {
            tracing::warn!(pod = %pod.name, error = %failure, "an agent was not asked about a pod");
            vec![Reply::Outcome(Outcome::Failed(Retry::Pod(pod.uid, Some(slot))))]
        }
    }
}

/// Untracks a pod: takes the tracking finalizer off, and leaves other finalizers. Also deletes the pod if `also_delete`.
///
/// The same patch empties the pod's `managedFields`. Updating `managedFields` would be a fifth of the API server's work for the
/// patch, and they are half of the text of an ended pod, which is kept for people to read.
pub(super) async fn untrack(context: &Context, pod: PodRef, also_delete: bool) -> Vec<Reply> {
    let api = pods(&context.tools.client, &pod.namespace);
    // The uid makes the patch invalid for a pod made later under the same name.
    let patch = Patch::Strategic(json!({"metadata": {
        "uid": pod.uid.as_str(),
        "$deleteFromPrimitiveList/finalizers": [labels::TRACKING_FINALIZER],
        "managedFields": [{}],
    }}));
    let params = patch_params(labels::FIELD_MANAGER);
    match attempt(context, || wire::patch_for_metadata(&api, &pod.name, &params, &patch)).await {
        Ok(_) => {}
        // A conflict does not mean that the pod is gone: the server reports one if others wrote the pod at each of its
        // own attempts.
        Err(Failure::NotFound) => return Vec::new(),
        Err(failure) => {
            tracing::warn!(pod = %pod.name, error = %failure, "a pod was not let go");
            return vec![Reply::Outcome(Outcome::Failed(Retry::Pod(pod.uid, None)))];
        }
    }
    let deletion = Deletion { grace: Some(0), ..Deletion::default() };
    if also_delete { evict(context, pod, None, &deletion, None).await } else { Vec::new() }
}
