//! Functions on environments and on argument lists in HTCondor's two notations, and on users.

use std::collections::BTreeMap;

use super::convert::{list, wrap_c_int};
use super::{ANY, Args, Entry, entry};
use crate::eval::{Ctx, Val};
use crate::user_maps::preferred;

pub(super) static TABLE: [Entry; 6] = [
    entry("envv1tov2", 1, 1, env_v1_to_v2),
    entry("mergeenvironment", 0, ANY, merge_environment),
    entry("listtoargs", 1, 2, list_to_args),
    entry("argstolist", 1, 2, args_to_list),
    entry("usermap", 2, 4, user_map),
    entry("userhome", 1, 2, user_home),
];

/// Variables and their values in the order in which they print. A macro has no value.
type Environment = BTreeMap<String, Option<String>>;

/// Adds `NAME=value` to the environment. `None`: the text is not of this form.
fn put(environment: &mut Environment, assignment: &str) -> Option<()> {
    if let Some((name, value)) = assignment.split_once('=').filter(|(name, _)| !name.is_empty()) {
        environment.insert(name.to_owned(), Some(value.to_owned()));
        return Some(());
    }
    // A macro that stands for assignments which are not known yet is kept as it is.
    assignment.starts_with("$$").then(|| drop(environment.insert(assignment.to_owned(), None)))
}

fn print<'a>(ctx: &Ctx<'a>, environment: Environment) -> Val<'a> {
    let mut text = String::new();
    for (name, value) in environment {
        let assignment = match value {
            Some(value) => format!("{name}={value}"),
            None => name,
        };
        if !pay_for_word(ctx, &assignment) || !ctx.allows(text.len()) {
            return Val::Error;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&quote(&assignment));
    }
    ctx.string(text)
}

/// Pays for reading or writing a word, which is copied several times. `false`: no steps are left.
fn pay_for_word(ctx: &Ctx<'_>, word: &str) -> bool {
    ctx.pay(8) && ctx.scan(word.len())
}

/// Whether a character ends a word of an argument list.
fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Writes words as an argument list in HTCondor's second notation: `a 'b  c' ''`.
pub fn join_arguments(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Writes a word in the second notation: runs of white space and quotes stand in quotes.
fn quote(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    let special = |c: char| ends_word(c) || c == '\'';
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(special) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let end = from.find(|c| !special(c)).unwrap_or(from.len());
        let (run, after) = from.split_at_checked(end).unwrap_or((from, ""));
        out.push_str(before);
        out.push('\'');
        out.push_str(&run.replace('\'', "''"));
        out.push('\'');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The words of an argument list in HTCondor's second notation: white space separates, single quotes group, and a doubled
/// single quote within quotes stands for one. `None`: a quote is not closed.
pub fn split_arguments(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut in_word) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                in_word = true;
                loop {
                    match chars.next()? {
                        '\'' if chars.next_if_eq(&'\'').is_some() => word.push('\''),
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            c if ends_word(c) => {
                if std::mem::take(&mut in_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                in_word = true;
                word.push(c);
            }
        }
    }
    if in_word {
        words.push(word);
    }
    Some(words)
}

/// The punctuation that may separate assignments.
const DELIMITERS: &str = "\x1f!#$%&*+,-/:;<>?@^`|~";

/// The separator of assignments in the first notation, and the rest of the text: if the text starts with one of
/// [`DELIMITERS`], this character separates, else a semicolon.
fn v1_delimiter(text: &str) -> (char, &str) {
    match text.chars().next() {
        Some(c) if DELIMITERS.contains(c) => (c, text.get(1..).unwrap_or_default()),
        _ => (';', text),
    }
}

fn env_v1_to_v2<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let text = match args.eval(ctx, 0) {
        Val::Undefined => return Val::Undefined,
        Val::Str(text) => text,
        _ => return Val::Error,
    };
    if !ctx.scan(text.len()) {
        return Val::Error;
    }
    let mut environment = Environment::new();
    let (delimiter, text) = v1_delimiter(&text);
    let parts = text.split([delimiter, '\n']).map(|part| part.trim_start_matches(ends_word));
    for assignment in parts.filter(|part| !part.is_empty()) {
        if !pay_for_word(ctx, assignment) || put(&mut environment, assignment).is_none() {
            return Val::Error;
        }
    }
    print(ctx, environment)
}

fn merge_environment<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let mut environment = Environment::new();
    for place in 0..args.len() {
        let text = match args.eval(ctx, place) {
            Val::Undefined => continue,
            Val::Str(text) => text,
            _ => return Val::Error,
        };
        if !ctx.pay(text.len()) {
            return Val::Error;
        }
        let words = split_arguments(&text).unwrap_or_else(|| vec![String::new()]);
        if words.iter().any(|word| !pay_for_word(ctx, word) || put(&mut environment, word).is_none()) {
            return Val::Error;
        }
    }
    print(ctx, environment)
}

