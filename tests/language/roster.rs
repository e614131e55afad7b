//! A roster answers as the plain evaluator does, whatever the ads are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    clippy::too_many_lines,
    reason = "a test says what it expects by panicking"
)]

use classad::{Ad, Env, Expr, Limits, Name, Roster, Value, rank, symmetric_match};
use proptest::prelude::*;
use proptest::sample::select;

const NOW: i64 = 1_769_860_800;

fn ad(text: &str) -> Ad {
    Ad::parse_new(text).unwrap()
}

fn env() -> Env {
    Env::at(NOW)
}

/// Whether no expression could tell two numbers apart.
fn same_number(ours: Option<f64>, plain: Option<f64>) -> bool {
    match (ours, plain) {
        (Some(a), Some(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Compares all answers of a roster with the plain evaluator's: a job with every slot, twice, because the roster remembers
/// ranks.
fn check(slots: &[Option<Ad>], job: &Ad, ranks: [Option<Expr>; 2], roster: &mut Roster, env: &Env) {
    for _ in 0..2 {
        let prepared = roster.prepare(job, env);
        let matching = roster.matching(&prepared);
        assert_eq!(matching.iter().count(), matching.len());
        for (place, slot) in slots.iter().enumerate() {
            let Some(slot) = slot else {
                assert!(!roster.matches(&prepared, place) && !matching.contains(place));
                assert_eq!(roster.ranks(&prepared, place), None);
                continue;
            };
            let told = || format!("job {job}\nslot {slot}");
            let plain = symmetric_match(job, slot, env);
            assert_eq!(roster.matches(&prepared, place), plain, "a pair\n{}", told());
            assert_eq!(matching.contains(place), plain, "all\n{}", told());
            let ours = roster.ranks(&prepared, place).unwrap();
            assert!(same_number(Some(ours.job), Some(rank(job, slot, env))), "{ours:?}\n{}", told());
            for (ours, expr) in [ours.pre_job, ours.post_job].into_iter().zip(&ranks) {
                let plain = expr.as_ref().and_then(|expr| expr.eval(Some(slot), Some(job), env).as_number());
                assert!(same_number(ours, plain), "{ours:?} is not {plain:?}, {expr:?}\n{}", told());
            }
        }
    }
}

/// Checks an expression as requirements and as rank of both sides, and by an expression that tests which value it has.
fn check_expression(text: &str, my: &Ad, target: &Ad) {
    let expr = Expr::parse(text).unwrap();
    let value = expr.eval(Some(my), Some(target), &env());
    let literal = match &value {
        Value::Real(number) if !number.is_finite() => "real(\"NaN\")".to_owned(),
        Value::List(_) | Value::Ad(_) | Value::AbsTime(_) | Value::RelTime(_) => "7".to_owned(),
        Value::Real(_) => format!("real(\"{}\")", value.as_real().unwrap()),
        _ => value.to_string(),
    };
    let conditions = [
        text.to_owned(),
        format!("({text}) =?= {literal}"),
        format!("isError({text}) || 1 > 0"),
        format!("Known && ({text})"),
    ];
    for condition in conditions {
        let Ok(condition) = Expr::parse(&condition) else { continue };
        let mut asking = my.clone();
        asking.insert("Requirements", condition);
        asking.insert("Rank", expr.clone());
        asking.insert("Known", Expr::parse("1 == 1").unwrap());
        let willing = target.clone().with("Requirements", true);
        let ranks = [Some(expr.clone()), Some(Expr::parse(&format!("strcat({text}\n, Rank) + 1")).unwrap())];
        for (job, slot) in [(&asking, &willing), (&willing, &asking)] {
            let mut roster = Roster::new(ranks[0].clone(), ranks[1].clone());
            roster.set(1, slot.clone());
            check(&[None, Some(slot.clone())], job, ranks.clone(), &mut roster, &env());
        }
    }
}

#[test]
fn every_expression_that_the_oracle_was_asked() {
    let recorded =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/classad.jsonl"))
            .unwrap();
    // Without optimization, a part of the cases is enough; `cargo test --release` takes all.
    let every = if cfg!(debug_assertions) { (recorded.lines().count() / 3000).max(1) } else { 1 };
    let mut ads = None;
    let mut count = 0;
    for (number, line) in recorded.lines().enumerate() {
        // Lines that are objects hold ads alone, which are not compared here.
        let serde_json::Value::Array(line) = serde_json::from_str(line).unwrap() else { continue };
        let field = |place: usize| line.get(place).and_then(serde_json::Value::as_str);
        if field(0) == Some("ads") && field(1).is_some_and(|text| text.starts_with('[')) {
            let read = |text: &str| Ad::parse_new(text).ok();
            ads = field(1).zip(field(2)).and_then(|(my, target)| read(my).zip(read(target)));
            continue;
        }
        let (Some((my, target)), Some(text)) = (&ads, field(0)) else { continue };
        if number.is_multiple_of(every) && Expr::parse(text).is_ok() {
            check_expression(text, my, target);
            count += 1;
        }
    }
    assert!(count > 1000, "only {count}");
}

#[test]
fn expressions_that_were_thought_about() {
    let my = ad("[A = 2; B = A * 3; C = D; D = C; S = \"Linux\"; N = [X = 1]; L = {1, 2}; T = time(); \
        Z = -0.0; Big = 9007199254740993; U = undefined; E = error; Req = Requirements; Word = TARGET.A; Asks = TARGET.Rank && (true) + (A)]");
    let target = ad("[A = 5; F = A + 1; G = MY.F > TARGET.A; S = \"LINUX\"; M = 1024; R = 2.5; O = true; \
        Z = 0.0; Big = 9007199254740992.0; L = {\"a\", \"b\"}; V = TARGET.B; P = \"a,b,c\"; Loop = Loop; Asks = TARGET.Rank && (true) + (A)]");
    let texts = [
        "B > 5 && TARGET.F == 6",
        "F",
        "G",
        "V",
        "TARGET.V",
        "MY.V",
        "C",
        "C is undefined",
        "TARGET.G",
        "Loop",
        "TARGET.M >= 1024 && TARGET.M >= 1024.0 && TARGET.M < 1e9",
        "M >= A && M > 3.5 && R < 3 && R <= 2.5 && !(R > 2.5)",
        "S == TARGET.S",
        "S =?= TARGET.S",
        "TARGET.S =!= \"linux\"",
        "TARGET.S < \"m\"",
        "TARGET.S >= 3",
        "O",
        "TARGET.O",
        "!O",
        "O && M",
        "O + 1",
        "-O",
        "M && P",
        "P || true",
        "true || P",
        "P && false",
        "false && P",
        "U && false",
        "false && U",
        "U || true",
        "E || true",
        "true || E",
        "TARGET.nope && false",
        "TARGET.nope || O",
        "time() > 5",
        "CurrentTime == time()",
        "MY.CurrentTime",
        "TARGET.CurrentTime",
        "T == time()",
        "TARGET.T",
        "random() < 2",
        "random(3) + TARGET.A",
        "O ? A : E",
        "nope ? 1 : 2",
        "O ?: 3",
        "TARGET.nope ?: 3",
        "nope ?: A",
        "ifThenElse(O, A, E)",
        "ifThenElse(TARGET.nope, 1, 2)",
        "ifThenElse(P, 1, 2)",
        "ifThenElse(1)",
        "isUndefined(A, B)",
        "isUndefined(TARGET.nope)",
        "isUndefined(TARGET.L)",
        "isError(TARGET.S + 1)",
        "nosuch(1)",
        "isUndefined(nosuch(1))",
        "stringListMember(\"b\", TARGET.P)",
        "stringListIMember(TARGET.S, \"x,linux\")",
        "member(TARGET.A, {1, 5})",
        "member(TARGET.A, L)",
        "member(\"a\", TARGET.L)",
        "member(A, {TARGET.A, 2})",
        "size({1,2,TARGET.A})",
        "size(TARGET.P)",
        "regexp(\"^li\", TARGET.S, \"i\")",
        "regexp(\"^li\", TARGET.S)",
        "regexp(TARGET.P, S)",
        "regexp(\"(\", TARGET.S)",
        "strcat(TARGET.S, {MY.A})",
        "join(\",\", {MY.A, 1})",
        "strcat(L, \"\") == TARGET.S",
        "sum({TARGET.A, A}) == 7",
        "eval(\"TARGET.A\") == 5",
        "unparse(B) == \"A * 3\"",
        "N.X == 1",
        "N.A",
        "L[1] == A",
        "{1,2}[0]",
        ".A",
        "root.A",
        "my",
        "TARGET",
        "TARGET.TARGET.A",
        "MY.TARGET",
        "TARGET.my",
        "parent",
        "self.A",
        "other.A == 5",
        "TARGET.other",
        "1 / Z",
        "1 / TARGET.Z",
        "Z =?= TARGET.Z",
        "Big > TARGET.Big",
        "TARGET.Big < Big",
        "Big == TARGET.Big",
        "TARGET.Big > 1",
        "quantize(TARGET.M, {1000, 2000}) == 2000",
        "split(TARGET.P)[1]",
        "size(split(TARGET.P)) == 3",
        "Req",
        "Word",
        "TARGET.Word",
        "isError(1 / TARGET.Asks)",
        "isUndefined(TARGET.Asks)",
        "Requirements",
        "MY.Requirements && O",
        "Rank",
        "absTime(TARGET.A) is absTime(5)",
        "relTime(5) is relTime(TARGET.A)",
        "formatTime(5)",
        "interval(TARGET.A) == \"5\"",
        "versionGE(\"8.9\", TARGET.S)",
        "real(TARGET.A) / 2 == 2.5",
        "~TARGET.A",
        "1 << TARGET.A",
        "TARGET.A & 4",
        "TARGET.A % 2 == 1",
        "TARGET.R % 2",
        "-9223372036854775808 / -TARGET.O",
    ];
    for text in texts {
        check_expression(text, &my, &target);
        check_expression(text, &target, &my);
    }
    for _ in 0..3 {
        // An attribute of this name hides the other ad.
        check_expression("TARGET.A == 5 && TARGET.M", &my.clone().with("Target", 3), &target);
        check_expression("MY.A == 2 && TARGET.M", &my.clone().with("My", 3), &target);
        check_expression("CurrentTime == 3 && TARGET.M", &my.clone().with("CurrentTime", 3), &target);
    }
}

#[test]
fn what_is_too_large_goes_to_the_plain_evaluator() {
    let job = |text: String| {
        let mut job = Ad::new();
        job.insert("Requirements", Expr::parse(&text).unwrap());
        job
    };
    let slot = ad("[A = 1; Requirements = true]");
    let jobs = [
        job(format!("{}TARGET.A{}", "(".repeat(240), ")".repeat(240))),
        job(format!("TARGET.A{} > 0", " + 1".repeat(450))),
        job(format!("TARGET.A{}", " && TARGET.A".repeat(30_000))),
        job(format!("strcat(\"{}\", TARGET.A) != \"\"", "x".repeat(30_000))),
    ];
    let narrow = Env { limits: Limits { steps: 20, ..Limits::default() }, ..env() };
    for job in
        jobs.iter().chain([&job("TARGET.A == 1 && 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 == 11".into())])
    {
        for env in [env(), narrow.clone()] {
            let mut roster = Roster::new(None, None);
            roster.set(0, slot.clone());
            check(&[Some(slot.clone())], job, [None, None], &mut roster, &env);
        }
    }
}

#[test]
fn a_job_stays_ready_while_slots_come_and_go() {
    let slot = |memory: i64, more: &str| {
        ad(&format!("[Memory = {memory}; Requirements = TARGET.Size <= MY.Memory{more}]"))
    };
    let job = ad("[Size = 3; Owner = \"a\"; Requirements = TARGET.Memory > 1 && TARGET.Disk =?= undefined]");
    let mut roster = Roster::new(None, None);
    roster.set(0, slot(4, ""));
    let prepared = roster.prepare(&job, &env());
    roster.set(2, slot(5, " && TARGET.Owner == \"a\""));
    roster.set(1, slot(6, " && TARGET.Owner == \"b\""));
    assert_eq!(roster.matching(&prepared).iter().collect::<Vec<_>>(), [0, 2]);
    assert!(roster.matches(&prepared, 2) && !roster.matches(&prepared, 1));
    // Many other jobs, which ask for many other attributes.
    for n in 0..600 {
        let other = ad(&format!("[Requirements = TARGET.Attribute{n} == {n}]"));
        let other = roster.prepare(&other, &env());
        assert!(roster.matching(&other).is_empty());
    }
    roster.set(2, slot(2, ""));
    assert_eq!(roster.matching(&prepared).iter().collect::<Vec<_>>(), [0]);
    assert!(roster.clear(0).is_some() && roster.clear(0).is_none() && roster.get(2).is_some());
    assert!(roster.matching(&prepared).is_empty());
}

/// Slots of different memory, and ranks that read one attribute of jobs, as HTCondor's defaults read RemoteOwner.
fn ranked_slots() -> Roster {
    let rank = "1000 * (RemoteOwner =?= undefined) - Memory - (10 * Cpus)";
    let [pre, post] = [rank, "Memory * (RemoteOwner =?= undefined)"].map(|text| Expr::parse(text).unwrap());
    let mut roster = Roster::new(Some(pre), Some(post));
    for place in 0..100 {
        roster.set(place, ad(&format!("[Memory = {place}; Cpus = 2; Requirements = true]")));
    }
    roster
}

/// The steps that ranking all slots costs a job, and the sum of the negotiator's first rank.
fn ranking(roster: &mut Roster, job: &str) -> (u64, f64) {
    let job = roster.prepare(&ad(job), &env());
    let matching = roster.matching(&job);
    let before = job.spent();
    let sum = roster.ranked(&job, matching).filter_map(|(_, ranks)| ranks.pre_job).sum();
    (job.spent() - before, sum)
}

#[test]
fn the_negotiator_ranks_a_slot_once_for_all_jobs_of_a_kind() {
    let mut roster = ranked_slots();
    let sum = (0..100).map(|memory| 980.0 - f64::from(memory)).sum();
    let first = ranking(&mut roster, "[Requirements = true; Rank = TARGET.Memory]");
    assert!(first.0 >= 1000 && first.1 == sum, "each slot is ranked: {first:?}");
    let other = "[Owner = \"b\"; Requirements = TARGET.Memory >= 0; Rank = TARGET.Cpus]";
    assert_eq!(ranking(&mut roster, other), (100, sum), "each slot is looked up");
    roster.set(7, ad("[Memory = 1007; Cpus = 2; Requirements = true]"));
    let changed = ranking(&mut roster, other);
    assert!((110..130).contains(&changed.0) && changed.1 == sum - 1000.0, "one slot is ranked: {changed:?}");
    let odd = ranking(&mut roster, "[RemoteOwner = \"c\"; Requirements = true]");
    assert!(odd.0 >= 1000 && odd.1 == sum - 101_000.0, "a job of another kind: {odd:?}");
    assert_eq!(ranking(&mut roster, other), (100, sum - 1000.0), "the first kind is still known");
    roster.forget_answers();
    assert!(ranking(&mut roster, other).0 >= 1000);
}

#[test]
fn jobs_are_no_longer_of_a_kind_once_a_rank_reads_what_differs() {
    let mut roster = Roster::new(Some(Expr::parse("MY.Likes").unwrap()), None);
    let slot = |likes: &str| ad(&format!("[Likes = {likes}; Requirements = TARGET.Size > 0]"));
    roster.set(0, slot("3"));
    let jobs = [1, 2].map(|size| roster.prepare(&ad(&format!("[Size = {size}]")), &env()));
    roster.set(0, slot("TARGET.Size"));
    for (job, size) in jobs.iter().zip([1.0, 2.0]) {
        assert_eq!(roster.ranks(job, 0).unwrap().pre_job, Some(size));
    }
}

#[test]
fn bounds_that_differ_from_slot_to_slot() {
    let bounds =
        ["1", "2", "2.0", "2.5", "3", "-0.0", "0", "9007199254740993", "9007199254740992.0", "real(\"NaN\")"];
    let values = [
        "2",
        "2.0",
        "true",
        "\"2\"",
        "undefined",
        "error",
        "{2}",
        "time()",
        "TARGET.B",
        "real(\"NaN\")",
        "0.0",
        "9007199254740992",
        "9007199254740993",
        "9007199254740992.0",
        "Nothing + 1",
        "2 + 0",
    ];
    for op in ["<", "<=", ">", ">=", "==", "!=", "=?="] {
        let slot = |bound: &&str| {
            ad(&format!(
                "[B = {bound}; Requirements = TARGET.A {op} B && (MY.B {op} TARGET.A || true) && B {op} TARGET.A]"
            ))
        };
        let slots: Vec<Option<Ad>> = bounds.iter().map(slot).map(Some).collect();
        let mut roster = Roster::new(None, None);
        for (place, slot) in slots.iter().flatten().enumerate() {
            roster.set(place, slot.clone());
        }
        for value in values {
            let job =
                ad(&format!("[A = {value}; Requirements = TARGET.B {op} A || A {op} TARGET.B || true]"));
            check(&slots, &job, [None, None], &mut roster, &env());
            let job = ad(&format!("[A = {value}; Requirements = TARGET.B {op} A && 3 > TARGET.B]"));
            check(&slots, &job, [None, None], &mut roster, &env());
        }
    }
}

/// Names of attributes: few, so that expressions and ads often use the same name.
const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "Memory", "Rank", "Start"];

fn literal() -> impl Strategy<Value = String> {
    let words = [
        "undefined",
        "error",
        "true",
        "false",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "1024",
        "9223372036854775807",
        "0.0",
        "-0.0",
        "1.5",
        "2.0",
        "1e300",
        "real(\"NaN\")",
        "\"\"",
        "\"a\"",
        "\"A\"",
        "\"b\"",
        "\"a,b\"",
        "{1, 2}",
        "[A = 1]",
    ];
    select(words.to_vec()).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    let name = || select(NAMES.to_vec());
    let leaf = prop_oneof![
        3 => literal(),
        2 => name().prop_map(str::to_owned),
        2 => name().prop_map(|name| format!("MY.{name}")),
        4 => name().prop_map(|name| format!("TARGET.{name}")),
        1 => select(vec!["time()", "CurrentTime", "random()", ".A", "TARGET.TARGET.A"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let operators = vec![
            "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", "&", "|", "^", "<<", ">>", ">>>",
        ];
        let functions = vec![
            ("isUndefined", 1), ("isError", 1), ("isString", 1), ("int", 1), ("string", 1), ("ifThenElse", 3),
            ("stringListMember", 2), ("regexp", 2), ("strcat", 2), ("floor", 1), ("pow", 2), ("size", 1), ("member", 2),
            ("eval", 1), ("nosuch", 1), ("debug", 1),
        ];
        prop_oneof![
            4 => (inner.clone(), select(operators), inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
            3 => (inner.clone(), select(vec!["&&", "||"]), inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            1 => (select(vec!["!", "-", "+", "~"]), inner.clone()).prop_map(|(op, a)| format!("{op}({a})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) ?: ({b})")),
            2 => (select(functions), prop::collection::vec(inner.clone(), 3)).prop_map(|((name, count), args)| {
                format!("{name}({})", args[..count].join(", "))
            }),
            1 => (inner.clone(), prop::collection::vec(inner, 2)).prop_map(|(a, list)| {
                format!("member({a}, {{{}}})", list.join(", "))
            }),
        ]
    })
}

fn generated_ad() -> impl Strategy<Value = Ad> {
    let attribute = prop_oneof![3 => literal().boxed(), 1 => expression().boxed()];
    let attributes = prop::collection::vec((select(NAMES.to_vec()), attribute), 0..6);
    let clause = prop_oneof![
        2 => expression().boxed(),
        3 => (select(NAMES.to_vec()), select(vec!["<", "<=", ">", ">=", "==", "=?="]), literal())
            .prop_map(|(name, op, value)| format!("TARGET.{name} {op} {value}")).boxed(),
        1 => Just("true".to_owned()).boxed(),
        1 => Just("Start".to_owned()).boxed(),
    ];
    (attributes, prop::collection::vec(clause, 0..3)).prop_map(|(attributes, clauses)| {
        let parsed = |text: &str| Expr::parse(text).unwrap();
        let mut ad: Ad =
            attributes.into_iter().map(|(name, text)| (Name::from(name), parsed(&text))).collect();
        if !clauses.is_empty() {
            ad.insert("Requirements", parsed(&clauses.join(" && ")));
        }
        ad
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1500), ..ProptestConfig::default() })]

    #[test]
    fn a_roster_answers_as_the_plain_evaluator(
        slots in prop::collection::vec(prop::option::weighted(0.9, generated_ad()), 1..8),
        changes in prop::collection::vec((0_usize..9, prop::option::weighted(0.8, generated_ad())), 0..6),
        jobs in prop::collection::vec(generated_ad(), 1..4),
        pre in prop::option::of(expression()),
        post in prop::option::of(expression()),
    ) {
        let ranks = [pre, post].map(|text| text.map(|text| Expr::parse(&text).unwrap()));
        let mut roster = Roster::new(ranks[0].clone(), ranks[1].clone());
        let mut slots = slots;
        for (place, slot) in slots.iter().enumerate() {
            if let Some(slot) = slot {
                roster.set(place, slot.clone());
            }
        }
        slots.resize(9, None);
        for job in &jobs {
            check(&slots, job, ranks.clone(), &mut roster, &env());
        }
        for (place, slot) in changes {
            match &slot {
                Some(slot) => roster.set(place, slot.clone()),
                None => drop(roster.clear(place)),
            }
            slots[place] = slot;
            check(&slots, &jobs[0], ranks.clone(), &mut roster, &env());
        }
        let later = Env { seed: 7, ..Env::at(NOW + 1) };
        for job in &jobs {
            check(&slots, job, ranks.clone(), &mut roster, &later);
        }
    }
}
