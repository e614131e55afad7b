//! Objects with their versions and their history, as an API server keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// Names an object: the kind's plural, the namespace (empty if the kind has none), and the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The kinds that the server has: plural, kind, apiVersion, and whether the status is a subresource.
pub const KINDS: [(&str, &str, &str, bool); 16] = [
    ("nodes", "Node", "v1", true),
    ("pods", "Pod", "v1", true),
    ("leases", "Lease", "coordination.k8s.io/v1", false),
    ("events", "Event", "events.k8s.io/v1", false),
    ("htcjobs", "HTCJob", "slotwright.dev/v1alpha1", true),
    ("slots", "Slot", "slotwright.dev/v1alpha1", true),
    ("partitionableslots", "PartitionableSlot", "slotwright.dev/v1alpha1", true),
    ("absentmachines", "AbsentMachine", "slotwright.dev/v1alpha1", true),
    ("submitters", "Submitter", "slotwright.dev/v1alpha1", true),
    ("groupquotas", "GroupQuota", "slotwright.dev/v1alpha1", true),
    ("concurrencylimits", "ConcurrencyLimit", "slotwright.dev/v1alpha1", true),
    ("nodepolicies", "NodePolicy", "slotwright.dev/v1alpha1", true),
    ("submitpolicies", "SubmitPolicy", "slotwright.dev/v1alpha1", true),
    ("negotiators", "Negotiator", "slotwright.dev/v1alpha1", true),
    ("nodereports", "NodeReport", "slotwright.dev/v1alpha1", true),
    ("drainrequests", "DrainRequest", "slotwright.dev/v1alpha1", true),
];

pub fn kind(plural: &str) -> Option<(&'static str, &'static str, &'static str, bool)> {
    KINDS.into_iter().find(|kind| kind.0 == plural)
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    pub version: u64,
    pub key: Key,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub what: &'static str,
    pub object: Arc<Value>,
    /// When the change was made, in milliseconds of the run.
    pub at: u64,
}

/// All objects of the server.
#[derive(Debug, Default)]
pub struct Store {
    pub version: u64,
    pub objects: BTreeMap<Key, Arc<Value>>,
    pub history: Vec<Change>,
    /// No watch may start before this version.
    pub compacted: u64,
    uids: u64,
}

/// A refusal by the server: code, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub u16, pub &'static str, pub String);

impl Refusal {
    pub fn status(&self) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
               "code": self.0, "reason": self.1, "message": self.2})
    }
}

pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

impl Store {
    pub fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    pub fn of<'a>(&'a self, kind: &'static str) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let from = Key::new(kind, "", "");
        self.objects.range(from..).take_while(move |(key, _)| key.kind == kind)
    }

    /// Stores a new object, with uid, version and times.
    pub fn create(
        &mut self,
        key: Key,
        mut object: Value,
        at: u64,
        time: &str,
    ) -> Result<Arc<Value>, Refusal> {
        if self.objects.contains_key(&key) {
            let message = format!("{} {:?} already exists", key.kind, key.name);
            return Err(Refusal(409, "AlreadyExists", message));
        }
        let (_, kind, version, has_status) = kind(key.kind).unwrap();
        self.uids += 1;
        if has_status && key.kind != "nodes" {
            object.as_object_mut().unwrap().remove("status");
        }
        if key.kind == "pods" {
            object["status"] = json!({"phase": "Pending"});
            super::marks::remember(&mut object);
        }
        object["kind"] = json!(kind);
        object["apiVersion"] = json!(version);
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!(time);
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(key.namespace);
        }
        Ok(self.record(key, "ADDED", object, at))
    }

    /// Replaces an object, unless nothing changed. If the object is being deleted and has no finalizer any more,
    /// removes it.
    pub fn replace(&mut self, key: &Key, mut object: Value, at: u64) -> Arc<Value> {
        let before = self.get(key).unwrap();
        if object["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or(1) + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        if *before == object {
            return before;
        }
        let waits = key.kind == "pods" && object["metadata"]["deletionGracePeriodSeconds"] != json!(0);
        if is_deleting(&object) && finalizers(&object).is_empty() && !waits {
            return self.erase(key, object, at);
        }
        self.record(key.clone(), "MODIFIED", object, at)
    }

    pub fn erase(&mut self, key: &Key, last: Value, at: u64) -> Arc<Value> {
        self.record(key.clone(), "DELETED", last, at)
    }

    fn record(&mut self, key: Key, what: &'static str, mut object: Value, at: u64) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        if what == "DELETED" {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key.clone(), Arc::clone(&object));
        }
        self.history.push(Change { version: self.version, key, what, object: Arc::clone(&object), at });
        object
    }
}

/// Applies a JSON merge patch (RFC 7386).
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
