//! Slot objects: claims are written before their pods.

use kube::ResourceExt;
use kube::api::Patch;
use serde_json::{Value, json};

use super::calls::{Failure, api as dynamic, attempt, of_uid, patch_params, post_params};
use super::{Context, Reply};
use crate::cache::{CachedObject, ObjectKey};
use crate::kinds::{self, Custom};
use crate::uid::Version;
use answers::Item;
use answers::wire;
use api::labels::{self, FIELD_MANAGER};
use model::pool::{Claim, ClaimId, Outcome, Resources, Retry, SlotName};

/// How many times a claim is written over what others write to its Slot meanwhile.
const TRIES: u32 = 5;

/// The key of a Slot's object.
pub(super) fn key(slot: &SlotName) -> ObjectKey {
    api::Slot::KIND.object(slot.object_name())
}

/// Makes the Slot with its claim. If the claim was written before (`again`), updates the claim of the Slot that exists.
pub(super) async fn write(
    context: &Context,
    slot: SlotName,
    resources: &Resources,
    claim: Claim,
    again: bool,
) -> Vec<Reply> {
    let key = key(&slot);
    let object = kinds::slot::claimed(&slot, resources, &claim);
    let proc = claim.last.proc_id();
    let outcome =
        if again { rewrite(context, &key, &object).await } else { make(context, &key, &object).await };
    match outcome {
        Ok(known) => {
            let written = Outcome::SlotWritten { slot, claim: claim.id, proc };
            vec![Reply::Seen(key, known), Reply::Outcome(written)]
        }
        Err(failure) => {
            let refused = Outcome::SlotRefused { slot, claim: claim.id, proc, why: failure.to_string() };
            vec![Reply::Outcome(refused)]
        }
    }
}

/// Makes a Slot for a claim, or puts the claim on the Slot of a static slot that has none. If the Slot carries this claim already,
/// an earlier attempt took effect and its answer was lost; the claim may serve another proc by now. If the Slot carries another claim,
/// which may be a former leader's, the Slot is left alone.
async fn make(context: &Context, key: &ObjectKey, object: &api::Slot) -> Result<CachedObject, Failure> {
    let typed: kube::Api<Item<api::Slot>> = kube::Api::all(context.tools.client.clone());
    let params = post_params();
    match attempt(context, || wire::make(&typed, &params, object)).await {
        Ok(made) => Ok(known(made)),
        Err(Failure::AlreadyExists) => {
            let found = readable(attempt(context, || typed.get(&key.name)).await?)?;
            let id = |slot: &api::Slot| slot.spec.claim.as_ref().map(|claim| claim.id.clone());
            let is_free = found.spec.claim.is_none() && object.spec.slot_type == api::SlotType::Static;
            if id(&found) != id(object) && !is_free {
                return Err(Failure::Refused("a Slot of that name carries another claim".to_owned()));
            }
            let Some(patch) = onto(&found, object) else { return Ok(of_slot(&found)) };
            let (params, patch) = (patch_params(FIELD_MANAGER), Patch::Merge(patch));
            attempt(context, || typed.patch(&key.name, &params, &patch)).await.map(known)
        }
        Err(failure) => Err(failure),
    }
}

/// The merge patch that makes the spec of a Slot that was found the spec of `object`. The Slot may be of an earlier layout: nothing of
/// its resources is left. `None` if the spec is the same.
fn onto(found: &api::Slot, object: &api::Slot) -> Option<Value> {
    let spec = answers::merge_patch(&json!(found.spec), &json!(object.spec))?;
    let metadata = json!({"labels": object.metadata.labels, "resourceVersion": found.resource_version()});
    Some(json!({"metadata": metadata, "spec": spec}))
}

