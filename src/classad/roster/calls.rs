//! Function calls. They are not compiled further: the plain evaluator runs them.

use std::sync::Arc;

use super::ir::{Ir, Symbol, Unknown};
use super::symbols::Symbols;
use crate::ad::Ad;
use crate::env::{Env, Limits};
use crate::eval::{self, Val};
use crate::expr::{Call as CallNode, Expr, Id, Node, ScopeWord, Select};
use crate::functions::{self, Function};
use crate::name::Name;
use crate::syntax::build::Builder;
use crate::value::Value;

/// A call as an expression of its own. Attributes of its own ad are replaced by their values.
#[derive(Clone, Debug)]
pub(super) struct Call {
    expr: Expr,
    /// The attributes of the other ad that the call reads.
    pub(super) symbols: Box<[Symbol]>,
    /// Whether the call reads the time.
    timely: bool,
    /// The steps that the call may cost on short texts.
    pub(super) price: usize,
    /// See [`Ir::key`].
    pub(super) key: Box<[u8]>,
}

/// The nature of a function, which decides whether calls of the function can be lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// The value depends on the values of the arguments alone.
    Pure,
    /// As `Pure`, and the argument at this index may be a list.
    PureOfList(usize),
    /// Anything else: the function draws random numbers, reads the clock or the zone, or looks at expressions or
    /// scopes.
    Other,
}

/// The functions that are known to be pure. A pure function that is missing here is only slow.
const PURE: &[&str] = &[
    "isundefined",
    "iserror",
    "isstring",
    "isinteger",
    "isreal",
    "isboolean",
    "strcat",
    "toupper",
    "tolower",
    "substr",
    "strcmp",
    "stricmp",
    "string",
    "int",
    "real",
    "bool",
    "floor",
    "ceil",
    "ceiling",
    "round",
    "pow",
    "stringlistsize",
    "stringlistsum",
    "stringlistavg",
    "stringlistmin",
    "stringlistmax",
    "stringlistmember",
    "stringlistimember",
    "stringlistsubsetmatch",
    "stringlistisubsetmatch",
    "stringlistsintersect",
    "stringlist_regexpmember",
    "regexp",
    "regexps",
    "replace",
    "replaceall",
    "split",
    "splitusername",
    "splitslotname",
    "versioncmp",
    "versionlt",
    "versionle",
    "versiongt",
    "versionge",
    "versioneq",
    "version_in_range",
];

/// The pure functions that take a list, each with the index of the list.
const PURE_OF_LIST: &[(&str, usize)] = &[
    ("member", 1),
    ("identicalmember", 1),
    ("anycompare", 1),
    ("allcompare", 1),
    ("regexpmember", 1),
    ("size", 0),
    ("sum", 0),
    ("avg", 0),
    ("min", 0),
    ("max", 0),
];

/// The functions whose first argument is a pattern, each with the index of the pattern's options.
const OF_PATTERNS: &[(&str, usize)] = &[
    ("regexp", 2),
    ("regexpmember", 2),
    ("regexps", 3),
    ("replace", 3),
    ("replaceall", 3),
    ("stringlist_regexpmember", 3),
];

/// The steps that a call on short texts may cost. `None`: the call must not be lowered. A large pattern is short to
/// write and expensive to match. Many such patterns may each be within the bounds and exceed them together, and only
/// the plain evaluator adds the costs up.
fn price(name: &Name, args: &[Ir]) -> Option<usize> {
    let Some((_, options)) = OF_PATTERNS.iter().find(|(known, _)| name.is(known)) else { return Some(CALL) };
    let letters = match args.get(*options) {
        None => "",
        Some(Ir::Const(value)) => value.as_str().unwrap_or_default(),
        Some(_) => return None,
    };
    // Some of these functions convert the letters to lower case.
    let plain = !letters.contains(|c: char| c.is_ascii_uppercase());
    match args.first() {
        Some(Ir::Const(pattern)) if plain => {
            pattern.as_str().map_or(Some(CALL), |text| functions::price_on_short_texts(text, letters))
        }
        _ => None,
    }
}

/// Most calls on short texts cost less than this, in steps.
const CALL: usize = 256;

impl Nature {
    pub(super) fn of(name: &Name) -> Self {
        if PURE.iter().any(|known| name.is(known)) {
            return Self::Pure;
        }
        let of_list = PURE_OF_LIST.iter().find(|(known, _)| name.is(known));
        of_list.map_or(Self::Other, |(_, place)| Self::PureOfList(*place))
    }
}

