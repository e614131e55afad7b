//! Tells expressions from options on a command line: expressions, too, may begin with a dash.

use clap::{Args, Command, Error};

/// Adds the options among `words` to `args`. clap takes every word after the first expression for an expression,
/// because that is its only way to let expressions begin with a dash.
///
/// # Errors
/// When an option is not known, or its value is wrong.
pub(super) fn with_late_options<A: Args + Clone>(args: &A, words: &[String]) -> Result<A, Error> {
    let command = A::augment_args(Command::new("eval")).no_binary_name(true).disable_help_flag(true);
    // In this second pass, a word with a dash that is not an option is an error.
    let command = command.mut_args(|arg| arg.allow_hyphen_values(false));
    let (options, exprs) = split(&command, words);
    let words = options.into_iter().chain(["--"]).chain(exprs);
    let matches = command.clone().try_get_matches_from(words)?;
    let mut settled = args.clone();
    settled.update_from_arg_matches(&matches)?;
    Ok(settled)
}

/// Splits words into options with their values, and expressions. Two dashes and a letter begin an option, known or
/// not, so that a mistyped option is not evaluated as an expression.
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

/// Whether the option of this name takes the next word as its value.
fn takes_value(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
}
