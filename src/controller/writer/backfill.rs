//! Backfill pods: made for slots that nobody has claimed, and deleted when something else wants what they hold.

use kube::ResourceExt;
use kube::api::Api;

use super::calls::{Failure, attempt, once, post_params};
use super::pods::{is_deleted, pods};
use super::{Context, Reply};
use crate::kinds::pod::SlimPod;
use crate::render;
use answers::Item;
use answers::wire;
use api::labels;
use model::pool::backfill::{Plan, pod_name};
use model::pool::{MachineName, Outcome, PodRef, Retry, SlotName};

/// Makes a slot's backfill pod. If there is a pod of that name, made for the same slot by the same template, then an
/// earlier creation took effect and its answer was lost: that pod counts as made.
pub(super) async fn create(context: &Context, plan: &Plan) -> Vec<Reply> {
    let slot = plan.slot.clone();
    let outcome = match make(context, plan).await {
        Ok(()) => Outcome::BackfillMade(slot),
        Err((why, certain)) => Outcome::BackfillRefused { slot, why, certain },
    };
    vec![Reply::Outcome(outcome)]
}

/// Makes the pod. The error says why not, and whether it is certain that no pod was made.
async fn make(context: &Context, plan: &Plan) -> Result<(), (String, bool)> {
    let pod = render::backfill(plan).map_err(|error| (error.to_string(), true))?;
    let api = pods(&context.tools.client, &plan.template.namespace);
    let params = post_params();
    // There is one attempt. By the time of a second one the pod may have been seen and ended, and its resources be
    // another's. The deciders ask again.
    let limit = context.lane.limit();
    match once(context, limit, wire::make_for_metadata(&api, &params, &pod)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => {
            existing(context, &api, plan).await
        }
        Ok(Err(kube::Error::Api(status))) => Err((status.message.clone(), status.code < 500)),
        Ok(Err(error)) => Err((error.to_string(), false)),
        Err(_) => Err((format!("no answer within {limit:?}"), false)),
    }
}

/// Whether the pod that has the name already is the one that was asked for.
async fn existing(context: &Context, api: &Api<Item<SlimPod>>, plan: &Plan) -> Result<(), (String, bool)> {
    let name = plan.pod_name();
    let found = match attempt(context, || api.get(&name)).await {
        Ok(found) => found,
        Err(Failure::NotFound) => {
            return Err(("an earlier pod of that name was just deleted".to_owned(), true));
        }
        Err(failure) => return Err((failure.to_string(), false)),
    };
    if !is_of(&found, &plan.slot) {
        return Err((
            format!("a pod {name} exists that is no backfill pod of {}; delete it", plan.slot),
            true,
        ));
    }
    let made_by_it = says(&found, labels::BACKFILL_TEMPLATE, &plan.template.mark);
    let over = found.metadata().deletion_timestamp.is_some() || has_ended(found);
    if over || !made_by_it {
        return Err((format!("an earlier pod {name} has not gone yet"), true));
    }
    Ok(())
}

fn says(pod: &Item<SlimPod>, key: &str, value: &str) -> bool {
    pod.annotations().get(key).is_some_and(|said| said == value)
}

/// Whether a pod was made for a slot.
fn is_of(pod: &Item<SlimPod>, slot: &SlotName) -> bool {
    pod.labels().contains_key(labels::BACKFILL) && says(pod, labels::SLOT, &slot.to_string())
}

fn has_ended(pod: Item<SlimPod>) -> bool {
    pod.object().is_ok_and(|pod| pod.has_ended())
}

/// Reads whether a slot's backfill pod exists and has not ended. If the read fails, there is no reply, and the deciders
/// ask again.
pub(super) async fn look(context: &Context, slot: SlotName, namespace: &str) -> Vec<Reply> {
    let (api, name) = (pods(&context.tools.client, namespace), pod_name(&slot));
    let missing = match attempt(context, || api.get(&name)).await {
        Ok(found) => !is_of(&found, &slot) || has_ended(found),
        Err(Failure::NotFound) => true,
        Err(_) => false,
    };
    if missing { vec![Reply::Outcome(Outcome::BackfillMissing(slot))] } else { Vec::new() }
}

/// Deletes a backfill pod, with the grace period that is given, or else its own.
pub(super) async fn delete(
    context: &Context,
    pod: PodRef,
    machine: MachineName,
    (grace, off): (Option<u32>, bool),
) -> Vec<Reply> {
    if is_deleted(context, &pod, grace, off.then_some(&machine)).await {
        return Vec::new();
    }
    vec![Reply::Outcome(Outcome::Failed(Retry::Backfill(machine, pod.uid)))]
}
