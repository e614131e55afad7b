//! A client for watches that does not wait for ever. kube bounds how long a watch may be silent, but not how long a list
//! or the beginning of a watch may take: if one answer never came, the operator would see nothing of that kind until the
//! next start.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;
use tower::{BoxError, Service};

/// For how long a request may be without the beginning of an answer. A server under load may take long to list.
const LIMIT: Duration = Duration::from_secs(30);

/// A client that does as `client` does, except that a request fails if no answer begins within [`LIMIT`].
pub fn impatient(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Impatient(client), namespace)
}

struct Impatient(Client);

impl Service<Request<Body>> for Impatient {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            match timeout(LIMIT, client.send(request)).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(format!("no answer began within {LIMIT:?}").into()),
            }
        })
    }
}
