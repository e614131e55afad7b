//! Ads: attribute names and what they stand for.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashTable;

use super::env::Env;
use super::error::ParseError;
use super::eval;
use super::expr::Expr;
use super::name::{Name, folded_hash};
use super::syntax::{ads, parser, unparse};
use super::value::Value;

/// A set of named expressions. Cloning copies a pointer; changing a clone leaves the original alone.
///
/// An ad may be chained to a parent (a proc's ad to its cluster's): an attribute that it lacks is then the
/// parent's, evaluated as if it stood in this ad.
#[derive(Clone, Default)]
pub struct Ad(Arc<Body>);

#[derive(Clone, Default)]
struct Body {
    table: HashTable<(Name, Expr)>,
    chained: Option<Ad>,
}

impl Ad {
    /// An ad without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses an ad in the new syntax, `[a = 1; b = 2]`, which must be all there is.
    pub fn parse_new(text: &str) -> Result<Self, ParseError> {
        parser::ad(text)
    }

    /// As [`Ad::parse_new`], with HTCondor's leniency: what follows the ad is ignored.
    pub fn parse_new_leniently(text: &str) -> Result<Self, ParseError> {
        parser::ad_leniently(text)
    }

    /// Parses one ad in the long form, an attribute a line, as HTCondor's tools do: a line whose value does
    /// not parse is left out, a value ends where it cannot go on, blank lines and `#` lines are skipped.
    /// The error is for the first attribute that was left out: callers that want HTCondor's leniency use
    /// [`Ad::parse_long_lenient`].
    pub fn parse_long(text: &str) -> Result<Self, ParseError> {
        ads::long(text)
    }

    /// As [`Ad::parse_long`], with the attributes that do not parse left out and their errors returned.
    pub fn parse_long_lenient(text: &str) -> (Self, Vec<ParseError>) {
        ads::long_lenient(text)
    }

    /// Parses a stream of ads in the long form, blank lines between them.
    pub fn parse_long_stream(text: &str) -> Result<Vec<Self>, ParseError> {
        ads::long_stream(text)
    }

    /// Parses one line of the long form: the attribute in it, none if it is blank or a comment. Readers of many ads need not
    /// parse the lines that all of them have over and over.
    pub fn parse_long_line(line: &str) -> Result<Option<(Name, Expr)>, ParseError> {
        ads::attribute(line)
    }

    /// Parses one ad in whichever syntax: new if the text starts with `[`, comments and space aside.
    pub fn parse_any(text: &str) -> Result<Self, ParseError> {
        if ads::starts_new(text) { Self::parse_new(text) } else { Self::parse_long(text) }
    }

    /// Whether the two are clones of one ad and neither has been changed since. The answer takes constant time; two ads
    /// for which it is `false` may still be equal.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets an attribute to an expression, replacing one of that name, whose spelling it keeps, as HTCondor's do.
    pub fn insert(&mut self, name: impl Into<Name>, expr: impl Into<Expr>) {
        let entry = (name.into(), expr.into());
        let body = Arc::make_mut(&mut self.0);
        let hash = entry.0.hash_code();
        match body.table.find_mut(hash, |(known, _)| *known == entry.0) {
            Some(known) => known.1 = entry.1,
            None => {
                body.table.insert_unique(hash, entry, |(name, _)| name.hash_code());
            }
        }
    }

    /// Sets an attribute to a value.
    pub fn set(&mut self, name: impl Into<Name>, value: impl Into<Value>) {
        self.insert(name, Expr::literal(value));
    }

    /// As [`Ad::set`], for building an ad in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Removes an attribute from this ad (not from a chained parent) and returns what it was.
    pub fn remove(&mut self, name: &str) -> Option<Expr> {
        let hash = folded_hash(name);
        self.0.table.find(hash, |(known, _)| known.is(name))?;
        let body = Arc::make_mut(&mut self.0);
        let entry = body.table.find_entry(hash, |(known, _)| known.is(name)).ok()?;
        Some(entry.remove().0.1)
    }

