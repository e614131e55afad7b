use std::fs;
use std::path::PathBuf;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A node in a directory. Its pods have cgroups of version 2 with a file for each thing that the guard looks at.
struct Place {
    root: tempfile::TempDir,
    guard: Guard,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["fence", "cgroup/kubepods", "kubelet"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("cgroup/cgroup.controllers"), "").unwrap();
        let options = GuardOptions {
            directory: at("fence"),
            kubelet: at("kubelet"),
            cgroup: at("cgroup"),
            proc: at("proc"),
        };
        let guard = Guard::new(options, "one".to_owned());
        let place = Self { root, guard };
        for uid in ["a", "b", "other"] {
            let group = place.group(uid);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.kill"), "").unwrap();
            fs::write(group.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
            fs::create_dir_all(place.message(uid).parent().unwrap()).unwrap();
            fs::write(place.message(uid), "").unwrap();
        }
        place
    }

    fn group(&self, uid: &str) -> PathBuf {
        self.root.path().join(format!("cgroup/kubepods/pod{uid}"))
    }

    fn message(&self, uid: &str) -> PathBuf {
        self.root.path().join(format!("kubelet/pods/{uid}/containers/main/0"))
    }

    fn permit(&self, sequence: u64, boot: &str, renewed: u64, pods: &[(&str, u64)], ended: &[&str]) {
        let pods = pods.iter().map(|(uid, lease)| ((*uid).to_owned(), *lease)).collect();
        let ended = ended.iter().map(|uid| (*uid).to_owned()).collect();
        let mut permit = Permit::empty(boot, sequence);
        (permit.renewed, permit.pods, permit.ended) = (secs(renewed), pods, ended);
        self.guard.directory.write(PERMIT, &permit.text(), true).unwrap();
    }

    /// Passes once, and returns the pods that were killed in it, each of which must have got the message.
    fn pass(&mut self, now: u64) -> String {
        self.guard.pass(secs(now));
        let killed: Vec<&str> = ["a", "b", "other"]
            .into_iter()
            .filter(|uid| {
                let killed = fs::read_to_string(self.group(uid).join("cgroup.kill")).unwrap() == "1";
                assert_eq!(
                    fs::read_to_string(self.message(uid)).unwrap() == "slotwright.dev/fenced",
                    killed,
                    "{uid}"
                );
                fs::write(self.group(uid).join("cgroup.kill"), "").unwrap();
                fs::write(self.message(uid), "").unwrap();
                killed
            })
            .collect();
        killed.join(" ")
    }

    /// When the guard last beat, and the number of the permit that it then had.
    fn beat(&self) -> Option<(u64, u64)> {
        let text = self.guard.directory.read(HEARTBEAT).unwrap()?;
        let beat = Heartbeat::parse(&text).unwrap();
        Some((beat.passed.as_secs(), beat.sequence))
    }
}

#[test]
fn the_guard_ends_what_is_over_again_and_again_and_nothing_that_the_permit_does_not_name() {
    let mut place = Place::new();
    assert_eq!((place.pass(90).as_str(), place.beat()), ("", Some((90, 0))), "no permit: nothing to do");
    place.permit(5, "one", 100, &[("a", 40), ("b", 60)], &[]);
    assert_eq!((place.pass(100).as_str(), place.beat()), ("", Some((100, 5))), "the permit is acknowledged");
    assert_eq!(place.pass(139), "");
    assert_eq!(place.pass(140), "a");
    assert_eq!(place.pass(141), "a", "as long as there are processes");
    assert_eq!(place.pass(160), "a b");
    fs::write(place.group("a").join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
    assert_eq!(place.pass(161), "b");
    place.permit(6, "one", 165, &[("b", 60)], &[]);
    assert_eq!(place.pass(166), "", "the agent is back");
    place.permit(7, "one", 165, &[], &["b", "unknown"]);
    assert_eq!(place.pass(167), "b");
    place.permit(8, "zero", 165, &[("b", 60)], &[]);
    assert_eq!(place.pass(168), "b", "nobody has renewed since the boot");
}

#[test]
fn the_last_permit_counts_as_long_as_a_new_one_cannot_be_read() {
    let mut place = Place::new();
    place.permit(5, "one", 100, &[("b", 60)], &[]);
    assert_eq!(place.pass(100), "");
    place.guard.directory.write(PERMIT, b"{\"version\":1,\"boo", false).unwrap();
    assert_eq!(place.pass(120), "");
    assert_eq!(place.pass(160), "b");
    assert_eq!(place.beat(), Some((100, 5)), "such a guard says nothing, so that nobody counts on it");
    assert!(place.guard.wrong.iter().any(|what| what.contains("permit.json")), "{:?}", place.guard.wrong);
    fs::remove_file(place.guard.directory.path(PERMIT)).unwrap();
    assert_eq!(place.pass(170), "b");
    place.permit(6, "one", 171, &[("b", 60)], &[]);
    assert_eq!((place.pass(172).as_str(), place.beat()), ("", Some((172, 6))));
}

#[test]
fn a_guard_that_cannot_end_pods_says_nothing() {
    let mut place = Place::new();
    fs::remove_file(place.root.path().join("cgroup/cgroup.controllers")).unwrap();
    assert_eq!((place.pass(100).as_str(), place.beat()), ("", None));
    fs::write(place.root.path().join("cgroup/cgroup.controllers"), "").unwrap();
    place.pass(101);
    assert_eq!(place.beat(), Some((101, 0)), "the guard has found the cgroups");
    // A pod that cannot be killed.
    place.permit(5, "one", 0, &[("a", 1)], &[]);
    fs::remove_file(place.group("a").join("cgroup.kill")).unwrap();
    fs::create_dir(place.group("a").join("cgroup.kill")).unwrap();
    place.guard.pass(secs(102));
    assert_eq!(place.beat(), Some((101, 0)), "{:?}", place.guard.wrong);
}

#[test]
fn the_guard_beats_every_few_seconds() {
    let mut place = Place::new();
    place.permit(5, "one", 100, &[("b", 60)], &[]);
    let beats = (100..110).map(|now| {
        place.pass(now);
        place.beat().unwrap().0
    });
    assert_eq!(beats.collect::<Vec<_>>(), [100, 100, 100, 103, 103, 103, 106, 106, 106, 109]);
}
