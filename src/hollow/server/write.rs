//! Update and patch, and the steps that they share with create. All kinds go through the same steps.
//!
//! The order is that of the real server: decode the body, apply the patch, restore what the client may not change,
//! prune, fill in defaults, validate, update managed fields, store. A write that changes nothing stores nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use kube_schema::{
    self as shapes, FieldError, FieldErrorKind, Writer, apply, json_patch, merge_patch, strategic_merge_patch,
};

use super::admission;
use super::api::{Api, Call, RETRIES};
use super::conform::conform;
use super::create::create_as;
use super::encode::view;
use super::error::ApiError;
use super::events;
use super::json::{copy, finalizers, get, is_deleting, meta, remove, set, some_text};
use super::names::validate_metadata;
use super::params::FieldValidation;
use super::resource::Resource;
use super::store::{Key, Object};
use super::strategy;

/// Which part of the object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Main,
    Status,
    /// `namespaces/finalize`
    Finalize,
}

impl Part {
    fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }
}

/// The content of a write.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Replace(Value),
    MergePatch(Value),
    JsonPatch(Value),
    StrategicPatch(Value),
    Apply(Value),
}

/// Checks `apiVersion` and `kind` of a body against the resource; fills them in when absent.
pub(super) fn check_type(res: &Resource, body: &mut Value) -> Result<(), ApiError> {
    let no_object =
        |what: &str| ApiError::bad_request(format!("{what} is not a JSON object: expected a {}", res.kind));
    if !body.is_object() {
        return Err(no_object("the body"));
    }
    if body.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err(no_object("metadata"));
    }
    let api_version = res.api_version();
    let found = some_text(body, &["apiVersion"]).unwrap_or(&api_version).to_owned();
    let kind = some_text(body, &["kind"]).unwrap_or(&res.kind).to_owned();
    if kind != res.kind {
        let text = format!("{kind} in version {found:?} cannot be handled as a {}", res.kind);
        return Err(ApiError::bad_request(text));
    }
    if found != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({found}) does not match the expected API version ({api_version})"
        )));
    }
    set(body, &["apiVersion"], api_version);
    set(body, &["kind"], kind);
    Ok(())
}

/// Sets the body's namespace and name to those of the URL. Fails if the body has others.
pub(super) fn set_name(
    res: &Resource,
    namespace: &str,
    name: Option<&str>,
    body: &mut Value,
) -> Result<(), ApiError> {
    match meta(body, "namespace") {
        "" => {}
        found if found == namespace => {}
        found if res.namespaced => {
            return Err(ApiError::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the request \
                 ({found} is not {namespace})"
            )));
        }
        _ => {}
    }
    if res.namespaced {
        set(body, &["metadata", "namespace"], namespace);
    } else {
        remove(body, &["metadata", "namespace"]);
    }
    if let Some(name) = name {
        match meta(body, "name") {
            "" => set(body, &["metadata", "name"], name),
            found if found == name => {}
            found => {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({found}) does not match the name on the URL ({name})"
                )));
            }
        }
    }
    Ok(())
}

/// Converts an object from the version of the request to the stored version.
pub(super) fn to_stored(res: &Resource, object: &mut Value) {
    if events::is_new_form(res) {
        events::to_stored(object);
    } else {
        set(object, &["apiVersion"], res.storage_api_version.clone());
    }
}

/// Returns everything that is wrong with an object by the rules of its kind or by the schema of its CRD.
pub(super) fn validate(res: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = strategy::validate(res, object, old);
    if let Some(schema) = res.custom.as_ref().and_then(|c| c.schema.as_ref()) {
        errors.extend(schema.validate(object, old));
    }
    errors
}

/// Records in the managed fields which fields this call has changed.
pub(super) fn update_managed_fields(call: &Call, old: Option<&Value>, new: &mut Value, part: Part) {
    shapes::track_update(&call.res.shape, old, new, &writer(call, &call.res.api_version(), part));
}

/// The writer that a call is in the managed fields.
fn writer<'c>(call: &'c Call, api_version: &'c str, part: Part) -> Writer<'c> {
    Writer { manager: &call.manager, api_version, subresource: part.subresource(), now: call.now }
}

/// Handles fields that were dropped as the client asks: ignores them, warns, or fails.
pub(super) fn report_unknown(call: &mut Call, unknown: Vec<String>) -> Result<(), ApiError> {
    if unknown.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = unknown.into_iter().map(|f| format!("unknown field {f:?}")).collect();
    match call.params.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(texts),
        FieldValidation::Strict => {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                call.res.kind,
                call.res.version,
                call.res.kind,
                texts.join(", ")
            )));
        }
    }
    Ok(())
}

