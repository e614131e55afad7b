//! Admission webhooks, which the server asks by function calls where a real one asks over HTTPS.
//!
//! The order is that of the real server: mutating webhooks change what the client sent; then the object is made ready and
//! validated; then validating webhooks see the object as it would be stored.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::HeaderName;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionResponse, AdmissionReview};
use serde_json::{Value, json};

use kube_schema::json_patch;

use super::api::{Api, Call};
use super::error::ApiError;
use super::http::header;
use super::json::meta;
use super::resource::Resource;

/// A request of the server, or the answer of a webhook.
pub type Review = AdmissionReview<DynamicObject>;

/// A webhook that is asked about each creation and update of objects of one API group, but not about their subresources.
#[derive(Clone)]
pub struct Webhook {
    name: Arc<str>,
    group: Arc<str>,
    answer: Arc<dyn Fn(&Review) -> Review + Send + Sync>,
}

impl Webhook {
    /// A webhook of this name, which refusals give.
    pub fn new(name: &str, group: &str, answer: impl Fn(&Review) -> Review + Send + Sync + 'static) -> Self {
        Self { name: name.into(), group: group.into(), answer: Arc::new(answer) }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("name", &self.name)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// The webhooks of a server. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Webhooks {
    /// Those that change objects, in their order.
    pub mutating: Vec<Webhook>,
    /// Those that refuse objects and warn of them.
    pub validating: Vec<Webhook>,
}

/// Who sends a request. The server authenticates nobody: this is whom the client says it acts as, or an administrator.
#[derive(Debug, Clone)]
pub(super) struct User {
    name: String,
    groups: Vec<String>,
}

impl Default for User {
    fn default() -> Self {
        let groups = ["system:masters", "system:authenticated"].map(str::to_owned).into();
        Self { name: "system:admin".to_owned(), groups }
    }
}

impl User {
    /// The user of a request with these headers: `kubectl --as` sends a name, and `--as-group` groups.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let name = header(headers, &HeaderName::from_static("impersonate-user"));
        if name.is_empty() {
            return Self::default();
        }
        let groups = headers.get_all("impersonate-group").iter();
        let groups = groups.filter_map(|group| group.to_str().ok()).map(str::to_owned).collect();
        Self { name: name.to_owned(), groups }
    }
}

/// Asks mutating webhooks about an object that is to be written, one after the other, each about what the one before made.
pub(super) fn mutate(
    api: &Api,
    call: &mut Call,
    namespace: &str,
    old: Option<&Value>,
    object: &mut Value,
) -> Result<(), ApiError> {
    for webhook in asked(&api.config.webhooks.mutating, call) {
        let answer = ask(webhook, call, namespace, old, object)?;
        call.warnings.extend(answer.warnings.into_iter().flatten());
        if let Some(patch) = answer.patch {
            let patch =
                serde_json::from_slice(&patch).map_err(|error| failed(webhook, &error.to_string()))?;
            *object = json_patch(object, &patch)?;
        }
    }
    Ok(())
}

/// Asks validating webhooks about an object as it would be stored.
pub(super) fn validate(
    api: &Api,
    call: &mut Call,
    namespace: &str,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), ApiError> {
    for webhook in asked(&api.config.webhooks.validating, call) {
        let answer = ask(webhook, call, namespace, old, object)?;
        call.warnings.extend(answer.warnings.into_iter().flatten());
    }
    Ok(())
}

fn asked<'a>(webhooks: &'a [Webhook], call: &Call) -> impl Iterator<Item = &'a Webhook> + use<'a> {
    let group = call.res.group.clone();
    webhooks.iter().filter(move |webhook| *webhook.group == *group)
}

/// Asks a webhook. Fails with the webhook's words if the webhook refuses the object.
fn ask(
    webhook: &Webhook,
    call: &Call,
    namespace: &str,
    old: Option<&Value>,
    object: &Value,
) -> Result<AdmissionResponse, ApiError> {
    let asked = serde_json::from_value(request(call, namespace, old, object));
    let asked = asked.map_err(|error| failed(webhook, &error.to_string()))?;
    let answer = (webhook.answer)(&asked).response.ok_or_else(|| failed(webhook, "no response"))?;
    if answer.uid != UID {
        return Err(failed(webhook, "the response has another uid than the request"));
    }
    if !answer.allowed {
        return Err(ApiError::denied(&webhook.name, &answer.result));
    }
    Ok(answer)
}

fn request(call: &Call, namespace: &str, old: Option<&Value>, object: &Value) -> Value {
    let Resource { group, version, kind, plural, .. } = &*call.res;
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let kind = json!({"group": group, "version": version, "kind": kind});
    let resource = json!({"group": group, "version": version, "resource": plural});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": UID, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": meta(object, "name"), "namespace": namespace, "operation": operation,
        "userInfo": {"username": call.user.name, "groups": call.user.groups},
        "object": object, "oldObject": old, "dryRun": call.params.dry_run}})
}

/// The uid of each request: an answer comes before the next request is made.
const UID: &str = "00000000-0000-0000-0000-000000000000";

fn failed(webhook: &Webhook, why: &str) -> ApiError {
    let text = format!("Internal error occurred: failed calling webhook {:?}: {why}", webhook.name);
    ApiError::new(500, "InternalError", text)
}
