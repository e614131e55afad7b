#![no_main]
//! Evaluating anything against anything ends soon, without a panic, twice with the same value. The text is
//! three parts, each ended by a line of `---`: two ads in either syntax, and an expression.

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
