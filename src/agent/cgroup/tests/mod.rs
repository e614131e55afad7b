//! Cgroups of this computer, with real processes; and made-up files for what no test can bring about.

mod scratch;

use std::fs;
use std::io;

use super::*;
use crate::containers::Containers;
use scratch::{Counter, Scratch, wait_until};

impl Cgroups {
    /// The cgroup of one pod.
    fn find(&self, uid: &str) -> io::Result<Option<PodGroup>> {
        Ok(self.find_each([uid])?.pop().map(|(_, group)| group))
    }
}

/// The containers of the scratch pods, all of which run.
fn both() -> Containers {
    Containers::running(["c1", "c2"])
}

fn is_frozen(group: &PodGroup) {
    wait_until("the pod is frozen", || group.state(&both()).unwrap() == State::Frozen);
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
    assert_eq!(group.state(&both()).unwrap(), State::Thawed);

    group.freeze(&both()).unwrap();
    is_frozen(&group);
    stand_still(&[&first, &second], &control);
    group.freeze(&both()).unwrap();
    assert_eq!(group.state(&both()).unwrap(), State::Frozen, "a second freeze changes nothing");

    group.thaw().unwrap();
    wait_until("the pod is thawed", || group.state(&both()).unwrap() == State::Thawed);
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
            group.freeze(&both()).unwrap();
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

/// The sandbox is there first. Then the container runtime puts a process of its own into the cgroup of a container, to set the container
/// up, and waits for that process.
fn a_container_is_frozen_once_its_program_runs(version: Version) {
    let Some(mut scratch) = Scratch::new(version) else { return };
    let (sandbox, control) = (scratch.count(Some("sandbox")), scratch.count(None));
    let group = scratch.group();
    let nothing = Containers::default();
    let starting = Containers::running([]).and_one_that_waits();
    for pulls in [&nothing, &starting] {
        group.freeze(pulls).unwrap();
        assert_eq!(group.state(pulls).unwrap(), State::Idle, "an image is pulled");
        sandbox.advances();
    }
    let first = scratch.count(Some("c1"));
    group.freeze(&starting).unwrap();
    first.advances();
    assert_eq!(group.state(&starting).unwrap(), State::Idle, "the first container is set up");

    let init = Containers::running(["c1"]).and_one_that_waits();
    group.freeze(&init).unwrap();
    wait_until("the first container is frozen", || group.state(&init).unwrap() == State::Frozen);
    stand_still(&[&first], &control);
    let second = scratch.count(Some("c2"));
    group.freeze(&init).unwrap();
    second.advances();
    assert_eq!(group.state(&init).unwrap(), State::Frozen, "the second container is set up");

    assert_eq!(group.state(&both()).unwrap(), State::Freezing, "one of two containers still runs");
    group.freeze(&both()).unwrap();
    is_frozen(&group);
    stand_still(&[&first, &second], &control);
    sandbox.advances();
}

#[test]
fn a_container_is_frozen_once_its_program_runs_v1() {
    a_container_is_frozen_once_its_program_runs(Version::V1);
}

#[test]
fn a_container_is_frozen_once_its_program_runs_v2() {
    a_container_is_frozen_once_its_program_runs(Version::V2);
}

/// Kata and gVisor keep the programs of all containers in the cgroup of the sandbox.
fn programs_in_the_sandbox_are_frozen(version: Version) {
    let Some(mut scratch) = Scratch::new(version) else { return };
    let (machine, control) = (scratch.count(Some("sandbox")), scratch.count(None));
    let group = scratch.group();
    let waits = both().and_one_that_waits();
    group.freeze(&waits).unwrap();
    machine.advances();
    assert_eq!(group.state(&waits).unwrap(), State::Idle, "a container waits to be started");
    group.freeze(&both()).unwrap();
    is_frozen(&group);
    stand_still(&[&machine], &control);
    group.thaw().unwrap();
    machine.advances();
}

#[test]
fn programs_in_the_sandbox_are_frozen_v1() {
    programs_in_the_sandbox_are_frozen(Version::V1);
}

#[test]
fn programs_in_the_sandbox_are_frozen_v2() {
    programs_in_the_sandbox_are_frozen(Version::V2);
}

fn nothing_is_left_to_do_for_a_pod_that_vanished(version: Version) {
    let Some(scratch) = Scratch::new(version) else { return };
    let group = scratch.group();
    scratch.remove_pod();
    group.freeze(&both()).unwrap();
    assert_eq!(group.state(&both()).unwrap(), State::Idle);
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

/// The state that a pod of version 2 has if its containers have these files, and the pod's own cgroup this `cgroup.freeze`.
fn state_v2(pod: &str, containers: &[(&str, &str)]) -> State {
    let root = tempfile::tempdir().unwrap();
    let cgroup = |directory: &Path, freeze: &str, events: &str| {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("cgroup.freeze"), freeze).unwrap();
        fs::write(directory.join("cgroup.events"), events).unwrap();
    };
    cgroup(root.path(), pod, "");
    for (at, (freeze, events)) in containers.iter().enumerate() {
        cgroup(&root.path().join(format!("c{}", at + 1)), freeze, events);
    }
    PodGroup::new(root.path().to_owned(), Version::V2, PathBuf::new()).state(&both()).unwrap()
}

#[test]
fn version_2_is_frozen_once_the_kernel_confirms_it_of_all_containers_with_processes() {
    const RUNS: (&str, &str) = ("0\n", "populated 1\nfrozen 0\n");
    const EMPTY: (&str, &str) = ("0\n", "populated 0\nfrozen 0\n");
    const FREEZES: (&str, &str) = ("1\n", "populated 1\nfrozen 0\n");
    const FROZEN: (&str, &str) = ("1\n", "populated 1\nfrozen 1\n");
    let cases: [(&str, &[_], _); 11] = [
        ("0\n", &[], State::Idle),
        ("0\n", &[EMPTY], State::Idle),
        ("0\n", &[RUNS], State::Thawed),
        ("0\n", &[FREEZES], State::Freezing),
        ("0\n", &[FROZEN], State::Frozen),
        ("0\n", &[("1\n", "populated 0\nfrozen 1\n")], State::Freezing),
        ("0\n", &[FROZEN, EMPTY], State::Frozen),
        ("0\n", &[FROZEN, RUNS], State::Freezing),
        ("0\n", &[FROZEN, FREEZES], State::Freezing),
        // A cgroup above is frozen.
        ("0\n", &[("0\n", "populated 1\nfrozen 1\n")], State::Frozen),
        // Somebody has frozen the pod's own cgroup.
        ("1\n", &[EMPTY], State::Freezing),
    ];
    for (pod, containers, expected) in cases {
        assert_eq!(state_v2(pod, containers), expected, "{pod:?} {containers:?}");
    }
}

/// The state that version 1 has if the containers have these states and processes.
fn state_v1(containers: &[(&str, &str)]) -> State {
    let root = tempfile::tempdir().unwrap();
    for (at, (state, processes)) in containers.iter().enumerate() {
        let directory = root.path().join("freezer").join(format!("c{}", at + 1));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("freezer.state"), state).unwrap();
        fs::write(directory.join("cgroup.procs"), processes).unwrap();
    }
    PodGroup::new(root.path().to_owned(), Version::V1, PathBuf::new()).state(&both()).unwrap()
}

#[test]
fn version_1_is_frozen_once_all_containers_with_processes_are() {
    let cases: [(&[(&str, &str)], State); 9] = [
        (&[], State::Idle),
        (&[("THAWED\n", "")], State::Idle),
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
    assert_eq!(group.state(&both()).unwrap(), State::Frozen);
    assert!(group.kill().unwrap_err().to_string().contains("agent.cgroupV1Kill"));
}

#[test]
fn a_kernel_that_cannot_freeze_is_an_error_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("c1")).unwrap();
    fs::write(root.path().join("c1/cgroup.events"), "populated 1\n").unwrap();
    let group = PodGroup::new(root.path().to_owned(), Version::V2, PathBuf::new());
    assert!(group.freeze(&both()).unwrap_err().to_string().contains("Linux 5.2"));
}
