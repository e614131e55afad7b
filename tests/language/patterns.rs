//! Patterns. HTCondor uses PCRE, and this crate gives the same answers, which were recorded from HTCondor's library
//! 25.14.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use classad::{Env, Expr};

#[track_caller]
fn check(table: &str) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, expected) = line.split_once(" => ").unwrap();
        let found = Expr::parse(text).unwrap().eval(None, None, &Env::at(0)).to_string();
        if found != expected {
            wrong.push(format!("{text} is {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn patterns_are_read_as_pcre_reads_them() {
    check(
        r#"
        regexp("\\N", "\n") => false
        regexp("a\\Nb", "axb") => true
        regexp("[\\N]", "a") => error
        regexp("\\cA", "\001") => true
        regexp("\\ca", "\001") => true
        regexp("\\c[", "\033") => true
        regexp("[\\cA]", "\001") => true
        regexp("\\07", "\007") => true
        regexp("\\0", "\001") => false
        regexp("\\101", "A") => true
        regexp("\\1011", "A1") => true
        regexp("[\\101]", "A") => true
        regexp("[\\1]", "\001") => true
        regexp("[\\8]", "8") => true
        regexp("\\8", "8") => error
        regexp("\\18", "\0018") => true
        regexp("\\81", "81") => error
        regexp("\\o{101}", "A") => true
        regexp("[\\o{101}]", "A") => true
        regexp("\\R", "\r") => true
        regexp("^\\R$", "\r\n") => true
        regexp("[\\R]", "R") => error
        regexp("\\v", "\n") => true
        regexp("\\v", "\f") => true
        regexp("\\V", "\n") => false
        regexp("\\V", "a") => true
        regexp("[\\v]", "\n") => true
        regexp("[\\V]", "a") => true
        regexp("\\H", " ") => false
        regexp("\\H", "a") => true
        regexp("[\\H]", " ") => false
        regexp("\\Qa.b\\E", "a.b") => true
        regexp("\\Qa.b\\E", "axb") => false
        regexp("\\Qa.b", "a.b") => true
        regexp("\\Qa*\\E+", "a**") => true
        regexp("\\Q\\E*", "") => error
        regexp("a\\E*", "") => true
        regexp("[\\Q]\\E]", "]") => true
        regexp("\\X", "a") => true
        regexp("\\C", "a") => true
        regexp("a(?#x*)b", "ab") => true
        regexp("a(?#x", "a") => error
        regexp("a\\y", "ay") => error
        regexp("a\\i", "ai") => error
        regexp("\\a", "\007") => true
        regexp("[\\b]", "\010") => true
        regexp("[\\B]", "B") => error
        regexp("\\u0041", "A") => error
        regexp("\\x4", "\004") => true
        regexp("\\x", "x") => false
        regexp("\\x{41}", "A") => true
        regexp("\\xg", "g") => false
        regexp("\\L", "l") => error
        regexp("\\k<a>", "a") => error
        regexp("\\g1", "a") => error
        regexp("\\_", "_") => true
        regexp("[[:word:]]", "_") => true
        regexp("[[:foo:]]", "f") => error
        regexp("[[.a.]]", "a") => error
        regexp("[[=a=]]", "a") => error
        regexp("(?<n>a)", "a") => true
        regexp("(?P<n>a)", "a") => true
        regexp("(?'n'a)", "a") => true
        regexp("(?i:a)", "A") => true
        regexp("(?^a)", "A") => error
        regexp("(?s).", "\n") => true
        regexp("(?-s).", "\n") => false
        regexp("(?U)a+", "aa") => true
        regexp("(?i", "a") => error
        regexp("(?x)a #c", "a") => true
        regexp("(?x)[a b]", " ") => true
        regexp("(?x:[a b])", " ") => true
        regexp("a{2", "a{2") => true
        regexp("a{,2}", "a{,2}") => true
        regexp("{", "{") => true
        regexp("}", "}") => true
        regexp("]", "]") => true
        regexp("[", "[") => error
        regexp("[a", "a") => error
        regexp("a)", "a") => error
        regexp("(a", "a") => error
        regexp("()", "a") => true
        regexp("a||b", "c") => true
        regexp("*", "a") => error
        regexp("a{3,1}", "a") => error
        regexp("a{65536}", "a") => error
        regexp("[b-a]", "a") => error
        regexp("\\", "a") => error
        "#,
    );
}

/// Patterns that take more than linear time, or have no counterpart in the engine: see docs/reference/differences.md.
#[test]
fn what_the_engine_lacks_is_an_error() {
    for pattern in
        ["(a)\\\\1", "(?=a)", "(?<!a)", "(?>a)", "a*+", "a++", "\\\\K", "\\\\G", "\\\\pL", "(*UTF8)a"]
    {
        check(&format!("regexp(\"{pattern}\", \"a\") => error"));
    }
}
