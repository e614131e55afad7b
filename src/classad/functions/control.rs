//! Type tests, conditions, and functions about expressions.

use super::{Args, Entry, entry};
use crate::classad::eval::{Ctx, Tri, Val};

pub(super) static TABLE: [Entry; 11] = [
    entry("isundefined", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Undefined))),
    entry("iserror", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Error))),
    entry("isstring", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Str(_)))),
    entry("isinteger", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Int(_)))),
    entry("isreal", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Real(_)))),
    entry("isboolean", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Bool(_)))),
    entry("islist", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::List(_)))),
    entry("isclassad", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::Ad(_)))),
    entry("isabstime", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::AbsTime(_)))),
    entry("isreltime", 1, 1, |ctx, args| is(ctx, args, |value| matches!(value, Val::RelTime(_)))),
    entry("ifthenelse", 3, 3, if_then_else),
];

fn is<'a>(ctx: &Ctx<'a>, args: Args<'a>, test: impl Fn(&Val<'a>) -> bool) -> Val<'a> {
    Val::Bool(test(&args.eval(ctx, 0)))
}

fn if_then_else<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    match Tri::of(&args.eval(ctx, 0)) {
        Tri::True => args.eval(ctx, 1),
        Tri::False => args.eval(ctx, 2),
        other => other.val(),
    }
}
