//! Functions on regular expressions.
//!
//! HTCondor uses PCRE. This crate uses an engine whose time is linear in the text, because patterns may come from
//! people who are not trusted. A pattern that needs what the engine lacks (look-around, back references, atomic
//! groups) is an error.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use regex_automata::Input;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

use super::convert::answer;
use super::pattern_syntax::translate;
use super::{Args, Entry, Memo, entry};
use crate::eval::{Ctx, Val};
use crate::expr::{Id, Node, Program};

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
    /// Repetitions are lazy unless a `?` makes them greedy.
    ungreedy: bool,
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
            ungreedy: false,
            full: letters.contains('f'),
            global: letters.contains('g'),
        }
    }
}

/// The sizes of compiled patterns that are tried, in bytes. A pattern larger than the last is refused.
const SIZES: [usize; 12] = [
    1 << 9,
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
];

/// The size up to which a compiled pattern is ordinary, in bytes. Nearly all patterns are.
const ORDINARY: usize = 1 << 12;

/// The memory that a pattern may take for what it learns while it matches, in bytes. The more it may take, the longer
/// a text that it never saw can keep it learning.
const LEARNED: usize = 1 << 14;

/// The price of using a pattern that the program has compiled before, in steps.
const REMEMBERED: usize = 50;

/// The price of compiling an ordinary pattern, in steps.
const FRESH: usize = 1500;

/// The price of parsing a pattern for each of its bytes, in steps.
const FRESH_BYTE: usize = 8;

/// The price of compiling a pattern for each [`SIZES`]' first size that it takes, beyond [`FRESH`].
const FRESH_SIZE: usize = 70;

/// The price of a match in steps, whatever the text.
const MATCH: usize = 10;

/// The price of a match for each byte of the text and each [`SIZES`]' first size that the pattern takes, in steps.
const MATCH_SIZE: usize = 2;

/// The functions that compile a pattern.
const COMPILING_FUNCTIONS: [&str; 7] =
    ["regexp", "regexpMember", "regexps", "replace", "replaceAll", "stringList_regexpMember", "unresolved"];

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
    /// The smallest of [`SIZES`] that is enough.
    size: usize,
}

impl Built {
    fn is_ordinary(&self) -> bool {
        self.size <= ORDINARY
    }

    /// How often the pattern takes the first of [`SIZES`].
    fn weight(&self) -> usize {
        self.size / SIZES[0]
    }
}

/// A pattern that is ready to match.
#[derive(Debug)]
pub(super) struct Matcher<'r> {
    regex: Cow<'r, Regex>,
    /// The engine may look at all of the compiled pattern for each byte of a text: the size of the pattern, in the
    /// first of [`SIZES`].
    weight: usize,
}

impl Matcher<'_> {
    /// Whether the pattern matches a text.
    pub(super) fn is_match(&self, ctx: &Ctx<'_>, text: &str) -> bool {
        self.pay(ctx, text.len()) && self.regex.is_match(text.as_bytes())
    }

    /// Pays for a search in so many bytes.
    fn pay(&self, ctx: &Ctx<'_>, bytes: usize) -> bool {
        ctx.pay(MATCH + bytes.saturating_mul(self.weight * MATCH_SIZE))
    }

    /// The first match at or behind a place.
    fn captures_at(&self, text: &[u8], start: usize) -> Option<Captures> {
        captures(&self.regex, text, start)
    }
}

fn captures(regex: &Regex, text: &[u8], start: usize) -> Option<Captures> {
    let mut captures = regex.create_captures();
    regex.search_captures(&Input::new(text).range(start..), &mut captures);
    captures.is_match().then_some(captures)
}

/// How many compiled patterns are remembered at a time, in all expressions. A pattern beyond these is compiled at each
/// use, which takes time; neither the answer of an evaluation nor its steps depend on this.
const MOST_REMEMBERED: usize = 4096;

/// How many compiled patterns are remembered now.
static REMEMBERED_NOW: AtomicUsize = AtomicUsize::new(0);

impl Compiled {
    /// Remembers an ordinary pattern. `None`: it is not ordinary, or too many are remembered.
    fn remember(pattern: &str, options: Options, built: Built) -> Result<Self, Built> {
        let room = built.is_ordinary() && REMEMBERED_NOW.fetch_add(1, Relaxed) < MOST_REMEMBERED;
        if room {
            return Ok(Self { pattern: pattern.into(), options, built });
        }
        if built.is_ordinary() {
            REMEMBERED_NOW.fetch_sub(1, Relaxed);
        }
        Err(built)
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        REMEMBERED_NOW.fetch_sub(1, Relaxed);
    }
}

