//! Functions on regular expressions.
//!
//! HTCondor uses PCRE. This crate uses an engine whose time is linear in the text, because patterns may come from
//! people who are not trusted. A pattern that needs what the engine lacks (look-around, back references, atomic
//! groups) is an error.

use std::borrow::Cow;

use regex::Error;
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::convert::answer;
use super::pattern_syntax::translate;
use super::{Args, Entry, Memo, entry};
use crate::eval::{Ctx, Val};

pub(super) static TABLE: [Entry; 5] = [
    entry("regexp", 2, 3, |ctx, args| answer(regexp(ctx, args))),
    entry("regexpmember", 2, 3, |ctx, args| answer(member(ctx, args))),
    entry("regexps", 3, 4, |ctx, args| answer(substitute(ctx, args, ""))),
    entry("replace", 3, 4, |ctx, args| answer(substitute(ctx, args, "f"))),
    entry("replaceall", 3, 4, |ctx, args| answer(substitute(ctx, args, "fg"))),
];

/// The options that letters ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are flags, each on its own")]
pub(super) struct Options {
    caseless: bool,
    multiline: bool,
    dotall: bool,
    extended: bool,
    /// The result is the whole text with the match replaced, not only the replacement.
    full: bool,
    /// All matches are replaced, not only the first.
    global: bool,
}

impl Options {
    /// Reads option letters; unknown letters are ignored.
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

/// The size up to which a compiled pattern has the ordinary price, in bytes. Nearly all patterns fit.
const ORDINARY: usize = 1 << 12;

/// The sizes that are tried, as multiples of [`ORDINARY`]. A pattern larger than the last is refused.
const WEIGHTS: [usize; 5] = [1, 4, 16, 64, 256];

/// The price of compiling an ordinary pattern, in steps.
const COMPILING: usize = 50;

/// A pattern, and the result of compiling it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pattern: Box<str>,
    options: Options,
    built: Built,
}

/// The result of compiling a pattern.
#[derive(Clone, Debug)]
struct Built {
    /// `None`: the text is no pattern, or the compiled pattern is too large.
    regex: Option<Regex>,
    /// The smallest of [`WEIGHTS`] that is enough. The engine may look at all of the compiled pattern for each byte of
    /// a text, so a match costs so many times the ordinary price.
    weight: usize,
}

/// A pattern that is ready to match.
#[derive(Debug)]
pub(super) struct Matcher<'r> {
    regex: Cow<'r, Regex>,
    weight: usize,
}

impl Matcher<'_> {
    /// Whether the pattern matches a text. The caller has paid for reading the text.
    pub(super) fn is_match(&self, ctx: &Ctx<'_>, text: &str) -> bool {
        self.pay_beyond_reading(ctx, text.len()) && self.regex.is_match(text.as_bytes())
    }

    /// Pays what a match costs beyond reading so many bytes: nothing for an ordinary pattern.
    fn pay_beyond_reading(&self, ctx: &Ctx<'_>, bytes: usize) -> bool {
        ctx.pay((bytes / 16 + 1) * (self.weight - 1))
    }

    /// Pays for one more match in a text that was searched before; so many bytes are left of it.
    fn pay_again(&self, ctx: &Ctx<'_>, bytes: usize) -> bool {
        ctx.pay((bytes / 16 + 1) * self.weight)
    }
}

/// Compiles a pattern, or takes it from the memo of a call that compiled it before. `None`: the text is no pattern, or
/// the evaluation is out of steps.
pub(super) fn compile<'a>(
    ctx: &Ctx<'_>,
    memo: &'a Memo,
    pattern: &str,
    options: Options,
) -> Option<Matcher<'a>> {
    // Compiling costs far more than looking at the characters. The price is the same for a pattern from the memo, so
    // that an expression always costs the same.
    if !ctx.pay(COMPILING + pattern.len()) {
        return None;
    }
    let first =
        memo.get_or_init(|| Compiled { pattern: pattern.into(), options, built: build(pattern, options) });
    let known = &*first.pattern == pattern && first.options == options;
    let built = if known { Cow::Borrowed(&first.built) } else { Cow::Owned(build(pattern, options)) };
    let weight = built.weight;
    // The size is known only when the pattern is compiled.
    if !ctx.pay(COMPILING * (weight - 1)) {
        return None;
    }
    let regex = match built {
        Cow::Borrowed(built) => Cow::Borrowed(built.regex.as_ref()?),
        Cow::Owned(built) => Cow::Owned(built.regex?),
    };
    Some(Matcher { regex, weight })
}

