//! The built-in functions, by subject. To add one: write it in the file of its subject, and put it in that
//! file's table.

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

pub(crate) use convert::{leading_number, to_c_int, to_integer, to_real, wrap_c_int};
pub use patterns::Pattern;
pub(crate) use patterns::has_ordinary_price;

use super::eval::{At, Ctx, Val};
use super::expr::Id;

/// The arguments of a call, not evaluated yet.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub(crate) at: At<'a>,
    pub(crate) ids: &'a [Id],
    /// What calls from this place in the program may keep.
    pub(crate) memo: &'a Memo,
}

impl<'a> Args<'a> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The value of an argument; error if there is none in that place.
    pub(crate) fn eval(&self, ctx: &Ctx<'a>, place: usize) -> Val<'a> {
        self.ids.get(place).map_or(Val::Error, |id| ctx.eval(self.at, *id))
    }

    /// The value of an argument that may be left out.
    pub(crate) fn eval_if(&self, ctx: &Ctx<'a>, place: usize) -> Option<Val<'a>> {
        self.ids.get(place).map(|id| ctx.eval(self.at, *id))
    }
}

/// What calls from one place in a program keep for each other: the first pattern they compiled.
pub(crate) type Memo = OnceLock<patterns::Compiled>;

type Run = for<'a> fn(&Ctx<'a>, Args<'a>) -> Val<'a>;

/// A function as its subject's table lists it.
pub(crate) struct Entry {
    /// In lower case.
    name: &'static str,
    /// How few and how many arguments it takes; any other number is an error.
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
    /// Whether it takes so many arguments.
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

/// The function of that name, in any case.
pub(crate) fn find(name: &str) -> Option<Function> {
    let entries = || TABLES.iter().flat_map(|table| table.iter());
    entries().find(|entry| entry.name.eq_ignore_ascii_case(name)).map(Function)
}
