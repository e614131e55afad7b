//! Deletes objects: preconditions, grace periods, finalizers, and the propagation to dependents.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::api::{Api, Call, RETRIES};
use super::error::{ApiError, deleted_status};
use super::json::{finalizers, get, int, is_deleting, meta, set, some_text, text, texts};
use super::params::Params;
use super::resource::Resource;
use super::store::{Key, Object};
use super::strategy;
use super::time::{after, rfc3339};

/// The finalizer of an object that is deleted after its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that is deleted after it has been removed from its dependents' owners.
pub(super) const ORPHAN: &str = "orphan";

/// `propagationPolicy`: what happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`, from the query and the body.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) grace: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) propagation: Option<Propagation>,
    pub(super) dry_run: bool,
}

impl Options {
    /// Reads the options. Options in the body override those in the query, as in the real server.
    pub(super) fn read(params: &Params, body: Option<&Value>) -> Result<Self, ApiError> {
        let body = body.unwrap_or(&Value::Null);
        let policy = some_text(body, &["propagationPolicy"]).unwrap_or(&params.propagation);
        let orphan = get(body, &["orphanDependents"]).and_then(Value::as_bool).or(params.orphan);
        let propagation = match (policy, orphan) {
            ("Background", _) | ("", Some(false)) => Some(Propagation::Background),
            ("Foreground", _) => Some(Propagation::Foreground),
            ("Orphan", _) | ("", Some(true)) => Some(Propagation::Orphan),
            ("", None) => None,
            (other, _) => {
                return Err(ApiError::new(
                    422,
                    "Invalid",
                    format!(
                        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: {other:?}"
                    ),
                ));
            }
        };
        let owned = |path: &[&str]| some_text(body, path).map(str::to_owned);
        Ok(Self {
            grace: int(body, &["gracePeriodSeconds"]).or(params.grace),
            uid: owned(&["preconditions", "uid"]),
            resource_version: owned(&["preconditions", "resourceVersion"]),
            propagation,
            dry_run: params.dry_run || !super::json::list(body, &["dryRun"]).is_empty(),
        })
    }

    /// The options that delete an object in the background, if it has this uid.
    pub(super) fn background(uid: &str) -> Self {
        Self { uid: Some(uid.to_owned()), propagation: Some(Propagation::Background), ..Self::default() }
    }
}

/// The result of a delete.
#[derive(Debug, Clone)]
pub(super) enum Deleted {
    /// The object has been removed; this was its last state.
    Gone(Arc<Object>),
    /// The object waits for its grace period or for finalizers.
    Waiting(Arc<Object>),
}

impl Deleted {
    /// The `Status` that answers the request; `None` if the answer is the object itself. A removed object of most
    /// kinds is answered with a `Status`.
    pub(super) fn body(&self, res: &Resource) -> Option<Value> {
        match self {
            Self::Gone(object) if !res.returns_deleted() => {
                Some(deleted_status(res, meta(&object.value, "name"), meta(&object.value, "uid")))
            }
            _ => None,
        }
    }

    /// The object that has been removed or waits.
    pub(super) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Gone(object) | Self::Waiting(object) => object,
        }
    }
}

/// The effect of a delete request on an object.
enum Step {
    /// Nothing: the object is being deleted already, and this request changes nothing about it.
    Nothing,
    /// Store this state, which marks the object as being deleted.
    Mark(Value),
    /// Remove the object, with this as its last state.
    Remove(Value),
}

/// Deletes one object, as far as its grace period and finalizers let it.
pub(super) fn delete(api: &Api, res: &Resource, key: &Key, options: &Options) -> Result<Deleted, ApiError> {
    for _ in 0..RETRIES {
        let old = api.fetch(res, key)?;
        check_preconditions(res, &old.value, options)?;
        let (new, remove) = match step(res, &old.value, options, api.now()) {
            Step::Nothing => return Ok(Deleted::Waiting(old)),
            Step::Mark(new) => (new, false),
            Step::Remove(new) => (new, true),
        };
        if options.dry_run {
            let object = Arc::new(Object::new(new, old.version));
            return Ok(if remove { Deleted::Gone(object) } else { Deleted::Waiting(object) });
        }
        let done = if remove { api.erase(res, &old, new) } else { api.commit(res, &old, new) };
        if let Ok(object) = done {
            return Ok(if remove { Deleted::Gone(object) } else { Deleted::Waiting(object) });
        }
    }
    Err(ApiError::modified(res, &key.name))
}

