#![no_main]
//! What parses prints as text that parses to the same tree, in every syntax.

use classad::{Ad, Expr};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(expr) = Expr::parse(text) {
        assert_eq!(Expr::parse(&expr.to_string()), Ok(expr));
    }
    if let Ok(ad) = Ad::parse_new(text) {
        assert_eq!(Ad::parse_new(&ad.to_string()), Ok(ad));
    }
    let (ad, errors) = Ad::parse_long_lenient(text);
    assert_eq!(Ad::parse_long(text).is_ok(), errors.is_empty());
    // In brackets any ad can be written; lines have no way to write some names and strings.
    assert_eq!(Ad::parse_new(&ad.to_string()), Ok(ad));
    let _ = Ad::parse_long_stream(text);
    let _ = Ad::parse_any(text);
});
