//! Outcomes of lowering clauses, remembered. Slots whose clause is the same expression, and reads the same values,
//! share the outcome.
//!
//! The slots of a pool have few expressions, and few values of most attributes. Looking an outcome up takes a fraction
//! of the time that lowering takes.

use std::collections::HashMap;

use super::ir::{Ir, value_key};
use crate::ad::Ad;
use crate::expr::{Expr, Id, Node, Program};
use crate::name::Name;
use crate::value::Value;

/// A clause with more outcomes than this is not worth remembering: slots have hardly any outcomes in common.
const OUTCOMES: usize = 1024;

/// The most clauses that are remembered. A pool has tens.
const CLAUSES: usize = 4096;

/// The outcome of lowering a slot's clause.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The clause is true of every job.
    True,
    /// The clause is true of no job.
    Never,
    /// The plain evaluator must decide.
    Verify,
    /// The clause that is left after lowering.
    Clause(Ir),
}

/// Clauses and their outcomes.
#[derive(Clone, Debug, Default)]
pub(super) struct Recall(HashMap<(usize, Id), Remembered>);

#[derive(Clone, Debug)]
struct Remembered {
    /// Keeps the expression alive, so that no other expression gets its address.
    _expr: Expr,
    /// The attributes that the clause names. `None`: outcomes of the clause are not remembered.
    names: Option<Box<[Name]>>,
    outcomes: HashMap<Box<[u8]>, Outcome>,
}

/// Where an outcome is remembered.
pub(super) struct Place {
    clause: (usize, Id),
    key: Box<[u8]>,
}

/// The remembered outcome of a clause.
pub(super) enum Recalled {
    Outcome(Outcome),
    /// No outcome is known; [`Recall::keep`] may remember one in this place.
    Nothing(Place),
    /// No outcome is known, and none can be remembered.
    Never,
}

impl Recall {
    /// The remembered outcome of a clause, the node `id` of an expression, for a slot with this ad.
    pub(super) fn find(&mut self, expr: &Expr, id: Id, ad: &Ad) -> Recalled {
        let program = expr.program();
        let clause = (std::ptr::from_ref(program).addr(), id);
        if !self.0.contains_key(&clause) {
            if self.0.len() >= CLAUSES {
                self.0.clear();
            }
            let mut names = Vec::new();
            let names = collect(program, id, &mut names).then(|| names.into());
            self.0.insert(clause, Remembered { _expr: expr.clone(), names, outcomes: HashMap::new() });
        }
        let Some(remembered) = self.0.get(&clause) else { return Recalled::Never };
        let Some(names) = &remembered.names else { return Recalled::Never };
        let mut key = Vec::with_capacity(16 * names.len());
        for name in names {
            match ad.get_name(name).map(|expr| &*expr.program().nodes) {
                None => key.push(b'-'),
                Some([Node::Literal(value)]) if is_scalar(value) => value_key(value, &mut key),
                // The attribute is no plain scalar: its value depends on more than its own text, so that no outcome
                // can be remembered.
                Some(_) => return Recalled::Never,
            }
        }
        match remembered.outcomes.get(key.as_slice()) {
            Some(outcome) => Recalled::Outcome(outcome.clone()),
            None => Recalled::Nothing(Place { clause, key: key.into() }),
        }
    }

    /// Remembers an outcome.
    pub(super) fn keep(&mut self, place: Place, outcome: Outcome) {
        let Some(remembered) = self.0.get_mut(&place.clause) else { return };
        if remembered.outcomes.len() >= OUTCOMES {
            remembered.names = None;
            remembered.outcomes = HashMap::new();
        } else {
            remembered.outcomes.insert(place.key, outcome);
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Error | Value::Bool(_) | Value::Int(_) | Value::Real(_) | Value::Str(_) => {
            true
        }
        Value::List(_) | Value::Ad(_) | Value::AbsTime(_) | Value::RelTime(_) => false,
    }
}

/// Collects the names in a part of an expression. `false`: the value of the part depends on more than these names.
fn collect(program: &Program, id: Id, names: &mut Vec<Name>) -> bool {
    let mut add = |name: &Name| {
        if !names.contains(name) {
            names.push(name.clone());
        }
    };
    match program.node(id) {
        Some(Node::Literal(_)) => true,
        Some(Node::Attr(name)) => {
            add(name);
            true
        }
        Some(Node::Select(select)) => {
            add(&select.name);
            collect(program, select.base, names)
        }
        Some(Node::Unary(_, operand) | Node::Paren(operand)) => collect(program, *operand, names),
        Some(Node::Binary(_, left, right) | Node::Elvis(left, right)) => {
            collect(program, *left, names) && collect(program, *right, names)
        }
        Some(Node::Ternary(condition, yes, no)) => {
            [condition, yes, no].into_iter().all(|part| collect(program, *part, names))
        }
        Some(Node::And(items) | Node::Or(items) | Node::List(items)) => {
            program.kids(*items).iter().all(|item| collect(program, *item, names))
        }
        Some(Node::Call(call)) => program.kids(call.args).iter().all(|arg| collect(program, *arg, names)),
        Some(Node::RootAttr(_) | Node::Index(..) | Node::Ad(_)) | None => false,
    }
}
