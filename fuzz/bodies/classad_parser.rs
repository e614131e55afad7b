//! Parses any text in every syntax, prints the result, and parses that: the second tree must equal the first.

use classad::{Ad, Expr};

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    if let Ok(expr) = Expr::parse(text) {
        assert_eq!(Expr::parse(&expr.to_string()), Ok(expr));
    }
    if let Ok(ad) = Ad::parse_new(text) {
        assert_eq!(Ad::parse_new(&ad.to_string()), Ok(ad));
    }
    let (ad, errors) = Ad::parse_long_lenient(text);
    assert_eq!(Ad::parse_long(text).is_ok(), errors.is_empty());
    // The new syntax can express any ad. The long form cannot express some names and strings.
    assert_eq!(Ad::parse_new(&ad.to_string()), Ok(ad));
    let _ = Ad::parse_long_stream(text);
    let _ = Ad::parse_any(text);
}
