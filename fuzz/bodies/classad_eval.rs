//! Evaluates any expression against any two ads, and checks what [`evaluate`](crate::evaluate) says. The text has three parts,
//! separated by lines `---`: two ads in either syntax, and an expression.

use classad::{Ad, Expr};

fn ad(text: &str) -> Ad {
    if text.trim_start().starts_with('[') {
        Ad::parse_new(text).unwrap_or_default()
    } else {
        Ad::parse_long_lenient(text).0
    }
}

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let mut parts = text.splitn(3, "\n---\n");
    let (Some(my), Some(target), Some(expr)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(expr) = Expr::parse(expr) else { return };
    crate::evaluate(Some(&ad(my)), Some(&ad(target)), &expr);
}
