//! Parses any text in both syntaxes. The result must be an expression, or an error with a place in the text.

use classad::Expr;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    for parsed in [Expr::parse(text), Expr::parse_old(text)] {
        if let Err(error) = parsed {
            let line = text.split('\n').nth(error.line() - 1);
            let length = line.map(|line| line.chars().count());
            assert!(length.is_some_and(|length| error.column() <= length + 1), "{error}");
            assert!(!error.expected().is_empty() && !error.found().is_empty());
        }
    }
}
