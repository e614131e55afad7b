//! When somebody last used the node by hand, from terminals, sessions and the site's own file.
//!
//! HTCondor's KeyboardIdle is the least idle time of all terminals, the console's among them, and ConsoleIdle that of the
//! console alone, so KeyboardIdle never exceeds ConsoleIdle. A desktop reads the keyboard from `/dev/input` and not from a
//! terminal, and the agent never opens `/dev/input`, because whoever reads there sees each password. A site says by its
//! file ([`InputPaths::plug`]) that a desktop is in use.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::plug::{self, Malformed, Presence, Said};
use super::sessions::seat_terminals;
use super::terminals::{Terminal, terminals};
use crate::named::named;
use crate::regular::open;

/// The most bytes that are read of the site's file.
const MAX_PLUG: u64 = 64 * 1024;

/// When somebody last used the node by hand. The times are never later than the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inputs {
    /// The last input on any terminal, the console included; `None` if there is no terminal and no word of the site.
    pub keyboard: Option<Timestamp>,
    /// The last input at the node's own keyboard; `None` if the node has no console and no word of the site.
    pub console: Option<Timestamp>,
}

/// Where an [`InputSensor`] looks.
#[derive(Debug, Clone)]
pub struct InputPaths {
    /// The node's `/dev`, with `/dev/pts` in it.
    pub dev: PathBuf,
    /// The node's `/run/systemd/sessions`. The directory may be missing.
    pub sessions: PathBuf,
    /// The file that the site fills, with lines `keyboard = WHEN` and `console = WHEN`: WHEN is `ongoing`, or a time in RFC
    /// 3339. Its words can only make idle times shorter. The file may be missing.
    pub plug: Option<PathBuf>,
}

/// Something that could not be read, and was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// A file or directory could not be read; the message has the path.
    Unreadable(String),
    /// A line of the site's file is malformed.
    Malformed(PathBuf, Malformed),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(message) => f.write_str(message),
            Self::Malformed(path, malformed) => write!(f, "{}: {malformed}", path.display()),
        }
    }
}

/// Senses when somebody last used the node by hand.
#[derive(Debug)]
pub struct InputSensor {
    roots: InputPaths,
    /// The problems of the last reading, so that each is told once and not at every reading.
    told: BTreeSet<Problem>,
}

impl InputSensor {
    /// A sensor that has told of no problem.
    pub fn new(roots: InputPaths) -> Self {
        Self { roots, told: BTreeSet::new() }
    }

    /// Returns the last inputs before `now`, and the problems that the last call did not have. A source that cannot be read
    /// is left out, and the others count.
    pub fn sense(&mut self, now: Timestamp) -> (Inputs, Vec<Problem>) {
        let mut problems = BTreeSet::new();
        let mut tell = |error: io::Error| {
            problems.insert(Problem::Unreadable(error.to_string()));
        };
        let terminals = terminals(&self.roots.dev).map_err(&mut tell).unwrap_or_default();
        let seats = seat_terminals(&self.roots.sessions).map_err(&mut tell).unwrap_or_default();
        let mut said = Said::default();
        if let Some(path) = &self.roots.plug {
            let (word, malformed) = plug::parse(&read_plug(path).map_err(&mut tell).unwrap_or_default());
            said = word;
            problems.extend(malformed.into_iter().map(|one| Problem::Malformed(path.clone(), one)));
        }
        let fresh = problems.difference(&self.told).cloned().collect();
        self.told = problems;
        (inputs(&terminals, &seats, said, now), fresh)
    }
}

/// The last inputs, of these terminals and by what the site says. `seats` are the terminals that belong to a seat.
fn inputs(terminals: &[Terminal], seats: &BTreeSet<String>, said: Said, now: Timestamp) -> Inputs {
    // A clock that was set back leaves times in the future: somebody was there not long ago.
    let time = |presence: Presence| match presence {
        Presence::At(time) => time.min(now),
        Presence::Ongoing => now,
    };
    let is_console = |one: &&Terminal| one.is_virtual() || seats.contains(&one.name);
    let at = |one: &Terminal| Presence::At(one.last_input);
    let console = terminals.iter().filter(is_console).map(at).chain(said.console).map(time).max();
    let keyboard = terminals.iter().map(at).chain(said.keyboard).map(time).chain(console).max();
    Inputs { keyboard, console }
}

