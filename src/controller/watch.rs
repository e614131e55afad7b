//! Watches: streams of changes for the engine, with deletes worked out after a relist.

mod form;
mod tracker;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use tokio::sync::mpsc;

use self::form::{Form, has_no_lists_as_watches, outlasted};
use self::tracker::Tracker;
use super::Clock;
use super::health::Health;
use super::kinds::{WatchMessage, Watched};
use answers::{Item, Patience, Pauses, chain};

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

/// A watch's error in words. kube's own words for an answer of the API server quote the answer in Rust's notation.
fn in_words(error: &watcher::Error) -> String {
    let (what, answer) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(answer)) => ("the list failed", answer),
        watcher::Error::WatchStartFailed(kube::Error::Api(answer)) => ("the watch did not begin", answer),
        watcher::Error::WatchError(answer) => ("the watch ended", answer),
        other => return chain(other),
    };
    format!("{what}: {} {}: {}", answer.code, answer.reason, answer.message)
}

/// Whether the watch lost an event. Such a watch continues, and would never tell what the event was about. kube takes
/// JSON that it cannot decode for an error that the API server reports.
fn lost_an_event(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_) | kube::Error::Api(_)))
}

/// The error of a list as a watch that the API server ends before the list's end. kube tells nothing, and begins the list again at
/// once.
const CUT_OFF: &str = "the watch ended before its list's end";

/// Watches a kind until nobody receives any more. After an error, which is logged, the watch begins anew; the pauses
/// before that grow.
pub async fn run<W: Watched>(watching: Watching, pauses: Pauses, out: mpsc::Sender<WatchMessage>) {
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
    // `best` is the best form that the API server has, and `next_form` is that of the next stream.
    let mut best = Form::AsWatch;
    let mut next_form = best;
    let (mut missing, mut anew) = (pauses.clone(), pauses.clone());
    let patience = Patience::new(pauses);
    progress.behind(kind, None, clock.now());
    loop {
        let form = next_form;
        let mut stream = pin!(watch(api.clone(), form.config(W::PAGE)).backoff(patience.clone()));
        let mut lists = false;
        // kube's stream never ends by itself: this loop drops the stream where a new list is needed. Only a list shows that a missing kind
        // is back, or what a lost event was about.
        let pause = loop {
            let Some(event) = stream.next().await else { break missing.while_missing() };
            let done = matches!(event, Ok(Event::InitDone));
            let begins = matches!(event, Ok(Event::Init));
            if matches!(event, Ok(Event::Apply(_) | Event::Delete(_))) {
                anew.reset();
                patience.regain();
            }
            let back = !served && done;
            let listed_as_watch = lists && form == Form::AsWatch;
            lists = (lists || begins) && !done;
            let (changes, gone, again) = match event {
                Err(error) if form == Form::AsWatch && has_no_lists_as_watches(&error) => {
                    tracing::debug!(kind = kind.plural(), "the API server has no lists as watches");
                    best = Form::InPages;
                    next_form = best;
                    break Duration::ZERO;
                }
                Ok(event) if !(begins && listed_as_watch) => {
                    let changes = tracker.observe(event);
                    progress.undecodable(kind, tracker.undecodable());
                    (changes, false, tracker.take_doubt())
                }
                failed => {
                    let error = failed.err();
                    let said = error.as_ref().map_or_else(|| CUT_OFF.to_owned(), in_words);
                    tracing::warn!(kind = kind.plural(), error = %said, "a watch failed and is resumed");
                    progress.behind(kind, Some(&said), clock.now());
                    let error = error.as_ref();
                    let list_failed = listed_as_watch || error.is_some_and(outlasted);
                    if list_failed {
                        next_form = form.after_failure(error);
                    }
                    (
                        Vec::new(),
                        error.is_some_and(is_missing),
                        list_failed || error.is_some_and(lost_an_event),
                    )
                }
            };
            if done {
                patience.regain();
                progress.caught_up(kind);
                next_form = best;
            }
            let turn = (back || (served && gone)).then_some(WatchMessage::Served(kind, back));
            for change in changes.into_iter().chain(turn) {
                if let WatchMessage::Undecodable(object) = &change {
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
                // A 404 is an answer and no failure: the next failure gets the shortest pause again.
                patience.regain();
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
