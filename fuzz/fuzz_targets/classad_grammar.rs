#![no_main]
//! Does the same as classad_eval, with ads and expressions made by a grammar. They nest more deeply than mutated texts.

use classad::{Ad, Expr};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::{Corpus, fuzz_target};
use slotwright_fuzz::grammar;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let mut u = Unstructured::new(bytes);
    let made = (|| Ok((grammar::ad(&mut u, 3)?, grammar::ad(&mut u, 2)?, grammar::expression(&mut u, 4)?)))();
    let Ok::<_, libfuzzer_sys::arbitrary::Error>((my, target, expr)) = made else { return Corpus::Reject };
    let (my, target) = (Ad::parse_new(&my), Ad::parse_new(&target));
    let Ok(expr) = Expr::parse(&expr) else { return Corpus::Reject };
    slotwright_fuzz::evaluate(my.ok().as_ref(), target.ok().as_ref(), &expr);
    Corpus::Keep
});
