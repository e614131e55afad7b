//! Functions on lists that are written in a string.

use super::convert::{Delimiters, items, items_as_they_are, leading_number, length, to_integer, to_real};
use super::patterns::{self, Options};
use super::{Args, Entry, entry};
use crate::eval::{Ctx, Text, Val};

pub(super) static TABLE: [Entry; 11] = [
    entry("stringlistsize", 1, 2, size),
    entry("stringlistsum", 1, 2, |ctx, args| summarize(ctx, args, Summary::Sum)),
    entry("stringlistavg", 1, 2, |ctx, args| summarize(ctx, args, Summary::Average)),
    entry("stringlistmin", 1, 2, |ctx, args| summarize(ctx, args, Summary::Least)),
    entry("stringlistmax", 1, 2, |ctx, args| summarize(ctx, args, Summary::Greatest)),
    entry("stringlistmember", 2, 3, |ctx, args| member(ctx, args, same)),
    entry("stringlistimember", 2, 3, |ctx, args| member(ctx, args, same_caseless)),
    entry("stringlistsubsetmatch", 2, 3, |ctx, args| subset(ctx, args, same)),
    entry("stringlistisubsetmatch", 2, 3, |ctx, args| subset(ctx, args, same_caseless)),
    entry("stringlistsintersect", 2, 3, intersect),
    entry("stringlist_regexpmember", 2, 4, regexp_member),
];

/// The default delimiters of functions on one list.
const DELIMITERS: &str = ", ";
/// The default delimiters of functions that look for members.
const MEMBER_DELIMITERS: &str = ", \t\r\n";

type Same = fn(&str, &str) -> bool;

fn same(a: &str, b: &str) -> bool {
    a == b
}

fn same_caseless(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The delimiters in an argument, or the default. `None`: the argument is no string, or the evaluation is out of
/// steps.
fn delimiters<'a>(ctx: &Ctx<'a>, args: Args<'a>, place: usize, default: &str) -> Option<Delimiters> {
    match args.eval_if(ctx, place) {
        None => Delimiters::of(ctx, default),
        Some(Val::Str(text)) => Delimiters::of(ctx, &text),
        Some(_) => None,
    }
}

/// The list and the delimiters of a function on one list.
fn one_list<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Option<(Text<'a>, Delimiters)> {
    let list = args.eval(ctx, 0);
    let delimiters = delimiters(ctx, args, 1, DELIMITERS)?;
    match list {
        Val::Str(text) => ctx.pay(text.len()).then_some((text, delimiters)),
        _ => None,
    }
}

fn size<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some((list, delimiters)) = one_list(ctx, args) else { return Val::Error };
    Val::Int(length(items(&list, &delimiters).count()))
}

#[derive(Clone, Copy)]
enum Summary {
    Sum,
    Average,
    Least,
    Greatest,
}

fn summarize<'a>(ctx: &Ctx<'a>, args: Args<'a>, summary: Summary) -> Val<'a> {
    let Some((list, delimiters)) = one_list(ctx, args) else { return Val::Error };
    let mut integers = true;
    // Where HTCondor means the most negative float, it starts from the smallest positive one, and so finds no maximum
    // below it.
    let mut result: f64 = match summary {
        Summary::Sum | Summary::Average => 0.0,
        Summary::Least => f64::from(f32::MAX),
        Summary::Greatest => f64::from(f32::MIN_POSITIVE),
    };
    let mut count = 0_i64;
    for item in items(&list, &delimiters) {
        let Some((number, _)) = leading_number(item) else { return Val::Error };
        integers &= item.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'));
        count += 1;
        match summary {
            Summary::Sum | Summary::Average => result += number,
            Summary::Least => result = if number < result { number } else { result },
            Summary::Greatest => result = if number > result { number } else { result },
        }
    }
    if count == 0 {
        return match summary {
            Summary::Sum | Summary::Average => Val::Real(0.0),
            Summary::Least | Summary::Greatest => Val::Undefined,
        };
    }
    if matches!(summary, Summary::Average) {
        result /= to_real(count);
    }
    if integers { Val::Int(to_integer(result)) } else { Val::Real(result) }
}

