//! The language, section by section of HTCondor's rules: text, operators, names, times.
//!
//! HTCondor's own library gave the same answer in each case.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use classad::{Ad, Env, Expr, ParseError, Value, explain_match, rank, symmetric_match};

/// 2026-01-31T12:00:00Z
const NOW: i64 = 1_769_860_800;

fn eval_in(text: &str, my: Option<&str>, target: Option<&str>) -> String {
    let ad = |text: &str| Ad::parse_new(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (my, target) = (my.map(ad), target.map(ad));
    match Expr::parse(text) {
        Ok(expr) => expr.eval(my.as_ref(), target.as_ref(), &Env::at(NOW)).to_string(),
        Err(error) => format!("! {error}"),
    }
}

/// Checks a table. Each line is an expression, `=>`, and its value.
fn check(table: &str) {
    check_in(None, None, table);
}

fn check_in(my: Option<&str>, target: Option<&str>, table: &str) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, expected) = line.split_once(" => ").unwrap_or_else(|| panic!("no => in {line}"));
        let found = eval_in(text.trim(), my, target);
        if found != expected.trim() {
            wrong.push(format!("{text} is {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn literals() {
    check(
        r#"
        1 => 1
        9223372036854775808 => 0
        -9223372036854775808 => -9223372036854775808
        1.5 => 1.500000000000000E+00
        .5 => 5.000000000000000E-01
        1e3 => 1.000000000000000E+03
        1e400 => real("INF")
        TRUE => true
        "a" "b" => "ab"
        "\x\101\n\"" => "xA\n\""
        {1+1, a} => { 2,undefined }
        [a = 1; a = 2;; A = 3] => [ a = 3 ]
        relTime(86401) => relTime("1+00:00:01")
        relTime("1+00:00:01") => 8.640100000000000E+04
        absTime("2020-01-01T00:00:00+01:00") => absTime("2020-01-01T00:00:00+01:00")
        "#,
    );
}

/// If decimal digits, and perhaps an exponent, follow the point, HTCondor reads the number as C does.
#[test]
fn hexadecimal_reals() {
    check(
        "
        0x1F.8 => 3.150000000000000E+01
        -0x1.8 => -1.500000000000000E+00
        0x1.1E2 => 1.117675781250000E+00
        0x1.1e+1 => 1.117187500000000E+00
        ",
    );
    for broken in ["-0x1F.D", "0x1F.b", "0x1.8b", "0x1.1e", "0x1.1e+", "0x1.1p3", "0x1e1", "0x1F"] {
        assert!(Expr::parse(broken).is_err(), "{broken}");
    }
}

#[test]
fn environments_of_the_old_notation() {
    check(
        r#"
        envV1ToV2("A=1;B=2") => "A=1 B=2"
        envV1ToV2("|A=1|B=2;C=3") => "A=1 B=2;C=3"
        envV1ToV2("\nA=1; B=2\n\tC=3") => "A=1 B=2 C=3"
        envV1ToV2("\fA=1") => "\fA=1"
        "#,
    );
}

#[test]
fn argument_lists_of_the_old_notation() {
    check(
        r#"
        listToArgs({"a", "b"}, 1) => "a b"
        listToArgs({""}, 1) => ""
        listToArgs({"", "", "a", ""}, 1) => "a "
        listToArgs({"a b"}, 1) => error
        listToArgs({"a\fb"}, 1) => "a\fb"
        argsToList("a\fb  c", 1) => { "a\fb","c" }
        "#,
    );
}

/// The text must be one expression and nothing else, but HTCondor ignores what follows a `c ? t : f`.
#[test]
fn eval_of_a_text() {
    check(
        r#"
        eval("1 + 1") => 2
        eval("1;") => error
        eval("1]") => error
        eval("1; x = 2") => error
        eval("1 2") => error
        eval("") => error
        eval(" 1 ") => 1
        eval("1 // c") => 1
        eval("1 /* c ") => error
        eval("((1) /* c") => 1
        eval("strcat(\"a\", {\"b\"}[0] /* c") => error
        eval({1}) => { 1 }
        eval(undefined) => error
        eval("true ? 2 : 3 4") => 2
        eval("true ? 2 : 3 'a") => 2
        eval("(true ? 2 : 3) 4") => error
        eval("undefined ?: 3 4") => error
        eval("true ? 2 : 3 +") => error
        eval(1.5) => 1.500000000000000E+00
        "#,
    );
}

#[test]
fn precedence() {
    check(
        "
        1 + undefined ?: 3 => 4
        -undefined ?: 4 => -4
        undefined ?: 3 + 4 => 7
        2 < 3 < 1 => false
        1 < 2 == true => true
        1 & 2 == 2 => error
        1 + 2 * 3 => 7
        10 - 4 - 3 => 3
        1 ? 2 : 0 ? 3 : 4 => 2
        false || true && false => false
        !false && false => false
        -2 - -3 => 1
        1 | 2 ^ 3 & 1 << 1 => 1
        ",
    );
}

#[test]
fn arithmetic() {
    check(
        r#"
        9223372036854775807 + 1 => -9223372036854775808
        9223372036854775807 * 2 => -2
        -7 / 2 => -3
        -7 % 3 => -1
        1 / 0 => error
        1 % 0 => error
        -9223372036854775808 / -1 => 9223372036854775807
        -9223372036854775808 % -1 => 0
        5.5 % 2 => error
        1.0 / 0 => error
        -1.0 / 0.0 => real("-INF")
        -1e308 * 10 => real("-INF")
        0.0 / 0.0 => real("NaN")
        true + 1 => 2
        true * 2.5 => 2.500000000000000E+00
        -true => error
        +"a" => error
        +undefined => undefined
        "a" + 1 => error
        undefined + "a" => undefined
        undefined + error => error
        relTime(5) + 1 => error
        relTime(5) * 2 => relTime("10")
        absTime("2020-01-01T00:00:00Z") - absTime("2019-12-31T00:00:00Z") => relTime("1+00:00:00")
        "#,
    );
}

#[test]
fn shifts_and_bits() {
    check(
        "
        1 << 64 => 1
        1 << -1 => -9223372036854775808
        8 >> 65 => 4
        -1 >> 100 => -1
        -8 >>> 1 => 9223372036854775804
        -1 >>> 0 => 0
        -1 >>> 64 => 0
        5 & true => error
        ~true => error
        ~5 => -6
        ",
    );
}

#[test]
fn comparison_and_identity() {
    check(
        r#"
        true == 1 => true
        1 == 1.0 => true
        9007199254740993 == 9007199254740992.0 => true
        "a" == "A" => true
        "Z" < "a" => false
        "_" < "B" => true
        "1" == 1 => error
        {1} == {1} => error
        {1} == undefined => undefined
        1 =?= 1.0 => false
        true =?= 1 => false
        undefined =?= undefined => true
        error is error => true
        "a" =?= "A" => false
        {1} =?= {1} => error
        {1} =?= undefined => false
        error is undefined => false
        relTime(1) == 1 => error
        "#,
    );
}

#[test]
fn logic_is_not_symmetric() {
    check(
        r#"
        false && error => false
        error && false => error
        true || error => true
        error || true => error
        undefined && false => false
        undefined && true => undefined
        undefined && error => error
        undefined || true => true
        undefined || error => error
        0 && "a" => false
        0 || "a" => error
        "a" && false => error
        1 && 2 => true
        false || 3 => true
        !undefined => undefined
        !2.5 => false
        !"a" => error
        undefined ? 1 : 2 => undefined
        "a" ? 1 : 2 => error
        1 ? 2 : error => 2
        error ?: 1 => error
        0 ?: 1 => 0
        undefined && undefined && false => false
        true && undefined && error && false => error
        "#,
    );
}

#[test]
fn subscripts_and_selection() {
    check(
        r#"
        {1,2}[1] => 2
        {1,2}[2] => error
        {1,2}[-1] => error
        {1,2}["a"] => error
        {1,error}[0] => 1
        undefined[0] => undefined
        {}.x => {  }
        [a = 1; b = a + 1].B => 2
        [a = 1]["A"] => 1
        [a = 1]["b"] => undefined
        (1).a => error
        {[a=1], [b=2], 3}.a => { 1,undefined,error }
        nosuch(1) => error
        "#,
    );
}

#[test]
fn names() {
    let my = "[a = 1; e = e + 1; c = d; d = c; n = [x = a; a2 = parent.a; p = MY.y; y = 5]; l = {1, l[0]}; 'b c' = 7]";
    check_in(
        Some(my),
        None,
        "
        A => 1
        MY.a => 1
        TARGET.a => undefined
        c => undefined
        e => undefined
        n.x => 1
        n.a2 => 1
        n.p => 5
        n.a => 1
        .a => 1
        n.root.a => 1
        parent => undefined
        l[1] => 1
        'b c' => 7
        CurrentTime => 1769860800
        ",
    );
    check(".a => error\n CurrentTime => undefined\n a => undefined");
}

#[test]
fn names_in_a_match() {
    check_in(
        Some("[Bar = 1; JobExpr = Bar + TARGET.Bar; n = [x = Memory; y = TARGET.Memory]]"),
        Some("[Bar = 10; Memory = 5; SlotExpr = Bar * 2 + TARGET.Bar; Loop = TARGET.Back]"),
        "
        JobExpr => 11
        SlotExpr => 21
        Memory => 5
        MY.Memory => undefined
        other.Memory => 5
        TARGET.TARGET.Bar => 1
        .Bar => undefined
        n.x => undefined
        n.y => 5
        Loop => undefined
        ",
    );
}

#[test]
fn a_proc_ad_falls_back_to_its_cluster_ad() {
    let mut cluster = Ad::new().with("Owner", "alice").with("Prio", 1);
    cluster.insert("Twice", Expr::parse("Prio * 2").unwrap());
    let mut proc = Ad::new().with("Prio", 5);
    proc.chain(Some(cluster));
    let env = Env::at(NOW);
    assert_eq!(proc.eval_attr("owner", None, &env), Value::from("alice"));
    assert_eq!(proc.eval_attr("Twice", None, &env), Value::Int(10));
}

#[test]
fn matching() {
    let ad = |text: &str| Ad::parse_new(text).unwrap();
    let env = Env::at(NOW);
    let job = ad("[Requirements = TARGET.Memory >= RequestMemory && (TARGET.Arch == \"X86_64\"); \
                  RequestMemory = 512; Rank = Memory]");
    let slot = ad("[Memory = 1024; Arch = \"aarch64\"; Requirements = 2.5]");
    let good = ad("[Memory = 1024; Arch = \"x86_64\"; Requirements = TARGET.RequestMemory <= MY.Memory]");
    assert!(symmetric_match(&job, &good, &env));
    assert!(symmetric_match(&good, &job, &env));
    assert!(!symmetric_match(&job, &slot, &env));
    assert!(!symmetric_match(&job, &ad("[Memory = 1024; Arch = \"X86_64\"]"), &env), "no Requirements");
    assert!((rank(&job, &good, &env) - 1024.0).abs() < 1e-9);
    assert!(rank(&good, &job, &env).abs() < 1e-9);

    let report = explain_match(&job, &slot, &env);
    assert!(!report.matches());
    assert!(report.target.accepts);
    let failed: Vec<String> = report.my.failed().map(ToString::to_string).collect();
    assert_eq!(failed, ["(TARGET.Arch == \"X86_64\") is false"]);
}

#[test]
fn unparse_is_htcondors_form() {
    for text in [
        "1 + 2 * 3",
        "a && b || c",
        "a is b",
        "a ? b : c",
        "a ?: b ?: c",
        "a ?: b.c[1]",
        "!a && -b",
        "f(1,2)",
        "{ 1,2 }",
        "[ a = 1; a_ = 4; aa = 3; B = 2 ]",
        "a - -1",
        "'b c' + 'parent'.x",
        "0.1 + 1e300",
        r#""a'b\"\a\b\f\n\r\t\v\\\177?""#,
        "absTime(\"2020-01-01T00:00:00+05:30\")",
    ] {
        let expr = Expr::parse(text).unwrap();
        let printed = expr.to_string();
        assert_eq!(Expr::parse(&printed).unwrap(), expr, "{printed}");
        if !text.starts_with(['!', '0']) {
            assert_eq!(printed, text);
        }
    }
    assert_eq!(Expr::parse("!a && -b").unwrap().to_string(), " !a &&  -b");
    assert_eq!(Expr::parse("a =?= \"é\"").unwrap().to_string(), "a is \"\\303\\251\"");
}

#[test]
fn parse_errors_tell_where_and_what() {
    let error = |text: &str| Expr::parse(text).unwrap_err().to_string();
    for (text, message) in [
        ("Memory > 1 &&", "line 1, column 14: expected an operand after '&&', found end of input"),
        ("a +\n  * b", "line 2, column 3: expected an operand after '+', found '*'"),
        ("", "line 1, column 1: expected an expression, found end of input"),
        ("(1", "line 1, column 3: expected ')' or an operator, found end of input"),
        (
            "10K",
            "line 1, column 3: expected an operator or the end of the expression, found 'K'; numbers have no units here: Disk is in \
             KiB, so 10K is 10",
        ),
        ("017", "line 1, column 1: expected a decimal integer without leading zeros, found '017'"),
        ("\"a", "line 1, column 1: expected '\"' to end the string, found '\"a'"),
        (
            "a = 1",
            "line 1, column 3: expected an operator or the end of the expression, found '='; write == to compare",
        ),
        ("f(1 2)", "line 1, column 5: expected ',' or ')', found '2'"),
        ("a ? 1", "line 1, column 6: expected ':' of a conditional expression, found end of input"),
        ("é", "line 1, column 1: expected a ClassAd token, found 'é'"),
        ("\"é\" 1", "line 1, column 5: expected an operator or the end of the expression, found '1'"),
    ] {
        assert_eq!(error(text), message);
    }
    let error: ParseError = Ad::parse_long("A = 1\n\nB = (2\n").unwrap_err();
    assert_eq!((error.line(), error.column()), (3, 7));
}

#[test]
fn long_form() {
    let ad =
        Ad::parse_long("# a comment\nA = 5k\nB = \"x\\y\\\"z\"\r\n\nC = a + 1 # c\nD=\"x\\\"\n").unwrap();
    assert_eq!(ad.to_string(), r#"[ A = 5; B = "x\\y\"z"; C = a + 1; D = "x\\" ]"#);
    assert_eq!(Ad::parse_long(&ad.to_long()).unwrap(), ad);
    let (ad, errors) = Ad::parse_long_lenient("a = 1.\nb = 2");
    assert_eq!((ad.len(), errors.len()), (1, 1));
    let stream = Ad::parse_long_stream("A = 1\nB = 2\n\n\n# x\nA = 2\n").unwrap();
    assert_eq!(stream.iter().map(Ad::len).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn the_long_form_is_htcondors() {
    for (text, printed) in [
        ("a =?= 1 || b isnt c", "a =?= 1 || b =!= c"),
        ("-0.25", "-0.25"),
        ("1e3", "1000.0"),
        ("1/3.0", "1 / 3.0"),
        ("0.3333333333333333", "0.3333333333333333"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1E+16"),
        ("1.5e-7", "1.5E-07"),
        ("1.5e-4", "0.00015"),
        ("-0.0", "-0.0"),
        ("123456.789", "123456.789"),
        ("real(\"INF\")", "real(\"INF\")"),
    ] {
        let expr = Expr::parse_old(text).unwrap();
        assert_eq!(expr.to_old(), printed, "{text}");
        assert_eq!(Expr::parse_old(printed).unwrap(), expr, "{text}");
    }
    let minus = Expr::parse_old("- 1.5").unwrap();
    assert_eq!(Expr::parse_old(&minus.to_old()).unwrap(), minus, "{}", minus.to_old());
}

#[test]
fn split_knows_white_space_from_other_separators() {
    check(
        r#"
        split("a,b , c") => { "a","b","","c" }
        split("a , b") => { "a","b" }
        split("a , , b") => { "a","","b" }
        split("a ,, b") => { "a","","b" }
        split("a  b") => { "a","b" }
        split(", a") => { "a" }
    "#,
    );
}