fn check_preconditions(res: &Resource, object: &Value, options: &Options) -> Result<(), ApiError> {
    let fault = |what: &str, wanted: &str, found: &str, maybe: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {maybe}"
        );
        Err(ApiError::conflict(res, meta(object, "name"), &why))
    };
    let (uid, version) = (meta(object, "uid"), meta(object, "resourceVersion"));
    match (&options.uid, &options.resource_version) {
        (Some(wanted), _) if wanted != uid => fault("UID", wanted, uid, "deleted and then recreated"),
        (_, Some(wanted)) if wanted != version => fault("ResourceVersion", wanted, version, "modified"),
        _ => Ok(()),
    }
}

fn step(res: &Resource, old: &Value, options: &Options, now: Timestamp) -> Step {
    let mut new = old.clone();
    if is_deleting(old) {
        return step_again(new, old, options, now);
    }
    set_propagation(&mut new, options);
    let waits =
        !finalizers(&new).is_empty() || (res.is("", "Namespace") && strategy::has_namespace_finalizers(&new));
    let grace = strategy::grace(res, old, options.grace).unwrap_or(0);
    mark(&mut new, grace, now);
    if res.is("", "Namespace") {
        set(&mut new, &["status", "phase"], "Terminating");
    }
    if grace > 0 || waits { Step::Mark(new) } else { Step::Remove(new) }
}

/// The step for an object that is being deleted already: a further delete may only shorten the grace period. The new
/// grace period counts from the first delete, but the object's `deletionTimestamp` never moves into the past.
///
/// So the kubelet's last delete, with grace period 0, sets `deletionTimestamp` to now: nobody can read from the object
/// any more when its deletion was asked for. Source: `BeforeDelete` in `rest/delete.go` of Kubernetes' apiserver.
fn step_again(mut new: Value, old: &Value, options: &Options, now: Timestamp) -> Step {
    let grace = int(old, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    let Some(asked) = options.grace.map(|g| if g < 0 { 1 } else { g }).filter(|asked| *asked < grace) else {
        let waits =
            !finalizers(old).is_empty() || !super::json::list(old, &["spec", "finalizers"]).is_empty();
        // An object without grace period and finalizers has nothing left to wait for, so the delete removes it.
        return if grace == 0 && !waits { Step::Remove(new) } else { Step::Nothing };
    };
    let due = text(old, &["metadata", "deletionTimestamp"]).and_then(|t| t.parse::<Timestamp>().ok());
    if let Some(due) = due {
        set(&mut new, &["metadata", "deletionTimestamp"], rfc3339(after(due, asked - grace).max(now)));
    }
    set(&mut new, &["metadata", "deletionGracePeriodSeconds"], asked);
    if asked > 0 || !finalizers(&new).is_empty() { Step::Mark(new) } else { Step::Remove(new) }
}

fn mark(object: &mut Value, grace: i64, now: Timestamp) {
    set(object, &["metadata", "deletionTimestamp"], rfc3339(after(now, grace)));
    set(object, &["metadata", "deletionGracePeriodSeconds"], grace);
    if let Some(generation) = int(object, &["metadata", "generation"]) {
        set(object, &["metadata", "generation"], generation + 1);
    }
}

fn set_propagation(object: &mut Value, options: &Options) {
    let Some(propagation) = options.propagation else { return };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut names: Vec<&str> =
        finalizers(object).into_iter().filter(|f| !matches!(*f, FOREGROUND | ORPHAN)).collect();
    names.extend(wanted);
    let names = texts(&names);
    set(object, &["metadata", "finalizers"], names);
}

/// Deletes these objects, and returns them. Objects that no longer exist are skipped.
pub(super) fn delete_all(
    api: &Api,
    call: &Call,
    objects: Vec<Arc<Object>>,
    options: &Options,
) -> Result<Vec<Arc<Object>>, ApiError> {
    let mut done = Vec::new();
    for object in objects {
        match delete(api, &call.res, &Key::of(&object.value), options) {
            Ok(deleted) => done.push(Arc::clone(deleted.object())),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