/// Compiles a pattern, or takes it from the memo of a call that compiled it before. `None`: the text is no pattern, or
/// the evaluation is out of steps.
///
/// A call whose pattern stands in the program (`written`) compiles the pattern once, so it pays little; whoever makes
/// the evaluator read a program anew pays [`price_of_fresh`] for that. A call that computes its pattern pays for
/// compiling, and each call pays for compiling a pattern that is not ordinary. The price of a call depends on the
/// expression and the ads alone, not on the patterns that are remembered.
pub(super) fn compile<'a>(
    ctx: &Ctx<'_>,
    memo: &'a Memo,
    written: bool,
    pattern: &str,
    options: Options,
) -> Option<Matcher<'a>> {
    let price = if written { REMEMBERED + pattern.len() } else { FRESH + FRESH_BYTE * pattern.len() };
    if !ctx.pay(price) {
        return None;
    }
    if let Some(known) = memo.get().filter(|known| &*known.pattern == pattern && known.options == options) {
        let weight = known.built.weight();
        return Some(Matcher { regex: Cow::Borrowed(known.built.regex.as_ref()?), weight });
    }
    let built =
        build(pattern, options, |size| size <= ORDINARY || ctx.pay(FRESH + FRESH_SIZE * (size / SIZES[0])));
    if ctx.bound().is_some() {
        return None;
    }
    let weight = built.weight();
    let regex = match Compiled::remember(pattern, options, built) {
        Ok(compiled) => match memo.set(compiled) {
            Ok(()) => Cow::Borrowed(memo.get()?.built.regex.as_ref()?),
            Err(compiled) => Cow::Owned(compiled.built.regex.clone()?),
        },
        Err(built) => Cow::Owned(built.regex?),
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
pub struct Pattern {
    regex: Regex,
    weight: usize,
}

impl Pattern {
    /// Compiles a pattern. With `caseless`, ASCII case does not count.
    ///
    /// `None`: the text is no pattern, or needs what is not supported (look-around, back references), or the compiled
    /// pattern would be too large.
    pub fn new(pattern: &str, caseless: bool) -> Option<Self> {
        Self::built(pattern, Options { caseless, ..Options::default() })
    }

    /// Compiles a pattern with options by letters, as in `regexp()`: `i` for caseless, `m` for lines, `s` and `x`. The letter
    /// `U` makes repetitions lazy, and lazy repetitions greedy. Other letters are ignored.
    ///
    /// `None`: as of [`Pattern::new`].
    pub fn with_options(pattern: &str, letters: &str) -> Option<Self> {
        Self::built(pattern, Options { ungreedy: letters.contains('U'), ..Options::of(letters) })
    }

    fn built(pattern: &str, options: Options) -> Option<Self> {
        let built = build(pattern, options, |_| true);
        let weight = built.weight();
        built.regex.map(|regex| Self { regex, weight })
    }

    /// How much of the pattern may be looked at for each byte of a text, as a multiple of what the smallest pattern takes.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The parts of the text that the groups of the first match captured; `None` if nothing matches.
    ///
    /// The first element is the whole match. As PCRE counts, the last element is the last group that took part in the
    /// match; a group before it that took no part is empty. A part that begins or ends within a character is empty too.
    pub fn groups<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let captures = captures(&self.regex, text.as_bytes(), 0)?;
        let group = |group| captures.get_group(group).and_then(|found| text.get(found.range()));
        Some((0..groups_in(&captures)).map(|number| group(number).unwrap_or_default()).collect())
    }
}

/// The number of groups as PCRE counts: up to the last that took part in the match.
fn groups_in(captures: &Captures) -> usize {
    let last = (0..captures.group_len()).rev().find(|group| captures.get_group(*group).is_some());
    last.map_or(0, |last| last + 1)
}

/// The most that a use of a pattern costs a call on short texts, in steps. `None`: the pattern is not ordinary.
pub(crate) fn price_on_short_texts(pattern: &str, letters: &str) -> Option<usize> {
    let built = build(pattern, Options::of(letters), |size| size <= ORDINARY);
    let matching = SHORT * built.weight() * MATCH_SIZE;
    built.is_ordinary().then(|| FRESH + pattern.len() + MATCH + matching)
}

/// The length of a short text.
const SHORT: usize = 64;

/// The price of compiling the patterns in a program that nobody has evaluated before.
pub(super) fn price_of_fresh(program: &Program) -> usize {
    let price = |node: &Node| match node {
        Node::Call(call) if COMPILING_FUNCTIONS.iter().any(|name| call.name.is(name)) => FRESH,
        Node::Ad(ad) => ad.unsorted().map(|(_, expr)| price_of_fresh(expr.program())).sum(),
        _ => 0,
    };
    program.nodes.iter().map(price).sum()
}

/// Compiles a pattern, if `allowed` allows the sizes that are tried. The pattern is parsed once, since parsing a long one
/// takes milliseconds. The smallest size is tried first, because nearly all patterns are small; each try stops as soon as
/// the pattern exceeds the size.
fn build(pattern: &str, options: Options, allowed: impl Fn(usize) -> bool) -> Built {
    let mut built = Built { regex: None, size: SIZES[0] };
    let Some(translated) = translate(pattern, options.extended) else { return built };
    let Ok(parsed) = syntax::parse_with(&translated, &syntax_of(options)) else { return built };
    for size in SIZES {
        built.size = size;
        if !allowed(size) {
            break;
        }
        match Regex::builder().configure(within(size)).build_from_hir(&parsed) {
            Err(error) if error.size_limit().is_some() => {}
            outcome => {
                built.regex = outcome.ok();
                break;
            }
        }
    }
    built
}

