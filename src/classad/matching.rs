//! Matchmaking: whether two ads accept each other, how one ranks the other, and why they do not match.

use std::fmt;

use super::ad::Ad;
use super::env::{Bound, Env, Limits};
use super::eval;
use super::expr::{Expr, Node};
use super::syntax::unparse;
use super::value::Value;

/// Whether two ads match: the `Requirements` of each is true of the other.
///
/// A number other than zero counts as true. Anything else does not: `undefined`, `error`, a value of another type, and
/// a missing `Requirements`.
pub fn symmetric_match(my: &Ad, target: &Ad, env: &Env) -> bool {
    accepts(my, target, env) && accepts(target, my, env)
}

/// As [`symmetric_match`], with at most so many steps for both sides together; returns what is left of them. A side that
/// needs more does not accept.
pub fn symmetric_match_within(my: &Ad, target: &Ad, env: &Env, steps: u32) -> (bool, u32) {
    let mut left = steps;
    let mut accepts = |my: &Ad, target: &Ad| {
        let limits = Limits { steps: env.limits.steps.min(left), ..env.limits.clone() };
        let done = my.evaluate_attr("Requirements", Some(target), &Env { limits, ..env.clone() });
        left = left.saturating_sub(done.steps);
        done.value.as_bool_equiv() == Some(true)
    };
    let matches = accepts(my, target) && accepts(target, my);
    (matches, left)
}

/// Whether the `Requirements` of `my` is true of the target.
fn accepts(my: &Ad, target: &Ad, env: &Env) -> bool {
    my.eval_attr("Requirements", Some(target), env).as_bool_equiv() == Some(true)
}

/// How much `my` prefers the target: the value of its `Rank` as a number. `true` counts as 1, and whatever is no
/// number as 0.
pub fn rank(my: &Ad, target: &Ad, env: &Env) -> f64 {
    my.eval_attr("Rank", Some(target), env).as_number().unwrap_or(0.0)
}

/// Explains why two ads match or do not: `Requirements`, its clauses, and `Rank` of both sides.
pub fn explain_match(my: &Ad, target: &Ad, env: &Env) -> MatchReport {
    MatchReport { my: SideReport::of(my, target, env), target: SideReport::of(target, my, env) }
}

/// Why two ads match or do not; [`explain_match`] makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchReport {
    /// The demands of the first ad on the second.
    pub my: SideReport,
    /// The demands of the second ad on the first.
    pub target: SideReport,
}

impl MatchReport {
    /// Whether both sides accept, which is what [`symmetric_match`] returns.
    pub fn matches(&self) -> bool {
        self.my.accepts && self.target.accepts
    }
}

/// One side of a match.
#[derive(Clone, Debug, PartialEq)]
pub struct SideReport {
    /// Whether the `Requirements` of this side is true of the other.
    pub accepts: bool,
    /// The value of this side's `Requirements`. `None`: the ad has no `Requirements`, and so accepts nothing.
    pub requirements: Option<Value>,
    /// The bound that the evaluation of `Requirements` hit, if it hit one: `requirements` is then `error`.
    pub bound: Option<Bound>,
    /// The clauses that `Requirements` joins by `&&`, each with its own value. A `Requirements` without `&&` is one
    /// clause.
    pub clauses: Vec<Clause>,
    /// This side's `Rank` of the other, as [`rank`] returns it.
    pub rank: f64,
    /// The cost of the evaluations for the report, in steps. All clauses together may cost as much as one evaluation: those that
    /// come after are left out.
    pub steps: u64,
}

/// A clause of `Requirements`. It prints like `TARGET.Memory > 512 is false`.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The text of the clause.
    pub text: String,
    /// The value of the clause.
    pub value: Value,
}

impl Clause {
    /// Whether the clause keeps `Requirements` from being true.
    pub fn fails(&self) -> bool {
        self.value.as_bool_equiv() != Some(true)
    }
}

impl SideReport {
    fn of(my: &Ad, target: &Ad, env: &Env) -> Self {
        let ranked = my.evaluate_attr("Rank", Some(target), env);
        let (rank, steps) = (ranked.value.as_number().unwrap_or(0.0), u64::from(ranked.steps));
        let Some(expr) = my.get("Requirements") else {
            return Self {
                accepts: false,
                requirements: None,
                bound: None,
                clauses: Vec::new(),
                rank,
                steps,
            };
        };
        let whole = eval::attribute(my, expr, Some(target), env);
        let (clauses, spent) = clauses(expr, my, target, env);
        Self {
            accepts: whole.value.as_bool_equiv() == Some(true),
            requirements: Some(whole.value),
            bound: whole.bound,
            clauses,
            rank,
            steps: steps + u64::from(whole.steps) + u64::from(spent),
        }
    }

    /// The clauses that keep this side from accepting the other.
    pub fn failed(&self) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(|clause| clause.fails())
    }
}

/// The operands of the outermost chain of `&&`. An operand in parentheses that is itself such a chain is replaced by
/// its operands. Also returns what they cost: not more than one evaluation may.
fn clauses(expr: &Expr, my: &Ad, target: &Ad, env: &Env) -> (Vec<Clause>, u32) {
    let program = expr.program();
    let mut open = vec![program.root()];
    let mut leaves = Vec::new();
    while let Some(id) = open.pop() {
        match program.node(program.bare(id)) {
            Some(Node::And(items)) => open.extend(program.kids(*items).iter().rev()),
            _ => leaves.push(id),
        }
    }
    let mut left = env.limits.steps;
    let mut found = Vec::with_capacity(leaves.len());
    for id in leaves {
        if left == 0 {
            break;
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = unparse::node(&mut text, program, id, unparse::Style::Exact);
        let limits = Limits { steps: left, ..env.limits.clone() };
        let done = eval::part(expr, id, my, Some(target), &Env { limits, ..env.clone() });
        let writing = u32::try_from(text.len() / 4).unwrap_or(u32::MAX);
        left = left.saturating_sub(done.steps).saturating_sub(writing);
        found.push(Clause { text: text.trim().to_owned(), value: done.value });
    }
    (found, env.limits.steps - left)
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.text, self.value)
    }
}
