//! A client that checks the answers of the API server before kube decodes them.
//!
//! kube logs the whole text of an answer that kube cannot decode. Therefore this client turns an answer that is not
//! JSON into an error that quotes nothing of the answer. (An [`Item`](crate::decode::Item) decodes any JSON.)
//!
//! kube bounds how long a watch may be silent, but not how long a list or the beginning of a watch may take. Therefore
//! the client of a watch ([`watching`]) bounds the time until an answer begins: if an answer never came, the operator
//! would see no object of that kind until its next start.
//!
//! kube lets a list in the form of a watch begin at any version that the API server has in its cache. Such a list may be older than
//! what this program has written or read itself, so that a new leader would repeat what its predecessor has done. Therefore the client
//! of a watch asks for the newest version.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use serde::de::IgnoredAny;
use tokio::time::timeout;
use tower::{BoxError, Service};

/// For how long a request of a watch may be without the beginning of an answer. A server under load may take long to list.
const LIMIT: Duration = Duration::from_secs(30);

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
                Some(limit) => match timeout(limit, client.send(request)).await {
                    Ok(answer) => answer?,
                    Err(_) => return Err(format!("no answer began within {limit:?}").into()),
                },
            };
            match (answer.status().is_success(), watches) {
                (false, _) => Ok(answer),
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
