//! Evaluation of the nodes of an expression.

use super::ctx::{At, Ctx};
use super::ops::{self, Tri};
use super::scope::{Found, Frame};
use super::val::{List, Val};
use crate::expr::{Call, Id, Kids, Node, Program, Select};
use crate::functions::{Args, to_c_int, wrap_c_int};
use crate::name::Name;

impl<'a> Ctx<'a> {
    /// The value of a node.
    pub(crate) fn eval(&self, at: At<'a>, id: Id) -> Val<'a> {
        let Some(node) = at.program.node(id) else { return Val::Error };
        if let Node::Literal(value) = node {
            return if self.pay(1) { Val::of(value) } else { Val::Error };
        }
        let value = if self.enter() { self.eval_node(at, node) } else { Val::Error };
        self.leave();
        value
    }

    fn eval_node(&self, at: At<'a>, node: &'a Node) -> Val<'a> {
        match node {
            Node::Literal(value) => Val::of(value),
            Node::Attr(name) => self.eval_bare(at, name),
            Node::RootAttr(name) => self.eval_root(at, name),
            Node::Select(select) => self.eval_select(at, select),
            Node::Unary(op, operand) => ops::unary(*op, &self.eval(at, *operand)),
            Node::Binary(op, left, right) => {
                let left = self.eval(at, *left);
                self.binary(*op, &left, &self.eval(at, *right))
            }
            Node::And(items) => self.eval_and(at, *items),
            Node::Or(items) => self.eval_or(at, *items),
            Node::Ternary(condition, yes, no) => match Tri::of(&self.eval(at, *condition)) {
                Tri::True => self.eval(at, *yes),
                Tri::False => self.eval(at, *no),
                other => other.val(),
            },
            Node::Elvis(value, otherwise) => match self.eval(at, *value) {
                Val::Undefined => self.eval(at, *otherwise),
                value => value,
            },
            Node::Index(base, index) => {
                let base = self.eval(at, *base);
                self.eval_index(&base, &self.eval(at, *index))
            }
            Node::Paren(inner) => self.eval(at, at.program.bare(*inner)),
            Node::List(items) => Val::List(List::Lazy { at, items: at.program.kids(*items) }),
            Node::Ad(ad) => Val::Ad(self.nested(ad, at.frame)),
            Node::Call(call) => self.eval_call(at, call),
        }
    }

    fn eval_call(&self, at: At<'a>, call: &'a Call) -> Val<'a> {
        match call.function {
            Some(function) => {
                function.call(self, Args { at, ids: at.program.kids(call.args), memo: &call.memo })
            }
            None => Val::Error,
        }
    }

    fn eval_and(&self, at: At<'a>, items: Kids) -> Val<'a> {
        let mut result = Tri::True;
        for id in at.program.kids(items) {
            result = result.and(Tri::of(&self.eval(at, *id)));
            if matches!(result, Tri::False | Tri::Error) {
                break;
            }
        }
        result.val()
    }

    fn eval_or(&self, at: At<'a>, items: Kids) -> Val<'a> {
        let mut result = Tri::False;
        for id in at.program.kids(items) {
            result = result.or(Tri::of(&self.eval(at, *id)));
            if matches!(result, Tri::True | Tri::Error) {
                break;
            }
        }
        result.val()
    }

    fn eval_bare(&self, at: At<'a>, name: &Name) -> Val<'a> {
        match at.frame {
            Some(frame) => self.eval_found(self.find_bare(name, frame)),
            None => Val::Undefined,
        }
    }

    /// `.name`. In a match, the outermost ad is the one that HTCondor wraps around the two.
    fn eval_root(&self, at: At<'a>, name: &Name) -> Val<'a> {
        match at.frame {
            Some(_) if self.in_match() => self.eval_found(self.find(name, self.outermost())),
            Some(frame) => self.eval_found(self.find(name, self.last_around(frame))),
            None => Val::Error,
        }
    }

    fn eval_select(&self, at: At<'a>, select: &'a Select) -> Val<'a> {
        let base = self.eval(at, select.base);
        self.select(&base, &select.name, at.frame)
    }

    /// `base.name` in an expression that stands in the ad `here`.
    pub(crate) fn select(&self, base: &Val<'a>, name: &Name, here: Option<&'a Frame<'a>>) -> Val<'a> {
        match base {
            Val::Ad(frame) => self.eval_found(self.find(name, frame)),
            Val::Undefined => Val::Undefined,
            Val::List(list) => {
                if !self.enter() {
                    self.leave();
                    return Val::Error;
                }
                let list = moved(list, here);
                let picked =
                    list.iter(self).map(|item| self.on_its_own(self.select(&item, name, here))).collect();
                self.leave();
                Val::List(List::Picked(picked))
            }
            _ => Val::Error,
        }
    }

    /// A value as HTCondor copies it into a new list: the copy no longer stands in any ad.
    fn on_its_own(&self, value: Val<'a>) -> Val<'a> {
        match value {
            Val::Ad(frame) => Val::Ad(self.nested(self.keep_ad(frame.ad.clone()), None)),
            Val::List(List::Lazy { at, items }) => {
                Val::List(List::Lazy { at: At { frame: None, ..at }, items })
            }
            // HTCondor copies a time span as its literal, which evaluates to a real.
            Val::RelTime(secs) => Val::Real(to_c_int(secs).into()),
            other => other,
        }
    }

    fn eval_index(&self, base: &Val<'a>, index: &Val<'a>) -> Val<'a> {
        match (base, index) {
            (Val::Error, _) | (_, Val::Error) => Val::Error,
            (Val::Undefined, _) | (_, Val::Undefined) => Val::Undefined,
            (Val::List(list), Val::Int(index)) => {
                // HTCondor keeps indices in 32 bits.
                usize::try_from(wrap_c_int(*index))
                    .ok()
                    .and_then(|index| list.get(self, index))
                    .unwrap_or(Val::Error)
            }
            // A subscript looks only in the ad itself: not in the ads around it, and not for words that name ads.
            (Val::Ad(frame), Val::Str(name)) => {
                if !self.fits(name.len()) || !self.scan(name.len()) {
                    return Val::Error;
                }
                self.eval_found(frame.attribute(&Name::from(&**name)).unwrap_or(Found::Nothing))
            }
            _ => Val::Error,
        }
    }

    fn eval_found(&self, found: Found<'a>) -> Val<'a> {
        match found {
            Found::Attribute(program, frame) => self.eval_attribute(program, frame),
            Found::Value(value) => value,
            Found::Nothing => Val::Undefined,
        }
    }

    /// The value of an attribute of an ad; `undefined` if the attribute depends on itself.
    pub(crate) fn eval_attribute(&self, program: &'a Program, frame: &'a Frame<'a>) -> Val<'a> {
        if let [Node::Literal(value)] = &*program.nodes {
            return Val::of(value);
        }
        if !self.begin(program, frame.ad) {
            return Val::Undefined;
        }
        let value = self.eval(At { program, frame: Some(frame) }, program.root());
        self.end();
        value
    }
}

/// The list as HTCondor evaluates it in a selection: its elements are evaluated in the ad `here`. A list with nested
/// ads stays, because those ads know where they stand.
fn moved<'a>(list: &List<'a>, here: Option<&'a Frame<'a>>) -> List<'a> {
    match list {
        List::Lazy { at, items }
            if !items.iter().any(|id| matches!(at.program.node(*id), Some(Node::Ad(_)))) =>
        {
            List::Lazy { at: At { frame: here, ..*at }, items }
        }
        other => other.clone(),
    }
}
