//! A scratch tree of cgroups in this computer's own hierarchies, with real processes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::super::{Cgroups, PodGroup, Version};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The uid of the pod in each scratch tree, except for the last digits.
const UID: &str = "7a4e2f10-93b1-4d0a-8c55-0000";

/// One kubelet's tree with one pod. The tree and the processes are removed when this is dropped.
pub struct Scratch {
    pub cgroups: Cgroups,
    pub uid: String,
    /// The mounts in which the pod has a directory; the first is the one that freezes.
    mounts: Vec<PathBuf>,
    /// The name of the tree below each mount.
    name: String,
    children: Vec<Child>,
    files: tempfile::TempDir,
}

impl Scratch {
    /// Makes a tree; `None`, and a line that says why, if this computer has no such hierarchy or the test may not write to it.
    pub fn new(version: Version) -> Option<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("slotwright-test-{}-{number}", std::process::id());
        let Some((root, mounts)) = hierarchy(version) else {
            println!("SKIPPED: no cgroup {version:?} is mounted here");
            return None;
        };
        let uid = format!("{UID}{:08x}", std::process::id() * 16 + number);
        let mut tree = Self {
            cgroups: Cgroups::detect(&root).unwrap(),
            uid,
            mounts,
            name,
            children: Vec::new(),
            files: tempfile::tempdir().unwrap(),
        };
        assert_eq!(tree.cgroups.version(), version);
        let top = tree.mounts[0].join(&tree.name);
        if let Err(error) = fs::create_dir(&top) {
            println!("SKIPPED: {}: {error}", top.display());
            return None;
        }
        let (name, pod) = (tree.name.clone(), tree.pod());
        tree.mounts.retain(|mount| mount.join(&name).exists() || fs::create_dir(mount.join(&name)).is_ok());
        for mount in &tree.mounts {
            fs::create_dir_all(mount.join(&pod)).unwrap();
        }
        Some(tree)
    }

    fn pod(&self) -> PathBuf {
        Path::new(&self.name).join("kubepods/burstable").join(format!("pod{}", self.uid))
    }

    /// The pod's cgroup, as the agent finds it.
    pub fn group(&self) -> PodGroup {
        let group = self.cgroups.find(&self.uid).unwrap().unwrap();
        assert_eq!(group.path(), self.pod());
        group
    }

    /// Starts `script` in a cgroup of the pod, or beside the pod for `None`. The script begins only once it is there.
    fn start(&mut self, container: Option<&str>, script: &str) -> usize {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("read go; {script}"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let path = container.map_or_else(|| PathBuf::from(&self.name), |name| self.pod().join(name));
        for mount in &self.mounts {
            let directory = mount.join(&path);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cgroup.procs"), child.id().to_string()).unwrap();
        }
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        self.children.push(child);
        self.children.len() - 1
    }

    /// Starts a process that forks without end.
    pub fn fork(&mut self, container: &str) {
        self.start(Some(container), "while :; do (:); done");
    }

    /// Starts a process that counts from 1 into a file, a number a line.
    pub fn count(&mut self, container: Option<&str>) -> Counter {
        let number = self.children.len();
        let path = self.files.path().join(number.to_string());
        fs::write(&path, "").unwrap();
        let script = format!("exec 3>>{}; i=0; while :; do i=$((i+1)); echo $i >&3; done", path.display());
        self.start(container, &script);
        Counter { path }
    }

    /// Asks for the exit codes of processes that have ended, as their parent has to.
    pub fn reap(&mut self) {
        for child in &mut self.children {
            let _ = child.try_wait();
        }
    }

    /// Waits until all processes that were started have ended by SIGKILL.
    pub fn all_killed(&mut self) {
        use std::os::unix::process::ExitStatusExt;
        for child in &mut self.children {
            wait_until("the process ends", || child.try_wait().unwrap().is_some());
            assert_eq!(child.wait().unwrap().signal(), Some(9));
        }
        self.children.clear();
    }

    /// Removes the pod's cgroups, as a kubelet does.
    pub fn remove_pod(&self) {
        for mount in &self.mounts {
            remove(&mount.join(self.pod()));
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Ok(Some(group)) = self.cgroups.find(&self.uid) {
            let _ = group.thaw();
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for mount in &self.mounts {
            remove(&mount.join(&self.name));
        }
    }
}

/// A process that counts into a file.
pub struct Counter {
    path: PathBuf,
}

impl Counter {
    /// How many bytes the process has written.
    pub fn written(&self) -> u64 {
        fs::metadata(&self.path).unwrap().len()
    }

    /// Waits until the process has written on.
    pub fn advances(&self) {
        let before = self.written();
        wait_until("the process counts on", || self.written() > before + 10_000);
    }

    /// Checks that the numbers are 1, 2, 3, ..., without a gap or a repetition.
    pub fn is_exact(&self) {
        let text = fs::read_to_string(&self.path).unwrap();
        assert!(text.lines().enumerate().all(|(at, line)| line == (at + 1).to_string()));
    }
}

/// Waits until `holds`, with a bound that a test under load does not reach.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("waited in vain: {what}");
}

/// The root to detect, and the mounts of the hierarchy, those that measure included.
fn hierarchy(version: Version) -> Option<(PathBuf, Vec<PathBuf>)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut points = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?))
    });
    match version {
        Version::V2 => {
            let (root, _) = points.find(|(point, kind)| {
                // Not every mount shows its own root: a container's may show a directory inside a cgroup.
                *kind == "cgroup2" && point.join("cgroup.controllers").exists()
            })?;
            Some((root.clone(), vec![root]))
        }
        Version::V1 => {
            let (freezer, _) = points.find(|(point, kind)| {
                *kind == "cgroup" && point.file_name().is_some_and(|name| name == "freezer")
            })?;
            let root = freezer.parent()?.to_owned();
            let others = ["cpuacct", "memory", "blkio", "pids"].map(|name| root.join(name));
            Some((
                root,
                [freezer].into_iter().chain(others.into_iter().filter(|path| path.exists())).collect(),
            ))
        }
    }
}

/// Removes a cgroup and those below. The kernel refuses for a moment after the last process has ended.
fn remove(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path());
    }
    for _ in 0..5_000 {
        if fs::remove_dir(directory).is_ok() || !directory.exists() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    println!("{} is left over", directory.display());
}
