//! The ads of submit files beside those of condor_submit 25.14.1, as `hack/oracle-submit.sh` recorded them.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use classad::Ad;
use serde_json::Value;
use submit::{Cluster, Options};

use crate::place::{self, Place};

/// The differences that the ads may have: the file, the attribute or `status`, and why.
const DIFFERENCES: &[(&str, &str, &str)] =
    &[("block", "Arguments", "-dry-run breaks the line where the value has a newline; ours is escaped")];

/// The recorded answers; `SUBMIT_ORACLE` names another file of them.
fn recorded() -> Value {
    let path = env::var("SUBMIT_ORACLE").map_or_else(|_| place::folder().join("recorded.json"), Into::into);
    serde_json::from_str(&fs::read_to_string(path).expect("the recorded answers")).expect("JSON")
}

fn map<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> BTreeMap<String, T> {
    let object = value.as_object().expect("an object");
    object.iter().filter_map(|(key, value)| Some((key.clone(), read(value)?))).collect()
}

/// The ads of an answer: attribute to expression.
fn ads(answer: &Value) -> Vec<BTreeMap<String, String>> {
    let ads = answer["ads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = |ad: &Value| -> BTreeMap<String, String> {
        let lines = ad.as_array().expect("lines").iter().filter_map(Value::as_str);
        lines
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    ads.iter().map(lines).collect()
}

fn attributes(ad: &Ad) -> BTreeMap<String, String> {
    ad.iter().map(|(name, expr)| (name.to_string(), expr.to_old())).collect()
}

/// The ads as -dry-run prints them: the first proc's with the cluster's.
fn printed(cluster: &Cluster) -> Vec<BTreeMap<String, String>> {
    let mut ads: Vec<_> = cluster.procs.iter().map(|proc| attributes(&proc.ad)).collect();
    if let Some(first) = ads.first_mut() {
        let mut whole = attributes(&cluster.ad);
        whole.append(first);
        *first = whole;
    }
    ads
}

/// The place that the answers were recorded in. The version and the time are those of the ads.
fn recorded_place(record: &Value, ads: &[BTreeMap<String, String>]) -> Place {
    let of = |name: &str| {
        let value = ads.first().and_then(|ad| ad.get(name)).cloned().unwrap_or_default();
        value.trim_matches('"').to_owned()
    };
    Place {
        directory: record["directory"].as_str().expect("a directory").to_owned(),
        environment: map(&record["environment"], |value| value.as_str().map(str::to_owned)),
        sizes: map(&record["sizes"], Value::as_u64),
        version: (of("SubmitVersion"), of("CondorPlatform")),
        now: of("QDate").parse().unwrap_or(0),
        cluster: 1,
    }
}

/// How the ads of a file differ from the recorded ones: attributes, and `status` if one of the two refused the file.
fn differences(record: &Value, name: &str, text: &str) -> BTreeMap<String, String> {
    let answer = &record["answers"][name];
    assert!(answer.is_object(), "{name} is not recorded: run hack/oracle-submit.sh");
    let theirs = ads(answer);
    let submission = recorded_place(record, &theirs).submit(name, text, &Options::default());
    let mut found = BTreeMap::new();
    let refused = (answer["status"] != 0, submission.errors().next().is_some());
    if refused.0 != refused.1 {
        let said = submission.errors().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        found.insert("status".to_owned(), format!("condor_submit: {}; ours: {said}", answer["complaints"]));
        return found;
    }
    let ours = submission.cluster.as_ref().map(printed).unwrap_or_default();
    if ours.len() != theirs.len() {
        found.insert("procs".to_owned(), format!("condor_submit: {}; ours: {}", theirs.len(), ours.len()));
    }
    for (proc, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for name in names {
            if ours.get(name) != theirs.get(name) {
                let text =
                    format!("proc {proc}: condor_submit: {:?}; ours: {:?}", theirs.get(name), ours.get(name));
                found.entry(name.clone()).or_insert(text);
            }
        }
    }
    found
}

#[test]
fn ads_are_those_of_condor_submit() {
    let record = recorded();
    let files = place::files();
    assert!(files.len() >= 60, "{} submit files", files.len());
    let mut wrong = Vec::new();
    let mut known: BTreeSet<(String, String)> = DIFFERENCES
        .iter()
        .map(|(file, attribute, _)| ((*file).to_owned(), (*attribute).to_owned()))
        .collect();
    for (name, _, text) in &files {
        for (attribute, difference) in differences(&record, name, text) {
            if !known.remove(&(name.clone(), attribute.clone())) {
                wrong.push(format!("{name}: {attribute}: {difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(known.is_empty(), "differences that are none any more: {known:?}");
}
