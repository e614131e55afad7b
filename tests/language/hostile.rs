//! Expressions that are short to write and long to evaluate, for the test of what they are charged and for the benchmark of
//! what they take (`benches/bounds.rs`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use classad::{Ad, Expr, Name};

/// How often an expression is evaluated in its place in [`Hostile::often`].
const OFTEN: usize = 20;

/// An expression, with the ad that it stands in.
pub struct Hostile {
    pub text: &'static str,
    /// The least that one evaluation must be charged, in steps.
    #[allow(dead_code, reason = "the benchmark does not read it")]
    pub least: u32,
    pub ad: Ad,
    /// Evaluates the expression once.
    pub once: Expr,
    /// Evaluates the expression thousands of times.
    pub often: Expr,
}

/// The expressions, and the least that one evaluation of each must be charged, in steps.
const TABLE: &[(&str, u32)] = &[
    // Regular expressions: large ones, those that learn much about each text, and many matches.
    (r#"regexp("(a{1,110}){1,110}b", B)"#, 100_000),
    (r#"regexp("(a|b){0,200}(b|a){0,200}c", Ab)"#, 100_000),
    (r#"regexp("[ab]*a[ab]{40}c", Ab)"#, 80_000),
    (r#"regexp("[ab]*a[ab]{20}c", Ab)"#, 40_000),
    (r#"regexp("(a*)*(b*)*c$", Ab)"#, 20_000),
    (r#"regexp("(.*)(.*)(.*)(.*)(.*)(.*)x", B)"#, 40_000),
    (r#"regexp("\\b(a|b)+\\b.*\\bc\\b", Ab)"#, 20_000),
    (r#"regexp(strcat("a{", string(random(900)), "}b"), "aaaaaaab")"#, 1500),
    (r#"regexp(strcat("(?i)(hello|world|condor)", string(random(9000))), "x")"#, 1500),
    (r#"eval("regexp(\"[a-f]{1,9}x\", \"abc\")")"#, 1500),
    (r#"regexpMember("[ab]*a[ab]{40}c", {Ab, Ab, Ab})"#, 100_000),
    (r#"stringList_regexpMember("(a|b){0,30}c", AbList)"#, 20_000),
    (r#"regexps("(a|b)(a|b)(a|b)(a|b)", Ab, "\\4\\3\\2\\1")"#, 20_000),
    (r#"replaceAll("a|b", Ab, "")"#, 100_000),
    (r#"replaceAll("(x?)", B, "\\1")"#, 100_000),
    (r#"replaceAll("a", B, K16)"#, 20_000),
    (r#"replace("[ab]*c|b$", Ab, "x")"#, 20_000),
    (r#"unresolved(Refers, "[a-z]*[b-y]*[c-x]*q")"#, 1000),
    (r#"regexp("\\w{1,200}x", Accents)"#, 1000),
    (r#"regexp("(?i)[\\pL\\pN]{1,60}q", B)"#, 684),
    (r#"regexp(strcat("(?i)", B), B)"#, 1500),
    (r#"regexp(strcat(Groups, string(random(9000))), "x")"#, 100_000),
    (r#"regexp(strcat("(?i)", K16, string(random(9000))), "x")"#, 100_000),
    (r#"regexp("^(([a-b])+.)+[A-Z]([a-b])+$", Ab)"#, 10_000),
    (r#"regexp("(?s:.*a){12}z", B)"#, 10_000),
    (r#"regexpMember("(a|b|ab|ba)*c", split(AbList, ","))"#, 1000),
    // Comparisons.
    ("Ads =?= Ads", 4),
    ("Numbers =?= Numbers", 4),
    (r#"member("nobody", split(Words, ","))"#, 1000),
    ("C == D", 30_000),
    ("C =?= D", 30_000),
    ("C < D", 30_000),
    ("strcmp(C, D)", 30_000),
    ("stricmp(C, D)", 30_000),
    ("versioncmp(C, D)", 100_000),
    ("version_in_range(C, D, C)", 100_000),
    ("version_in_range(Zeros, Zeros, Zeros)", 5000),
    ("member(C, {D, D, D, D})", 100_000),
    ("identicalMember(C, {D, D, D, D})", 100_000),
    (r#"anyCompare("<", {C, C, C, C}, D)"#, 30_000),
    (r#"allCompare("==", {D, D, D, D}, C)"#, 30_000),
    ("member(3.5, Numbers)", 1000),
    ("sum(Numbers) + min(Numbers) + max(Numbers) + avg(Numbers)", 4000),
    // Lists in strings.
    ("stringListSubsetMatch(Words, Words)", 100_000),
    ("stringListISubsetMatch(Alike, Alike)", 70_000),
    ("stringListsIntersect(Words, OtherWords)", 100_000),
    ("stringListMember(B, AbList)", 15_000),
    ("stringListSum(Digits)", 10_000),
    ("split(Commas)", 2000),
    ("split(K16, Accents)", 4000),
    ("size(split(C))", 100_000),
    (r#"stringListSubsetMatch(strcat(Words, ",x"), OtherWords)"#, 1000),
    (
        "stringListAvg(Digits) + stringListMin(Digits) + stringListMax(Digits) + stringListSize(Digits)",
        10_000,
    ),
    // Texts.
    ("strcat(C, D, C, D, C, D, C, D)", 16_879),
    (
        "strcat(strcat(K16, K16), strcat(K16, K16), strcat(K16, K16)) == strcat(K16, K16, K16, K16, K16, K16)",
        5000,
    ),
    ("toLower(toUpper(toLower(toUpper(C))))", 60_000),
    ("unparse(Ads)", 400),
    ("unparse(Trues)", 1),
    ("toUpper(C)", 30_000),
    ("substr(C, 1)", 20_000),
    ("strcat(C, \"x\")", 30_000),
    ("join(\",\", {C, \"x\"})", 30_000),
    ("join(\",\", Numbers)", 3000),
    ("size(string(Numbers))", 2000),
    ("unparse(Numbers)", 2000),
    ("strcat(Nested)", 500),
    (r#"int(strcat(K16Digits, "1")) + real(K16Digits)"#, 4000),
    ("interval(K16Digits)", 4000),
    ("formatTime(0, Directives)", 40_000),
    ("formatTime(0, \"%999c%999c%999c%999c\")", 500),
    ("splitTime(time()).Year + splitTime(currentTime()).Day", 100),
    ("envV1ToV2(Assignments)", 10_000),
    ("mergeEnvironment(Assignments2)", 20_000),
    ("listToArgs({K16, K16, K16})", 10_000),
    ("argsToList(K16Blanks)", 10_000),
    // Names, scopes, and expressions that are read anew.
    ("[a = Refers][K16]", 4000),
    (LONG_NAME, 100),
    ("Deep", 100),
    ("parent.my.B", 3),
    ("Ads.x.x", 1000),
    ("evalInEachContext(x + 1, Ads)", 1000),
    ("countMatches(regexp(\"[ab]*a[ab]{20}c\", B), Ads)", 100_000),
    ("unresolved(Refers)", 500),
    ("eval(EvalText)", 10_000),
    ("eval(EvalAd)", 9000),
    ("eval(\"{\" + \"\")", 1),
    ("true && Trues", 4000),
    ("strcat(Numbers, Nothing)", 2000),
    ("random(10) + random(1.5) + pow(1.0001, 1e9) + quantize(7, Numbers)", 5),
    ("Chain0", 200),
    ("Patterns", 20_000),
    ("Comparisons", 200_000),
];

/// A name of 1600 bytes.
const LONG_NAME: &str = "LONG";

/// All expressions of the table.
pub fn all() -> Vec<Hostile> {
    let ad = texts();
    let hostile = |(text, least): &(&'static str, u32)| {
        let written = if *text == LONG_NAME { long_name() } else { (*text).to_owned() };
        let once = Expr::parse(&written).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut ad = ad.clone();
        ad.insert("Often0", once.clone());
        for level in 0..3 {
            let items = vec![format!("Often{level}"); OFTEN].join(", ");
            let list = Expr::parse(&format!("{{{items}}}")).unwrap();
            ad.insert(format!("Often{}", level + 1), list);
        }
        Hostile { text, least: *least, ad, once, often: Expr::parse("Often3").unwrap() }
    };
    TABLE.iter().map(hostile).collect()
}

fn long_name() -> String {
    "N".repeat(1600)
}

fn texts() -> Ad {
    // Reproducible letters in no order.
    let mut state = 12_345_u64;
    let mut letters = |count: usize| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (state >> 40) & 1 == 1 { 'a' } else { 'b' }
        };
        (0..count).map(|_| next()).collect()
    };
    let numbers: Vec<String> = (0..1500).map(|number| number.to_string()).collect();
    let words = |prefix: &str| (0..1500).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>().join(",");
    let alike: Vec<String> = (0..40).map(|n| "a".repeat(400) + if n % 2 == 0 { "b" } else { "a" }).collect();
    let mut ad = Ad::new()
        .with("B", "a".repeat(11_000))
        .with("Ab", letters(11_000))
        .with("AbList", letters(5000).replace("aba", ","))
        .with("C", "x".repeat(600_000) + "y")
        .with("D", "x".repeat(600_000) + "z")
        .with("K16", "k".repeat(16_000))
        .with("K16Blanks", "k ".repeat(8000))
        .with("K16Digits", "7".repeat(16_000))
        .with("Zeros", "0".repeat(16_000) + "1")
        .with("Groups", "(?i:)".repeat(3000))
        .with("Accents", "éàü".repeat(100))
        .with("Words", words("w"))
        .with("OtherWords", words("v"))
        .with("Alike", format!("{},{}", alike.join(","), "a".repeat(400) + "c"))
        .with("Digits", "1,".repeat(6000))
        .with("Commas", "a,".repeat(1200))
        .with("Directives", "%c".repeat(1000))
        .with("Assignments", (0..1000).map(|n| format!("N{n}=v")).collect::<Vec<_>>().join(";"))
        .with("Assignments2", (0..1000).map(|n| format!("N{n}=' v'")).collect::<Vec<_>>().join(" "))
        .with("EvalText", format!("{{{}}}", numbers.join(",")) + &" ".repeat(5000))
        .with(
            "EvalAd",
            format!("[{}].a7", (0..900).map(|n| format!("a{n} = {n}")).collect::<Vec<_>>().join(";")),
        )
        .with(long_name(), 1);
    let mut put = |name: &str, text: String| {
        let expr = Expr::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        ad.insert(Name::from(name), expr);
    };
    put("Numbers", format!("{{{}}}", numbers.join(",")));
    put("Trues", vec!["true"; 4000].join(" && "));
    put("Refers", (0..200).map(|n| format!("missing{n}.part")).collect::<Vec<_>>().join(" && "));
    put("Nested", "[a = ".repeat(200) + "1" + &"]".repeat(200));
    put("Deep", "[a = ".repeat(200) + "nowhere" + &"]".repeat(200) + &".a".repeat(200));
    put("Ads", format!("{{{}}}", (0..400).map(|n| format!("[x = {n}]")).collect::<Vec<_>>().join(",")));
    let patterns = (0..300).map(|n| format!("regexp(\"(?i)(hello|world|condor)+{n}x\", \"a\")"));
    put("Patterns", patterns.collect::<Vec<_>>().join(" || "));
    put("Comparisons", vec!["C == D"; 400].join(" || "));
    for link in 0..190 {
        put(&format!("Chain{link}"), format!("Chain{} + 0", link + 1));
    }
    put("Chain190", "1".to_owned());
    ad
}
