//! A client that checks the answers of the API server before kube decodes them.
//!
//! kube logs the whole text of an answer that kube cannot decode. Therefore this client turns an answer that is not
//! JSON into an error that quotes nothing of the answer. (An [`Item`](crate::decode::Item) decodes any JSON.)
//!
//! kube bounds how long a watch may be silent, but not how long a list or the beginning of a watch may take. Therefore
//! the client of a watch ([`watching`]) bounds the time until an answer begins: if an answer never came, the operator
//! would see no object of that kind until its next start.
//!
//! An API server that has too much to do answers with 429 and says when to come again. The client of a watch comes again then.
//!
//! kube lets a list in the form of a watch begin at any version that the API server has in its cache. Such a list may be older than
//! what this program has written or read itself, so that a new leader would repeat what its predecessor has done. Therefore the client
//! of a watch asks for the newest version.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::{StatusSummary, reason};
use serde::de::IgnoredAny;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Service};

/// For how long a request of a watch may be without the beginning of an answer. A server under load may take long to list.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a request of a watch is sent again because the API server is too busy. client-go does so, too.
const AGAIN: usize = 10;

/// The shortest pause before that.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest pause that this client waits for the API server; if the server asks for more, the request has failed.
const LONGEST: Duration = Duration::from_secs(5);

/// The longest line of a plain text that is quoted as the API server's words, in bytes.
const LONGEST_LINE: usize = 200;

/// A client that does as `client` does, except that an answer must be JSON.
pub fn guarded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Guarded { client, limit: None, resumed: Arc::new(|| {}) }, namespace)
}

/// The client of a watch: an answer must be JSON, and begin within 30 s. `resumed` is called when the API server begins
/// to tell changes, unless the watch begins with a list.
pub fn watching(client: Client, resumed: impl Fn() + Send + Sync + 'static) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Guarded { client, limit: Some(LIMIT), resumed: Arc::new(resumed) }, namespace)
}

struct Guarded {
    client: Client,
    limit: Option<Duration>,
    resumed: Arc<dyn Fn() + Send + Sync>,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        let (limit, resumed) = (self.limit, Arc::clone(&self.resumed));
        let watches = asks_for(request.uri(), "watch=true");
        let lists_first = watches && asks_for(request.uri(), LISTS_FIRST);
        if lists_first && let Some(uri) = of_the_present(request.uri()) {
            *request.uri_mut() = uri;
        }
        Box::pin(async move {
            let answer = match limit {
                None => client.send(request).await?,
                Some(limit) => send_again(&client, request, limit).await?,
            };
            match (answer.status().is_success(), watches) {
                (false, _) => as_status(answer).await,
                // Each line is an event. If kube cannot decode one, it reports an error and logs nothing of the text.
                (true, true) => {
                    if !lists_first {
                        resumed();
                    }
                    Ok(answer)
                }
                (true, false) => checked(answer).await,
            }
        })
    }
}

/// Sends a request of a watch. While the API server is too busy and says when to come again, the request is sent again then, up to
/// [`AGAIN`] times: a list that waits for its turn is no failure, after which the watch would pause ever longer.
async fn send_again(
    client: &Client,
    mut request: Request<Body>,
    limit: Duration,
) -> Result<Response<Body>, BoxError> {
    let mut left = AGAIN;
    loop {
        let same = same(&request);
        let Ok(answer) = timeout(limit, client.send(request)).await else {
            return Err(format!("no answer began within {limit:?}").into());
        };
        let answer = answer?;
        match (asked_to_wait(&answer), same) {
            (Some(pause), Some(same)) if left > 0 => {
                left -= 1;
                sleep(pause).await;
                request = same;
            }
            _ => return Ok(answer),
        }
    }
}

