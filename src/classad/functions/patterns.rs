//! Functions on regular expressions.
//!
//! HTCondor uses PCRE; we use an engine whose time is linear in the text, because patterns come from
//! tenants. What it lacks (look-around, back references, atomic groups) is an error here.

use std::borrow::Cow;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::convert::answer;
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

fn build(pattern: &str, options: Options) -> Option<Regex> {
    if repeats_a_repetition(pattern, options.extended) {
        return None;
    }
    RegexBuilder::new(&translate(pattern))
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

/// Whether a repetition follows another, or nothing that can be repeated, which PCRE refuses and the engine
/// does not; and a possessive one (`a*+`), which the engine cannot do.
fn repeats_a_repetition(pattern: &str, extended: bool) -> bool {
    let (mut class, mut quantified) = (false, true);
    let mut rest = pattern.char_indices();
    while let Some((at, c)) = rest.next() {
        let after = pattern.get(at + c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => {
                // Nothing is there to be repeated at a word's edge.
                quantified = !class && matches!(rest.next(), Some((_, 'b' | 'B' | 'A' | 'z' | 'Z' | 'G')));
            }
            '[' if !class => {
                class = true;
                // A bracket that comes first is a character.
                let inside = after.strip_prefix('^').unwrap_or(after);
                let skipped = after.len() - inside.len() + usize::from(inside.starts_with(']'));
                rest.by_ref().take(skipped).for_each(drop);
            }
            ']' if class => (class, quantified) = (false, false),
            _ if class => {}
            _ if extended && c.is_ascii_whitespace() => {}
            '*' | '+' | '?' if quantified => return true,
            '{' if quantified && repetition(after) => return true,
            '*' | '+' | '?' | '{' if c != '{' || repetition(after) => {
                quantified = true;
                let closed = if c == '{' { after.find('}').map_or(0, |end| end + 1) } else { 0 };
                rest.by_ref().take(closed).for_each(drop);
                if after.get(closed..).is_some_and(|more| more.starts_with('?')) {
                    rest.next();
                }
            }
            '(' => {
                quantified = true;
                if after.starts_with('?') {
                    rest.next();
                }
            }
            '|' | '^' | '$' => quantified = true,
            _ => quantified = false,
        }
    }
    false
}

/// Rewrites what PCRE reads differently: in a class, `[` and doubled operators stand for themselves; a
/// brace that starts no repetition does too.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.char_indices();
    let mut class = false;
    let mut class_start = false;
    while let Some((at, c)) = rest.next() {
        let after = pattern.get(at + c.len_utf8()..).unwrap_or_default();
        let first = std::mem::take(&mut class_start);
        match c {
            '\\' => {
                out.push('\\');
                let Some((_, escaped)) = rest.next() else { break };
                translate_escape(escaped, class, &mut out);
            }
            '[' if class && after.starts_with(':') && after.contains(":]") => {
                let named = after.find(":]").map_or(0, |end| end + 2);
                out.push('[');
                for (_, c) in rest.by_ref().take(named) {
                    out.push(c);
                }
            }
            '[' if class => out.push_str("\\["),
            '[' => {
                class = true;
                class_start = true;
                out.push('[');
            }
            '^' if class && first => {
                class_start = true;
                out.push('^');
            }
            ']' if class && first => out.push_str("\\]"),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !class && !repetition(after) => out.push_str("\\{"),
            '}' if !class && !out_in_repetition(pattern, at) => out.push_str("\\}"),
            _ => out.push(c),
        }
    }
    out
}

fn translate_escape(escaped: char, class: bool, out: &mut String) {
    match escaped {
        'h' if class => out.push_str("x20\\t"),
        'h' => {
            out.pop();
            out.push_str("[\\x20\\t]");
        }
        'Z' if !class => out.push('z'),
        'e' => out.push_str("x1b"),
        '<' | '>' => {
            out.pop();
            out.push(escaped);
        }
        _ => out.push(escaped),
    }
}

/// Whether `n}`, `n,}` or `n,m}` follows.
fn repetition(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// Whether the brace at this place closes a repetition (or a `\x{..}`).
fn out_in_repetition(pattern: &str, at: usize) -> bool {
    let before = pattern.get(..at).unwrap_or_default();
    let Some(open) = before.rfind('{') else { return false };
    let inside = pattern.get(open + 1..).unwrap_or_default();
    repetition(inside) || before.get(..open).is_some_and(|head| head.ends_with(['x', 'p', 'P']))
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
