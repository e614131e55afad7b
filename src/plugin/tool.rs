//! HTCondor's tools by their own names: which there are, what each does, and what to use instead of those that there are not.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};

use crate::cluster::Connection;
use crate::{act, condor, now, submit};

const SUBMIT: &str = "condor_submit";

/// A tool of HTCondor that the plugin can be called as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `condor_submit`.
    Submit,
    /// `condor_hold`, `condor_release`, `condor_rm` or `condor_vacate_job`.
    Act(act::Verb),
    /// One of [`condor::TOOLS`].
    Other(&'static str),
}

impl Tool {
    /// The tool with this name: `condor_q`, or `condor-q`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        if name == SUBMIT {
            return Some(Self::Submit);
        }
        let other = || condor::TOOLS.iter().find(|tool| **tool == name).map(|tool| Self::Other(tool));
        act::verb_of(&name).map(Self::Act).or_else(other)
    }
}

/// Whether a word is an option: a dash, or two, and at least so many letters of its name.
pub(crate) fn is_option(word: &str, name: &str, least: usize) -> bool {
    let Some(given) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { return false };
    let given = given.split(':').next().unwrap_or(given);
    given.len() >= least && name.starts_with(given)
}

/// Returns the words of a command line as texts.
///
/// # Errors
/// The message about a word that is no text.
pub fn texts(words: impl Iterator<Item = OsString>) -> Result<Vec<String>, String> {
    let text = |word: OsString| {
        let wrong =
            |word: OsString| format!("the argument {} is not UTF-8: write it in UTF-8", word.display());
        word.into_string().map_err(wrong)
    };
    words.map(text).collect()
}

/// Why a tool of HTCondor does not exist here; `None` if the tool exists, or the name is that of no tool.
pub fn unsupported(name: &str) -> Option<String> {
    /// The tools that users look for first, and what to use instead.
    const INSTEAD: &[(&str, &str)] = &[
        (
            "condor_continue",
            "jobs are suspended and continued by SUSPEND and CONTINUE of NodePolicies; see condor_hold",
        ),
        ("condor_dagman", "DAGs do not exist here: a workflow engine submits the jobs"),
        ("condor_now", "a job goes before others by its priority; see condor_prio and condor_userprio"),
        ("condor_qusers", "see condor_userprio -allusers"),
        ("condor_submit_dag", "DAGs do not exist here: a workflow engine submits the jobs"),
        (
            "condor_suspend",
            "jobs are suspended and continued by SUSPEND and CONTINUE of NodePolicies; see condor_hold",
        ),
        ("condor_watch_q", "use watch condor_q, or kubectl get htcjobs --watch"),
    ];
    let name = name.replace('-', "_");
    if !name.starts_with("condor_") || Tool::named(&name).is_some() {
        return None;
    }
    let instead = INSTEAD.iter().find(|(tool, _)| *tool == name).map(|(_, instead)| (*instead).to_owned());
    let all = || {
        let acts = act::Verb::ALL.map(act::tool_of);
        let all: BTreeSet<&str> =
            acts.into_iter().chain([SUBMIT]).chain(condor::TOOLS.iter().copied()).collect();
        format!("the tools are {}", all.into_iter().collect::<Vec<_>>().join(", "))
    };
    Some(format!("{name} is not supported: {}", instead.unwrap_or_else(all)))
}

/// The message about a command that does not exist: the reason, or the command to type instead.
pub(crate) fn suggestion(word: &str) -> String {
    if let Some(why) = unsupported(word) {
        return why;
    }
    let tool = format!("condor_{word}");
    match Tool::named(&tool) {
        Some(_) => format!("there is no command {word}; HTCondor's tool is: kubectl slotwright {tool}"),
        None => format!("there is no command {word}; see all with: kubectl slotwright --help"),
    }
}

/// Does what a tool of HTCondor does with the words behind its name. Returns the exit status.
///
/// # Errors
/// When the output cannot be written.
pub async fn by_name(
    tool: Tool,
    words: &[String],
    connection: &Connection,
    width: Option<usize>,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> io::Result<u8> {
    match tool {
        Tool::Submit => condor_submit(words, connection, out, err).await,
        Tool::Act(verb) => condor_act(verb, words, connection, out, err).await,
        Tool::Other(tool) => condor::run(tool, words, connection, width, out, err).await,
    }
}

async fn condor_submit(
    words: &[String],
    connection: &Connection,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let request = match submit::parse(words) {
        Ok(submit::Asked::Submit(request)) => request,
        Ok(submit::Asked::Help) => return writeln!(out, "{}", submit::USAGE).map(|()| 0),
        Err(message) => return writeln!(err, "condor_submit: {message}").map(|()| 1),
    };
    let place = submit::Place::here()?;
    match submit::run(&request, connection, &place, &mut io::stdin(), out, err).await {
        Ok(()) => Ok(0),
        Err(submit::Error::Output(error)) => Err(error),
        Err(error) => writeln!(err, "\nERROR: {error}").map(|()| 1),
    }
}

async fn condor_act(
    verb: act::Verb,
    words: &[String],
    connection: &Connection,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let (request, told, failed) = match act::parse(verb, words) {
        Ok(act::Asked::Act(request, told, failed)) => (request, told, failed),
        Ok(act::Asked::Help) => return writeln!(err, "{}", act::usage(verb)).map(|()| 0),
        Ok(act::Asked::Version) => {
            return writeln!(out, "slotwright {}", env!("CARGO_PKG_VERSION")).map(|()| 0);
        }
        Err((message, false)) => return writeln!(err, "{message}").map(|()| 1),
        Err((message, true)) => return writeln!(err, "{message}\n{}", act::usage(verb)).map(|()| 1),
    };
    for line in told {
        writeln!(err, "{line}")?;
    }
    match act::run(&request, connection, now(), out, err).await {
        Ok(status) => Ok(status.max(u8::from(failed))),
        Err(act::Error::Output(error)) => Err(error),
        Err(error) => writeln!(err, "{}: {error}", act::tool_of(verb)).map(|()| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_text_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        let read = |words: &[&[u8]]| texts(words.iter().map(|word| OsString::from_vec(word.to_vec())));
        assert_eq!(read(&[b"-af", "\u{e4}".as_bytes()]), Ok(vec!["-af".to_owned(), "\u{e4}".to_owned()]));
        let refused = Err("the argument \u{fffd} is not UTF-8: write it in UTF-8".to_owned());
        assert_eq!(read(&[b"-af", b"\xff"]), refused);
    }

    #[test]
    fn each_tool_is_found_or_something_is_named_instead() {
        for name in ["condor_q", "condor-submit", "condor_rm", "condor_vacate_job"] {
            assert!(Tool::named(name).is_some() && unsupported(name).is_none(), "{name}");
        }
        assert_eq!(unsupported("prio"), None, "no name of a tool");
        assert!(unsupported("condor_dagman").is_some_and(|why| why.contains("DAGs do not exist here")));
        let all = unsupported("condor_nonsense").unwrap();
        for name in ["condor_submit", "condor_rm", "condor_hold", "condor_q", "condor_vacate_job"] {
            assert_eq!(all.matches(name).count(), if name == "condor_q" { 2 } else { 1 }, "{name}: {all}");
        }
        assert!(suggestion("prio").ends_with("kubectl slotwright condor_prio"));
        assert!(suggestion("sttus").ends_with("kubectl slotwright --help"));
    }
}
