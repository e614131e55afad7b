//! Evaluation.
//!
//! An evaluation borrows the expression, both ads and the environment for `'a`. An arena owns what the evaluation
//! makes and must keep as long: scopes of nested ads, and expressions that `eval()` parsed. Numbers, booleans and
//! strings that stand in an ad are passed on without allocation.

mod ctx;
mod ops;
mod scope;
mod tree;
mod val;
mod wrapper;

pub(crate) use ctx::{Arena, At, Ctx};
pub(crate) use ops::{Tri, binary, compare, compare_caseless, unary};
use scope::Side;
pub(crate) use scope::{Found, Frame};
pub(crate) use val::{List, Paying, Text, Val};
pub(crate) use wrapper::is_around_a_match;

use super::ad::Ad;
use super::env::{Bound, Env};
use super::expr::{Expr, Id};
use super::value::Value;

/// The outcome of an evaluation: a value, and the bound that was hit, if any.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The value; `error` if a bound was hit.
    pub value: Value,
    /// The bound that was hit first, if one was.
    pub bound: Option<Bound>,
    /// The cost of the evaluation, in the steps of [`Limits`](crate::Limits).
    pub steps: u32,
}

/// Evaluates an expression that need not stand in an ad.
pub(crate) fn expression(expr: &Expr, my: Option<&Ad>, target: Option<&Ad>, env: &Env) -> Evaluation {
    let empty = Ad::new();
    // In a match, HTCondor always has an ad around the expression.
    let my = if target.is_some() { Some(my.unwrap_or(&empty)) } else { my };
    run(expr, my, target, env, |ctx, at| ctx.eval(at, at.program.root()))
}

/// Evaluates an attribute's expression in its ad.
pub(crate) fn attribute(ad: &Ad, expr: &Expr, target: Option<&Ad>, env: &Env) -> Evaluation {
    run(expr, Some(ad), target, env, |ctx, at| match at.frame {
        Some(frame) => ctx.eval_attribute(at.program, frame),
        None => Val::Error,
    })
}

/// Evaluates the node `id` of an expression that stands in an ad.
pub(crate) fn part(expr: &Expr, id: Id, my: &Ad, target: Option<&Ad>, env: &Env) -> Evaluation {
    run(expr, Some(my), target, env, |ctx, at| ctx.eval(at, id))
}

fn run(
    expr: &Expr,
    my: Option<&Ad>,
    target: Option<&Ad>,
    env: &Env,
    evaluate: impl for<'a> FnOnce(&Ctx<'a>, At<'a>) -> Val<'a>,
) -> Evaluation {
    let my = my.map(|ad| Frame { ad, parent: None, side: Side::My, sees_other: true });
    let target = target.map(|ad| Frame { ad, parent: None, side: Side::Target, sees_other: true });
    let arena = Arena::default();
    let ctx = Ctx::new(env, &arena, my.as_ref(), target.as_ref());
    let at = At { program: expr.program(), frame: my.as_ref() };
    let value = evaluate(&ctx, at).into_value(&ctx);
    let (bound, steps) = (ctx.bound(), ctx.steps());
    let value = if bound.is_some() || ctx.failed() { Value::Error } else { value };
    Evaluation { value, bound, steps }
}
