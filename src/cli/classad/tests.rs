//! Runs the commands as they are typed, and checks what they print.

use std::fs;

use super::*;

fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
    crate::outcome::outcome("classad", args, input, run)
}

#[test]
fn eval_prints_a_value_a_line() {
    let (status, out, _) = outcome(&["eval", "1 + 1", "\"a\"", "time()", "--now", "7"], "");
    assert_eq!((status, out.as_str()), (0, "2\n\"a\"\n7\n"));
}

#[test]
fn expressions_begin_with_a_dash_and_options_stand_anywhere() {
    for (args, expected) in [
        (&["-1"][..], "-1\n"),
        (&["-1 + 2", "-(3)", "- 4"], "1\n-3\n-4\n"),
        (&["--1", "-time()", "--now=7"], "1\n-7\n"),
        (&["--now", "7", "-time()"], "-7\n"),
        (&["-time()", "--now", "7", "-1"], "-7\n-1\n"),
        (&["--seed", "5", "time()", "--now", "7", "-2"], "7\n-2\n"),
        (&["--", "-1"], "-1\n"),
        (&["-1", "--", "-2"], "-1\n-2\n"),
    ] {
        let (status, out, err) = outcome(&[&["eval"], args].concat(), "");
        assert_eq!((status, out.as_str(), err.as_str()), (0, expected, ""), "{args:?}");
    }
    let (_, out, _) = outcome(&["eval", "-A", "--my", "-"], "A = 2\n");
    assert_eq!(out, "-2\n");
}

