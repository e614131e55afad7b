//! Functions on regular expressions.
//!
//! HTCondor uses PCRE; we use an engine whose time is linear in the text, because patterns come from
//! tenants. What it lacks (look-around, back references, atomic groups) is an error here.

use std::borrow::Cow;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::convert::answer;
use super::pattern_syntax::translate;
use super::{Args, Entry, Memo, entry};
use crate::classad::eval::{Ctx, Val};

pub(super) static TABLE: [Entry; 5] = [
    entry("regexp", 2, 3, |ctx, args| answer(regexp(ctx, args))),
    entry("regexpmember", 2, 3, |ctx, args| answer(member(ctx, args))),
    entry("regexps", 3, 4, |ctx, args| answer(substitute(ctx, args, ""))),
    entry("replace", 3, 4, |ctx, args| answer(substitute(ctx, args, "f"))),
    entry("replaceall", 3, 4, |ctx, args| answer(substitute(ctx, args, "fg"))),
];

/// The letters that change how a pattern works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are flags, each on its own")]
pub(super) struct Options {
    caseless: bool,
    multiline: bool,
    dotall: bool,
    extended: bool,
    /// The whole text with what matched replaced, not only the replacement.
    full: bool,
    /// All matches, not only the first.
    global: bool,
}

impl Options {
    /// Unknown letters mean nothing.
    pub(super) fn of(letters: &str) -> Self {
        Self {
            caseless: letters.contains('i'),
            multiline: letters.contains('m'),
            dotall: letters.contains('s'),
            extended: letters.contains('x'),
            full: letters.contains('f'),
            global: letters.contains('g'),
        }
    }
}

/// A pattern and what came of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pattern: Box<str>,
    options: Options,
    regex: Option<Regex>,
}

/// Compiles a pattern, or takes it from the memo of a call that has compiled it before. `None`: it is none, or
/// more than we want to pay for.
pub(super) fn compile<'a>(
    ctx: &Ctx<'_>,
    memo: &'a Memo,
    pattern: &str,
    options: Options,
) -> Option<Cow<'a, Regex>> {
    // Compiling costs far more than looking at the characters. The price is the same where it was done
    // before, that an expression costs what it costs.
    if !ctx.pay(50 + pattern.len()) {
        return None;
    }
    let first =
        memo.get_or_init(|| Compiled { pattern: pattern.into(), options, regex: build(pattern, options) });
    if &*first.pattern == pattern && first.options == options {
        return first.regex.as_ref().map(Cow::Borrowed);
    }
    build(pattern, options).map(Cow::Owned)
}

/// A pattern in bytes, outside an expression; none where it is none, or more than we want to pay for.
pub(crate) fn pattern(pattern: &str, caseless: bool) -> Option<Regex> {
    build(pattern, Options { caseless, ..Options::default() })
}

fn build(pattern: &str, options: Options) -> Option<Regex> {
    RegexBuilder::new(&translate(pattern, options.extended)?)
        .unicode(false)
        .case_insensitive(options.caseless)
        .multi_line(options.multiline)
        .dot_matches_new_line(options.dotall)
        .ignore_whitespace(options.extended)
        .octal(false)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .nest_limit(100)
        .build()
        .ok()
}

/// The arguments, if there is neither an error nor anything undefined among them.
fn known<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Vec<Val<'a>>, Val<'a>> {
    let values: Vec<Val<'a>> = (0..args.len()).map(|place| args.eval(ctx, place)).collect();
    if values.iter().any(|value| matches!(value, Val::Error)) {
        return Err(Val::Error);
    }
    if values.iter().any(|value| matches!(value, Val::Undefined)) {
        return Err(Val::Undefined);
    }
    Ok(values)
}

/// A string argument; empty if it is not there.
fn text<'v>(values: &'v [Val<'_>], place: usize, ctx: &Ctx<'_>) -> Option<&'v str> {
    let text = values.get(place).map_or(Some(""), Val::as_str)?;
    ctx.pay(text.len() / 16).then_some(text)
}

