//! The cgroup of one pod: freeze, thaw, state and kill.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::parse::Freezer;
use super::{Usage, Version, files, parse, signal, usage};
use crate::containers::Containers;

/// The most directories that a container may nest below its own cgroup for its processes to be seen.
const MAX_NESTED: usize = 8;

/// Whether the processes of a pod are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is no process to stop, and none was told to stop: the programs of the containers do not run yet, or have ended. Also the
    /// state of a pod whose cgroup is gone.
    Idle,
    /// No process is being stopped.
    Thawed,
    /// Some processes were told to stop, and the kernel has not confirmed that all have that are to stop; or a container has started
    /// since the last [`PodGroup::freeze`].
    Freezing,
    /// There are processes to stop, and the kernel has confirmed that all of them have stopped.
    Frozen,
}

/// The cgroup of a container, as the kernel told of it.
struct Group {
    directory: PathBuf,
    /// Whether the cgroup was told to stop its processes.
    asked: bool,
    /// Whether the processes have stopped.
    frozen: bool,
    /// Whether there are processes.
    populated: bool,
}

/// The cgroup of one pod. The cgroup may vanish at any time: then nothing is left to do, and each operation succeeds.
///
/// The containers are frozen, each by its own cgroup, once their programs run. The pod's cgroup is not frozen, nor is a container that
/// the container runtime still sets up: the process by which the runtime does so would stop, and the runtime would hang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodGroup {
    root: PathBuf,
    version: Version,
    path: PathBuf,
}

impl PodGroup {
    /// The cgroup at `path`, relative to the mounts of the hierarchies of `root`.
    pub(super) fn new(root: PathBuf, version: Version, path: PathBuf) -> Self {
        Self { root, version, path }
    }

    /// The cgroup's path below the mount of its hierarchy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the kernel to stop the programs of these containers, and returns without waiting: [`PodGroup::state`] says when they have
    /// stopped.
    ///
    /// Containers that start later are not stopped: the caller calls again, for as long as the pod is to be suspended. A repeated call
    /// changes nothing.
    pub fn freeze(&self, containers: &Containers) -> io::Result<()> {
        to_freeze(containers, self.look()?).iter().try_for_each(|group| self.set(&group.directory, true))
    }

    /// Lets the pod's processes continue where they were stopped, in whichever cgroup of the pod.
    pub fn thaw(&self) -> io::Result<()> {
        if self.version == Version::V2 {
            self.set(&self.directory(), false)?;
        }
        self.containers()?.iter().try_for_each(|container| self.set(container, false))
    }

    fn set(&self, directory: &Path, frozen: bool) -> io::Result<()> {
        match self.version {
            Version::V2 => {
                let path = directory.join("cgroup.freeze");
                let written = files::write(&path, if frozen { "1" } else { "0" })?;
                if !written && directory.try_exists()? {
                    let message = format!("{}: not there: freezing needs Linux 5.2 or later", path.display());
                    return Err(io::Error::new(io::ErrorKind::Unsupported, message));
                }
                Ok(())
            }
            Version::V1 => {
                let state = if frozen { "FROZEN" } else { "THAWED" };
                files::write(&directory.join("freezer.state"), state).map(|_| ())
            }
        }
    }

    /// Whether the programs of these containers are stopped, as the kernel says.
    pub fn state(&self, containers: &Containers) -> io::Result<State> {
        let all = self.look()?;
        let mut asked = all.iter().any(|group| group.asked);
        if self.version == Version::V2 {
            asked |= self.look_at(self.directory())?.is_some_and(|pod| pod.asked);
        }
        let populated: Vec<Group> =
            to_freeze(containers, all).into_iter().filter(|group| group.populated).collect();
        Ok(match (populated.is_empty(), asked) {
            (false, _) if populated.iter().all(|group| group.frozen) => State::Frozen,
            (_, true) => State::Freezing,
            (false, false) => State::Thawed,
            (true, false) => State::Idle,
        })
    }

    /// Looks at the cgroups of the pod's containers, the sandbox's among them.
    fn look(&self) -> io::Result<Vec<Group>> {
        self.containers()?.into_iter().filter_map(|container| self.look_at(container).transpose()).collect()
    }

    /// Looks at one cgroup; none if the cgroup has vanished.
    fn look_at(&self, directory: PathBuf) -> io::Result<Option<Group>> {
        let group = match self.version {
            Version::V2 => {
                let asked = files::read(&directory.join("cgroup.freeze"))?;
                files::read(&directory.join("cgroup.events"))?.map(|events| {
                    let says = |key| parse::keyed(&events, key) == Some(1);
                    Group {
                        asked: asked.as_deref().and_then(parse::number) == Some(1),
                        frozen: says("frozen"),
                        populated: says("populated"),
                        directory,
                    }
                })
            }
            Version::V1 => {
                let text = files::read(&directory.join("freezer.state"))?;
                let Some(state) = text.as_deref().and_then(parse::freezer) else { return Ok(None) };
                let name = directory.strip_prefix(self.root.join("freezer")).unwrap_or(&directory);
                Some(Group {
                    asked: state != Freezer::Thawed,
                    frozen: state == Freezer::Frozen,
                    populated: self.populated_v1(name)?,
                    directory,
                })
            }
        };
        Ok(group)
    }

