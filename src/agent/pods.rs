//! The pods of the agent's node, as far as the agent needs to know them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use api::labels;

/// A pod's uid.
pub type Uid = Arc<str>;

/// A pod of the pool on the agent's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The pod's uid.
    pub uid: Uid,
    /// Its namespace and name, for the log.
    pub name: Arc<str>,
    /// Whether the operator asks that the pod's processes stand still.
    suspend: bool,
    /// Whether the operator asks that the pod's processes are killed.
    kill: bool,
    /// Whether the pod is being deleted.
    deleting: bool,
    work: Work,
    /// The lease of the pod's claim in seconds, if the pod states one.
    lease: Option<u64>,
}

/// What a pod runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Proc,
    Backfill,
}

/// What a pod's processes are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// They run.
    Run,
    /// They stand still.
    Suspend,
    /// They end.
    Kill,
}

impl Pod {
    /// Reads a pod's metadata. Returns none for a pod that is not the pool's: the agent does nothing to such a pod.
    pub fn read(meta: &ObjectMeta) -> Option<Self> {
        let labels = meta.labels.as_ref()?;
        if ![labels::JOB_UID, labels::BACKFILL].iter().any(|label| labels.contains_key(*label)) {
            return None;
        }
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name));
        let says = |name: &str| annotation(name).is_some_and(|value| value == "true");
        let (namespace, name) = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref()?);
        Some(Self {
            uid: meta.uid.as_deref()?.into(),
            name: format!("{namespace}/{name}").into(),
            suspend: says(labels::SUSPEND),
            kill: says(labels::KILL),
            deleting: meta.deletion_timestamp.is_some(),
            work: if labels.contains_key(labels::JOB_UID) { Work::Proc } else { Work::Backfill },
            lease: annotation(labels::LEASE_SECONDS).and_then(|seconds| seconds.parse().ok()),
        })
    }

    /// Whether the pod runs a proc, of which two must never run at once. Other pods of the pool do backfill work.
    pub fn is_proc(&self) -> bool {
        self.work == Work::Proc
    }

    /// The lease of the pod's claim in seconds, if the pod states one.
    pub fn lease(&self) -> Option<u64> {
        self.lease
    }

    /// What the pod's processes are to do. A pod that is being deleted runs even if it is to be suspended: a process that
    /// stands still would not hear SIGTERM, and its grace period would pass unused.
    pub fn wanted(&self) -> Wanted {
        match self {
            Self { kill: true, .. } => Wanted::Kill,
            Self { suspend: true, deleting: false, .. } => Wanted::Suspend,
            _ => Wanted::Run,
        }
    }
}

/// The pods of the pool on the node, by uid.
#[derive(Debug, Default)]
pub struct Pods {
    known: BTreeMap<Uid, Pod>,
    /// Whether a list was ever whole. Before, a pod that stands still may be unknown.
    complete: bool,
    /// What a list in progress has shown so far.
    listed: Option<BTreeMap<Uid, Pod>>,
}

impl Pods {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Pod> {
        self.known.values()
    }

    /// Whether all of them are known, so that the report may say which of them stand still.
    pub fn are_known(&self) -> bool {
        self.complete
    }

    /// The pod with this uid.
    pub fn get(&self, uid: &str) -> Option<&Pod> {
        self.known.get(uid)
    }

    /// Whether there is a pod with this uid.
    pub fn knows(&self, uid: &str) -> bool {
        self.known.contains_key(uid)
    }

    /// A list begins: the pods that it does not show are gone at its end.
    pub fn list_begins(&mut self) {
        self.listed = Some(BTreeMap::new());
    }

    /// The list shows a pod.
    pub fn listed(&mut self, meta: &ObjectMeta) {
        if let (Some(pod), Some(listed)) = (Pod::read(meta), &mut self.listed) {
            listed.insert(Arc::clone(&pod.uid), pod);
        }
    }

    /// The list has ended.
    pub fn list_ends(&mut self) {
        if let Some(listed) = self.listed.take() {
            (self.known, self.complete) = (listed, true);
        }
    }

    /// A pod is there, or has changed. Returns whether this tells the agent anything new.
    pub fn there(&mut self, meta: &ObjectMeta) -> bool {
        match Pod::read(meta) {
            Some(pod) => self.known.insert(Arc::clone(&pod.uid), pod.clone()) != Some(pod),
            None => self.gone(meta),
        }
    }

