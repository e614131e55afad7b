//! Expressions: parsed once, immutable, shared, evaluated often.
//!
//! An expression is a flat array of nodes in the order in which they were completed, so that the last is
//! its root and dropping a deep one needs no deep stack. Equal text gives equal arrays: comparing
//! expressions compares those.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::ad::Ad;
use super::env::Env;
use super::error::ParseError;
use super::eval;
use super::functions::{Function, Memo};
use super::name::Name;
use super::syntax::build::Builder;
use super::syntax::lexer::Dialect;
use super::syntax::parser;
use super::syntax::unparse;
use super::value::Value;

/// The place of a node in its program.
pub(crate) type Id = u32;

/// A compiled expression. Cloning copies a pointer.
///
/// `Display` prints it the way HTCondor does, in text that parses back to an equal expression.
#[derive(Clone)]
pub struct Expr(Arc<Program>);

/// The nodes of an expression.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) nodes: Box<[Node]>,
    /// Operands of nodes that have any number of them; a node has a range of these.
    pub(crate) kids: Box<[Id]>,
}

/// A node; operands are earlier nodes.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Value),
    /// A bare name.
    Attr(Name),
    /// `.name`: a name in the outermost ad.
    RootAttr(Name),
    Select(Select),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// `a && b && ...`, in one node however long.
    And(Kids),
    /// `a || b || ...`
    Or(Kids),
    Ternary(Id, Id, Id),
    Elvis(Id, Id),
    Index(Id, Id),
    /// Parentheses: kept because they are printed.
    Paren(Id),
    List(Kids),
    Ad(Ad),
    Call(Call),
}

/// `base.name`
#[derive(Debug, PartialEq)]
pub(crate) struct Select {
    pub(crate) base: Id,
    pub(crate) name: Name,
    /// Set where the base is one of the words that name an ad of the match.
    pub(crate) scope: Option<ScopeWord>,
}

/// A function call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: Name,
    /// `None`: no such function; calling it is an error.
    pub(crate) function: Option<Function>,
    pub(crate) args: Kids,
    /// Of no account where calls are compared.
    pub(crate) memo: Memo,
}

impl Call {
    pub(crate) fn new(name: Name, function: Option<Function>, args: Kids) -> Self {
        Self { name, function, args, memo: Memo::new() }
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}

/// Names that stand for an ad unless an attribute has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeWord {
    My,
    Target,
    Parent,
    Root,
}

impl ScopeWord {
    pub(crate) fn of(name: &str) -> Option<Self> {
        let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(name));
        match name.len() {
            2 | 4 if is(&["my", "self"]) => Some(Self::My),
            5 | 6 if is(&["target", "other"]) => Some(Self::Target),
            6 if is(&["parent"]) => Some(Self::Parent),
            4 | 8 if is(&["root", "toplevel"]) => Some(Self::Root),
            _ => None,
        }
    }
}

/// A range of [`Program::kids`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kids {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Kids {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A prefix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Not,
    Complement,
}

/// An infix operator other than `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Multiply,
    Divide,
    Modulus,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Is,
    Isnt,
    BitAnd,
    BitXor,
    BitOr,
}

impl Program {
    pub(crate) fn root(&self) -> Id {
        Id::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(0)
    }

    pub(crate) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    pub(crate) fn kids(&self, kids: Kids) -> &[Id] {
        self.kids.get(kids.range()).unwrap_or_default()
    }

    /// The node inside any parentheses.
    pub(crate) fn bare(&self, mut id: Id) -> Id {
        while let Some(Node::Paren(inner)) = self.node(id) {
            id = *inner;
        }
        id
    }
}

impl Expr {
    pub(crate) fn from_program(program: Program) -> Self {
        Self(Arc::new(program))
    }

    pub(crate) fn program(&self) -> &Program {
        &self.0
    }

    /// Where it is in memory: the same for its clones, and another's once all of them are gone.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Parses one expression, which must be all there is. Strings have C escapes, as in the new syntax.
    ///
    /// The error tells line, column, what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parser::expression(text, Dialect::New)
    }

    /// As HTCondor's library for Python reads an expression: as an attribute's value at the end of an ad. Semicolons, and
    /// attributes with semicolons before them, may follow, or a `]` with anything after it. `None`: it does not parse so.
    pub fn parse_leniently(text: &str) -> Option<Self> {
        let ad = parser::ad_leniently(&format!("[expression = {text}]")).ok()?;
        ad.get("expression").cloned()
    }

    /// Parses one expression in the spelling of the long form, where a backslash stands for itself; all of
    /// the text must be the expression.
    pub fn parse_old(text: &str) -> Result<Self, ParseError> {
        parser::expression(text, Dialect::Old)
    }

    /// An expression that is a value.
    pub fn literal(value: impl Into<Value>) -> Self {
        Builder::literal(&value.into())
    }

    /// The value, if the expression is nothing but one (parentheses aside). Lists and nested ads are none.
    pub fn as_literal(&self) -> Option<&Value> {
        match self.0.node(self.0.bare(self.0.root())) {
            Some(Node::Literal(value)) => Some(value),
            _ => None,
        }
    }

    /// Evaluates with bare names looked up in `my`, then in `target`.
    pub fn eval(&self, my: Option<&Ad>, target: Option<&Ad>, env: &Env) -> Value {
        self.evaluate(my, target, env).value
    }

    /// As [`Expr::eval`], and tells whether a bound of [`Env::limits`] was hit.
    pub fn evaluate(&self, my: Option<&Ad>, target: Option<&Ad>, env: &Env) -> eval::Evaluation {
        eval::expression(self, my, target, env)
    }

    /// The names of attributes that the expression itself refers to, not following them: what it reads of
    /// its own ad, of the other, and of whichever has it.
    pub fn references(&self) -> References {
        let mut found = References::default();
        self.collect(&mut found);
        found
    }

    fn collect(&self, found: &mut References) {
        for node in &self.0.nodes {
            match node {
                Node::Select(Select { name, scope: Some(ScopeWord::My), .. }) => {
                    found.my.insert(name.clone());
                }
                Node::Select(Select { name, scope: Some(ScopeWord::Target), .. }) => {
                    found.target.insert(name.clone());
                }
                Node::Attr(name) | Node::RootAttr(name) if ScopeWord::of(name.as_str()).is_none() => {
                    found.bare.insert(name.clone());
                }
                Node::Ad(ad) => ad.iter().for_each(|(_, inner)| inner.collect(found)),
                _ => {}
            }
        }
    }
}

/// What [`Expr::references`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// `MY.name`
    pub my: BTreeSet<Name>,
    /// `TARGET.name` and `other.name`
    pub target: BTreeSet<Name>,
    /// `name`: in its own ad, or else in the other.
    pub bare: BTreeSet<Name>,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unparse::node(f, &self.0, self.0.root(), unparse::Style::Exact)
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({self})")
    }
}

impl std::str::FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Self {
        Self::literal(value)
    }
}
