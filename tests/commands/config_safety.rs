//! Checks that hostile configuration text neither panics nor takes long to read.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;

use condor_config::{Config, ExpandFault, Host, Reader, Source};
use proptest::prelude::*;

fn read(text: &str) -> Config {
    let host = Host { seed: Some(1), environment: Some(BTreeMap::new()), ..Host::none() };
    Reader::new(host).subsystem("STARTD").read(&[Source::new("t", text)]).config
}

#[track_caller]
fn fault(text: &str, name: &str) -> ExpandFault {
    read(text).value(name).unwrap_err().fault
}

#[test]
fn exponential_texts_are_refused() {
    let mut text = "A0 = xxxxxxxxxx\n".to_owned();
    for level in 1..64 {
        writeln!(text, "A{level} = $(A{0})$(A{0})", level - 1).unwrap();
    }
    assert!(matches!(fault(&text, "A63"), ExpandFault::TooMuchWork | ExpandFault::TooLong(_)));
    let long = text.replace("xxxxxxxxxx", &"x".repeat(10_000));
    assert!(matches!(fault(&long, "A63"), ExpandFault::TooLong(_)));
    let empty = text.replace("xxxxxxxxxx", "");
    assert!(matches!(fault(&empty, "A63"), ExpandFault::TooMuchWork | ExpandFault::TooLong(_)));
}

#[test]
fn a_value_that_doubles_itself_is_refused() {
    let text = "A = xxxxxxxxxx\n".to_owned() + &"A = $(A)$(A)\n".repeat(60);
    let reading = Reader::new(Host::none()).read(&[Source::new("t", text)]);
    let first = reading.errors().next().unwrap();
    assert!(first.message.contains("expands to more than"), "{first}");
}

#[test]
fn long_chains_are_refused_and_long_enough_ones_are_not() {
    let chain = |length: usize| {
        let mut text = "A0 = end\n".to_owned();
        for level in 1..=length {
            writeln!(text, "A{level} = $(A{})", level - 1).unwrap();
        }
        text
    };
    assert_eq!(read(&chain(400)).value("A400").unwrap().as_deref(), Some("end"));
    assert!(matches!(fault(&chain(5000), "A5000"), ExpandFault::TooDeep(_)));
    let mut text = "A0 = 1\n".to_owned();
    for level in 1..=100 {
        writeln!(text, "A{level} = $INT(A{})", level - 1).unwrap();
    }
    assert!(matches!(fault(&text, "A100"), ExpandFault::TooDeep(_)));
}

#[test]
fn texts_that_are_searched_over_and_over_are_refused() {
    for piece in ["$INT(", "$(X:("] {
        let text = format!("A = {}\n", piece.repeat(100_000));
        let reading = Reader::new(Host::none()).read(&[Source::new("t", text)]);
        let first = reading.errors().next().unwrap();
        assert!(first.message.contains("too many steps"), "{first}");
        assert!(reading.config.definition("A").is_none());
    }
}

#[test]
fn arguments_of_templates_are_bounded() {
    let text = format!("use POLICY : Limit_Job_Runtimes({})\n", "$(1)".repeat(1000));
    let reading = Reader::new(Host::none()).read(&[Source::new("t", text)]);
    assert_eq!(reading.errors().count(), 1);
    let text = format!("use POLICY : Limit_Job_Runtimes({}\n", "(".repeat(100_000));
    assert_eq!(Reader::new(Host::none()).read(&[Source::new("t", text)]).errors().count(), 1);
}

/// A text of ten thousand values.
fn many_long_values() -> String {
    let mut text = format!("X = {}\n", "x".repeat(100_000));
    for number in 0..10_000 {
        writeln!(text, "A{number} = $(X)").unwrap();
    }
    text
}

#[test]
fn values_from_anyone_are_bounded_in_all_and_not_only_each() {
    let text = many_long_values();
    let reader = || Reader::new(Host::none()).subsystem("STARTD");
    let sources = [Source::new("t", text)];
    let told =
        |config: &Config| (0..200).filter(|number| config.value(&format!("A{number}")).is_ok()).count();
    assert_eq!(told(&reader().read(&sources).config), 200);
    let guarded = reader().guarded().read(&sources).config;
    let first = told(&guarded);
    assert!((10..100).contains(&first), "{first}");
    assert!(guarded.is_spent());
    assert_eq!(guarded.value("A0").unwrap_err().fault, ExpandFault::TooMuchWork);
}

#[test]
fn what_a_policy_says_in_too_many_steps_is_one_error() {
    let remarks = model::startd::config::of_file(&many_long_values());
    let of_work = remarks.iter().filter(|remark| remark.message.contains("too many steps")).count();
    assert!((1..=2).contains(&of_work), "{of_work}");
}

