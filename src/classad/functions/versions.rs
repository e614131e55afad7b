//! Comparing version numbers.

use std::cmp::Ordering;

use super::strings::text;
use super::{Args, Entry, entry};
use crate::classad::eval::{Ctx, Val};

pub(super) static TABLE: [Entry; 7] = [
    entry("versioncmp", 2, 2, |ctx, args| compare(ctx, args, Val::Int)),
    entry("versionlt", 2, 2, |ctx, args| compare(ctx, args, |order| Val::Bool(order < 0))),
    entry("versionle", 2, 2, |ctx, args| compare(ctx, args, |order| Val::Bool(order <= 0))),
    entry("versiongt", 2, 2, |ctx, args| compare(ctx, args, |order| Val::Bool(order > 0))),
    entry("versionge", 2, 2, |ctx, args| compare(ctx, args, |order| Val::Bool(order >= 0))),
    entry("versioneq", 2, 2, |ctx, args| compare(ctx, args, |order| Val::Bool(order == 0))),
    entry("version_in_range", 3, 3, in_range),
];

fn compare<'a>(ctx: &Ctx<'a>, args: Args<'a>, answer: fn(i64) -> Val<'a>) -> Val<'a> {
    let (a, b) = (text(ctx, args.eval(ctx, 0)), text(ctx, args.eval(ctx, 1)));
    match (a, b) {
        (Ok(a), Ok(b)) => answer(natural(&a, &b)),
        (Err(Val::Error), _) | (_, Err(Val::Error)) => Val::Error,
        _ => Val::Undefined,
    }
}

fn in_range<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let [version, low, high] = [0, 1, 2].map(|place| text(ctx, args.eval(ctx, place)));
    match (version, low, high) {
        (Ok(version), Ok(low), Ok(high)) => {
            Val::Bool(natural(&low, &version) <= 0 && natural(&version, &high) <= 0)
        }
        (Err(Val::Error), ..) | (_, Err(Val::Error), _) | (.., Err(Val::Error)) => Val::Error,
        _ => Val::Undefined,
    }
}

/// Compares with runs of digits as numbers. Runs that start with zeros are fractions: more zeros sort
/// first. The answer is negative, 0 or positive, and mostly the difference of the bytes that decide.
fn natural(a: &str, b: &str) -> i64 {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let at = |text: &[u8], place: usize| text.get(place).copied().unwrap_or(0);
    let end = a.len().max(b.len());
    let Some(first) = (0..end).find(|place| at(a, *place) != at(b, *place)) else { return 0 };
    let difference = i64::from(at(a, first)) - i64::from(at(b, first));
    // The digits right before the difference belong to the number that it is in.
    let start = (0..first).rev().take_while(|place| at(a, *place).is_ascii_digit()).last().unwrap_or(first);
    let digit = |text: &[u8]| at(text, first).is_ascii_digit();
    let zeros = start < first && (start..first).all(|place| at(a, place) == b'0');
    let leading_zero =
        zeros || (start == first && digit(a) && digit(b) && (at(a, first) == b'0' || at(b, first) == b'0'));
    if leading_zero {
        return fraction(a, b, first, zeros, difference);
    }
    if !(digit(a) || start < first) || !(digit(b) || start < first) {
        return difference;
    }
    let run = |text: &[u8]| (first..text.len()).take_while(|place| at(text, *place).is_ascii_digit()).count();
    match run(a).cmp(&run(b)) {
        Ordering::Equal => difference,
        Ordering::Less => -1,
        Ordering::Greater => 1,
    }
}

/// The order where a number starts with zeros: a further zero sorts before a digit, both before its end.
fn fraction(a: &[u8], b: &[u8], first: usize, zeros: bool, difference: i64) -> i64 {
    let digit = |text: &[u8]| text.get(first).is_some_and(u8::is_ascii_digit);
    match (digit(a), digit(b)) {
        (true, false) if zeros => -1,
        (false, true) if zeros => 1,
        _ => difference,
    }
}
