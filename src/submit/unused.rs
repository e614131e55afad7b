//! Which variables of a submit file are used, and which differ between procs.

use std::collections::BTreeSet;

use condor_config::{Diagnostic, Scope, Severity, Variable};

use crate::commands::{self, CREDENTIALS, Command, Support};
use crate::file::WrittenCommand;

/// Variables that templates of submit files may set: no warning is given if nothing uses them.
const SILENT: &[&str] = &[
    "dag_status",
    "failed_count",
    "job",
    "retry",
    "submitwarnemptymatches",
    "submitfailemptymatches",
    "submitwarnduplicatematches",
    "submitfailemptyfields",
    "submitwarnemptyfields",
];

/// Commands that have an effect only beside another, and what the other is.
const BESIDE: &[(&[&str], &str)] = &[
    (
        &[
            "require_gpus",
            "gpus_minimum_capability",
            "gpus_maximum_capability",
            "gpus_minimum_memory",
            "gpus_minimum_runtime",
        ],
        "request_gpus: write how many GPUs the job needs, as in request_gpus = 1",
    ),
    (
        &["retry_request_memory", "retry_request_memory_max", "retry_request_memory_increase"],
        "a plain amount in request_memory, as in request_memory = 2G, or no request_memory at all",
    ),
    (&["retry_request_disk"], "a plain amount in request_disk, as in request_disk = 2G"),
];

/// Whether a name is that of a command for an OAuth service, such as `box_oauth_permissions_read`.
fn is_of_oauth(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some((service, rest)) = name.split_once("_oauth_") else { return false };
    let is_command = |word: &str| {
        rest.strip_prefix(word).is_some_and(|handle| handle.is_empty() || handle.starts_with('_'))
    };
    !service.is_empty() && ["permissions", "resource", "options"].into_iter().any(is_command)
}

/// The advice about a condition that asks for the number of a proc, or for an item.
pub(crate) fn advice_on_condition(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let of_procs = ["$(process", "$(procid", "$(row", "$(itemindex", "$(item)", "$(step"];
    if message.contains("is not a valid condition") && of_procs.iter().any(|name| message.contains(name)) {
        "; a condition is decided once, before there are procs: let these differ by $CHOICE(Process, a, b), or by a column of the items"
    } else {
        ""
    }
}

/// The message about a command that nothing used. `None`: the HTCJob's own findings say why.
fn of_command(name: &str, command: &Command) -> Option<String> {
    if let Support::NoEffect(_) | Support::Refused(_) = command.support {
        return None;
    }
    let beside = BESIDE.iter().find(|(commands, _)| commands.contains(&command.name));
    Some(beside.map_or_else(
        || format!("nothing in this file makes use of {name}"),
        |(_, other)| format!("{name} has no effect without {other}"),
    ))
}

/// Warnings of variables that nothing used: typos, and commands for other universes.
pub(crate) fn warnings(scope: &Scope<'_>) -> Vec<Diagnostic> {
    let unused = scope.variables().filter(|variable| {
        let name = variable.name();
        !name.contains('.') && !SILENT.contains(&name.to_ascii_lowercase().as_str()) && !scope.is_used(name)
    });
    let warning = |variable: &Variable| {
        let name = variable.name();
        let message = if is_of_oauth(name) {
            format!("{name}: {CREDENTIALS}")
        } else if let Some(family) = commands::family(name) {
            format!("{name} is for {family}, which Slotwright does not have")
        } else if let Some(command) = commands::find(name) {
            of_command(name, command)?
        } else {
            match commands::nearest(name) {
                Some(near) => format!("{name} is no command, and nothing refers to it: did you mean {near}?"),
                None => format!("{name} is no command, and nothing refers to it: is it a typo?"),
            }
        };
        Some(Diagnostic { severity: Severity::Warning, position: scope.position_of(variable), message })
    };
    unused.filter_map(warning).collect()
}

/// The commands and variables that a file gives, with those that its queue statements gave.
pub(crate) fn written(scope: &Scope<'_>, queued: Vec<WrittenCommand>) -> Vec<WrittenCommand> {
    let written = |variable: &Variable| WrittenCommand {
        name: variable.name().to_owned(),
        position: scope.position_of(variable),
    };
    let mut all: Vec<WrittenCommand> = scope.variables().map(written).chain(queued).collect();
    all.sort_by_key(|written| written.name.to_ascii_lowercase());
    all.dedup_by(|later, first| later.name.eq_ignore_ascii_case(&first.name));
    all
}

/// Whether a variable of this name changes the jobs by itself, whether or not another value refers to it.
pub(crate) fn is_command(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    commands::find(name).is_some()
        || ["request_", "my.", "submit."].iter().any(|start| lower.starts_with(start))
}

/// Whether a variable differs between procs: it refers, perhaps through others, to the number of a proc, to an item, or to
/// chance. A name within the text of a value counts as a reference, so that the answer may be a false yes.
pub(crate) fn vary(scope: &Scope<'_>, items: &[String]) -> bool {
    let mut varying: BTreeSet<String> =
        ["process", "procid", "row", "itemindex", "step", "jobid", "random"].map(str::to_owned).into();
    varying.extend(items.iter().map(|name| name.to_ascii_lowercase()));
    // A variable of the statement that is a command varies itself.
    if items.iter().any(|name| is_command(name)) {
        return true;
    }
    scope.variables().any(|variable| {
        let text = variable.value().as_str().to_ascii_lowercase();
        text.contains('$') && varying.iter().any(|name| text.contains(name.as_str()))
    })
}
