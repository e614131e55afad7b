//! Ads: sets of named expressions.

use std::fmt;
use std::sync::Arc;

use super::env::Env;
use super::error::ParseError;
use super::eval;
use super::expr::Expr;
use super::layers::Layers;
use super::name::{Name, folded_hash};
use super::syntax::{ads, parser, unparse};
use super::value::Value;

/// An ad: a set of named expressions. Cloning copies a pointer; a change to a clone leaves the original alone.
///
/// An ad may be chained to a parent, as HTCondor chains the ad of a proc to the ad of its cluster. An attribute that
/// the ad lacks is then the parent's, evaluated as if it stood in this ad.
///
/// ```
/// use classad::{Ad, Env, Expr, Value};
///
/// let mut cluster = Ad::new().with("Total", 10);
/// cluster.insert("Left", Expr::parse("Total - ProcId")?);
/// let mut proc = Ad::new().with("ProcId", 3);
/// proc.chain(Some(cluster));
/// assert_eq!(proc.eval_attr("left", None, &Env::at(0)), Value::Int(7));
/// assert_eq!(proc.to_long(), "ProcId = 3\n");
/// # Ok::<(), classad::ParseError>(())
/// ```
///
/// Attributes that many ads have alike may be kept once, in an ad that these ads stand on ([`Ad::share_with`]). Only memory and time tell
/// the difference.
#[derive(Clone, Default)]
pub struct Ad(Arc<Body>);

#[derive(Clone, Default)]
struct Body {
    layers: Layers,
    chained: Option<Ad>,
}

impl Ad {
    /// An ad without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a text that is one ad in the new syntax, `[a = 1; b = 2]`, and nothing else.
    pub fn parse_new(text: &str) -> Result<Self, ParseError> {
        parser::ad(text)
    }

    /// As [`Ad::parse_new`], but whatever follows the ad is ignored, as HTCondor does.
    pub fn parse_new_leniently(text: &str) -> Result<Self, ParseError> {
        parser::ad_leniently(text)
    }

    /// Parses one ad in the long form: an attribute a line. Blank lines and lines that start with `#` are skipped, and
    /// whatever follows a complete value on its line is ignored, as HTCondor's tools do.
    ///
    /// The error is that of the first line that does not parse. HTCondor's tools leave such a line out: see
    /// [`Ad::parse_long_lenient`].
    pub fn parse_long(text: &str) -> Result<Self, ParseError> {
        ads::long(text)
    }

    /// As [`Ad::parse_long`], but lines that do not parse are left out of the ad, and their errors are returned with
    /// it.
    pub fn parse_long_lenient(text: &str) -> (Self, Vec<ParseError>) {
        ads::long_lenient(text)
    }

    /// Parses ads in the long form with blank lines between them. The error is that of the first line that does not
    /// parse.
    pub fn parse_long_stream(text: &str) -> Result<Vec<Self>, ParseError> {
        ads::long_stream(text)
    }

    /// Parses one line of the long form. `None`: the line is blank or a comment.
    ///
    /// A reader of many ads can so keep the attributes of lines that all the ads share, instead of parsing them again.
    pub fn parse_long_line(line: &str) -> Result<Option<(Name, Expr)>, ParseError> {
        ads::attribute(line)
    }

    /// Parses one ad in either syntax: the new one if the text starts with `[` after comments and white space, else
    /// the long form.
    pub fn parse_any(text: &str) -> Result<Self, ParseError> {
        if ads::starts_new(text) { Self::parse_new(text) } else { Self::parse_long(text) }
    }

    /// Whether the two are clones of one ad and neither has been changed since. The answer takes constant time; two ads
    /// for which it is `false` may still be equal.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets an attribute to an expression. An attribute of this name is replaced and, as in HTCondor, keeps the
    /// spelling of its name.
    pub fn insert(&mut self, name: impl Into<Name>, expr: impl Into<Expr>) {
        Arc::make_mut(&mut self.0).layers.insert(name.into(), expr.into());
    }

