//! Encodes stored objects in the form that a client asks for: whole objects, metadata only, or Tables.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT;
use jiff::Timestamp;
use serde_json::{Value, json};

use kube_schema::{IncludeObject, table};

use super::error::ApiError;
use super::events;
use super::resource::Resource;
use super::store::Object;

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Metadata,
    Table(IncludeObject),
}

impl Form {
    /// Reads the Accept header and returns the first form that this server supports; the error is 406.
    pub(super) fn negotiate(headers: &HeaderMap, include: IncludeObject) -> Result<Self, ApiError> {
        let Some(accept) = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).filter(|a| !a.trim().is_empty())
        else {
            return Ok(Self::Whole);
        };
        accept
            .split(',')
            .find_map(|item| Self::of_media_type(item, include))
            .ok_or_else(ApiError::not_acceptable)
    }

    fn of_media_type(item: &str, include: IncludeObject) -> Option<Self> {
        let mut parts = item.split(';').map(str::trim);
        if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut kind, mut group, mut version) = ("", "", "");
        for (key, value) in parts.filter_map(|p| p.split_once('=')) {
            match key {
                "as" => kind = value,
                "g" => group = value,
                "v" => version = value,
                _ => {}
            }
        }
        match (kind, group, version) {
            ("", _, _) => Some(Self::Whole),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Self::Metadata)
            }
            ("Table", "meta.k8s.io", "v1") => Some(Self::Table(include)),
            _ => None,
        }
    }

    /// `kind` and `apiVersion` of a list in this form.
    pub(super) fn list_type(self, res: &Resource) -> (String, String) {
        match self {
            Self::Metadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
            _ => (res.list_kind.clone(), res.api_version()),
        }
    }
}

/// The object in the version of this resource, which may differ from the version in which the object is stored.
pub(super) fn view(res: &Resource, object: &Value) -> Value {
    let mut value = object.clone();
    if events::is_new_form(res) {
        events::from_stored(&mut value);
    } else {
        super::json::set(&mut value, &["apiVersion"], res.api_version());
    }
    value
}

/// One object as JSON in this form.
pub(super) fn object(res: &Resource, object: &Arc<Object>, form: Form, now: Timestamp) -> Bytes {
    match form {
        Form::Metadata => object.metadata(),
        Form::Whole if res.api_version() == res.storage_api_version => object.json(),
        Form::Whole => Bytes::from(view(res, &object.value).to_string()),
        Form::Table(include) => {
            let shown = view(res, &object.value);
            let meta = json!({"resourceVersion": object.version.to_string()});
            Bytes::from(table(&res.columns, &[&shown], &meta, include, now).to_string())
        }
    }
}

/// A list as JSON in this form; `meta` is the list's `metadata`.
pub(super) fn objects(
    res: &Resource,
    objects: &[Arc<Object>],
    meta: &Value,
    form: Form,
    now: Timestamp,
) -> Bytes {
    if let Form::Table(include) = form {
        let shown: Vec<Value> = objects.iter().map(|o| view(res, &o.value)).collect();
        let shown: Vec<&Value> = shown.iter().collect();
        return Bytes::from(table(&res.columns, &shown, meta, include, now).to_string());
    }
    let (kind, api_version) = form.list_type(res);
    let mut text =
        format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{meta},"items":["#).into_bytes();
    for (i, item) in objects.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&object(res, item, form, now));
    }
    text.extend_from_slice(b"]}");
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_first_supported_form_wins() {
        let form = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            Form::negotiate(&headers, IncludeObject::Metadata).ok()
        };
        let table = Some(Form::Table(IncludeObject::Metadata));
        assert_eq!(form("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), table);
        assert_eq!(
            form("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"),
            Some(Form::Whole)
        );
        assert_eq!(form("application/vnd.kubernetes.protobuf, application/json"), Some(Form::Whole));
        assert_eq!(
            form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Some(Form::Metadata)
        );
        assert_eq!(form("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(form("*/*"), Some(Form::Whole));
    }
}
