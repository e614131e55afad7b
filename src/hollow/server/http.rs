//! The HTTP transport: reads a request, has it handled, and writes the response.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, USER_AGENT, WARNING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::api::Api;
use super::discovery::{self, Document};
use super::error::ApiError;
use super::path::{Route, Target, parse};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to a request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Body,
    pub(super) warnings: Vec<String>,
}

impl Reply {
    pub(super) fn bytes(code: u16, body: Bytes) -> Self {
        Self { code, content_type: JSON, body: Body::from(body), warnings: Vec::new() }
    }

    pub(super) fn json(code: u16, value: &Value) -> Self {
        Self::bytes(code, Bytes::from(value.to_string()))
    }

    pub(super) fn stream(body: Body) -> Self {
        Self { code: 200, content_type: JSON, body, warnings: Vec::new() }
    }

    pub(super) fn text(code: u16, text: String) -> Self {
        Self { code, content_type: TEXT, body: Body::from(text), warnings: Vec::new() }
    }

    /// The answer for a path that nobody serves, such as that of a kind without its CustomResourceDefinition. As with the real API
    /// server, the answer is no `Status`.
    pub(super) fn no_such_page() -> Self {
        Self::text(404, "404 page not found\n".to_owned())
    }

    fn into_response(self) -> Response {
        let mut response = Response::new(self.body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers
            .insert(HeaderName::from_static("cache-control"), HeaderValue::from_static("no-cache, private"));
        for warning in self.warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                headers.append(WARNING, value);
            }
        }
        response
    }
}

/// Answers one request.
pub(super) async fn handle(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let reply = match respond(&api, &parts, body).await {
        Ok(reply) => reply,
        Err(error) => Reply::json(error.code, &error.status()),
    };
    reply.into_response()
}

async fn respond(api: &Arc<Api>, parts: &Parts, body: Body) -> Result<Reply, ApiError> {
    let Some(route) = parse(parts.uri.path()) else {
        return Ok(Reply::no_such_page());
    };
    let Route::Object(target) = route else {
        return plain(api, parts, &route);
    };
    let limit = api.config.body_limit;
    let announced = header(&parts.headers, &CONTENT_LENGTH).parse::<usize>().unwrap_or(0);
    if announced > limit {
        return Err(ApiError::body_too_large(limit));
    }
    let body = to_bytes(body, limit).await.map_err(|_| ApiError::body_too_large(limit))?;
    if makes_pod(parts, &target) && target.namespace.as_deref().is_some_and(|namespace| api.hangs(namespace))
    {
        api.stop.cancelled().await;
        return Err(ApiError::webhook_timeout());
    }
    super::dispatch::dispatch(api, parts, &target, &body)
}

fn makes_pod(parts: &Parts, target: &Target) -> bool {
    parts.method == Method::POST && target.resource == "pods" && target.name.is_none()
}

/// A header as text; empty if it is absent.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The first part of the User-Agent: `kubectl` of `kubectl/v1.33.0 (linux/amd64)`.
pub(super) fn client(headers: &HeaderMap) -> &str {
    header(headers, &USER_AGENT).split(['/', ' ']).next().unwrap_or_default()
}

/// Answers a request whose path is not that of a resource.
fn plain(api: &Api, parts: &Parts, route: &Route) -> Result<Reply, ApiError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    let aggregated = header(&parts.headers, &ACCEPT).contains("apidiscovery.k8s.io;v=v2;");
    let found = match route {
        Route::Health => return Ok(Reply::text(200, "ok".to_owned())),
        Route::Metrics => return Ok(Reply::text(200, api.counts.metrics())),
        Route::Version => Some(discovery::version()),
        Route::Root => {
            Some(json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2",
            "/openapi/v3", "/readyz", "/version"]}))
        }
        Route::CoreVersions | Route::Groups if aggregated => {
            let body = discovery::aggregated(api, *route == Route::CoreVersions);
            return Ok(Reply { content_type: discovery::AGGREGATED, ..Reply::json(200, &body) });
        }
        Route::CoreVersions => Some(discovery::core_versions()),
        Route::Groups => Some(discovery::group_list(api)),
        Route::Group(name) => discovery::group(api, name),
        Route::Resources(group, version) => discovery::resource_list(api, group, version),
        Route::OpenApiV2 if !speaks_json(&parts.headers) => return Err(ApiError::not_acceptable()),
        Route::OpenApiV2 => discovery::openapi(api, &Document::V2),
        Route::OpenApiIndex => discovery::openapi(api, &Document::Index),
        Route::OpenApi(group, version) => discovery::openapi(api, &Document::V3(group, version)),
        Route::Object(_) => None,
    };
    Ok(found
        .map_or_else(|| Reply::text(404, "404 page not found\n".to_owned()), |body| Reply::json(200, &body)))
}

/// Whether the client accepts JSON. Old clients ask for OpenAPI version 2 in protobuf, which this server does not have.
fn speaks_json(headers: &HeaderMap) -> bool {
    let accept = header(headers, &ACCEPT);
    accept.is_empty() || accept.contains("json") || accept.contains("*/*")
}
