//! Lowering: from an expression in its ad to what is left of it. Attributes of the ad are replaced by their values,
//! constants are folded, and conditions are split into clauses.
//!
//! The lowered expression has the value that the plain evaluator gives, whatever the other ad is. An expression for
//! which this cannot be promised is refused: it looks at scopes, draws random numbers, makes lists, or is so large
//! that an evaluation might hit a bound.

use super::calls::{Call, Nature};
use super::ir::{Ir, scalar};
use super::recall::{Outcome, Recall, Recalled};
use super::symbols::Symbols;
use crate::ad::Ad;
use crate::env::{Env, Limits};
use crate::eval::{Tri, Val, binary, is_around_a_match, unary};
use crate::expr::{Call as CallNode, Expr, Id, Kids, Node, Program, ScopeWord, Select};
use crate::name::Name;
use crate::value::Value;

/// The deepest expression that is lowered, counted with the attributes that it refers to. The plain evaluator counts
/// up to two levels for each of these, on both sides of a match.
const DEPTH: u16 = 90;

/// The largest expression that is lowered, in nodes and bytes of text, counted with the attributes that it refers to.
const SIZE: usize = 20_000;

/// How many steps an expression may cost for each node and byte of its size.
const STEPS: usize = 4;

/// The narrowest limits that no expression of that depth and size can hit.
const LEAST: Limits = Limits { steps: 150_000, depth: 400, string: 1 << 18, list: 20_000 };

/// Whether the limits are wide enough for compiled expressions, which do not check them.
pub(super) fn allowed(limits: &Limits) -> bool {
    limits.steps >= LEAST.steps
        && limits.depth >= LEAST.depth
        && limits.string >= LEAST.string
        && limits.list >= LEAST.list
}

/// An expression cannot be lowered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused;

/// A condition as clauses that are joined by `&&`. No clause is constant.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition {
    pub(super) clauses: Vec<Ir>,
    /// The condition is true of no other ad.
    pub(super) never: bool,
    /// The clauses are not the whole condition: where they are true, the plain evaluator must decide.
    pub(super) verify: bool,
    /// How much was looked at, in nodes and bytes of text.
    pub(super) size: u64,
}

impl Condition {
    /// A condition that the plain evaluator must decide.
    pub(super) fn unknown() -> Self {
        Self { verify: true, ..Self::default() }
    }

    /// The `Requirements` of an ad. An ad without `Requirements` accepts nothing.
    pub(super) fn requirements(ad: &Ad, symbols: &mut Symbols, recall: Option<&mut Recall>) -> Self {
        let mut condition = Self::default();
        match ad.get("Requirements") {
            Some(expr) => {
                let mut lowering = Lowering { recall, ..Lowering::new(ad, symbols) };
                lowering.condition(expr, &mut condition);
                condition.size = lowering.size as u64;
            }
            None => condition.never = true,
        }
        if condition.never {
            condition = Self { never: true, size: condition.size, ..Self::default() };
        }
        condition
    }
}

/// The value of an attribute if it depends on its own ad alone and is a scalar; `undefined` if there is no such
/// attribute.
pub(super) fn closed(ad: &Ad, name: &Name) -> Option<Value> {
    let Some(expr) = ad.get_name(name) else { return Some(Value::Undefined) };
    if let [Node::Literal(value)] = &*expr.program().nodes {
        return scalar(&Val::of(value));
    }
    match Lowering::closed(ad).attribute(expr) {
        Ok(Ir::Const(value)) => Some(value),
        _ => None,
    }
}

/// Lowers an attribute of an ad, as [`Ad::eval_attr`] evaluates it.
pub(super) fn attribute(ad: &Ad, name: &str, symbols: &mut Symbols) -> Result<Ir, Refused> {
    match ad.get(name) {
        Some(expr) => {
            let mut lowering = Lowering::new(ad, symbols);
            lowering.attribute(expr).map(|ir| lowering.metered(ir, 0))
        }
        None => Ok(Ir::Const(Value::Undefined)),
    }
}

/// Lowers an expression that is evaluated in an ad but is no attribute of it.
pub(super) fn expression(ad: &Ad, expr: &Expr, symbols: &mut Symbols) -> Result<Ir, Refused> {
    let mut lowering = Lowering::new(ad, symbols);
    lowering.expr(expr.program(), expr.program().root()).map(|ir| lowering.metered(ir, 0))
}