/// Updates the claim on the Slot that the operator has seen, whatever somebody edited on the Slot since. If somebody deleted the Slot,
/// makes it anew: a Slot that somebody else made under its name is left alone.
async fn rewrite(context: &Context, key: &ObjectKey, object: &api::Slot) -> Result<CachedObject, Failure> {
    let dynamic = dynamic(context, key);
    let params = patch_params(FIELD_MANAGER);
    let Some(mut seen) = context.identity.clone() else { return make(context, key, object).await };
    for _ in 0..TRIES {
        let patch = Patch::Merge(whole_claim(object, &seen.version));
        match attempt(context, || dynamic.patch(&key.name, &params, &patch)).await {
            Err(Failure::Conflict(_)) => {}
            Err(Failure::NotFound) => return make(context, key, object).await,
            written => return written.map(CachedObject::of),
        }
        match attempt(context, || dynamic.get(&key.name))
            .await
            .map(|found| CachedObject::of(found).identity())
        {
            Ok(found) if found.uid == seen.uid => seen = found,
            Ok(_) | Err(Failure::NotFound) => return make(context, key, object).await,
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Conflict("somebody else writes the Slot again and again".to_owned()))
}

/// The merge patch that makes a Slot's claim this one, if the Slot has this version: fields that only the earlier claim had become
/// null.
fn whole_claim(object: &api::Slot, version: &Version) -> Value {
    let mut spec = json!(object.spec);
    if let Some(claim) = spec.get_mut("claim").and_then(Value::as_object_mut) {
        for field in ["accountingGroup", "negotiator", "autoregroup"] {
            claim.entry(field).or_insert(Value::Null);
        }
    }
    let metadata = json!({"labels": object.metadata.labels, "resourceVersion": version.to_string()});
    json!({"metadata": metadata, "spec": spec})
}

/// The Slot of an answer.
fn readable(answer: Item<api::Slot>) -> Result<api::Slot, Failure> {
    answer.object().map_err(|why| Failure::Refused(format!("the Slot cannot be decoded: {why}")))
}

/// The state of a Slot after a write, as far as the answer can be read.
fn known(answer: Item<api::Slot>) -> CachedObject {
    let metadata = answer.metadata().clone();
    answer.object().map_or_else(|_| CachedObject::new(&metadata, "null"), |slot| of_slot(&slot))
}

fn of_slot(slot: &api::Slot) -> CachedObject {
    CachedObject::new(&slot.metadata, &serde_json::to_string(&slot.status).unwrap_or_default())
}

/// Takes a claim that is over, or one of those `before` it, off a static slot's object, if the object still carries such
/// a claim.
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
            replies.push(Reply::Outcome(Outcome::SlotDeleted { slot, claim, there }));
            replies
        }
        Err(failure) => {
            tracing::warn!(slot = %slot, error = %failure, "a claim was not taken off its Slot");
            vec![Reply::Outcome(Outcome::Failed(Retry::Slot(slot)))]
        }
    }
}

