//! Type tests, conditions, and functions about expressions.

use std::collections::BTreeMap;

use super::patterns::{self, Options};
use super::{Args, Entry, entry};
use crate::classad::ad::Ad;
use crate::classad::eval::{At, Ctx, Frame, Tri, Val};
use crate::classad::expr::{Expr, Id, Node, Program, ScopeWord};
use crate::classad::name::Name;
use crate::classad::syntax::unparse::{self, Style};

pub(super) static TABLE: [Entry; 15] = [
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
    entry("debug", 1, 1, |ctx, args| args.eval(ctx, 0)),
    entry("eval", 1, 1, eval),
    entry("unparse", 1, 1, unparse_attribute),
    entry("unresolved", 1, 2, unresolved),
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

/// Reads the argument's text as an expression and evaluates it here.
fn eval<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some(text) = args.eval(ctx, 0).to_text(ctx) else { return Val::Error };
    // Reading takes work in proportion to the text.
    if !ctx.pay(text.len()) {
        return Val::Error;
    }
    match Expr::parse(&text) {
        Ok(expr) => {
            let program = ctx.keep_expr(expr).program();
            ctx.eval(At { program, frame: args.at.frame }, program.root())
        }
        Err(_) => Val::Error,
    }
}

/// The bare name that an argument is.
fn referenced(args: Args<'_>) -> Option<(&Name, bool)> {
    let id = *args.ids.first()?;
    match args.at.program.node(id)? {
        Node::Attr(name) => Some((name, true)),
        Node::Select(select) => Some((&select.name, false)),
        Node::RootAttr(name) => Some((name, true)),
        _ => None,
    }
}

/// The text of an attribute's expression, empty if there is no such attribute.
fn unparse_attribute<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some((name, bare)) = referenced(args) else { return Val::Error };
    let expr = args.at.frame.filter(|_| bare).and_then(|frame| frame.ad.get_name(name));
    let mut text = String::new();
    if let Some(expr) = expr {
        // Writing to a string does not fail.
        let _ = unparse::expr(&mut text, expr, Style::Pretty(0));
    }
    ctx.string(text)
}

/// The names in an attribute's expression that its ad does not have, sorted; with a pattern, whether one
/// of them matches it.
fn unresolved<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some((name, bare)) = referenced(args) else { return Val::Error };
    let frame = args.at.frame.filter(|_| bare);
    let Some((frame, expr)) = frame.and_then(|frame| Some((frame, frame.ad.get_name(name)?))) else {
        return Val::Undefined;
    };
    let mut names = BTreeMap::new();
    if !collect(ctx, expr.program(), &mut vec![frame.ad], &mut names) {
        return Val::Error;
    }
    if args.len() == 1 {
        return ctx.string(names.into_values().collect::<Vec<_>>().join(","));
    }
    let pattern = args.eval(ctx, 1);
    let Some(pattern) = pattern.as_str() else { return Val::Error };
    let caseless = Options::of("i");
    match patterns::compile(ctx, pattern, caseless) {
        Some(regex) => Val::Bool(names.values().any(|name| regex.is_match(name.as_bytes()))),
        None => Val::Error,
    }
}

/// Collects the names that none of the ads has, under their folded text. `false`: out of steps.
fn collect<'p>(
    ctx: &Ctx<'_>,
    program: &'p Program,
    ads: &mut Vec<&'p Ad>,
    names: &mut BTreeMap<String, String>,
) -> bool {
    // Bases of selections are part of the longer name.
    let bases: Vec<Id> = program
        .nodes
        .iter()
        .filter_map(|node| if let Node::Select(select) = node { Some(select.base) } else { None })
        .collect();
    for (place, node) in program.nodes.iter().enumerate() {
        let id = Id::try_from(place).unwrap_or(Id::MAX);
        if !ctx.pay(1 + bases.len()) {
            return false;
        }
        if let Node::Ad(ad) = node {
            ads.push(ad);
            let inside = ad.iter().all(|(_, expr)| collect(ctx, expr.program(), ads, names));
            ads.pop();
            if !inside {
                return false;
            }
        } else if !bases.contains(&id)
            && let Some(name) = missing(program, id, node, ads)
        {
            names.insert(name.to_ascii_lowercase(), name);
        }
    }
    true
}

fn missing(program: &Program, id: Id, node: &Node, ads: &[&Ad]) -> Option<String> {
    let known = |name: &Name| ads.iter().any(|ad| ad.get_name(name).is_some());
    match node {
        Node::Attr(name) | Node::RootAttr(name) if !known(name) => Some(name.to_string()),
        Node::Select(select) => match select.scope {
            Some(ScopeWord::Target) => Some(select.name.to_string()),
            Some(ScopeWord::My) if known(&select.name) => None,
            _ => {
                let mut text = String::new();
                let _ = unparse::node(&mut text, program, id, Style::Condor);
                Some(text)
            }
        },
        _ => None,
    }
}

/// The expression to evaluate in other contexts: of the attribute, where the argument names one.
pub(super) fn quoted<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Option<(&'a Program, Id)> {
    let id = *args.ids.first()?;
    if let (Some(Node::Attr(name)), Some(frame)) = (args.at.program.node(id), args.at.frame)
        && let Some(program) = ctx.expression_of(name, frame)
    {
        return Some((program, program.root()));
    }
    Some((args.at.program, id))
}

/// Evaluates a quoted expression in an ad.
pub(super) fn eval_in<'a>(ctx: &Ctx<'a>, (program, id): (&'a Program, Id), frame: &'a Frame<'a>) -> Val<'a> {
    ctx.eval(At { program, frame: Some(frame) }, id)
}
