//! Answers readers: `GET /history`, a page at a time.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::history::{Direction, Query, Store};
use api::history::{TOKEN_HEADER, TOKEN_SECRET_HEADER};
use axum::Router;
use axum::extract::{Query as Asked, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use classad::{Expr, Name};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::super::Clock;
use super::aside;

/// How many pages are made at a time.
const AT_A_TIME: usize = 4;
/// How long a reader waits for a place among the readers that are answered.
const WAIT: Duration = Duration::from_secs(10);
/// How long a page takes at most.
const LATE: Duration = Duration::from_secs(5);
/// The most bytes of a page, without its last ad. Each reader who receives slowly keeps a page in the operator's memory.
const MOST_BYTES: usize = 1 << 20;

struct Server {
    current: PathBuf,
    /// The token that readers must show; `None`: whoever reaches the port may read.
    token: Option<Token>,
    clock: Clock,
    places: Arc<Semaphore>,
}

/// The token that readers must show.
#[derive(Clone, Debug)]
pub struct Token {
    /// The file that has the token.
    pub file: PathBuf,
    /// The Secret that readers get the token from, in the operator's namespace.
    pub secret: String,
}

/// The router of a history in a directory.
pub fn router(directory: &std::path::Path, token: Option<Token>, clock: Clock) -> Router {
    let server = Server {
        current: Store::file_in(directory),
        token,
        clock,
        places: Arc::new(Semaphore::new(AT_A_TIME)),
    };
    Router::new().route("/history", get(answer)).with_state(Arc::new(server))
}

type Refusal = (StatusCode, String);

async fn answer(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Asked(words): Asked<Vec<(String, String)>>,
) -> Response {
    match Arc::clone(&server).answer(&headers, &words).await {
        Ok(page) => ([("content-type", "text/plain; charset=utf-8")], page).into_response(),
        Err(refusal) if refusal.0 == StatusCode::UNAUTHORIZED => {
            let secret = server.token.as_ref().map(|token| token.secret.clone()).unwrap_or_default();
            (refusal.0, [(TOKEN_SECRET_HEADER, secret)], refusal.1).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl Server {
    async fn answer(
        self: Arc<Self>,
        headers: &HeaderMap,
        words: &[(String, String)],
    ) -> Result<Vec<u8>, Refusal> {
        self.admit(headers).await?;
        let query = query(words).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        let busy =
            || (StatusCode::SERVICE_UNAVAILABLE, "too many others read the history; try again".to_owned());
        let waiting = timeout(WAIT, Arc::clone(&self.places).acquire_owned());
        let place = waiting.await.ok().and_then(Result::ok).ok_or_else(busy)?;
        let server = Arc::clone(&self);
        let page = aside(move || {
            // The place is given back when the work is done, even if the reader has gone.
            let _place = place;
            let began = Instant::now();
            query.page(&server.current, server.clock.now().secs(), &|| began.elapsed() >= LATE)
        });
        page.await.flatten().map(|page| page.text).map_err(|error| {
            tracing::warn!(error = %answers::chain(&error), "the history cannot be read");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("the history cannot be read: {error}"))
        })
    }

    /// Whether the reader may read. The file is read each time: a Secret may change.
    async fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(Token { file: path, .. }) = &self.token else { return Ok(()) };
        let refused =
            || (StatusCode::UNAUTHORIZED, "the header X-Slotwright-Token does not have the token".to_owned());
        let file = path.clone();
        let expected = aside(move || fs::read(file)).await.flatten().map_err(|error| {
            tracing::error!(error = %answers::chain(&error), path = %path.display(), "the token of the history's readers cannot be read");
            refused()
        })?;
        let shown = headers.get(TOKEN_HEADER).ok_or_else(refused)?.as_bytes();
        let digest = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes.trim_ascii());
        // The time that a comparison of digests takes tells nothing about the token.
        let same = digest(shown).as_ref() == digest(&expected).as_ref() && !expected.trim_ascii().is_empty();
        if same { Ok(()) } else { Err(refused()) }
    }
}

/// Reads the query of a request from the pairs of its URL. The error is a message for the reader.
fn query(words: &[(String, String)]) -> Result<Query, String> {
    let mut query = Query { most_bytes: MOST_BYTES, ..Query::default() };
    for (name, value) in words {
        let search = &mut query.search;
        let expression = || Expr::parse_old(value).map_err(|error| format!("{name}: {value}: {error}"));
        match name.as_str() {
            "constraint" => search.constraint.push(expression()?),
            "since" => search.since = Some(expression()?),
            "job" => search
                .jobs
                .push(job(value).ok_or_else(|| format!("job: {value} is no job: give 12 or 12.3"))?),
            "owner" => search.owners.push(value.clone()),
            "limit" => search.limit = Some(number(name, value)?),
            "scanlimit" => search.scan_limit = Some(number(name, value)?),
            "forwards" => search.direction = forwards(value)?,
            "attributes" => {
                let names = value.split(',').filter(|name| !name.is_empty()).map(Name::from);
                query.attributes.get_or_insert_default().extend(names);
            }
            "from" => query.from = Some(number(name, value)?),
            _ => {
                return Err(format!(
                    "{name} is unknown; known are constraint, since, job, owner, limit, scanlimit, forwards, attributes, from"
                ));
            }
        }
    }
    Ok(query)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: {value} is no number"))
}

fn job(text: &str) -> Option<(i64, Option<i64>)> {
    match text.split_once('.') {
        Some((cluster, proc)) => Some((cluster.parse().ok()?, Some(proc.parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

fn forwards(value: &str) -> Result<Direction, String> {
    match value {
        "true" => Ok(Direction::Forwards),
        "false" => Ok(Direction::Backwards),
        _ => Err(format!("forwards: {value} is neither true nor false")),
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[(&str, &str)]) -> Result<Query, String> {
        let words: Vec<_> =
            words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        query(&words)
    }

    #[test]
    fn words_are_read_and_wrong_ones_named() {
        let query = asked(&[
            ("constraint", "ExitCode == 0"),
            ("job", "12.3"),
            ("job", "13"),
            ("owner", "ada"),
            ("limit", "5"),
            ("forwards", "true"),
            ("attributes", "Owner,Cmd"),
            ("from", "70"),
        ])
        .unwrap();
        assert_eq!(query.search.jobs, [(12, Some(3)), (13, None)]);
        assert_eq!((query.search.limit, query.from, query.most_bytes), (Some(5), Some(70), MOST_BYTES));
        assert_eq!(query.attributes.map(|names| names.len()), Some(2));
        for (name, value) in [
            ("limit", "x"),
            ("job", "a"),
            ("constraint", "1 +"),
            ("forwards", "1"),
            ("from", "-1"),
            ("colour", "red"),
        ] {
            let why = asked(&[(name, value)]).unwrap_err();
            assert!(why.starts_with(name), "{why}");
        }
    }

    #[tokio::test]
    async fn who_does_not_show_the_token_is_refused() {
        let directory = tempfile::TempDir::new().unwrap();
        let token = directory.path().join("token");
        let server = Server {
            current: PathBuf::new(),
            token: Some(Token { file: token.clone(), secret: "s".to_owned() }),
            clock: Clock::start(),
            places: Arc::new(Semaphore::new(1)),
        };
        let shows =
            |text: &str| HeaderMap::from_iter([(TOKEN_HEADER.parse().unwrap(), text.parse().unwrap())]);
        assert!(server.admit(&shows("")).await.is_err(), "there is no file");
        fs::write(&token, "\n").unwrap();
        assert!(server.admit(&shows("")).await.is_err(), "an empty token is none");
        fs::write(&token, "secret\n").unwrap();
        assert!(server.admit(&HeaderMap::new()).await.is_err());
        assert!(server.admit(&shows("secre")).await.is_err());
        assert!(server.admit(&shows("secret")).await.is_ok());
    }
}