async fn take_off(
    context: &Context,
    key: &ObjectKey,
    is_over: impl Fn(&str) -> bool,
) -> Result<Option<CachedObject>, Failure> {
    let typed: kube::Api<Item<api::Slot>> = kube::Api::all(context.tools.client.clone());
    let found = match attempt(context, || typed.get(&key.name)).await {
        Ok(found) => readable(found)?,
        Err(Failure::NotFound) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    if found.spec.claim.as_ref().is_none_or(|on_it| !is_over(&on_it.id)) {
        return Ok(Some(of_slot(&found)));
    }
    let gone = serde_json::Value::Null;
    let metadata = json!({
        "labels": {labels::JOB_UID: gone, labels::JOB_NAME: gone},
        "resourceVersion": found.resource_version(),
    });
    let patch = Patch::Merge(json!({"metadata": metadata, "spec": {"claim": gone}}));
    let params = patch_params(FIELD_MANAGER);
    match attempt(context, || typed.patch(&key.name, &params, &patch)).await {
        Ok(cleared) => Ok(Some(known(cleared))),
        Err(Failure::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Deletes the Slot that the operator has seen. A Slot that is gone counts as deleted. If there is a Slot of that name that the
/// operator had not seen, the deciders decide again.
pub(super) async fn delete(context: &Context, slot: SlotName, claim: Option<ClaimId>) -> Vec<Reply> {
    let key = key(&slot);
    let mut replies = Vec::new();
    match remove(context, &key, &mut replies).await {
        Ok(there) => {
            let deleted = |claim| Reply::Outcome(Outcome::SlotDeleted { slot, claim, there });
            replies.extend(claim.map(deleted));
        }
        Err(failure) => {
            tracing::warn!(slot = %slot, error = %failure, "a Slot was not deleted");
            replies.push(Reply::Outcome(Outcome::Failed(Retry::Slot(slot))));
        }
    }
    replies
}

/// Deletes the Slot that the operator has seen, and returns whether the Slot was there. A Slot that the operator had not seen is shown
/// by a reply, and stays.
async fn remove(context: &Context, key: &ObjectKey, replies: &mut Vec<Reply>) -> Result<bool, Failure> {
    let api = dynamic(context, key);
    if let Some(seen) = &context.identity {
        let uid = seen.uid.to_string();
        let params = of_uid(&uid);
        let removed = attempt(context, || wire::remove(&api, &key.name, &params)).await.map(drop);
        if let Ok(()) | Err(Failure::NotFound | Failure::Conflict(_)) = removed {
            replies.push(Reply::Forgotten(key.clone(), uid));
        }
        match removed {
            Err(Failure::Conflict(_)) => {}
            Err(Failure::NotFound) => return Ok(false),
            removed => return removed.map(|()| true),
        }
    }
    match attempt(context, || api.get(&key.name)).await {
        Ok(found) => {
            replies.push(Reply::Seen(key.clone(), CachedObject::of(found)));
            Err(Failure::Conflict("the operator had not seen the Slot that has the name now".to_owned()))
        }
        Err(Failure::NotFound) => Ok(false),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::{JobKey, NegotiatorId, Time, limits::Wants};

    fn claim(group: Option<&str>, negotiator: Option<&str>) -> Claim {
        Claim {
            id: "c".into(),
            submitter: "alice".into(),
            group: group.map(Into::into),
            negotiator: NegotiatorId::from(negotiator),
            regrouped: false,
            weight: 1.0,
            limits: Wants::default(),
            since: Time::from_secs(0),
            last: model::pool::Assignment {
                job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
                cluster_id: 1,
                proc: 0,
            },
        }
    }

    /// The layout was changed after the Slot was written: the slot has fewer CPUs now, and no device.
    #[test]
    fn nothing_of_an_earlier_layout_is_left() {
        let name = SlotName::parse("slot3@n0").unwrap();
        let gpu = model::pool::ResourceName::from("nvidia.com/gpu");
        let earlier = Resources {
            cpus: 3,
            extended: [(gpu.clone(), 1), ("pods".into(), 1)].into(),
            devices: [(gpu, vec!["GPU-0".into()])].into(),
            ..Resources::default()
        };
        let now = Resources { cpus: 2, extended: [("pods".into(), 1)].into(), ..Resources::default() };
        let mut found = kinds::slot::claimed(&name, &earlier, &claim(None, None));
        found.spec.claim = None;
        let object = kinds::slot::claimed(&name, &now, &claim(None, None));
        let written = &onto(&found, &object).unwrap()["spec"];
        let resources = json!({"cpus": 2, "devices": null, "extended": {"nvidia.com/gpu": null}});
        assert_eq!((&written["resources"], &written["claim"]), (&resources, &json!(object.spec.claim)));
    }

    /// A claim without a group or a negotiator may replace a claim that has them: the patch then sets these fields to
    /// null.
    #[test]
    fn nothing_of_the_claim_before_is_left() {
        let name = SlotName::parse("slot1_1@n1").unwrap();
        for (group, negotiator) in [(None, None), (Some("physics"), Some("gpu"))] {
            let object = kinds::slot::claimed(&name, &Resources::default(), &claim(group, negotiator));
            let patch = whole_claim(&object, &"7".into());
            let written = &patch["spec"]["claim"];
            assert_eq!(written.get("accountingGroup"), Some(&json!(group)));
            assert_eq!(written.get("negotiator"), Some(&json!(negotiator)));
        }
    }
}
