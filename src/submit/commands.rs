//! The commands of the submit language, as a table: what the value of each is, and what becomes of it here.

mod table;

pub use table::COMMANDS;
pub(crate) use table::CREDENTIALS;

/// A command of the submit language.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The name, in lower case, such as `max_retries`.
    pub name: &'static str,
    /// The attribute that the command sets, which is also another name for the command. Empty: there is none.
    pub attribute: &'static str,
    /// The form of the value.
    pub form: Form,
    /// The effect of the command here.
    pub support: Support,
}

/// The value of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A ClassAd expression.
    Expression,
    /// A text, which becomes a string.
    Text,
    /// A text that may stand in double quotes.
    Quoted,
    /// Words between commas and blanks.
    List,
    /// A boolean.
    Boolean,
    /// An integer.
    Integer,
    /// An integer that is not negative.
    Count,
    /// A file's name, which becomes a full path.
    Path,
    /// Rules of its own.
    Special,
}

/// The effect of a command here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The command has its effect: the text says how.
    Honored(&'static str),
    /// The command has no effect: the text says why, and what to do instead. The user of the command is told.
    NoEffect(&'static str),
    /// A job with this command is refused: the text says why, and what to do instead.
    Refused(&'static str),
}

/// The command of a name, case aside. The attribute of a command is a name for it, too.
pub fn find(name: &str) -> Option<&'static Command> {
    let named = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name));
    named.or_else(|| of_attribute(name))
}

/// The command that sets the attribute of a name, case aside.
pub fn of_attribute(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| !name.is_empty() && command.attribute.eq_ignore_ascii_case(name))
}

/// Families of commands for universes that do not exist here, by how their names begin.
const FAMILIES: &[(&str, &str)] = &[
    ("ec2_", "the grid universe"),
    ("gce_", "the grid universe"),
    ("azure_", "the grid universe"),
    ("cloud_label_", "the grid universe"),
    ("arc_", "the grid universe"),
    ("batch_extra_", "the grid universe"),
    ("batch_project", "the grid universe"),
    ("batch_queue", "the grid universe"),
    ("batch_runtime", "the grid universe"),
    ("grid_resource", "the grid universe"),
    ("remote_", "the grid universe"),
    ("vm_", "the vm universe"),
    ("xen_", "the vm universe"),
    ("java_vm_", "the java universe"),
    ("jar_files", "the java universe"),
    ("parallel_script_", "the parallel universe"),
    ("machine_count", "the parallel universe"),
    ("node_count", "the parallel universe"),
    ("nodecount", "the parallel universe"),
    ("tool_daemon_", "tool daemons"),
    ("suspend_job_at_exec", "tool daemons"),
];

/// The feature that a command is for, such as the parallel universe, if Slotwright does not have the feature. `None`:
/// the name is no such command.
pub fn family(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    FAMILIES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, family)| *family)
}

/// The command whose name is most like a name that is none. `None`: there is no such command.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let distance = |command: &&Command| strsim::damerau_levenshtein(command.name, &name);
    let best = COMMANDS.iter().min_by_key(distance)?;
    (distance(&best) <= 2.min(name.len() / 3)).then_some(best.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_stands_in_the_table_once_and_is_explained() {
        let mut names = BTreeSet::new();
        for command in COMMANDS {
            assert!(names.insert(command.name), "{} twice", command.name);
            let (Support::Honored(text) | Support::NoEffect(text) | Support::Refused(text)) = command.support;
            assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", command.name);
        }
    }

    #[test]
    fn names_are_found_and_guessed() {
        assert_eq!(find("Max_Retries").map(|command| command.name), Some("max_retries"));
        assert_eq!(find("JobPrio").map(|command| command.name), Some("priority"));
        for (name, expected) in [
            ("argumnets", Some("arguments")),
            ("request_mem", None),
            ("exectuable", Some("executable")),
            ("x", None),
        ] {
            assert_eq!(nearest(name), expected, "{name}");
        }
        assert_eq!(family("EC2_ami_id"), Some("the grid universe"));
        assert_eq!(family("executable"), None);
    }
}
