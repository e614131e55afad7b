//! Comparisons of version numbers.

use super::convert::length;
use super::strings::text;
use super::{Args, Entry, entry};
use crate::eval::{Ctx, Val};

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
        (Ok(a), Ok(b)) if ctx.scan(a.len().max(b.len())) => answer(natural(&a, &b)),
        (Err(Val::Undefined), _) | (_, Err(Val::Undefined)) => Val::Undefined,
        _ => Val::Error,
    }
}

fn in_range<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let [version, low, high] = [0, 1, 2].map(|place| text(ctx, args.eval(ctx, place)));
    match (version, low, high) {
        (Ok(version), Ok(low), Ok(high))
            if ctx.scan(version.len().max(low.len())) && ctx.scan(version.len().max(high.len())) =>
        {
            Val::Bool(natural(&low, &version) <= 0 && natural(&version, &high) <= 0)
        }
        (_, Err(Val::Undefined), _) | (.., Err(Val::Undefined)) => Val::Undefined,
        _ => Val::Error,
    }
}

/// Compares two texts, with runs of digits as numbers. If two numbers have different numbers of leading zeros, the one
/// with more sorts first; with equally many, at least one, they compare digit by digit, as fractions do. The result is
/// negative, 0 or positive, and its size tells what decided.
fn natural(a: &str, b: &str) -> i64 {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let at = |text: &[u8], place: usize| text.get(place).copied().unwrap_or(0);
    // C compares characters as signed numbers.
    let signed = |byte: u8| i64::from(byte.cast_signed());
    let Some(first) = (0..a.len().max(b.len())).find(|place| at(a, *place) != at(b, *place)) else {
        return 0;
    };
    let difference = signed(at(a, first)) - signed(at(b, first));
    // The digits right before the difference belong to the same number.
    let start = (0..first).rev().take_while(|place| at(a, *place).is_ascii_digit()).last().unwrap_or(first);
    let (run_a, run_b) = (Run::at(a, start), Run::at(b, start));
    if run_a.digits == 0 || run_b.digits == 0 {
        difference
    } else if run_a.zeros != run_b.zeros {
        run_b.zeros - run_a.zeros
    } else if run_a.zeros == 0 && run_a.digits != run_b.digits {
        run_a.digits - run_b.digits
    } else {
        difference
    }
}

/// A run of digits.
struct Run {
    digits: i64,
    /// Leading zeros that a further digit follows.
    zeros: i64,
}

impl Run {
    fn at(text: &[u8], start: usize) -> Self {
        let rest = text.iter().skip(start);
        let digits = rest.clone().take_while(|byte| byte.is_ascii_digit()).count();
        let zeros = rest.take(digits.saturating_sub(1)).take_while(|byte| **byte == b'0').count();
        Self { digits: length(digits), zeros: length(zeros) }
    }
}
