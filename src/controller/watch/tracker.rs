//! Keeps what a watch has shown: the objects as they were last known, and which of them cannot be decoded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;

use crate::kinds::{Names, Unread, WatchMessage, Watched, gone, there};
use crate::uid::{Uid, Version};
use answers::{Decode, Item, Undecodable};
use model::BoxMap;

/// The objects that a watch has shown. After a relist, which sends no deletes, objects that the list does not show are
/// gone. An object that cannot be decoded still counts as there, with what the tracker last knew of the object.
#[derive(Debug)]
pub struct Tracker<W: Watched> {
    known: BoxMap<Key, Tracked<W::Kept>>,
    /// The objects that cannot be decoded now, with the version of each.
    unread: BTreeMap<Key, Version>,
    /// The present list; `None` if there is no list under way, or if nothing was known when the list began, so that no object can be gone.
    listed: Option<Listed>,
    synced: bool,
    /// Whether the watch told of the deletion of an object whose name cannot be read. Only a new list shows which
    /// object is gone.
    doubt: bool,
}

/// The kind that a watch is of.
type Of<W> = <<W as Watched>::Object as Decode>::Of;

/// The key of an object: its namespace, empty for an object that has none, a slash, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Box<str>);

impl Key {
    fn names(&self, uid: Uid) -> Names {
        // No namespace has a slash.
        let (namespace, name) = self.0.split_once('/').unwrap_or(("", &self.0));
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        Names { namespace: namespace.map(ToOwned::to_owned), name: name.to_owned(), uid }
    }
}

/// An object as it was last known.
#[derive(Debug)]
struct Tracked<M> {
    uid: Uid,
    kept: M,
}

/// The objects that the present list has shown so far.
#[derive(Debug, Default)]
struct Listed {
    keys: BTreeSet<Key>,
    /// Whether the list has shown an object whose name cannot be read. That object may be any of the known ones, so that none of them
    /// counts as gone.
    nameless: bool,
}

impl<W: Watched> Default for Tracker<W> {
    fn default() -> Self {
        Self { known: BoxMap::default(), unread: BTreeMap::new(), listed: None, synced: false, doubt: false }
    }
}

impl<W: Watched> Tracker<W> {
    /// Takes in an event of the watch, and returns what it means.
    pub fn observe(&mut self, event: Event<Item<W::Object>>) -> Vec<WatchMessage> {
        match event {
            Event::Init => {
                let knows = !self.known.is_empty() || !self.unread.is_empty();
                self.listed = knows.then(Listed::default);
                Vec::new()
            }
            Event::InitApply(item) => {
                let (key, named) = key(item.metadata());
                if let Some(listed) = &mut self.listed {
                    listed.keys.insert(key);
                    listed.nameless |= !named;
                }
                self.apply(item)
            }
            Event::Apply(item) => self.apply(item),
            Event::Delete(item) => self.delete(item),
            Event::InitDone => self.finish_list(),
        }
    }

    /// How many objects cannot be decoded now.
    pub fn undecodable(&self) -> usize {
        self.unread.len()
    }

