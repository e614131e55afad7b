//! Seals into a new job who created the job, where the SubmitPolicy asks for this.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation};
use kube::api::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use serde_json::{Value, json};

use api::labels::SUBMITTED_BY;
use controller::seal::Key;
use model::pool::{OwnerRule, Requester, Time};

use crate::known::OtherObjects;
use crate::review::{Review, answer, is_job};

/// The longest name of a user that is sealed, in bytes: no longer name is an owner.
const LONGEST_USER: usize = 1024;

/// Answers a request: a job that is created gets a seal, and a job that is edited keeps the seal that it has. Nothing is ever
/// refused. Without a key, or while the SubmitPolicy takes the namespace for the owner, a new job has no seal, whatever its author
/// wrote. As long as no policy has been read since the start, a new job is sealed with the user alone, without groups.
pub fn seal(review: &Review, known: &OtherObjects, key: Option<&Key>, now: Time) -> Review {
    let Some(request) = &review.request else {
        return answer(AdmissionResponse::invalid("the AdmissionReview has no request"));
    };
    let allowed = AdmissionResponse::from(request);
    let Some(job) = request.object.as_ref().filter(|_| is_job(request)) else { return answer(allowed) };
    let seal = match request.operation {
        Operation::Create => key.and_then(|key| new_seal(request, job, known, key, now)),
        Operation::Update => request.old_object.as_ref().and_then(written).map(str::to_owned),
        _ => return answer(allowed),
    };
    let patch = patch(job, seal.as_deref());
    if patch.0.is_empty() {
        return answer(allowed);
    }
    answer(allowed.with_patch(patch).unwrap_or_else(AdmissionResponse::invalid))
}

/// Who sends a request, with the groups that the rule can use.
pub(crate) fn requester(request: &AdmissionRequest<DynamicObject>, rule: &OwnerRule) -> Requester {
    let user = request.user_info.username.as_deref().unwrap_or_default();
    let groups = request.user_info.groups.iter().flatten().map(String::as_str);
    Requester { user: user.into(), groups: rule.usable_groups(groups) }
}

fn new_seal(
    request: &AdmissionRequest<DynamicObject>,
    job: &DynamicObject,
    known: &OtherObjects,
    key: &Key,
    now: Time,
) -> Option<String> {
    let rule = known.before().owner_rule();
    // While no policy is known yet, the operator may ask later.
    let asked = rule.asks_who() || !known.is_complete();
    let requester = asked.then(|| requester(request, &rule))?;
    if requester.user.len() > LONGEST_USER {
        return None;
    }
    let metadata = &job.metadata;
    let namespace = request.namespace.as_deref().or(metadata.namespace.as_deref())?;
    let name = metadata.name.as_deref().unwrap_or_default();
    Some(key.seal(&requester, (namespace, name, metadata.generate_name.as_deref().unwrap_or_default()), now))
}

fn written(job: &DynamicObject) -> Option<&str> {
    job.metadata.annotations.as_ref()?.get(SUBMITTED_BY).map(String::as_str)
}

/// The patch that gives a job this seal, or none. Empty if the job has the right one.
fn patch(job: &DynamicObject, seal: Option<&str>) -> Patch {
    let all = PointerBuf::from_tokens(["metadata", "annotations"]);
    let one = PointerBuf::from_tokens(["metadata", "annotations", SUBMITTED_BY]);
    let add = |path: PointerBuf, value: Value| PatchOperation::Add(AddOperation { path, value });
    Patch(match seal {
        _ if seal == written(job) => Vec::new(),
        Some(seal) if job.metadata.annotations.is_none() => vec![add(all, json!({SUBMITTED_BY: seal}))],
        Some(seal) => vec![add(one, json!(seal))],
        None => vec![PatchOperation::Remove(RemoveOperation { path: one })],
    })
}

#[cfg(test)]
#[path = "tests/sealing.rs"]
mod tests;