    /// Whether the pod has processes.
    pub fn has_processes(&self) -> io::Result<bool> {
        match self.version {
            Version::V2 => {
                let events = files::read(&self.directory().join("cgroup.events"))?;
                Ok(events.is_some_and(|events| parse::keyed(&events, "populated") == Some(1)))
            }
            Version::V1 => self.populated_v1(&self.path),
        }
    }

    /// Whether a process is in this cgroup of version 1, or in one below.
    ///
    /// The list of a cgroup's processes leaves out those of other PID namespaces than the agent's. So the count of the `pids`
    /// controller says, which few kernels lack. The count includes processes that have ended until their parent has asked for
    /// their exit code.
    fn populated_v1(&self, path: &Path) -> io::Result<bool> {
        let count = files::read(&self.root.join("pids").join(path).join("pids.current"))?;
        match count.as_deref().and_then(parse::number) {
            Some(count) => Ok(count > 0),
            None => Ok(!processes_below(&self.root.join("freezer").join(path))?.is_empty()),
        }
    }

    /// Sends SIGKILL to all processes of the pod, frozen or not, and returns without waiting for their end.
    ///
    /// Version 2 does so by `cgroup.kill` (Linux 5.14), which no fork escapes. Elsewhere, each process gets its signal until
    /// no new process appears; on version 1 the containers are frozen meanwhile, so that forks end, and thawed at last,
    /// because a frozen process of version 1 does not die. Fails if new processes still appear after a bounded number of
    /// rounds, and on version 1 if the pod's processes are of another PID namespace than the agent. A container that starts later
    /// runs: the caller calls again.
    pub fn kill(&self) -> io::Result<()> {
        let directory = self.directory();
        match self.version {
            Version::V2 => {
                if files::write(&directory.join("cgroup.kill"), "1")? {
                    return Ok(());
                }
                signal::kill_all(|| processes_below(&directory))
            }
            Version::V1 => {
                if processes_below(&directory)?.is_empty() && self.populated_v1(&self.path)? {
                    let message = "the agent sees none of the pod's processes: it has to run in the node's PID namespace \
                                   (agent.cgroupV1Kill of the chart)";
                    return Err(io::Error::new(io::ErrorKind::Unsupported, message));
                }
                let frozen = self.containers()?.iter().try_for_each(|container| self.set(container, true));
                let killed = signal::kill_all(|| processes_below(&directory));
                frozen.and(killed).and(self.thaw())
            }
        }
    }

    /// Measures what the pod has used.
    pub fn usage(&self) -> Usage {
        match self.version {
            Version::V2 => usage::of_v2(&self.directory()),
            Version::V1 => usage::of_v1(&self.root, &self.path),
        }
    }

    /// The pod's directory in the hierarchy that freezes.
    fn directory(&self) -> PathBuf {
        match self.version {
            Version::V1 => self.root.join("freezer").join(&self.path),
            Version::V2 => self.root.join(&self.path),
        }
    }

    /// The directories of the pod's containers in the hierarchy that freezes, the sandbox's among them.
    fn containers(&self) -> io::Result<Vec<PathBuf>> {
        let directory = self.directory();
        Ok(files::directories(&directory)?.into_iter().map(|name| directory.join(name)).collect())
    }
}

/// The cgroups that the agent freezes to stop the programs of these containers.
///
/// Some container runtimes keep all programs of a pod in the cgroup of its sandbox, under no container's id: a virtual machine (Kata),
/// or a kernel of their own (gVisor). If no container that runs has a cgroup with processes, all of the pod's cgroups are frozen,
/// unless a container waits to be started.
fn to_freeze(containers: &Containers, all: Vec<Group>) -> Vec<Group> {
    let runs = |group: &Group| {
        group.directory.file_name().and_then(OsStr::to_str).is_some_and(|name| containers.runs(name))
    };
    if containers.are_started() && !all.iter().any(|group| group.populated && runs(group)) {
        return all;
    }
    all.into_iter().filter(runs).collect()
}

/// The processes in this cgroup and in those below.
fn processes_below(directory: &Path) -> io::Result<BTreeSet<i32>> {
    let mut processes = BTreeSet::new();
    let mut open = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        if let Some(text) = files::read(&path.join("cgroup.procs"))? {
            processes.extend(parse::processes(&text));
        }
        if depth <= MAX_NESTED {
            open.extend(files::directories(&path)?.into_iter().map(|name| (path.join(name), depth + 1)));
        }
    }
    Ok(processes)
}
