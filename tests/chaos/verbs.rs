//! Applies requests to the store, by those rules of the API server that an operator can notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::store::{Key, Refusal, Store, finalizers, is_deleting, kind, merge, meta};

/// A request that was read.
#[derive(Clone, Debug)]
pub struct Call {
    pub verb: Verb,
    pub key: Key,
    pub sub: String,
    pub query: BTreeMap<String, String>,
    pub body: Value,
    pub strategic: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Call {
    /// Reads a request. Panics if the server does not have what the request asks for, since the operator asks for
    /// nothing else.
    pub fn read(request: &http::request::Parts, body: &[u8]) -> Self {
        let path: Vec<&str> = request.uri.path().trim_matches('/').split('/').collect();
        let rest = if path[0] == "api" { &path[2..] } else { &path[3..] };
        let (namespace, rest) = if rest[0] == "namespaces" { (rest[1], &rest[2..]) } else { ("", rest) };
        let (plural, ..) = kind(rest[0]).unwrap_or_else(|| panic!("{} is not served", request.uri));
        let name = rest.get(1).copied().unwrap_or_default();
        let query: BTreeMap<String, String> = request
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let watches = query.get("watch").is_some_and(|value| value == "true");
        let verb = match request.method.as_str() {
            "GET" if watches => Verb::Watch,
            "GET" if name.is_empty() => Verb::List,
            "GET" => Verb::Get,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            other => panic!("{other} is not served"),
        };
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let name = if verb == Verb::Create { meta(&body, "name").to_owned() } else { name.to_owned() };
        let media = request.headers.get("content-type").and_then(|value| value.to_str().ok());
        Self {
            verb,
            key: Key { kind: plural, namespace: namespace.to_owned(), name },
            sub: rest.get(2).copied().unwrap_or_default().to_owned(),
            query,
            body,
            strategic: media.is_some_and(|media| media.contains("strategic")),
        }
    }
}

impl Call {
    /// Whether the call asks for a list in the form of a watch.
    pub fn begins_with_list(&self) -> bool {
        let of_now = || !self.query.contains_key("resourceVersion");
        let asked = self.query.get("sendInitialEvents").is_some_and(|value| value == "true");
        assert!(!asked || of_now(), "a list that may be old");
        asked
    }

    /// Whether the server asks webhooks for pods about this call.
    pub fn is_admitted(&self) -> bool {
        self.key.kind == "pods" && !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
    }
}

/// The present time, in milliseconds of the run and as Kubernetes writes it.
pub struct Now<'a> {
    pub at: u64,
    pub text: &'a dyn Fn(u64) -> String,
}

impl Now<'_> {
    fn text(&self, after_seconds: u64) -> String {
        (self.text)(self.at + after_seconds * 1000)
    }
}

fn not_found(key: &Key) -> Refusal {
    Refusal(404, "NotFound", format!("{} {:?} not found", key.kind, key.name))
}

fn conflict(why: &str) -> Refusal {
    Refusal(409, "Conflict", why.to_owned())
}

impl Store {
    /// Does what a request asks for, unless it is a list or a watch.
    pub fn perform(&mut self, call: &Call, now: &Now) -> Result<Arc<Value>, Refusal> {
        let key = &call.key;
        if call.verb == Verb::Create {
            return self.create(key.clone(), call.body.clone(), now.at, &now.text(0));
        }
        let before = self.get(key).ok_or_else(|| not_found(key))?;
        match call.verb {
            Verb::Update => {
                let version = meta(&call.body, "resourceVersion");
                if !version.is_empty() && version != meta(&before, "resourceVersion") {
                    return Err(conflict("the object has been modified"));
                }
                let mut object = call.body.clone();
                keep_own(&mut object, &before, call.sub == "status", key);
                Ok(self.replace(key, object, now.at))
            }
            Verb::Patch => self.patch(call, &before, now),
            Verb::Delete => {
                let uid = call.body["preconditions"]["uid"].as_str();
                if uid.is_some_and(|uid| uid != meta(&before, "uid")) {
                    return Err(conflict("the UID in the precondition does not match"));
                }
                let version = call.body["preconditions"]["resourceVersion"].as_str();
                if version.is_some_and(|version| version != meta(&before, "resourceVersion")) {
                    return Err(conflict("the ResourceVersion in the precondition does not match"));
                }
                let grace = call.body["gracePeriodSeconds"].as_u64();
                Ok(self.delete(key, grace, now))
            }
            _ => Ok(before),
        }
    }

