//! What functions cost on hostile arguments, in steps, so that no test looks at a clock.

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

#[test]
fn ordinary_calls_cost_what_they_did() {
    // The least number of steps with which each is done.
    for (text, steps) in [
        (r#"regexp("^slot[0-9]+@", Short)"#, 65),
        (r#"regexp("^slot[0-9]+(_[0-9]+)?@.*\\.example\\.(com|org)$", Short, "i")"#, 100),
        (r#"regexp("^(gpu|cpu|mem)-(a100|h100|l40s|v100|t4)-[0-9]{2,4}$", Short)"#, 107),
        (r#"regexp("[[:alpha:]_][[:alnum:]_]*@([[:alnum:]-]+\\.)*[[:alpha:]]{2,}", A1K)"#, 176),
        (r#"regexpMember("^b.*a$", {"alpha", "beta"})"#, 60),
        (r#"stringList_regexpMember("^b.*a$", Words)"#, 85),
        (r#"regexps("^([^@]*)@(.*)$", Short, "\\2/\\1")"#, 67),
        (r#"replace("[0-9]+", Short, "N")"#, 59),
        (r#"formatTime(0, "%Y-%m-%d %H:%M:%S")"#, 1),
    ] {
        assert_eq!(bound(text, steps), None, "{text} costs more than {steps}");
        assert_eq!(bound(text, steps - 1), Some(Bound::Steps), "{text} costs less than {steps}");
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
    for (text, read) in [
        // One step pays for reading 16 bytes of a text; each item that is made costs a step besides.
        ("split(A10K, Signs)", 10_000 / 16 + 10_000),
        ("split(A10K, Eacute)", 10_000 / 16 + 10_000),
        ("stringListSize(A10K, Signs)", 20_000),
        ("stringListSum(Signs, A10K)", 20_000),
        ("stringListMember(Short, A10K, Signs)", 20_000),
        ("stringListSubsetMatch(Short, A10K, Signs)", 20_000),
        ("stringListsIntersect(Short, A10K, Signs)", 20_000),
        (r#"stringList_regexpMember("x", A10K, Signs)"#, 20_000),
    ] {
        assert_eq!(bound(text, read), Some(Bound::Steps), "{text}");
        assert_eq!(bound(text, read + 500), None, "{text}");
    }
}
