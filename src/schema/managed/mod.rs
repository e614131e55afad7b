//! Field ownership: `metadata.managedFields` and server-side apply.
//!
//! The rules are those of the real server's field manager. An apply merges the applied object into the stored one, and
//! removes the fields that the same applier owned before, no longer applies, and nobody else owns. An apply that changes
//! a field of another manager is a conflict. Every other write becomes the owner of the fields that it changes. Field
//! sets are never converted between versions: an object is assumed to have one served version.
//!
//! Some fields cannot be written through the main resource (`status`) or through the status subresource (all but
//! `status`). The caller must remove them from the applied object, or restore the old ones, before it calls this module.

mod entries;
mod migrate;
mod set;
mod walk;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::shape::Shape;
use entries::{Manager, Managers, Owned};
use set::Set;

/// The manager that owns all fields of an object without managed fields, when somebody applies to it for the first time.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields of `metadata` that an applied object may have, and that an apply never changes. The server checks `uid` and
/// `resourceVersion` as preconditions.
const SERVER_METADATA: [&str; 7] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The author of a write, and the subresource through which it comes.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The `fieldManager` of the request, or the User-Agent up to the first `/`.
    pub manager: &'a str,
    /// The `apiVersion` of the request, such as `v1` or `htcondor.example/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`, or empty for the main resource.
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
}

/// A field that another manager owns and that the apply would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager: `"kubectl" using v1`, or `"x" with subresource "status" using v1`; without the version if the
    /// manager applied.
    pub manager: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
}

/// Why an apply failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409: other managers own fields that the apply would change.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// 400: the applied value is not an object, has managed fields, or has another `apiVersion`.
    #[error("{0}")]
    BadRequest(String),
    /// 500, as in the real server: an associative list has duplicate or missing keys.
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

/// Updates `new.metadata.managedFields` after a create (`old` is `None`), an update or a patch.
///
/// A client may edit the managed fields in `new`, or reset them with `[{}]`. If `new` has none, or the write is to a
/// subresource, those of `old` are kept. `writer` becomes the owner of the fields whose values change, with the operation
/// `Update`. A write that changes nothing changes no entry and no time.
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

/// The managers after the manager `name` has changed `before` to `after` by a write that is not an apply.
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

/// Server-side apply: merges `applied` into `live` (`None` for a new object) and updates the managed fields; returns the
/// new object. If nothing changes, the result equals `live`, times included.
///
/// `force` makes the writer the owner of fields in conflict instead of failing.
///
/// The result is neither pruned, nor defaulted, nor validated: the caller does so afterwards. The caller must not call
/// [`track_update`] after an apply.
///
/// As in Kubernetes, the manager `kubectl` becomes the owner of the fields that an earlier `kubectl apply` without
/// `--server-side` recorded in the annotation `last-applied-configuration`, and keeps this annotation up to date.
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

/// Checks the applied object, and removes the fields of `metadata` that an apply cannot set.
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

/// The input of one apply.
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

    /// Removes the fields that this applier owned before (`last`), does not apply now (`mine`), and nobody else owns.
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

fn strip_managed_fields(obj: &mut Value) {
    if let Some(meta) = obj.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