/// Updates or patches an object. The flag says whether the write created the object.
pub(super) fn update(
    api: &Api,
    call: &mut Call,
    key: &Key,
    part: Part,
    source: &Source,
) -> Result<(Arc<Object>, bool), ApiError> {
    let res = Arc::clone(&call.res);
    for _ in 0..RETRIES {
        let Some(old) = api.store.get(&res.storage, key) else {
            return create_by_update(api, call, key, part, source).map(|object| (object, true));
        };
        let (mut new, applied) = next_state(call, &old.value, part, source)?;
        let before = Some(&old.value).filter(|_| part == Part::Main);
        if before.is_some() {
            admission::mutate(api, call, &key.namespace, before, &mut new)?;
        }
        let new = finish_update(call, &old, new, key, part, matches!(source, Source::Replace(_)), applied)?;
        if before.is_some() {
            admission::validate(api, call, &key.namespace, before, &new)?;
        }
        if changes_nothing(&old.value, &new) {
            return Ok((old, false));
        }
        if call.params.dry_run {
            return Ok((Arc::new(Object::new(new, old.version)), false));
        }
        if let Ok(object) = api.commit(&res, &old, new) {
            return Ok((object, false));
        }
        call.warnings.clear();
    }
    Err(ApiError::modified(&res, &key.name))
}

/// Creates an object that does not exist, if the write is an apply or a PUT of a Lease. Fails with 404 otherwise.
fn create_by_update(
    api: &Api,
    call: &mut Call,
    key: &Key,
    part: Part,
    source: &Source,
) -> Result<Arc<Object>, ApiError> {
    let not_found = || ApiError::not_found(&call.res, &key.name);
    match source {
        Source::Apply(body) if part == Part::Main => {
            let (object, _) = apply_to(call, None, body, part)?;
            create_as(api, call, &key.namespace, Some(&key.name), object, true)
        }
        Source::Replace(body) if part == Part::Main && call.res.is("coordination.k8s.io", "Lease") => {
            create_as(api, call, &key.namespace, Some(&key.name), body.clone(), false)
        }
        _ => Err(not_found()),
    }
}

/// The object as the client wants it, in the version of the request. The flag says whether the managed fields are
/// complete, which they are after an apply.
fn next_state(call: &Call, old: &Value, part: Part, source: &Source) -> Result<(Value, bool), ApiError> {
    let shown = view(&call.res, old);
    let new = match source {
        Source::Replace(body) => body.clone(),
        Source::MergePatch(patch) => {
            let mut new = shown;
            merge_patch(&mut new, patch);
            new
        }
        Source::JsonPatch(patch) => json_patch(&shown, patch)?,
        Source::StrategicPatch(patch) => strategic_merge_patch(&call.res.shape, &shown, patch)?,
        Source::Apply(body) => return apply_to(call, Some(&shown), body, part),
    };
    Ok((new, false))
}

fn apply_to(call: &Call, live: Option<&Value>, body: &Value, part: Part) -> Result<(Value, bool), ApiError> {
    if call.params.field_manager.is_empty() {
        let error = FieldError::new(FieldErrorKind::Required, "fieldManager", "is required for apply patch");
        return Err(ApiError::new(
            422,
            "Invalid",
            format!("PatchOptions.meta.k8s.io \"\" is invalid: {error}"),
        ));
    }
    let mut body = body.clone();
    check_type(&call.res, &mut body)?;
    // The manager must not become the owner of fields that a write of this part ignores.
    match part {
        Part::Main if call.res.status => remove(&mut body, &["status"]),
        Part::Status => remove(&mut body, &["spec"]),
        _ => None,
    };
    let api_version = call.res.api_version();
    let writer = writer(call, &api_version, part);
    let new = apply(&call.res.shape, live, &body, &writer, call.params.force)?;
    Ok((new, true))
}

