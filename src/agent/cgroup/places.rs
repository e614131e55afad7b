//! Where kubelets keep the cgroups of their pods.
//!
//! A kubelet with the cgroupfs driver keeps them in `kubepods`, and one with the systemd driver in `kubepods.slice`. If the
//! kubelet has a `cgroupRoot`, the directory lies below that: `GROUP/kubepods`, or `GROUP.slice/GROUP-kubepods.slice`.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::files;

/// The most directories between the mount and the directory of the pods.
pub(crate) const MAX_PREFIX: usize = 2;
/// The most directories that a search reads. A node has about two hundred at this depth.
const MAX_DIRECTORIES: usize = 4096;

/// A directory in which a kubelet keeps the cgroups of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The directory, relative to the mount of the hierarchy.
    path: PathBuf,
    driver: Driver,
}

/// How the kubelet names cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Driver {
    Cgroupfs,
    /// The names of all slices below begin with this stem: `kubepods`, or `GROUP-kubepods`.
    Systemd {
        stem: String,
    },
}

impl Place {
    /// Returns the place that `path` is, if its last component says that pods are kept there.
    fn at(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let driver = match name.strip_suffix(".slice") {
            None if name == "kubepods" => Driver::Cgroupfs,
            Some(stem) if stem == "kubepods" || stem.ends_with("-kubepods") => {
                Driver::Systemd { stem: stem.to_owned() }
            }
            _ => return None,
        };
        Some(Self { path: path.to_owned(), driver })
    }

    /// The directories that the pod may have, one for each quality of service: Guaranteed, Burstable, BestEffort.
    fn candidates(&self, uid: &str) -> [PathBuf; 3] {
        match &self.driver {
            Driver::Cgroupfs => {
                ["", "burstable", "besteffort"].map(|qos| self.path.join(qos).join(format!("pod{uid}")))
            }
            Driver::Systemd { stem } => {
                // A hyphen in a slice's name separates the slice from its parent, so the kubelet replaces those of the uid.
                let uid = uid.replace('-', "_");
                let below = |qos: &str| {
                    let slice = format!("{stem}-{qos}");
                    self.path.join(format!("{slice}.slice")).join(format!("{slice}-pod{uid}.slice"))
                };
                [self.path.join(format!("{stem}-pod{uid}.slice")), below("burstable"), below("besteffort")]
            }
        }
    }
}

/// Returns the directory of the pod, relative to `mount`, if the pod is in one of the places.
pub(super) fn find(mount: &Path, places: &[Place], uid: &str) -> io::Result<Option<PathBuf>> {
    for path in places.iter().flat_map(|place| place.candidates(uid)) {
        if mount.join(&path).try_exists()? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns all places below `mount` whose prefix has at most [`MAX_PREFIX`] directories.
///
/// The search goes breadth first, so that directories without end in one cgroup do not hide the usual places.
pub(super) fn search(mount: &Path) -> io::Result<Vec<Place>> {
    let mut places = Vec::new();
    let mut queue = VecDeque::from([(PathBuf::new(), 0)]);
    for _ in 0..MAX_DIRECTORIES {
        let Some((path, depth)) = queue.pop_front() else { break };
        for name in files::directories(&mount.join(&path))? {
            let child = path.join(name);
            match Place::at(&child) {
                Some(place) => places.push(place),
                None if depth < MAX_PREFIX => queue.push_back((child, depth + 1)),
                None => {}
            }
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const UID: &str = "0f2c5d1e-5a0b-4c3d-9e8f-112233445566";

    fn found(directory: &str) -> Option<String> {
        let mount = tempfile::tempdir().unwrap();
        fs::create_dir_all(mount.path().join(directory)).unwrap();
        fs::create_dir_all(mount.path().join("system.slice/ssh.service/deeper/kubepods")).unwrap();
        let places = search(mount.path()).unwrap();
        find(mount.path(), &places, UID).unwrap().map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_pod_is_found_under_every_driver_quality_of_service_and_cgroup_root() {
        let uid = UID.replace('-', "_");
        for directory in [
            format!("kubepods/pod{UID}"),
            format!("kubepods/besteffort/pod{UID}"),
            format!("kubepods/burstable/pod{UID}"),
            format!("node1/kubepods/burstable/pod{UID}"),
            format!("a/b/kubepods/burstable/pod{UID}"),
            format!("kubepods.slice/kubepods-pod{uid}.slice"),
            format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"),
            format!("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice"),
            format!(
                "node1.slice/node1-kubepods.slice/node1-kubepods-burstable.slice/node1-kubepods-burstable-pod{uid}.slice"
            ),
        ] {
            assert_eq!(found(&directory).as_ref(), Some(&directory));
        }
    }

    #[test]
    fn directories_that_only_look_alike_hold_no_pods() {
        for directory in [
            format!("a/b/c/kubepods/pod{UID}"),
            format!("kubepods/pod{UID}x"),
            format!("kubepods/other/pod{UID}"),
            format!("mykubepods/pod{UID}"),
            format!("kubepods.slice/kubepods-pod{UID}.slice"),
            format!("kubepods.scope/pod{UID}"),
        ] {
            assert_eq!(found(&directory), None, "{directory}");
        }
    }
}
