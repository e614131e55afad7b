//! Values during an evaluation: borrowed where possible, with lists that are not evaluated yet.

use std::fmt::Write;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use super::ctx::{At, Ctx};
use super::scope::Frame;
use crate::expr::Id;
use crate::syntax::{time, unparse};
use crate::value::{AbsTime, Value};

/// A value during an evaluation.
#[derive(Clone)]
pub(crate) enum Val<'a> {
    Undefined,
    Error,
    Bool(bool),
    Int(i64),
    Real(f64),
    Str(Text<'a>),
    List(List<'a>),
    /// A nested ad, with the ads around it.
    Ad(&'a Frame<'a>),
    AbsTime(AbsTime),
    RelTime(f64),
}

/// A string: a part of an expression, or made during the evaluation.
#[derive(Clone)]
pub(crate) enum Text<'a> {
    Ref(&'a Arc<str>),
    Own(Arc<str>),
}

impl Text<'_> {
    /// The string as a shared pointer.
    pub(crate) fn shared(&self) -> Arc<str> {
        match self {
            Self::Ref(text) => Arc::clone(text),
            Self::Own(text) => Arc::clone(text),
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Ref(text) => text,
            Self::Own(text) => text,
        }
    }
}

/// A list: expressions that are evaluated when an element is asked for, or values.
#[derive(Clone)]
pub(crate) enum List<'a> {
    Lazy {
        at: At<'a>,
        items: &'a [Id],
    },
    Made(Rc<[Val<'a>]>),
    /// Values that a selection picked from a list. HTCondor treats such a list as one that was written.
    Picked(Rc<[Val<'a>]>),
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lazy { items, .. } => items.len(),
            Self::Made(items) | Self::Picked(items) => items.len(),
        }
    }

    /// Whether a function made the list.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }

    /// The value of the element at an index; `None` past the end.
    pub(crate) fn get(&self, ctx: &Ctx<'a>, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Lazy { at, items } => items.get(index).map(|id| ctx.eval(*at, *id)),
            Self::Made(items) | Self::Picked(items) => items.get(index).cloned(),
        }
    }

    /// The values of the elements in order. The iterator ends early if the evaluation runs out of steps.
    pub(crate) fn iter<'l>(&'l self, ctx: &'l Ctx<'a>) -> impl Iterator<Item = Val<'a>> + 'l {
        (0..self.len()).take_while(|_| ctx.pay(1)).filter_map(|index| self.get(ctx, index))
    }
}

