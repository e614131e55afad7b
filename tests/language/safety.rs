//! Hostile input: nothing panics, nothing overflows the stack, everything is bounded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use classad::{Ad, Bound, Env, Expr, Value, explain_match, symmetric_match};
use proptest::prelude::*;

use crate::hostile::{self, Hostile};

/// The stack that a thread has by default.
const STACK: usize = 2 << 20;

#[test]
fn ads_and_expressions_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Ad>();
    shared::<Expr>();
    shared::<Value>();
    shared::<Env>();
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(test).unwrap().join().unwrap();
}

fn bound_of(text: &str, my: Option<&Ad>) -> Option<Bound> {
    let outcome = Expr::parse(text).unwrap().evaluate(my, None, &Env::at(0));
    assert!(outcome.bound.is_none() || outcome.value == Value::Error, "{text}");
    outcome.bound
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("(", ")"),
            ("-(", ")"),
            ("!", ""),
            ("- ", ""),
            ("{", "}"),
            ("[a=", "]"),
            ("[a={", "}]"),
            ("strcat(", ")"),
            ("ifThenElse(1,", ",2)"),
            ("true || (", ")"),
            ("1 | 2 ^ 3 & 4 == 5 < 6 << 7 + 8 * (", ")"),
            ("1 ? 2 : ", ""),
            ("1 ? ", " : 2"),
            ("a[", "]"),
            ("{1}[", "]"),
            ("1 + ", ""),
            ("undefined ?: ", ""),
            ("eval(\"", "\")"),
        ] {
            for depth in [10, 100, 166, 249, 400, 498, 1000, 100_000] {
                let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                if let Ok(expr) = Expr::parse(&text) {
                    expr.eval(None, None, &Env::at(0));
                    let printed = expr.to_string();
                    assert_eq!(Expr::parse(&printed).as_ref(), Ok(&expr));
                }
            }
        }
    });
}

#[test]
fn long_chains_are_fine() {
    on_a_small_stack(|| {
        for (operator, operand, value) in [("&&", "true", "true"), ("||", "false", "false")] {
            let text = vec![operand; 5000].join(operator);
            assert_eq!(Expr::parse(&text).unwrap().eval(None, None, &Env::at(0)).to_string(), value);
        }
        let sum = vec!["1"; 300].join("+");
        assert_eq!(Expr::parse(&sum).unwrap().eval(None, None, &Env::at(0)), Value::Int(300));
        let error = Expr::parse(&vec!["1"; 100_000].join("+")).unwrap_err().to_string();
        assert!(error.contains("nested at most 500 levels"), "{error}");
    });
}

#[test]
fn long_chains_of_attributes_hit_the_depth() {
    on_a_small_stack(|| {
        for link in [
            "a{next} + 1",
            "strcat(a{next})",
            "{a{next}}[0]",
            "[x = a{next}].x",
            "ifThenElse(true, a{next}, 1)",
        ] {
            let mut ad = Ad::new();
            for place in 0..1000 {
                let text = link.replace("{next}", &(place + 1).to_string());
                ad.insert(format!("a{place}"), Expr::parse(&text).unwrap());
            }
            ad.set("a1000", 1);
            assert_eq!(bound_of("a0", Some(&ad)), Some(Bound::Depth), "{link}");
        }
    });
}

#[test]
fn costs_are_bounded() {
    on_a_small_stack(|| {
        let mut ad = Ad::new();
        ad.set("s0", "0123456789abcdef".repeat(40_000));
        ad.insert("l0", Expr::parse("{1,2,3,4,5,6,7,8,9,10}").unwrap());
        for place in 0..40 {
            let next = place + 1;
            ad.insert(format!("s{next}"), Expr::parse(&format!("strcat(s{place}, s{place})")).unwrap());
            ad.insert(format!("t{next}"), Expr::parse(&format!("t{place} + t{place}")).unwrap());
        }
        ad.set("t0", 1);
        assert_eq!(bound_of("s1", Some(&ad)), Some(Bound::StringSize));
        assert_eq!(bound_of("t40", Some(&ad)), Some(Bound::Steps));
        assert_eq!(bound_of("L", Some(&Ad::parse_new("[L = {L, L}]").unwrap())), Some(Bound::Depth));
        assert_eq!(bound_of("strcat(s0)", Some(&ad)), None);
        let mut env = Env::at(0);
        env.limits.list = 1000;
        for items in [1000, 1001] {
            let text = format!("size(split(\"{}\"))", "a,".repeat(items));
            let bound = Expr::parse(&text).unwrap().evaluate(None, None, &env).bound;
            assert_eq!(bound, (items > 1000).then_some(Bound::ListSize));
        }
    });
}