impl Call {
    /// A call of a pure function; the same call is made only once. `None`: an argument has a form that it may not
    /// have, or the call may cost more than its size shows.
    pub(super) fn of(
        name: &Name,
        function: Function,
        args: &[Ir],
        symbols: &mut Symbols,
    ) -> Option<Arc<Self>> {
        let mut key = vec![b'c'];
        key.extend_from_slice(name.as_str().to_ascii_lowercase().as_bytes());
        key.push(0);
        key.extend_from_slice(&args.len().to_le_bytes());
        for arg in args {
            arg.key(&mut key);
        }
        if let Some(known) = symbols.call(&key) {
            return Some(Arc::clone(known));
        }
        let price = price(name, args)?;
        let mut read = Vec::new();
        for arg in args {
            arg.symbols(&mut |symbol| read.push(symbol));
        }
        read.sort_unstable();
        read.dedup();
        let mut builder = Builder::default();
        let ids: Vec<Id> = args.iter().map(|arg| write(arg, &mut builder, symbols)).collect::<Option<_>>()?;
        builder.add_over(&ids, |args| Node::Call(CallNode::new(name.clone(), Some(function), args)))?;
        let timely = args.iter().any(Ir::timely);
        let call =
            Arc::new(Self { expr: builder.finish(), symbols: read.into(), timely, price, key: key.into() });
        symbols.keep(&call);
        Some(call)
    }

    /// The value of a call that reads neither the other ad nor the time, and its cost in steps. `None`: the call reads
    /// one of them, or the value is no scalar.
    pub(super) fn constant(&self, env: &Env) -> Option<(Value, u32)> {
        let constant = self.symbols.is_empty() && !self.timely;
        let done = constant.then(|| self.expr.evaluate(None, None, env))?;
        (done.bound.is_none() && is_scalar(&done.value)).then_some((done.value, done.steps))
    }

    /// Whether the call reads the time.
    pub(super) fn timely(&self) -> bool {
        self.timely
    }

    /// The value of the call, and its cost, which is at most `most`. [`Unknown`]: the value is no scalar, or the call
    /// costs more.
    pub(super) fn eval<'a>(
        &'a self,
        my: &'a Ad,
        target: &'a Ad,
        env: &Env,
        most: u32,
    ) -> (Result<Val<'a>, Unknown>, u32) {
        let limits = Limits { steps: env.limits.steps.min(most), ..env.limits.clone() };
        let done = eval::expression(&self.expr, Some(my), Some(target), &Env { limits, ..env.clone() });
        let known = done.bound.is_none() && is_scalar(&done.value);
        (known.then(|| Val::owned(done.value)).ok_or(Unknown), done.steps)
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Ad(_) | Value::AbsTime(_) | Value::RelTime(_))
}

/// Adds an expression to a builder, as nodes. `None`: it is too deep or has a form that calls may not contain.
fn write(ir: &Ir, builder: &mut Builder, symbols: &Symbols) -> Option<Id> {
    let all = |builder: &mut Builder, items: &[Ir]| -> Option<Vec<Id>> {
        items.iter().map(|item| write(item, builder, symbols)).collect()
    };
    match ir {
        Ir::Const(value) => builder.add(Node::Literal(value.clone()), &[]),
        Ir::Other(symbol) => {
            let base = builder.add(Node::Attr(Name::from("TARGET")), &[])?;
            let select =
                Select { base, name: symbols.name(*symbol)?.clone(), scope: Some(ScopeWord::Target) };
            builder.add(Node::Select(select), &[base])
        }
        // The function is called directly: an attribute could have its name.
        Ir::Now => {
            let time = Name::from("time");
            let function = functions::find("time");
            builder.add_over(&[], |none| Node::Call(CallNode::new(time, function, none)))
        }
        Ir::Unary(op, operand) => {
            let operand = write(operand, builder, symbols)?;
            builder.add(Node::Unary(*op, operand), &[operand])
        }
        Ir::Binary(op, operands) => {
            let (left, right) =
                (write(&operands.0, builder, symbols)?, write(&operands.1, builder, symbols)?);
            builder.add(Node::Binary(*op, left, right), &[left, right])
        }
        Ir::And(items) => {
            let ids = all(builder, items)?;
            builder.add_over(&ids, Node::And)
        }
        Ir::Or(items) => {
            let ids = all(builder, items)?;
            builder.add_over(&ids, Node::Or)
        }
        Ir::List(items) => {
            let ids = all(builder, items)?;
            builder.add_over(&ids, Node::List)
        }
        Ir::Ternary(parts) => {
            let ids = [&parts.0, &parts.1, &parts.2].map(|part| write(part, builder, symbols));
            let [Some(condition), Some(yes), Some(no)] = ids else { return None };
            builder.add(Node::Ternary(condition, yes, no), &[condition, yes, no])
        }
        Ir::Elvis(parts) => {
            let (value, otherwise) = (write(&parts.0, builder, symbols)?, write(&parts.1, builder, symbols)?);
            builder.add(Node::Elvis(value, otherwise), &[value, otherwise])
        }
        Ir::IsUndefined(operand) => {
            let nothing = builder.add(Node::Literal(Value::Undefined), &[])?;
            let operand = write(operand, builder, symbols)?;
            builder.add(Node::Binary(crate::expr::Binary::Is, operand, nothing), &[operand, nothing])
        }
        Ir::Call(call) => graft(&call.expr, builder),
        Ir::Metered(metered) => write(&metered.1, builder, symbols),
    }
}

