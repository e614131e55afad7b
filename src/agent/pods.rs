//! The pods of the agent's node, as far as the agent needs to know them. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::containers::Containers;
use api::labels;
use model::startd::SHORTEST_LEASE;

/// The most bytes of a slot's name that the agent keeps.
const MAX_SLOT_NAME: usize = 300;

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
    /// The lease of the pod's claim in seconds, if the pod states one.
    lease: Option<u64>,
    /// The slot in which the pod runs, by HTCondor's name.
    slot: Option<Box<str>>,
    /// The containers whose programs run.
    pub(crate) containers: Containers,
}

/// The state in which a pod's processes are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The processes run.
    Run,
    /// The processes stand still.
    Suspend,
    /// The processes end.
    Kill,
}

impl Pod {
    /// Reads a pod's metadata, of a pod none of whose containers is known to run. Returns none for a pod that is not
    /// the pool's: the agent does nothing to such a pod.
    pub fn read(meta: &ObjectMeta) -> Option<Self> {
        Self::read_known(meta).filter(|_| is_marked(meta))
    }

    /// Reads the metadata of a pod that is known to be the pool's, whatever labels the pod has now. Somebody may have taken
    /// them off while the pod stood still: nobody but the agent can let its processes run again.
    pub fn read_known(meta: &ObjectMeta) -> Option<Self> {
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name));
        let says = |name: &str| annotation(name).is_some_and(|value| value == "true");
        let (namespace, name) = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref()?);
        Some(Self {
            uid: meta.uid.as_deref()?.into(),
            name: format!("{namespace}/{name}").into(),
            suspend: says(labels::SUSPEND),
            kill: says(labels::KILL),
            deleting: meta.deletion_timestamp.is_some(),
            lease: annotation(labels::LEASE_SECONDS)
                .and_then(|seconds| seconds.parse().ok())
                .map(|seconds: u64| seconds.max(SHORTEST_LEASE.as_secs())),
            slot: annotation(labels::SLOT)
                .filter(|name| name.len() <= MAX_SLOT_NAME)
                .map(|name| name.as_str().into()),
            containers: Containers::default(),
        })
    }

    /// A pod of which nothing is known but that it stood still by the report of an earlier agent.
    fn known_by_report(uid: &Uid) -> Self {
        Self {
            uid: Arc::clone(uid),
            name: Arc::clone(uid),
            suspend: true,
            kill: false,
            deleting: false,
            lease: None,
            slot: None,
            containers: Containers::default(),
        }
    }

    /// The lease of the pod's claim in seconds, if the pod states one. The operator writes none that is shorter than
    /// [`SHORTEST_LEASE`]: a shorter one that somebody else wrote counts as this one, for the operator, too.
    pub fn lease(&self) -> Option<u64> {
        self.lease
    }

    /// The slot in which the pod runs, by HTCondor's name: `slot1_3@node7`. Whoever may edit the pod may have written another.
    pub fn slot(&self) -> Option<&str> {
        self.slot.as_deref()
    }

    /// The state in which the pod's processes are to be. A pod that is being deleted runs even if it is to be suspended: a
    /// process that stands still would not hear SIGTERM, and its grace period would pass unused.
    pub fn wanted(&self) -> Wanted {
        match self {
            Self { kill: true, .. } => Wanted::Kill,
            Self { suspend: true, deleting: false, .. } => Wanted::Suspend,
            _ => Wanted::Run,
        }
    }
}

/// Whether a pod bears a label of the pool.
fn is_marked(meta: &ObjectMeta) -> bool {
    let labels = meta.labels.as_ref();
    labels.is_some_and(|all| [labels::JOB_UID, labels::BACKFILL].iter().any(|label| all.contains_key(*label)))
}

