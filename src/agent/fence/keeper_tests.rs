use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::*;
use crate::containers::Containers;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn meta(uid: &str, lease: Option<&str>) -> ObjectMeta {
    let mut meta = json!({"namespace": "space", "name": uid, "uid": uid,
        "labels": {"slotwright.dev/job-uid": "j"}, "annotations": {}});
    if let Some(lease) = lease {
        meta["annotations"]["slotwright.dev/lease-seconds"] = json!(lease);
    }
    serde_json::from_value(meta).unwrap()
}

fn listed(pods: &str) -> BTreeMap<String, Listed> {
    let one = |word: &str| (word.trim_end_matches('-').to_owned(), Listed { deleting: word.ends_with('-') });
    pods.split_whitespace().map(one).collect()
}

/// A node with an agent and a guard that reads each permit at once, unless `deaf`.
struct Node {
    keeper: Keeper,
    pods: Pods,
    now: u64,
    /// The permit in the directory.
    file: Option<Permit>,
    read: u64,
    deaf: bool,
    /// The pods of which something is left on the node, though the API server does not have them.
    remains: Vec<&'static str>,
}

impl Node {
    /// A node whose agent starts for the first time, at second 1000 of the boot `one`.
    fn new() -> Self {
        let (keeper, mut pods) = (Keeper::new("one", None, 0), Pods::default());
        pods.list_begins();
        pods.list_ends();
        Self { keeper, pods, now: 1000, file: None, read: 0, deaf: false, remains: Vec::new() }
    }

    /// A node whose agent has renewed and promised, with these pods. The lease of each is 100 s.
    fn promising(pods: &[&str]) -> Self {
        let mut node = Self::new();
        for pod in pods {
            node.pods.there(&meta(pod, Some("100")), Containers::default());
        }
        node.renew();
        node.renew();
        assert!(node.keeper.in_force, "{:?}", node.keeper);
        node
    }

    fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    /// The agent's pass, and the guard's after it.
    fn pass(&mut self) {
        let remains = self.remains.clone();
        for _ in 0..2 {
            let beat = Heartbeat::new("one", secs(self.now), self.read);
            self.keeper.heard((!self.deaf).then_some(&beat), secs(self.now));
            self.keeper.observe(&self.pods, |uid| remains.contains(&uid), secs(self.now));
            if let Some(permit) = self.keeper.due_write() {
                assert!(self.file.as_ref().is_none_or(|before| before.sequence < permit.sequence));
                self.file = Some(permit.clone());
                self.keeper.wrote(permit);
            }
            if !self.deaf {
                self.read = self.file.as_ref().map_or(0, |permit| permit.sequence);
            }
        }
    }

    /// A renewal that is sent and succeeds. Returns whether it promises.
    fn renew(&mut self) -> bool {
        let promises = self.keeper.may_promise(&self.pods);
        self.keeper.renewal_sent(secs(self.now), promises);
        self.keeper.renewed(secs(self.now), promises, secs(self.now));
        self.pass();
        promises
    }

    fn list(&mut self, pods: &str) {
        let sent = self.keeper.wants_list().expect("a list is wanted");
        self.keeper.listed(sent, &listed(pods), secs(self.now));
        self.pass();
    }

    /// Another agent takes over, in the boot `boot`.
    fn restart(&mut self, boot: &str) {
        self.keeper = Keeper::new(boot, self.file.clone(), self.read);
    }

    fn may_name(&mut self, uid: &str) -> bool {
        let pod = self.pods.get(uid).unwrap().clone();
        self.keeper.may_name(&pod)
    }

    /// The permit in the directory: when it was renewed, the pods, those that a list has to tell of, and those that must not run
    /// again.
    fn says(&self) -> String {
        let Some(permit) = &self.file else { return "nothing".to_owned() };
        let pods: Vec<String> = permit.pods.iter().map(|(uid, lease)| format!("{uid}:{lease}")).collect();
        let held: Vec<String> = permit.held.iter().map(|(uid, lease)| format!("?{uid}:{lease}")).collect();
        assert!(permit.held.keys().all(|uid| permit.ended.contains(uid)), "the guard ends what is held");
        let ended = permit.ended.iter().filter(|uid| !permit.held.contains_key(*uid));
        let ended: Vec<String> = ended.map(|uid| format!("-{uid}")).collect();
        format!("{} {}", permit.renewed.as_secs(), [pods, held, ended].concat().join(" ")).trim().to_owned()
    }
}

#[test]
fn nothing_is_written_before_the_agent_has_renewed() {
    let mut node = Node::new();
    node.pods.there(&meta("a", Some("100")), Containers::default());
    node.pass();
    assert_eq!(node.says(), "nothing");
    assert!(!node.at(1005).renew(), "the guard knows no pod yet");
    assert_eq!((node.says().as_str(), node.keeper.wants_list()), ("1005 a:100", None));
    assert!(node.at(1015).renew());
    assert_eq!(node.says(), "1015 a:100");
}