/// `cargo bench -p slotwright-classad --bench bounds` measures what these expressions cost.
#[test]
fn hostile_expressions_are_charged_for_what_they_do() {
    on_a_small_stack(|| {
        let env = Env::at(0);
        let all = hostile::all();
        assert!(all.len() >= 60);
        for Hostile { text, least, ad, once, often } in all {
            let done = once.evaluate(Some(&ad), None, &env);
            assert!(done.steps >= least, "{text} costs {} steps", done.steps);
            assert_eq!(done.bound == Some(Bound::Steps), done.steps > env.limits.steps, "{text}");
            for expr in [&once, &often] {
                let first = expr.evaluate(Some(&ad), None, &env);
                assert_eq!(expr.evaluate(Some(&ad), None, &env), first, "{text} costs the same again");
                assert!(first.bound.is_none() || first.value.is_error(), "{text}");
            }
        }
    });
}

#[test]
fn a_bound_is_told_in_the_report() {
    let mut job = Ad::new();
    job.insert("Requirements", Expr::parse("eval(\"Requirements2\")").unwrap());
    job.insert("Requirements2", Expr::parse("eval(\"eval(\\\"Requirements3\\\")\")").unwrap());
    job.insert("Requirements3", Expr::parse("size({Requirements2}[0]) + sum(L)").unwrap());
    job.insert("L", Expr::parse("{L}[0]").unwrap());
    let other = Ad::new();
    assert!(!symmetric_match(&job, &other, &Env::at(0)));
    assert!(!explain_match(&job, &other, &Env::at(0)).matches());
}

/// Texts that fuzzing found: they were printed as text that did not read back as the same.
#[test]
fn odd_literals_print_as_what_they_are() {
    for text in [
        "65 .d",
        "(65).d",
        "65[0].d",
        "- 65 .d",
        "65 .d ?: 1",
        "relTime(\"2147483648\")",
        "relTime(\"1+02:03:04.000000001\")",
        "absTime(\"0020-02-29T12:30:45+05:30\")",
        "absTime(\"20-02-29T12:30:45\")",
        "absTime(\"9999-12-31T23:59:59-99:59\")",
        "absTime(\"\u{10}0\u{15}:5+0f:30\")",
        "absTime(\"0000\")",
        "absTime(\"0000-00-00\")",
        "'f g'(1)",
        "'true'(1).'is'.'é'",
        "..a..b",
        "-0x1F.8",
    ] {
        let expr = Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(Expr::parse(&expr.to_string()), Ok(expr.clone()), "{text} as {expr}");
    }
    for value in [
        "relTime(-1e300)",
        "relTime(1e18)",
        "absTime(0,413000000)",
        "absTime(2147483647) + relTime(2147483647)",
    ] {
        let value = Expr::parse(value).unwrap().eval(None, None, &Env::at(0));
        assert!(Expr::parse(&value.to_string()).is_ok(), "{value}");
    }
}

/// Selections from nested lists, and the ads around a match, that contain themselves.
#[test]
fn what_contains_itself_is_bounded() {
    on_a_small_stack(|| {
        let ad = Ad::parse_new("[L = {L, L, {L}}; P = {parent, toplevel, my, target}; R = toplevel.LEFT.R]")
            .unwrap();
        for text in [
            "L.L.L",
            "L",
            "P.P.P.P",
            "R",
            "toplevel",
            "strcat(toplevel)",
            "P",
            "parent.parent.lCtx.my.P[0].my.P",
        ] {
            let expr = Expr::parse(text).unwrap();
            for target in [None, Some(&ad)] {
                let outcome = expr.evaluate(Some(&ad), target, &Env::at(0));
                assert_eq!(outcome.value.clone(), outcome.value);
                assert!(outcome.bound.is_none() || outcome.value.is_error(), "{text}");
            }
        }
    });
}

