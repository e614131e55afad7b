//! The cgroups of pods: they are found, frozen, thawed, killed and measured.
//!
//! | file | holds |
//! | --- | --- |
//! | `places` | where kubelets keep the cgroups of their pods |
//! | `group` | [`PodGroup`]: freeze, thaw, state, kill |
//! | `signal` | SIGKILL to each process of a cgroup, where the kernel has no `cgroup.kill` |
//! | `usage` | [`Usage`]: CPU time, memory, bytes read and written |
//! | `files` | reads and writes that know that a cgroup may vanish |
//! | `parse` | the kernel's file formats, without I/O |
//!
//! The agent freezes containers, and neither pods nor containers that still start: see [`PodGroup`]. It writes to
//! cgroups and never pauses a task in containerd: after a restart of containerd, a paused task counts as unknown, and
//! the kubelet would start the container a second time even under `restartPolicy: Never`.

mod files;
mod group;
mod parse;
mod places;
mod signal;
#[cfg(test)]
mod tests;
mod usage;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use group::{PodGroup, State};
pub(crate) use places::MAX_PREFIX;
use places::Place;
pub use usage::Usage;

/// The most characters of a pod's uid.
pub(crate) const MAX_UID: usize = 128;

/// Which cgroup hierarchy a computer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A directory for each controller, with the freezer among them; hybrid systems, too.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

/// Why [`Cgroups::detect`] found no cgroups.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory holds neither of the two hierarchies.
    #[error(
        "{}: found neither cgroup.controllers (cgroup v2) nor freezer/ (cgroup v1): mount the node's /sys/fs/cgroup at this \
         path, writable",
        root.display()
    )]
    NoHierarchy {
        /// The directory that was looked at.
        root: PathBuf,
    },
    /// The directory could not be looked at.
    #[error("{}: {source}: mount the node's /sys/fs/cgroup at this path, writable", path.display())]
    Unreadable {
        /// The path that was looked for.
        path: PathBuf,
        /// The error that the kernel gave.
        source: io::Error,
    },
}

/// The cgroups of one computer, in which pods are found by uid.
#[derive(Debug)]
pub struct Cgroups {
    root: PathBuf,
    version: Version,
    /// The places where pods were last found to be kept. A node has one; a computer with several kubelets has several.
    places: Mutex<Vec<Place>>,
}

impl Cgroups {
    /// Returns the cgroups mounted at `root`, which is the node's `/sys/fs/cgroup`.
    ///
    /// The version is 2 if `root` has `cgroup.controllers`, and 1 if `root` has `freezer/`, which is also so on hybrid
    /// systems: there, the kubelet uses version 1.
    pub fn detect(root: &Path) -> Result<Self, Error> {
        let has = |name: &str| {
            let path = root.join(name);
            path.try_exists().map_err(|source| Error::Unreadable { path, source })
        };
        let version = if has("cgroup.controllers")? {
            Version::V2
        } else if has("freezer")? {
            Version::V1
        } else {
            return Err(Error::NoHierarchy { root: root.to_owned() });
        };
        Ok(Self { root: root.to_owned(), version, places: Mutex::default() })
    }

    /// Which hierarchy was detected.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the cgroups of those of the pods with these uids for which a kubelet of this computer has made a cgroup.
    ///
    /// The places of pods are remembered. If a pod is in none of them, they are searched again: once at most, however many pods have
    /// no cgroup, since a search reads hundreds of directories, and thousands at most. Fails with `InvalidInput` if a uid cannot be
    /// part of a directory's name.
    pub fn find_each<'a>(
        &self,
        uids: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Vec<(&'a str, PodGroup)>> {
        let mount = self.mount();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut searched = false;
        let mut groups = Vec::new();
        for uid in uids {
            check_uid(uid)?;
            let mut found = places::find(&mount, &places, uid)?;
            if found.is_none() && !searched {
                (*places, searched) = (places::search(&mount)?, true);
                found = places::find(&mount, &places, uid)?;
            }
            groups.extend(found.map(|path| (uid, PodGroup::new(self.root.clone(), self.version, path))));
        }
        Ok(groups)
    }

    /// The directory that holds the hierarchy in which pods are found and frozen.
    fn mount(&self) -> PathBuf {
        match self.version {
            Version::V1 => self.root.join("freezer"),
            Version::V2 => self.root.clone(),
        }
    }
}

/// Whether a uid is one component of a path. Most uids are UUIDs; those of static pods are hexadecimal hashes.
pub(crate) fn is_uid(uid: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !uid.is_empty() && uid.len() <= MAX_UID && uid.bytes().all(plain)
}

fn check_uid(uid: &str) -> io::Result<()> {
    if is_uid(uid) {
        return Ok(());
    }
    let message =
        format!("{uid:?} is no uid of a pod: letters, digits and hyphens were expected, {MAX_UID} at most");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
