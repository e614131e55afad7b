//! The errors of requests, as `meta/v1` `Status` bodies with the words of the real API server.

use std::borrow::Cow;

use kube::core::Status;
use serde_json::{Map, Value, json};

use kube_schema::{ApplyError, FieldError, PatchError, causes, invalid_message};

use super::resource::Resource;

/// Why a request failed: everything that the `Status` body needs.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct ApiError {
    /// The HTTP status code.
    pub(super) code: u16,
    /// The reason, for programs: `NotFound`, `Conflict`, ...
    pub(super) reason: Cow<'static, str>,
    /// The message, for people.
    pub(super) message: String,
    /// `Status.details`.
    pub(super) details: Map<String, Value>,
}

impl ApiError {
    pub(super) fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: Map::new() }
    }

    fn about(mut self, res: &Resource, name: &str) -> Self {
        if !name.is_empty() {
            self.details.insert("name".to_owned(), name.into());
        }
        if !res.group.is_empty() {
            self.details.insert("group".to_owned(), res.group.clone().into());
        }
        self.details.insert("kind".to_owned(), res.plural.clone().into());
        self
    }

    fn with_causes(mut self, list: Value) -> Self {
        self.details.insert("causes".to_owned(), list);
        self
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for a path at which no resource is served.
    pub(super) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(super) fn not_found(res: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", res.qualified())).about(res, name)
    }

    pub(super) fn already_exists(res: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", res.qualified()))
            .about(res, name)
    }

    /// 409 for a failed precondition or a stale `resourceVersion`.
    pub(super) fn conflict(res: &Resource, name: &str, why: &str) -> Self {
        let text = format!("Operation cannot be fulfilled on {} {name:?}: {why}", res.qualified());
        Self::new(409, "Conflict", text).about(res, name)
    }

    /// 409 for a stale `resourceVersion`.
    pub(super) fn modified(res: &Resource, name: &str) -> Self {
        Self::conflict(
            res,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(super) fn forbidden(res: &Resource, name: &str, why: &str) -> Self {
        let text = format!("{} {name:?} is forbidden: {why}", res.qualified());
        Self::new(403, "Forbidden", text).about(res, name)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(super) fn invalid(res: &Resource, name: &str, errors: &[FieldError]) -> Self {
        let kind = res.qualified_kind();
        let mut error = Self::new(422, "Invalid", invalid_message(&kind, name, errors)).about(res, name);
        error.details.insert("kind".to_owned(), res.kind.clone().into());
        error.with_causes(causes(errors))
    }

    /// 410 for a version that the history no longer reaches.
    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504 for a `resourceVersion` that this server has not reached.
    pub(super) fn too_large_version(asked: u64, current: u64) -> Self {
        let text = format!("Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(504, "Timeout", format!("Timeout: {text}"));
        error.details.insert("retryAfterSeconds".to_owned(), 1.into());
        error.with_causes(
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
        )
    }

    /// The error of an object that a webhook refuses: 403 if the webhook gives no other code.
    pub(super) fn denied(webhook: &str, said: &Status) -> Self {
        let (code, reason) =
            if said.code == 0 { (403, "Forbidden".to_owned()) } else { (said.code, said.reason.clone()) };
        let why = if said.message.is_empty() { "without explanation" } else { said.message.as_str() };
        Self::new(code, reason, format!("admission webhook {webhook:?} denied the request: {why}"))
    }

    /// 500 for a webhook that has not answered.
    pub(super) fn webhook_timeout() -> Self {
        Self::new(500, "InternalError", "failed calling webhook: context deadline exceeded")
    }

    pub(super) fn body_too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    pub(super) fn media_type(accepted: &[&str]) -> Self {
        PatchError::unsupported(accepted).into()
    }

    pub(super) fn not_acceptable() -> Self {
        Self::new(406, "NotAcceptable", "only the following media types are accepted: application/json")
    }

    /// 429 for an eviction that a disruption budget forbids.
    pub(super) fn disruption(budget: &str, healthy: i64, desired: i64) -> Self {
        let mut error = Self::new(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        );
        let text = format!(
            "The disruption budget {budget} needs {desired} healthy pods and has {healthy} currently"
        );
        error.details.insert("retryAfterSeconds".to_owned(), 10.into());
        error.with_causes(json!([{"reason": "DisruptionBudget", "message": text}]))
    }

    /// 403 for creating an object in a namespace that is being deleted.
    pub(super) fn namespace_terminating(res: &Resource, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(res, name, &why).with_causes(json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace"
        }]))
    }

    /// The `Status` body.
    pub(super) fn status(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_empty()
            && let Some(map) = body.as_object_mut()
        {
            map.insert("details".to_owned(), Value::Object(self.details.clone()));
        }
        body
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        Self::new(error.code(), error.reason(), error.to_string())
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let api = Self::new(error.code(), error.reason(), error.to_string());
        let list = error.causes();
        if list.is_empty() { api } else { api.with_causes(Value::Array(list)) }
    }
}

/// The `Status` of a delete that removed the object.
pub(super) fn deleted_status(res: &Resource, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": res.plural, "uid": uid});
    if !res.group.is_empty()
        && let Some(map) = details.as_object_mut()
    {
        map.insert("group".to_owned(), res.group.clone().into());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