fn regexp<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let matched = || {
        let letters = text(&values, 2, ctx)?;
        let subject = text(&values, 1, ctx)?;
        let regex = compile(ctx, args.memo, text(&values, 0, ctx)?, Options::of(letters))?;
        Some(regex.is_match(subject.as_bytes()))
    };
    matched().map(Val::Bool).ok_or(Val::Error)
}

fn member<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let (Some(pattern), Some(Val::List(list)), Some(letters)) =
        (text(&values, 0, ctx), values.get(1), text(&values, 2, ctx))
    else {
        return Err(Val::Error);
    };
    if list.len() == 0 {
        return Ok(Val::Bool(false));
    }
    // A pattern that is none matches nothing here.
    let regex = compile(ctx, args.memo, pattern, Options::of(letters));
    let mut undefined = false;
    for item in list.iter(ctx) {
        match item {
            Val::Str(text) => {
                ctx.pay(text.len() / 16);
                if regex.as_ref().is_some_and(|regex| regex.is_match(text.as_bytes())) {
                    return Ok(Val::Bool(true));
                }
            }
            Val::Undefined => undefined = true,
            _ => return Err(Val::Error),
        }
    }
    Ok(if undefined { Val::Undefined } else { Val::Bool(false) })
}

/// Substitution; `always` are options the function has anyway.
fn substitute<'a>(ctx: &Ctx<'a>, args: Args<'a>, always: &str) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let (Some(pattern), Some(subject), Some(replacement), Some(letters)) =
        (text(&values, 0, ctx), text(&values, 1, ctx), text(&values, 2, ctx), text(&values, 3, ctx))
    else {
        return Err(Val::Error);
    };
    let options = Options::of(&format!("{letters}{always}"));
    let regex = compile(ctx, args.memo, pattern, options).ok_or(Val::Error)?;
    let replaced = replace(ctx, &regex, subject, replacement, options).ok_or(Val::Error)?;
    Ok(ctx.string(String::from_utf8_lossy(&replaced)))
}

/// The text with what matched replaced, or only the replacements, as the options tell.
fn replace(
    ctx: &Ctx<'_>,
    regex: &Regex,
    subject: &str,
    replacement: &str,
    options: Options,
) -> Option<Vec<u8>> {
    let subject = subject.as_bytes();
    let (mut out, mut end): (Vec<u8>, usize) = (Vec::new(), 0);
    while let Some(captures) = regex.captures_at(subject, end) {
        let found = captures.get(0)?;
        if options.full {
            out.extend_from_slice(subject.get(end..found.start()).unwrap_or_default());
        }
        expand(replacement, &captures, &mut out)?;
        end = found.end();
        if !ctx.fits(out.len()) {
            return None;
        }
        if !options.global {
            break;
        }
        if found.is_empty() {
            // HTCondor copies a character and goes on behind it; at the end it gives up.
            out.push(*subject.get(end)?);
            end += 1;
        }
    }
    if options.full {
        out.extend_from_slice(subject.get(end..).unwrap_or_default());
    }
    Some(out)
}

/// Writes the replacement with `\0` to `\9` as the groups. `None`: there is no such group.
fn expand(replacement: &str, captures: &Captures<'_>, out: &mut Vec<u8>) -> Option<()> {
    // PCRE counts the groups up to the last that took part.
    let count =
        (0..captures.len()).rev().find(|group| captures.get(*group).is_some()).map_or(0, |last| last + 1);
    let mut bytes = replacement.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.peek().copied() {
            Some(digit) if byte == b'\\' && digit.is_ascii_digit() => {
                bytes.next();
                let group = usize::from(digit - b'0');
                if group >= count {
                    return None;
                }
                out.extend_from_slice(captures.get(group).map_or(&[], |found| found.as_bytes()));
            }
            _ => out.push(byte),
        }
    }
    Some(())
}