#[test]
fn the_smallest_lease_that_was_seen_counts() {
    let mut node = Node::promising(&[]);
    for (lease, expected) in [
        (Some("600"), "a:600"),
        (Some("900"), "a:600"),
        (None, "a:600"),
        (Some("x"), "a:600"),
        (Some("50"), "a:50"),
    ] {
        node.pods.there(&meta("a", lease), Containers::default());
        node.pass();
        assert_eq!(node.says(), format!("1000 {expected}"), "{lease:?}");
    }
    node.pods.there(&meta("b", None), Containers::default());
    node.pass();
    assert_eq!(node.says(), "1000 a:50 b:40", "a pod that states none has the shortest");
}

/// Labels tell a proc from backfill work, and somebody may have changed them before the agent saw the pod.
#[test]
fn a_pod_that_seems_to_do_backfill_work_is_fenced_like_a_proc() {
    let mut node = Node::promising(&["a"]);
    let mut backfill = meta("b", Some("600"));
    backfill.labels = Some([("slotwright.dev/backfill".to_owned(), "true".to_owned())].into());
    node.pods.there(&backfill, Containers::default());
    assert!(!node.may_name("b"), "the guard does not know the pod");
    node.pass();
    assert_eq!((node.says().as_str(), node.may_name("b")), ("1000 a:100 b:600", true));
}

/// The operator counts on the promise for each pod that the report names.
#[test]
fn a_pod_is_named_once_the_guard_has_read_a_permit_that_has_it() {
    let mut node = Node::promising(&["a"]);
    node.pods.there(&meta("b", Some("100")), Containers::default());
    assert_eq!((node.may_name("a"), node.may_name("b")), (true, false));
    node.deaf = true;
    node.pass();
    assert_eq!(
        (node.says().as_str(), node.may_name("b")),
        ("1000 a:100 b:100", false),
        "it was only written"
    );
    node.deaf = false;
    node.pass();
    assert!(node.may_name("b"));
    assert!(node.at(1010).renew());
    node.deaf = true;
    node.pass();
    assert!(node.may_name("b"), "what was named stays named");
}

#[test]
fn a_pod_that_the_guard_does_not_know_keeps_no_promise_from_being_renewed_but_is_not_named() {
    let mut node = Node::promising(&["a"]);
    let (now, read) = (secs(1010), node.read);
    node.pods.there(&meta("b", Some("100")), Containers::default());
    node.keeper.observe(&node.pods, |_| false, now);
    let permit = node.keeper.due_write().unwrap();
    node.keeper.wrote(permit);
    node.keeper.heard(Some(&Heartbeat::new("one", now, read)), now);
    assert!(node.keeper.may_promise(&node.pods));
    assert!(!node.may_name("b"));
}

#[test]
fn a_guard_that_falls_silent_or_forgets_ends_the_promise_until_it_knows_all_pods_again() {
    for forgets in [false, true] {
        let mut node = Node::promising(&["a"]);
        node.pods.there(&meta("b", Some("100")), Containers::default());
        assert!(node.may_name("a") && !node.may_name("b"));
        let beat = if forgets {
            Heartbeat::new("one", secs(1010), 0)
        } else {
            Heartbeat::new("one", secs(999), node.read)
        };
        node.keeper.heard(Some(&beat), secs(1010));
        assert!(!node.keeper.may_promise(&node.pods), "forgets: {forgets}");
        // Until a renewal without the promise has succeeded, the promise is in force.
        node.keeper.renewal_sent(secs(1010), false);
        assert!(!node.may_name("b"));
        node.keeper.renewed(secs(1010), false, secs(1010));
        assert!(node.may_name("b"), "nobody counts on a promise");
        // The report may have named b meanwhile: the guard has to know b before the agent promises again.
        node.keeper.heard(Some(&Heartbeat::new("one", secs(1011), node.read)), secs(1011));
        assert!(!node.keeper.may_promise(&node.pods));
        node.at(1012).pass();
        assert!(node.keeper.may_promise(&node.pods));
    }
}

#[test]
fn a_promise_that_was_sent_and_given_up_may_be_in_force_for_a_while() {
    let mut node = Node::promising(&["a"]);
    node.keeper.renewal_sent(secs(1010), true);
    node.deaf = true;
    node.pods.there(&meta("b", Some("600")), Containers::default());
    for (now, named) in [(1020, false), (1069, false), (1070, true)] {
        node.at(now).renew();
        assert_eq!(node.may_name("b"), named, "{now}");
    }
}