/// Text that is often nearly an expression.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a",
        "B",
        "MY.",
        "TARGET.",
        ".",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        "=",
        "==",
        "=?=",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "<<",
        ">>>",
        "?",
        ":",
        "?:",
        "1",
        "0",
        "-1",
        "1.5",
        "1e400",
        "9223372036854775807",
        "\"x\"",
        "\"\\",
        "'q'",
        "strcat(",
        "substr(",
        "regexps(",
        "eval(",
        "split(",
        "formatTime(",
        "absTime(",
        "splitTime(",
        "quantize(",
        "interval(",
        "unresolved(",
        "evalInEachContext(",
        "stringListMax(",
        "join(",
        "\"é\"",
        "true",
        "undefined",
        "error",
        " is ",
        "/*",
        "//",
        "parent",
        "root",
        "é",
        "\n",
        "\\",
    ];
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..30).prop_map(|pieces| pieces.concat()),
        ".{0,40}",
    ]
}

/// Expressions that parse.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| Value::Real(number).to_string()),
        ".{0,8}".prop_map(|text| Value::from(text).to_string()),
        prop::sample::select(
            &["a", "MY.b", "TARGET.c", ".d", "'e f'", "true", "undefined", "error", "parent.x"][..]
        )
        .prop_map(str::to_owned),
    ];
    let functions = prop::sample::select(
        &[
            "strcat",
            "substr",
            "size",
            "split",
            "regexp",
            "quantize",
            "formatTime",
            "eval",
            "pow",
            "interval",
            "join",
            "nosuch",
        ][..],
    );
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let operators = prop::sample::select(
            &[
                "+", "-", "*", "/", "%", "<", "==", "=?=", "isnt", "&&", "||", "&", "^", "|", "<<", ">>",
                ">>>",
            ][..],
        );
        prop_oneof![
            (inner.clone(), operators, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} ({b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? {b} : {c}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) ?: ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("[a = {a}; b = a].b")),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("{{{}}}", items.join(", "))),
            (functions.clone(), prop::collection::vec(inner, 0..4))
                .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_says_why(text in text()) {
        match Expr::parse(&text) {
            Ok(expr) => {
                prop_assert_eq!(Expr::parse(&expr.to_string()), Ok(expr.clone()), "{}", expr);
                expr.eval(None, None, &Env::at(0));
            }
            Err(error) => prop_assert!(error.line() >= 1 && error.column() >= 1),
        }
        let _ = Ad::parse_new(&format!("[a = {text}]"));
        let (ad, _) = Ad::parse_long_lenient(&text);
        ad.eval_attr("a", Some(&ad), &Env::at(0));
    }

    #[test]
    fn printing_and_parsing_give_the_same_tree(text in expression()) {
        let expr = Expr::parse(&text).unwrap();
        let printed = expr.to_string();
        prop_assert_eq!(Expr::parse(&printed), Ok(expr.clone()), "{}", printed);
        let mut ad = Ad::new();
        ad.insert("a", expr);
        prop_assert_eq!(Ad::parse_new(&ad.to_string()), Ok(ad));
    }

    #[test]
    fn evaluating_gives_the_same_every_time(mine in expression(), theirs in expression(), text in expression()) {
        let (mut my, mut target) = (Ad::new(), Ad::new());
        my.insert("a", Expr::parse(&mine).unwrap());
        my.set("c", 1.5);
        target.insert("b", Expr::parse(&theirs).unwrap());
        target.set("c", "x");
        let expr = Expr::parse(&text).unwrap();
        let value = expr.eval(Some(&my), Some(&target), &Env::at(7));
        prop_assert_eq!(expr.eval(Some(&my), Some(&target), &Env::at(7)), value);
    }

    #[test]
    fn moments_print_as_what_they_are(
        [month, day, hour, minute, second, zone_hours, zone_minutes] in [0..100, 0..100, 0..100, 0..100, 0..100, 0..100, 0..100],
        year in prop_oneof![Just(0), Just(9999), 0..10_000],
        sign in prop::sample::select(vec!['+', '-']),
    ) {
        let text = format!(
            "absTime(\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{zone_hours:02}{zone_minutes:02}\")"
        );
        if let Ok(expr) = Expr::parse(&text) {
            prop_assert_eq!(Expr::parse(&expr.to_string()), Ok(expr.clone()), "{} as {}", text, expr);
        }
    }

    #[test]
    fn long_form_reads_back(text in "[^\r\n]{0,20}|[\"\\\\ x]{0,6}", number in any::<i64>()) {
        let ad = Ad::new().with("S", text).with("N", number);
        prop_assert_eq!(Ad::parse_long(&ad.to_long()), Ok(ad.clone()), "{}", ad.to_long());
    }
}
