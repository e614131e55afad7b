//! Functions on time.

use super::convert::{to_c_int, to_real, wrap_c_int};
use super::{Args, Entry, entry};
use crate::ad::Ad;
use crate::eval::{Ctx, Val};
use crate::syntax::time::Civil;
use crate::value::AbsTime;

pub(super) static TABLE: [Entry; 17] = [
    entry("time", 0, 0, |ctx, _| Val::Int(ctx.env.now)),
    entry("currenttime", 0, 0, |ctx, _| Val::AbsTime(now(ctx))),
    entry("abstime", 0, 2, absolute),
    entry("reltime", 1, 1, relative),
    entry("timezoneoffset", 0, 0, |ctx, _| Val::RelTime(f64::from(ctx.env.utc_offset))),
    entry("daytime", 0, 0, day_time),
    entry("getyear", 1, 1, |ctx, args| calendar(ctx, args, |civil| civil.year)),
    entry("getmonth", 1, 1, |ctx, args| calendar(ctx, args, |civil| civil.month)),
    entry("getdayofyear", 1, 1, |ctx, args| calendar(ctx, args, |civil| civil.day_of_year)),
    entry("getdayofmonth", 1, 1, |ctx, args| calendar(ctx, args, |civil| civil.day)),
    entry("getdayofweek", 1, 1, |ctx, args| calendar(ctx, args, |civil| civil.day_of_week)),
    entry("getdays", 1, 1, |ctx, args| clock(ctx, args, |_| None, |secs| secs / 86_400)),
    entry("gethours", 1, 1, |ctx, args| clock(ctx, args, |civil| Some(civil.hour), |secs| secs / 3600 % 24)),
    entry("getminutes", 1, 1, |ctx, args| {
        clock(ctx, args, |civil| Some(civil.minute), |secs| secs / 60 % 60)
    }),
    entry("getseconds", 1, 1, |ctx, args| clock(ctx, args, |civil| Some(civil.second), |secs| secs % 60)),
    entry("splittime", 1, 1, split),
    entry("formattime", 0, 2, format),
];

fn now(ctx: &Ctx<'_>) -> AbsTime {
    AbsTime { secs: ctx.env.now, offset: ctx.env.utc_offset }
}

fn absolute<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    if args.len() == 0 {
        return Val::AbsTime(now(ctx));
    }
    let mut offset = ctx.env.utc_offset;
    if args.len() == 2 {
        offset = match args.eval(ctx, 1) {
            Val::Int(secs) => wrap_c_int(secs),
            Val::Real(secs) | Val::RelTime(secs) => to_c_int(secs),
            _ => return Val::Error,
        };
    }
    match args.eval(ctx, 0) {
        // HTCondor takes this offset for a failure.
        Val::Int(_) if args.len() == 2 && offset == -1 => ctx.fail(),
        Val::Int(secs) => Val::AbsTime(AbsTime { secs: wrap_c_int(secs).into(), offset }),
        Val::Real(secs) | Val::RelTime(secs) => Val::AbsTime(AbsTime { secs: to_c_int(secs).into(), offset }),
        Val::AbsTime(time) => Val::AbsTime(time),
        // Only the parser reads times from text; here, any text is returned as it is.
        Val::Str(text) => Val::Str(text),
        Val::Undefined => Val::Undefined,
        _ => Val::Error,
    }
}

fn relative<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::Int(secs) => Val::RelTime(wrap_c_int(secs).into()),
        Val::Real(secs) | Val::RelTime(secs) => Val::RelTime(secs),
        Val::AbsTime(time) => Val::RelTime(to_real(time.secs)),
        Val::Str(_) => Val::RelTime(0.0),
        Val::Undefined => Val::Undefined,
        _ => Val::Error,
    }
}

fn day_time<'a>(ctx: &Ctx<'a>, _: Args<'a>) -> Val<'a> {
    let local = ctx.env.now.saturating_add(i64::from(ctx.env.utc_offset));
    Val::RelTime(to_real(local.rem_euclid(86_400)))
}

/// The local clock's date and time at a moment. Functions read the local clock, not the moment's own.
fn local(ctx: &Ctx<'_>, time: AbsTime) -> Civil {
    Civil::of(AbsTime { secs: time.secs, offset: ctx.env.utc_offset })
}

fn calendar<'a>(ctx: &Ctx<'a>, args: Args<'a>, read: fn(&Civil) -> i64) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::AbsTime(time) => Val::Int(read(&local(ctx, time))),
        _ => Val::Error,
    }
}

