//! Watches: each is a stream of JSON lines, read from the history of the resource.
//!
//! A watch has a cursor and no queue of its own: a write wakes the watch, which then sends all changes since its cursor.
//! A client that reads so slowly that the history no longer reaches its cursor gets 410 Gone and has to start again, as
//! with the real server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use kube_schema::{IncludeObject, table};

use super::api::{Api, Call};
use super::encode::{self, Form, view};
use super::error::ApiError;
use super::params::VersionMatch;
use super::read::selection;
use super::resource::Resource;
use super::selectors::Selection;
use super::store::{Change, Object, TooOld};

/// How long a watch lasts if the client sets no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);
/// The annotation of the bookmark that follows the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One running watch.
struct Watch {
    api: Arc<Api>,
    res: Arc<Resource>,
    selection: Selection,
    form: Form,
    bookmarks: bool,
    /// All changes up to this version are sent or in `ready`.
    cursor: u64,
    ready: VecDeque<Bytes>,
    changed: watch::Receiver<u64>,
    rounds: watch::Receiver<u64>,
    deadline: Instant,
    ended: bool,
    /// Whether a Table with column definitions was sent. Only the first Table has them.
    columns_sent: bool,
}

/// Starts a watch. The errors are those that the real server sends instead of a stream.
pub(super) fn start(
    api: &Arc<Api>,
    call: &Call,
    namespace: Option<&str>,
    form: Form,
) -> Result<Body, ApiError> {
    let params = &call.params;
    let initial = initial_events(call)?;
    let timeout = params.timeout_seconds.filter(|s| *s > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let res = Arc::clone(&call.res);
    // The subscription comes before the first read, so that no change in between is missed.
    let changed = api.store.subscribe(&res.storage);
    let mut watch = Watch {
        selection: selection(call, namespace)?,
        bookmarks: params.bookmarks,
        cursor: 0,
        ready: VecDeque::new(),
        changed,
        rounds: api.bookmarks.subscribe(),
        deadline: Instant::now() + timeout,
        ended: false,
        columns_sent: false,
        api: Arc::clone(api),
        form,
        res,
    };
    let now = api.store.version();
    match params.resource_version {
        Some(asked) if asked > now => return Err(ApiError::too_large_version(asked, now)),
        Some(asked) if asked > 0 && initial != Some(true) => watch.resume(asked),
        _ => watch.begin(initial, namespace, call.now),
    }
    Ok(Body::from_stream(stream::unfold(watch, |mut watch| async move {
        watch.next().await.map(|bytes| (Ok::<Bytes, std::convert::Infallible>(bytes), watch))
    })))
}

/// Checks that `sendInitialEvents` and `resourceVersionMatch` fit together, and returns the former.
fn initial_events(call: &Call) -> Result<Option<bool>, ApiError> {
    let params = &call.params;
    if params.initial_events.is_some() && params.version_match != Some(VersionMatch::NotOlderThan) {
        return Err(ApiError::new(
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires \
             setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if params.initial_events.is_none() && params.version_match.is_some() {
        return Err(ApiError::new(
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
             forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    Ok(params.initial_events)
}

impl Watch {
    /// Starts from the version `asked`, which the client has seen.
    fn resume(&mut self, asked: u64) {
        let oldest = self.api.store.oldest(&self.res.storage);
        self.cursor = asked;
        if asked < oldest {
            self.gone(asked, oldest);
        }
    }

    /// Starts with the current objects, unless the client asks for changes only.
    fn begin(&mut self, initial: Option<bool>, namespace: Option<&str>, now: Timestamp) {
        let (objects, version) = self.api.store.snapshot(&self.res.storage, namespace);
        self.cursor = version;
        if initial == Some(false) {
            return;
        }
        for object in objects {
            if self.selection.matches(&object.value) {
                let line = self.line("ADDED", &object, now);
                self.ready.push_back(line);
            }
        }
        if initial == Some(true) && self.bookmarks {
            let line = self.bookmark(true);
            self.ready.push_back(line);
        }
    }

    fn gone(&mut self, asked: u64, oldest: u64) {
        let status = ApiError::expired(format!("too old resource version: {asked} ({oldest})")).status();
        self.ready.push_back(Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status}))));
        self.ended = true;
    }

    /// Returns the next lines to send; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(lines) = self.take() {
                return Some(lines);
            }
            if self.ended {
                return None;
            }
            self.pull();
            if !self.ready.is_empty() {
                continue;
            }
            let stop = self.api.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled() => self.ended = true,
                alive = self.changed.changed() => self.ended |= alive.is_err(),
                round = self.rounds.changed() => {
                    if round.is_ok() && self.bookmarks {
                        // Changes that were made before the bookmark must be sent before it.
                        self.pull();
                        let line = self.bookmark(false);
                        self.ready.push_back(line);
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => self.ended = true,
            }
        }
    }

    /// Takes lines that are ready as one chunk. The size of a chunk is limited, so that a slow client costs little
    /// memory.
    fn take(&mut self) -> Option<Bytes> {
        const CHUNK: usize = 256 * 1024;
        let first = self.ready.pop_front()?;
        if self.ready.is_empty() {
            return Some(first);
        }
        let mut chunk = first.to_vec();
        while chunk.len() < CHUNK
            && let Some(line) = self.ready.pop_front()
        {
            chunk.extend_from_slice(&line);
        }
        Some(Bytes::from(chunk))
    }

    /// Encodes the changes since the cursor, and moves the cursor to the current version.
    fn pull(&mut self) {
        match self.api.store.since(&self.res.storage, self.cursor) {
            Err(TooOld(oldest)) => self.gone(self.cursor, oldest),
            Ok((changes, version)) => {
                let now = self.api.now();
                for change in changes {
                    if let Some(line) = self.change(&change, now) {
                        self.ready.push_back(line);
                    }
                }
                self.cursor = version;
            }
        }
    }

    /// The line that shows a change to this watch; `None` if the watch does not select the object. An object that
    /// begins to match the selection is shown as added, and one that no longer matches as deleted.
    fn change(&mut self, change: &Change, now: Timestamp) -> Option<Bytes> {
        let before = change.before.as_ref().is_some_and(|o| self.selection.matches(&o.value));
        let after = !change.deleted && self.selection.matches(&change.object.value);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", &change.object, now)),
            (true, true) => Some(self.line("MODIFIED", &change.object, now)),
            (true, false) if change.deleted => Some(self.line("DELETED", &change.object, now)),
            // The object no longer matches. As in the real server, the line has the last state that did match, with the
            // version of the change.
            (true, false) => {
                let mut last = change.before.as_ref().map(|o| o.value.clone()).unwrap_or_default();
                let version = change.object.version;
                super::json::set(&mut last, &["metadata", "resourceVersion"], version.to_string());
                Some(self.line("DELETED", &Arc::new(Object::new(last, version)), now))
            }
        }
    }

    fn line(&mut self, kind: &str, object: &Arc<Object>, now: Timestamp) -> Bytes {
        let body = match self.form {
            Form::Table(include) => self.table(object, include, now),
            form => encode::object(&self.res, object, form, now),
        };
        let mut line = Vec::with_capacity(body.len() + 32);
        line.extend_from_slice(br#"{"type":""#);
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(br#"","object":"#);
        line.extend_from_slice(&body);
        line.extend_from_slice(b"}\n");
        Bytes::from(line)
    }

    fn table(&mut self, object: &Object, include: IncludeObject, now: Timestamp) -> Bytes {
        let shown = view(&self.res, &object.value);
        let meta = json!({"resourceVersion": object.version.to_string()});
        let mut table = table(&self.res.columns, &[&shown], &meta, include, now);
        if std::mem::replace(&mut self.columns_sent, true) {
            super::json::set(&mut table, &["columnDefinitions"], Value::Array(Vec::new()));
        }
        Bytes::from(table.to_string())
    }

    fn bookmark(&self, initial_end: bool) -> Bytes {
        let mut meta = json!({"resourceVersion": self.cursor.to_string(), "creationTimestamp": null});
        if initial_end {
            super::json::set(&mut meta, &["annotations", INITIAL_EVENTS_END], "true");
        }
        let object = match self.form {
            Form::Whole => {
                json!({"kind": self.res.kind, "apiVersion": self.res.api_version(), "metadata": meta})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta})
            }
            Form::Table(_) => json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": self.cursor.to_string()}, "columnDefinitions": [], "rows": []}),
        };
        Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
    }
}