    /// Lets the ad share memory with another. The ad stays what it was.
    ///
    /// If most attributes of the two are alike, the ad keeps only those that differ. Else names and literals that both have are kept
    /// once.
    pub fn share_with(&mut self, other: &Self) {
        Arc::make_mut(&mut self.0).layers.share_with(&other.0.layers);
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

    /// Removes an attribute of this ad and returns its expression. A chained parent keeps its attributes.
    pub fn remove(&mut self, name: &str) -> Option<Expr> {
        let hash = folded_hash(name);
        self.0.layers.find(hash, |known| known.is(name))?;
        Arc::make_mut(&mut self.0).layers.remove(hash, |known| known.is(name))
    }

    /// The expression of an attribute of this ad or its chained parent. The name is compared without case.
    pub fn get(&self, name: &str) -> Option<&Expr> {
        let hash = folded_hash(name);
        self.find(hash, |known| known.is(name))
    }

    /// As [`Ad::get`], for a name that is hashed already.
    pub fn get_name(&self, name: &Name) -> Option<&Expr> {
        self.find(name.hash_code(), |known| known == name)
    }

    fn find(&self, hash: u64, is: impl Fn(&Name) -> bool) -> Option<&Expr> {
        let mut ad = self;
        loop {
            if let Some((_, expr)) = ad.0.layers.find(hash, &is) {
                return Some(expr);
            }
            ad = ad.0.chained.as_ref()?;
        }
    }

    /// Whether this ad or its chained parent has the attribute.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Chains the ad to a parent, whose attributes count where this ad lacks them; `None` ends the chain.
    pub fn chain(&mut self, parent: Option<Ad>) {
        Arc::make_mut(&mut self.0).chained = parent;
    }

    /// The parent that the ad is chained to.
    pub fn chained(&self) -> Option<&Ad> {
        self.0.chained.as_ref()
    }

    /// The number of attributes of this ad, its chained parent's left out.
    pub fn len(&self) -> usize {
        self.0.layers.len()
    }

    /// Whether this ad has no attributes, its chained parent's left out.
    pub fn is_empty(&self) -> bool {
        self.0.layers.len() == 0
    }

    /// The attributes of this ad, its chained parent's left out, sorted by name without case.
    pub fn iter(&self) -> std::vec::IntoIter<(&Name, &Expr)> {
        let mut entries: Vec<(&Name, &Expr)> = self.unsorted().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
        entries.into_iter()
    }

    /// As [`Ad::iter`], in no order. Sorting is most of the work of reading all attributes of many ads.
    pub fn unsorted(&self) -> impl Iterator<Item = (&Name, &Expr)> {
        self.0.layers.iter().map(|(name, expr)| (name, expr))
    }

    /// Sets all attributes that the other ad has, its chained parent's left out. An attribute of the same name is
    /// replaced.
    pub fn update(&mut self, other: &Ad) {
        for (name, expr) in other {
            self.insert(name, expr.clone());
        }
    }

    #[cfg(test)]
    pub(crate) fn layers(&self) -> &Layers {
        &self.0.layers
    }

    /// Evaluates an attribute in this ad, with `target` as the other ad of a match. `undefined`: there is no such
    /// attribute.
    pub fn eval_attr(&self, name: &str, target: Option<&Ad>, env: &Env) -> Value {
        self.evaluate_attr(name, target, env).value
    }

    /// As [`Ad::eval_attr`], and also tells what the evaluation cost, and whether it hit a bound of [`Env::limits`].
    pub fn evaluate_attr(&self, name: &str, target: Option<&Ad>, env: &Env) -> eval::Evaluation {
        match self.get(name) {
            Some(expr) => eval::attribute(self, expr, target, env),
            None => eval::Evaluation { value: Value::Undefined, bound: None, steps: 0 },
        }
    }

    /// The ad in the long form: an attribute a line, sorted by name, with a newline after each. A chained parent is
    /// left out.
    ///
    /// A backslash in a string stands for itself, so the form cannot hold a string with an end of line: such a string
    /// prints with `\n`, two characters.
    pub fn to_long(&self) -> String {
        unparse::long(self)
    }
}

impl PartialEq for Ad {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
            || (self.len() == other.len()
                && self.0.chained == other.0.chained
                && self.unsorted().all(|(name, expr)| {
                    let twin = other.0.layers.find(name.hash_code(), |known| known == name);
                    twin.is_some_and(|(_, theirs)| theirs == expr)
                }))
    }
}

/// The ad in the new syntax, on one line, sorted by name. A chained parent is left out.
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