#[test]
fn a_guard_of_an_earlier_boot_counts_as_silent() {
    let mut node = Node::promising(&["a"]);
    node.keeper.heard(Some(&Heartbeat::new("zero", secs(1000), node.read)), secs(1000));
    assert!(!node.keeper.may_promise(&node.pods));
}

#[test]
fn a_pod_that_was_deleted_while_the_node_was_cut_off_never_runs_again() {
    let mut node = Node::promising(&["stays", "deleted", "gone"]);
    node.pods.there(&meta("longer", Some("600")), Containers::default());
    node.at(1010).renew();
    // No renewal succeeds for longer than the lease. Until the list, nothing runs whose lease has passed.
    node.at(1110).renew();
    assert_eq!(node.says(), "1110 longer:600 ?deleted:100 ?gone:100 ?stays:100");
    assert_eq!(node.keeper.wants_list(), Some(secs(1110)));
    node.at(1112).list("stays deleted- longer");
    assert_eq!(node.says(), "1110 longer:600 stays:100 -deleted -gone");
    // The watch still shows a pod that must not run again.
    node.at(1114).pass();
    assert_eq!(node.says(), "1110 longer:600 stays:100 -deleted -gone");
}

/// A list takes its time, and may fail. The node is connected meanwhile.
#[test]
fn a_pod_whose_lease_has_passed_holds_up_no_other_pod() {
    let mut node = Node::promising(&["a"]);
    node.pods.there(&meta("b", Some("600")), Containers::default());
    node.at(1010).renew();
    for now in [1110, 1120, 1130] {
        let promises = node.at(now).renew();
        assert_eq!((node.says(), promises), (format!("{now} b:600 ?a:100"), true));
        assert_eq!(node.keeper.wants_list(), Some(secs(now)));
    }
    node.pods.there(&meta("c", Some("600")), Containers::default());
    node.at(1131).pass();
    assert_eq!(node.says(), "1130 b:600 c:600 ?a:100");
    assert!(node.may_name("c"));
    node.list("a b c");
    assert_eq!(node.says(), "1130 a:100 b:600 c:600");
    assert!(node.at(1140).renew());
}

#[test]
fn a_gap_that_is_shorter_than_all_leases_needs_no_list() {
    let mut node = Node::promising(&["a"]);
    node.at(1099).renew();
    assert_eq!((node.says().as_str(), node.keeper.wants_list()), ("1099 a:100", None));
}

/// A list says what was so after the renewal that it follows. A later renewal may follow a gap of its own.
#[test]
fn a_list_that_comes_late_counts_for_the_renewal_before_it() {
    let mut node = Node::promising(&["a"]);
    node.at(1200).renew();
    let sent = node.keeper.wants_list().unwrap();
    node.at(1210).renew();
    node.keeper.listed(sent, &listed("a"), secs(1212));
    node.pass();
    assert_eq!(node.says(), "1210 a:100", "no lease has passed between the two renewals");
    node.at(1400).renew();
    let sent = node.keeper.wants_list().unwrap();
    node.at(1505).renew();
    node.keeper.listed(sent, &listed("a"), secs(1506));
    node.pass();
    assert_eq!((node.says().as_str(), node.keeper.wants_list()), ("1400 ?a:100", Some(secs(1505))));
}

/// A job may ask for the shortest lease, and a list takes long on an API server that comes back from an outage.
#[test]
fn a_list_that_takes_longer_than_a_lease_is_asked_for_again_after_the_next_renewal_only() {
    let mut node = Node::promising(&[]);
    for (uid, lease) in [("short", "40"), ("deleted", "40"), ("long", "600")] {
        node.pods.there(&meta(uid, Some(lease)), Containers::default());
    }
    node.pass();
    node.at(1200).renew();
    let sent = node.keeper.wants_list().unwrap();
    for now in [1210, 1220, 1230] {
        node.at(now).renew();
    }
    node.keeper.listed(sent, &listed("short long deleted-"), secs(1240));
    node.pass();
    assert_eq!(node.says(), "1230 long:600 ?short:40 -deleted");
    let sent = node.keeper.wants_list().unwrap();
    assert_eq!(sent, secs(1230));
    node.keeper.listed(sent, &listed("short long"), secs(1270));
    node.pass();
    assert_eq!(
        node.keeper.wants_list(),
        None,
        "another list after the same renewal would come too late, too"
    );
    node.at(1280).renew();
    node.at(1319).list("short long");
    assert_eq!((node.says().as_str(), node.keeper.wants_list()), ("1280 long:600 short:40 -deleted", None));
}