/// Makes the new object ready for the store: restores what may not change, prunes, fills in defaults, and validates.
fn finish_update(
    call: &mut Call,
    old: &Object,
    mut new: Value,
    key: &Key,
    part: Part,
    replace: bool,
    applied: bool,
) -> Result<Value, ApiError> {
    let res = Arc::clone(&call.res);
    check_type(&res, &mut new)?;
    set_name(&res, &key.namespace, Some(&key.name), &mut new)?;
    check_version(&res, old, &new, replace)?;
    restrict(&res, &old.value, &mut new, part);
    let unknown = conform(&res, &mut new)?;
    report_unknown(call, unknown)?;
    to_stored(&res, &mut new);
    strategy::default(&res, &mut new);
    strategy::prepare_update(&res, &old.value, &mut new, call.now);
    let mut errors = validate_metadata(&res, &new);
    errors.extend(validate_finalizers(&old.value, &new));
    errors.extend(validate(&res, &new, Some(&old.value)));
    if !errors.is_empty() {
        return Err(ApiError::invalid(&res, &key.name, &errors));
    }
    if res.generation && part == Part::Main && spec_changed(&res, &old.value, &new) {
        let generation = super::json::int(&old.value, &["metadata", "generation"]).unwrap_or(0);
        set(&mut new, &["metadata", "generation"], generation + 1);
    }
    if !applied {
        update_managed_fields(call, Some(&old.value), &mut new, part);
    }
    Ok(new)
}

/// Fails if the client names a version or uid that differs from the stored one.
fn check_version(res: &Resource, old: &Object, new: &Value, replace: bool) -> Result<(), ApiError> {
    let name = meta(&old.value, "name");
    match some_text(new, &["metadata", "resourceVersion"]) {
        Some(version) if version != old.version.to_string() => return Err(ApiError::modified(res, name)),
        None if replace && res.custom.is_some() => {
            let message = "Invalid value: 0x0: must be specified for an update".to_owned();
            let error = FieldError {
                kind: FieldErrorKind::Invalid,
                field: "metadata.resourceVersion".into(),
                message,
            };
            return Err(ApiError::invalid(res, name, &[error]));
        }
        _ => {}
    }
    let (uid, stored) = (meta(new, "uid"), meta(&old.value, "uid"));
    if !uid.is_empty() && uid != stored {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}");
        return Err(ApiError::conflict(res, name, &why));
    }
    Ok(())
}

/// Restores the fields that a write of this part may not change.
fn restrict(res: &Resource, old: &Value, new: &mut Value, part: Part) {
    match part {
        Part::Main if res.status => copy(new, old, &["status"]),
        Part::Main => {}
        Part::Status if res.custom.is_some() => {
            let (status, managed) =
                (new.get("status").cloned(), get(new, &["metadata", "managedFields"]).cloned());
            *new = view(res, old);
            match status {
                Some(status) => set(new, &["status"], status),
                None => {
                    remove(new, &["status"]);
                }
            }
            if let Some(managed) = managed {
                set(new, &["metadata", "managedFields"], managed);
            }
        }
        Part::Status => copy(new, old, &["spec"]),
        Part::Finalize => {
            let names = get(new, &["spec", "finalizers"]).cloned().unwrap_or_else(|| json!([]));
            *new = view(res, old);
            set(new, &["spec", "finalizers"], names);
        }
    }
    for field in [
        "uid",
        "creationTimestamp",
        "generation",
        "generateName",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
    ] {
        copy(new, old, &["metadata", field]);
    }
}

fn validate_finalizers(old: &Value, new: &Value) -> Vec<FieldError> {
    if !is_deleting(old) {
        return Vec::new();
    }
    let before = finalizers(old);
    let added: Vec<String> =
        finalizers(new).into_iter().filter(|f| !before.contains(f)).map(|f| format!("{f:?}")).collect();
    if added.is_empty() {
        return Vec::new();
    }
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    vec![FieldError::new(FieldErrorKind::Forbidden, "metadata.finalizers", &detail)]
}

/// Whether anything but metadata and status differs.
fn spec_changed(res: &Resource, old: &Value, new: &Value) -> bool {
    let skip = |key: &str| key == "metadata" || (key == "status" && res.status);
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    old.iter().any(|(k, v)| !skip(k) && new.get(k) != Some(v))
        || new.keys().any(|k| !skip(k) && !old.contains_key(k))
}

/// Whether `new` equals `old`, except for the version and the times in managed fields.
fn changes_nothing(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    old.len() == new.len()
        && old.iter().all(|(key, value)| match (key.as_str(), new.get(key)) {
            ("metadata", Some(other)) => same_metadata(value, other),
            (_, other) => other == Some(value),
        })
}

fn same_metadata(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let skip = |key: &str| matches!(key, "resourceVersion" | "managedFields");
    let timeless = |map: &serde_json::Map<String, Value>| -> Vec<Value> {
        let mut entries = map.get("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in &mut entries {
            remove(entry, &["time"]);
        }
        entries
    };
    old.iter().all(|(k, v)| skip(k) || new.get(k) == Some(v))
        && new.keys().all(|k| skip(k) || old.contains_key(k))
        && (old.get("managedFields") == new.get("managedFields") || timeless(old) == timeless(new))
}
