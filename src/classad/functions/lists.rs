//! Functions on lists.

use super::convert::{Delimiters, answer, length, list, to_c_int, to_real};
use super::{ANY, Args, Entry, control, entry};
use crate::env::Bound;
use crate::eval::{Ctx, List, Text, Tri, Val, binary, compare};
use crate::expr::Binary;

pub(super) static TABLE: [Entry; 15] = [
    entry("size", 1, 1, size),
    entry("sum", 1, 1, |ctx, args| answer(total(ctx, args).map(|(sum, _)| sum))),
    entry("avg", 1, 1, |ctx, args| answer(average(ctx, args))),
    entry("min", 1, 1, |ctx, args| answer(extreme(ctx, args, Binary::Less))),
    entry("max", 1, 1, |ctx, args| answer(extreme(ctx, args, Binary::Greater))),
    entry("anycompare", 3, 3, |ctx, args| answer(compare_all(ctx, args, true))),
    entry("allcompare", 3, 3, |ctx, args| answer(compare_all(ctx, args, false))),
    entry("member", 2, 2, |ctx, args| answer(member(ctx, args))),
    entry("identicalmember", 2, 2, |ctx, args| answer(identical_member(ctx, args))),
    entry("split", 1, 2, split),
    entry("splitusername", 1, 1, |ctx, args| split_at(ctx, args, |name| (name, ""))),
    entry("splitslotname", 1, 1, |ctx, args| split_at(ctx, args, |name| ("", name))),
    entry("join", 0, ANY, join),
    entry("evalineachcontext", 2, 2, eval_in_each_context),
    entry("countmatches", 2, 2, count_matches),
];

fn size<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Str(text) => Val::Int(length(text.len())),
        Val::List(list) => Val::Int(length(list.len())),
        Val::Ad(frame) => Val::Int(length(frame.ad.len())),
        Val::Undefined => Val::Undefined,
        _ => Val::Error,
    }
}

fn is_number(value: &Val<'_>) -> bool {
    matches!(value, Val::Bool(_) | Val::Int(_) | Val::Real(_))
}

/// The sum of the elements that are defined, and their number.
fn total<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<(Val<'a>, i64), Val<'a>> {
    let list = list(args.eval(ctx, 0))?;
    let (mut sum, mut count) = (Val::Int(0), 0);
    for item in list.iter(ctx) {
        match item {
            Val::Undefined => {}
            item if is_number(&item) => {
                sum = if count == 0 { item } else { binary(Binary::Add, &sum, &item) };
                count += 1;
            }
            _ => return Err(Val::Error),
        }
    }
    Ok((sum, count))
}

fn average<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let (sum, count) = total(ctx, args)?;
    if count == 0 {
        return Ok(sum);
    }
    Ok(binary(Binary::Divide, &sum, &Val::Real(to_real(count))))
}

/// The smallest or largest element. HTCondor converts both elements of a comparison to a common type and keeps the
/// result, so `min({3, 1, 2.5})` is 1.0.
fn extreme<'a>(ctx: &Ctx<'a>, args: Args<'a>, better: Binary) -> Result<Val<'a>, Val<'a>> {
    let list = list(args.eval(ctx, 0))?;
    let mut best = Val::Undefined;
    for item in list.iter(ctx) {
        match item {
            Val::Undefined => {}
            item if !is_number(&item) => return Err(Val::Error),
            item if matches!(best, Val::Undefined) => best = item,
            item => {
                let (item, known) = promoted(item, best);
                let wins = matches!(binary(better, &item, &known), Val::Bool(true));
                best = if wins { item } else { known };
            }
        }
    }
    Ok(best)
}

fn promoted<'a>(a: Val<'a>, b: Val<'a>) -> (Val<'a>, Val<'a>) {
    let real = matches!(a, Val::Real(_)) || matches!(b, Val::Real(_));
    let promote = |value: Val<'a>| match value {
        Val::Bool(truth) if real => Val::Real(f64::from(u8::from(truth))),
        Val::Bool(truth) => Val::Int(i64::from(truth)),
        Val::Int(number) if real => Val::Real(to_real(number)),
        other => other,
    };
    (promote(a), promote(b))
}

fn operator(symbol: &str) -> Option<Binary> {
    Some(match symbol {
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        "==" => Binary::Equal,
        "!=" => Binary::NotEqual,
        ">=" => Binary::GreaterOrEqual,
        ">" => Binary::Greater,
        "is" => Binary::Is,
        "isnt" => Binary::Isnt,
        _ => return None,
    })
}

/// `anyCompare()` and `allCompare()`. The first element that decides ends the search; an element that cannot be
/// compared makes the answer false.
fn compare_all<'a>(ctx: &Ctx<'a>, args: Args<'a>, any: bool) -> Result<Val<'a>, Val<'a>> {
    let (symbol, list_value) = (args.eval(ctx, 0), args.eval(ctx, 1));
    let other = args.eval(ctx, 2);
    if matches!(symbol, Val::Undefined) {
        return Err(Val::Undefined);
    }
    let Some(operator) = symbol.as_str().and_then(operator) else { return Err(Val::Error) };
    let list = list(list_value)?;
    for item in list.iter(ctx) {
        match ctx.binary(operator, &item, &other) {
            Val::Bool(holds) if holds == any => return Ok(Val::Bool(any)),
            Val::Bool(_) => {}
            Val::Undefined => return Ok(Val::Bool(false)),
            _ => return Err(Val::Error),
        }
    }
    Ok(Val::Bool(!any))
}

