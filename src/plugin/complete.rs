//! Completions of shells, and manual pages, of `kubectl slotwright` and `slotwright`.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::Cli;

/// The name of the link by which kubectl asks for completions of the plugin.
pub const FOR_KUBECTL: &str = "kubectl_complete-slotwright";

/// The options of `completion`.
#[derive(Args, Debug)]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// The options of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The directory that gets a page for each command
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Prints what a shell reads to complete a command by its name.
///
/// # Errors
/// When the output cannot be written.
pub fn completion(args: &CompletionArgs, mut command: Command, out: &mut dyn Write) -> io::Result<()> {
    let (name, mut text) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    out.write_all(&text)?;
    out.flush()
}

/// Writes the manual pages of a command.
///
/// # Errors
/// When the directory cannot be written. The error names the directory.
pub fn man(args: &ManArgs, command: Command) -> io::Result<()> {
    let made = std::fs::create_dir_all(&args.directory);
    made.and_then(|()| clap_mangen::generate_to(command, &args.directory)).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", args.directory.display()))
    })
}

/// Answers kubectl, which asks what the last word of `kubectl slotwright WORDS` may be: each answer a line, with its description
/// behind a tab, and then kubectl's directive.
///
/// # Errors
/// When the output cannot be written.
pub fn for_kubectl(words: &[String], out: &mut dyn Write) -> io::Result<()> {
    /// The directive that keeps the shell from completing file names.
    const NO_FILES: u32 = 4;
    let asked: Vec<OsString> =
        std::iter::once("kubectl-slotwright".into()).chain(words.iter().map(OsString::from)).collect();
    let at = asked.len().saturating_sub(1);
    let directory = env::current_dir().ok();
    let found = clap_complete::engine::complete(&mut Cli::command(), asked, at, directory.as_deref())?;
    for candidate in found.iter().filter(|candidate| !candidate.is_hide_set()) {
        let value = candidate.get_value().to_string_lossy();
        match candidate.get_help() {
            Some(help) => writeln!(out, "{value}\t{help}")?,
            None => writeln!(out, "{value}")?,
        }
    }
    writeln!(out, ":{NO_FILES}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut out = Vec::new();
        for_kubectl(&words, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn kubectl_is_told_commands_and_options() {
        let all = answer(&[""]);
        assert!(all.contains("status\tShow slots, like condor_status\n") && all.ends_with("\n:4\n"), "{all}");
        assert!(!all.contains("completion"), "hidden: {all}");
        assert_eq!(answer(&["user"]).lines().count(), 3, "userlog, userprio, and the directive");
        let options = answer(&["q", "--"]);
        assert!(options.contains("--all-namespaces"), "{options}");
        let values = answer(&["q", "-o", ""]);
        assert!(values.contains("yaml"), "{values}");
    }

    #[test]
    fn each_shell_has_a_script_and_each_command_a_page() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut out = Vec::new();
            completion(&CompletionArgs { shell }, Cli::command(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("kubectl-slotwright") && text.contains("userprio"), "{shell}");
        }
        let directory = tempfile::tempdir().unwrap();
        man(&ManArgs { directory: directory.path().join("man1") }, Cli::command()).unwrap();
        let page = directory.path().join("man1/kubectl-slotwright-userlog.1");
        assert!(std::fs::read_to_string(page).unwrap().contains("job event logs"));
    }
}
