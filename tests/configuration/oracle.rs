//! Our answers against those of condor_config_val, which `tests/oracle/config.py` recorded.
//!
//! `CONFIG_ORACLE=FILE` compares another recording.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use std::collections::BTreeMap;

use condor_config::user_map::{UserMap, preferred};
use condor_config::{Config, FileError, Host, Reader, Reading, Source};
use serde_json::Value as Json;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/config.jsonl");
const DIFFERENCES: &str = include_str!("../oracle/config-differences.txt");

fn host() -> Host {
    let environment = BTreeMap::from([("ORACLE".to_owned(), "from the environment".to_owned())]);
    let predefined = vec![("ARCH".to_owned(), "X86_64".to_owned())];
    Host { environment: Some(environment), seed: Some(1), predefined, ..Host::none() }
}

fn read(text: &str, subsystem: Option<&str>, local_name: Option<&str>) -> Reading {
    let files = |_: &str| Err(FileError::Missing);
    Reader::new(host())
        .subsystem(subsystem.unwrap_or("TOOL"))
        .local_name(local_name.map(str::to_owned))
        .files(&files)
        .first_error_only()
        .read(&[Source::new("case", text)])
}

/// An answer as JSON: the value, null if the name is not defined, false if there is no answer.
fn value(config: &Config, name: &str) -> Json {
    match config.value(name) {
        Ok(Some(value)) => Json::String(value),
        Ok(None) => Json::Null,
        Err(_) => Json::Bool(false),
    }
}

#[derive(Default)]
struct Tally {
    count: usize,
    excused: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, case: &str, what: &str, ours: &Json, theirs: &Json) {
        self.count += 1;
        if ours == theirs {
            return;
        }
        let known = DIFFERENCES.lines().any(|line| line == format!("{what} = {theirs}"));
        if known {
            self.excused += 1;
            return;
        }
        self.wrong.push(format!("{what}\n    ours   {ours}\n    theirs {theirs}\n{case}"));
    }
}

#[test]
fn recorded_answers_of_condor_config_val() {
    let file = std::env::var("CONFIG_ORACLE").unwrap_or_else(|_| RECORDED.to_owned());
    let recorded = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut tally = Tally::default();
    let (mut case, mut config) = (String::new(), None);
    for line in recorded.lines() {
        let line: Vec<Json> = serde_json::from_str(line).unwrap();
        let field = |place: usize| line.get(place).and_then(Json::as_str);
        let name = field(0).unwrap();
        if line.len() == 6 {
            let text = field(1).unwrap();
            case = format!("--- {:?} {:?}\n{text}\n---", field(2), field(3));
            let reading = read(text, field(2), field(3));
            let errors: Vec<String> = reading.errors().map(ToString::to_string).collect();
            let ours = Json::from(u8::from(!errors.is_empty()));
            let theirs = line.get(4).unwrap();
            let what = format!("reading ({errors:?}; {})", field(5).unwrap());
            tally.compare(&case, &what, &ours, theirs);
            config = (ours == *theirs).then_some(reading.config);
            continue;
        }
        let Some(config) = &config else { continue };
        // An empty value counts as not defined: the recording does not tell whether HTCondor knows the name.
        let raw = config.raw(name).filter(|raw| !raw.is_empty());
        let raw = raw.map_or(Json::Null, |raw| Json::from(&*raw));
        let theirs = line.get(1).filter(|theirs| **theirs != "").unwrap_or(&Json::Null);
        tally.compare(&case, &format!("{name} as written"), &raw, theirs);
        tally.compare(&case, name, &value(config, name), line.get(2).unwrap());
    }
    let Tally { count, excused, wrong } = tally;
    assert!(count >= 1000, "only {count} answers in {file}");
    assert!(excused * 500 < count, "{excused} of {count} excused");
    let show = std::env::var("CONFIG_ORACLE_SHOW").ok().and_then(|count| count.parse().ok()).unwrap_or(15);
    let shown: Vec<&str> = wrong.iter().take(show).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {count} differ ({excused} excused)\n{}", wrong.len(), shown.join("\n"));
}

/// Our maps of users against HTCondor's `userMap()`, which `hack/oracle/user_maps.py` recorded.
#[test]
fn maps_of_users_map_whom_htcondors_do() {
    let recorded: Json = serde_json::from_str(include_str!("../oracle/user_maps.json")).unwrap();
    let mut differences = Vec::new();
    let mut compared = 0;
    for case in recorded.as_array().unwrap() {
        let text = case["map"].as_str().unwrap();
        let (map, _) = UserMap::read(text, case["prefix"] == true);
        for (user, told) in case["users"].as_object().unwrap() {
            let result = map.of(user);
            let chosen = result.as_deref().map(|result| preferred(result, Some("cms")));
            let ours = serde_json::json!([result, chosen]);
            compared += 1;
            if ours != *told {
                differences.push(format!("{text:?} {user}: {ours}, and not {told}"));
            }
        }
    }
    assert!(compared > 1000 && differences.is_empty(), "{compared}: {differences:#?}");
}
