//! Slot objects: claims are written before their pods.

use kube::ResourceExt;
use kube::api::Patch;
use serde_json::{Value, json};

use super::calls::{Failure, api as dynamic, attempt, patch_params, post_params};
use super::{Context, Reply};
use crate::cache::{Known, ObjectKey};
use crate::kinds::{self, Custom};
use api::labels::{self, FIELD_MANAGER};
use model::pool::{Claim, ClaimId, Event, Outcome, Resources, Retry, SlotName};

/// The key of a Slot's object.
pub(super) fn key(slot: &SlotName) -> ObjectKey {
    api::Slot::KIND.object(slot.object_name())
}

/// Makes the Slot with its claim, or, where it was written before, brings the claim of the one that is there up to date.
pub(super) async fn write(
    context: &Context,
    slot: SlotName,
    resources: &Resources,
    claim: Claim,
    again: bool,
) -> Vec<Reply> {
    let key = key(&slot);
    let object = kinds::slot::claimed(&slot, resources, &claim);
    let proc = claim.proc_id();
    let outcome =
        if again { rewrite(context, &key, &object).await } else { make(context, &key, &object).await };
    match outcome {
        Ok(known) => {
            let written = Outcome::SlotWritten { slot, claim: claim.id, proc };
            vec![Reply::Seen(key, known), Reply::Event(Event::Outcome(written))]
        }
        Err(failure) => {
            let refused = Outcome::SlotRefused { slot, claim: claim.id, proc, why: failure.to_string() };
            vec![Reply::Event(Event::Outcome(refused))]
        }
    }
}

/// Makes a Slot for a new claim, or puts the claim on a static slot's that has none. One that is there and carries this
/// claim is ours, and the answer was lost; one that carries another may be a former leader's, and is left alone.
async fn make(context: &Context, key: &ObjectKey, object: &api::Slot) -> Result<Known, Failure> {
    let typed: kube::Api<api::Slot> = kube::Api::all(context.client.clone());
    let params = post_params();
    match attempt(|| typed.create(&params, object)).await {
        Ok(made) => Ok(known(&made)),
        Err(Failure::AlreadyExists) => {
            let found = attempt(|| typed.get(&key.name)).await?;
            let id = |slot: &api::Slot| slot.spec.claim.as_ref().map(|claim| claim.id.clone());
            if id(&found) == id(object) {
                return Ok(known(&found));
            }
            if found.spec.claim.is_some() || object.spec.slot_type != api::SlotType::Static {
                return Err(Failure::Refused("a Slot of that name carries another claim".to_owned()));
            }
            let version = found.resource_version();
            let metadata = json!({"labels": object.metadata.labels, "resourceVersion": version});
            let patch = Patch::Merge(json!({"metadata": metadata, "spec": object.spec}));
            let params = patch_params(FIELD_MANAGER);
            attempt(|| typed.patch(&key.name, &params, &patch)).await.map(|claimed| known(&claimed))
        }
        Err(failure) => Err(failure),
    }
}

/// Brings the claim up to date, and makes the Slot anew if somebody deleted it.
async fn rewrite(context: &Context, key: &ObjectKey, object: &api::Slot) -> Result<Known, Failure> {
    let dynamic = dynamic(context, key);
    let params = patch_params(FIELD_MANAGER);
    let patch = Patch::Merge(whole_claim(object));
    match attempt(|| dynamic.patch(&key.name, &params, &patch)).await {
        Ok(found) => Ok(Known::of(&found)),
        Err(Failure::NotFound) => make(context, key, object).await,
        Err(failure) => Err(failure),
    }
}

/// What merged into a Slot makes its claim this one: what the claim before it had and this one has not goes.
fn whole_claim(object: &api::Slot) -> Value {
    let mut spec = json!(object.spec);
    if let Some(claim) = spec.get_mut("claim").and_then(Value::as_object_mut) {
        for field in ["accountingGroup", "negotiator", "autoregroup"] {
            claim.entry(field).or_insert(Value::Null);
        }
    }
    json!({"metadata": {"labels": object.metadata.labels}, "spec": spec})
}

fn known(slot: &api::Slot) -> Known {
    Known {
        uid: slot.uid().unwrap_or_default(),
        version: slot.resource_version().unwrap_or_default(),
        status: serde_json::to_value(&slot.status).unwrap_or_default(),
        finalizers: Vec::new(),
    }
}

