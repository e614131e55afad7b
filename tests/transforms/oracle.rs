//! Our answers against those of condor_transform_ads, which `tests/oracle/transform.py` recorded.
//!
//! `TRANSFORM_ORACLE=FILE` compares another recording; `TRANSFORM_ORACLE_SHOW=N` shows so many differences.

use std::collections::BTreeMap;
use std::sync::Arc;

use classad::{Ad, Env};
use condor_config::{Diagnostic, Host, Reader, Severity, Source};
use serde_json::Value as Json;
use transform::{Applied, RulesFile, Transforms};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/transforms.jsonl");
const DIFFERENCES: &str = include_str!("../oracle/transform-differences.txt");

/// The oracle's machine.
fn host() -> Host {
    let predefined = vec![("ARCH".to_owned(), "X86_64".to_owned())];
    Host { environment: Some(BTreeMap::new()), seed: Some(1), predefined, ..Host::none() }
}

/// Rules that were read, as the oracle reads them.
enum Asked {
    Rules(Box<RulesFile>),
    Policy(Transforms),
    Refused(String),
}

impl Asked {
    fn read(line: &[Json]) -> Self {
        let (mut findings, text) = (Vec::new(), line[1].as_str().unwrap());
        let asked = if line[0] == "rules" {
            Self::Rules(Box::new(RulesFile::read(&Source::new("rules", text), host(), None, &mut findings)))
        } else {
            let reading = Reader::new(host()).subsystem("TOOL").read(&[Source::new("policy", text)]);
            findings.extend(reading.errors().cloned());
            Self::Policy(Transforms::of(Arc::new(reading.config), &mut findings))
        };
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        if errors.is_empty() { asked } else { Self::Refused(errors.join("\n")) }
    }

    /// The status and the output, and why the transform failed.
    fn answer(&self, ad: &str) -> (u64, String, String) {
        let (ad, _) = Ad::parse_long_lenient(ad);
        let printed = |applied: &[Applied]| {
            let ads: Vec<String> =
                applied.iter().map(|applied| applied.ad.to_long().trim_end().to_owned()).collect();
            ads.join("\n\n")
        };
        let told =
            |warnings: &[Diagnostic]| warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        match self {
            Self::Refused(why) => (1, String::new(), why.clone()),
            Self::Rules(rules) => match rules.apply(&ad, &Env::at(0)) {
                Ok(applied) => (0, printed(&applied), String::new()),
                Err((before, error)) => (1, printed(&before), error.to_string()),
            },
            Self::Policy(transforms) => match transforms.apply(ad, &Env::at(0)) {
                Ok(applied) => (0, printed(std::slice::from_ref(&applied)), told(&applied.warnings)),
                Err(error) => (1, String::new(), error.to_string()),
            },
        }
    }
}

/// The output without the blank that we print between a minus and a number, so that the minus is read as an operator.
fn as_read(output: &str) -> String {
    let mut out = String::new();
    for c in output.chars() {
        if c.is_ascii_digit() && out.ends_with("- ") {
            out.pop();
        }
        out.push(c);
    }
    out
}

#[test]
fn recorded_answers_of_condor_transform_ads() {
    let file = std::env::var("TRANSFORM_ORACLE").unwrap_or_else(|_| RECORDED.to_owned());
    let recorded = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (mut count, mut excused, mut wrong) = (0, 0, Vec::new());
    let (mut text, mut asked) = (String::new(), Asked::Refused(String::new()));
    for line in recorded.lines() {
        let line: Vec<Json> = serde_json::from_str(line).unwrap();
        if line[0] != "ad" {
            line[1].as_str().unwrap().clone_into(&mut text);
            asked = Asked::read(&line);
            continue;
        }
        let (ad, status, theirs) =
            (line[1].as_str().unwrap(), line[2].as_u64().unwrap(), line[3].as_str().unwrap());
        let (ours_status, ours, why) = asked.answer(ad);
        count += 1;
        let refused = matches!(asked, Asked::Refused(_));
        // HTCondor calls rules invalid, but prints an ad that does not meet the REQUIREMENTS.
        let (ours_read, theirs_read) = (as_read(&ours), as_read(theirs));
        let same = (status == 2 && refused)
            || (ours_status == status.min(1) % 2 && ours_read == theirs_read)
            || (status == 2 && ours_status == 0 && ours_read == theirs_read);
        if same {
            continue;
        }
        if DIFFERENCES.lines().any(|line| !line.starts_with('#') && !line.is_empty() && text.contains(line)) {
            excused += 1;
            continue;
        }
        wrong.push(format!("--- rules\n{text}--- ad\n{ad}--- theirs {status}\n{theirs}\n--- ours {ours_status}: {why}\n{ours}\n"));
    }
    assert!(count >= 200, "only {count} answers in {file}");
    assert!(excused * 100 < count, "{excused} of {count} excused");
    let show = std::env::var("TRANSFORM_ORACLE_SHOW").ok().and_then(|count| count.parse().ok()).unwrap_or(5);
    let shown: Vec<&str> = wrong.iter().take(show).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {count} differ ({excused} excused)\n{}", wrong.len(), shown.join("\n"));
}
