//! Tests of positions and bounds.

use super::*;

fn only(text: &str) -> Node {
    let parsed = parse(text);
    assert_eq!(parsed.faults, [], "{text}");
    let [document] = &parsed.documents[..] else { panic!("{text}: {} documents", parsed.documents.len()) };
    document.clone()
}

/// Checks that the place of the `@` in the text of `x` is the `@` in the file.
fn at_sign(file: &str) {
    let document = only(file);
    let node = document.get("x").unwrap_or_else(|| panic!("no x in {file:?}"));
    let Kind::Scalar(scalar) = &node.kind else { panic!("{file:?}") };
    let before = scalar.text.split('@').next().unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    assert_eq!(node.inside(file, line, column), file.find('@').unwrap(), "{file:?} is {:?}", scalar.text);
}

#[test]
fn a_place_in_a_scalar_is_found_in_the_file() {
    for file in [
        "x: a && @b",
        "x:   a @ b   # a comment",
        "x: ä € @",
        "x: a\n  b\n\n  c @ d\ny: 1",
        "x: 'it''s ''@'''",
        "x: 'a\n   b\n\n\n  @'",
        r#"x: "a \"b\" \u00e4\t\x41 @""#,
        r#"x: "\ud83d\ude00 @""#,
        "x: \"a\n   b \\\n   c\\ @ d\"",
        "{\"x\": \"a\\\\b @\", \"y\": [1, 2]}",
        "x: |\n  a\n    b @\n\n  c\n",
        "x: |2-\n    a\n   b @",
        "x: |  # why\n\n   a\n   b @\ny: 1",
        "x: |+\r\n  a\r\n  b @\r\n",
        "x: >\n  a\n  b\n\n  c @\n",
        "x: |\n\n\n  a\n  b @\n",
        "x: !!str |1-\n   a\n   b @",
        "x: >-\n\n  a   b\n     c d\n  e @",
        "{x: a @ b, y: [z]}",
        "- &a {x: 1}\n",
    ] {
        if file.contains('@') {
            at_sign(file);
        }
    }
}

/// `kubectl slotwright submit --dry-run` prints such a stream, and `kubectl apply` reads it.
#[test]
fn json_objects_one_after_another_are_documents() {
    let text = "{\"x\": 1}\n{\"x\": [\"a @\", {\"y\": 2, \"y\": 3}]} {}\n";
    let parsed = parse(text);
    assert_eq!(parsed.documents.iter().map(|document| document.start).collect::<Vec<_>>(), [0, 9, 42]);
    let x = parsed.documents[1].get("x").unwrap();
    assert_eq!(text.get(x.start..=x.end).unwrap(), "[\"a @\", {\"y\": 2, \"y\": 3}]");
    let [fault] = &parsed.faults[..] else { panic!("{:?}", parsed.faults) };
    assert_eq!((fault.kind, fault.at), (FaultKind::DuplicateKey, text.rfind("\"y\"").unwrap()));
    let faults: Vec<_> = parse("{\"x\": 1}\n}").faults.into_iter().map(|fault| fault.kind).collect();
    assert_eq!(faults, [FaultKind::Syntax], "neither JSON nor YAML");
    assert_eq!(parse("{x: 1}\n---\n{x: 2}").documents.len(), 2, "YAML");
}

#[test]
fn the_end_of_a_text_is_behind_its_last_character() {
    for (file, end) in [
        ("x: a ==", 7),
        ("x: 'a =='  ", 8),
        ("x: |\n  a ==\n\n\ny: 1", 11),
        ("x: >\n  a\n  ==\ny: 1", 13),
        ("x: \"\"", 3),
    ] {
        let document = only(file);
        let node = document.get("x").unwrap();
        let Kind::Scalar(scalar) = &node.kind else { panic!() };
        let column = scalar.text.trim_end().chars().count() + 1;
        assert_eq!(node.inside(file, 1, column), end, "{file:?}");
    }
}

#[test]
fn scalars_are_what_kubectl_takes_them_for() {
    for (text, json) in [
        ("yes", "true"),
        ("Off", "false"),
        ("~", "null"),
        ("12", "12"),
        ("-0x1F", "-31"),
        ("010", "8"),
        ("1_000", "1000"),
        ("1e3", "1000"),
        ("-10.0", "-10"),
        ("1e300", "1e+300"),
        (".5", "0.5"),
        ("1.2.3", "\"1.2.3\""),
        ("12Gi", "\"12Gi\""),
        ("'12'", "\"12\""),
        ("!!str 12", "\"12\""),
        ("0x", "\"0x\""),
        ("2026-01-01", "\"2026-01-01\""),
        ("-", "[null]"),
    ] {
        assert_eq!(
            only(&format!("x: 1\ny:\n  {text}\n")).get("y").unwrap().json().to_string(),
            json,
            "{text}"
        );
    }
}

#[test]
fn aliases_and_merges_are_replaced() {
    let document = only("a: &a {p: 1, q: 2}\nb:\n  <<: *a\n  q: 3\nc: [*a]\n");
    assert_eq!(
        document.json(),
        serde_json::json!({"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}, "c": [{"p": 1, "q": 2}]})
    );
}

#[test]
fn a_broken_document_does_not_hide_the_next() {
    let parsed = parse("a: [1, 2\n---\nb: 1\n---\nc: 1\nc: 2\n---\n# nothing\n");
    assert_eq!(parsed.documents.len(), 2);
    let found: Vec<(FaultKind, usize)> = parsed.faults.iter().map(|fault| (fault.kind, fault.at)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, FaultKind::Syntax);
    assert_eq!(found[1], (FaultKind::DuplicateKey, 27));
}

#[test]
fn what_a_hostile_file_costs_is_bounded() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb = bomb + "a" + &level.to_string() + ": &a" + &level.to_string() + " [" + &inner + "]\n";
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
    let anchors: Vec<String> = (0..80).map(|level| format!("[&a{level} ")).collect();
    let nested = format!("{}{}{}", anchors.concat(), "x".repeat(1 << 20), "]".repeat(80));
    let block: Vec<String> = (0..400).map(|depth| " ".repeat(depth) + "a:").collect();
    for (file, kinds) in [
        (bomb, &[FaultKind::Limit][..]),
        (long, &[FaultKind::Limit]),
        (nested, &[FaultKind::Limit]),
        ("[".repeat(100_000), &[FaultKind::Syntax, FaultKind::Limit]),
        (block.join("\n"), &[FaultKind::Syntax, FaultKind::Limit]),
        ("a: &a [*a]".to_owned(), &[FaultKind::Syntax]),
    ] {
        let parsed = parse(&file);
        let start: String = file.chars().take(20).collect();
        assert_eq!(parsed.documents.len(), 0, "{start}");
        assert!(
            parsed.faults.iter().all(|fault| kinds.contains(&fault.kind)),
            "{start}: {:?}",
            parsed.faults
        );
        assert!(!parsed.faults.is_empty(), "{start}");
    }
}
