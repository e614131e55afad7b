//! Functions on numbers.

use super::convert::{lenient_number, list, to_integer, to_real};
use super::{Args, Entry, entry};
use crate::eval::{Ctx, List, Val};

pub(super) static TABLE: [Entry; 7] = [
    entry("floor", 1, 1, |ctx, args| rounded(ctx, args, f64::floor)),
    entry("ceil", 1, 1, |ctx, args| rounded(ctx, args, f64::ceil)),
    entry("ceiling", 1, 1, |ctx, args| rounded(ctx, args, f64::ceil)),
    entry("round", 1, 1, |ctx, args| rounded(ctx, args, f64::round_ties_even)),
    entry("pow", 2, 2, pow),
    entry("quantize", 2, 2, quantize),
    entry("random", 0, 1, random),
];

fn rounded<'a>(ctx: &Ctx<'a>, args: Args<'a>, round: fn(f64) -> f64) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Int(number) => Val::Int(number),
        value => lenient_number(ctx, &value).map_or(Val::Error, |number| Val::Int(to_integer(round(number)))),
    }
}

/// A numeric argument. Integers stay integers.
enum Number {
    Int(i64),
    Real(f64),
}

impl Number {
    fn of(ctx: &Ctx<'_>, value: &Val<'_>) -> Option<Self> {
        match value {
            Val::Int(number) => Some(Self::Int(*number)),
            value => lenient_number(ctx, value).map(Self::Real),
        }
    }

    fn real(&self) -> f64 {
        match self {
            Self::Int(number) => to_real(*number),
            Self::Real(number) => *number,
        }
    }
}

fn pow<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (base, exponent) = (args.eval(ctx, 0), args.eval(ctx, 1));
    let (Some(base), Some(exponent)) = (Number::of(ctx, &base), Number::of(ctx, &exponent)) else {
        return Val::Error;
    };
    let power = base.real().powf(exponent.real());
    match (base, exponent) {
        // HTCondor rounds by adding 0.5 and cutting the fraction off, which is one too many for negative numbers.
        (Number::Int(_), Number::Int(exponent)) if exponent >= 0 => Val::Int(to_integer(power + 0.5)),
        _ => Val::Real(power),
    }
}

/// `quantize()`: the smallest multiple of the second argument that is not less than the first. If the second argument
/// is a list: its first element that is not less, or else the next multiple of its last element.
fn quantize<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (value, base) = (args.eval(ctx, 0), args.eval(ctx, 1));
    let Some(number) = Number::of(ctx, &value) else { return Val::Error };
    match base {
        Val::List(steps) => quantize_by_list(ctx, value, &number, &list(Val::List(steps))),
        base => match Number::of(ctx, &base) {
            Some(base) => multiple(value, &number, &base),
            None => Val::Error,
        },
    }
}

fn quantize_by_list<'a>(
    ctx: &Ctx<'a>,
    value: Val<'a>,
    number: &Number,
    steps: &Result<List<'a>, Val<'a>>,
) -> Val<'a> {
    let Ok(steps) = steps else { return Val::Error };
    let mut last = None;
    for step in steps.iter(ctx) {
        let Some(base) = Number::of(ctx, &step) else { return Val::Error };
        if base.real() >= number.real() {
            return step;
        }
        last = Some(base);
    }
    match last {
        Some(base) => multiple(value, number, &base),
        None => value,
    }
}

fn multiple<'a>(value: Val<'a>, number: &Number, base: &Number) -> Val<'a> {
    match (number, base) {
        (Number::Int(_), Number::Int(0)) => value,
        (Number::Int(number), Number::Int(base)) => {
            // C's formula, which does not give the next multiple for a negative base.
            let sum = number.wrapping_add(base.wrapping_sub(1));
            Val::Int(sum.checked_div(*base).unwrap_or(i64::MIN).wrapping_mul(*base))
        }
        // HTCondor treats so small a base as 0.
        (_, base) if base.real().abs() <= 1e-8 => value,
        (number, base) => Val::Real((number.real() / base.real()).ceil() * base.real()),
    }
}

fn random<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let limit = if args.len() == 0 { Val::Real(1.0) } else { args.eval(ctx, 0) };
    match limit {
        Val::Int(limit) if limit > 0 => {
            // The high half of the product is evenly distributed over any range.
            let product = u128::from(ctx.random()) * u128::from(limit.unsigned_abs());
            Val::Int(i64::try_from(product >> 64).unwrap_or(0))
        }
        Val::Real(limit) if limit > 0.0 => {
            let fraction = to_real(i64::try_from(ctx.random() >> 11).unwrap_or(0)) / 9_007_199_254_740_992.0;
            Val::Real(fraction * limit)
        }
        Val::Int(_) | Val::Real(_) => ctx.fail(),
        _ => Val::Error,
    }
}
