//! The cgroup of one pod: freeze, thaw, state and kill.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::parse::Freezer;
use super::{Usage, Version, files, parse, signal, usage};

/// The most directories that a container may nest below its own cgroup for its processes to be seen.
const MAX_NESTED: usize = 8;

/// Whether the processes of a pod are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No process is being stopped. Also the state of a pod whose cgroup is gone.
    Thawed,
    /// The processes were told to stop, and the kernel has not confirmed that all of them have; or there is no process
    /// that could be stopped; or a container has started since the last [`PodGroup::freeze`] (version 1).
    Freezing,
    /// There are processes, and the kernel has confirmed that all of them have stopped.
    Frozen,
}

/// The cgroup of one pod. The cgroup may vanish at any time: then nothing is left to do, and each operation succeeds.
///
/// Version 2 freezes the pod's cgroup, so that a container that starts meanwhile does not run either. Version 1 freezes the
/// cgroups of the containers below: a process that is put into a frozen cgroup of version 1 stops while the container
/// runtime sets it up, so that `exec` and the deletion of the pod would hang.
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

    /// Tells the kernel to stop the pod's processes, and returns without waiting: [`PodGroup::state`] says when they have
    /// stopped.
    ///
    /// On version 1, containers that start later are not stopped: the caller calls again, for as long as the pod is to be
    /// suspended. A repeated call changes nothing.
    pub fn freeze(&self) -> io::Result<()> {
        self.set(true)
    }

    /// Lets the pod's processes continue where they were stopped.
    pub fn thaw(&self) -> io::Result<()> {
        self.set(false)
    }

    fn set(&self, frozen: bool) -> io::Result<()> {
        match self.version {
            Version::V2 => {
                let path = self.directory().join("cgroup.freeze");
                let written = files::write(&path, if frozen { "1" } else { "0" })?;
                if !written && self.directory().try_exists()? {
                    let message = format!("{}: not there: freezing needs Linux 5.2 or later", path.display());
                    return Err(io::Error::new(io::ErrorKind::Unsupported, message));
                }
                Ok(())
            }
            // The sandbox's container, which holds the pod's namespaces, is frozen like the others: no file says which
            // directory belongs to it, and its program only sleeps. Deleting the pod thaws nothing, but the runtime
            // ends a container by SIGKILL in the end, for which runc thaws the container first on version 1.
            Version::V1 => self.containers()?.iter().try_for_each(|container| {
                let state = if frozen { "FROZEN" } else { "THAWED" };
                files::write(&container.join("freezer.state"), state).map(|_| ())
            }),
        }
    }

    /// Whether the pod's processes are stopped, as the kernel says.
    pub fn state(&self) -> io::Result<State> {
        match self.version {
            Version::V2 => self.state_v2(),
            Version::V1 => self.state_v1(),
        }
    }

    fn state_v2(&self) -> io::Result<State> {
        let asked = files::read(&self.directory().join("cgroup.freeze"))?;
        let Some(events) = files::read(&self.directory().join("cgroup.events"))? else {
            return Ok(State::Thawed);
        };
        let says = |key| parse::keyed(&events, key) == Some(1);
        Ok(match (says("frozen"), says("populated")) {
            (true, true) => State::Frozen,
            _ if asked.as_deref().and_then(parse::number) == Some(1) => State::Freezing,
            _ => State::Thawed,
        })
    }

    fn state_v1(&self) -> io::Result<State> {
        let (mut asked, mut populated, mut all) = (false, false, true);
        for container in self.containers()? {
            let text = files::read(&container.join("freezer.state"))?;
            let Some(state) = text.as_deref().and_then(parse::freezer) else { continue };
            asked |= state != Freezer::Thawed;
            let name = container.strip_prefix(self.root.join("freezer")).unwrap_or(&container);
            if self.populated_v1(name)? {
                populated = true;
                all &= state == Freezer::Frozen;
            }
        }
        Ok(match (populated && all, asked) {
            (true, _) => State::Frozen,
            (false, true) => State::Freezing,
            (false, false) => State::Thawed,
        })
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
                let frozen = self.freeze();
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

    /// The directories of the pod's containers in the freezer's hierarchy (version 1), the sandbox's among them.
    fn containers(&self) -> io::Result<Vec<PathBuf>> {
        let directory = self.directory();
        Ok(files::directories(&directory)?.into_iter().map(|name| directory.join(name)).collect())
    }
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
