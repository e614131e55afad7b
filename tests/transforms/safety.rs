//! No text panics, and no text makes an ad, a text or a run without bound.

use classad::{Ad, Env};
use condor_config::{Host, Severity, Source};
use proptest::prelude::*;
use transform::{RulesFile, Transforms};

fn ad() -> Ad {
    Ad::parse_long("A = 1\nB = \"x y\"\nC = A + 1\nMaxX = { 1,2 }\nOwner = \"alice\"\n").unwrap()
}

/// Reads rules and applies them, whatever they are. Returns the attributes of the ads, and the error.
fn run(text: &str) -> (usize, Option<String>) {
    let mut findings = Vec::new();
    let host = Host { seed: Some(1), ..Host::none() };
    let rules = RulesFile::read(&Source::new("rules", text), host, None, &mut findings);
    for finding in &findings {
        assert!(!finding.message.is_empty() && finding.severity <= Severity::Error);
    }
    let (ads, error) = match rules.apply(&ad(), &Env::at(0)) {
        Ok(ads) => (ads, None),
        Err((ads, error)) => (ads, Some(error.to_string())),
    };
    (ads.iter().map(|applied| applied.ad.len()).sum(), error)
}

#[test]
fn names_that_double_are_bounded() {
    let lines: Vec<String> = (0..100).map(|line| format!("COPY /(.*)/ a{line}_\\1\n")).collect();
    let (_, error) = run(&lines.concat());
    assert!(error.is_some_and(|error| error.contains("more than 10000 attributes")));
}

#[test]
fn names_that_grow_are_bounded() {
    let text = "RENAME /^(A+)$/ \\1\\1\\1\\1\\1\\1\\1\\1\n".repeat(100);
    let (attributes, _) = run(&text);
    assert!(attributes <= 5);
}

#[test]
fn texts_that_double_are_bounded() {
    let text = format!("X = 0123456789\n{}SET q \"$(X)\"\n", "EVALMACRO X \"$(X)$(X)$(X)$(X)\"\n".repeat(30));
    let (_, error) = run(&text);
    assert!(
        error.is_some_and(|error| error.contains("expands to more than") || error.contains("too much work"))
    );
}

#[test]
fn evaluations_are_paid_for_together() {
    let slow = "EVALSET q sum(split(replaceAll(\"x\",\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"1,1,1,1,1,1,1,1,\")))\n";
    let (_, error) = run(&slow.repeat(9_000));
    assert!(error.is_some_and(|error| error.contains("too much work")));
}

#[test]
fn functions_in_a_text_are_paid_for_too() {
    let slow = "X = size(strcat(join(\",\",split(replaceAll(\"x\",\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"1,1,1,1,1,1,1,\")))))\n";
    for function in ["$INT(X)", "$REAL(X)", "$STRING(X)", "$EVAL(X)"] {
        let (_, error) = run(&format!("{slow}SET q \"{}\"\n", function.repeat(60_000)));
        assert!(error.is_some_and(|error| error.contains("too many steps")), "{function}");
    }
}

#[test]
fn patterns_are_counted() {
    let mut findings = Vec::new();
    RulesFile::read(&Source::new("rules", "DELETE /a/\n".repeat(201)), Host::none(), None, &mut findings);
    assert!(findings[0].to_string().contains("more than 200 patterns"), "{findings:?}");
}

#[test]
fn variables_that_refer_to_each_other_are_an_error() {
    let (_, error) = run("X = $(Y)\nY = $(X)\nSET q $(X)\n");
    assert!(error.is_some_and(|error| error.contains("X -> Y -> X")));
    let (_, error) = run("SET q $(MY.q)\nSET r \"$(MY.q)\"\nSET q \"$\"\nSET z $(MY.z:$(MY.z))\n");
    assert_eq!(error, None);
}

/// Pieces that rules are made of.
fn piece() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "SET",
        "EVALSET",
        "DEFAULT",
        "EVALMACRO",
        "COPY",
        "RENAME",
        "DELETE",
        "NAME",
        "REQUIREMENTS",
        "TRANSFORM",
        "UNIVERSE",
        "if",
        "elif",
        "else",
        "endif",
        "A",
        "b",
        "X",
        "MY.A",
        "$(X)",
        "$(MY.A)",
        "$INT(X)",
        "$EVAL(A",
        "/a(.)/",
        "/",
        "/x/gimU",
        "\\1",
        "=",
        "+=",
        "+,=",
        "@=end",
        "@end",
        ":",
        ",",
        "\"",
        "'",
        "1",
        "{",
        "}",
        "(",
        ")",
        "in",
        "from",
        "matching",
        "3",
        "defined",
        "!",
        "error",
        "warning",
        "use",
        "#",
        "\\",
        "é",
        "$",
        "+A",
        "-A",
        "true",
        "==",
        "[",
        "]",
    ];
    prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(|word| format!("{word} ")),
        3 => Just("\n".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn no_rules_panic(pieces in prop::collection::vec(piece(), 0..60)) {
        run(&pieces.concat());
    }

    #[test]
    fn no_policy_panics(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = format!("JOB_TRANSFORM_NAMES = T\nJOB_TRANSFORM_T @=endoftransform\n{}\n@endoftransform\n", pieces.concat());
        if let Ok(transforms) = Transforms::parse(&Source::new("policy", text)) {
            let first = transforms.apply(ad(), &Env::at(0));
            prop_assert_eq!(transforms.apply(ad(), &Env::at(0)), first, "the same again");
        }
    }
}