fn within(size: usize) -> Config {
    Config::new()
        .utf8_empty(false)
        // Searching for words first would be faster on long texts, but preparing it takes longer than most searches.
        .auto_prefilter(false)
        .nfa_size_limit(Some(size))
        .onepass_size_limit(Some(size))
        .hybrid_cache_capacity(LEARNED)
}

fn syntax_of(options: Options) -> syntax::Config {
    syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(options.caseless)
        .multi_line(options.multiline)
        .dot_matches_new_line(options.dotall)
        .ignore_whitespace(options.extended)
        .swap_greed(options.ungreedy)
        .octal(false)
        .nest_limit(100)
}

/// The values of all arguments. `Err` is what the function returns: error if one of the arguments is an error, and
/// else undefined if one of them is undefined.
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

/// Whether the arguments in these places are written in the program, or missing.
pub(super) fn written(args: Args<'_>, places: &[usize]) -> bool {
    let is_written = |id: &Id| matches!(args.at.program.node(*id), Some(Node::Literal(_)));
    places.iter().all(|place| args.ids.get(*place).is_none_or(is_written))
}

/// A string argument; empty if it is missing. `None`: it is no string, or the evaluation is out of steps.
fn text<'v>(values: &'v [Val<'_>], place: usize, ctx: &Ctx<'_>) -> Option<&'v str> {
    let text = values.get(place).map_or(Some(""), Val::as_str)?;
    ctx.read(text.len()).then_some(text)
}

fn regexp<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let values = known(ctx, args)?;
    let matched = || {
        let letters = text(&values, 2, ctx)?;
        let subject = text(&values, 1, ctx)?;
        let matcher =
            compile(ctx, args.memo, written(args, &[0, 2]), text(&values, 0, ctx)?, Options::of(letters))?;
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
    let matcher = compile(ctx, args.memo, written(args, &[0, 2]), pattern, Options::of(letters));
    let mut undefined = false;
    for item in list.iter(ctx) {
        match item {
            Val::Str(text) => {
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
    let matcher = compile(ctx, args.memo, written(args, &[0, 3]), pattern, options).ok_or(Val::Error)?;
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
    // A search may look at all that is left, wherever its match ends. The replacement is paid for, too: its groups may
    // be empty.
    while matcher.pay(ctx, subject.len().saturating_sub(end))
        && ctx.scan(replacement.len())
        && let Some(captures) = matcher.captures_at(subject, end)
    {
        let found = captures.get_group(0)?;
        let before = out.bytes.len();
        if options.full {
            out.put(subject.get(end..found.start).unwrap_or_default())?;
        }
        expand(replacement, subject, &captures, &mut out)?;
        end = found.end;
        if !ctx.read(out.bytes.len() - before) {
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
    }
    if ctx.bound().is_some() {
        return None;
    }
    if options.full {
        out.put(subject.get(end..).unwrap_or_default())?;
    }
    Some(out.bytes)
}

/// Writes the replacement, with the groups for `\0` to `\9`. `None`: there is no such group, or the text is too long.
fn expand(replacement: &str, subject: &[u8], captures: &Captures, out: &mut Growing<'_, '_>) -> Option<()> {
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
                let found = captures.get_group(group).and_then(|found| subject.get(found.range()));
                out.put(found.unwrap_or_default())?;
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
    fn the_size_is_that_of_the_compiled_pattern() {
        for (pattern, size, compiles) in [
            ("", 1 << 9, true),
            ("^slot[0-9]+(_[0-9]+)?@.*\\.example\\.(com|org)$", 1 << 11, true),
            ("^(gpu|cpu|mem)-(a100|h100|l40s|v100|t4)-[0-9]{2,4}$", 1 << 12, true),
            ("^([0-9]{1,3}\\.){3}[0-9]{1,3}$", 1 << 11, true),
            ("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", 1 << 14, true),
            (".{1000}", 1 << 17, true),
            ("(a{1,110}){1,110}b", 1 << 20, true),
            ("[ T].{8000}[^ -z]", 1 << 20, true),
            (".{10000}", 1 << 20, true),
            (".{20000}", 1 << 20, false),
            ("(", 1 << 9, false),
            ("a(?=b)", 1 << 9, false),
        ] {
            let built = build(pattern, Options::default(), |_| true);
            assert_eq!((built.size, built.regex.is_some()), (size, compiles), "{pattern}");
        }
    }

    #[test]
    fn a_replacement_grows_to_the_bound_and_not_beyond() {
        let text = "a".repeat(100);
        let regex = build(".*", Options::default(), |_| true).regex.unwrap();
        let captures = captures(&regex, text.as_bytes(), 0).unwrap();
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
            let done = expand(&replacement, text.as_bytes(), &captures, &mut out).is_some();
            assert_eq!((out.bytes.len(), ctx.bound()), (written, bound), "{}", replacement.len());
            assert_eq!(done, bound.is_none());
        }
    }
}
