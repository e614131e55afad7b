//! HTTPS: reads a review, answers it, and bounds what a client can take.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::StreamExt;
use rustls::server::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use controller::Clock;
use controller::seal::Key;
use controller::serving::{self, HEAD_WITHIN};

use crate::bodies::{Bodies, MOST_CONNECTIONS, NotHeld};
use crate::known::OtherObjects;
use crate::review::{MOST_BYTES, Malformed, Review, read, review};
use crate::sealing::seal;

/// How long a review may take, from the head of the request on. The API server waits for 3 s.
const REVIEW_WITHIN: Duration = Duration::from_millis(2500);
/// How many bytes of bodies are judged at once at most. An object in memory takes many times the bytes of its text. Other reviews wait,
/// within their own time.
const MOST_JUDGED: usize = 2 * MOST_BYTES;
/// How many bytes a small body counts for: at most eight reviews are judged at once.
const LEAST_JUDGED: usize = MOST_JUDGED / 8;

/// The present state of all that the server needs.
#[derive(Clone)]
pub struct Serving {
    /// The other objects.
    pub known: watch::Receiver<Arc<OtherObjects>>,
    /// The certificate. As long as there is none, connections are closed at once.
    pub certificate: watch::Receiver<Option<Arc<ServerConfig>>>,
    /// The key of seals.
    pub key: watch::Receiver<Option<Key>>,
    /// The time, for seals.
    pub clock: Clock,
}

/// Serves `/validate` and `/mutate` without end. If the future is dropped, all connections are closed.
pub async fn serve(listener: TcpListener, serving: Serving) {
    serve_in(listener, serving, Room::default()).await;
}

async fn serve_in(listener: TcpListener, serving: Serving, room: Room) {
    let certificate = serving.certificate.clone();
    let router = Router::new()
        .route("/validate", post(validate))
        .route("/mutate", post(mutate))
        .with_state((serving, room));
    serving::serve(listener, MOST_CONNECTIONS, move |stream| {
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

/// The room that all requests share.
#[derive(Clone)]
struct Room {
    /// The bodies that are read, or wait to be judged.
    bodies: Arc<Bodies>,
    /// The bytes that can be judged.
    judging: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self { bodies: Arc::default(), judging: Arc::new(Semaphore::new(MOST_JUDGED)) }
    }
}

type Asked = State<(Serving, Room)>;

async fn validate(State((serving, room)): Asked, body: Body) -> Response {
    let known = serving.known.borrow().clone();
    reviewed(room, body, move |asked| review(asked, &known)).await
}

async fn mutate(State((serving, room)): Asked, body: Body) -> Response {
    let (known, key) = (serving.known.borrow().clone(), serving.key.borrow().clone());
    reviewed(room, body, move |asked| seal(asked, &known, key.as_ref(), serving.clock.now())).await
}

/// An error of HTTP.
type Wrong = (StatusCode, String);

/// Reads a review within [`REVIEW_WITHIN`], and answers the review.
async fn reviewed(
    room: Room,
    body: Body,
    judge: impl FnOnce(&Review) -> Review + Send + 'static,
) -> Response {
    match timeout(REVIEW_WITHIN, read_and_judge(room, body, judge)).await {
        Ok(Ok(answer)) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(Err(wrong)) => wrong.into_response(),
        Err(_) => {
            let text = format!("the review took longer than {REVIEW_WITHIN:?}");
            (StatusCode::GATEWAY_TIMEOUT, text).into_response()
        }
    }
}

/// Reads a body, and judges it on a thread for work that blocks: a large object takes long to decode.
///
/// # Errors
/// When the body cannot be read or held, or is no review.
async fn read_and_judge(
    room: Room,
    body: Body,
    judge: impl FnOnce(&Review) -> Review + Send + 'static,
) -> Result<Vec<u8>, Wrong> {
    let (reading, mut chunks) = (room.bodies.begin(), body.into_data_stream());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        reading.push(&chunk).map_err(not_held)?;
    }
    let bytes = u32::try_from(reading.size().max(LEAST_JUDGED)).unwrap_or(u32::MAX);
    let judging = room.judging.acquire_many_owned(bytes).await;
    let body = reading.take().map_err(not_held)?;
    let judged = tokio::task::spawn_blocking(move || {
        // The bytes are given back when the work is done, even if nobody waits for the answer any more.
        let _judging = judging;
        let answer = match read(&body) {
            Ok(asked) => judge(&asked),
            Err(Malformed::Object(answer)) => *answer,
            Err(error) => return Err((StatusCode::BAD_REQUEST, error.to_string())),
        };
        serde_json::to_vec(&answer).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    });
    judged.await.unwrap_or_else(|fault| {
        tracing::error!(
            error = %answers::chain(&fault),
            "a review ended in a fault of the operator's own"
        );
        Err((StatusCode::INTERNAL_SERVER_ERROR, "a fault of the operator's own".to_owned()))
    })
}

fn not_held(why: NotHeld) -> Wrong {
    let status = match why {
        NotHeld::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        NotHeld::LetGo => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, why.to_string())
}

#[cfg(test)]
#[path = "tests/server.rs"]
pub(crate) mod tests;
