//! Type tests, conditions, and functions about expressions.

use std::collections::{BTreeMap, BTreeSet};

use super::patterns::{self, Options};
use super::{Args, Entry, entry};
use crate::eval::{At, Ctx, Found, Frame, Paying, Tri, Val};
use crate::expr::{Id, Node, Program, ScopeWord};
use crate::name::Name;
use crate::syntax::parser;
use crate::syntax::unparse::{self, Style};

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

/// `eval()`: parses the argument's text as an expression and evaluates it in the same ad.
fn eval<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some(text) = args.eval(ctx, 0).to_text(ctx) else { return Val::Error };
    // Parsing takes work in proportion to the text.
    if !ctx.pay(text.len()) || !ctx.scan(text.len()) {
        return Val::Error;
    }
    match parser::expression_to_evaluate(&text) {
        Ok(expr) => {
            let program = ctx.keep_expr(expr).program();
            // The patterns in the text are compiled anew, since nobody has compiled them before.
            if !ctx.pay(patterns::price_of_fresh(program)) {
                return Val::Error;
            }
            ctx.eval(At { program, frame: args.at.frame }, program.root())
        }
        Err(_) => Val::Error,
    }
}

/// The name that an argument refers to, and whether it is written as a bare name.
fn referenced(args: Args<'_>) -> Option<(&Name, bool)> {
    let id = *args.ids.first()?;
    match args.at.program.node(id)? {
        Node::Attr(name) => Some((name, true)),
        Node::RootAttr(name) => Some((name, false)),
        Node::Select(select) => Some((&select.name, false)),
        _ => None,
    }
}

/// `unparse()`: the text of an attribute's expression; empty if there is no such attribute.
fn unparse_attribute<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    let Some((name, bare)) = referenced(args) else { return Val::Error };
    let mut text = String::new();
    // Writing to a string does not fail. HTCondor looks for the name in its quotes if the name needs quotes, and so
    // finds nothing.
    let _ = unparse::identifier(&mut text, name.as_str());
    let found = bare && text == name.as_str();
    let expr = args.at.frame.filter(|_| found).and_then(|frame| frame.ad.get_name(name));
    let mut out = Paying::new(ctx);
    if let Some(expr) = expr {
        // The writer fails when a bound is hit. Then nobody reads the text.
        let _ = unparse::expr(&mut out, expr, Style::Pretty(0));
    }
    ctx.string(out.text)
}

/// `unresolved()`: the sorted names in an attribute's expression that neither its ad nor the other ad has. With a
/// pattern: whether a name matches.
fn unresolved<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
    if referenced(args).is_none() {
        return Val::Error;
    }
    let (Some((program, frame)), _) = resolve(ctx, args) else { return Val::Undefined };
    let mut search = Unresolved { ctx, frame, names: BTreeMap::new(), found: vec![program] };
    if !search.collect_all() {
        return Val::Error;
    }
    let names = search.names;
    if args.len() == 1 {
        return ctx.string(names.into_values().collect::<Vec<_>>().join(","));
    }
    let pattern = args.eval(ctx, 1);
    let Some(pattern) = pattern.as_str() else { return ctx.fail() };
    match patterns::compile(ctx, args.memo, patterns::written(args, &[1]), pattern, Options::of("i")) {
        Some(_) if pattern.is_empty() => Val::Bool(false),
        Some(matcher) => Val::Bool(names.values().any(|name| matcher.is_match(ctx, name))),
        None => Val::Error,
    }
}

