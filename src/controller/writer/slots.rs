//! Slot objects: claims are written before their pods.

use kube::api::{Patch, PostParams};
use serde_json::json;

use super::calls::{Failure, api, attempt, patch_params, post_params};
use super::{Context, Reply};
use crate::api::labels::FIELD_MANAGER;
use crate::controller::cache::{Kind, Known, ObjectKey};
use crate::controller::render;
use crate::pool::{Claim, Event, Outcome, Resources, SlotName};

/// The key of a Slot's object.
pub(super) fn key(slot: &SlotName) -> ObjectKey {
    ObjectKey { kind: Kind::Slot, namespace: None, name: slot.object_name() }
}

/// Makes the Slot with its claim, or brings the claim of the one that is there up to date.
pub(super) async fn write(context: &Context, slot: SlotName, resources: &Resources, claim: Claim) -> Vec<Reply> {
    let key = key(&slot);
    match put(context, &key, &slot, resources, &claim).await {
        Ok(known) => {
            let written = Outcome::SlotWritten { slot, claim: claim.id, proc: claim.proc };
            vec![Reply::Seen(key, known), Reply::Event(Event::Outcome(written))]
        }
        Err(failure) => {
            let refused = Outcome::SlotRefused { slot, claim: claim.id, why: failure.to_string() };
            vec![Reply::Event(Event::Outcome(refused))]
        }
    }
}

async fn put(
    context: &Context,
    key: &ObjectKey,
    slot: &SlotName,
    resources: &Resources,
    claim: &Claim,
) -> Result<Known, Failure> {
    let object = render::slot(slot, resources, claim);
    let typed: kube::Api<crate::api::Slot> = kube::Api::all(context.client.clone());
    let dynamic = api(context, key);
    let params: PostParams = post_params();
    let patched = patch_params(FIELD_MANAGER);
    let patch = Patch::Merge(json!({"spec": object.spec}));
    // A claim that is used again finds its Slot; a new one does not. The wrong guess costs one call more.
    let mut update = claim.reuses > 0;
    for _ in 0..4 {
        let outcome = if update {
            attempt(|| dynamic.patch(&key.name, &patched, &patch)).await.map(|found| Known::of(&found))
        } else {
            attempt(|| typed.create(&params, &object)).await.map(|made| known(&made))
        };
        match outcome {
            Err(Failure::AlreadyExists) => update = true,
            Err(Failure::NotFound) if update => update = false,
            Err(Failure::Conflict(_)) => {}
            outcome => return outcome,
        }
    }
    Err(Failure::Conflict("the Slot keeps changing".to_owned()))
}

fn known(slot: &crate::api::Slot) -> Known {
    use kube::ResourceExt;
    Known {
        uid: slot.uid().unwrap_or_default(),
        version: slot.resource_version().unwrap_or_default(),
        status: serde_json::to_value(&slot.status).unwrap_or_default(),
        finalizers: Vec::new(),
    }
}

/// Deletes the Slot. One that is gone is as good as deleted; one that cannot be deleted now is found again at the next
/// start, without a job, and deleted then.
pub(super) async fn delete(context: &Context, slot: SlotName) -> Vec<Reply> {
    let key = key(&slot);
    let api = api(context, &key);
    let params = kube::api::DeleteParams::background();
    match attempt(|| api.delete(&key.name, &params)).await {
        Ok(either) => {
            let uid = either.left().map(|object| Known::of(&object).uid).unwrap_or_default();
            vec![Reply::Forgotten(key, uid)]
        }
        Err(Failure::NotFound) => Vec::new(),
        Err(failure) => {
            tracing::warn!(slot = %slot, error = %failure, "a Slot was not deleted");
            Vec::new()
        }
    }
}
