#![no_main]
//! Tokens of both spellings: any text is an expression or an error with a place in it.

use libfuzzer_sys::fuzz_target;
use slotwright::classad::Expr;

fuzz_target!(|text: &str| {
    for parsed in [Expr::parse(text), Expr::parse_old(text)] {
        if let Err(error) = parsed {
            assert!(error.line() <= text.lines().count() + 1);
            assert!(!error.to_string().is_empty());
        }
    }
});