/// The pause for which the API server asks because it is too busy; `None` if the server does not ask, or asks for a longer pause than
/// [`LONGEST`].
fn asked_to_wait(answer: &Response<Body>) -> Option<Duration> {
    let said =
        answer.headers().get(RETRY_AFTER).filter(|_| answer.status() == StatusCode::TOO_MANY_REQUESTS)?;
    let pause = Duration::from_secs(said.to_str().ok()?.parse().ok()?);
    (pause <= LONGEST).then(|| pause.max(SHORTEST))
}

/// The same request once more; `None` for a request that may have a body.
fn same(request: &Request<Body>) -> Option<Request<Body>> {
    let (method, uri) = (request.method(), request.uri());
    let mut same = Request::builder().method(method).uri(uri).body(Body::empty()).ok()?;
    same.headers_mut().clone_from(request.headers());
    (method == Method::GET).then_some(same)
}

/// The parameter of a watch that begins with a list.
const LISTS_FIRST: &str = "sendInitialEvents=true";

/// Whether the query has this parameter.
fn asks_for(uri: &Uri, parameter: &str) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|found| found == parameter))
}

/// The same request without a version, which asks for the objects as they are now; `None` if the request has no parameters.
fn of_the_present(uri: &Uri) -> Option<Uri> {
    let (path, query) = (uri.path(), uri.query()?);
    let kept: Vec<&str> =
        query.split('&').filter(|parameter| !parameter.starts_with("resourceVersion=")).collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{path}?{}", kept.join("&")).parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// A refusal as a `Status`, which kube understands. The API server answers in plain text if nobody serves a path, such as that of a kind
/// without its CustomResourceDefinition, and if it is too busy; kube's [`Status::is_not_found`] and its companions miss such answers.
/// Nothing is quoted of other texts, such as the page of a proxy.
async fn as_status(answer: Response<Body>) -> Result<Response<Body>, BoxError> {
    let (mut head, body) = answer.into_parts();
    let body = body.collect_bytes().await?;
    if serde_json::from_slice::<Status>(&body).is_ok_and(|status| status.code != 0) {
        return Ok(Response::from_parts(head, Body::from(body)));
    }
    let is_plain =
        head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let said =
        std::str::from_utf8(line).ok().filter(|line| is_plain && (1..=LONGEST_LINE).contains(&line.len()));
    let message =
        said.map_or_else(|| format!("an answer of {} bytes that is no Status", body.len()), str::to_owned);
    let status = Status {
        status: Some(StatusSummary::Failure),
        code: head.status.as_u16(),
        reason: reason_of(head.status).to_owned(),
        message,
        ..Status::default()
    };
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Response::from_parts(head, Body::from(serde_json::to_vec(&status)?)))
}

/// The reason that client-go gives an answer that is no `Status`.
const fn reason_of(code: StatusCode) -> &'static str {
    match code {
        StatusCode::BAD_REQUEST => reason::BAD_REQUEST,
        StatusCode::UNAUTHORIZED => reason::UNAUTHORIZED,
        StatusCode::FORBIDDEN => reason::FORBIDDEN,
        StatusCode::NOT_FOUND => reason::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED => reason::METHOD_NOT_ALLOWED,
        StatusCode::CONFLICT => reason::CONFLICT,
        StatusCode::GONE => reason::EXPIRED,
        StatusCode::UNPROCESSABLE_ENTITY => reason::INVALID,
        StatusCode::TOO_MANY_REQUESTS => reason::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR => reason::INTERNAL_ERROR,
        StatusCode::SERVICE_UNAVAILABLE => reason::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT => reason::TIMEOUT,
        _ => reason::UNKNOWN,
    }
}