/// Returns the site's file, or nothing if there is none. A FIFO in the file's place would make the agent wait, and a symbolic link
/// could lead to a file whose first lines the agent would log as malformed: only a regular file is read.
fn read_plug(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let opened = open(OpenOptions::new().read(true), path);
    match opened.and_then(|file| file.take(MAX_PLUG).read_to_end(&mut bytes)) {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(named(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::terminals::tests::touch;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The keyboard's and the console's last input in seconds, at second 1000. `pts/7` belongs to a seat.
    fn sensed(
        terminals: &[(&str, i64)],
        keyboard: Option<Presence>,
        console: Option<Presence>,
    ) -> [Option<i64>; 2] {
        let terminals: Vec<_> = terminals
            .iter()
            .map(|(name, second)| Terminal { name: (*name).to_owned(), last_input: at(*second) })
            .collect();
        let found = inputs(&terminals, &["pts/7".to_owned()].into(), Said { keyboard, console }, at(1000));
        [found.keyboard, found.console].map(|time| time.map(Timestamp::as_second))
    }

    #[test]
    fn the_keyboard_is_any_terminal_and_the_console_that_of_a_seat() {
        use Presence::{At, Ongoing};
        for (terminals, keyboard, console, expected) in [
            (&[][..], None, None, [None, None]),
            (&[("pts/0", 500)], None, None, [Some(500), None]),
            (&[("pts/0", 500), ("tty1", 100), ("tty2", 200)], None, None, [Some(500), Some(200)]),
            (&[("pts/0", 500), ("tty1", 700)], None, None, [Some(700), Some(700)]),
            (&[("pts/7", 500), ("tty1", 100)], None, None, [Some(500), Some(500)]),
            (&[("tty1", 1300)], None, None, [Some(1000), Some(1000)]),
            (&[("tty1", 300)], Some(Ongoing), None, [Some(1000), Some(300)]),
            (&[("tty1", 300)], None, Some(Ongoing), [Some(1000), Some(1000)]),
            (&[("tty1", 300)], Some(At(at(200))), Some(At(at(100))), [Some(300), Some(300)]),
            (&[("tty1", 300)], Some(At(at(400))), Some(At(at(2000))), [Some(1000), Some(1000)]),
            (&[], None, Some(At(at(400))), [Some(400), Some(400)]),
        ] {
            assert_eq!(
                sensed(terminals, keyboard, console),
                expected,
                "{terminals:?} {keyboard:?} {console:?}"
            );
        }
    }

    #[test]
    fn the_sensor_reads_all_sources_and_tells_a_problem_once() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let roots = InputPaths { dev: path("dev"), sessions: path("sessions"), plug: Some(path("plug")) };
        let mut sensor = InputSensor::new(roots);

        let (inputs, problems) = sensor.sense(at(1000));
        assert_eq!(inputs, Inputs::default());
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(problems.len() == 1 && problems[0].contains("/dev: "), "{problems:?}");
        assert_eq!(sensor.sense(at(1001)).1, [], "the same problem is not told again");

        touch(&path("dev/tty1"), 100);
        touch(&path("dev/pts/0"), 500);
        let expected = Inputs { keyboard: Some(at(500)), console: Some(at(100)) };
        assert_eq!(sensor.sense(at(1002)), (expected, vec![]));

        fs::create_dir(path("sessions")).unwrap();
        fs::write(path("sessions/1"), "SEAT=seat0\nTTY=pts/0\n").unwrap();
        fs::write(path("plug"), "keyboard = ongoing\nconsole = now\n").unwrap();
        let expected = Inputs { keyboard: Some(at(1003)), console: Some(at(500)) };
        let (inputs, problems) = sensor.sense(at(1003));
        assert_eq!(inputs, expected);
        let place = format!("{}: line 2, column 11: ", path("plug").display());
        assert!(problems.len() == 1 && problems[0].to_string().starts_with(&place), "{problems:?}");
        assert_eq!(sensor.sense(at(1004)).1, []);

        fs::remove_file(path("plug")).unwrap();
        fs::create_dir(path("plug")).unwrap();
        let (inputs, problems) = sensor.sense(at(1005));
        assert_eq!(inputs, Inputs { keyboard: Some(at(500)), console: Some(at(500)) });
        assert!(problems[0].to_string().ends_with("plug: this is not a regular file"), "{problems:?}");
    }
}
