//! Which words of a command line are expressions: these may begin with a dash, as options do.

use clap::{Args, Command, Error};

/// The arguments with what `words` say, of which some are options. clap takes every word from the first expression on for one
/// more: it knows no other way to let them begin with a dash.
///
/// # Errors
/// When an option is none, or its value is wrong.
pub(super) fn with_late_options<A: Args + Clone>(args: &A, words: &[String]) -> Result<A, Error> {
    let command = A::augment_args(Command::new("eval")).no_binary_name(true).disable_help_flag(true);
    // What is no option here is none at all.
    let command = command.mut_args(|arg| arg.allow_hyphen_values(false));
    let (options, exprs) = split(&command, words);
    let words = options.into_iter().chain(["--"]).chain(exprs);
    let matches = command.clone().try_get_matches_from(words)?;
    let mut settled = args.clone();
    settled.update_from_arg_matches(&matches)?;
    Ok(settled)
}

/// Options with their values, and expressions. A dash twice and a letter begin an option, known or not: a typing error is not
/// evaluated.
fn split<'w>(command: &Command, words: &'w [String]) -> (Vec<&'w str>, Vec<&'w str>) {
    let (mut options, mut exprs) = (Vec::new(), Vec::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let long = word.strip_prefix("--");
        match long.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic())) {
            Some(name) => {
                options.push(word);
                options.extend(takes_value(command, name).then(|| words.next()).flatten());
            }
            None if word == "--" => exprs.extend(words.by_ref()),
            None => exprs.push(word),
        }
    }
    (options, exprs)
}

/// Whether the next word is the value of the option of this name.
fn takes_value(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
}
