//! Streams of watches: changes in their order, late, cut off or ended, as the plan says.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

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

/// Opens a watch at the version that the call names.
pub fn stream(world: Shared, who: usize, call: &Call) -> impl Stream<Item = Line> + Send + 'static {
    let (opened, changed) = {
        let world = world.lock().unwrap();
        (world.at(), Arc::clone(&world.changed))
    };
    let number = |name: &str| call.query.get(name).and_then(|text| text.parse::<u64>().ok());
    let watch = Watch {
        who,
        kind: call.key.kind,
        namespace: call.key.namespace.clone(),
        cursor: number("resourceVersion").unwrap_or(0),
        opened,
        deadline: opened + number("timeoutSeconds").unwrap_or(290) * 1000,
        bookmark: opened + BOOKMARKS,
        changed,
        ended: false,
        world,
    };
    stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    })
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
        if !world.bookmarks {
            return Next::Wait(self.deadline);
        }
        if at < self.bookmark {
            return Next::Wait(self.bookmark.min(self.deadline));
        }
        self.bookmark = at + BOOKMARKS;
        self.cursor = world.store.version;
        let (_, name, version, _) = kind(self.kind).unwrap();
        let meta = json!({"resourceVersion": self.cursor.to_string(), "creationTimestamp": null});
        let object = json!({"kind": name, "apiVersion": version, "metadata": meta});
        Next::Line(Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object}))))
    }

    fn gone(&mut self) -> Next {
        self.ended = true;
        let status = Refusal(410, "Expired", "too old resource version".to_owned()).status();
        Next::Line(Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status}))))
    }
}

/// After how many milliseconds those who watch the kind see a change.
fn delay(world: &World, kind: &'static str, version: u64, at: u64) -> u64 {
    let way = world.draw(&format!("watch {kind} {version}"), 12);
    let lag = world.lags.get(kind).filter(|(_, until)| at < *until).map_or(0, |(lag, _)| *lag);
    way + lag
}