/// Lowers expressions of one ad.
struct Lowering<'a, 's> {
    ad: &'a Ad,
    /// The attributes of the other ad by number. `None`: the expression must not look at the other ad.
    symbols: Option<&'s mut Symbols>,
    /// The outcomes of clauses that are remembered.
    recall: Option<&'s mut Recall>,
    /// The attributes whose expressions are being lowered.
    active: Vec<&'a Program>,
    depth: u16,
    size: usize,
}

impl<'a, 's> Lowering<'a, 's> {
    fn new(ad: &'a Ad, symbols: &'s mut Symbols) -> Self {
        // Lowered expressions reach the other ad by the name TARGET.
        let symbols = if ad.contains("TARGET") { None } else { Some(symbols) };
        Self { ad, symbols, recall: None, active: Vec::new(), depth: 0, size: 0 }
    }

    fn closed(ad: &'a Ad) -> Self {
        Self { ad, symbols: None, recall: None, active: Vec::new(), depth: 0, size: 0 }
    }

    /// Splits the condition that is an attribute's expression.
    fn condition(&mut self, expr: &'a Expr, into: &mut Condition) {
        let program = expr.program();
        if self.active.iter().any(|active| std::ptr::eq(*active, program)) {
            // A circular reference is undefined.
            into.never = true;
            return;
        }
        self.active.push(program);
        self.conjunct(expr, program.root(), into);
        self.active.pop();
    }

    fn conjunct(&mut self, expr: &'a Expr, id: Id, into: &mut Condition) {
        let program = expr.program();
        if into.never {
            return;
        }
        if self.enter(1).is_err() {
            into.verify = true;
        } else {
            match program.node(program.bare(id)) {
                Some(Node::And(items)) => {
                    for item in program.kids(*items) {
                        self.conjunct(expr, *item, into);
                    }
                }
                Some(node) => match self.own(program, node) {
                    Some(own) => self.condition(own, into),
                    None => self.clause(expr, id, into),
                },
                None => into.never = true,
            }
        }
        self.leave();
    }

    fn clause(&mut self, expr: &'a Expr, id: Id, into: &mut Condition) {
        // A remembered outcome may ask the other ad, which is not allowed without symbols.
        let known = match &mut self.recall {
            Some(recall) if self.symbols.is_some() => recall.find(expr, id, self.ad),
            _ => Recalled::Never,
        };
        let outcome = match known {
            Recalled::Outcome(outcome) => outcome,
            Recalled::Never => self.outcome(expr.program(), id),
            Recalled::Nothing(place) => {
                let outcome = self.outcome(expr.program(), id);
                if let Some(recall) = &mut self.recall {
                    recall.keep(place, outcome.clone());
                }
                outcome
            }
        };
        match outcome {
            Outcome::True => {}
            Outcome::Never => into.never = true,
            Outcome::Verify => into.verify = true,
            Outcome::Clause(clause) => into.clauses.push(clause),
        }
    }

    fn outcome(&mut self, program: &'a Program, id: Id) -> Outcome {
        let before = self.size;
        match self.expr(program, id).map(|ir| self.metered(ir, before)) {
            Ok(Ir::Const(value)) if value.as_bool_equiv() == Some(true) => Outcome::True,
            Ok(Ir::Const(_)) => Outcome::Never,
            Ok(clause) => Outcome::Clause(clause),
            Err(Refused) => Outcome::Verify,
        }
    }

