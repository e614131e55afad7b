#![no_main]
//! Evaluating anything against anything ends soon, without a panic, twice with the same value.

use libfuzzer_sys::fuzz_target;
use slotwright::classad::{Ad, Env, Expr, explain_match, symmetric_match};

fuzz_target!(|text: (&str, &str, &str)| {
    let (my, _) = Ad::parse_long_lenient(text.0);
    let (target, _) = Ad::parse_long_lenient(text.1);
    let env = Env::at(1_769_860_800);
    if let Ok(expr) = Expr::parse(text.2) {
        let value = expr.eval(Some(&my), Some(&target), &env);
        assert_eq!(expr.eval(Some(&my), Some(&target), &env), value);
        let _ = value.to_string();
    }
    assert_eq!(symmetric_match(&my, &target, &env), explain_match(&my, &target, &env).matches());
});
