//! The termination message that says that a pod was fenced, so that its end does not count as the program's own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use api::labels::FENCED;

use crate::named::named;
use crate::regular::open;

/// Leaves the message in all containers of a pod that a kubelet has begun to run. The kubelet has made a file for each run of a
/// container, which it mounts in the container as the termination log.
///
/// # Errors
/// The first error, after all files were tried.
pub(super) fn leave(kubelet: &Path, uid: &str) -> io::Result<()> {
    let containers = kubelet.join("pods").join(uid).join("containers");
    let mut outcome = Ok(());
    for file in entries(&containers, true)?.iter().flat_map(|container| entries(container, false)).flatten() {
        outcome = outcome.and(write(&file));
    }
    outcome
}

/// Writes the message into a file that is there.
fn write(path: &Path) -> io::Result<()> {
    let written = open(OpenOptions::new().write(true), path)
        .and_then(|mut file| file.set_len(0).and_then(|()| file.write_all(FENCED.as_bytes())));
    written.map_err(|error| named(path, &error))
}

/// The directories, or the regular files, in a directory. Symbolic links are neither.
fn entries(directory: &Path, directories: bool) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(named(directory, &error)),
    };
    let wanted = |kind: fs::FileType| if directories { kind.is_dir() } else { kind.is_file() };
    let entries = entries.flatten().filter(|entry| entry.file_type().is_ok_and(wanted));
    Ok(entries.map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_run_of_each_container_gets_the_message_and_nothing_else_is_touched() {
        let root = tempfile::tempdir().unwrap();
        let pod = root.path().join("pods/u1");
        let file = |path: &str, text: &str| {
            let path = pod.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let messages = [
            file("containers/main/0a", ""),
            file("containers/main/1b", "a longer message of its own, from before"),
            file("containers/side/2c", ""),
        ];
        let other = [
            file("volumes/data/3d", "data"),
            file("containers/main/deeper/4e", "data"),
            file("secret", "data"),
        ];
        symlink(&other[2], pod.join("containers/main/5f")).unwrap();
        symlink(pod.join("volumes"), pod.join("containers/volumes")).unwrap();
        leave(root.path(), "u1").unwrap();
        for path in &messages {
            assert_eq!(fs::read_to_string(path).unwrap(), "slotwright.dev/fenced", "{path:?}");
        }
        for path in &other {
            assert_eq!(fs::read_to_string(path).unwrap(), "data", "{path:?}");
        }
        leave(root.path(), "u2").unwrap();
        assert!(!root.path().join("pods/u2").exists(), "nothing is made");
    }
}
