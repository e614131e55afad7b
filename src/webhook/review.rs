//! Decides on one request of the API server.

use kube::api::DynamicObject;
use kube::core::admission::{
    AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1, META_KIND, Operation,
};
use thiserror::Error;

use answers::{Item, Undecodable};
use api::{GROUP, labels};
use model::pool::Problem;

use crate::known::OtherObjects;
use crate::verdict::verdict;

/// A request of the API server, or the answer.
pub type Review = AdmissionReview<DynamicObject>;

/// A request as it comes. The review does not read the objects' `managedFields`: whoever may write an object may put a time there that no
/// calendar has, or a text that nests for ever, and must not get past the webhook by that.
type Received = AdmissionReview<Item<DynamicObject>>;

/// The largest body of a request, in bytes. etcd keeps objects of up to 1.5 MiB, and an update has the object before, too.
pub const MOST_BYTES: usize = 3 << 20;
/// The longest warning, in characters: the API server may cut longer warnings off.
const WARNING: usize = 256;
/// The most warnings. The API server may drop more.
const WARNINGS: usize = 16;
/// The longest message of a refusal, in characters: that of the longest condition.
const MESSAGE: usize = 4096;

/// Why a body is not a request that can be answered.
#[derive(Debug, Error)]
pub enum Malformed {
    /// The body is not a review.
    #[error("the body is not an AdmissionReview: {0}")]
    NotAReview(#[from] serde_json::Error),
    /// The review is of another version.
    #[error(
        "{api_version} {kind} is not {META_API_VERSION_V1} {META_KIND}, the only kind of request that is answered"
    )]
    OtherVersion {
        /// The version that the body gives.
        api_version: String,
        /// The kind that the body gives.
        kind: String,
    },
    /// The review asks nothing.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// The object, or the object before, cannot be decoded. The answer to the request is inside.
    #[error("the object cannot be decoded")]
    Object(Box<Review>),
}

/// Reads the body of a request.
///
/// # Errors
/// When the body is not a review with a request.
pub fn read(body: &[u8]) -> Result<Review, Malformed> {
    let Received { types, request, response } = serde_json::from_slice(body)?;
    if types.api_version != META_API_VERSION_V1 || types.kind != META_KIND {
        return Err(Malformed::OtherVersion { api_version: types.api_version, kind: types.kind });
    }
    let request = decoded(request.ok_or(Malformed::NoRequest)?)?;
    Ok(Review { types, request: Some(request), response })
}

/// The request with its objects decoded.
///
/// # Errors
/// When one of them cannot be decoded. A write that only lets an object go is allowed even so; any other is refused, since nobody can
/// judge it.
fn decoded(
    request: AdmissionRequest<Item<DynamicObject>>,
) -> Result<AdmissionRequest<DynamicObject>, Malformed> {
    let harmless =
        request.object.as_ref().is_none_or(|object| object.metadata().deletion_timestamp.is_some())
            || request.sub_resource.is_some();
    let decode = |item: Option<Item<DynamicObject>>| item.map(Item::object).transpose();
    let objects = decode(request.object).and_then(|object| Ok((object, decode(request.old_object)?)));
    let (object, old_object, wrong) = match objects {
        Ok((object, old_object)) => (object, old_object, None),
        Err(wrong) => (None, None, Some(wrong)),
    };
    let request = AdmissionRequest {
        object,
        old_object,
        types: request.types,
        uid: request.uid,
        kind: request.kind,
        resource: request.resource,
        sub_resource: request.sub_resource,
        request_kind: request.request_kind,
        request_resource: request.request_resource,
        request_sub_resource: request.request_sub_resource,
        name: request.name,
        namespace: request.namespace,
        operation: request.operation,
        user_info: request.user_info,
        dry_run: request.dry_run,
        options: request.options,
    };
    match wrong {
        None => Ok(request),
        Some(wrong) => Err(Malformed::Object(Box::new(undecodable(&request, &wrong, harmless)))),
    }
}

/// The answer to a request about an object that cannot be decoded.
fn undecodable(request: &AdmissionRequest<DynamicObject>, wrong: &Undecodable, harmless: bool) -> Review {
    let allowed = AdmissionResponse::from(request);
    answer(if harmless {
        allowed
    } else {
        refused(allowed, &format!("the object cannot be decoded: {wrong}"))
    })
}

fn refused(response: AdmissionResponse, message: &str) -> AdmissionResponse {
    let mut refused = response.deny(cut(message, MESSAGE));
    refused.result.code = 422;
    "Invalid".clone_into(&mut refused.result.reason);
    refused
}

/// Answers a request. Refuses an object with every problem that the operator would find, in one message; an accepted
/// object gets warnings. Has no side effects, so that a dry run is answered alike.
///
/// Requests that cannot make anything worse are always allowed: deletions, updates of the status, and updates that leave
/// the spec as it is. An object that was accepted under former rules can thus be finished and deleted.
pub fn review(review: &Review, known: &OtherObjects) -> Review {
    let Some(request) = &review.request else {
        return answer(AdmissionResponse::invalid(Malformed::NoRequest));
    };
    let allowed = AdmissionResponse::from(request);
    let Some(object) = to_judge(request) else { return answer(allowed) };
    let verdict = verdict(request, object, known);
    if !verdict.problems.is_empty() {
        return answer(refused(allowed, &message(&verdict.problems)));
    }
    let mut allowed = allowed;
    allowed.warnings = warnings(&verdict.warnings);
    answer(allowed)
}

/// Whether a request writes an HTCJob itself, and not its status.
pub(crate) fn is_job(request: &AdmissionRequest<DynamicObject>) -> bool {
    request.sub_resource.is_none() && request.kind.group == GROUP && request.kind.kind == "HTCJob"
}

/// The object that a request would store, if it has to be judged.
fn to_judge(request: &AdmissionRequest<DynamicObject>) -> Option<&DynamicObject> {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || request.sub_resource.is_some() || request.kind.group != GROUP {
        return None;
    }
    let object = request.object.as_ref()?;
    let spec = |object: &DynamicObject| object.data.get("spec").cloned();
    // A change of the acts is judged like a change of the spec: whoever may not edit a job may not act on its procs.
    let acts = |object: &DynamicObject| object.metadata.annotations.as_ref()?.get(labels::ACTS).cloned();
    let face = |object: &DynamicObject| (spec(object), acts(object));
    let same = request.old_object.as_ref().is_some_and(|old| face(old) == face(object));
    (!same && object.metadata.deletion_timestamp.is_none()).then_some(object)
}

fn message(problems: &[Problem]) -> String {
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    text.join("; ")
}

fn warnings(found: &[Problem]) -> Option<Vec<String>> {
    let mut told: Vec<String> = found.iter().take(WARNINGS).map(|one| line(&one.to_string())).collect();
    if let (Some(last), true) = (told.last_mut(), found.len() > WARNINGS) {
        *last = format!("{} more warnings are in the object's conditions", found.len() - WARNINGS + 1);
    }
    (!told.is_empty()).then_some(told)
}

/// A text on one line: a warning becomes a header of HTTP.
fn line(text: &str) -> String {
    cut(&text.replace(char::is_control, " "), WARNING)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

pub(crate) fn answer(response: AdmissionResponse) -> Review {
    let mut review = response.into_review();
    META_API_VERSION_V1.clone_into(&mut review.types.api_version);
    META_KIND.clone_into(&mut review.types.kind);
    review
}

#[cfg(test)]
#[path = "tests/review.rs"]
mod tests;
