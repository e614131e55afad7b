//! Concurrency limits that jobs take, and that several objects set.

use super::*;

/// An object of a kind, with a name and these lines of its spec.
fn named(kind: &str, name: &str, spec: &str) -> String {
    manifest(kind, spec).replace(&format!("{{name: {}}}", kind.to_lowercase()), &format!("{{name: {name}}}"))
}

#[test]
fn a_limit_that_nobody_sets_is_warned_of() {
    let job = |limits: &str| {
        let template = "  template: {spec: {containers: [{name: a, image: i}]}}\n";
        manifest("HTCJob", &format!("  concurrencyLimits: {limits}\n{template}"))
    };
    let xsw = named("ConcurrencyLimit", "xsw", "  limit: 3\n");
    let set = named("ConcurrencyLimit", "large", "  limitOfEach: 3\n");
    let knobs = |text: &str| manifest("Negotiator", &format!("  config: |\n    {text}\n"));
    for (limits, others, expected) in [
        (
            "[xws]",
            vec![&xsw],
            Some(
                "a.yaml:5:23: warning: spec.concurrencyLimits[0]: nothing among the files sets the limit xws: it never runs out",
            ),
        ),
        (
            "[netwrok]",
            vec![&named("ConcurrencyLimit", "network", "  limit: 3\n")],
            Some("hint: did you mean network?"),
        ),
        (
            "[XSW, 'large.a:2', large]",
            vec![&xsw, &set],
            Some("a.yaml:5:41: warning: spec.concurrencyLimits[2]"),
        ),
        ("[matlab]", vec![&xsw, &set], Some("hint: set: xsw, large.*")),
        ("[XSW, 'large.a:2']", vec![&xsw, &set], None),
        ("[matlab, xsw]", vec![&knobs("MATLAB_LIMIT = 5"), &xsw], None),
        // All other limits are bounded, or nobody says anything of limits here.
        ("[matlab]", vec![&knobs("CONCURRENCY_LIMIT_DEFAULT = 5"), &xsw], None),
        ("[matlab]", vec![], None),
    ] {
        let others: Vec<&str> = others.iter().map(|other| other.as_str()).collect();
        let said = found(&[("a.yaml", &job(limits)), ("b.yaml", &others.join("---\n"))], &["."]);
        match expected {
            Some(expected) => {
                assert!(said.contains(expected) && said.contains("1 warning "), "{limits} {said}");
            }
            None => assert!(!said.contains("[limit-unknown]"), "{limits} {said}"),
        }
    }
}

#[test]
fn a_limit_that_two_objects_set_is_an_error() {
    let limit = |name: &str, spec: &str| named("ConcurrencyLimit", name, spec);
    let first = limit("a", "  name: xsw\n  limit: 3\n");
    let twice = found(&[("a.yaml", &first), ("b.yaml", &limit("b", "  name: XSW\n  limit: 4\n"))], &["."]);
    let expected =
        "a.yaml:5:9: error: spec.name: the ConcurrencyLimit b sets the limit xsw too, and the smaller counts";
    assert!(twice.contains(expected) && twice.contains("[limit-duplicate]"), "{twice}");
    let set =
        found(&[("a.yaml", &first), ("b.yaml", &limit("b", "  name: xsw\n  limitOfEach: 4\n"))], &["."]);
    assert!(set.starts_with("0 errors, 0 warnings"), "{set}");
}
