//! The texts of expressions in an HTCJob. A submit file writes the old syntax, and the operator reads the new one.

use classad::Expr;

use super::CLUSTER;

/// Returns an expression of the old syntax in the new one: `\d` in a string becomes `\\d`. A text that means the same
/// in both stays as it is, as does a text that is no expression.
pub fn in_new_syntax(old: &str) -> String {
    if !old.contains('\\') {
        return old.to_owned();
    }
    let Ok(expr) = Expr::parse_old(old) else { return old.to_owned() };
    text(&expr, old)
}

/// The text of an expression for an HTCJob, in the new syntax and without the cluster's number.
pub(super) fn for_job(expr: &Expr) -> String {
    numbered(&text(expr, &expr.to_old()))
}

/// The text of an expression that a submit file gives, as [`for_job`] makes it.
pub(super) fn given_for_job(old: &str) -> String {
    numbered(&in_new_syntax(old))
}

/// The text of an expression in the new syntax: the one in the old syntax if it means the same.
fn text(expr: &Expr, old: &str) -> String {
    let is_same = !old.contains('\\') || Expr::parse(old).is_ok_and(|new| new == *expr);
    if is_same { old.to_owned() } else { expr.to_string() }
}

/// Replaces the cluster's number in an expression of the new syntax by `ClusterId`, since the operator numbers the job
/// later.
fn numbered(expr: &str) -> String {
    let number = CLUSTER.to_string();
    if !expr.contains(&number) {
        return expr.to_owned();
    }
    let mut text = String::new();
    let mut rest = expr;
    while let Some((before, quoted)) = rest.split_once('"') {
        text.push_str(&before.replace(&number, "ClusterId"));
        let end = end_of_string(quoted);
        let (inner, behind) = quoted.split_at_checked(end).unwrap_or((quoted, ""));
        if inner.contains(&number) {
            text.push_str("strcat(\"");
            text.push_str(&inner.replace(&number, "\", ClusterId, \""));
            text.push_str("\")");
        } else {
            text.extend(["\"", inner, "\""]);
        }
        rest = behind.strip_prefix('"').unwrap_or(behind);
    }
    text.push_str(&rest.replace(&number, "ClusterId"));
    text
}

/// The place of the quote that ends the string whose text begins here: the next quote that no backslash escapes.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// dask-jobqueue gives each job its own number in an attribute.
    #[test]
    fn the_number_of_the_cluster_in_an_expression_is_that_which_the_job_gets() {
        let number = CLUSTER.to_string();
        for (expr, expected) in [
            ("1 + 2", "1 + 2"),
            ("N + 1", "ClusterId + 1"),
            ("\"job-N.0\"", "strcat(\"job-\", ClusterId, \".0\")"),
            ("\"N\" == Id", "strcat(\"\", ClusterId, \"\") == Id"),
            ("\"a\\\"N\" == \"b\" && N > 3", "strcat(\"a\\\"\", ClusterId, \"\") == \"b\" && ClusterId > 3"),
            (r#"Dir == "C:\N\""#, r#"Dir == strcat("C:\\", ClusterId, "\\")"#),
        ] {
            assert_eq!(given_for_job(&expr.replace('N', &number)), expected, "{expr}");
        }
    }

    #[test]
    fn a_backslash_stands_for_itself_in_the_old_syntax_alone() {
        for (old, expected) in [
            // Blanks, and parentheses, are the user's.
            ("a  =?=  ( 1 )", "a  =?=  ( 1 )"),
            (r#"x  ==  "say \"hi\" now""#, r#"x  ==  "say \"hi\" now""#),
            (r#"regexp("^node-?\d+$", TARGET.Machine)"#, r#"regexp("^node-?\\d+$",TARGET.Machine)"#),
            (r#""C:\dir\""#, r#""C:\\dir\\""#),
            (r#""\\server\\""#, r#""\\\\server\\\\""#),
            (r"1 +\ 2", r"1 +\ 2"),
        ] {
            let new = in_new_syntax(old);
            assert_eq!(new, expected, "{old}");
            assert_eq!(Expr::parse(&new).ok(), Expr::parse_old(old).ok(), "{old}");
            if let Ok(expr) = Expr::parse_old(old) {
                assert_eq!(Expr::parse(&for_job(&expr)), Ok(expr), "{old}");
            }
        }
    }

    /// A text block of a submit file can have an end of line in a string, which the old syntax cannot write.
    #[test]
    fn an_end_of_line_in_a_string_stays() {
        assert_eq!(for_job(&Expr::literal("a\nb")), r#""a\nb""#);
    }
}