/// The pods of the pool on the node, by uid. A pod that was the pool's when the agent first saw it stays the pool's until the
/// pod is gone.
#[derive(Debug, Default)]
pub struct Pods {
    known: BTreeMap<Uid, Pod>,
    /// The pods that bear no label of the pool. The report of an earlier agent may tell that one of them stands still.
    others: BTreeMap<Uid, Pod>,
    /// The pods that stood still by the report of an earlier agent, until a list was whole.
    suspended_before: BTreeSet<Uid>,
    /// Whether a list was ever whole. Before, a pod that stands still may be unknown.
    complete: bool,
    /// The pods that a list in progress has shown so far.
    listed: Option<Listed>,
}

/// The pods that a list has shown: the pool's, and others.
#[derive(Debug, Default)]
struct Listed {
    known: BTreeMap<Uid, Pod>,
    others: BTreeMap<Uid, Pod>,
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

    /// Takes these pods for the pool's, since a report says that they stand still. So an agent that has just started knows pods from
    /// which somebody took the label.
    pub fn were_suspended(&mut self, uids: impl IntoIterator<Item = Uid>) {
        if !self.complete {
            self.suspended_before.extend(uids);
            return;
        }
        for uid in uids {
            if let Some(pod) = self.others.remove(&uid) {
                self.known.insert(uid, pod);
            }
        }
    }

    /// The pods that an agent that ends lets run again, whatever the operator asks for: those that it knows, those that a list under way
    /// has shown so far, and those that stood still by the report of an earlier agent. Pods to be killed are not among them.
    pub fn to_release(&self) -> Vec<Pod> {
        let listed = self.listed.iter().flat_map(|listed| listed.known.values());
        let before = self.suspended_before.iter().map(Pod::known_by_report);
        let all = before.chain(listed.cloned()).chain(self.known.values().cloned());
        let all: BTreeMap<Uid, Pod> = all.map(|pod| (Arc::clone(&pod.uid), pod)).collect();
        all.into_values().filter(|pod| pod.wanted() != Wanted::Kill).collect()
    }

    /// Begins a list. Pods that the list does not show are forgotten when the list ends.
    pub fn list_begins(&mut self) {
        self.listed = Some(Listed::default());
    }

    /// Takes note of a pod that the list shows.
    pub fn listed(&mut self, meta: &ObjectMeta, containers: Containers) {
        let Some((pod, is_ours)) = self.read(meta, containers) else { return };
        if let Some(Listed { known, others }) = &mut self.listed {
            if is_ours { known } else { others }.insert(Arc::clone(&pod.uid), pod);
        }
    }

    /// Ends the list.
    pub fn list_ends(&mut self) {
        if let Some(Listed { known, others }) = self.listed.take() {
            (self.known, self.others, self.complete) = (known, others, true);
            let before = std::mem::take(&mut self.suspended_before);
            self.were_suspended(before);
        }
    }

    /// Takes note of a pod that is there, or has changed. Returns whether this tells the agent anything new.
    pub fn there(&mut self, meta: &ObjectMeta, containers: Containers) -> bool {
        let Some((pod, is_ours)) = self.read(meta, containers) else { return false };
        if !is_ours {
            self.others.insert(Arc::clone(&pod.uid), pod);
            return false;
        }
        self.others.remove(&pod.uid);
        self.known.insert(Arc::clone(&pod.uid), pod.clone()) != Some(pod)
    }

    /// Forgets a pod that is gone. Returns whether the agent knew the pod.
    pub fn gone(&mut self, meta: &ObjectMeta) -> bool {
        let Some(uid) = meta.uid.as_deref() else { return false };
        self.others.remove(uid);
        self.known.remove(uid).is_some()
    }