/// A regular expression for use outside an expression: the same syntax, and the same bounds, as in `regexp()`.
///
/// Matching takes time linear in the text, and a compiled pattern takes at most about 1 MiB. Cloning is cheap.
///
/// ```
/// use classad::Pattern;
///
/// let pattern = Pattern::new("^(.*)@(cms|atlas)\\.org$", false).unwrap();
/// assert_eq!(pattern.groups("anna@cms.org"), Some(vec!["anna@cms.org", "anna", "cms"]));
/// assert_eq!(pattern.groups("anna@example.org"), None);
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern. With `caseless`, ASCII case does not count.
    ///
    /// `None`: the text is no pattern, or needs what is not supported (look-around, back references), or the compiled
    /// pattern would be too large.
    pub fn new(pattern: &str, caseless: bool) -> Option<Self> {
        build(pattern, Options { caseless, ..Options::default() }).regex.map(Self)
    }

    /// The parts of the text that the groups of the first match captured; `None` if nothing matches.
    ///
    /// The first element is the whole match. As PCRE counts, the last element is the last group that took part in the
    /// match; a group before it that took no part is empty. A part that begins or ends within a character is empty too.
    pub fn groups<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let captures = self.0.captures(text.as_bytes())?;
        let group = |group| captures.get(group).and_then(|found| std::str::from_utf8(found.as_bytes()).ok());
        Some((0..groups_in(&captures)).map(|number| group(number).unwrap_or_default()).collect())
    }
}

/// The number of groups as PCRE counts: up to the last that took part in the match.
fn groups_in(captures: &Captures<'_>) -> usize {
    let last = (0..captures.len()).rev().find(|group| captures.get(*group).is_some());
    last.map_or(0, |last| last + 1)
}

/// Whether matching the pattern costs no more than reading the text. Also true of a text that is no pattern.
pub(crate) fn has_ordinary_price(pattern: &str, letters: &str) -> bool {
    let options = Options::of(letters);
    let within = |translated: String| build_within(ORDINARY, &translated, options);
    !matches!(translate(pattern, options.extended).map(within), Some(Err(Error::CompiledTooBig(_))))
}

/// Compiles a pattern. The smallest size is tried first, because nearly all patterns fit; each try stops as soon as
/// the pattern exceeds the size.
fn build(pattern: &str, options: Options) -> Built {
    let mut built = Built { regex: None, weight: 1 };
    let Some(translated) = translate(pattern, options.extended) else { return built };
    for weight in WEIGHTS {
        built.weight = weight;
        match build_within(weight * ORDINARY, &translated, options) {
            Err(Error::CompiledTooBig(_)) => {}
            outcome => {
                built.regex = outcome.ok();
                break;
            }
        }
    }
    built
}

fn build_within(size: usize, translated: &str, options: Options) -> Result<Regex, Error> {
    RegexBuilder::new(translated)
        .unicode(false)
        .case_insensitive(options.caseless)
        .multi_line(options.multiline)
        .dot_matches_new_line(options.dotall)
        .ignore_whitespace(options.extended)
        .octal(false)
        .size_limit(size)
        .dfa_size_limit(1 << 20)
        .nest_limit(100)
        .build()
}

/// The values of all arguments; `Err` with an error or undefined if one of them is that.
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

/// A string argument; empty if it is missing. `None`: it is no string, or the evaluation is out of steps.
fn text<'v>(values: &'v [Val<'_>], place: usize, ctx: &Ctx<'_>) -> Option<&'v str> {
    let text = values.get(place).map_or(Some(""), Val::as_str)?;
    ctx.pay(text.len() / 16).then_some(text)
}

fn regexp<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let matched = || {
        let letters = text(&values, 2, ctx)?;
        let subject = text(&values, 1, ctx)?;
        let matcher = compile(ctx, args.memo, text(&values, 0, ctx)?, Options::of(letters))?;
        Some(matcher.is_match(ctx, subject))
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
    // In this function, a text that is no pattern matches nothing.
    let matcher = compile(ctx, args.memo, pattern, Options::of(letters));
    let mut undefined = false;
    for item in list.iter(ctx) {
        match item {
            Val::Str(text) => {
                ctx.pay(text.len() / 16);
                if matcher.as_ref().is_some_and(|matcher| matcher.is_match(ctx, &text)) {
                    return Ok(Val::Bool(true));
                }
            }
            Val::Undefined => undefined = true,
            _ => return Err(Val::Error),
        }
    }
    Ok(if undefined { Val::Undefined } else { Val::Bool(false) })
}

/// Replaces matches; `always` are the options that the function has in any case.
fn substitute<'a>(ctx: &Ctx<'a>, args: Args<'a>, always: &str) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let (Some(pattern), Some(subject), Some(replacement), Some(letters)) =
        (text(&values, 0, ctx), text(&values, 1, ctx), text(&values, 2, ctx), text(&values, 3, ctx))
    else {
        return Err(Val::Error);
    };
    let options = Options::of(&format!("{letters}{always}"));
    let matcher = compile(ctx, args.memo, pattern, options).ok_or(Val::Error)?;
    let replaced = replace(ctx, &matcher, subject, replacement, options).ok_or(Val::Error)?;
    Ok(ctx.string(String::from_utf8_lossy(&replaced)))
}

