//! How the operator and the agent log: the filter of `RUST_LOG`, and the format.

use clap::ValueEnum;

/// The form of the lines of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The levels of a filter.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// How the names of those begin that log in these programs. A filter of another name alone shows nothing.
const ROOTS: [&str; 4] = ["slotwright", "kube", "hyper", "tower"];

/// Says what is wrong with a filter: a level that there is not, or a name that nobody has. `warning` alone would be taken for the name of a
/// part of the program, and the program would log nothing at all. Filters of spans, which are in brackets, are not checked.
pub fn complaint(filter: &str) -> Option<String> {
    if filter.contains('[') {
        return None;
    }
    let directives = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let is_right = |directive: &str| match directive.split_once('=') {
        Some((name, level)) => is_name(name) && is_level(level),
        None => {
            is_level(directive) || ROOTS.iter().any(|root| directive.starts_with(root)) && is_name(directive)
        }
    };
    let directive = directives.into_iter().find(|directive| !is_right(directive))?;
    Some(format!(
        "`{directive}` is neither a level nor NAME=LEVEL with levels {}, such as info,slotwright=debug",
        LEVELS.join(", ")
    ))
}

fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(text))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_silence_the_program_by_mistake_is_complained_of() {
        for filter in [
            "info",
            "WARN",
            "off",
            "info,slotwright=debug",
            "slotwright_controller::journal",
            "info, kube=off,",
            "warn,slotwright_controller::journal=debug",
            "slotwright[cycle]=debug",
        ] {
            assert_eq!(complaint(filter), None, "{filter}");
        }
        for (filter, named) in [
            ("warning", "`warning`"),
            ("verbose", "`verbose`"),
            ("INFO slotwright=debug", "`INFO slotwright=debug`"),
            ("info;slotwright=debug", "`info;slotwright=debug`"),
            ("info,debgu", "`debgu`"),
            ("slotwright=verbose", "`slotwright=verbose`"),
            ("slotwright=", "`slotwright=`"),
            ("slotwright debug", "`slotwright debug`"),
        ] {
            let said = complaint(filter).unwrap_or_default();
            assert!(said.starts_with(named), "{filter}: {said}");
        }
    }
}
