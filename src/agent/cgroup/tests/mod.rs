//! Cgroups of this computer, with real processes; and made-up files for what no test can bring about.

mod scratch;

use std::fs;
use std::io;

use super::*;
use scratch::{Counter, Scratch, wait_until};

impl Cgroups {
    /// The cgroup of one pod.
    fn find(&self, uid: &str) -> io::Result<Option<PodGroup>> {
        Ok(self.find_each([uid])?.pop().map(|(_, group)| group))
    }
}

fn is_frozen(group: &PodGroup) {
    wait_until("the pod is frozen", || group.state().unwrap() == State::Frozen);
}

/// Checks that the frozen processes do not count, while another one does.
fn stand_still(frozen: &[&Counter], control: &Counter) {
    let before: Vec<u64> = frozen.iter().map(|counter| counter.written()).collect();
    for _ in 0..5 {
        control.advances();
    }
    assert_eq!(frozen.iter().map(|counter| counter.written()).collect::<Vec<_>>(), before);
}

fn a_frozen_pod_stops_and_continues(version: Version) {
    let Some(mut scratch) = Scratch::new(version) else { return };
    let control = scratch.count(None);
    let (first, second) = (scratch.count(Some("c1")), scratch.count(Some("c2")));
    let group = scratch.group();
    first.advances();
    second.advances();
    assert_eq!(group.state().unwrap(), State::Thawed);

    group.freeze().unwrap();
    is_frozen(&group);
    stand_still(&[&first, &second], &control);
    group.freeze().unwrap();
    assert_eq!(group.state().unwrap(), State::Frozen, "a second freeze changes nothing");

    group.thaw().unwrap();
    wait_until("the pod is thawed", || group.state().unwrap() == State::Thawed);
    first.advances();
    second.advances();
    group.kill().unwrap();
    wait_until("the pod is empty", || {
        scratch.reap();
        !group.has_processes().unwrap()
    });
    first.is_exact();
    second.is_exact();
}

#[test]
fn a_frozen_pod_stops_and_continues_exactly_v1() {
    a_frozen_pod_stops_and_continues(Version::V1);
}

#[test]
fn a_frozen_pod_stops_and_continues_exactly_v2() {
    a_frozen_pod_stops_and_continues(Version::V2);
}

fn kill_ends_what_is_frozen_and_what_forks(version: Version) {
    for frozen in [true, false] {
        let Some(mut scratch) = Scratch::new(version) else { return };
        scratch.fork("c1");
        scratch.fork("c2/nested");
        let counter = scratch.count(Some("c2"));
        counter.advances();
        let group = scratch.group();
        if frozen {
            group.freeze().unwrap();
            is_frozen(&group);
        }
        assert!(group.has_processes().unwrap());
        group.kill().unwrap();
        scratch.all_killed();
        wait_until("the pod is empty", || !group.has_processes().unwrap());
        group.kill().unwrap();
    }
}

#[test]
fn kill_ends_what_is_frozen_and_what_forks_v1() {
    kill_ends_what_is_frozen_and_what_forks(Version::V1);
}

#[test]
fn kill_ends_what_is_frozen_and_what_forks_v2() {
    kill_ends_what_is_frozen_and_what_forks(Version::V2);
}

#[test]
fn a_process_that_joins_a_frozen_pod_does_not_run_v2() {
    let Some(mut scratch) = Scratch::new(Version::V2) else { return };
    let group = scratch.group();
    group.freeze().unwrap();
    assert_eq!(group.state().unwrap(), State::Freezing, "there is no process that could be frozen");
    let (late, control) = (scratch.count(Some("late")), scratch.count(None));
    is_frozen(&group);
    stand_still(&[&late], &control);
    assert_eq!(late.written(), 0);
    group.thaw().unwrap();
    late.advances();
}

