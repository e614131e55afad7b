//! HTTPS: reads a review, answers it, and bounds what a client can take.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rustls::server::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use controller::Clock;
use controller::seal::Key;
use controller::serving::{self, HEAD_WITHIN};

use crate::known::Known;
use crate::review::{MOST_BYTES, Malformed, Review, read, review};
use crate::sealing::seal;

/// How long a review may take. The API server waits for 3 s.
const REVIEW_WITHIN: Duration = Duration::from_millis(2500);
/// How many reviews are under way at most. Others wait for one of these, within their own time.
const MOST_REVIEWS: usize = 8;

/// The present state of all that the server needs.
#[derive(Clone)]
pub struct Serving {
    /// The other objects.
    pub known: watch::Receiver<Arc<Known>>,
    /// The certificate. As long as there is none, connections are closed at once.
    pub certificate: watch::Receiver<Option<Arc<ServerConfig>>>,
    /// The key of seals.
    pub key: watch::Receiver<Option<Key>>,
    /// The time, for seals.
    pub clock: Clock,
}

/// Serves `/validate` and `/mutate` without end. If the future is dropped, all connections are closed.
pub async fn serve(listener: TcpListener, serving: Serving) {
    let certificate = serving.certificate.clone();
    let router = Router::new()
        .route("/validate", post(validate))
        .route("/mutate", post(mutate))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state((serving, Arc::new(Semaphore::new(MOST_REVIEWS))));
    serving::serve(listener, move |stream| {
        let config = certificate.borrow().clone();
        answer(stream, config, router.clone())
    })
    .await;
}

async fn answer(stream: TcpStream, config: Option<Arc<ServerConfig>>, router: Router) {
    let Some(config) = config else { return };
    if let Ok(Ok(secure)) = timeout(HEAD_WITHIN, TlsAcceptor::from(config).accept(stream)).await {
        serving::answer_one(secure, router).await;
    }
}

type Asked = State<(Serving, Arc<Semaphore>)>;

async fn validate(State((serving, room)): Asked, body: Bytes) -> Response {
    let known = serving.known.borrow().clone();
    reviewed(room, body, move |asked| review(asked, &known)).await
}

async fn mutate(State((serving, room)): Asked, body: Bytes) -> Response {
    let (known, key) = (serving.known.borrow().clone(), serving.key.borrow().clone());
    reviewed(room, body, move |asked| seal(asked, &known, key.as_ref(), serving.clock.now())).await
}

/// Answers a review on a thread for work that blocks: a large object takes long to read.
async fn reviewed(
    room: Arc<Semaphore>,
    body: Bytes,
    judge: impl FnOnce(&Review) -> Review + Send + 'static,
) -> Response {
    let reviewed = async move {
        let room = room.acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            // The room is given back when the work is done, even if nobody waits for the answer any more.
            let _room = room;
            let answer = match read(&body) {
                Ok(asked) => judge(&asked),
                Err(Malformed::Object(answer)) => *answer,
                Err(error) => return Err((StatusCode::BAD_REQUEST, error.to_string())),
            };
            serde_json::to_vec(&answer)
                .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        })
        .await
    };
    match timeout(REVIEW_WITHIN, reviewed).await {
        Ok(Ok(Ok(answer))) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(Ok(Err(wrong))) => wrong.into_response(),
        Ok(Err(fault)) => {
            tracing::error!(
                error = &fault as &dyn std::error::Error,
                "a review ended in a fault of the operator's own"
            );
            (StatusCode::INTERNAL_SERVER_ERROR, "a fault of the operator's own".to_owned()).into_response()
        }
        Err(_) => {
            let text = format!("the review took longer than {REVIEW_WITHIN:?}");
            (StatusCode::GATEWAY_TIMEOUT, text).into_response()
        }
    }
}

#[cfg(test)]
#[path = "tests/server.rs"]
pub(crate) mod tests;
