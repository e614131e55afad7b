#![no_main]
//! Evaluates any expression against any two ads, and checks what [`slotwright_fuzz::evaluate`] says. The text has three parts,
//! separated by lines `---`: two ads in either syntax, and an expression.

use classad::{Ad, Expr};
use libfuzzer_sys::fuzz_target;

fn ad(text: &str) -> Ad {
    if text.trim_start().starts_with('[') {
        Ad::parse_new(text).unwrap_or_default()
    } else {
        Ad::parse_long_lenient(text).0
    }
}

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, "\n---\n");
    let (Some(my), Some(target), Some(expr)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(expr) = Expr::parse(expr) else { return };
    slotwright_fuzz::evaluate(Some(&ad(my)), Some(&ad(target)), &expr);
});