    /// Reads a pod, and whether the pod is the pool's.
    fn read(&self, meta: &ObjectMeta, containers: Containers) -> Option<(Pod, bool)> {
        let pod = Pod { containers, ..Pod::read_known(meta)? };
        let is_ours = self.known.contains_key(&pod.uid) || is_marked(meta);
        Some((pod, is_ours))
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
    fn a_pod_states_the_lease_of_its_claim_and_none_is_shorter_than_the_shortest() {
        for (lease, expected) in [
            (Some("600"), Some(600)),
            (Some("40"), Some(40)),
            (Some("39"), Some(40)),
            (Some("0"), Some(40)),
            (Some("soon"), None),
            (None, None),
        ] {
            let annotations =
                lease.map_or(Value::Null, |lease| json!({"slotwright.dev/lease-seconds": lease}));
            let pod = Pod::read(&meta(json!({"slotwright.dev/job-uid": "j"}), annotations, false)).unwrap();
            assert_eq!(pod.lease(), expected, "{lease:?}");
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
        assert!(
            pods.there(&named("a"), Containers::default()) && pods.there(&named("b"), Containers::default())
        );
        pods.list_begins();
        pods.listed(&named("b"), Containers::default());
        pods.listed(&named("c"), Containers::default());
        assert_eq!(uids(&pods), ["a", "b"], "until the list is whole, what was known counts");
        assert!(!pods.are_known());
        pods.list_ends();
        assert!(pods.are_known());
        assert_eq!(uids(&pods), ["b", "c"]);
        assert!(pods.gone(&named("b")) && !pods.gone(&named("b")));
        assert!(!pods.there(&named("c"), Containers::default()), "nothing has changed");
    }

    /// An agent may be told to end before it has listed its node's pods.
    #[test]
    fn an_agent_that_ends_releases_whatever_may_stand_still() {
        let named = |uid: &str, annotations: Value| ObjectMeta {
            uid: Some(uid.to_owned()),
            ..meta(json!({"slotwright.dev/job-uid": "j"}), annotations, false)
        };
        let uids = |pods: &Pods| pods.to_release().iter().map(|pod| pod.uid.to_string()).collect::<Vec<_>>();
        let mut pods = Pods::default();
        assert_eq!(uids(&pods), [] as [String; 0]);
        pods.were_suspended(["a".into()]);
        assert_eq!(uids(&pods), ["a"], "by the report of the agent before");
        pods.list_begins();
        pods.listed(&named("b", json!({})), Containers::default());
        pods.listed(&named("c", json!({"slotwright.dev/kill": "true"})), Containers::default());
        let other = ObjectMeta { uid: Some("d".to_owned()), ..meta(Value::Null, json!({}), false) };
        pods.listed(&other, Containers::default());
        assert_eq!(uids(&pods), ["a", "b"], "those that a list under way has shown, too");
        pods.list_ends();
        assert_eq!(uids(&pods), ["b"], "the pod that stood still before is gone");
    }

    #[test]
    fn a_pod_whose_label_was_taken_off_is_let_run_again() {
        let suspended = json!({"slotwright.dev/suspend": "true"});
        let marked = meta(json!({"slotwright.dev/job-uid": "j"}), suspended.clone(), false);
        let unmarked = meta(Value::Null, suspended, false);
        let wanted = |pods: &Pods| pods.get("u1").map(Pod::wanted);
        let mut pods = Pods::default();
        pods.there(&marked, Containers::default());
        pods.there(&unmarked, Containers::default());
        assert_eq!(wanted(&pods), Some(Wanted::Suspend), "the operator still asks for that");
        pods.list_begins();
        pods.listed(&unmarked, Containers::default());
        pods.list_ends();
        assert!(pods.there(&meta(Value::Null, json!({}), false), Containers::default()));
        assert_eq!(wanted(&pods), Some(Wanted::Run));
        assert!(pods.gone(&unmarked) && !pods.there(&unmarked, Containers::default()));
        assert_eq!(wanted(&pods), None, "a pod that never had the label is nobody's");
        // An agent that starts knows such a pod by the report of the agent before.
        pods.were_suspended(["u1".into()]);
        assert_eq!(wanted(&pods), Some(Wanted::Suspend));
        let mut pods = Pods::default();
        pods.were_suspended(["u1".into(), "u2".into()]);
        pods.list_begins();
        pods.listed(&unmarked, Containers::default());
        pods.list_ends();
        assert_eq!(wanted(&pods), Some(Wanted::Suspend));
    }
}
