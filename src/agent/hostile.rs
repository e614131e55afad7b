//! Attacks of a tenant on the agent of the node on which the tenant's pod runs, and their outcomes. A tenant writes the metadata
//! of its own pods, and its programs write into the pod's own cgroup at most.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rustix::fs::{CWD, FileType, mknodat};
use serde_json::{Value, json};

use crate::containers::Containers;
use crate::deciding::{Act, ProcessState};
use crate::fence::keeper::Keeper;
use crate::fence::permit::Permit;
use crate::node::{Node, Roots};
use crate::pods::{Pod, Pods, Wanted};
use crate::report::Senses;
use crate::sense::{InputPaths, InputSensor};

const VICTIM: &str = "victim";
const OWN: &str = "tenant";
const SUSPEND: &str = "slotwright.dev/suspend";
const KILL: &str = "slotwright.dev/kill";
const LEASE: &str = "slotwright.dev/lease-seconds";

/// A node of cgroup version 2 with the pod of a victim, the pod of the tenant, and a file elsewhere that looks like a cgroup's.
struct Place {
    root: tempfile::TempDir,
    node: Node,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for pod in [VICTIM, OWN] {
            pod_directory(&root.path().join(format!("cgroup/kubepods/burstable/pod{pod}")));
        }
        pod_directory(&root.path().join("elsewhere"));
        fs::write(root.path().join("cgroup/cgroup.controllers"), "cpu memory\n").unwrap();
        fs::create_dir_all(root.path().join("dev/pts")).unwrap();
        let at = |name: &str| root.path().join(name);
        let inputs = InputPaths { dev: at("dev"), sessions: at("sessions"), plug: Some(at("input")) };
        let roots = Roots { cgroup: at("cgroup"), proc: "/proc".into(), scratch: at(""), inputs };
        Self { node: Node::new(roots), root }
    }

    /// Lets the agent do to the pod all that it can do, and measure it.
    fn suffer(&mut self, pod: &Pod, pods: &Pods) -> Vec<ProcessState> {
        self.sense(pods);
        [Act::Freeze, Act::Kill, Act::Thaw].map(|act| self.node.act(pod, act)).to_vec()
    }

    /// Looks for the pods' cgroups, and senses the node, as a pass of the agent does.
    fn sense(&mut self, pods: &Pods) -> Senses {
        self.node.find(pods.iter().map(|pod| &*pod.uid));
        self.node.sense(pods, Timestamp::UNIX_EPOCH)
    }

    /// All files that are not the tenant's, with what they hold.
    fn others(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let mut open = vec![self.root.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() && path.ends_with(format!("pod{OWN}")) => {}
                    kind if kind.is_dir() => open.push(path),
                    kind if kind.is_file() => {
                        files.insert(path.clone(), fs::read_to_string(path).unwrap());
                    }
                    _ => {}
                }
            }
        }
        files
    }

    fn own(&self) -> PathBuf {
        self.root.path().join(format!("cgroup/kubepods/burstable/pod{OWN}"))
    }
}

/// Makes something at a path.
type Make = fn(&Path);

/// A cgroup with a process.
fn pod_directory(path: &Path) {
    fs::create_dir_all(path).unwrap();
    let files = [
        ("cgroup.events", "populated 1\nfrozen 0\n"),
        ("cgroup.freeze", "0"),
        ("cgroup.kill", ""),
        ("cgroup.procs", ""),
    ];
    for (file, text) in files {
        fs::write(path.join(file), text).unwrap();
    }
}

/// Metadata of a pod of the pool, with these fields instead of the usual ones.
fn meta(fields: Value) -> ObjectMeta {
    let mut meta =
        json!({"namespace": "lab", "name": "job-0", "uid": OWN, "labels": {"slotwright.dev/job-uid": "j"}});
    meta.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(meta).unwrap()
}