/// An answer whose body is JSON.
async fn checked(answer: Response<Body>) -> Result<Response<Body>, BoxError> {
    let (head, body) = answer.into_parts();
    let body = body.collect_bytes().await?;
    match serde_json::from_slice::<IgnoredAny>(&body) {
        Ok(_) => Ok(Response::from_parts(head, Body::from(body))),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let length = body.len();
            Err(format!("an answer of {length} bytes is no JSON, from line {line}, column {column} on")
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;

    /// A client of a watch whose API server refuses so many requests before it answers, with this header.
    fn refused(times: usize, retry_after: Option<&'static str>) -> (Client, Arc<Mutex<Vec<String>>>) {
        let (count, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let asked = Arc::clone(&seen);
        let server = service_fn(move |request: Request<Body>| {
            asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            let refuses = count.fetch_add(1, Ordering::Relaxed) < times;
            let mut answer = Response::builder().status(if refuses { 429 } else { 200 });
            if let Some(seconds) = retry_after.filter(|_| refuses) {
                answer = answer.header(RETRY_AFTER, seconds);
            }
            async move { Ok::<_, BoxError>(answer.body(Body::from(b"{}".to_vec())).unwrap()) }
        });
        (watching(Client::new(server, "default"), || {}), seen)
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_when_it_says() {
        for (times, retry_after, sent, status, seconds) in [
            (0, None, 1, 200, 0),
            (3, Some("1"), 4, 200, 3),
            (3, Some("0"), 4, 200, 3),
            (2, Some("4"), 3, 200, 8),
            (99, Some("1"), 11, 429, 10),
            (1, None, 1, 429, 0),
            (1, Some("6"), 1, 429, 0),
            (1, Some("soon"), 1, 429, 0),
        ] {
            let (client, seen) = refused(times, retry_after);
            let began = Instant::now();
            let request = Request::get("http://x/api/v1/pods?limit=7").body(Body::empty()).unwrap();
            let answer = client.send(request).await.unwrap();
            let case = format!("{times} times, {retry_after:?}");
            assert_eq!((answer.status().as_u16(), began.elapsed().as_secs()), (status, seconds), "{case}");
            let seen = seen.lock().unwrap();
            assert_eq!(seen.len(), sent, "{case}");
            assert!(seen.iter().all(|asked| asked == "GET http://x/api/v1/pods?limit=7"), "{seen:?}");
        }
    }

    /// Answers of a real kube-apiserver 1.36 without the CustomResourceDefinition, of one that is too busy, and of a proxy.
    #[tokio::test]
    async fn an_answer_in_plain_text_is_a_status() {
        let long = "x".repeat(201);
        for (code, kind, text, reason, message) in [
            (404, "text/plain; charset=utf-8", "404 page not found\n", "NotFound", "404 page not found"),
            (429, "text/plain", "Too many requests.", "TooManyRequests", "Too many requests."),
            (403, "text/html", "<html>secret", "Forbidden", "an answer of 12 bytes that is no Status"),
            (502, "text/plain", &long, "", "an answer of 201 bytes that is no Status"),
            (
                404,
                "application/json",
                r#"{"secret": 1}"#,
                "NotFound",
                "an answer of 13 bytes that is no Status",
            ),
            (
                409,
                "application/json",
                r#"{"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409,"message":"there"}"#,
                "AlreadyExists",
                "there",
            ),
        ] {
            let text = text.to_owned();
            let server = service_fn(move |_: Request<Body>| {
                let answer = Response::builder().status(code).header(CONTENT_TYPE, kind);
                let answer = answer.body(Body::from(text.clone().into_bytes())).unwrap();
                async move { Ok::<_, BoxError>(answer) }
            });
            let client = guarded(Client::new(server, "default"));
            let request = Request::get("/api/v1/pods").body(Vec::new()).unwrap();
            let Err(kube::Error::Api(status)) = client.request::<serde_json::Value>(request).await else {
                panic!("{code} is an error");
            };
            assert_eq!((status.code, &*status.reason, &*status.message), (code, reason, message));
            assert_eq!(status.is_not_found(), code == 404);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_not_sent_again() {
        let (client, seen) = refused(1, Some("1"));
        let request = Request::post("http://x/api/v1/pods").body(Body::from(b"{}".to_vec())).unwrap();
        assert_eq!(client.send(request).await.unwrap().status(), 429);
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}