/// A text that grows piece by piece. The bound on strings is checked before each piece, because a replacement of a few
/// bytes may stand for gigabytes.
struct Growing<'c, 'a> {
    ctx: &'c Ctx<'a>,
    bytes: Vec<u8>,
}

impl Growing<'_, '_> {
    /// Adds a piece. `None`: the text would be too long.
    fn put(&mut self, piece: &[u8]) -> Option<()> {
        let fits = self.ctx.allows(self.bytes.len() + piece.len());
        fits.then(|| self.bytes.extend_from_slice(piece))
    }
}

/// The text with its matches replaced, or the replacements alone, as the options tell. `None`: a bound was hit, or a
/// replacement names a group that does not exist.
fn replace(
    ctx: &Ctx<'_>,
    matcher: &Matcher<'_>,
    subject: &str,
    replacement: &str,
    options: Options,
) -> Option<Vec<u8>> {
    let subject = subject.as_bytes();
    let (mut out, mut end) = (Growing { ctx, bytes: Vec::new() }, 0);
    if !matcher.pay_beyond_reading(ctx, subject.len()) {
        return None;
    }
    while let Some(captures) = matcher.regex.captures_at(subject, end) {
        let found = captures.get(0)?;
        if options.full {
            out.put(subject.get(end..found.start()).unwrap_or_default())?;
        }
        expand(replacement, &captures, &mut out)?;
        end = found.end();
        if !ctx.fits(out.bytes.len()) {
            return None;
        }
        if !options.global {
            break;
        }
        if found.is_empty() {
            // HTCondor copies a character and goes on behind it; at the end of the text it gives up.
            out.put(subject.get(end..=end)?)?;
            end += 1;
        }
        // A search may look at all that is left, wherever its match ends. The replacement is paid for, too: its groups
        // may be empty.
        let left = subject.len().saturating_sub(end);
        if !matcher.pay_again(ctx, left) || !ctx.pay(replacement.len() / 16) {
            return None;
        }
    }
    if options.full {
        out.put(subject.get(end..).unwrap_or_default())?;
    }
    Some(out.bytes)
}

/// Writes the replacement, with the groups for `\0` to `\9`. `None`: there is no such group, or the text is too long.
fn expand(replacement: &str, captures: &Captures<'_>, out: &mut Growing<'_, '_>) -> Option<()> {
    let count = groups_in(captures);
    let mut bytes = replacement.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.peek().copied() {
            Some(digit) if byte == b'\\' && digit.is_ascii_digit() => {
                bytes.next();
                let group = usize::from(digit - b'0');
                if group >= count {
                    return None;
                }
                out.put(captures.get(group).map_or(&[], |found| found.as_bytes()))?;
            }
            _ => out.put(&[byte])?,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Arena;
    use crate::{Bound, Env};

    #[test]
    fn the_weight_is_that_of_the_compiled_pattern() {
        for (pattern, weight, compiles) in [
            ("", 1, true),
            ("^slot[0-9]+(_[0-9]+)?@.*\\.example\\.(com|org)$", 1, true),
            ("^(gpu|cpu|mem)-(a100|h100|l40s|v100|t4)-[0-9]{2,4}$", 1, true),
            ("^([0-9]{1,3}\\.){3}[0-9]{1,3}$", 1, true),
            ("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", 4, true),
            (".{1000}", 64, true),
            ("[ T].{8000}[^ -z]", 256, true),
            (".{10000}", 256, true),
            (".{20000}", 256, false),
            ("(", 1, false),
            ("a(?=b)", 1, false),
        ] {
            let built = build(pattern, Options::default());
            assert_eq!((built.weight, built.regex.is_some()), (weight, compiles), "{pattern}");
        }
    }

    #[test]
    fn a_replacement_grows_to_the_bound_and_not_beyond() {
        let text = "a".repeat(100);
        let captures = Regex::new(".*").unwrap().captures(text.as_bytes()).unwrap();
        let (arena, mut env) = (Arena::default(), Env::at(0));
        env.limits.string = 1000;
        for (replacement, written, bound) in [
            ("\\0".repeat(10), 1000, None),
            ("\\0".repeat(11), 1000, Some(Bound::StringSize)),
            ("\\0".repeat(1_000_000), 1000, Some(Bound::StringSize)),
            ("x".repeat(1_000_000), 1000, Some(Bound::StringSize)),
            ("x\\0".repeat(1_000_000), 910, Some(Bound::StringSize)),
        ] {
            let ctx = Ctx::new(&env, &arena, None, None);
            let mut out = Growing { ctx: &ctx, bytes: Vec::new() };
            let done = expand(&replacement, &captures, &mut out).is_some();
            assert_eq!((out.bytes.len(), ctx.bound()), (written, bound), "{}", replacement.len());
            assert_eq!(done, bound.is_none());
        }
    }
}
