//! Streams of watches: changes in their order, late, cut off or ended, as the plan says.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::plan::Lists;
use super::store::{Refusal, kind};
use super::verbs::Call;
use super::wire::Line;
use super::world::{Drop, Shared, World};

/// How often a watch gets a bookmark, in milliseconds.
const BOOKMARKS: u64 = 20_000;

struct Watch {
    world: Shared,
    who: usize,
    kind: &'static str,
    namespace: String,
    /// The version up to which every change was sent.
    cursor: u64,
    opened: u64,
    deadline: u64,
    bookmark: u64,
    changed: Arc<Notify>,
    /// The lines of the list with which the watch begins that are still to be sent, and the object of each; the last line says
    /// that the list is whole.
    list: VecDeque<(Bytes, Option<Value>)>,
    /// Whether the watch ends with that list, which is not whole.
    lists_in_vain: bool,
    ended: bool,
}

/// The next thing that a watch does.
enum Next {
    Line(Bytes),
    Break,
    End,
    Wait(u64),
    Nothing,
}

/// Opens a watch at the version that the call names, or with a list.
pub fn stream(world: Shared, who: usize, call: &Call) -> impl Stream<Item = Line> + Send + 'static {
    let number = |name: &str| call.query.get(name).and_then(|text| text.parse::<u64>().ok());
    let (opened, changed, list, lists_in_vain, version) = {
        let world = world.lock().unwrap();
        let list = if call.begins_with_list() { first_lines(&world, call) } else { VecDeque::new() };
        let version =
            if list.is_empty() { number("resourceVersion").unwrap_or(0) } else { world.store.version };
        let in_vain = call.begins_with_list() && matches!(world.server.lists, Lists::Broken | Lists::CutOff);
        (world.at(), Arc::clone(&world.changed), list, in_vain, version)
    };
    let watch = Watch {
        who,
        kind: call.key.kind,
        namespace: call.key.namespace.clone(),
        cursor: version,
        opened,
        deadline: opened + number("timeoutSeconds").unwrap_or(290) * 1000,
        bookmark: opened + BOOKMARKS,
        changed,
        list,
        lists_in_vain,
        ended: false,
        world,
    };
    stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    })
}

/// The lines of a list in the form of a watch.
fn first_lines(world: &World, call: &Call) -> VecDeque<(Bytes, Option<Value>)> {
    let mut list = world.list(call);
    let objects = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let lines = objects.into_iter().map(|object| {
        let line = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        (Bytes::from(line), Some(object))
    });
    let end = json!({"k8s.io/initial-events-end": "true"});
    let whole = lines.chain([(bookmark(call.key.kind, world.store.version, &end), None)]);
    let mut whole: VecDeque<_> = whole.collect();
    match world.server.lists {
        Lists::Broken => [(refusal(500, "InternalError", "the cache is not fresh"), None)].into(),
        Lists::CutOff => {
            whole.pop_back();
            whole
        }
        Lists::AsWatches | Lists::InPages => whole,
    }
}

/// The event with which the server ends a watch.
fn refusal(code: u16, reason: &'static str, message: &str) -> Bytes {
    let status = Refusal(code, reason, message.to_owned()).status();
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}

/// A bookmark with these annotations.
fn bookmark(of: &str, version: u64, annotations: &Value) -> Bytes {
    let (_, name, group, _) = kind(of).unwrap();
    let meta = json!({
        "resourceVersion": version.to_string(), "creationTimestamp": null, "annotations": annotations,
    });
    let object = json!({"kind": name, "apiVersion": group, "metadata": meta});
    Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
}

impl Watch {
    async fn next(&mut self) -> Option<Line> {
        if self.ended {
            return None;
        }
        let changed = Arc::clone(&self.changed);
        loop {
            let mut rung = pin!(changed.notified());
            rung.as_mut().enable();
            let (next, start) = {
                let shared = self.world.clone();
                let mut world = shared.lock().unwrap();
                let at = world.at();
                (self.look(&mut world), Instant::now() - Duration::from_millis(at))
            };
            let until = match next {
                Next::Line(line) => return Some(Ok(line)),
                Next::Break => {
                    self.ended = true;
                    return Some(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Next::End => return None,
                Next::Nothing => pending().await,
                Next::Wait(until) => until,
            };
            tokio::select! {
                biased;
                () = rung => {}
                () = sleep_until(start + Duration::from_millis(until)) => {}
            }
        }
    }

    fn look(&mut self, world: &mut World) -> Next {
        let at = world.at();
        if !world.alive(self.who) {
            return Next::Nothing;
        }
        let hindrance = world.hindrances[world.lives[self.who].seat];
        let silent = hindrance.stalled_until.max(hindrance.cut_until);
        if at < silent {
            return Next::Wait(silent);
        }
        if self.cursor < world.store.compacted {
            return self.gone();
        }
        match world.drops.get(self.kind) {
            Some((when, Drop::Gone)) if *when >= self.opened => return self.gone(),
            Some((when, Drop::ByError)) if *when >= self.opened => return Next::Break,
            Some((when, Drop::Quietly)) if *when >= self.opened => return Next::End,
            _ => {}
        }
        if at >= self.deadline {
            return Next::End;
        }
        if self.list.is_empty() && self.lists_in_vain {
            return Next::End;
        }
        if let Some((line, object)) = self.list.pop_front() {
            if let Some(pod) = object.filter(|_| self.kind == "pods") {
                super::ends::tell(world, self.who, &pod);
            }
            return Next::Line(line);
        }
        let from = world.store.history.partition_point(|change| change.version <= self.cursor);
        let change = world.store.history.iter().skip(from).find(|change| {
            change.key.kind == self.kind
                && (self.namespace.is_empty() || change.key.namespace == self.namespace)
        });
        let Some(change) = change else {
            return self.rest(world, at);
        };
        let seen = change.at + delay(world, self.kind, change.version, at);
        if seen > at {
            return Next::Wait(seen.min(self.deadline));
        }
        // The fields are in the order in which an API server writes them.
        let line = format!("{{\"type\":{},\"object\":{}}}\n", json!(change.what), *change.object);
        self.cursor = change.version;
        let object = Arc::clone(&change.object);
        if self.kind == "pods" {
            super::ends::tell(world, self.who, &object);
        }
        Next::Line(Bytes::from(line))
    }

    /// Sends a bookmark if it is time for one, since there is no new change.
    fn rest(&mut self, world: &World, at: u64) -> Next {
        if !world.server.bookmarks {
            return Next::Wait(self.deadline);
        }
        if at < self.bookmark {
            return Next::Wait(self.bookmark.min(self.deadline));
        }
        self.bookmark = at + BOOKMARKS;
        self.cursor = world.store.version;
        Next::Line(bookmark(self.kind, self.cursor, &json!({})))
    }

    fn gone(&mut self) -> Next {
        self.ended = true;
        Next::Line(refusal(410, "Expired", "too old resource version"))
    }
}

/// After how many milliseconds those who watch the kind see a change.
fn delay(world: &World, kind: &'static str, version: u64, at: u64) -> u64 {
    let way = world.draw(&format!("watch {kind} {version}"), 12);
    let lag = world.lags.get(kind).filter(|(_, until)| at < *until).map_or(0, |(lag, _)| *lag);
    way + lag
}
