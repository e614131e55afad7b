//! Does the same as classad_eval, with ads and expressions made by a grammar. They nest more deeply than mutated texts.

use arbitrary::Unstructured;
use classad::{Ad, Expr};

use crate::grammar;

/// Does what the target does. Returns whether the input makes ads and an expression.
pub fn run(bytes: &[u8]) -> bool {
    let mut u = Unstructured::new(bytes);
    let made = (|| Ok((grammar::ad(&mut u, 3)?, grammar::ad(&mut u, 2)?, grammar::expression(&mut u, 4)?)))();
    let Ok::<_, arbitrary::Error>((my, target, expr)) = made else { return false };
    let (my, target) = (Ad::parse_new(&my), Ad::parse_new(&target));
    let Ok(expr) = Expr::parse(&expr) else { return false };
    crate::evaluate(my.ok().as_ref(), target.ok().as_ref(), &expr);
    true
}