fn member<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let (wanted, list_value) = (args.eval(ctx, 0), args.eval(ctx, 1));
    if matches!(wanted, Val::Undefined) {
        return Err(Val::Undefined);
    }
    let list = list(list_value)?;
    if matches!(wanted, Val::Error | Val::List(_) | Val::Ad(_)) {
        return Err(Val::Error);
    }
    let equal = |item: Val<'a>| {
        ctx.pay_to_compare(&item, &wanted) && compare(&item, &wanted) == Some(Some(std::cmp::Ordering::Equal))
    };
    Ok(Val::Bool(list.iter(ctx).any(equal)))
}

fn identical_member<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Result<Val<'a>, Val<'a>> {
    let (wanted, list_value) = (args.eval(ctx, 0), args.eval(ctx, 1));
    let list = list(list_value)?;
    if matches!(wanted, Val::List(_) | Val::Ad(_)) {
        return Err(Val::Error);
    }
    let same = |item: Val<'a>| matches!(ctx.binary(Binary::Is, &item, &wanted), Val::Bool(true));
    Ok(Val::Bool(list.iter(ctx).any(same)))
}

/// `split()`: splits at each separator. There is an empty item before a separator that nothing but white space stands
/// before, if the separator before it that is no white space is the same: `a,b , c` has the items `a`, `b`, an empty one and `c`.
fn split<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let separators = if args.len() > 1 { args.eval(ctx, 1) } else { ctx.string(", \t") };
    let text = args.eval(ctx, 0);
    let (Some(text), Some(separators)) = (text.as_str(), separators.as_str()) else { return Val::Error };
    // This pays for reading alone; the list is paid for when it is made.
    let paid = ctx.scan(text.len());
    let Some(separators) = Delimiters::of(ctx, separators).filter(|_| paid) else { return Val::Error };
    let mut parts: Vec<Val<'a>> = Vec::new();
    let mut last: Option<char> = None;
    let mut start = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| separators.contains(*c)) {
        let part = text.get(start..at).unwrap_or_default();
        let space = c.is_ascii_whitespace();
        if !part.is_empty() || (last == Some(c) && !space) {
            if parts.len() >= ctx.env.limits.list {
                return ctx.hit(Bound::ListSize);
            }
            match ctx.string(part) {
                Val::Error => return Val::Error,
                part => parts.push(part),
            }
        }
        // White space does not count, whether it ends an item or follows another separator.
        if !space {
            last = Some(c);
        }
        start = at + c.len_utf8();
    }
    let rest = text.get(start..).unwrap_or_default();
    if !rest.is_empty() {
        parts.push(ctx.string(rest));
    }
    ctx.list(parts)
}

/// Splits a text at the first `@`; `whole` splits a text that has none.
fn split_at<'a>(ctx: &Ctx<'a>, args: Args<'a>, whole: fn(&str) -> (&str, &str)) -> Val<'a> {
    let text = args.eval(ctx, 0);
    let Some(text) = text.as_str().filter(|text| ctx.read(text.len())) else { return Val::Error };
    let (left, right) = text.split_once('@').unwrap_or_else(|| whole(text));
    ctx.list(vec![ctx.string(left), ctx.string(right)])
}

fn join<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (separator, items) = match args.len() {
        0 => return ctx.string(""),
        1 => match args.eval(ctx, 0) {
            Val::List(list) => (ctx.string(""), list),
            only => (only, List::Made([].into())),
        },
        2 => {
            let separator = args.eval(ctx, 0);
            match args.eval(ctx, 1) {
                Val::List(list) => (separator, list),
                item => (separator, List::Made([item].into())),
            }
        }
        count => {
            let items = (1..count).map(|place| args.eval(ctx, place)).collect();
            (args.eval(ctx, 0), List::Made(items))
        }
    };
    join_items(ctx, &separator, &items)
}

fn join_items<'a>(ctx: &Ctx<'a>, separator: &Val<'a>, items: &List<'a>) -> Val<'a> {
    let glue = match separator {
        Val::Error => return Val::Error,
        other => other.to_text(ctx),
    };
    let glue = glue.as_deref().unwrap_or_default();
    let mut text = String::new();
    let mut defined = items.len() == 0 && !matches!(separator, Val::Undefined);
    for item in items.iter(ctx) {
        match item {
            Val::Undefined => continue,
            Val::Error => return Val::Error,
            _ => defined = true,
        }
        let part: Option<Text<'a>> = item.to_text(ctx);
        let part = part.as_deref().unwrap_or_default();
        let more = glue.len() + part.len();
        if !ctx.allows(text.len() + more) || !ctx.fits(more) {
            return Val::Error;
        }
        if !text.is_empty() {
            text.push_str(glue);
        }
        text.push_str(part);
    }
    if defined { ctx.string(text) } else { Val::Undefined }
}

fn eval_in_each_context<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (quoted, value) = control::quoted(ctx, args);
    let list = match list(value) {
        Ok(list) => list,
        Err(answer) => return answer,
    };
    let results = list.iter(ctx).map(|item| match item {
        Val::Ad(frame) => match control::eval_in(ctx, quoted, frame) {
            // HTCondor copies a time span as its literal, which evaluates to a real.
            Val::RelTime(secs) => Val::Real(to_c_int(secs).into()),
            value => value,
        },
        Val::Undefined => Val::Undefined,
        _ => Val::Error,
    });
    ctx.list(results.collect())
}

fn count_matches<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let (quoted, value) = control::quoted(ctx, args);
    let list = match list(value) {
        Ok(list) => list,
        Err(Val::Undefined) => return Val::Int(0),
        Err(answer) => return answer,
    };
    let matches = list.iter(ctx).filter(|item| match item {
        Val::Ad(frame) => Tri::of(&control::eval_in(ctx, quoted, frame)) == Tri::True,
        _ => false,
    });
    Val::Int(length(matches.count()))
}