#[test]
fn many_errors_are_not_told_without_end() {
    let reading = Reader::new(Host::none()).read(&[Source::new("t", "word\n".repeat(100_000))]);
    assert_eq!(reading.errors().count(), 1000);
}

#[test]
fn included_files_are_bounded() {
    let files = |_: &str| Ok("include : again\ninclude : again\n".to_owned());
    let reading = Reader::new(Host::none()).files(&files).read(&[Source::new("t", "include : again\n")]);
    assert!(reading.errors().count() <= 1000);
}

/// Pieces of texts that get far into the reader.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "A",
        "B",
        "STARTD.",
        "LN.",
        "=",
        " = ",
        " += ",
        " @=x",
        "@x",
        ":",
        "\n",
        "\n",
        "\n",
        "\\\n",
        " ",
        "#",
        "$",
        "(",
        ")",
        "$(",
        "$(A)",
        "$(B:",
        "$(DOLLAR)",
        "$INT(",
        "$REAL(A,%",
        "$STRING(",
        "$EVAL(",
        "$SUBSTR(A,",
        "$CHOICE(1,",
        "$Fpnxdqab(",
        "$ENV(",
        "$RANDOM_CHOICE(",
        "$RANDOM_INTEGER(",
        ",",
        "1",
        "-9",
        "99999999999",
        "%d",
        "%99.99f",
        "\"",
        "'",
        "/",
        ".",
        "é",
        "if ",
        "elif ",
        "else",
        "endif",
        "defined ",
        "use ",
        "version >= 8.1",
        "POLICY",
        " : ",
        "Desktop",
        "Want_Hold_If(",
        "$(1)",
        "include ",
        "ifexist",
        "command",
        "warning",
        "error",
        "[",
        "]",
        "{",
        "}",
        "true",
        "\t",
        "\r",
        "\u{b}",
        "\u{0}",
        "SLOT1_",
        "SLOT_TYPE_1_",
        "NUM_SLOTS_TYPE_1",
        "#opt:oldcomment\n",
        "#opt:strict\n",
    ])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(text in text()) {
        let config = read(&text);
        for definition in config.definitions() {
            let _ = config.value(&definition.name);
            let _ = config.expr(&definition.name);
            let _ = config.integer(&definition.name);
            let _ = config.real(&definition.name);
            let _ = config.slot_text(1, &definition.name);
        }
        let _ = config.expand(&text);
    }

    #[test]
    fn errors_point_into_the_text(text in text()) {
        let reading = Reader::new(Host::none()).read(&[Source::new("t", &*text)]);
        let lines = u32::try_from(text.split('\n').count()).unwrap();
        for finding in &reading.diagnostics {
            prop_assert_eq!(&*finding.position.file, "t");
            prop_assert!(finding.position.line >= 1 && finding.position.line <= lines, "{}", finding);
        }
    }

    #[test]
    fn a_value_is_read_as_it_was_written(value in "[ -~é]{0,40}") {
        let value = value.trim().trim_end_matches('\\').trim();
        prop_assume!(!value.contains("$(") && !value.contains("$F"));
        let config = read(&format!("Name = {value}\n"));
        prop_assert_eq!(config.raw("NAME").unwrap(), value);
    }

    #[test]
    fn what_was_dumped_reads_the_same(text in text()) {
        let config = read(&text);
        let plain = |definition: &&condor_config::Definition| {
            let raw = definition.raw();
            // A name such as `if`, followed by a blank, would be read as a conditional.
            let word = ["if", "elif", "else", "endif"].iter().any(|word| word.eq_ignore_ascii_case(&definition.name));
            !word
                && raw == raw.trim() && !raw.contains(['\n', '\\', '\r']) && !raw.contains(&format!("$({}", definition.name))
        };
        let lines: Vec<String> =
            config.definitions().filter(plain).map(|one| format!("{} = {}\n", one.name, one.raw())).collect();
        let dump = lines.concat();
        let again = read(&dump);
        for definition in config.definitions().filter(plain) {
            let name = &definition.name;
            // A value that refers to itself in another case is expanded once more.
            if definition.raw().contains('$') {
                continue;
            }
            prop_assert_eq!(again.definition(name).unwrap().raw(), definition.raw());
        }
    }

    #[test]
    fn seeds_decide_chance(seed in any::<u64>(), low in -1000i64..1000, size in 0i64..1000) {
        let host = Host { seed: Some(seed), ..Host::none() };
        let text = format!("A = $RANDOM_INTEGER({low}, {})\n", low + size);
        let config = Reader::new(host).read(&[Source::new("t", text)]).config;
        let number = config.integer("A").unwrap().unwrap();
        prop_assert!(low <= number && number <= low + size);
        prop_assert_eq!(config.integer("A").unwrap(), Some(number));
    }
}