fn clock<'a>(
    ctx: &Ctx<'a>,
    args: Args<'a>,
    moment: fn(&Civil) -> Option<i64>,
    span: fn(i64) -> i64,
) -> Val<'a> {
    match args.eval(ctx, 0) {
        Val::AbsTime(time) => moment(&local(ctx, time)).map_or(Val::Error, Val::Int),
        Val::RelTime(secs) => Val::Int(span(to_c_int(secs).into())),
        _ => Val::Error,
    }
}

/// The price of the ad that `splitTime()` makes, and of reading such an ad.
const PARTS: usize = 120;

/// `splitTime()`: an ad of the parts of a time.
fn split<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let ad = match args.eval(ctx, 0) {
        Val::Undefined => return Val::Undefined,
        Val::AbsTime(time) => split_moment(time),
        Val::Int(secs) => split_moment(AbsTime { secs, offset: ctx.env.utc_offset }),
        Val::Real(secs) => split_moment(AbsTime { secs: to_c_int(secs).into(), offset: ctx.env.utc_offset }),
        Val::RelTime(secs) => split_span(secs),
        _ => return Val::Error,
    };
    ctx.pay(PARTS);
    Val::Ad(ctx.nested(ctx.keep_ad(ad), None))
}

fn split_moment(time: AbsTime) -> Ad {
    let civil = Civil::of(time);
    Ad::new()
        .with("Type", "AbsoluteTime")
        .with("Year", civil.year)
        .with("Month", civil.month)
        .with("Day", civil.day)
        .with("Hours", civil.hour)
        .with("Minutes", civil.minute)
        .with("Seconds", civil.second)
        .with("Offset", time.offset)
}

fn split_span(secs: f64) -> Ad {
    let positive = secs.abs();
    let whole = i64::from(to_c_int(positive));
    let mut units = [whole / 86_400, whole / 3600 % 24, whole / 60 % 60];
    let mut seconds = to_real(whole % 60) + positive.fract();
    if secs < 0.0 {
        // The largest unit that is not zero has the sign.
        match units.iter_mut().find(|unit| **unit > 0) {
            Some(unit) => *unit = -*unit,
            None => seconds = -seconds,
        }
    }
    let [days, hours, minutes] = units;
    Ad::new()
        .with("Type", "RelativeTime")
        .with("Days", days)
        .with("Hours", hours)
        .with("Minutes", minutes)
        .with("Seconds", seconds)
}

/// `formatTime()`: C's `strftime` in the C locale, on the local clock.
fn format<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let value = if args.len() > 0 { args.eval(ctx, 0) } else { Val::AbsTime(now(ctx)) };
    let secs = |secs| local(ctx, AbsTime { secs, offset: 0 });
    let civil = match value {
        Val::Int(number) => secs(number),
        Val::Real(number) => secs(to_c_int(number).into()),
        // A moment prints in its own time zone, but under the name of the local one.
        Val::AbsTime(time) => Civil::of(time),
        Val::Ad(frame) if ctx.pay(PARTS) => from_ad(ctx, &Val::Ad(frame)),
        _ => return Val::Error,
    };
    let pattern = if args.len() > 1 { args.eval(ctx, 1) } else { ctx.string("%c") };
    let Some(pattern) = pattern.as_str() else { return Val::Error };
    let mut out = String::new();
    let room = ctx.env.limits.string;
    super::strftime::format(&mut out, room, pattern, &civil, ctx.env.utc_offset, &|steps| ctx.pay(steps));
    ctx.string(out)
}

/// The date in an ad as `splitTime()` makes it. A missing part is 0, as in C's `struct tm`.
fn from_ad<'a>(ctx: &Ctx<'a>, ad: &Val<'a>) -> Civil {
    let read = |name: &str, missing: i64| match ctx.select(ad, &name.into(), None) {
        Val::Int(number) => wrap_c_int(number).into(),
        _ => missing,
    };
    let (year, month, day) = (read("Year", 1900), read("Month", 1), read("Day", 0));
    let midnight = super::strftime::midnight(year, month, day);
    let calendar = Civil::of(AbsTime { secs: midnight, offset: 0 });
    let new_year = super::strftime::midnight(year, 1, 1);
    Civil {
        year,
        month,
        day,
        hour: read("Hours", 0),
        minute: read("Minutes", 0),
        second: read("Seconds", 0),
        // The day is counted in the year that the ad names, also if the month carries over.
        day_of_year: midnight.saturating_sub(new_year) / 86_400,
        ..calendar
    }
}