#[test]
fn a_container_that_appears_later_is_frozen_by_the_next_freeze_v1() {
    let Some(mut scratch) = Scratch::new(Version::V1) else { return };
    let (first, control) = (scratch.count(Some("c1")), scratch.count(None));
    let group = scratch.group();
    group.freeze().unwrap();
    is_frozen(&group);
    let second = scratch.count(Some("c2"));
    second.advances();
    assert_eq!(group.state().unwrap(), State::Freezing, "one of two containers still runs");
    group.freeze().unwrap();
    is_frozen(&group);
    stand_still(&[&first, &second], &control);
}

fn nothing_is_left_to_do_for_a_pod_that_vanished(version: Version) {
    let Some(scratch) = Scratch::new(version) else { return };
    let group = scratch.group();
    scratch.remove_pod();
    group.freeze().unwrap();
    assert_eq!(group.state().unwrap(), State::Thawed);
    group.kill().unwrap();
    group.thaw().unwrap();
    assert!(!group.has_processes().unwrap());
    assert_eq!(group.usage(), Usage::default());
    assert_eq!(scratch.cgroups.find(&scratch.uid).unwrap(), None);
}

#[test]
fn nothing_is_left_to_do_for_a_pod_that_vanished_v1() {
    nothing_is_left_to_do_for_a_pod_that_vanished(Version::V1);
}

#[test]
fn nothing_is_left_to_do_for_a_pod_that_vanished_v2() {
    nothing_is_left_to_do_for_a_pod_that_vanished(Version::V2);
}

fn cpu_time_grows_while_a_pod_runs(version: Version) {
    let Some(mut scratch) = Scratch::new(version) else { return };
    let group = scratch.group();
    let before = group.usage();
    let counter = scratch.count(Some("c1"));
    counter.advances();
    wait_until("CPU time is counted", || group.usage().cpu > before.cpu);
    if version == Version::V1 {
        let usage = group.usage();
        assert!(usage.memory_bytes.is_none_or(|bytes| bytes > 0), "{usage:?}");
    }
}

#[test]
fn cpu_time_grows_while_a_pod_runs_v1() {
    cpu_time_grows_while_a_pod_runs(Version::V1);
}

#[test]
fn cpu_time_grows_while_a_pod_runs_v2() {
    cpu_time_grows_while_a_pod_runs(Version::V2);
}

#[test]
fn the_version_is_detected_or_the_error_says_what_to_mount() {
    let root = tempfile::tempdir().unwrap();
    let error = Cgroups::detect(root.path()).unwrap_err().to_string();
    for word in
        ["cgroup.controllers", "freezer/", "mount the node's /sys/fs/cgroup", root.path().to_str().unwrap()]
    {
        assert!(error.contains(word), "{error:?} has no {word:?}");
    }
    fs::create_dir(root.path().join("freezer")).unwrap();
    assert_eq!(Cgroups::detect(root.path()).unwrap().version(), Version::V1);
    fs::write(root.path().join("cgroup.controllers"), "").unwrap();
    assert_eq!(Cgroups::detect(root.path()).unwrap().version(), Version::V2);
}

#[test]
fn a_uid_that_is_no_component_of_a_path_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "").unwrap();
    let cgroups = Cgroups::detect(root.path()).unwrap();
    for uid in ["", ".", "..", "a/b", "../x", "a\0", "ä", &"a".repeat(129)] {
        assert_eq!(cgroups.find(uid).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{uid:?}");
    }
    assert_eq!(cgroups.find("0f2c5d1e-5a0b-4c3d-9e8f-112233445566").unwrap(), None);
}

#[test]
fn a_pod_that_starts_after_the_first_search_is_found() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "").unwrap();
    let cgroups = Cgroups::detect(root.path()).unwrap();
    assert_eq!(cgroups.find("u1").unwrap(), None);
    for (uid, path) in [("u1", "node1/kubepods/podu1"), ("u2", "node2/kubepods/besteffort/podu2")] {
        fs::create_dir_all(root.path().join(path)).unwrap();
        assert_eq!(cgroups.find(uid).unwrap().unwrap().path(), Path::new(path));
    }
}