impl<'a> Val<'a> {
    /// A value that stands in an expression.
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Undefined => Self::Undefined,
            Value::Error | Value::Ad(_) => Self::Error,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Str(value) => Self::Str(Text::Ref(value)),
            Value::List(items) => Self::List(List::Made(items.iter().map(Self::of).collect())),
            Value::AbsTime(value) => Self::AbsTime(*value),
            // HTCondor's literal `relTime("...")` evaluates to a real.
            Value::Real(value) | Value::RelTime(value) => Self::Real(*value),
        }
    }

    /// A scalar that an evaluation returned; an error for anything else.
    pub(crate) fn owned(value: Value) -> Self {
        match value {
            Value::Str(text) => Self::Str(Text::Own(text)),
            Value::Undefined => Self::Undefined,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(value) => Self::Int(value),
            Value::Real(value) => Self::Real(value),
            _ => Self::Error,
        }
    }

    /// The value without borrowed parts; elements of lists are evaluated.
    pub(crate) fn into_value(self, ctx: &Ctx<'a>) -> Value {
        match self {
            Self::Undefined => Value::Undefined,
            Self::Error => Value::Error,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Real(value) => Value::Real(value),
            Self::Str(Text::Ref(text)) => Value::Str(text.clone()),
            Self::Str(Text::Own(text)) => Value::Str(text),
            Self::List(list) => elements(&list, ctx),
            Self::Ad(frame) => Value::Ad(frame.ad.clone()),
            Self::AbsTime(value) => Value::AbsTime(value),
            Self::RelTime(value) => Value::RelTime(value),
        }
    }

    /// The text, if the value is a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The value as text, for functions that take any value as a string. `None` for `undefined` and `error`. A text
    /// longer than the bound on strings ends the evaluation; the text that is returned then is not used.
    pub(crate) fn to_text(&self, ctx: &Ctx<'a>) -> Option<Text<'a>> {
        let text = match self {
            Self::Undefined | Self::Error => return None,
            Self::Str(string) => return Some(string.clone()),
            Self::AbsTime(moment) => time::absolute(*moment),
            Self::RelTime(secs) => time::relative(*secs),
            _ => {
                let mut out = Paying::new(ctx);
                // The writer fails when a bound is hit. Then nobody reads the text.
                let _ = self.write(&mut out);
                out.text
            }
        };
        ctx.fits(text.len());
        Some(Text::Own(text.into()))
    }

    /// Writes the value as an expression.
    fn write(&self, out: &mut Paying<'_, 'a>) -> std::fmt::Result {
        let style = unparse::Style::Condor;
        match self {
            Self::Undefined => out.write_str("undefined"),
            Self::Error => out.write_str("error"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Real(value) => unparse::real(out, *value, style),
            Self::Str(text) => unparse::value(out, &Value::from(&**text), style),
            Self::AbsTime(value) => unparse::value(out, &Value::AbsTime(*value), style),
            Self::RelTime(value) => unparse::value(out, &Value::RelTime(*value), style),
            Self::Ad(frame) => unparse::ad(out, frame.ad, style),
            Self::List(List::Made(items) | List::Picked(items)) if items.is_empty() => out.write_str("{  }"),
            Self::List(List::Lazy { items: [], .. }) => out.write_str("{  }"),
            Self::List(List::Lazy { at, items }) => {
                let nodes = items
                    .iter()
                    .map(|id| move |out: &mut Paying<'_, 'a>| unparse::node(out, at.program, *id, style));
                braced(out, nodes)
            }
            Self::List(List::Made(items) | List::Picked(items)) => {
                braced(out, items.iter().map(|item| move |out: &mut Paying<'_, 'a>| item.write(out)))
            }
        }
    }
}

fn braced<'a, F: FnOnce(&mut Paying<'_, 'a>) -> std::fmt::Result>(
    out: &mut Paying<'_, 'a>,
    items: impl Iterator<Item = F>,
) -> std::fmt::Result {
    for (place, item) in items.enumerate() {
        out.write_str(if place == 0 { "{ " } else { "," })?;
        item(out)?;
    }
    out.write_str(" }")
}

fn elements<'a>(list: &List<'a>, ctx: &Ctx<'a>) -> Value {
    if !ctx.enter() {
        ctx.leave();
        return Value::Error;
    }
    let items: Vec<Value> = list.iter(ctx).map(|item| item.into_value(ctx)).collect();
    ctx.leave();
    Value::List(items.into())
}

/// A text that the evaluation pays for piece by piece. Writing fails once a bound is hit.
pub(crate) struct Paying<'c, 'a> {
    ctx: &'c Ctx<'a>,
    pub(crate) text: String,
}

impl<'c, 'a> Paying<'c, 'a> {
    pub(crate) fn new(ctx: &'c Ctx<'a>) -> Self {
        Self { ctx, text: String::new() }
    }
}

impl Write for Paying<'_, '_> {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        // Formatting costs more than copying: each piece has a price of its own.
        let fits = self.ctx.allows(self.text.len() + part.len()) && self.ctx.pay(2 + part.len() / 8);
        if !fits {
            return Err(std::fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }

    /// Strings are written character by character, each of which costs less than a piece.
    fn write_char(&mut self, c: char) -> std::fmt::Result {
        let steps = usize::from(self.text.len().is_multiple_of(4));
        let fits = self.ctx.allows(self.text.len()) && self.ctx.pay(steps);
        if !fits {
            return Err(std::fmt::Error);
        }
        self.text.push(c);
        Ok(())
    }
}
