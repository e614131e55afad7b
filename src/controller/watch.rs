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
use super::progress::Progress;
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
    let progress = health.progress();
    let resumed = {
        let progress = Arc::clone(&progress);
        move || progress.caught_up(W::KIND)
    };
    let api = W::api(answers::watching(client, resumed));
    progress.behind(W::KIND, None, clock.now());
    let mut follower = Follower::<W> {
        clock,
        progress,
        out,
        tracker: Tracker::default(),
        served: true,
        best: Form::AsWatch,
        next_form: Form::AsWatch,
        missing: pauses.clone(),
        anew: pauses.clone(),
        patience: Patience::new(pauses),
    };
    while let Some(pause) = follower.follow(&api).await {
        tokio::time::sleep(pause).await;
    }
}

/// The memory of a watch from one of its streams to the next.
struct Follower<W: Watched> {
    clock: Clock,
    progress: Arc<Progress>,
    out: mpsc::Sender<WatchMessage>,
    tracker: Tracker<W>,
    /// Whether the API server has the kind.
    served: bool,
    /// The best form that the API server has.
    best: Form,
    /// The form of the next stream.
    next_form: Form,
    /// The pauses while the API server does not have the kind.
    missing: Pauses,
    /// The pauses before a list that begins anew.
    anew: Pauses,
    patience: Patience,
}

/// The consequence of an event of a stream.
struct Step {
    changes: Vec<WatchMessage>,
    /// Whether the API server has said that it does not have the kind.
    gone: bool,
    /// Whether only a new list shows what has happened.
    again: bool,
}

impl<W: Watched> Follower<W> {
    /// Follows one stream until a new list is needed, and returns the pause before that list. `None` if nobody receives any more.
    ///
    /// kube's stream never ends by itself: this loop drops the stream where a new list is needed. Only a list shows that a missing kind
    /// is back, or what a lost event was about.
    async fn follow(&mut self, api: &Api<Item<W::Object>>) -> Option<Duration> {
        let form = self.next_form;
        let mut stream = pin!(watch(api.clone(), form.config(W::PAGE)).backoff(self.patience.clone()));
        let mut lists = false;
        loop {
            let Some(event) = stream.next().await else { return Some(self.missing.while_missing()) };
            let done = matches!(event, Ok(Event::InitDone));
            let begins = matches!(event, Ok(Event::Init));
            if matches!(event, Ok(Event::Apply(_) | Event::Delete(_))) {
                self.anew.reset();
                self.patience.regain();
            }
            let back = !self.served && done;
            let listed_as_watch = lists && form == Form::AsWatch;
            lists = (lists || begins) && !done;
            let step = match event {
                Err(error) if form == Form::AsWatch && has_no_lists_as_watches(&error) => {
                    tracing::debug!(kind = W::KIND.plural(), "the API server has no lists as watches");
                    self.best = Form::InPages;
                    self.next_form = self.best;
                    return Some(Duration::ZERO);
                }
                Ok(event) if !(begins && listed_as_watch) => self.observe(event),
                failed => self.fail(failed.err().as_ref(), form, listed_as_watch),
            };
            if done {
                self.patience.regain();
                self.progress.caught_up(W::KIND);
                self.next_form = self.best;
            }
            let turn = (back || (self.served && step.gone)).then_some(WatchMessage::Served(W::KIND, back));
            self.tell(step.changes.into_iter().chain(turn)).await?;
            self.served = back || (self.served && !step.gone);
            if step.gone {
                // A 404 is an answer and no failure: the next failure gets the shortest pause again.
                self.patience.regain();
                return Some(self.missing.while_missing());
            }
            if step.again {
                return Some(self.anew.next().unwrap_or_default());
            }
        }
    }

    fn observe(&mut self, event: Event<Item<W::Object>>) -> Step {
        let changes = self.tracker.observe(event);
        self.progress.undecodable(W::KIND, self.tracker.undecodable());
        Step { changes, gone: false, again: self.tracker.take_doubt() }
    }

    /// Notes a failure of the stream. `error` is `None` for a list as a watch that was cut off.
    fn fail(&mut self, error: Option<&watcher::Error>, form: Form, listed_as_watch: bool) -> Step {
        let said = error.map_or_else(|| CUT_OFF.to_owned(), in_words);
        tracing::warn!(kind = W::KIND.plural(), error = %said, "a watch failed and is resumed");
        self.progress.behind(W::KIND, Some(&said), self.clock.now());
        let list_failed = listed_as_watch || error.is_some_and(outlasted);
        if list_failed {
            self.next_form = form.after_failure(error);
        }
        Step {
            changes: Vec::new(),
            gone: error.is_some_and(is_missing),
            again: list_failed || error.is_some_and(lost_an_event),
        }
    }

    /// Sends changes to the engine. `None` if nobody receives any more.
    async fn tell(&mut self, changes: impl Iterator<Item = WatchMessage> + Send) -> Option<()> {
        for change in changes {
            if let WatchMessage::Undecodable(object) = &change {
                tracing::warn!(
                    kind = W::KIND.plural(),
                    namespace = object.namespace.as_deref(),
                    object = object.name,
                    error = %object.why,
                    "an object cannot be decoded and is left as it was last known"
                );
            }
            self.out.send(change).await.ok()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
