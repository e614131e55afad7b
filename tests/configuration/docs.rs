//! The examples of docs/reference/configuration.md mean what their comments say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use condor_config::{Host, Reader, Source};

const PAGE: &str = include_str!("../../docs/reference/configuration.md");

/// Checks a comment such as `# NAME is VALUE`, `# NAME is not defined`, `# slot 1 NAME is VALUE`, `# error: PLACE:
/// MESSAGE`. `false`: the comment has another form.
fn check(text: &str, comment: &str) -> bool {
    let reading = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::block("page", text)]);
    let config = match reading.into_config() {
        Ok(config) => config,
        Err(error) => {
            let Some((place, message)) =
                comment.strip_prefix("error: ").and_then(|rest| rest.split_once(": "))
            else {
                panic!("{error}\n{text}")
            };
            let error = error.to_string();
            assert!(error.contains(place) && error.contains(message), "{error}\n{comment}");
            return true;
        }
    };
    let Some((what, expected)) = comment.split_once(" is ") else { return false };
    let value = match what.strip_prefix("slot ").and_then(|rest| rest.split_once(' ')) {
        Some((slot, name)) => config.slot_text(slot.parse().unwrap(), name).unwrap(),
        None => config.text(what).unwrap(),
    };
    let value = value.map_or_else(|| "not defined".to_owned(), |text| text.as_str().into_owned());
    assert_eq!(value, expected, "{what}\n{text}");
    true
}

#[test]
fn examples_mean_what_they_say() {
    let (mut examples, mut checked) = (0, 0);
    for example in PAGE.split("```condor\n").skip(1) {
        let (text, _) = example.split_once("```").unwrap();
        examples += 1;
        for line in text.lines() {
            checked += usize::from(line.strip_prefix("# ").is_some_and(|comment| check(text, comment)));
        }
    }
    assert!(examples >= 8 && checked >= 15, "{examples} examples, {checked} values");
}