/// The agent goes on taking pods into the permit while a list is under way.
#[test]
fn a_pod_that_is_younger_than_a_list_is_not_ended_by_the_list() {
    let mut node = Node::promising(&["a"]);
    node.at(1200).renew();
    let sent = node.keeper.wants_list().unwrap();
    node.pods.there(&meta("young", Some("100")), Containers::default());
    node.at(1210).pass();
    node.at(1310).renew();
    node.keeper.listed(sent, &listed("a"), secs(1311));
    node.pass();
    assert_eq!(node.says(), "1310 ?a:100 ?young:100");
    node.list("a young");
    assert_eq!(node.says(), "1310 a:100 young:100");
}

#[test]
fn a_pod_that_is_deleted_in_the_ordinary_way_leaves_the_permit_with_its_cgroup() {
    let mut node = Node::promising(&["a", "b"]);
    node.pods.gone(&meta("a", None));
    node.remains = vec!["a"];
    node.at(1020).renew();
    assert_eq!(node.says(), "1020 a:100 b:100");
    node.remains.clear();
    node.at(1031).renew();
    assert_eq!(node.says(), "1031 b:100");
    // While the agent is cut off, no pod leaves the permit: a pod that is over may have to stay so for ever.
    node.pods.gone(&meta("b", None));
    node.at(1131).pass();
    assert_eq!(node.says(), "1031 b:100");
}

#[test]
fn a_pod_that_must_not_run_again_is_forgotten_long_after_the_last_trace_of_it() {
    let mut node = Node::promising(&["a"]);
    node.remains = vec!["a"];
    node.at(1200).renew();
    node.list("");
    node.at(1900).pass();
    assert_eq!(node.says(), "1200 -a", "the watch has the pod");
    node.pods.gone(&meta("a", None));
    node.at(2600).pass();
    assert_eq!(node.says(), "1200 -a", "its cgroup is there");
    node.remains.clear();
    node.at(2620).pass();
    node.at(3210).pass();
    assert_eq!(node.says(), "1200 -a");
    node.at(3220).pass();
    assert_eq!(node.says(), "1200");
    assert!(node.keeper.quiet.is_empty() && node.keeper.since.is_empty(), "{:?}", node.keeper);
}

#[test]
fn an_agent_that_restarts_goes_on_from_the_permit() {
    let mut node = Node::promising(&["a", "b"]);
    node.restart("one");
    assert!(
        !node.may_name("a"),
        "an earlier agent's promise may be in force, and nothing is heard of the guard yet"
    );
    node.at(1050).pass();
    assert!(node.may_name("a"));
    assert!(!node.renew());
    assert_eq!((node.says().as_str(), node.keeper.wants_list()), ("1050 a:100 b:100", None));
    assert!(node.at(1060).renew());
    node.at(1200).renew();
    assert_eq!(node.says(), "1200 ?a:100 ?b:100");
    // Its successor knows which pods have to be listed, too.
    node.restart("one");
    node.at(1210).renew();
    assert_eq!(node.says(), "1210 ?a:100 ?b:100");
    node.list("a b-");
    assert_eq!(node.says(), "1210 a:100 -b");
    node.at(1220).renew();
    assert!(node.at(1230).renew());
}

/// After a reboot nobody knows of a renewal: whatever ran before must not run again unless it is still wanted.
#[test]
fn a_reboot_ends_what_is_no_longer_wanted() {
    let mut node = Node::promising(&["a", "b", "c"]);
    node.at(1200).renew();
    node.list("a b");
    assert_eq!(node.says(), "1200 a:100 b:100 -c");
    node.restart("two");
    node.read = 0;
    node.at(20).pass();
    assert_eq!(node.says(), "1200 a:100 b:100 -c");
    node.renew();
    assert_eq!(node.says(), "20 ?a:100 ?b:100 -c");
    node.list("a b-");
    assert_eq!(node.says(), "20 a:100 -b -c");
    assert_eq!(node.file.as_ref().unwrap().boot, "two");
}

#[test]
fn an_emptied_directory_brings_no_number_back() {
    let mut node = Node::promising(&["a"]);
    let read = node.read;
    node.file = None;
    node.restart("one");
    node.deaf = true;
    node.renew();
    assert!(node.file.as_ref().unwrap().sequence > read);
    node.keeper.heard(Some(&Heartbeat::new("one", secs(node.now), read)), secs(node.now));
    assert!(!node.keeper.may_promise(&node.pods), "what the guard has read is an older permit");
}

#[test]
fn an_idle_node_writes_nothing_at_a_renewal() {
    let mut node = Node::promising(&[]);
    let sequence = node.file.as_ref().unwrap().sequence;
    for now in [1010, 1500, 9000] {
        node.at(now).renew();
    }
    assert_eq!(node.file.as_ref().unwrap().sequence, sequence);
    node.pods.there(&meta("a", Some("100")), Containers::default());
    node.pass();
    assert_eq!(node.says(), "9000 a:100");
}
