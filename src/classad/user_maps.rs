//! The maps that `userMap()` reads.

use std::fmt::Debug;
use std::sync::Arc;

/// Maps of users, by name: what a caller hands in so that `userMap()` finds something.
pub trait UserMaps: Debug + Send + Sync {
    /// The entry of a map for a user: one item, or several that are separated by commas. `None` if there is no such map, or the
    /// user is not in the map. The name of a map ignores case.
    fn look_up(&self, map: &str, user: &str) -> Option<String>;

    /// Whether there is a map of this name, in upper or lower case.
    fn has(&self, map: &str) -> bool;
}

/// The maps of an [`Env`](super::Env). Without maps no user is in one.
#[derive(Clone, Debug, Default)]
pub struct Maps(Option<Arc<dyn UserMaps>>);

impl Maps {
    /// These maps.
    pub fn new(maps: Arc<dyn UserMaps>) -> Self {
        Self(Some(maps))
    }

    /// The entry of a map for a user, as [`UserMaps::look_up`] says.
    pub fn look_up(&self, map: &str, user: &str) -> Option<String> {
        self.0.as_ref()?.look_up(map, user)
    }

    /// Whether there is a map of this name, in upper or lower case.
    pub fn has(&self, map: &str) -> bool {
        self.0.as_ref().is_some_and(|maps| maps.has(map))
    }
}

/// Two values are equal if both hold the same object, or if both hold none.
impl PartialEq for Maps {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl Eq for Maps {}

/// The item that `userMap(map, user, wanted)` chooses of a map's result: the wanted item, case aside, if the result has the
/// item, else the first.
pub fn preferred<'a>(result: &'a str, wanted: Option<&str>) -> &'a str {
    let items = || result.split(',').map(str::trim).filter(|item| !item.is_empty());
    let chosen = wanted.and_then(|wanted| items().find(|item| item.eq_ignore_ascii_case(wanted)));
    chosen.or_else(|| items().next()).unwrap_or_default()
}
