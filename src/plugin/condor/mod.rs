//! HTCondor's tools by their own names: `condor_q`, `condor_status` and others, as links to this program or as
//! `kubectl slotwright condor_q`.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | which tool is meant, and how its answer is printed |
//! | `place` | what the tools know of this computer: screen, time zone, namespace |
//! | `jobs` | the job ads of HTCJobs |
//! | `last_runs` | what pods tell of runs that ended |
//! | `q` | `condor_q` |
//! | `analysis` | `condor_q -better-analyze` |
//! | `status` | `condor_status` |
//! | `history` | `condor_history` |
//! | `chosen` | which jobs a tool acts on |
//! | `edit` | `condor_prio`, `condor_qedit` |
//! | `pods` | `condor_tail`, `condor_ssh_to_job` |
//! | `wait` | `condor_wait` |
//! | `drain` | `condor_drain` |
//! | `userprio` | `condor_userprio` |
//! | `config_val` | `condor_config_val` |

mod analysis;
mod chosen;
mod config_val;
mod drain;
mod edit;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod last_runs;
pub(crate) mod place;
mod pods;
mod q;
mod status;
mod userprio;
mod wait;

use std::io::{self, Write};

use crate::cluster::{self, Connection};

/// The answer of a tool.
#[derive(Debug, Default)]
struct Answer {
    /// For standard output.
    text: String,
    /// For standard error, each a line.
    notes: Vec<String>,
    /// The exit status.
    status: u8,
}

/// Why a tool fails: a message for standard error. The exit status is 1.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<cluster::Error> for Failure {
    fn from(error: cluster::Error) -> Self {
        Self(format!("Error: {error}"))
    }
}

type Outcome = Result<Answer, Failure>;

/// The tools that can be called by their name.
pub const TOOLS: &[&str] = &[
    "condor_config_val",
    "condor_drain",
    "condor_history",
    "condor_prio",
    "condor_q",
    "condor_qedit",
    "condor_ssh_to_job",
    "condor_status",
    "condor_tail",
    "condor_userprio",
    "condor_version",
    "condor_wait",
];

/// Does what a tool of HTCondor does with the words behind its name, and returns the exit status. `width` is that of the terminal
/// that `out` is, if it is one.
///
/// # Errors
/// When the output cannot be written.
pub async fn run(
    tool: &str,
    words: &[String],
    connection: &Connection,
    width: Option<usize>,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> io::Result<u8> {
    let outcome = match tool {
        "condor_q" => q::run(words, connection, width).await,
        "condor_history" => history::run(words, connection, width).await,
        "condor_status" => status::run(words, connection, width).await,
        "condor_prio" => edit::prio(words, connection).await,
        "condor_qedit" => edit::qedit(words, connection).await,
        "condor_drain" => drain::run(words, connection).await,
        "condor_tail" => pods::tail(words, connection).await,
        "condor_ssh_to_job" => pods::ssh(words, connection).await,
        "condor_wait" => wait::run(words, connection, out, err).await,
        "condor_config_val" => config_val::run(words, connection).await,
        "condor_userprio" => userprio::run(words, connection, width).await,
        "condor_version" => Ok(version()),
        other => Err(Failure(format!("{other} is no tool of this program; there are {}", TOOLS.join(", ")))),
    };
    let printed = match outcome {
        Ok(answer) => print(&answer, width.is_some(), out, err).map(|()| answer.status),
        Err(Failure(message)) => writeln!(err, "{}", harmless(&message)).map(|()| 1),
    };
    match printed {
        // The reader has closed the pipe, as in `condor_q | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        other => other,
    }
}

fn print(answer: &Answer, terminal: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    for note in &answer.notes {
        writeln!(err, "{}", harmless(note))?;
    }
    if terminal {
        out.write_all(harmless(&answer.text).as_bytes())?;
    } else {
        out.write_all(answer.text.as_bytes())?;
    }
    out.flush()
}

/// The text with blanks in place of control characters other than ends of lines and tabs. Texts that other people wrote into an
/// object must not move the cursor or change the terminal's settings.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c }).collect()
}

/// `condor_version`: the version of this program, and that of HTCondor whose rules it follows.
fn version() -> Answer {
    let text =
        format!("$SlotwrightVersion: {} $\n$CondorVersion: {} $\n", env!("CARGO_PKG_VERSION"), FOLLOWS);
    Answer { text, ..Answer::default() }
}

/// The version of HTCondor beside which the tools are tested.
const FOLLOWS: &str = "25.14.1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_do_not_control_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\tc\nd\r"), "a [2Jb\tc\nd ");
    }
}