    /// The expression of an attribute of this ad or its chained parent, in any case.
    pub fn get(&self, name: &str) -> Option<&Expr> {
        let hash = folded_hash(name);
        self.find(hash, |known| known.is(name))
    }

    /// As [`Ad::get`], without folding and hashing.
    pub fn get_name(&self, name: &Name) -> Option<&Expr> {
        self.find(name.hash_code(), |known| known == name)
    }

    fn find(&self, hash: u64, is: impl Fn(&Name) -> bool) -> Option<&Expr> {
        let mut ad = self;
        loop {
            if let Some((_, expr)) = ad.0.table.find(hash, |(known, _)| is(known)) {
                return Some(expr);
            }
            ad = ad.0.chained.as_ref()?;
        }
    }

    /// Whether there is such an attribute, here or in the chained parent.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Chains the ad to a parent, which answers for attributes that this ad lacks.
    pub fn chain(&mut self, parent: Option<Ad>) {
        Arc::make_mut(&mut self.0).chained = parent;
    }

    /// The parent the ad is chained to.
    pub fn chained(&self) -> Option<&Ad> {
        self.0.chained.as_ref()
    }

    /// The number of its own attributes.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Whether it has no attributes of its own.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }

    /// Its own attributes, sorted by name without regard to case.
    pub fn iter(&self) -> std::vec::IntoIter<(&Name, &Expr)> {
        let mut entries: Vec<(&Name, &Expr)> = self.0.table.iter().map(|(name, expr)| (name, expr)).collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
        entries.into_iter()
    }

    /// Its own attributes in no order: for those who read all of many ads, where sorting is most of the work.
    pub fn unsorted(&self) -> impl Iterator<Item = (&Name, &Expr)> {
        self.0.table.iter().map(|(name, expr)| (name, expr))
    }

    /// Takes over the other ad's own attributes, which win over those that are here.
    pub fn update(&mut self, other: &Ad) {
        for (name, expr) in other {
            self.insert(name, expr.clone());
        }
    }

    /// The value of an attribute, evaluated in this ad against a target; `undefined` if there is none.
    pub fn eval_attr(&self, name: &str, target: Option<&Ad>, env: &Env) -> Value {
        match self.get(name) {
            Some(expr) => eval::attribute(self, expr, target, env).value,
            None => Value::Undefined,
        }
    }

    /// The ad in the long form: an attribute a line, sorted by name, a newline after each; strings with
    /// their backslashes as they are. A chained parent is not included. The form cannot hold a string with the
    /// end of a line in it: there it says `\n`, two characters.
    pub fn to_long(&self) -> String {
        unparse::long(self)
    }
}

impl PartialEq for Ad {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
            || (self.len() == other.len()
                && self.0.chained == other.0.chained
                && self.0.table.iter().all(|(name, expr)| {
                    let twin = other.0.table.find(name.hash_code(), |(known, _)| known == name);
                    twin.is_some_and(|(_, theirs)| theirs == expr)
                }))
    }
}

/// The new syntax, on one line, attributes sorted by name. A chained parent is not included.
impl fmt::Display for Ad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unparse::ad(f, self, unparse::Style::Exact)
    }
}

impl fmt::Debug for Ad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ad({self})")
    }
}

impl<'a> IntoIterator for &'a Ad {
    type Item = (&'a Name, &'a Expr);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<Name>, E: Into<Expr>> Extend<(N, E)> for Ad {
    fn extend<I: IntoIterator<Item = (N, E)>>(&mut self, entries: I) {
        for (name, expr) in entries {
            self.insert(name, expr);
        }
    }
}

impl<N: Into<Name>, E: Into<Expr>> FromIterator<(N, E)> for Ad {
    fn from_iter<I: IntoIterator<Item = (N, E)>>(entries: I) -> Self {
        let mut ad = Self::new();
        ad.extend(entries);
        ad
    }
}
