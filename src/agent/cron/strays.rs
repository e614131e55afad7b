//! Processes of programs that have left their process group, and have ended: somebody has to take leave of them.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, WaitOptions, waitpid};

/// Takes leave of the children of `parent` that have ended, except for those that are `awaited` elsewhere.
///
/// In a container the agent is process 1, whose children all processes become that lose their parent. A process that left its group, as
/// daemons do, would remain in the table of processes for as long as the agent lives. `proc` is the `/proc` of `parent`'s PID namespace.
pub(super) fn reap(proc: &Path, parent: Pid, awaited: impl Fn(Pid) -> bool) {
    let Ok(entries) = fs::read_dir(proc) else { return };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|pid| !awaited(*pid)) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if ended_child_of(&stat, parent) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Whether `/proc/PID/stat` tells of a process that has ended, and whose parent is this one: `PID (NAME) STATE PARENT ...`. A name may
/// have any characters.
fn ended_child_of(stat: &str, parent: Pid) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut words = rest.split_ascii_whitespace();
    words.next() == Some("Z")
        && words.next().and_then(|word| word.parse().ok()).and_then(Pid::from_raw) == Some(parent)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use rustix::process::{getpid, set_child_subreaper};

    use super::*;

    #[test]
    fn ended_children_are_recognized_whatever_their_names_are() {
        let parent = Pid::from_raw(17).unwrap();
        for (stat, expected) in [
            ("42 (sh) Z 17 42 42 0 -1", true),
            ("42 (a) Z 1) S 17 42", false),
            ("42 (a) S 1) Z 17 42", true),
            ("42 (sh) S 17 42", false),
            ("42 (sh) Z 170 42", false),
            ("42 (sh) Z", false),
            ("", false),
        ] {
            assert_eq!(ended_child_of(stat, parent), expected, "{stat:?}");
        }
    }

    /// The process becomes a child of the test, as it would of an agent that is process 1.
    #[test]
    fn a_process_that_has_left_its_group_does_not_remain() {
        set_child_subreaper(Some(getpid())).unwrap();
        let output = Command::new("sh").args(["-c", "setsid true & echo $!"]).output().unwrap();
        let stray: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let directory = Path::new("/proc").join(stray.to_string());
        let ended =
            || ended_child_of(&fs::read_to_string(directory.join("stat")).unwrap_or_default(), getpid());
        let wait = |until: &dyn Fn() -> bool| {
            (0..60_000).any(|_| {
                std::thread::park_timeout(Duration::from_millis(1));
                until()
            })
        };
        assert!(wait(&ended), "the process has ended, and remains");
        reap(Path::new("/proc"), getpid(), |_| true);
        assert!(ended(), "somebody else waits for it");
        reap(Path::new("/proc"), getpid(), |pid| pid.as_raw_nonzero().get() != stray);
        assert!(!directory.exists());
    }
}
