//! Creates objects: the way from the decoded body to the stored object.

use std::sync::Arc;

use serde_json::Value;

use super::admission;
use super::api::{Api, Call};
use super::conform::conform;
use super::error::ApiError;
use super::json::{is_deleting, meta, remove, set, some_text};
use super::names::validate_metadata;
use super::resource::Resource;
use super::store::{Key, Object};
use super::strategy;
use super::time::rfc3339;
use super::write::{Part, check_type, report_unknown, set_name, to_stored, update_managed_fields, validate};

/// Creates an object.
pub(super) fn create(
    api: &Api,
    call: &mut Call,
    namespace: &str,
    name: Option<&str>,
    body: Value,
) -> Result<Arc<Object>, ApiError> {
    create_as(api, call, namespace, name, body, false)
}

/// Creates an object. `applied` says that the object comes from a server-side apply, so that its managed fields are
/// complete.
pub(super) fn create_as(
    api: &Api,
    call: &mut Call,
    namespace: &str,
    name: Option<&str>,
    mut body: Value,
    applied: bool,
) -> Result<Arc<Object>, ApiError> {
    let res = Arc::clone(&call.res);
    check_type(&res, &mut body)?;
    set_name(&res, namespace, name, &mut body)?;
    if some_text(&body, &["metadata", "resourceVersion"]).is_some() && !applied {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    admission::mutate(api, call, namespace, None, &mut body)?;
    let generated = meta(&body, "name").is_empty() && !meta(&body, "generateName").is_empty();
    for _ in 0..8 {
        let mut object = body.clone();
        if generated {
            let stem: String = meta(&body, "generateName").chars().take(58).collect();
            set(&mut object, &["metadata", "name"], format!("{stem}{}", api.ids.suffix()));
        }
        check_definition(api, &res)?;
        check_namespace(api, &res, namespace, meta(&object, "name"))?;
        let object = finish_create(api, call, object, applied)?;
        admission::validate(api, call, namespace, None, &object)?;
        let key = Key::of(&object);
        if call.params.dry_run {
            if api.store.get(&res.storage, &key).is_some() {
                return Err(ApiError::already_exists(&res, &key.name));
            }
            return Ok(Arc::new(Object::new(object, 0)));
        }
        match api.insert(&res, object) {
            Ok(stored) => return Ok(stored),
            Err(_) if generated => {}
            Err(_) => return Err(ApiError::already_exists(&res, &key.name)),
        }
    }
    Err(ApiError::already_exists(&res, meta(&body, "generateName")))
}

/// Refuses an object of a CRD that is being deleted. Otherwise the deletion might never end.
fn check_definition(api: &Api, res: &Resource) -> Result<(), ApiError> {
    let Some(custom) = &res.custom else { return Ok(()) };
    let crds = api.registry.resolve("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let crd = crds.and_then(|crds| api.store.get(&crds.storage, &Key::new("", &custom.crd)));
    if crd.is_some_and(|crd| !is_deleting(&crd.value)) {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(ApiError::new(405, "MethodNotAllowed", why))
}

fn check_namespace(api: &Api, res: &Resource, namespace: &str, name: &str) -> Result<(), ApiError> {
    if !res.namespaced {
        return Ok(());
    }
    let namespaces = api.registry.resolve("", "v1", "namespaces").ok_or_else(ApiError::no_such_resource)?;
    let found = api.fetch(&namespaces, &Key::new("", namespace))?;
    if is_deleting(&found.value) {
        return Err(ApiError::namespace_terminating(res, name, namespace));
    }
    Ok(())
}

/// Prepares the object for the store: sets its metadata, prunes it, fills in defaults, and validates it.
fn finish_create(api: &Api, call: &mut Call, mut object: Value, applied: bool) -> Result<Value, ApiError> {
    let res = Arc::clone(&call.res);
    for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
        remove(&mut object, &["metadata", field]);
    }
    set(&mut object, &["metadata", "uid"], api.ids.uid());
    set(&mut object, &["metadata", "creationTimestamp"], rfc3339(call.now));
    set(&mut object, &["metadata", "generation"], 1);
    if !res.generation {
        remove(&mut object, &["metadata", "generation"]);
    }
    // Only a Node may be created with a status, because kubelets register their nodes so. All other kinds get their
    // status through the subresource.
    if res.status && !res.is("", "Node") {
        remove(&mut object, &["status"]);
    }
    let unknown = conform(&res, &mut object)?;
    report_unknown(call, unknown)?;
    to_stored(&res, &mut object);
    strategy::default(&res, &mut object);
    strategy::prepare_create(&res, &mut object, call.now);
    let mut errors = validate_metadata(&res, &object);
    errors.extend(validate(&res, &object, None));
    if !errors.is_empty() {
        return Err(ApiError::invalid(&res, meta(&object, "name"), &errors));
    }
    if !applied {
        update_managed_fields(call, None, &mut object, Part::Main);
    }
    Ok(object)
}
