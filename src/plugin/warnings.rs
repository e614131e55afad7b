//! Prints the API server's warnings on standard error, as kubectl does.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{Write, stderr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::header::WARNING;
use http::{HeaderMap, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Service};

use crate::condor::harmless;

/// A client that does as `client` does, and prints each warning of the API server once.
pub fn telling(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Telling { client, told: Arc::default() }, namespace)
}

struct Telling {
    client: Client,
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl Service<Request<Body>> for Telling {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, told) = (self.client.clone(), Arc::clone(&self.told));
        Box::pin(async move {
            let answer = client.send(request).await?;
            for warning in warnings(answer.headers()) {
                let new = told.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.clone());
                if new {
                    // Nobody may be there to read it.
                    let _ = writeln!(stderr(), "Warning: {}", harmless(&warning));
                }
            }
            Ok(answer)
        })
    }
}

/// The texts of the warnings in an answer's headers: `299 - "text"` (RFC 7234, section 5.5).
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let text = |value: &http::HeaderValue| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let (_, quoted) = value.strip_prefix("299 ")?.split_once('"')?;
        let text = quoted.strip_suffix('"')?;
        Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    headers.get_all(WARNING).iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_from_the_headers() {
        let mut headers = HeaderMap::new();
        for value in [
            r#"299 - "unknown field \"spec.template.spec.containers[0].volumeMount\"""#,
            r#"299 apiserver "a second""#,
            r#"199 - "of a proxy""#,
            "299 no text",
        ] {
            headers.append(WARNING, value.parse().unwrap());
        }
        assert_eq!(
            warnings(&headers),
            [r#"unknown field "spec.template.spec.containers[0].volumeMount""#, "a second"]
        );
    }
}
