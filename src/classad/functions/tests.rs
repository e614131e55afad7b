//! The cost of functions on hostile arguments, in steps, so that no test looks at a clock.

use crate::{Ad, Bound, Env, Expr};

/// An ad with texts that are too long to write in a table.
fn texts() -> Ad {
    Ad::new()
        .with("Short", "slot1@node-17.example.com")
        .with("Words", "alpha, beta, gamma, delta")
        .with("A1K", "a".repeat(1_000))
        .with("A10K", "a".repeat(10_000))
        .with("A100K", "a".repeat(100_000))
        .with("Signs", "-".repeat(10_000))
        .with("Eacute", "é".repeat(5_000))
        .with("Groups", "\\0".repeat(3_000))
        .with("NoGroups", "\\1".repeat(30_000))
        .with("Wide", "%999n".repeat(2_000))
}

/// The bound that an evaluation with so many steps hits.
fn bound(text: &str, steps: u32) -> Option<Bound> {
    let mut env = Env::at(0);
    env.limits.steps = steps;
    Expr::parse(text).unwrap().evaluate(Some(&texts()), None, &env).bound
}

/// The cost of an evaluation, in steps.
fn steps(text: &str) -> u32 {
    Expr::parse(text).unwrap().evaluate(Some(&texts()), None, &Env::at(0)).steps
}

#[test]
fn ordinary_calls_cost_little() {
    for (text, price) in [
        (r#"regexp("^slot[0-9]+@", Short)"#, 126),
        (r#"regexp("^slot[0-9]+(_[0-9]+)?@.*\\.example\\.(com|org)$", Short, "i")"#, 512),
        (r#"regexp("^(gpu|cpu|mem)-(a100|h100|l40s|v100|t4)-[0-9]{2,4}$", Short)"#, 518),
        (r#"regexp("[[:alpha:]_][[:alnum:]_]*@([[:alnum:]-]+\\.)*[[:alpha:]]{2,}", A1K)"#, 4187),
        (r#"regexpMember("^b.*a$", {"alpha", "beta"})"#, 101),
        (r#"stringList_regexpMember("^b.*a$", Words)"#, 126),
        (r#"regexps("^([^@]*)@(.*)$", Short, "\\2/\\1")"#, 183),
        (r#"replace("[0-9]+", Short, "N")"#, 123),
        (r#"formatTime(0, "%Y-%m-%d %H:%M:%S")"#, 256),
        (r#"stringListIMember("Beta", Words)"#, 37),
        (r#"member("beta", split(Words))"#, 29),
        (r#"versionGE("8.9.13", "8.10.1")"#, 4),
        (r#"strcat(toUpper(Short), "-", 17) == "x""#, 22),
        (r#"Short == "slot1@node-18.example.com""#, 4),
    ] {
        assert_eq!(steps(text), price, "{text}");
        assert!(price <= 10_000, "an expression may do so twenty times: {text}");
        assert_eq!(bound(text, price), None, "{text}");
        assert_eq!(bound(text, price - 1), Some(Bound::Steps), "{text}");
    }
}

#[test]
fn hostile_calls_hit_a_bound() {
    for (text, bounded_by) in [
        // A large pattern costs more for each byte of the text, and more to compile.
        (r#"regexp("[ T].{8000}[^ -z]", A100K)"#, Bound::Steps),
        (r#"regexpMember("[ T].{8000}[^ -z]", {A100K})"#, Bound::Steps),
        (r#"stringList_regexpMember("[ T].{8000}[^ -z]", A100K)"#, Bound::Steps),
        (r#"replace("[ T].{8000}[^ -z]", A100K, "")"#, Bound::Steps),
        // Each match looks at all that is left, or writes a long replacement that is empty.
        (r#"replaceAll("a.*b|a", A10K, "")"#, Bound::Steps),
        (r#"replaceAll("(x?)a", A1K, NoGroups)"#, Bound::Steps),
        // A few bytes of an argument stand for many bytes of the text.
        (r#"regexps("(?s).*", A10K, Groups)"#, Bound::StringSize),
        ("formatTime(0, Wide)", Bound::StringSize),
    ] {
        assert_eq!(bound(text, 200_000), Some(bounded_by), "{text}");
    }
}

#[test]
fn texts_and_delimiters_are_paid_for() {
    for (text, price) in [
        ("split(A10K, Signs)", 12_820),
        ("split(A10K, Eacute)", 12_820),
        ("stringListSize(A10K, Signs)", 20_003),
        ("stringListSum(Signs, A10K)", 20_003),
        ("stringListMember(Short, A10K, Signs)", 20_029),
        ("stringListSubsetMatch(Short, A10K, Signs)", 20_030),
        ("stringListsIntersect(Short, A10K, Signs)", 20_037),
        (r#"stringList_regexpMember("x", A10K, Signs)"#, 40_067),
    ] {
        assert_eq!(steps(text), price, "{text}");
    }
}