    /// A pod is gone. Returns whether the agent knew the pod.
    pub fn gone(&mut self, meta: &ObjectMeta) -> bool {
        meta.uid.as_ref().is_some_and(|uid| self.known.remove(uid.as_str()).is_some())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn meta(labels: Value, annotations: Value, deleted: bool) -> ObjectMeta {
        let at = deleted.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({"namespace": "space", "name": "job-0", "uid": "u1", "labels": labels,
            "annotations": annotations, "deletionTimestamp": at}))
        .unwrap()
    }

    #[test]
    fn what_a_pods_processes_are_to_do() {
        const SUSPEND: &str = "slotwright.dev/suspend";
        const KILL: &str = "slotwright.dev/kill";
        let cases = [
            (json!({}), false, Wanted::Run),
            (json!({}), true, Wanted::Run),
            (json!({SUSPEND: "true"}), false, Wanted::Suspend),
            (json!({SUSPEND: "false"}), false, Wanted::Run),
            (json!({SUSPEND: "true"}), true, Wanted::Run),
            (json!({KILL: "true"}), false, Wanted::Kill),
            (json!({KILL: "true", SUSPEND: "true"}), true, Wanted::Kill),
        ];
        for (annotations, deleted, wanted) in cases {
            let pod = Pod::read(&meta(json!({"slotwright.dev/job-uid": "j"}), annotations.clone(), deleted));
            assert_eq!(pod.map(|pod| pod.wanted()), Some(wanted), "{annotations} deleted: {deleted}");
        }
    }

    #[test]
    fn a_pod_that_is_not_the_pools_is_left_alone_whatever_its_annotations_say() {
        let annotations = json!({"slotwright.dev/kill": "true"});
        assert_eq!(Pod::read(&meta(json!({"app": "web"}), annotations.clone(), false)), None);
        assert_eq!(Pod::read(&meta(Value::Null, annotations.clone(), false)), None);
        assert!(Pod::read(&meta(json!({"slotwright.dev/backfill": "true"}), annotations, false)).is_some());
    }

    #[test]
    fn a_pod_states_the_lease_of_its_claim() {
        for (labels, lease, expected) in [
            (json!({"slotwright.dev/job-uid": "j"}), Some("40"), (true, Some(40))),
            (json!({"slotwright.dev/job-uid": "j"}), Some("soon"), (true, None)),
            (json!({"slotwright.dev/job-uid": "j"}), None, (true, None)),
            (json!({"slotwright.dev/backfill": "true"}), None, (false, None)),
        ] {
            let annotations = json!({"slotwright.dev/lease-seconds": lease});
            let annotations = if lease.is_some() { annotations } else { Value::Null };
            let pod = Pod::read(&meta(labels.clone(), annotations, false)).unwrap();
            assert_eq!((pod.is_proc(), pod.lease()), expected, "{labels} {lease:?}");
        }
    }

    #[test]
    fn a_list_tells_which_pods_are_gone() {
        let named = |uid: &str| ObjectMeta {
            uid: Some(uid.to_owned()),
            ..meta(json!({"slotwright.dev/job-uid": "j"}), json!({}), false)
        };
        let uids = |pods: &Pods| pods.iter().map(|pod| pod.uid.to_string()).collect::<Vec<_>>();
        let mut pods = Pods::default();
        assert!(pods.there(&named("a")) && pods.there(&named("b")));
        pods.list_begins();
        pods.listed(&named("b"));
        pods.listed(&named("c"));
        assert_eq!(uids(&pods), ["a", "b"], "until the list is whole, what was known counts");
        assert!(!pods.are_known());
        pods.list_ends();
        assert!(pods.are_known());
        assert_eq!(uids(&pods), ["b", "c"]);
        assert!(pods.gone(&named("b")) && !pods.gone(&named("b")));
        assert!(!pods.there(&named("c")), "nothing has changed");
        assert!(pods.there(&ObjectMeta { labels: None, ..named("c") }));
        assert_eq!(uids(&pods), Vec::<String>::new(), "a pod without our label is no longer the pool's");
    }
}
