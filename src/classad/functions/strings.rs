//! Functions on strings, and conversions.

use std::cmp::Ordering;

use super::convert::{answer, leading_number, length, lenient_number, to_c_int, to_integer, wrap_c_int};
use super::{ANY, Args, Entry, entry};
use crate::eval::{Ctx, Text, Val, compare_caseless};

pub(super) static TABLE: [Entry; 11] = [
    entry("strcat", 0, ANY, strcat),
    entry("toupper", 1, 1, |ctx, args| recase(ctx, args, str::to_ascii_uppercase)),
    entry("tolower", 1, 1, |ctx, args| recase(ctx, args, str::to_ascii_lowercase)),
    entry("substr", 2, 3, |ctx, args| answer(substr(ctx, args))),
    entry("strcmp", 2, 2, |ctx, args| compare(ctx, args, str::cmp)),
    entry("stricmp", 2, 2, |ctx, args| compare(ctx, args, compare_caseless)),
    entry("string", 1, 1, string),
    entry("int", 1, 1, int),
    entry("real", 1, 1, real),
    entry("bool", 1, 1, bool),
    entry("interval", 1, 1, interval),
];

/// A value as text. `Err`: the value is undefined or an error, which the function returns.
pub(super) fn text<'a>(ctx: &Ctx<'a>, value: Val<'a>) -> Result<Text<'a>, Val<'a>> {
    value.to_text(ctx).ok_or(value)
}

fn strcat<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let mut whole = String::new();
    for place in 0..args.len() {
        match text(ctx, args.eval(ctx, place)) {
            Ok(part) if ctx.allows(whole.len() + part.len()) && ctx.fits(part.len()) => whole.push_str(&part),
            Ok(_) => return Val::Error,
            Err(value) => return value,
        }
    }
    ctx.string(whole)
}

fn recase<'a>(ctx: &Ctx<'a>, args: Args<'a>, recase: fn(&str) -> String) -> Val<'a> {
    match text(ctx, args.eval(ctx, 0)) {
        Ok(text) if ctx.read(text.len()) => ctx.string(recase(&text)),
        Ok(_) => Val::Error,
        Err(value) => value,
    }
}

/// `substr()`, as in Perl: a negative offset counts from the end, and a negative length leaves off so many bytes.
fn substr<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let values: Vec<Val<'a>> = (0..args.len()).map(|place| args.eval(ctx, place)).collect();
    if values.iter().any(|value| matches!(value, Val::Undefined)) {
        return Err(Val::Undefined);
    }
    let (text, offset, wanted) = match values.as_slice() {
        [Val::Str(text), Val::Int(offset)] => (text, i64::from(wrap_c_int(*offset)), i64::MAX),
        [Val::Str(text), Val::Int(offset), Val::Int(length)] => {
            (text, wrap_c_int(*offset).into(), wrap_c_int(*length).into())
        }
        _ => return Err(Val::Error),
    };
    let size = length(text.len());
    let start = if offset < 0 { offset.saturating_add(size).max(0) } else { offset.min(size) };
    let rest = size - start;
    let count = if wanted < 0 { rest.saturating_add(wanted).max(0) } else { wanted.min(rest) };
    if !ctx.read(usize::try_from(count).unwrap_or(0)) {
        return Err(Val::Error);
    }
    let bytes = text.as_bytes().iter().copied();
    let skip = usize::try_from(start).unwrap_or(0);
    let part: Vec<u8> = bytes.skip(skip).take(usize::try_from(count).unwrap_or(0)).collect();
    Ok(ctx.string(String::from_utf8_lossy(&part)))
}

fn compare<'a>(ctx: &Ctx<'a>, args: Args<'a>, order: fn(&str, &str) -> Ordering) -> Val<'a> {
    let (a, b) = (args.eval(ctx, 0), args.eval(ctx, 1));
    match (text(ctx, a), text(ctx, b)) {
        (Ok(a), Ok(b)) if ctx.read(a.len().min(b.len())) => Val::Int(order(&a, &b) as i64),
        (Err(Val::Undefined), _) | (_, Err(Val::Undefined)) => Val::Undefined,
        _ => Val::Error,
    }
}

fn string<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    answer(text(ctx, args.eval(ctx, 0)).map(Val::Str))
}

fn int<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Undefined => Val::Undefined,
        Val::Int(number) => Val::Int(number),
        Val::AbsTime(time) => Val::Int(time.secs),
        value => lenient_number(ctx, &value).map_or(Val::Error, |number| Val::Int(to_integer(number))),
    }
}

fn real<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Undefined => Val::Undefined,
        value => lenient_number(ctx, &value).map_or(Val::Error, Val::Real),
    }
}

fn bool<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Bool(truth) => Val::Bool(truth),
        Val::Int(number) => Val::Bool(number != 0),
        Val::Real(number) => Val::Bool(number != 0.0),
        Val::RelTime(secs) => Val::Bool(to_c_int(secs) != 0),
        Val::Str(text) if text.eq_ignore_ascii_case("true") => Val::Bool(true),
        Val::Str(text) if text.eq_ignore_ascii_case("false") => Val::Bool(false),
        Val::Undefined | Val::Str(_) => Val::Undefined,
        _ => Val::Error,
    }
}

/// `interval()`: seconds as days, hours, minutes and seconds.
fn interval<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let secs = match args.eval(ctx, 0) {
        Val::Str(text) if !ctx.scan(text.len()) => return Val::Error,
        Val::Str(text) => match leading_number(&text) {
            Some((number, _)) => to_integer(number),
            None => return Val::Error,
        },
        Val::Int(number) => number,
        Val::Undefined | Val::Error => return Val::Error,
        value => match lenient_number(ctx, &value) {
            Some(number) => to_integer(number),
            None => return Val::Error,
        },
    };
    let secs = i64::from(wrap_c_int(secs));
    let (days, hours) = (secs / 86_400, secs / 3600 % 24);
    let (minutes, seconds) = (secs / 60 % 60, secs % 60);
    // The largest unit has the sign.
    ctx.string(match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}"),
        (0, 0, _) => format!("{minutes}:{:02}", seconds.abs()),
        (0, _, _) => format!("{hours}:{:02}:{:02}", minutes.abs(), seconds.abs()),
        _ => format!("{days}+{:02}:{:02}:{:02}", hours.abs(), minutes.abs(), seconds.abs()),
    })
}