#[test]
fn late_options_count_and_wrong_ones_are_told() {
    let drawn = |args: &[&str]| outcome(&[&["eval", "random(1000000)"], args].concat(), "").1;
    assert_eq!(drawn(&["--seed", "5"]), outcome(&["eval", "--seed", "5", "random(1000000)"], "").1);
    assert_ne!(drawn(&["--seed", "5"]), drawn(&[]));
    for (args, says) in [
        (&["--noww", "7", "1"][..], "'--noww'"),
        (&["-1", "--noww", "7"], "'--noww' found; correct the option, or put"),
        (&["-1", "--now", "soon"], "'soon' for '--now <SECONDS>'"),
        (&["-1", "--now"], "'--now <SECONDS>'"),
        (&["-1", "--batch"], "cannot be used with"),
    ] {
        let (status, out, err) = outcome(&[&["eval"], args].concat(), "");
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.starts_with("slotwright classad: ") && err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn eval_reads_an_ad_in_either_syntax() {
    for ad in ["[A = 2]", "A = 2\n"] {
        let (status, out, _) = outcome(&["eval", "--my", "-", "a * 21"], ad);
        assert_eq!((status, out.as_str()), (0, "42\n"));
    }
}

#[test]
fn a_broken_expression_is_located() {
    let (status, out, err) = outcome(&["eval", "1", "2 &&"], "");
    assert_eq!((status, out.as_str()), (2, "1\n"));
    let expected = "slotwright classad: expression 2: line 1, column 5: expected an operand after '&&', \
                    found end of input\n";
    assert_eq!(err, expected);
}

#[test]
fn batch_answers_every_case_in_order() {
    let input = concat!(
        r#"{"id": 1, "my": "[A = 1]", "target": null, "expr": "A + 0.5"}"#,
        "\n",
        r#"{"id": "x", "my": null, "target": null, "expr": "(("}"#,
        "\n",
        r#"{"id": [3], "my": "[A = ", "target": null, "expr": "1"}"#,
        "\n",
        r#"{"id": null, "my": "[A = 1]", "target": "[B = 2]", "expr": "{A, B, \"q\\\"\", real(\"nan\"), TARGET.C, [x = 1]}"}"#,
        "\n",
    );
    let (status, out, _) = outcome(&["eval", "--batch"], input);
    let expected = [
        r#"{"id":1,"type":"real","value":"1.5"}"#,
        r#"{"id":"x","type":"parse-error","value":""}"#,
        r#"{"id":[3],"type":"parse-error","value":""}"#,
        r#"{"id":null,"type":"list","value":"[[\"integer\",\"1\"],[\"integer\",\"2\"],[\"string\",\"q\\\"\"],[\"real\",\"nan\"],[\"undefined\",\"\"],[\"classad\",\"[ x = 1 ]\"]]"}"#,
    ];
    assert_eq!(status, 0);
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn batch_prints_every_type() {
    let cases = [
        ("true", "boolean", "true"),
        ("-9223372036854775808", "integer", "-9223372036854775808"),
        ("1e300 * 1", "real", "1e300"),
        ("1 / 4.0", "real", "0.25"),
        ("-0.0", "real", "-0.0"),
        ("-1.0 / 0.0", "real", "-inf"),
        ("real(\"inf\")", "real", "inf"),
        ("0.0 / 0.0", "real", "nan"),
        ("\"a\\\"\\n\\303\\251\"", "string", "a\"\n\u{e9}"),
        ("undefined", "undefined", ""),
        ("1 / 0", "error", ""),
        ("{}", "list", "[]"),
        (
            "{1, {\"x\", undefined}}",
            "list",
            r#"[["integer","1"],["list","[[\"string\",\"x\"],[\"undefined\",\"\"]]"]]"#,
        ),
        ("[b = 'c d' + 0.1; a = 1]", "classad", "[ a = 1; b = 'c d' + 1.000000000000000E-01 ]"),
        ("absTime(0, 3600)", "abstime", "1970-01-01T01:00:00+01:00"),
        ("relTime(90061.5)", "reltime", "90061.5"),
        ("1 +", "parse-error", ""),
        ("", "parse-error", ""),
        ("1; x = 2] y", "integer", "1"),
        ("1; x", "parse-error", ""),
    ];
    let line = |expr| json!({"id": expr, "my": null, "target": null, "expr": expr}).to_string() + "\n";
    let input: String = cases.iter().map(|(expr, ..)| line(*expr)).collect();
    let (status, out, err) = outcome(&["eval", "--batch"], &input);
    assert_eq!((status, err.as_str()), (0, ""));
    for (line, (expr, kind, value)) in out.lines().zip(cases) {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer, json!({"id": expr, "type": kind, "value": value}));
    }
    assert_eq!(out.lines().count(), cases.len());
}

#[test]
fn batch_goes_on_after_what_is_no_case() {
    let input = "no json\n\n[1]\n{\"id\": 3}\n{\"id\": 4, \"my\": 5, \"expr\": \"1\"}\n\
                 {\"id\": 5, \"target\": \"[B = 2]\", \"expr\": \"B + TARGET.B\"}\n\
                 {\"id\": 6, \"my\": \"[L = {L, L}]\", \"expr\": \"L\"}";
    let (status, out, err) = outcome(&["eval", "--batch"], input);
    assert_eq!(status, 2);
    let answers: Vec<&str> = out.lines().collect();
    let unusable = r#"{"id":null,"type":"parse-error","value":""}"#;
    let sum = r#"{"id":5,"type":"integer","value":"4"}"#;
    let endless = r#"{"id":6,"type":"error","value":""}"#;
    assert_eq!(answers, [unusable, unusable, unusable, unusable, sum, endless]);
    let said: Vec<&str> = err.lines().collect();
    assert_eq!(said.len(), 5, "{err}");
    assert!(said[0].ends_with("case on line 1: expected ident, column 2"), "{err}");
    assert!(said[4].ends_with("case on line 7: the evaluation nests too deeply"), "{err}");
}

/// Each level of a list escapes the levels below, which doubles the length of the printed value.
#[test]
fn batch_goes_on_after_a_value_that_is_too_long() {
    let nested = |depth: usize| format!("{}\"x\"{}", "{".repeat(depth), "}".repeat(depth));
    let line = |id: usize, expr: &str| json!({"id": id, "expr": expr}).to_string() + "\n";
    let wide = format!("{{{}}}", vec![format!("\"{}\"", "x".repeat(300_000)); 4].join(", "));
    let input: String = [(1, nested(10)), (2, nested(30)), (3, wide), (4, "1".to_owned())]
        .iter()
        .map(|(id, expr)| line(*id, expr))
        .collect();
    let (status, out, err) = outcome(&["eval", "--batch"], &input);
    assert_eq!(status, 0, "{err}");
    let answers: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["type"], "list");
    assert_eq!(answers[1], json!({"id": 2, "type": "error", "value": ""}));
    assert_eq!(answers[2], json!({"id": 3, "type": "error", "value": ""}));
    assert_eq!(answers[3], json!({"id": 4, "type": "integer", "value": "1"}));
    let long = "the value takes more than 1048576 bytes to print; ask for a part of it";
    let said: Vec<&str> = err.lines().collect();
    let expected = [2, 3].map(|line| format!("slotwright classad: case on line {line}: {long}"));
    assert_eq!(said, expected);
}

#[test]
fn match_tells_which_clause_fails() {
    let directory = std::env::temp_dir().join(format!("slotwright-match-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let job = write("job", "Requirements = TARGET.Memory >= 10 && Arch == \"X\"\nRank = Memory\n");
    let slot = write("slot", "[Memory = 20; Arch = \"Y\"; Requirements = true]");
    let (status, out, _) = outcome(&["match", "--my", &job, "--target", &slot], "");
    fs::remove_dir_all(&directory).unwrap();
    let expected = "MY.Requirements: false\n    Arch == \"X\" is false\nMY.Rank: 20\n\
                    TARGET.Requirements: true\nTARGET.Rank: 0\nmatch: no\n";
    assert_eq!((status, out.as_str()), (1, expected));
}