/// The state that version 2 has with these files.
fn state_v2(freeze: &str, events: &str) -> State {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.freeze"), freeze).unwrap();
    fs::write(root.path().join("cgroup.events"), events).unwrap();
    PodGroup::new(root.path().to_owned(), Version::V2, PathBuf::new()).state().unwrap()
}

#[test]
fn version_2_is_frozen_once_the_kernel_confirms_and_there_are_processes() {
    for (freeze, events, expected) in [
        ("0\n", "populated 1\nfrozen 0\n", State::Thawed),
        ("1\n", "populated 1\nfrozen 0\n", State::Freezing),
        ("1\n", "populated 1\nfrozen 1\n", State::Frozen),
        ("1\n", "populated 0\nfrozen 1\n", State::Freezing),
        // A cgroup above is frozen.
        ("0\n", "populated 1\nfrozen 1\n", State::Frozen),
        ("0\n", "populated 0\nfrozen 0\n", State::Thawed),
    ] {
        assert_eq!(state_v2(freeze, events), expected, "{freeze:?} {events:?}");
    }
}

/// The state that version 1 has if the containers have these states and processes.
fn state_v1(containers: &[(&str, &str)]) -> State {
    let root = tempfile::tempdir().unwrap();
    for (at, (state, processes)) in containers.iter().enumerate() {
        let directory = root.path().join("freezer").join(at.to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("freezer.state"), state).unwrap();
        fs::write(directory.join("cgroup.procs"), processes).unwrap();
    }
    PodGroup::new(root.path().to_owned(), Version::V1, PathBuf::new()).state().unwrap()
}

#[test]
fn version_1_is_frozen_once_all_containers_with_processes_are() {
    let cases: [(&[(&str, &str)], State); 8] = [
        (&[], State::Thawed),
        (&[("THAWED\n", "7\n")], State::Thawed),
        (&[("FREEZING\n", "7\n")], State::Freezing),
        (&[("FROZEN\n", "7\n")], State::Frozen),
        (&[("FROZEN\n", "")], State::Freezing),
        (&[("FROZEN\n", "7\n"), ("THAWED\n", "")], State::Frozen),
        (&[("FROZEN\n", "7\n"), ("THAWED\n", "8\n")], State::Freezing),
        (&[("FROZEN\n", "7\n"), ("FREEZING\n", "8\n")], State::Freezing),
    ];
    for (containers, expected) in cases {
        assert_eq!(state_v1(containers), expected, "{containers:?}");
    }
}

/// From another PID namespace the list of processes is empty, and only their count tells that there are some.
#[test]
fn processes_that_the_agent_cannot_see_are_frozen_and_their_kill_is_an_error_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in [("freezer.state", "FROZEN\n"), ("cgroup.procs", "")] {
        fs::create_dir_all(root.path().join("freezer/c1")).unwrap();
        fs::write(root.path().join("freezer/c1").join(file), text).unwrap();
    }
    for path in ["pids", "pids/c1"] {
        fs::create_dir_all(root.path().join(path)).unwrap();
        fs::write(root.path().join(path).join("pids.current"), "2\n").unwrap();
    }
    let group = PodGroup::new(root.path().to_owned(), Version::V1, PathBuf::new());
    assert!(group.has_processes().unwrap());
    assert_eq!(group.state().unwrap(), State::Frozen);
    assert!(group.kill().unwrap_err().to_string().contains("agent.cgroupV1Kill"));
}

#[test]
fn a_kernel_that_cannot_freeze_is_an_error_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    let group = PodGroup::new(root.path().to_owned(), Version::V2, PathBuf::new());
    assert!(group.freeze().unwrap_err().to_string().contains("Linux 5.2"));
}