/// The notation that the second argument asks for; the second notation if there is no such argument.
fn notation<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Option<i32> {
    if args.len() < 2 {
        return Some(2);
    }
    match args.eval(ctx, 1) {
        Val::Int(version) => Some(wrap_c_int(version)).filter(|version| (1..=2).contains(version)),
        _ => None,
    }
}

fn list_to_args<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (Ok(list), Some(version)) = (list(args.eval(ctx, 0)), notation(ctx, args)) else { return Val::Error };
    let mut text = String::new();
    for item in list.iter(ctx) {
        let Some(word) = item.as_str() else { return Val::Error };
        if !pay_for_word(ctx, word) || !ctx.allows(text.len()) {
            return Val::Error;
        }
        // The first notation cannot write an empty word: such a word is left out, but for a blank at the end.
        if !text.is_empty() {
            text.push(' ');
        }
        match version {
            2 => text.push_str(&quote(word)),
            _ if word.contains(ends_word) => return Val::Error,
            _ => text.push_str(word),
        }
    }
    ctx.string(text)
}

fn args_to_list<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let text = args.eval(ctx, 0);
    let (Some(text), Some(version)) = (text.as_str(), notation(ctx, args)) else { return Val::Error };
    if !ctx.pay(text.len()) {
        return Val::Error;
    }
    let words = match version {
        2 => split_arguments(text),
        _ => Some(text.split(ends_word).filter(|word| !word.is_empty()).map(str::to_owned).collect()),
    };
    match words {
        Some(words) => ctx.list(words.into_iter().map(|word| ctx.string(word)).collect()),
        None => Val::Error,
    }
}

/// `userMap(map, user, wanted, default)`: what the environment's map has for the user. With two arguments the answer is the
/// whole result, with more the item that is wanted, or else the first. A user who is not in the map has the default, or else
/// undefined.
fn user_map<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (map, user) = (args.eval(ctx, 0), args.eval(ctx, 1));
    if matches!((&map, &user), (Val::Error, _) | (_, Val::Error)) {
        return Val::Error;
    }
    let found = map.as_str().zip(user.as_str()).and_then(|(map, user)| ctx.env.maps.look_up(map, user));
    match found {
        Some(found) if !ctx.pay(found.len()) => Val::Error,
        Some(found) if args.len() == 2 => ctx.string(found),
        Some(found) => {
            let wanted = args.eval(ctx, 2);
            ctx.string(preferred(&found, wanted.as_str()).to_owned())
        }
        None if args.len() == 4 => args.eval(ctx, 3),
        None => Val::Undefined,
    }
}

/// `userHome()`: the crate knows no home directories. The answer is the default argument, or undefined.
fn user_home<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Str(_) | Val::Undefined if args.len() == 2 => args.eval(ctx, 1),
        Val::Str(_) | Val::Undefined => Val::Undefined,
        _ => Val::Error,
    }
}