/// An agent that renews its Lease each 10 s while a tenant makes this of its pod's metadata: the permit must follow each renewal, and
/// no list of the node's pods may be needed.
fn keeps_the_permit(edited: &ObjectMeta, what: &str) {
    let (mut keeper, mut pods) = (Keeper::new("boot", None, 0), Pods::default());
    let lease = |seconds: &str| json!({"annotations": {LEASE: seconds}});
    let victim = ObjectMeta { uid: Some(VICTIM.to_owned()), ..meta(lease("100")) };
    pods.list_begins();
    pods.listed(&victim, Containers::default());
    pods.listed(&meta(lease("100")), Containers::default());
    pods.list_ends();
    for second in (1000..2000).step_by(10) {
        let now = Duration::from_secs(second);
        keeper.renewal_sent(now, false);
        keeper.renewed(now, false, now);
        keeper.observe(&pods, |_| true, now);
        let permit = keeper.due_write().unwrap();
        assert!(permit.renewed == now && permit.pods[VICTIM] == 100, "{what}: {permit:?}");
        assert_eq!(
            (keeper.wants_list(), permit.over("boot", now).next()),
            (None, None),
            "{what}: {permit:?}"
        );
        keeper.wrote(permit);
        pods.there(edited, Containers::default());
    }
}

/// Metadata that a tenant may write on its pod, the state in which the agent then wants the pod's processes, and the lease that
/// the agent reads.
#[test]
fn what_a_tenant_writes_on_its_pod_concerns_this_pod_alone() {
    let huge = "x".repeat(256 << 10);
    let cases = [
        (
            "no label of the pool",
            json!({"labels": {}, "annotations": {SUSPEND: "true", KILL: "true"}}),
            None,
            None,
        ),
        ("only a label", json!({"annotations": {}}), Some(Wanted::Run), None),
        ("the operator's words", json!({"annotations": {SUSPEND: "true"}}), Some(Wanted::Suspend), None),
        ("its own death", json!({"annotations": {KILL: "true"}}), Some(Wanted::Kill), None),
        (
            "nearly the operator's words",
            json!({"annotations": {SUSPEND: "true\n", KILL: "TRUE"}}),
            Some(Wanted::Run),
            None,
        ),
        (
            "the longest lease",
            json!({"annotations": {LEASE: u64::MAX.to_string()}}),
            Some(Wanted::Run),
            Some(u64::MAX),
        ),
        ("a lease that nobody can keep", json!({"annotations": {LEASE: "0"}}), Some(Wanted::Run), Some(40)),
        ("more than that", json!({"annotations": {LEASE: "18446744073709551616"}}), Some(Wanted::Run), None),
        ("less than none", json!({"annotations": {LEASE: "-1"}}), Some(Wanted::Run), None),
        ("words", json!({"annotations": {LEASE: "40s"}}), Some(Wanted::Run), None),
        (
            "as much as there is room for",
            json!({"annotations": {SUSPEND: huge, "a": huge}}),
            Some(Wanted::Run),
            None,
        ),
        (
            "another's claim",
            json!({"annotations": {"slotwright.dev/claim": VICTIM}, "labels":
            {"slotwright.dev/job-uid": VICTIM, "slotwright.dev/slot": VICTIM}}),
            Some(Wanted::Run),
            None,
        ),
        ("a name with a path", json!({"namespace": "..", "name": "../podvictim"}), Some(Wanted::Run), None),
        ("a name with lines", json!({"name": "a\nERROR b\u{1b}[2J"}), Some(Wanted::Run), None),
        ("no uid", json!({"uid": null}), None, None),
    ];
    for (what, fields, wanted, lease) in cases {
        let meta = meta(fields);
        let pod = Pod::read(&meta);
        assert_eq!(pod.as_ref().map(Pod::wanted), wanted, "{what}");
        assert_eq!(pod.as_ref().and_then(Pod::lease), lease, "{what}");
        let Some(pod) = pod else { continue };
        let mut place = Place::new();
        let before = place.others();
        let mut pods = Pods::default();
        pods.there(&meta, Containers::default());
        place.suffer(&pod, &pods);
        assert_eq!(place.others(), before, "{what}: nothing else of the node is touched");
        keeps_the_permit(&meta, what);
        assert_eq!(
            fs::read_to_string(place.own().join("cgroup.kill")).unwrap(),
            "1",
            "{what}: its own pod is"
        );
    }
}

/// The API server chooses uids. If one were a path, it would lead nowhere.
#[test]
fn a_uid_that_is_a_path_leads_nowhere() {
    for uid in [
        "../podvictim",
        "tenant/../podvictim",
        "../../../elsewhere",
        "..",
        ".",
        "",
        "/",
        "victim/",
        "victim\0",
        "*",
        "../../../../elsewhere/..",
        "victim\n",
    ] {
        let mut place = Place::new();
        fs::create_dir_all(place.root.path().join("cgroup/kubepods/burstable/pod..")).unwrap();
        let before = place.others();
        let meta = meta(json!({"uid": uid}));
        let mut pods = Pods::default();
        pods.there(&meta, Containers::default());
        let seen = place.suffer(&Pod::read(&meta).unwrap(), &pods);
        assert!(seen.iter().all(|seen| *seen == ProcessState::Running), "{uid:?}: {seen:?}");
        assert_eq!(place.others(), before, "{uid:?}");
    }
}