    /// Whether a new list is needed to know which objects are there. Clears the doubt.
    pub fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.doubt)
    }

    fn apply(&mut self, item: Item<W::Object>) -> Vec<WatchMessage> {
        let (key, named) = key(item.metadata());
        let metadata = item.metadata();
        let (uid, version) = (Uid::of(metadata), Version::of(metadata));
        // If the uid differs, the known object was deleted while the watch was down, and this one was made under its
        // name. An object whose uid cannot be read may be the known one, and is taken for it.
        let (before, replaced) = match self.known.remove(&key) {
            Some(before) if before.uid == uid || uid.is_empty() => (Some(before), None),
            other => (None, other),
        };
        let mut seen: Vec<WatchMessage> = replaced.map(|old| Self::gone(&key, old)).into_iter().collect();
        let (metadata, object) = item.into_parts();
        match object {
            Ok(object) => {
                self.unread.remove(&key);
                let mut kept = W::keep(&object, before.as_ref().map(|before| &before.kept));
                let neighbour = || self.known.range(..&key).next_back().map(|(_, known)| known);
                if let Some(near) = before.as_ref().or_else(neighbour) {
                    W::share(&mut kept, &near.kept);
                }
                seen.push(there::<W>(object, &kept));
                self.known.insert(key, Tracked { uid, kept });
            }
            Err(why) => {
                if let Some(before) = before {
                    self.known.insert(key.clone(), before);
                } else if let Some(object) = W::taken_for(metadata) {
                    let kept = W::keep(&object, None);
                    seen.push(there::<W>(object, &kept));
                    self.known.insert(key.clone(), Tracked { uid: uid.clone(), kept });
                }
                seen.extend(self.unread(key, named, uid, (version, why)));
            }
        }
        seen
    }

    /// Notes an object that cannot be decoded, and reports each version of it once.
    fn unread(
        &mut self,
        key: Key,
        named: bool,
        uid: Uid,
        (version, why): (Version, Undecodable),
    ) -> Option<WatchMessage> {
        let told = self.unread.get(&key).is_some_and(|before| *before == version);
        let Names { namespace, name, uid } = key.names(uid);
        let uid = uid.to_string();
        self.unread.insert(key, version);
        (!told).then(|| {
            let name = if named { name } else { String::new() };
            let of = <Of<W> as Resource>::DynamicType::default();
            let api_version = <Of<W> as Resource>::api_version(&of).into_owned();
            WatchMessage::Undecodable(Box::new(Unread {
                kind: W::KIND,
                api_version,
                namespace,
                name,
                uid,
                why,
            }))
        })
    }

    fn delete(&mut self, item: Item<W::Object>) -> Vec<WatchMessage> {
        let (key, named) = key(item.metadata());
        self.doubt |= !named;
        self.unread.remove(&key);
        let uid = Uid::of(item.metadata());
        let (before, replaced) = match self.known.remove(&key) {
            Some(before) if before.uid == uid || uid.is_empty() => (Some(before), None),
            other => (None, other),
        };
        let mut seen: Vec<WatchMessage> = replaced.map(|old| Self::gone(&key, old)).into_iter().collect();
        let last = match item.object() {
            Ok(object) => {
                let kept = W::keep(&object, before.as_ref().map(|before| &before.kept));
                Some(Tracked { uid, kept })
            }
            Err(_) => before,
        };
        seen.extend(last.map(|last| Self::gone(&key, last)));
        seen
    }

    fn finish_list(&mut self) -> Vec<WatchMessage> {
        let mut seen = Vec::new();
        if let Some(listed) = self.listed.take() {
            self.unread.retain(|key, _| listed.keys.contains(key));
            let missing = |key: &&Key| !listed.nameless && !listed.keys.contains(*key);
            let vanished: Vec<Key> = self.known.keys().filter(missing).cloned().collect();
            for key in vanished {
                seen.extend(self.known.remove(&key).map(|old| Self::gone(&key, old)));
            }
        }
        self.known.pack();
        if !std::mem::replace(&mut self.synced, true) {
            seen.push(WatchMessage::All(W::KIND));
        }
        seen
    }

    fn gone(key: &Key, old: Tracked<W::Kept>) -> WatchMessage {
        gone::<W>(key.names(old.uid), old.kept)
    }
}

/// The key of an object, and whether the object has a name. The key of an object without a name has the uid in place of the name.
fn key(metadata: &ObjectMeta) -> (Key, bool) {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    if let Some(name) = metadata.name.as_deref().filter(|name| !name.is_empty()) {
        return (Key(format!("{namespace}/{name}").into()), true);
    }
    // No name has a slash.
    let uid = metadata.uid.as_deref().unwrap_or_default();
    (Key(format!("{namespace}//{uid}").into()), false)
}

#[cfg(test)]
mod tests;
