//! Tokens to expressions.
//!
//! Prefix and infix operators wait on a stack of the parser's own. The machine's stack grows only with brackets and `?
//! :`, whose depth is counted.

use smallvec::SmallVec;

use super::build::{Builder, MAX_DEPTH};
use super::lexer::{Dialect, Lexer, Spanned, Tok, is_space};
use super::operators::{Operator, infix, precedence, prefix};
use super::time;
use super::wanted::{Wanted, excerpt};
use crate::ad::Ad;
use crate::error::ParseError;
use crate::expr::{Call, Expr, Id, Node, ScopeWord, Select};
use crate::functions;
use crate::name::Name;
use crate::value::Value;

/// Parses a text that is one expression and nothing else.
pub(crate) fn expression(text: &str, dialect: Dialect) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text, dialect);
    let expr = parser.whole_expression()?;
    match parser.peek() {
        Tok::End => Ok(expr),
        _ => Err(parser.expected("an operator or the end of the expression")),
    }
}

/// Parses a text as HTCondor's `eval()` does: one expression and nothing else, but anything may follow a `c ? t : f`.
pub(crate) fn expression_to_evaluate(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text, Dialect::New);
    let expr = parser.whole_expression()?;
    match (parser.peek(), expr.program().node(expr.program().root())) {
        (Tok::End, _) | (_, Some(Node::Ternary(..))) => Ok(expr),
        _ => Err(parser.expected("an operator or the end of the expression")),
    }
}

/// Parses the expression that a text starts with; whatever follows is ignored.
pub(crate) fn expression_prefix(text: &str, dialect: Dialect) -> Result<Expr, ParseError> {
    Parser::new(text, dialect).whole_expression()
}

/// Parses the ad in brackets that a text starts with; whatever follows is ignored.
pub(crate) fn ad_leniently(text: &str) -> Result<Ad, ParseError> {
    Parser::new(text, Dialect::New).bracketed_ad()
}

/// Parses a text that is one ad in brackets and nothing else.
pub(crate) fn ad(text: &str) -> Result<Ad, ParseError> {
    let mut parser = Parser::new(text, Dialect::New);
    let ad = parser.bracketed_ad()?;
    match parser.peek() {
        Tok::End => Ok(ad),
        _ => Err(parser.expected("the end of the ad")),
    }
}

type Parsed<T> = Result<T, ParseError>;

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    dialect: Dialect,
    ahead: Spanned<'t>,
    /// How many brackets and conditionals are open.
    depth: u16,
    builder: Builder,
    /// A builder that is done with, whose memory is used again.
    spare: Builder,
}

/// A finished operand, or a chain of `&&` or `||` that may go on.
enum Operand {
    Node(Id),
    Run { and: bool, items: Vec<Id> },
}

/// Most operators have two operands, and few operators wait.
type Operands = SmallVec<[Operand; 4]>;

impl<'t> Parser<'t> {
    fn new(text: &'t str, dialect: Dialect) -> Self {
        let mut lexer = Lexer::new(text, dialect);
        let ahead = lexer.next();
        Self { text, lexer, dialect, ahead, depth: 0, builder: Builder::default(), spare: Builder::default() }
    }