    /// The attribute of this ad that a node refers to.
    fn own(&self, program: &'a Program, node: &'a Node) -> Option<&'a Expr> {
        match node {
            Node::Attr(name) => self.ad.get_name(name),
            Node::Select(select) if self.scope(program, select) == Some(ScopeWord::My) => {
                self.ad.get_name(&select.name)
            }
            _ => None,
        }
    }

    /// The ad of the match that a selection selects from, if it is one of the two.
    fn scope(&self, program: &Program, select: &Select) -> Option<ScopeWord> {
        let scope = select.scope?;
        match program.node(select.base) {
            Some(Node::Attr(word)) if self.ad.get_name(word).is_none() => Some(scope),
            _ => None,
        }
    }

    /// An expression that was lowered since the size was `before`. Its cost must not be out of proportion to its size:
    /// only the plain evaluator adds up the costs of all parts of an expression.
    fn metered(&self, ir: Ir, before: usize) -> Ir {
        ir.metered(self.size.saturating_sub(before).saturating_mul(STEPS))
    }

    fn enter(&mut self, size: usize) -> Result<(), Refused> {
        self.depth += 1;
        self.size += size;
        if self.depth > DEPTH || self.size > SIZE { Err(Refused) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn attribute(&mut self, expr: &'a Expr) -> Result<Ir, Refused> {
        let program = expr.program();
        if self.active.iter().any(|active| std::ptr::eq(*active, program)) {
            return Ok(Ir::Const(Value::Undefined));
        }
        self.active.push(program);
        let lowered = self.expr(program, program.root());
        self.active.pop();
        lowered
    }

    fn expr(&mut self, program: &'a Program, id: Id) -> Result<Ir, Refused> {
        let lowered = match (self.enter(1), program.node(id)) {
            (Ok(()), Some(node)) => self.node(program, node),
            _ => Err(Refused),
        };
        self.leave();
        lowered
    }

    fn node(&mut self, program: &'a Program, node: &'a Node) -> Result<Ir, Refused> {
        match node {
            Node::Literal(value) => self.constant(&Val::of(value)),
            Node::Attr(name) => self.bare(name),
            Node::Select(select) => self.select(program, select),
            Node::Unary(op, operand) => match self.expr(program, *operand)? {
                Ir::Const(value) => self.constant(&unary(*op, &Val::of(&value))),
                operand => Ok(Ir::Unary(*op, Box::new(operand))),
            },
            Node::Binary(op, left, right) => {
                match (self.expr(program, *left)?, self.expr(program, *right)?) {
                    (Ir::Const(a), Ir::Const(b)) => {
                        let bytes = |value: &Value| value.as_str().map_or(0, str::len);
                        self.size += bytes(&a).min(bytes(&b)) / 16;
                        self.constant(&binary(*op, &Val::of(&a), &Val::of(&b)))
                    }
                    operands => Ok(Ir::Binary(*op, Box::new(operands))),
                }
            }
            Node::And(items) => self.and(program, *items),
            Node::Or(items) => self.or(program, *items),
            Node::Ternary(condition, yes, no) => self.ternary(program, [*condition, *yes, *no]),
            Node::Elvis(value, otherwise) => match self.expr(program, *value)? {
                Ir::Const(Value::Undefined) => self.expr(program, *otherwise),
                Ir::Const(value) => Ok(Ir::Const(value)),
                value => Ok(Ir::Elvis(Box::new((value, self.expr(program, *otherwise)?)))),
            },
            Node::Paren(inner) => self.expr(program, program.bare(*inner)),
            Node::Call(call) => self.call(program, call),
            Node::RootAttr(_) | Node::Index(..) | Node::List(_) | Node::Ad(_) => Err(Refused),
        }
    }

    fn constant(&mut self, value: &Val<'_>) -> Result<Ir, Refused> {
        self.size += value.as_str().map_or(0, str::len);
        if self.size > SIZE { Err(Refused) } else { scalar(value).map(Ir::Const).ok_or(Refused) }
    }

    fn bare(&mut self, name: &Name) -> Result<Ir, Refused> {
        match self.ad.get_name(name) {
            Some(expr) => self.attribute(expr),
            None if is_special(name) => special(name),
            None => self.other(name),
        }
    }

    fn select(&mut self, program: &'a Program, select: &'a Select) -> Result<Ir, Refused> {
        match self.scope(program, select) {
            Some(ScopeWord::My) => match self.ad.get_name(&select.name) {
                Some(expr) => self.attribute(expr),
                None if is_special(&select.name) => special(&select.name),
                None => Ok(Ir::Const(Value::Undefined)),
            },
            Some(ScopeWord::Target) if !is_special(&select.name) => self.other(&select.name),
            _ => Err(Refused),
        }
    }

    fn other(&mut self, name: &Name) -> Result<Ir, Refused> {
        self.symbols.as_mut().map(|symbols| Ir::Other(symbols.intern(name))).ok_or(Refused)
    }

    fn and(&mut self, program: &'a Program, items: Kids) -> Result<Ir, Refused> {
        let mut left = Vec::new();
        for id in program.kids(items) {
            match self.expr(program, *id)? {
                Ir::Const(value) => match Tri::of(&Val::of(&value)) {
                    Tri::True => {}
                    // The operands after this one do not matter.
                    end @ (Tri::False | Tri::Error) => {
                        left.push(Ir::Const(end.value()));
                        break;
                    }
                    Tri::Undefined => left.push(Ir::Const(Value::Undefined)),
                },
                item => left.push(item),
            }
        }
        Ok(match left.as_slice() {
            [] => Ir::Const(Value::Bool(true)),
            [Ir::Const(_)] => left.remove(0),
            _ => Ir::And(left.into()),
        })
    }

    fn or(&mut self, program: &'a Program, items: Kids) -> Result<Ir, Refused> {
        let mut left = Vec::new();
        for id in program.kids(items) {
            match self.expr(program, *id)? {
                Ir::Const(value) => match Tri::of(&Val::of(&value)) {
                    Tri::False => {}
                    end @ (Tri::True | Tri::Error) => {
                        left.push(Ir::Const(end.value()));
                        break;
                    }
                    Tri::Undefined => left.push(Ir::Const(Value::Undefined)),
                },
                item => left.push(item),
            }
        }
        Ok(match left.as_slice() {
            [] => Ir::Const(Value::Bool(false)),
            [Ir::Const(_)] => left.remove(0),
            _ => Ir::Or(left.into()),
        })
    }

    fn ternary(&mut self, program: &'a Program, [condition, yes, no]: [Id; 3]) -> Result<Ir, Refused> {
        match self.expr(program, condition)? {
            Ir::Const(value) => match Tri::of(&Val::of(&value)) {
                Tri::True => self.expr(program, yes),
                Tri::False => self.expr(program, no),
                other => Ok(Ir::Const(other.value())),
            },
            condition => {
                let parts = (condition, self.expr(program, yes)?, self.expr(program, no)?);
                Ok(Ir::Ternary(Box::new(parts)))
            }
        }
    }

    fn call(&mut self, program: &'a Program, call: &'a CallNode) -> Result<Ir, Refused> {
        let args = program.kids(call.args);
        let Some(function) = call.function.filter(|function| function.takes(args.len())) else {
            return Ok(Ir::Const(Value::Error));
        };
        match args {
            [] if call.name.is("time") => return Ok(Ir::Now),
            [condition, yes, no] if call.name.is("ifThenElse") => {
                return self.ternary(program, [*condition, *yes, *no]);
            }
            [operand] if call.name.is("isUndefined") => {
                return Ok(match self.expr(program, *operand)? {
                    Ir::Const(value) => Ir::Const(Value::Bool(value.is_undefined())),
                    operand => Ir::IsUndefined(Box::new(operand)),
                });
            }
            _ => {}
        }
        let nature = Nature::of(&call.name);
        if nature == Nature::Other {
            return Err(Refused);
        }
        let mut lowered = Vec::with_capacity(args.len());
        for (place, id) in args.iter().enumerate() {
            lowered.push(match program.node(program.bare(*id)) {
                Some(Node::List(items)) if nature == Nature::PureOfList(place) => {
                    let items = program.kids(*items).iter().map(|item| self.expr(program, *item));
                    Ir::List(items.collect::<Result<_, _>>()?)
                }
                _ => self.expr(program, *id)?,
            });
        }
        let mut none = Symbols::default();
        let symbols = self.symbols.as_deref_mut().unwrap_or(&mut none);
        let call = Call::of(&call.name, function, &lowered, symbols).ok_or(Refused)?;
        if let Some((value, steps)) = call.constant(&Env { limits: LEAST, ..Env::at(0) }) {
            self.size += steps as usize / STEPS;
            return self.constant(&Val::of(&value));
        }
        self.size += call.price / STEPS;
        if self.size > SIZE { Err(Refused) } else { Ok(Ir::Call(call)) }
    }
}

/// Whether a name that no attribute has means something.
fn is_special(name: &Name) -> bool {
    ScopeWord::of(name.as_str()).is_some() || name.is("CurrentTime") || is_around_a_match(name.as_str())
}

/// The meaning of a name for which [`is_special`] is true. A name that stands for an ad is refused.
fn special(name: &Name) -> Result<Ir, Refused> {
    if name.is("CurrentTime") { Ok(Ir::Now) } else { Err(Refused) }
}
