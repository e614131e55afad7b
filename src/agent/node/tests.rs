//! Cgroups that are found, and those that are not.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;
use crate::containers::Containers;

/// A node with this directory of cgroups, and without anything else.
fn node(cgroup: &Path) -> Node {
    let nowhere = PathBuf::from("/nonexistent");
    let inputs = InputPaths { dev: nowhere.clone(), sessions: nowhere.clone(), plug: None };
    Node::new(Roots { cgroup: cgroup.to_owned(), proc: nowhere.clone(), scratch: nowhere, inputs })
}

fn pod(uid: &str) -> Pod {
    let labels = [(api::labels::JOB_UID.to_owned(), "j".to_owned())].into();
    let (uid, name) = (Some(uid.to_owned()), Some("p".to_owned()));
    Pod::read(&ObjectMeta { uid, name, labels: Some(labels), ..ObjectMeta::default() }).unwrap()
}

/// Each search reads hundreds of directories, and a node may keep hundreds of pods that have ended.
#[test]
fn cgroups_are_looked_for_at_the_beginning_of_a_pass_and_only_then() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("cgroup.controllers"), "").unwrap();
    let mut node = node(root.path());
    assert!(node.remains("u1"), "nothing is known before the first look");
    node.find(["u1"]);
    let group = root.path().join("kubepods/podu1");
    std::fs::create_dir_all(&group).unwrap();
    std::fs::write(group.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
    assert_eq!(node.look(&pod("u1")), ProcessState::Nothing);
    assert!(!node.remains("u1") && node.remains("u2"), "nobody has looked for the second pod");
    node.find(["u1", "u2", "../u3"]);
    assert!(node.remains("../u3"));
    assert_eq!(
        (node.look(&pod("u1")), node.look(&pod("u2"))),
        (ProcessState::Starting, ProcessState::Nothing)
    );
    assert!(node.remains("u1") && !node.remains("u2"));
}

/// A kubelet in a session of systemd's keeps its pods deeper than the agent looks.
#[test]
fn an_agent_that_finds_no_cgroup_of_pods_that_run_says_so_after_a_while() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("cgroup.controllers"), "").unwrap();
    std::fs::create_dir_all(root.path().join("a/b/c/kubepods/podu1")).unwrap();
    let mut node = node(root.path());
    let meta = |uid: &str| {
        let labels = [(api::labels::JOB_UID.to_owned(), "j".to_owned())].into();
        let (uid, name) = (Some(uid.to_owned()), Some("p".to_owned()));
        ObjectMeta { uid, name, labels: Some(labels), ..ObjectMeta::default() }
    };
    let mut pods = Pods::default();
    let mut problem = |pods: &Pods, longer: bool| {
        node.find(pods.iter().map(|pod| &*pod.uid));
        if longer {
            node.unfound = node.unfound.and_then(|since| since.checked_sub(UNFOUND_FOR));
        }
        node.sense(pods, Timestamp::UNIX_EPOCH).problem.map(|problem| problem.reason)
    };
    pods.there(&meta("u1"), Containers::default());
    assert_eq!((problem(&pods, true), problem(&pods, true)), (None, None), "no container runs");
    pods.there(&meta("u1"), Containers::running(["c1"]));
    assert_eq!(problem(&pods, false), None, "the status may be older than the end of the pod");
    assert_eq!(problem(&pods, true), Some("NoCgroups"));
    pods.there(&meta("u2"), Containers::running(["c2"]));
    assert_eq!(problem(&pods, true), Some("NoCgroups"));
    std::fs::create_dir_all(root.path().join("kubepods/podu2")).unwrap();
    assert_eq!(problem(&pods, true), None, "one of them is found");
}

#[test]
fn an_agent_that_may_not_freeze_says_so_for_a_while() {
    let mut node = node(Path::new("/nonexistent"));
    assert_eq!(node.may_not_freeze(), None);
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    assert!(is_forbidden(&denied) && !is_forbidden(&io::Error::from(io::ErrorKind::NotFound)));
    let denied_again = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
    node.learn(Act::Kill, &denied_again());
    assert_eq!(node.may_not_freeze(), None, "on cgroup v1 an agent may freeze without the right to kill");
    node.learn(Act::Freeze, &denied_again());
    node.learn(Act::Kill, &Ok(()));
    assert_eq!(node.may_not_freeze().unwrap().reason, "CannotFreeze");
    node.learn(Act::Thaw, &Ok(()));
    assert_eq!(node.may_not_freeze(), None);
    node.forbidden = Instant::now().checked_sub(BELIEVED_FOR).map(|at| (at, denied.to_string()));
    assert_eq!((node.may_not_freeze(), node.forbidden), (None, None));
}