/// Adds the nodes of an expression to a builder.
fn graft(expr: &Expr, builder: &mut Builder) -> Option<Id> {
    let program = expr.program();
    let mut placed: Vec<Id> = Vec::with_capacity(program.nodes.len());
    for node in &program.nodes {
        let at = |id: Id| placed.get(id as usize).copied();
        let list = |kids| -> Option<Vec<Id>> { program.kids(kids).iter().map(|id| at(*id)).collect() };
        let id = match node {
            Node::Literal(value) => builder.add(Node::Literal(value.clone()), &[]),
            Node::Attr(name) => builder.add(Node::Attr(name.clone()), &[]),
            Node::Select(select) => {
                let base = at(select.base)?;
                let select = Select { base, name: select.name.clone(), scope: select.scope };
                builder.add(Node::Select(select), &[base])
            }
            Node::Unary(op, operand) => {
                let operand = at(*operand)?;
                builder.add(Node::Unary(*op, operand), &[operand])
            }
            Node::Binary(op, left, right) => {
                let (left, right) = (at(*left)?, at(*right)?);
                builder.add(Node::Binary(*op, left, right), &[left, right])
            }
            Node::And(items) => builder.add_over(&list(*items)?, Node::And),
            Node::Or(items) => builder.add_over(&list(*items)?, Node::Or),
            Node::List(items) => builder.add_over(&list(*items)?, Node::List),
            Node::Ternary(condition, yes, no) => {
                let (condition, yes, no) = (at(*condition)?, at(*yes)?, at(*no)?);
                builder.add(Node::Ternary(condition, yes, no), &[condition, yes, no])
            }
            Node::Elvis(value, otherwise) => {
                let (value, otherwise) = (at(*value)?, at(*otherwise)?);
                builder.add(Node::Elvis(value, otherwise), &[value, otherwise])
            }
            Node::Call(call) => builder.add_over(&list(call.args)?, |args| {
                Node::Call(CallNode::new(call.name.clone(), call.function, args))
            }),
            // [`write`] makes no other nodes.
            Node::RootAttr(_) | Node::Index(..) | Node::Paren(_) | Node::Ad(_) => None,
        };
        placed.push(id?);
    }
    placed.last().copied()
}

#[cfg(test)]
mod tests {
    use crate::{Ad, Env, Expr, Roster, symmetric_match};

    #[test]
    fn large_patterns_match_as_the_plain_evaluator_says() {
        // Each of these is within the bounds of an evaluation; forty together are not.
        let slot = Ad::new().with("Name", "slot1").with("Requirements", true).with("Large", ".{8000}");
        for (clause, matches) in [
            (r#"!regexp("[ T].{8000}#", TARGET.Name)"#, false),
            (r#"!regexp("[ T].{8000}#", TARGET.Name, "i")"#, false),
            (r#"!regexp(strcat(TARGET.Name, ".{8000}#"), TARGET.Name)"#, false),
            ("!regexp(TARGET.Large, TARGET.Name)", false),
            (r#"!regexpMember("[ T].{8000}#", {TARGET.Name})"#, false),
            (r#"!stringList_regexpMember("[ T].{8000}#", TARGET.Name)"#, false),
            (r#"replace("[ T].{8000}#", TARGET.Name, "") == "slot1""#, false),
            (r#"!regexp("[ T].{8}#", TARGET.Name)"#, true),
        ] {
            // The clauses all differ, so that each counts.
            let clauses: Vec<String> = (0..40).map(|place| clause.replace('#', &place.to_string())).collect();
            let mut job = Ad::new();
            job.insert("Requirements", Expr::parse(&clauses.join(" && ")).unwrap());
            let mut roster = Roster::new(None, None);
            roster.set(0, slot.clone());
            let prepared = roster.prepare(&job, &Env::at(0));
            assert_eq!(symmetric_match(&job, &slot, &Env::at(0)), matches, "{clause}");
            assert_eq!(roster.matches(&prepared, 0), matches, "{clause}, of a roster");
        }
    }
}