/// The attribute that the first argument refers to, with the ad that has it; and the ad that HTCondor searched last,
/// in which it goes on.
fn resolve<'a>(
    ctx: &Ctx<'a>,
    args: Args<'a>,
) -> (Option<(&'a Program, &'a Frame<'a>)>, Option<&'a Frame<'a>>) {
    let here = args.at.frame;
    let node = args.ids.first().and_then(|id| args.at.program.node(*id));
    let (start, found) = match (node, here) {
        (Some(Node::Attr(name)), Some(frame)) => (frame, ctx.find_bare(name, frame)),
        (Some(Node::RootAttr(name)), Some(frame)) => {
            let root = ctx.root_of(frame);
            (root, ctx.find(name, root))
        }
        (Some(Node::Select(select)), _) => match ctx.eval(args.at, select.base) {
            Val::Ad(frame) => (frame, ctx.find(&select.name, frame)),
            _ => return (None, here),
        },
        _ => return (None, here),
    };
    match found {
        Found::Attribute(program, frame) => (Some((program, frame)), Some(frame)),
        Found::Value(_) if node.is_some_and(is_target) && ctx.is_matched(start) => {
            (None, Some(ctx.context(start.side)))
        }
        Found::Value(_) => (None, Some(start)),
        Found::Nothing => (None, Some(ctx.root_of(start))),
    }
}

/// Whether a node is the word for the other ad. HTCondor finds that word in the context ad of the match.
fn is_target(node: &Node) -> bool {
    matches!(node, Node::Attr(name) if ScopeWord::of(name.as_str()) == Some(ScopeWord::Target))
}

/// A search for names that no ad has. Like HTCondor's, the search looks for bare names neither in the other ad nor in
/// the nested ad in which they stand.
struct Unresolved<'s, 'a> {
    ctx: &'s Ctx<'a>,
    frame: &'a Frame<'a>,
    /// The names that were found, by their lower-case text.
    names: BTreeMap<String, String>,
    /// The expressions to search: the attribute's, and those of the attributes that it refers to.
    found: Vec<&'a Program>,
}

impl<'a> Unresolved<'_, 'a> {
    /// Collects the names in all expressions; the search adds expressions on the way. `false`: the evaluation is out
    /// of steps.
    fn collect_all(&mut self) -> bool {
        let mut done = 0;
        while let Some(program) = self.found.get(done).copied() {
            done += 1;
            if !self.collect(program) {
                return false;
            }
        }
        true
    }

    /// Whether the ad has the attribute. If so, the attribute's expression is searched, too.
    fn has(&mut self, name: &Name) -> bool {
        let Some(expr) = self.frame.ad.get_name(name) else { return false };
        let program = expr.program();
        self.ctx.pay(self.found.len() / 16);
        if !self.found.iter().any(|known| std::ptr::eq(*known, program)) {
            self.found.push(program);
        }
        true
    }

    /// Collects the names in an expression. `false`: the evaluation is out of steps.
    fn collect(&mut self, program: &'a Program) -> bool {
        // The base of a selection is part of the longer name.
        if !self.ctx.pay(2 * program.nodes.len()) {
            return false;
        }
        let base = |node: &Node| if let Node::Select(select) = node { Some(select.base) } else { None };
        let bases: BTreeSet<Id> = program.nodes.iter().filter_map(base).collect();
        for (place, node) in program.nodes.iter().enumerate() {
            if !self.ctx.pay(1) {
                return false;
            }
            let id = Id::try_from(place).unwrap_or(Id::MAX);
            if let Node::Ad(ad) = node {
                if !ad.iter().all(|(_, expr)| self.collect(expr.program())) {
                    return false;
                }
            } else if !bases.contains(&id)
                && let Some(name) = self.missing(program, id, node)
            {
                if !self.ctx.fits(name.len()) || !self.ctx.scan(name.len()) {
                    return false;
                }
                self.names.insert(name.to_ascii_lowercase(), name);
            }
        }
        true
    }

    fn missing(&mut self, program: &Program, id: Id, node: &Node) -> Option<String> {
        let other = self.ctx.other(self.frame.side);
        let there = |name: &Name| other.is_some_and(|other| other.ad.get_name(name).is_some());
        let (name, known) = match node {
            Node::Attr(name) | Node::RootAttr(name) => (name.to_string(), self.has(name)),
            Node::Select(select) => match select.scope {
                Some(ScopeWord::Target) => (select.name.to_string(), there(&select.name)),
                Some(ScopeWord::My | ScopeWord::Root) => (select.name.to_string(), self.has(&select.name)),
                _ => {
                    let mut out = Paying::new(self.ctx);
                    // The writer fails when a bound is hit. Then nobody reads the text.
                    let _ = unparse::node(&mut out, program, id, Style::Condor);
                    (out.text, leftmost(program, id).is_some_and(|name| self.has(name)))
                }
            },
            _ => return None,
        };
        (!known).then_some(name)
    }
}

/// The bare name that a chain of selections starts with.
fn leftmost(program: &Program, mut id: Id) -> Option<&Name> {
    loop {
        match program.node(id)? {
            Node::Select(select) => id = select.base,
            Node::Attr(name) => return Some(name),
            _ => return None,
        }
    }
}

/// The expression to evaluate in other ads, and the value of the second argument. If the first argument names an
/// attribute, the expression is the attribute's.
pub(super) fn quoted<'a>(ctx: &Ctx<'a>, args: Args<'a>) -> ((&'a Program, Id), Val<'a>) {
    let (attribute, frame) = resolve(ctx, args);
    let list = Args { at: At { frame, ..args.at }, ..args }.eval(ctx, 1);
    let id = args.ids.first().copied().unwrap_or(0);
    (attribute.map_or((args.at.program, id), |(program, _)| (program, program.root())), list)
}

/// Evaluates a quoted expression in an ad.
pub(super) fn eval_in<'a>(ctx: &Ctx<'a>, (program, id): (&'a Program, Id), frame: &'a Frame<'a>) -> Val<'a> {
    ctx.eval(At { program, frame: Some(ctx.reaching(frame)) }, id)
}