    fn patch(&mut self, call: &Call, before: &Arc<Value>, now: &Now) -> Result<Arc<Value>, Refusal> {
        let mut object = (**before).clone();
        let version = meta(&call.body, "resourceVersion");
        if !version.is_empty() && version != meta(before, "resourceVersion") {
            return Err(conflict("the object has been modified"));
        }
        let uid = meta(&call.body, "uid");
        if !uid.is_empty() && uid != meta(before, "uid") {
            return Err(Refusal(
                422,
                "Invalid",
                "metadata.uid: Invalid value: field is immutable".to_owned(),
            ));
        }
        let mut patch = call.body.clone();
        if call.strategic {
            let removed = patch["metadata"]["$deleteFromPrimitiveList/finalizers"].take();
            let removed = removed.as_array().cloned().unwrap_or_default();
            let left: Vec<String> =
                finalizers(before).into_iter().filter(|name| !removed.contains(&json!(name))).collect();
            patch["metadata"].as_object_mut().unwrap().remove("$deleteFromPrimitiveList/finalizers");
            object["metadata"]["finalizers"] = json!(left);
            merge_conditions(&object, &mut patch);
        }
        merge(&mut object, &patch);
        keep_own(&mut object, before, call.sub == "status", &call.key);
        Ok(self.replace(&call.key, object, now.at))
    }

    /// Deletes an object. A pod gets a grace period; an object with finalizers is only marked. If the object is being
    /// deleted already, the grace period can only become shorter. It counts from the first request, and the deadline
    /// does not move into the past (`BeforeDelete` in rest/delete.go).
    pub fn delete(&mut self, key: &Key, asked: Option<u64>, now: &Now) -> Arc<Value> {
        let Some(before) = self.get(key) else { return Arc::default() };
        let mut object = (*before).clone();
        let held = !finalizers(&before).is_empty();
        let (grace, deadline) = if is_deleting(&before) {
            let old = before["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
            // The request changes nothing, unless the last finalizer is gone.
            if old == 0 {
                return if held { before } else { self.erase(key, object, now.at) };
            }
            let Some(grace) = asked.filter(|grace| *grace < old) else { return before };
            (grace, shortened(&before, old - grace, &now.text(0)))
        } else {
            let grace = if key.kind == "pods" { pod_grace(&before, asked) } else { 0 };
            (grace, now.text(grace))
        };
        object["metadata"]["deletionTimestamp"] = json!(deadline);
        if key.kind == "pods" {
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        if grace == 0 && !held { self.erase(key, object, now.at) } else { self.replace(key, object, now.at) }
    }
}

/// The object's deadline, earlier by so many seconds, but not before `now`.
fn shortened(object: &Value, by: u64, now: &str) -> String {
    let deadline =
        object["metadata"]["deletionTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let earlier =
        deadline.map(|deadline| deadline - SignedDuration::from_secs(i64::try_from(by).unwrap_or(0)));
    let earlier = earlier.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    // Texts of times in this form sort in the order of the times.
    earlier.filter(|earlier| earlier.as_str() > now).unwrap_or_else(|| now.to_owned())
}

/// Merges conditions by their type, as strategic patches do.
fn merge_conditions(object: &Value, patch: &mut Value) {
    let Some(new) = patch["status"]["conditions"].as_array().cloned() else { return };
    let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for one in new {
        match all.iter_mut().find(|old| old["type"] == one["type"]) {
            Some(old) => merge(old, &one),
            None => all.push(one),
        }
    }
    patch["status"]["conditions"] = json!(all);
}

/// A pod's grace period in seconds: 0 if nothing of the pod runs.
fn pod_grace(pod: &Value, asked: Option<u64>) -> u64 {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
        || matches!(phase, "Succeeded" | "Failed")
    {
        return 0;
    }
    asked.unwrap_or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(30))
}

/// Restores what this write cannot change: the status, or everything but the status, and the server's own fields.
fn keep_own(object: &mut Value, before: &Value, status: bool, key: &Key) {
    let parts = kind(key.kind).is_some_and(|kind| kind.3);
    if parts && status {
        let new = object["status"].take();
        *object = before.clone();
        object["status"] = new;
    } else if parts {
        object["status"] = before["status"].clone();
        if object["status"].is_null() {
            object.as_object_mut().unwrap().remove("status");
        }
    }
    for field in [
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ] {
        let old = before["metadata"][field].clone();
        if old.is_null() {
            object["metadata"].as_object_mut().unwrap().remove(field);
        } else {
            object["metadata"][field] = old;
        }
    }
    // The server adds no finalizer to an object that is being deleted.
    if is_deleting(before) {
        let old = finalizers(before);
        let left: Vec<String> = finalizers(object).into_iter().filter(|name| old.contains(name)).collect();
        object["metadata"]["finalizers"] = json!(left);
    }
    object["kind"] = before["kind"].clone();
    object["apiVersion"] = before["apiVersion"].clone();
}
