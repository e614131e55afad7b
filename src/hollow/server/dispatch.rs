//! Finds the handler of a request by its method and target, and calls it.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde_json::{Value, json};

use super::admission::User;
use super::api::{Api, Call};
use super::counts::RequestKey;
use super::create::create;
use super::delete::{Options, delete, delete_all};
use super::discovery::review_kind;
use super::encode::{self, Form};
use super::error::ApiError;
use super::http::{Reply, client, header};
use super::params::Params;
use super::path::Target;
use super::store::{Key, Object};
use super::write::{Part, Source, update};
use super::{pod_actions, protobuf, read, scale, watch};

/// Counts and answers a request to a resource.
pub(super) fn dispatch(
    api: &Arc<Api>,
    parts: &Parts,
    target: &Target,
    body: &Bytes,
) -> Result<Reply, ApiError> {
    let params = Params::parse(&parts.uri)?;
    let verb = verb(&parts.method, target, &params)?;
    api.counts.add(RequestKey {
        client: client(&parts.headers).to_owned(),
        verb,
        group: target.group.clone(),
        resource: target.resource.clone(),
        subresource: target.subresource.clone().unwrap_or_default(),
    });
    let Some(res) = api.registry.resolve(&target.group, &target.version, &target.resource) else {
        return review(target, verb, parts, body);
    };
    read::check_scope(&res, target.namespace.as_deref(), target.name.as_deref())?;
    let form = Form::negotiate(&parts.headers, params.include)?;
    let manager = match params.field_manager.as_str() {
        "" => client(&parts.headers),
        named => named,
    };
    let manager = if manager.is_empty() { "unknown" } else { manager }.chars().take(128).collect();
    let user = User::of(&parts.headers);
    let mut call = Call { res, params, manager, user, now: api.now(), warnings: Vec::new() };
    let request = Incoming { parts, target, body, form };
    let mut reply = match target.subresource.as_deref() {
        None => request.main(api, &mut call, verb),
        Some(name) => request.subresource(api, &mut call, verb, name),
    }?;
    reply.warnings = call.warnings;
    Ok(reply)
}

fn verb(method: &Method, target: &Target, params: &Params) -> Result<&'static str, ApiError> {
    Ok(match (method.as_str(), &target.name) {
        ("GET", None) if params.watch => "watch",
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        ("POST", _) => "create",
        ("PUT", Some(_)) => "update",
        ("PATCH", Some(_)) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        _ => return Err(ApiError::method_not_allowed()),
    })
}

struct Incoming<'a> {
    parts: &'a Parts,
    target: &'a Target,
    body: &'a Bytes,
    form: Form,
}

