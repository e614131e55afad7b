//! Which terminals logind says belong to a seat: to a keyboard and a screen of the node itself.
//!
//! logind keeps a file for each session in `/run/systemd/sessions`, with lines `KEY=VALUE`. The format is logind's own; libsystemd
//! reads the same files to answer sd_session_get_seat(3) and sd_session_get_tty(3). The agent needs no D-Bus for them, and
//! takes a file that says nothing for a session without a seat. When the session was last used is not in the file.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::named::named;

/// Returns the terminals of local sessions with a seat, by their names below `/dev`. None if there is no logind.
pub(super) fn seat_terminals(directory: &Path) -> io::Result<BTreeSet<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(named(directory, &error)),
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|error| named(directory, &error))?;
        // Beside each file `ID` is a FIFO `ID.ref`: whoever opens that waits without end.
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // A session that ended since has no file.
        let text = fs::read(entry.path()).unwrap_or_default();
        found.extend(seat_terminal(&String::from_utf8_lossy(&text)));
    }
    Ok(found)
}

/// The terminal of the session that a file describes, if the session is local, has a seat and has not ended.
fn seat_terminal(text: &str) -> Option<String> {
    let value = |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.into_iter().find(|(found, _)| *found == key)?;
        Some(value.trim_matches('"')).filter(|value| !value.is_empty())
    };
    if value("REMOTE") == Some("1") || value("STATE") == Some("closing") {
        return None;
    }
    value("SEAT")?;
    let terminal = value("TTY")?;
    Some(terminal.strip_prefix("/dev/").unwrap_or(terminal).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOCAL: &str = "# This is private data. Do not parse.\nUID=1000\nUSER=ada\nACTIVE=1\nIS_DISPLAY=1\n\
        STATE=active\nREMOTE=0\nTYPE=tty\nCLASS=user\nSEAT=seat0\nTTY=tty2\nVTNR=2\nLEADER=1204\n";

    #[test]
    fn a_local_session_with_a_seat_gives_its_terminal() {
        for (from, to, expected) in [
            ("", "", Some("tty2")),
            ("TTY=tty2", "TTY=/dev/tty2", Some("tty2")),
            ("TTY=tty2", "TTY=\"pts/3\"", Some("pts/3")),
            ("TTY=tty2\n", "", None),
            ("TTY=tty2", "TTY=", None),
            ("SEAT=seat0\n", "", None),
            ("REMOTE=0", "REMOTE=1", None),
            ("STATE=active", "STATE=online", Some("tty2")),
            ("STATE=active", "STATE=closing", None),
        ] {
            assert_eq!(seat_terminal(&LOCAL.replace(from, to)).as_deref(), expected, "{from:?} for {to:?}");
        }
    }

    #[test]
    fn sessions_are_read_from_their_files_and_a_fifo_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("2"), LOCAL).unwrap();
        fs::write(directory.path().join("c1"), LOCAL.replace("tty2", "tty1")).unwrap();
        fs::write(directory.path().join("9"), "REMOTE=1\nTTY=pts/0\n").unwrap();
        let fifo = directory.path().join("2.ref");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let expected = ["tty1", "tty2"].map(str::to_owned).into();
        assert_eq!(seat_terminals(directory.path()).unwrap(), expected);
        assert_eq!(seat_terminals(&directory.path().join("none")).unwrap(), BTreeSet::new());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)((SEAT|TTY|REMOTE|=|\"|\n|.){0,20})") {
            seat_terminal(&text);
        }
    }
}
