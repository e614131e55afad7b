//! Field ownership: `metadata.managedFields` and server-side apply.
//!
//! Follows the field manager of the real server: an apply merges, then removes what the same applier owned before
//! and nobody else owns; it conflicts where it changes what another manager owns. Every other write takes over
//! the fields it changes. Objects with a single served version are assumed: sets are never converted.
//!
//! Fields that a door does not write (`status` at the main resource, all but `status` at the status subresource) are
//! the caller's: take them out of the applied object, or put the old ones back, before calling.

mod entries;
mod migrate;
mod set;
mod walk;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::shape::Shape;
use entries::{Manager, Managers, Owned};
use set::Set;

/// The manager of fields that were there before the first apply to an object without managed fields.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Metadata that an applied object may carry and that apply never changes (the server checks `uid` and
/// `resourceVersion` as preconditions).
const SERVER_METADATA: [&str; 7] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Who writes, and through which door.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// `fieldManager` of the request, or the first part of the User-Agent (before `/`).
    pub manager: &'a str,
    /// apiVersion of the request: `v1`, `htcondor.example/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`, or empty for the main resource.
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
}

/// One field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager: `"kubectl" using v1`, `"x" with subresource "status" using v1`; appliers without version.
    pub manager: String,
    /// The path, e.g. `.spec.replicas`.
    pub field: String,
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409 with causes of reason `FieldManagerConflict`.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// 400: the applied object cannot be applied (managedFields set, not an object, another apiVersion).
    #[error("{0}")]
    BadRequest(String),
    /// 500, as the real server answers: duplicate or missing keys in an associative list.
    #[error("{0}")]
    Invalid(String),
}

impl ApplyError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflicts(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Invalid(_) => 500,
        }
    }

    /// `Status.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Conflicts(_) => "Conflict",
            Self::BadRequest(_) => "BadRequest",
            Self::Invalid(_) => "InternalError",
        }
    }

    /// `Status.details.causes`.
    pub fn causes(&self) -> Vec<Value> {
        let Self::Conflicts(conflicts) = self else { return Vec::new() };
        let cause = |c: &Conflict| {
            let message = format!("conflict with {}", c.manager);
            serde_json::json!({"reason": "FieldManagerConflict", "message": message, "field": c.field})
        };
        conflicts.iter().map(cause).collect()
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
    }
    let mut managers: Vec<&str> = conflicts.iter().map(|c| c.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let of = |manager: &str| {
        let fields = conflicts.iter().filter(|c| c.manager == manager).map(|c| format!("- {}", c.field));
        format!("conflicts with {manager}:\n{}", fields.collect::<Vec<_>>().join("\n"))
    };
    let parts: Vec<String> = managers.into_iter().map(of).collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), parts.join("\n"))
}

/// Records a create, update or patch (`old` is `None` in a create) in `new.metadata.managedFields`.
///
/// `new` may carry managed fields of its own (a client may edit them; `[{}]` resets them); when it has none, or the
/// write is to a subresource, those of `old` stay. Fields whose value changes go over to `writer` with operation
/// `Update`. A write that changes nothing leaves all as it is, times included.
pub fn track_update(shape: &Shape, old: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
    let stored = || old.map(entries::read).unwrap_or_default();
    let managers = if !writer.subresource.is_empty() {
        stored()
    } else if entries::is_reset(new) {
        Managers::new()
    } else {
        Some(entries::read(new)).filter(|m| !m.is_empty()).unwrap_or_else(stored)
    };
    let before = old.map_or_else(|| Value::Object(Map::new()), without_managed_fields);
    strip_managed_fields(new);
    let mut managers = update(shape, &before, new, managers, writer, writer.manager);
    entries::cap(&mut managers);
    entries::write(new, &managers);
}

/// `before` to `after` was done by `name`, not by an apply.
fn update(
    shape: &Shape,
    before: &Value,
    after: &Value,
    mut managers: Managers,
    writer: &Writer<'_>,
    name: &str,
) -> Managers {
    reconcile(shape, before, &mut managers);
    let changes = walk::compare(&shape.padded(before), &shape.padded(after), shape.root());
    let taken = changes.modified.union(&changes.added);
    for owned in managers.values_mut() {
        owned.set = owned.set.difference(&taken).difference(&changes.removed);
    }
    managers.retain(|_, owned| !owned.set.is_empty());
    let taken = entries::strip_meta(&taken);
    if !taken.is_empty() {
        let manager = Manager::updater(writer, name);
        let previous = managers.remove(&manager).map(|owned| owned.set).unwrap_or_default();
        let time = Some(entries::seconds(writer.now));
        let owned = Owned { version: writer.api_version.to_owned(), set: previous.union(&taken), time };
        managers.insert(manager, owned);
    }
    managers
}