    fn peek(&self) -> &Tok<'t> {
        &self.ahead.tok
    }

    fn bump(&mut self) -> Tok<'t> {
        let next = self.lexer.next();
        std::mem::replace(&mut self.ahead, next).tok
    }

    fn at(&self, symbol: &str) -> bool {
        matches!(self.peek(), Tok::Sym(sym) if *sym == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.at(symbol);
        if found {
            self.bump();
        }
        found
    }

    /// The error that `what` was expected where the next token stands. If that is a bad token, the error says instead
    /// what the token should have been.
    fn expected<'w>(&self, what: impl Into<Wanted<'w>>) -> ParseError {
        let Spanned { tok, start, end } = &self.ahead;
        let expected = if let Tok::Bad(fault) = tok { Wanted::This(fault) } else { what.into() };
        let found = match tok {
            Tok::End => "end of input".to_owned(),
            _ => format!("'{}'", excerpt(self.text.get(*start..*end).unwrap_or_default())),
        };
        ParseError::at(self.text, *start, expected.to_string(), found)
    }

    fn expect<'w>(&mut self, symbol: &str, what: impl Into<Wanted<'w>>) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn deep(&self) -> ParseError {
        self.expected(Wanted::LessNesting)
    }

    /// Parses an expression into a program of its own.
    fn whole_expression(&mut self) -> Parsed<Expr> {
        let spare = std::mem::take(&mut self.spare);
        let outer = std::mem::replace(&mut self.builder, spare);
        let parsed = self.full("an expression".into());
        let mut used = std::mem::replace(&mut self.builder, outer);
        parsed?;
        let expr = used.finish();
        self.spare = used;
        Ok(expr)
    }

    /// Parses `c ? t : f`, or an expression without a conditional.
    fn full(&mut self, wanted: Wanted<'_>) -> Parsed<Id> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.deep());
        }
        let mut id = self.operators(wanted)?;
        if self.eat("?") {
            let yes = self.full("an expression after '?'".into())?;
            self.expect(":", "':' of a conditional expression")?;
            let no = self.full("an expression after ':'".into())?;
            id = self.add(Node::Ternary(id, yes, no), &[id, yes, no])?;
        }
        self.depth -= 1;
        Ok(id)
    }

    fn add(&mut self, node: Node, over: &[Id]) -> Parsed<Id> {
        self.builder.add(node, over).ok_or_else(|| self.deep())
    }

    /// Parses prefix and infix operators and their operands.
    fn operators(&mut self, wanted: Wanted<'_>) -> Parsed<Id> {
        let mut operators: SmallVec<[Operator; 4]> = SmallVec::new();
        let mut operands: Operands = SmallVec::new();
        let mut after: Option<&'static str> = None;
        loop {
            while let Some((operator, symbol)) = prefix(self.peek()) {
                self.bump();
                operators.push(Operator::Unary(operator));
                after = Some(symbol);
            }
            let operand = match after {
                Some(symbol) => self.postfix(Wanted::OperandAfter(symbol))?,
                None => self.postfix(wanted)?,
            };
            operands.push(Operand::Node(operand));
            let next = infix(self.peek());
            let power = next.map_or(0, |(operator, _)| precedence(operator));
            while let Some(&top) = operators.last()
                && precedence(top) >= power
            {
                operators.pop();
                self.reduce(top, &mut operands)?;
            }
            let Some((operator, symbol)) = next else { break };
            self.bump();
            operators.push(operator);
            after = Some(symbol);
        }
        self.pop(&mut operands)
    }

    /// Takes the last operand, as a node.
    fn pop(&mut self, operands: &mut Operands) -> Parsed<Id> {
        match operands.pop() {
            Some(Operand::Node(id)) => Ok(id),
            Some(Operand::Run { and, items }) => {
                let node = if and { Node::And } else { Node::Or };
                self.builder.add_over(&items, node).ok_or_else(|| self.deep())
            }
            None => Err(self.expected("an operand")),
        }
    }

    fn reduce(&mut self, operator: Operator, operands: &mut Operands) -> Parsed<()> {
        let right = self.pop(operands)?;
        let reduced = match operator {
            Operator::Unary(unary) => Operand::Node(self.add(Node::Unary(unary, right), &[right])?),
            Operator::Binary(binary) => {
                let left = self.pop(operands)?;
                Operand::Node(self.add(Node::Binary(binary, left, right), &[left, right])?)
            }
            Operator::And | Operator::Or => {
                self.extend(matches!(operator, Operator::And), right, operands)?
            }
        };
        operands.push(reduced);
        Ok(())
    }

    /// Adds a right operand to the chain on its left, or starts a chain.
    fn extend(&mut self, and: bool, right: Id, operands: &mut Operands) -> Parsed<Operand> {
        if let Some(Operand::Run { and: same, items }) = operands.last_mut()
            && *same == and
        {
            let mut items = std::mem::take(items);
            operands.pop();
            items.push(right);
            return Ok(Operand::Run { and, items });
        }
        let left = self.pop(operands)?;
        Ok(Operand::Run { and, items: vec![left, right] })
    }

    /// Parses `a.b`, `a[i]`, `a ?: b`.
    fn postfix(&mut self, wanted: Wanted<'_>) -> Parsed<Id> {
        let mut id = self.selected(wanted)?;
        while self.eat("?:") {
            let otherwise = self.selected("an operand after '?:'".into())?;
            id = self.add(Node::Elvis(id, otherwise), &[id, otherwise])?;
        }
        Ok(id)
    }

    fn selected(&mut self, wanted: Wanted<'_>) -> Parsed<Id> {
        let mut id = self.primary(wanted)?;
        loop {
            if self.eat(".") {
                let name = self.name("an attribute name after '.'".into())?;
                id = self.select(id, name)?;
            } else if self.eat("[") {
                let index = self.full("a subscript after '['".into())?;
                self.expect("]", "']' to end the subscript")?;
                id = self.add(Node::Index(id, index), &[id, index])?;
            } else {
                return Ok(id);
            }
        }
    }

    fn select(&mut self, base: Id, name: Name) -> Parsed<Id> {
        let scope = match self.builder.node(base) {
            Some(Node::Attr(word)) => ScopeWord::of(word.as_str()),
            _ => None,
        };
        self.add(Node::Select(Select { base, name, scope }), &[base])
    }

    /// Whether nothing but white space stands between `end` and the next token. In the new syntax, two strings (or two
    /// quoted names) that adjoin are one; the long form has no such rule.
    fn adjoins(&self, end: usize) -> bool {
        let between = self.text.get(end..self.ahead.start).unwrap_or_default();
        self.dialect == Dialect::New && between.chars().all(is_space)
    }

    fn name(&mut self, wanted: Wanted<'_>) -> Parsed<Name> {
        let mut end = self.ahead.end;
        match self.peek() {
            Tok::Ident(_) | Tok::Quoted(_) => match self.bump() {
                Tok::Ident(text) => Ok(Name::from(text)),
                Tok::Quoted(mut text) => {
                    // Quoted names join, as strings do.
                    while self.adjoins(end)
                        && let Tok::Quoted(more) = self.peek()
                    {
                        text.push_str(more);
                        end = self.ahead.end;
                        self.bump();
                    }
                    Ok(Name::from(text))
                }
                _ => Err(self.expected(wanted)),
            },
            _ => Err(self.expected(wanted)),
        }
    }

    fn primary(&mut self, wanted: Wanted<'_>) -> Parsed<Id> {
        let value = match self.peek() {
            Tok::Int(value) => Value::Int(*value),
            Tok::Real(value) => Value::Real(*value),
            Tok::Word("true") => Value::Bool(true),
            Tok::Word("false") => Value::Bool(false),
            Tok::Word("undefined") => Value::Undefined,
            Tok::Word("error") => Value::Error,
            Tok::Str(_) => return self.string(),
            Tok::Ident(_) | Tok::Quoted(_) => return self.identifier(),
            Tok::Sym(".") => {
                self.bump();
                let name = self.name("an attribute name after '.'".into())?;
                return self.add(Node::RootAttr(name), &[]);
            }
            Tok::Sym("(") => return self.parentheses(),
            Tok::Sym("{") => {
                self.bump();
                let items = self.items("}", false)?;
                return self.builder.add_over(&items, Node::List).ok_or_else(|| self.deep());
            }
            Tok::Sym("[") => {
                let ad = self.bracketed_ad()?;
                return self.builder.ad(ad).ok_or_else(|| self.deep());
            }
            _ => return Err(self.expected(wanted)),
        };
        self.bump();
        self.add(Node::Literal(value), &[])
    }

    fn parentheses(&mut self) -> Parsed<Id> {
        self.bump();
        let inner = self.full("an expression after '('".into())?;
        self.expect(")", "')' or an operator")?;
        self.add(Node::Paren(inner), &[inner])
    }

    fn string(&mut self) -> Parsed<Id> {
        let mut text = String::new();
        while let Tok::Str(part) = self.peek() {
            text.push_str(part);
            let end = self.ahead.end;
            self.bump();
            if !self.adjoins(end) {
                break;
            }
        }
        self.add(Node::Literal(Value::from(text)), &[])
    }

    /// Parses a bare name or a function call.
    fn identifier(&mut self) -> Parsed<Id> {
        let start = self.ahead.start;
        let name = self.name("a name".into())?;
        if !self.eat("(") {
            return self.add(Node::Attr(name), &[]);
        }
        let args = self.items(")", true)?;
        if let Some(value) = self.constant(&name, &args, start)? {
            return self.add(Node::Literal(value), &[]);
        }
        let function = functions::find(name.as_str());
        let node = |args| Node::Call(Call::new(name, function, args));
        self.builder.add_over(&args, node).ok_or_else(|| self.deep())
    }

    /// A call that stands for a constant. Times, infinities and NaN have no literals of their own: they are written as
    /// a call with a string.
    fn constant(&mut self, name: &Name, args: &[Id], start: usize) -> Parsed<Option<Value>> {
        let [arg] = args else { return Ok(None) };
        let Some(Node::Literal(Value::Str(text))) = self.builder.node(*arg) else { return Ok(None) };
        let value = if name.is("absTime") {
            time::parse_absolute(text).map(Value::AbsTime).ok_or("a time like \"2026-01-31T12:00:00Z\"")
        } else if name.is("relTime") {
            time::parse_relative(text).map(Value::RelTime).ok_or("a time span like \"1+02:30:00\"")
        } else if name.is("real") {
            match &**text {
                "INF" => Ok(Value::Real(f64::INFINITY)),
                "-INF" => Ok(Value::Real(f64::NEG_INFINITY)),
                "NaN" => Ok(Value::Real(f64::NAN)),
                _ => return Ok(None),
            }
        } else {
            return Ok(None);
        };
        let text = text.clone();
        self.builder.remove_last();
        value.map(Some).map_err(|wanted| {
            let found = format!("'{name}(\"{}\")'", excerpt(&text));
            ParseError::at(self.text, start, wanted.to_owned(), found)
        })
    }

    /// Parses expressions with commas between them, up to the closing bracket.
    fn items(&mut self, close: &'static str, semicolons: bool) -> Parsed<Vec<Id>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(self.full("an expression".into())?);
            if self.eat(close) {
                return Ok(items);
            }
            let separated = self.eat(",") || (semicolons && self.eat(";"));
            if !separated {
                return Err(self.expected(if close == ")" { "',' or ')'" } else { "',' or '}'" }));
            }
        }
    }

    /// Parses `[ a = 1; b = 2 ]`.
    fn bracketed_ad(&mut self) -> Parsed<Ad> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.deep());
        }
        self.expect("[", "'[' to start an ad")?;
        let mut ad = Ad::new();
        while self.at(";") {
            self.bump();
            if self.at("]") {
                // HTCondor takes semicolons around attributes, but not semicolons alone.
                return Err(self.expected("an attribute name"));
            }
        }
        loop {
            while self.eat(";") {}
            if self.eat("]") {
                break;
            }
            let start = self.ahead.start;
            let name = self.name("an attribute name or ']'".into())?;
            if name.as_str().is_empty() {
                let wanted = "a name for the attribute".to_owned();
                return Err(ParseError::at(self.text, start, wanted, "''".to_owned()));
            }
            self.expect("=", Wanted::EqualsAfter(name.as_str()))?;
            let expr = self.whole_expression()?;
            ad.insert(name, expr);
            if !self.at(";") && !self.at("]") {
                return Err(self.expected("';' or ']' after the attribute"));
            }
        }
        self.depth -= 1;
        Ok(ad)
    }
}