/// Programs with a writable cgroup of their own make directories in it, and kernels have bugs.
#[test]
fn whatever_is_in_the_pods_own_cgroup_is_measured_or_left_out() {
    let most = u64::MAX.to_string();
    let meta = meta(json!({}));
    let mut pods = Pods::default();
    pods.there(&meta, Containers::default());
    for text in [
        "",
        "0",
        "-1",
        "max",
        &most,
        "\0\0",
        "18446744073709551616",
        &"9".repeat(1 << 20),
        &"a 1\n".repeat(1 << 18),
    ] {
        let mut place = Place::new();
        fs::write(place.own().join("memory.current"), text).unwrap();
        for (file, key) in [("memory.stat", "anon"), ("cpu.stat", "usage_usec")] {
            fs::write(place.own().join(file), format!("{key} {text}\n")).unwrap();
        }
        fs::write(place.own().join("io.stat"), format!("8:0 rbytes={text} wbytes={text}\n").repeat(3))
            .unwrap();
        let shown = text.chars().take(20).collect::<String>();
        let usage = place.sense(&pods).usage;
        let [one] = &usage[..] else { panic!("{shown}: {usage:?}") };
        let amounts =
            [one.memory_mib, one.resident_kib, one.block_read_kib, one.block_write_kib, one.block_reads];
        assert!(amounts.into_iter().flatten().all(|amount| amount >= 0), "{shown}: {one:?}");
        assert!(one.cpus.is_none_or(|cpus| cpus.is_finite() && cpus >= 0.0), "{shown}: {one:?}");
    }
    let mut place = Place::new();
    for number in 0..2000 {
        fs::create_dir(place.own().join(format!("container{number}"))).unwrap();
    }
    symlink(place.root.path().join("elsewhere"), place.own().join("link")).unwrap();
    symlink(place.own(), place.own().join("loop")).unwrap();
    let before = place.others();
    // Without the file that kills all at once, the agent looks into each directory.
    fs::remove_file(place.own().join("cgroup.kill")).unwrap();
    place.suffer(&Pod::read(&meta).unwrap(), &pods);
    assert_eq!(place.others(), before);
}

/// A lease without end is that of this pod alone, and no sum of it overflows.
#[test]
fn a_lease_without_end_keeps_no_other_pod_alive() {
    let leases = [(OWN.to_owned(), u64::MAX), (VICTIM.to_owned(), 40)];
    let mut permit = Permit::empty("b", 1);
    permit.pods = leases.into();
    for (now, expected) in [(39, [false, false]), (40, [false, true]), (u64::MAX - 1, [false, true])] {
        let over = [u64::MAX, 40].map(|lease| permit.is_over(lease, "b", Duration::from_secs(now)));
        assert_eq!(over, expected, "at {now}");
    }
}

/// The site's file may be in a directory that a desktop's user may write.
#[test]
fn what_stands_in_the_place_of_the_input_file_neither_stops_the_agent_nor_is_told_on() {
    let kinds: [(&str, Make); 5] = [
        ("a pipe that nobody writes", |path| mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap()),
        ("a device without end", |path| symlink("/dev/zero", path).unwrap()),
        ("another's file", |path| symlink("/etc/passwd", path).unwrap()),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a large file", |path| fs::write(path, "keyboard = ".repeat(1 << 20)).unwrap()),
    ];
    for (what, make) in kinds {
        let mut place = Place::new();
        let input = place.root.path().join("input");
        make(&input);
        let senses = place.sense(&Pods::default());
        assert_eq!((senses.keyboard, senses.console), (None, None), "{what}");
        let paths =
            InputPaths { dev: place.root.path().join("dev"), sessions: "/nowhere".into(), plug: Some(input) };
        let (_, doubts) = InputSensor::new(paths).sense(Timestamp::UNIX_EPOCH);
        let log: String = doubts.iter().map(ToString::to_string).collect();
        assert!(!log.is_empty() && log.len() < 1000 && !log.contains("root:"), "{what}: {log}");
    }
}
