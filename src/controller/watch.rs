//! Watches: streams of changes for the engine, with deletes worked out after a relist.

mod tracker;

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use tokio::sync::mpsc;

use self::tracker::Tracker;
use super::health::Health;
use super::kinds::{Seen, Watched};
use super::{Clock, Pauses};
use answers::Item;

/// The tools that every watch needs.
#[derive(Clone)]
pub struct Watching {
    /// The client.
    pub client: Client,
    /// The time.
    pub clock: Clock,
    /// Where a watch tells how far it is.
    pub health: Arc<Health>,
}

/// Whether the API server does not have the kind: its CustomResourceDefinition is not there.
fn is_missing(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.is_not_found(),
        _ => false,
    }
}

/// Whether the API server forgot the version of a list before the list's last page. The next list in pages takes as long, and may
/// fail in the same way.
fn outlasted(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Whether the API server refuses a list in the form of a watch. Servers before 1.27 do not know such lists, and later servers may have
/// them switched off, as 1.33 has by default: both call the parameters of such a watch invalid.
fn has_no_streams(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

/// A watch's error in words. kube's own words for an answer of the API server quote the answer in Rust's notation.
fn in_words(error: &watcher::Error) -> String {
    let (what, answer) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(answer)) => ("the list failed", answer),
        watcher::Error::WatchStartFailed(kube::Error::Api(answer)) => ("the watch did not begin", answer),
        watcher::Error::WatchError(answer) => ("the watch ended", answer),
        other => return with_sources(other),
    };
    format!("{what}: {} {}: {}", answer.code, answer.reason, answer.message)
}

/// An error and what it comes from, without repeating a source that the error quotes itself.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = error.source();
    }
    text
}

/// Whether the watch lost an event. Such a watch continues, and would never tell what the event was about. kube takes
/// JSON that it cannot decode for an error that the API server reports.
fn lost_an_event(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_) | kube::Error::Api(_)))
}

/// Watches a kind until nobody receives any more. After an error, which is logged, the watch begins anew; the pauses
/// before that grow.
pub async fn run<W: Watched>(watching: Watching, pauses: Pauses, out: mpsc::Sender<Seen>) {
    let Watching { client, clock, health } = watching;
    let kind = W::KIND;
    let progress = health.progress();
    let resumed = {
        let progress = Arc::clone(&progress);
        move || progress.caught_up(kind)
    };
    let api: Api<Item<W::Object>> = W::api(answers::watching(client, resumed));
    let mut tracker = Tracker::<W>::default();
    let mut served = true;
    // A list in the form of a watch comes from the API server's cache, object by object: neither the server nor the operator holds
    // a page. If such a list fails before its end, the next list comes in pages, as in client-go: a server may accept the watch and
    // end it with an error, because its etcd cannot say how far the cache is.
    let (mut has_streams, mut as_stream) = (true, true);
    // Likewise after a list in pages: a list in one answer cannot expire between its pages.
    let mut in_pages = true;
    let (mut missing, mut anew) = (pauses.clone(), pauses.clone());
    progress.behind(kind, None, clock.now());
    loop {
        let page_size = in_pages.then_some(W::PAGE);
        let initial_list_strategy =
            if as_stream { InitialListStrategy::StreamingList } else { InitialListStrategy::ListWatch };
        let config = watcher::Config { page_size, initial_list_strategy, ..watcher::Config::default() };
        let mut stream = pin!(watch(api.clone(), config).backoff(pauses.clone()));
        let mut lists = false;
        // The stream ends only by this loop: another stream begins with a list. For a kind that is missing, that list tells
        // that the kind is back, which the beginning of a watch would not; and it tells what a lost event was about.
        let pause = loop {
            let Some(event) = stream.next().await else { break missing.while_missing() };
            let done = matches!(event, Ok(Event::InitDone));
            if matches!(event, Ok(Event::Apply(_) | Event::Delete(_))) {
                anew.reset();
            }
            let back = !served && done;
            // kube begins a list again at once if the API server ends the watch before the list's end.
            let cut_off = as_stream && lists && matches!(event, Ok(Event::Init));
            let failed = cut_off || (as_stream && lists && event.is_err());
            lists = (lists || matches!(event, Ok(Event::Init))) && !done;
            let (changes, gone, again) = match event {
                Ok(_) if cut_off => {
                    let said = "the list ended before its end";
                    tracing::warn!(kind = kind.plural(), error = said, "a watch failed and is resumed");
                    progress.behind(kind, Some(said), clock.now());
                    (Vec::new(), false, true)
                }
                Ok(event) => {
                    let changes = tracker.observe(event);
                    progress.undecodable(kind, tracker.undecodable());
                    (changes, false, tracker.take_doubt())
                }
                Err(error) if as_stream && has_no_streams(&error) => {
                    tracing::debug!(
                        kind = kind.plural(),
                        "the API server has no lists in the form of a watch"
                    );
                    (has_streams, as_stream) = (false, false);
                    break Duration::ZERO;
                }
                Err(error) => {
                    let said = in_words(&error);
                    tracing::warn!(kind = kind.plural(), error = %said, "a watch failed and is resumed");
                    progress.behind(kind, Some(&said), clock.now());
                    in_pages &= !outlasted(&error);
                    (Vec::new(), is_missing(&error), failed || lost_an_event(&error) || outlasted(&error))
                }
            };
            if done {
                progress.caught_up(kind);
                (as_stream, in_pages) = (has_streams, true);
            }
            as_stream &= !failed;
            let turn = (back || (served && gone)).then_some(Seen::Served(kind, back));
            for change in changes.into_iter().chain(turn) {
                if let Seen::Undecodable(object) = &change {
                    tracing::warn!(
                        kind = kind.plural(),
                        namespace = object.namespace.as_deref(),
                        object = object.name,
                        error = %object.why,
                        "an object cannot be decoded and is left as it was last known"
                    );
                }
                if out.send(change).await.is_err() {
                    return;
                }
            }
            served = back || (served && !gone);
            if gone {
                break missing.while_missing();
            }
            if again {
                break anew.next().unwrap_or_default();
            }
        };
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests;
