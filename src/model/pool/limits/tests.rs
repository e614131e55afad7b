//! Concurrency limits against the manual's section on them.

use proptest::prelude::*;

use super::*;

fn list(wants: &Wants) -> Vec<(&str, f64)> {
    wants.iter().collect()
}

/// "For example, define the sets called LARGE and SMALL."
fn manual() -> LimitBook {
    LimitBook::new(
        [
            ("XSW".to_owned(), Capacity::Named(3.0)),
            ("LARGE".to_owned(), Capacity::EachOf(100.0)),
            ("SMALL".to_owned(), Capacity::EachOf(25.0)),
            ("SMALL.EXACT".to_owned(), Capacity::Named(2.0)),
        ],
        5.0,
    )
}

#[test]
fn lists_name_things_and_amounts() {
    let cases: &[(&str, &[(&str, f64)])] = &[
        ("", &[]),
        ("XSW", &[("xsw", 1.0)]),
        ("XSW, DATABASE, FILESERVER", &[("database", 1.0), ("fileserver", 1.0), ("xsw", 1.0)]),
        ("XSW, DATABASE, FILESERVER:3", &[("database", 1.0), ("fileserver", 3.0), ("xsw", 1.0)]),
        ("SWX:2 NETWORK_A", &[("network_a", 1.0), ("swx", 2.0)]),
        (" a ,,\tb\n", &[("a", 1.0), ("b", 1.0)]),
        ("LARGE.SWLICENSE:0.5", &[("large.swlicense", 0.5)]),
        ("a:2 A", &[("a", 3.0)]),
        ("a:0 b:-3 c:x d: e:nan", &[("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0), ("e", 1.0)]),
        (
            "a:2x b:1e1 c:.5 d:+2. e:3e f:1.5e-1z",
            &[("a", 2.0), ("b", 10.0), ("c", 0.5), ("d", 2.0), ("e", 3.0), ("f", 0.15)],
        ),
        ("a:1e999", &[("a", MOST)]),
        ("2a a.b.c a. .a a-b é a:1:2", &[("a", 1.0)]),
    ];
    for (text, expected) in cases {
        assert_eq!(list(&Wants::parse(text)), *expected, "{text:?}");
    }
}

#[test]
fn what_is_no_name_is_refused_at_submission() {
    for (text, bad) in [("a, 2b", "2b"), ("a.b.c", "a.b.c"), ("x:2 net-a:3", "net-a:3"), (":1", ":1")] {
        let error = Wants::parse_strictly(text).unwrap_err();
        assert_eq!(error, BadLimit(bad.to_owned()), "{text:?}");
        assert!(error.to_string().contains(bad), "{error}");
    }
    assert_eq!(Wants::parse_strictly("XSW:2, a.b"), Ok(Wants::parse("XSW:2, a.b")));
}

#[test]
fn capacities_are_a_name_s_own_its_set_s_or_the_default() {
    let book = manual();
    for (name, limit) in [
        ("xsw", 3.0),
        ("large.swlicense", 100.0),
        ("large.dbsession", 100.0),
        ("small.x", 25.0),
        ("small.exact", 2.0),
        ("other.license", 5.0),
        ("large", 5.0),
        ("anything", 5.0),
    ] {
        assert_eq!(book.capacities().of(name).to_bits(), f64::to_bits(limit), "{name}");
    }
    assert_eq!(LimitBook::default().capacities().of("anything").to_bits(), DEFAULT_LIMIT.to_bits());
}

#[test]
fn of_two_that_speak_of_the_same_the_smaller_counts() {
    let two =
        |a, b| Capacities::new([("x".into(), Capacity::Named(a)), ("X".into(), Capacity::Named(b))], 1.0);
    assert_eq!(two(2.0, 3.0).of("x").to_bits(), 2f64.to_bits());
    assert_eq!(two(3.0, 2.0).of("x").to_bits(), 2f64.to_bits());
}

/// "A maximum of 3 jobs declaring that they need this resource may be executed concurrently."
#[test]
fn three_licenses_are_three_jobs() {
    let mut book = manual();
    let job = Wants::parse("XSW");
    for _ in 0..3 {
        assert_eq!(book.blocked(&job), None);
        book.take(&job);
    }
    assert_eq!(book.blocked(&job), Some("xsw"));
    assert_eq!(book.tally("xsw"), Tally { amount: 3.0, users: 3 });
    book.return_slot(&job);
    assert_eq!(book.blocked(&job), None);
}

#[test]
fn amounts_count_and_each_limit_bars_alone() {
    let mut book = manual();
    book.used(&Wants::parse("FILESERVER:3"));
    assert_eq!(book.blocked(&Wants::parse("XSW, DATABASE, FILESERVER:3")), Some("fileserver"));
    assert_eq!(book.blocked(&Wants::parse("XSW, DATABASE, FILESERVER:2")), None);
    assert_eq!(book.blocked(&Wants::parse("XSW:2 XSW:2")), Some("xsw"));
    assert_eq!(book.blocked(&Wants::default()), None);
}

#[test]
fn a_limit_of_zero_bars_and_one_below_its_use_only_bars() {
    let mut book = LimitBook::new([("x".to_owned(), Capacity::Named(0.0))], DEFAULT_LIMIT);
    assert_eq!(book.blocked(&Wants::parse("x:0.001")), Some("x"));
    book.used(&Wants::parse("x:5"));
    book.set_capacities(Capacities::new([("x".to_owned(), Capacity::Named(4.0))], DEFAULT_LIMIT));
    assert_eq!(book.blocked(&Wants::parse("x")), Some("x"));
    book.return_slot(&Wants::parse("x:5"));
    assert_eq!(book.blocked(&Wants::parse("x:4")), None);
}

#[test]
fn tenths_add_up_to_the_whole() {
    let mut book = LimitBook::new([("x".to_owned(), Capacity::Named(1.0))], DEFAULT_LIMIT);
    let tenth = Wants::parse("x:0.1");
    for taken in 0..10 {
        assert_eq!(book.blocked(&tenth), None, "after {taken}");
        book.take(&tenth);
    }
    assert_eq!(book.blocked(&tenth), Some("x"));
    (0..10).for_each(|_| book.return_slot(&tenth));
    assert_eq!(book.tally("x"), Tally::default());
}

#[test]
fn expressions_are_asked_for_each_machine() {
    let env = Env::at(0);
    let job = Ad::parse_long("ConcurrencyLimits = strcat(\"SWX:2 \", TARGET.NETWORK)").unwrap();
    let slot = |network: &str| Ad::new().with("NETWORK", network);
    assert_eq!(Wants::on_any_slot(&job, &env), None);
    for network in ["NETWORK_A", "NETWORK_B"] {
        let wants = Wants::on_slot(&job, &slot(network), &env);
        assert_eq!(wants, Wants::parse(&format!("SWX:2 {network}")));
    }
    assert!(Wants::on_slot(&job, &Ad::new(), &env).is_empty());
    // A value in case the machine has none: the expression is a string without a machine, too.
    for text in [
        "ConcurrencyLimits = strcat(\"SWX:2 \", TARGET.NETWORK ?: \"\")",
        "ConcurrencyLimits = strcat(\"SWX:2 \", NETWORK ?: \"\")",
        "ConcurrencyLimits = strcat(\"SWX:2 \", Own)\nOwn = TARGET.NETWORK ?: \"\"",
    ] {
        let job = Ad::parse_long(text).unwrap();
        assert_eq!(Wants::on_any_slot(&job, &env), None, "{text}");
        assert_eq!(Wants::on_slot(&job, &slot("NETWORK_A"), &env), Wants::parse("SWX:2 NETWORK_A"), "{text}");
        assert_eq!(Wants::on_slot(&job, &Ad::new(), &env), Wants::parse("SWX:2"), "{text}");
    }
    let own =
        Ad::parse_long("ConcurrencyLimits = strcat(\"SWX:\", Seats)\nSeats = MY.Half * 2\nHalf = 1").unwrap();
    assert_eq!(Wants::on_any_slot(&own, &env), Some(Wants::parse("SWX:2")));
    let plain = Ad::new().with(CONCURRENCY_LIMITS, "XSW");
    assert_eq!(Wants::on_any_slot(&plain, &env), Some(Wants::parse("xsw")));
    assert_eq!(Wants::on_any_slot(&Ad::new(), &env), Some(Wants::default()));
}

proptest! {
    /// A new leader reads the same limits back that a claim's record says.
    #[test]
    fn lists_are_read_back_as_they_were(parts in prop::collection::vec(("[a-z_][a-z0-9_]{0,5}(\\.[a-z_]{1,4})?", 0.0..1e9_f64), 0..6)) {
        let text: Vec<String> = parts.iter().map(|(name, amount)| format!("{name}:{amount}")).collect();
        let wants = Wants::parse(&text.join(" "));
        prop_assert_eq!(Wants::parse(&wants.to_string()), wants);
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,40}") {
        for (name, amount) in Wants::parse(&text).iter() {
            prop_assert!(is_limit_name(name) && amount > 0.0 && amount <= MOST, "{text:?}");
        }
    }

    /// A user that asks `blocked` before it takes never takes more than the limit allows.
    #[test]
    fn who_asks_first_never_exceeds(limit in 0.0..10.0_f64, steps in prop::collection::vec((any::<bool>(), 0.05..4.0_f64), 0..60)) {
        let mut book = LimitBook::new([("x".to_owned(), Capacity::Named(limit))], DEFAULT_LIMIT);
        let mut held: Vec<Wants> = Vec::new();
        for (more, amount) in steps {
            let wants = Wants::parse(&format!("x:{amount}"));
            if more && book.blocked(&wants).is_none() {
                book.take(&wants);
                held.push(wants);
            } else if !more && let Some(old) = held.pop() {
                book.return_slot(&old);
            }
            prop_assert!(book.tally("x").amount <= limit + 1e-8);
        }
    }
}