/// Server-side apply: merges `applied` into `live` and keeps the managed fields; returns the new object.
///
/// With `live` `None` it creates. When nothing changes, the result equals `live`, times included. The result is
/// neither defaulted, pruned nor validated; call those, do not call [`track_update`].
///
/// The manager `kubectl` takes over what `kubectl apply` without `--server-side` recorded in its
/// `last-applied-configuration` annotation, and keeps that annotation current, as in Kubernetes.
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let applied = prepare(shape, applied, writer)?;
    let before = live.map_or_else(|| Value::Object(Map::new()), without_managed_fields);
    let mut managers = live.map(entries::read).unwrap_or_default();
    if managers.is_empty() && live.is_some() {
        let nothing = Value::Object(Map::new());
        managers = update(shape, &nothing, &before, managers, writer, BEFORE_FIRST_APPLY);
    }
    let input = Input { shape, before: &before, applied: &applied, managers: &managers, writer };
    let (mut after, mut managers) = match input.run(force) {
        Err(ApplyError::Conflicts(conflicts)) if migrate::is_kubectl(writer) => {
            let left = migrate::not_from_last_applied(shape, &before, conflicts);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            input.run(true)?
        }
        other => other?,
    };
    if migrate::is_kubectl(writer) {
        migrate::refresh_last_applied(&mut after, &applied);
    }
    let manager = Manager::applier(writer);
    if (after != before || live.is_none())
        && let Some(owned) = managers.get_mut(&manager)
    {
        owned.time = Some(entries::seconds(writer.now));
    }
    entries::cap(&mut managers);
    entries::write(&mut after, &managers);
    Ok(after)
}

/// Checks the applied object and takes out what is not its to say.
fn prepare(shape: &Shape, applied: &Value, writer: &Writer<'_>) -> Result<Value, ApplyError> {
    let mut applied = applied.clone();
    let Some(map) = applied.as_object_mut() else {
        return Err(ApplyError::BadRequest("the applied object must be a JSON object".into()));
    };
    if let Some(version) = map.get("apiVersion").and_then(Value::as_str).filter(|v| *v != writer.api_version)
    {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            writer.api_version
        )));
    }
    if let Some(Value::Object(meta)) = map.get_mut("metadata") {
        if meta
            .get("managedFields")
            .is_some_and(|m| !m.is_null() && m.as_array().is_none_or(|l| !l.is_empty()))
        {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
        }
        meta.remove("managedFields");
        for name in SERVER_METADATA {
            meta.remove(name);
        }
    }
    match walk::bad_list(&applied, shape.root(), "") {
        Some(bad) => Err(ApplyError::Invalid(format!("failed to create typed patch object: {bad}"))),
        None => Ok(applied),
    }
}

/// One apply.
struct Input<'a> {
    shape: &'a Shape,
    before: &'a Value,
    applied: &'a Value,
    managers: &'a Managers,
    writer: &'a Writer<'a>,
}

impl Input<'_> {
    fn run(&self, force: bool) -> Result<(Value, Managers), ApplyError> {
        let root = self.shape.root();
        let manager = Manager::applier(self.writer);
        let mut managers = self.managers.clone();
        reconcile(self.shape, self.before, &mut managers);
        let last = managers.remove(&manager);
        let merged = walk::merge(self.before, self.applied, root);
        let set = entries::strip_meta(&walk::fields(self.applied, root));
        let time = last.as_ref().and_then(|owned| owned.time.clone());
        let mine = Owned { version: self.writer.api_version.to_owned(), set, time };
        let after = match last {
            Some(last) => self.drop_abandoned(&merged, &last.set, &mine.set, &managers),
            None => merged,
        };
        let changes = walk::compare(self.before, &after, root);
        let taken = changes.modified.union(&changes.added);
        if !force {
            let conflicts = conflicts(&managers, &taken);
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflicts(conflicts));
            }
        }
        for owned in managers.values_mut() {
            owned.set = owned.set.difference(&taken).difference(&changes.removed);
        }
        managers.insert(manager, mine);
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok((after, managers))
    }

    /// Removes what this applier owned before (`last`), does not apply now (`mine`), and nobody else owns.
    fn drop_abandoned(&self, merged: &Value, last: &Set, mine: &Set, others: &Managers) -> Value {
        let root = self.shape.root();
        let named = |set: &Set| walk::with_named_fields(set, root);
        let last = named(last);
        let owned = others.values().fold(mine.clone(), |all, other| all.union(&other.set));
        let empty = || Value::Object(Map::new());
        let all = named(&walk::fields(merged, root));
        let bare = walk::remove(merged, &last, root).unwrap_or_else(empty);
        let kept = named(&walk::fields(&bare, root)).union(&named(&owned));
        let with_owned = walk::remove(merged, &all.difference(&kept), root).unwrap_or_else(empty);
        let kept = named(&walk::fields(&with_owned, root));
        let gone = all.difference(&kept).intersection(&last);
        walk::remove(merged, &gone, root).unwrap_or_else(empty)
    }
}

fn reconcile(shape: &Shape, live: &Value, managers: &mut Managers) {
    for owned in managers.values_mut() {
        owned.set = walk::reconcile(&owned.set, live, shape.root());
    }
}

fn conflicts(managers: &Managers, taken: &Set) -> Vec<Conflict> {
    let of = |(manager, owned): (&Manager, &Owned)| {
        let name = manager.printed();
        let paths = owned.set.intersection(taken).paths();
        paths.into_iter().map(move |field| Conflict { manager: name.clone(), field }).collect::<Vec<_>>()
    };
    let mut all: Vec<Conflict> = managers.iter().flat_map(of).collect();
    all.sort_by(|a, b| (&a.manager, &a.field).cmp(&(&b.manager, &b.field)));
    all
}

fn without_managed_fields(obj: &Value) -> Value {
    let mut obj = obj.clone();
    strip_managed_fields(&mut obj);
    obj
}

/// Removes `metadata.managedFields`.
pub fn strip_managed_fields(obj: &mut Value) {
    if let Some(meta) = obj.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