/// Two string arguments and the delimiters. An argument that is undefined counts as empty. `Err` is what the function
/// returns: both are undefined, or one is no string.
fn two_strings<'a>(
    ctx: &Ctx<'a>,
    args: Args<'a>,
) -> Result<(Option<Text<'a>>, Option<Text<'a>>, Delimiters), Val<'a>> {
    let read = |place| match args.eval(ctx, place) {
        Val::Str(text) => Ok(Some(text)),
        Val::Undefined => Ok(None),
        _ => Err(Val::Error),
    };
    let (first, second) = (read(0), read(1));
    let delimiters = match args.eval_if(ctx, 2) {
        None | Some(Val::Undefined) => Delimiters::of(ctx, MEMBER_DELIMITERS),
        Some(Val::Str(text)) => Delimiters::of(ctx, &text),
        Some(_) => None,
    };
    let delimiters = delimiters.ok_or(Val::Error)?;
    let (first, second) = (first?, second?);
    let bytes = first.as_deref().map_or(0, str::len) + second.as_deref().map_or(0, str::len);
    if !ctx.pay(bytes) {
        return Err(Val::Error);
    }
    if first.is_none() && second.is_none() {
        return Err(Val::Undefined);
    }
    Ok((first, second, delimiters))
}

fn member<'a>(ctx: &Ctx<'a>, args: Args<'a>, same: Same) -> Val<'a> {
    let (wanted, list, delimiters) = match two_strings(ctx, args) {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    let (Some(wanted), Some(list)) = (wanted, list) else { return Val::Bool(false) };
    Val::Bool(items(&list, &delimiters).any(|item| same(item, &wanted)))
}

fn subset<'a>(ctx: &Ctx<'a>, args: Args<'a>, same: Same) -> Val<'a> {
    let (part, whole, delimiters) = match two_strings(ctx, args) {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    let (part, whole) = (part.as_deref().unwrap_or_default(), whole.as_deref());
    let Some(whole) = whole else { return Val::Bool(part.is_empty()) };
    let whole: Vec<&str> = items(whole, &delimiters).collect();
    // An empty list is a subset of any list; for HTCondor, a list of nothing but delimiters is a subset of none.
    if !part.is_empty() && items(part, &delimiters).next().is_none() {
        return Val::Bool(false);
    }
    Val::Bool(
        items(part, &delimiters).all(|item| {
            pay_for_search(ctx, item, whole.len()) && whole.iter().any(|known| same(known, item))
        }),
    )
}

fn intersect<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let has = |test: fn(&Val<'a>) -> bool| (0..args.len()).any(|place| test(&args.eval(ctx, place)));
    if has(|value| matches!(value, Val::Error)) {
        return Val::Error;
    }
    if has(|value| matches!(value, Val::Undefined)) {
        return Val::Undefined;
    }
    let (first, second, delimiters) = match two_strings(ctx, args) {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    // The other functions on two lists have default delimiters of their own. This function has those of the functions
    // on one list, and uses them also if the delimiters are given but empty.
    let own = args.len() > 2 && !delimiters.is_empty();
    let delimiters = if own { Some(delimiters) } else { Delimiters::of(ctx, DELIMITERS) };
    let Some(delimiters) = delimiters else { return Val::Error };
    let (Some(first), Some(second)) = (first, second) else { return Val::Undefined };
    // And only this function keeps the white space around items.
    let second: Vec<&str> = items_as_they_are(&second, &delimiters).collect();
    Val::Bool(
        items_as_they_are(&first, &delimiters)
            .any(|item| pay_for_search(ctx, item, second.len()) && second.contains(&item)),
    )
}

/// Pays for comparing an item with so many others. `false`: no steps are left.
fn pay_for_search(ctx: &Ctx<'_>, item: &str, others: usize) -> bool {
    ctx.pay(others.saturating_mul(1 + item.len() / 16))
}

fn regexp_member<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (pattern, list) = (args.eval(ctx, 0), args.eval(ctx, 1));
    let Some(delimiters) = delimiters(ctx, args, 2, DELIMITERS) else { return Val::Error };
    let options = if args.len() > 3 { args.eval(ctx, 3) } else { ctx.string("") };
    let (Some(pattern), Some(list), Some(options)) = (pattern.as_str(), list.as_str(), options.as_str())
    else {
        return Val::Error;
    };
    let options = Options::of(&options.to_ascii_lowercase());
    let written = patterns::written(args, &[0, 3]);
    let matcher =
        patterns::compile(ctx, args.memo, written, pattern, options).filter(|_| ctx.pay(list.len()));
    let Some(matcher) = matcher else { return Val::Error };
    if items(list, &delimiters).next().is_none() {
        return Val::Undefined;
    }
    Val::Bool(items(list, &delimiters).any(|item| matcher.is_match(ctx, item)))
}
