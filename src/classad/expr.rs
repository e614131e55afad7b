//! Expressions: parsed once, immutable, shared, evaluated often.
//!
//! An expression is a flat array of nodes in the order in which the parser completed them. So the last node is the
//! root, and dropping a deep expression needs no deep stack. Equal texts give equal arrays, so two expressions are
//! compared as arrays.

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

/// The index of a node in its program.
pub(crate) type Id = u32;

/// A compiled expression. Cloning copies a pointer.
///
/// `Display` prints the expression as HTCondor does; the text parses back to an equal expression.
///
/// ```
/// use classad::{Ad, Env, Expr, Value};
///
/// let expr = Expr::parse("Memory * 2 > 1000 && isUndefined(Owner)")?;
/// let ad = Ad::new().with("Memory", 512);
/// assert_eq!(expr.eval(Some(&ad), None, &Env::at(0)), Value::Bool(true));
/// assert_eq!(expr.references().bare.len(), 2);
/// # Ok::<(), classad::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Expr(Arc<Program>);

/// The nodes of an expression.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) nodes: Box<[Node]>,
    /// The operands of all nodes that have any number of operands; each such node has a range of these.
    pub(crate) kids: Box<[Id]>,
}

/// A node. Its operands are earlier nodes.
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
    /// `a && b && ...`: one node for the whole chain.
    And(Kids),
    /// `a || b || ...`
    Or(Kids),
    Ternary(Id, Id, Id),
    Elvis(Id, Id),
    Index(Id, Id),
    /// Parentheses, which are kept to be printed.
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
    /// Set if the base is a word that names an ad of the match.
    pub(crate) scope: Option<ScopeWord>,
}

/// A function call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: Name,
    /// `None`: there is no function of this name, and the call evaluates to an error.
    pub(crate) function: Option<Function>,
    pub(crate) args: Kids,
    /// Ignored when two calls are compared.
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

/// A word that stands for an ad, unless an attribute has this name.
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

/// A range of indices into [`Program::kids`].
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

    /// The node inside any parentheses around `id`.
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

    /// The address of the expression in memory. Clones have the same address. After the last clone is dropped, another
    /// expression may get it, so a map by address must keep a clone of each key.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Parses a text that is one expression and nothing else. Strings have C escapes, as in the new syntax.
    ///
    /// The error tells line, column, what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parser::expression(text, Dialect::New)
    }

    /// Parses an expression as HTCondor's Python library does: as the value of the last attribute of an ad. The text
    /// may go on with semicolons, with attributes behind semicolons, or with a `]` and anything after it. `None`: the
    /// text does not parse even so.
    pub fn parse_leniently(text: &str) -> Option<Self> {
        let ad = parser::ad_leniently(&format!("[expression = {text}]")).ok()?;
        ad.get("expression").cloned()
    }

    /// Parses a text that is one expression and nothing else, in the spelling of the long form: in a string, a
    /// backslash stands for itself, except in `\"`.
    pub fn parse_old(text: &str) -> Result<Self, ParseError> {
        parser::expression(text, Dialect::Old)
    }

    /// Parses the expression that a text starts with; whatever follows the expression is ignored. Strings have C escapes.
    pub fn parse_prefix(text: &str) -> Result<Self, ParseError> {
        parser::expression_prefix(text, Dialect::New)
    }

    /// The expression in the spelling of the long form: what [`Expr::parse_old`] reads.
    pub fn to_old(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = unparse::expr(&mut text, self, unparse::Style::Long);
        text
    }

    /// Whether the expression is a list in braces.
    pub fn is_list(&self) -> bool {
        matches!(self.0.node(self.0.root()), Some(Node::List(_)))
    }

    /// An expression that evaluates to a value.
    pub fn literal(value: impl Into<Value>) -> Self {
        Builder::literal(&value.into())
    }

    /// The value, if the expression is a literal, in parentheses or not. `None` for lists and nested ads.
    pub fn as_literal(&self) -> Option<&Value> {
        match self.0.node(self.0.bare(self.0.root())) {
            Some(Node::Literal(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether both are one expression in memory, or the same literal. Equal expressions that were parsed apart are not compared.
    pub(crate) fn is_identical(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        match (&*self.0.nodes, &*other.0.nodes) {
            ([Node::Literal(value)], [Node::Literal(same)]) => value.is_identical(same),
            _ => false,
        }
    }

    /// Evaluates the expression. Bare names are looked up in `my`, then in `target`; `MY.name` and `TARGET.name` in
    /// one of them.
    pub fn eval(&self, my: Option<&Ad>, target: Option<&Ad>, env: &Env) -> Value {
        self.evaluate(my, target, env).value
    }

    /// As [`Expr::eval`], and also tells whether the evaluation hit a bound of [`Env::limits`].
    pub fn evaluate(&self, my: Option<&Ad>, target: Option<&Ad>, env: &Env) -> eval::Evaluation {
        eval::expression(self, my, target, env)
    }

    /// The names of the attributes that the expression itself refers to, sorted by where they are looked up.
    /// References within those attributes are not followed.
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

/// The attributes that an expression refers to; [`Expr::references`] makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Written `MY.name`: looked up in the own ad.
    pub my: BTreeSet<Name>,
    /// Written `TARGET.name` or `other.name`: looked up in the other ad.
    pub target: BTreeSet<Name>,
    /// Written `name`: looked up in the own ad, then in the other.
    pub bare: BTreeSet<Name>,
}

impl References {
    /// Whether the expression refers to no attribute.
    pub fn is_empty(&self) -> bool {
        self.my.is_empty() && self.target.is_empty() && self.bare.is_empty()
    }
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