impl Incoming<'_> {
    fn key(&self) -> Key {
        Key::new(
            self.target.namespace.as_deref().unwrap_or_default(),
            self.target.name.as_deref().unwrap_or_default(),
        )
    }

    fn main(&self, api: &Arc<Api>, call: &mut Call, verb: &str) -> Result<Reply, ApiError> {
        let namespace = self.target.namespace.as_deref();
        match verb {
            "get" => Ok(self.object(call, 200, &read::get(api, call, &self.key())?)),
            "list" => {
                let page = read::list(api, call, namespace)?;
                let body = encode::objects(&call.res, &page.objects, &page.meta, self.form, call.now);
                Ok(Reply::bytes(200, body))
            }
            "watch" => Ok(Reply::stream(watch::start(api, call, namespace, self.form)?)),
            "create" => {
                let body = decode(self.parts, self.body)?;
                let object =
                    create(api, call, namespace.unwrap_or_default(), self.target.name.as_deref(), body)?;
                Ok(self.object(call, 201, &object))
            }
            "update" | "patch" => self.write(api, call, verb, Part::Main),
            "delete" => {
                let options = Options::read(&call.params, self.options()?.as_ref())?;
                let deleted = delete(api, &call.res, &self.key(), &options)?;
                Ok(match deleted.body(&call.res) {
                    Some(body) => Reply::json(200, &body),
                    None => self.object(call, 200, deleted.object()),
                })
            }
            _ => {
                let options = Options::read(&call.params, self.options()?.as_ref())?;
                let page = read::list(api, call, namespace)?;
                let done = delete_all(api, call, page.objects, &options)?;
                Ok(Reply::bytes(200, encode::objects(&call.res, &done, &page.meta, self.form, call.now)))
            }
        }
    }

    fn subresource(
        &self,
        api: &Arc<Api>,
        call: &mut Call,
        verb: &str,
        name: &str,
    ) -> Result<Reply, ApiError> {
        if !call.res.subresources().contains(&name) {
            return Err(ApiError::no_such_resource());
        }
        let key = self.key();
        match (name, verb) {
            ("status", "get") => Ok(self.object(call, 200, &read::get(api, call, &key)?)),
            ("status", "update" | "patch") => self.write(api, call, verb, Part::Status),
            ("finalize", "update") => self.write(api, call, verb, Part::Finalize),
            ("scale", "get") => {
                let object = read::get(api, call, &key)?;
                Ok(Reply::json(200, &scale::read(&call.res, &object.value)?))
            }
            ("scale", "update" | "patch") => {
                let source = self.source(verb)?;
                Ok(Reply::json(200, &scale::write(api, call, &key, source)?))
            }
            ("binding", "create") => {
                let body = decode(self.parts, self.body)?;
                Ok(Reply::json(201, &pod_actions::bind(api, call, &key, &body)?))
            }
            ("eviction", "create") => {
                let body = decode(self.parts, self.body)?;
                Ok(Reply::json(201, &pod_actions::evict(api, call, &key, &body)?))
            }
            ("log", "get") => {
                api.fetch(&call.res, &key)?;
                Ok(Reply::text(200, "hollow pods run nothing and write no logs\n".to_owned()))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn write(&self, api: &Api, call: &mut Call, verb: &str, part: Part) -> Result<Reply, ApiError> {
        let source = self.source(verb)?;
        let (object, created) = update(api, call, &self.key(), part, &source)?;
        Ok(self.object(call, if created { 201 } else { 200 }, &object))
    }

    fn source(&self, verb: &str) -> Result<Source, ApiError> {
        if verb == "update" {
            return decode(self.parts, self.body).map(Source::Replace);
        }
        let media = media_type(self.parts);
        let parse = |kind: fn(Value) -> Source| parse_json(self.body).map(kind);
        match media.as_str() {
            "application/merge-patch+json" => parse(Source::MergePatch),
            "application/json-patch+json" => parse(Source::JsonPatch),
            "application/strategic-merge-patch+json" => parse(Source::StrategicPatch),
            "application/apply-patch+yaml" => parse_yaml(self.body).map(Source::Apply),
            _ => Err(ApiError::media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ])),
        }
    }

    /// `DeleteOptions` in the body, if there are any.
    fn options(&self) -> Result<Option<Value>, ApiError> {
        if self.body.is_empty() { Ok(None) } else { decode(self.parts, self.body).map(Some) }
    }

    fn object(&self, call: &Call, code: u16, object: &Arc<Object>) -> Reply {
        Reply::bytes(code, encode::object(&call.res, object, self.form, call.now))
    }
}

fn media_type(parts: &Parts) -> String {
    header(&parts.headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// Decodes a body from JSON, YAML or protobuf, as its content type says.
fn decode(parts: &Parts, body: &Bytes) -> Result<Value, ApiError> {
    match media_type(parts).as_str() {
        "" | "application/json" => parse_json(body),
        "application/yaml" => parse_yaml(body),
        protobuf::MEDIA_TYPE => protobuf::decode(body).map_err(|e| ApiError::bad_request(e.to_string())),
        _ => Err(ApiError::media_type(&["application/json", "application/yaml", protobuf::MEDIA_TYPE])),
    }
}

fn parse_json(body: &Bytes) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|e| {
        ApiError::bad_request(format!("the object provided is unrecognized: it is not JSON: {e}"))
    })
}

/// Parses YAML. Most clients send JSON with the content type of YAML; the JSON parser is faster, so it tries first.
fn parse_yaml(body: &Bytes) -> Result<Value, ApiError> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let unreadable = |e: String| ApiError::bad_request(format!("error decoding YAML: {e}"));
    let text = std::str::from_utf8(body).map_err(|e| unreadable(e.to_string()))?;
    serde_saphyr::from_str(text).map_err(|e| unreadable(e.to_string()))
}

/// Answers a review, which asks whether something is allowed. This server allows everything.
fn review(target: &Target, verb: &str, parts: &Parts, body: &Bytes) -> Result<Reply, ApiError> {
    let kind = review_kind(&target.group, &target.resource).filter(|_| target.version == "v1");
    let Some(kind) = kind else { return Ok(Reply::no_such_page()) };
    if verb != "create" {
        return Err(ApiError::method_not_allowed());
    }
    let mut review = decode(parts, body)?;
    let all = json!(["*"]);
    let status = match kind {
        "SelfSubjectReview" => {
            json!({"userInfo": {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}})
        }
        "SelfSubjectRulesReview" => json!({"incomplete": false,
            "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all}],
            "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}]}),
        _ => json!({"allowed": true, "reason": "the embedded server allows everything"}),
    };
    super::json::set(&mut review, &["status"], status);
    super::json::set(&mut review, &["kind"], kind);
    super::json::set(&mut review, &["apiVersion"], format!("{}/v1", target.group));
    Ok(Reply::json(201, &review))
}
