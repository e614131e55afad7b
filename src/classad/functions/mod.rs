//! The built-in functions by subject.
//!
//! To add a function, write it in the file of its subject, and add it to the table in this file.

mod arguments;
mod control;
mod convert;
mod lists;
mod numbers;
mod pattern_syntax;
mod patterns;
mod strftime;
mod string_lists;
mod strings;
#[cfg(test)]
mod tests;
mod times;
mod versions;

use std::fmt;
use std::sync::OnceLock;

pub use arguments::{join_arguments, split_arguments};
pub(crate) use convert::{leading_number, to_c_int, to_integer, to_real, wrap_c_int};
pub use patterns::Pattern;
pub(crate) use patterns::price_on_short_texts;

use super::eval::{At, Ctx, Val};
use super::expr::Id;

/// The arguments of a call, which are not evaluated yet.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub(crate) at: At<'a>,
    pub(crate) ids: &'a [Id],
    /// The memo that the calls from this place in the program share.
    pub(crate) memo: &'a Memo,
}

impl<'a> Args<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The value of the argument at an index; an error if there is none.
    pub(crate) fn eval(&self, ctx: &Ctx<'a>, place: usize) -> Val<'a> {
        self.ids.get(place).map_or(Val::Error, |id| ctx.eval(self.at, *id))
    }

    /// The value of an argument that may be missing.
    pub(crate) fn eval_if(&self, ctx: &Ctx<'a>, place: usize) -> Option<Val<'a>> {
        self.ids.get(place).map(|id| ctx.eval(self.at, *id))
    }
}

/// The memo that the calls from one place in a program share: the first pattern that they compiled.
pub(crate) type Memo = OnceLock<patterns::Compiled>;

type Run = for<'a> fn(&Ctx<'a>, Args<'a>) -> Val<'a>;

/// A function in the table of its subject.
pub(crate) struct Entry {
    /// The name in lower case.
    name: &'static str,
    /// The least and the greatest number of arguments. With any other number, the call is an error.
    arity: (usize, usize),
    run: Run,
}

const fn entry(name: &'static str, least: usize, most: usize, run: Run) -> Entry {
    Entry { name, arity: (least, most), run }
}

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// A built-in function.
#[derive(Clone, Copy)]
pub(crate) struct Function(&'static Entry);

impl Function {
    /// Whether the function takes so many arguments.
    pub(crate) fn takes(self, count: usize) -> bool {
        let (least, most) = self.0.arity;
        (least..=most).contains(&count)
    }

    pub(crate) fn call<'a>(self, ctx: &Ctx<'a>, args: Args<'a>) -> Val<'a> {
        if self.takes(args.len()) { (self.0.run)(ctx, args) } else { Val::Error }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

static TABLES: [&[Entry]; 9] = [
    &control::TABLE,
    &strings::TABLE,
    &string_lists::TABLE,
    &lists::TABLE,
    &numbers::TABLE,
    &patterns::TABLE,
    &times::TABLE,
    &versions::TABLE,
    &arguments::TABLE,
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The function of this name, case aside.
pub(crate) fn find(name: &str) -> Option<Function> {
    entries().find(|entry| entry.name.eq_ignore_ascii_case(name)).map(Function)
}

/// The names of all functions, in lower case.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.name)
}
