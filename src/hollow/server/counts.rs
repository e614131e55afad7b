//! Counters of the requests that the server has received.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// The key by which requests are counted: who asked for what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// The User-Agent up to the first `/` or blank; empty if the client sent none.
    pub client: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the resource.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
}

impl RequestKey {
    /// Whether the verb changes something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// Counters by [`RequestKey`].
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<RequestKey, u64>>);

/// The most keys. Clients can invent user agents and resources, so that requests with further keys are counted as
/// `other`.
const MAX_KEYS: usize = 4096;

impl Counts {
    pub(super) fn add(&self, key: RequestKey) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = counts.len() >= MAX_KEYS && !counts.contains_key(&key);
        let key = if full {
            RequestKey { client: "other".into(), group: String::new(), resource: "other".into(), ..key }
        } else {
            key
        };
        *counts.entry(key).or_default() += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<RequestKey, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The counters in Prometheus' text format.
    pub(super) fn metrics(&self) -> String {
        let mut text = String::from(
            "# HELP apiserver_request_total Requests by verb and resource.\n# TYPE apiserver_request_total counter\n",
        );
        for (key, count) in self.all() {
            // `{:?}` of a string escapes quotes, backslashes and line ends, as the text format demands.
            let _ = writeln!(
                text,
                "apiserver_request_total{{client={:?},verb={:?},group={:?},resource={:?},subresource={:?}}} {count}",
                key.client, key.verb, key.group, key.resource, key.subresource
            );
        }
        text
    }
}
