//! Get and list, with versions, pages and selectors.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::error::ApiError;
use super::params::VersionMatch;
use super::resource::Resource;
use super::selectors::{FieldSelector, LabelSelector, Selection};
use super::store::{Key, Object, TooOld};

/// Parses the selectors of a request. The error is 400.
pub(super) fn selection(call: &Call, namespace: Option<&str>) -> Result<Selection, ApiError> {
    let labels = LabelSelector::parse(&call.params.label_selector)
        .map_err(|e| ApiError::bad_request(format!("unable to parse label selector: {e}")))?;
    let fields = FieldSelector::parse(&call.params.field_selector, &call.res.selectable)
        .map_err(|e| ApiError::bad_request(e.to_string()))?;
    Ok(Selection { namespace: namespace.map(str::to_owned), labels, fields })
}

/// A page of a list and its `metadata`.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) meta: Value,
}

/// The content of a `continue` token: the version of the list, and the last key of the previous page.
struct Continue {
    version: u64,
    last: Key,
}

impl Continue {
    /// The token: the version, then namespace and name in hexadecimal digits. Clients do not parse it.
    fn encode(&self) -> String {
        let mut token = self.version.to_string();
        for part in [&self.last.namespace, &self.last.name] {
            token.push('.');
            for byte in part.bytes() {
                // Writing to a String cannot fail.
                let _ = write!(token, "{byte:02x}");
            }
        }
        token
    }

    fn decode(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let version = parts.next()?.parse().ok()?;
        let mut name = || {
            let bytes: Option<Vec<u8>> = parts
                .next()?
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect();
            String::from_utf8(bytes?).ok()
        };
        Some(Self { version, last: Key { namespace: name()?, name: name()? } })
    }
}

/// Lists the objects that the call selects.
pub(super) fn list(api: &Api, call: &Call, namespace: Option<&str>) -> Result<Page, ApiError> {
    let selection = selection(call, namespace)?;
    let (all, version, after) = versioned(api, call, namespace)?;
    let mut selected = all
        .into_iter()
        .filter(|o| after.as_ref().is_none_or(|last| is_after(&o.value, last)))
        .filter(|o| selection.matches(&o.value));
    let limit = call.params.limit;
    let mut meta = json!({"resourceVersion": version.to_string()});
    if limit == 0 {
        return Ok(Page { objects: selected.collect(), meta });
    }
    let objects: Vec<_> = selected.by_ref().take(limit).collect();
    let remaining = selected.count();
    if remaining > 0
        && let Some(last) = objects.last()
    {
        let token = Continue { version, last: Key::of(&last.value) };
        super::json::set(&mut meta, &["continue"], token.encode());
        if selection.is_plain() {
            super::json::set(&mut meta, &["remainingItemCount"], remaining);
        }
    }
    Ok(Page { objects, meta })
}

fn is_after(object: &Value, last: &Key) -> bool {
    let meta = |field| super::json::meta(object, field);
    (meta("namespace"), meta("name")) > (last.namespace.as_str(), last.name.as_str())
}

type Versioned = (Vec<Arc<Object>>, u64, Option<Key>);

/// The objects at the version that the call asks for, this version, and the key after which the page starts.
fn versioned(api: &Api, call: &Call, namespace: Option<&str>) -> Result<Versioned, ApiError> {
    let (params, id) = (&call.params, &call.res.storage);
    if !params.continue_token.is_empty() {
        let token = Continue::decode(&params.continue_token).ok_or_else(|| {
            ApiError::bad_request("continue key is not valid: it was not made by this server")
        })?;
        let objects = api.store.snapshot_at(id, token.version).map_err(|TooOld(_)| {
            ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a \
                 new list without the continue parameter.",
            )
        })?;
        return Ok((in_namespace(objects, namespace), token.version, Some(token.last)));
    }
    let (objects, now) = api.store.snapshot(id, namespace);
    match (params.resource_version, params.version_match) {
        (Some(asked), _) if asked > now => Err(ApiError::too_large_version(asked, now)),
        (Some(asked), Some(VersionMatch::Exact)) if asked > 0 => {
            let objects = api.store.snapshot_at(id, asked).map_err(|TooOld(oldest)| {
                ApiError::expired(format!(
                    "The resourceVersion for the provided list is too old: {asked} ({oldest})"
                ))
            })?;
            Ok((in_namespace(objects, namespace), asked, None))
        }
        (None, Some(_)) if params.initial_events.is_none() => {
            Err(ApiError::bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        }
        _ => Ok((objects, now, None)),
    }
}

fn in_namespace(objects: Vec<Arc<Object>>, namespace: Option<&str>) -> Vec<Arc<Object>> {
    let Some(namespace) = namespace else { return objects };
    objects.into_iter().filter(|o| super::json::meta(&o.value, "namespace") == namespace).collect()
}

/// Returns one object. Fails if the call names a version that the server has not reached.
pub(super) fn get(api: &Api, call: &Call, key: &Key) -> Result<Arc<Object>, ApiError> {
    let now = api.store.version();
    if let Some(asked) = call.params.resource_version.filter(|asked| *asked > now) {
        return Err(ApiError::too_large_version(asked, now));
    }
    api.fetch(&call.res, key)
}

/// Fails with 404 if the path has a namespace and the kind is cluster-wide, or if the path names an object of a
/// namespaced kind without a namespace.
pub(super) fn check_scope(
    res: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<(), ApiError> {
    let fits = if res.namespaced { namespace.is_some() || name.is_none() } else { namespace.is_none() };
    if fits { Ok(()) } else { Err(ApiError::no_such_resource()) }
}