/// Takes a claim that is over, or one before it, off a static slot's object, if it is still on it.
pub(super) async fn clear(
    context: &Context,
    slot: SlotName,
    claim: ClaimId,
    before: &[ClaimId],
) -> Vec<Reply> {
    let key = key(&slot);
    let over = |id: &str| id == claim.as_str() || before.iter().any(|before| id == before.as_str());
    match take_off(context, &key, over).await {
        Ok(known) => {
            let mut replies: Vec<Reply> =
                known.into_iter().map(|known| Reply::Seen(key.clone(), known)).collect();
            let there = !replies.is_empty();
            replies.push(Reply::Event(Event::Outcome(Outcome::SlotDeleted { slot, claim, there })));
            replies
        }
        Err(failure) => {
            tracing::warn!(slot = %slot, error = %failure, "a claim was not taken off its Slot");
            vec![Reply::Event(Event::Outcome(Outcome::Failed(Retry::Slot(slot))))]
        }
    }
}

async fn take_off(
    context: &Context,
    key: &ObjectKey,
    is_over: impl Fn(&str) -> bool,
) -> Result<Option<Known>, Failure> {
    let typed: kube::Api<api::Slot> = kube::Api::all(context.client.clone());
    let found = match attempt(|| typed.get(&key.name)).await {
        Ok(found) => found,
        Err(Failure::NotFound) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    if found.spec.claim.as_ref().is_none_or(|on_it| !is_over(&on_it.id)) {
        return Ok(Some(known(&found)));
    }
    let gone = serde_json::Value::Null;
    let metadata = json!({
        "labels": {labels::JOB_UID: gone, labels::JOB_NAME: gone},
        "resourceVersion": found.resource_version(),
    });
    let patch = Patch::Merge(json!({"metadata": metadata, "spec": {"claim": gone}}));
    let params = patch_params(FIELD_MANAGER);
    match attempt(|| typed.patch(&key.name, &params, &patch)).await {
        Ok(cleared) => Ok(Some(known(&cleared))),
        Err(Failure::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Deletes the Slot. One that is gone is as good as deleted.
pub(super) async fn delete(context: &Context, slot: SlotName, claim: Option<ClaimId>) -> Vec<Reply> {
    let key = key(&slot);
    let api = dynamic(context, &key);
    let params = kube::api::DeleteParams::background();
    let mut replies = Vec::new();
    match attempt(|| api.delete(&key.name, &params)).await {
        Ok(either) => {
            let uid = either.left().map(|object| Known::of(&object).uid).unwrap_or_default();
            replies.push(Reply::Forgotten(key, uid));
        }
        Err(Failure::NotFound) => {}
        Err(failure) => {
            tracing::warn!(slot = %slot, error = %failure, "a Slot was not deleted");
            return vec![Reply::Event(Event::Outcome(Outcome::Failed(Retry::Slot(slot))))];
        }
    }
    let there = !replies.is_empty();
    let deleted = |claim| Reply::Event(Event::Outcome(Outcome::SlotDeleted { slot, claim, there }));
    replies.extend(claim.map(deleted));
    replies
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::{JobKey, NegotiatorId, Time, limits::Wants};

    /// A claim of nobody's group may come after one of a group's on the same slot.
    #[test]
    fn nothing_of_the_claim_before_is_left() {
        let claim = |group: Option<&str>, negotiator: Option<&str>| Claim {
            id: "c".into(),
            submitter: "alice".into(),
            group: group.map(Into::into),
            negotiator: NegotiatorId::from(negotiator),
            regrouped: false,
            weight: 1.0,
            limits: Wants::default(),
            since: Time::from_secs(0),
            job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
            cluster: 1,
            proc: 0,
        };
        let name = SlotName::parse("slot1_1@n1").unwrap();
        for (group, negotiator) in [(None, None), (Some("physics"), Some("gpu"))] {
            let object = kinds::slot::claimed(&name, &Resources::default(), &claim(group, negotiator));
            let patch = whole_claim(&object);
            let written = &patch["spec"]["claim"];
            assert_eq!(written.get("accountingGroup"), Some(&json!(group)));
            assert_eq!(written.get("negotiator"), Some(&json!(negotiator)));
        }
    }
}
