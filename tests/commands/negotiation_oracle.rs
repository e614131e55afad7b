//! Compares whole cycles with those of the real negotiator, which `hack/oracle/cycles.py` recorded:
//! `slotwright negotiate` matches as many jobs of each submitter for the same reasons, and the same slots if no job
//! ranks two slots alike. Also compares which dynamic slots made room for a wide job in a real pool
//! (`hack/oracle/pslots.py`).

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::Parser;
use cli::negotiate::{NegotiateArgs, run};
use serde::Deserialize;

const CASES: &str = include_str!("../oracle/cycles.json");
const PSLOTS: &str = include_str!("../oracle/pslots.json");

/// Cases that we decide differently, and why (`docs/reference/differences.md`).
const DIFFERENT: &[(&str, &str)] = &[
    ("67 floors", "HTCondor does not count towards a floor what is in use already"),
    (
        "65 both",
        "with its match list cached, HTCondor lets a submitter preempt beyond its limit; with \
         NEGOTIATOR_MATCHLIST_CACHING = False it decides this case as we do",
    ),
    (
        "within a full group, by rank",
        "with its match list cached, HTCondor refuses beyond a submitter's limit what a slot ranks higher, too; the case \
         with fresh lists is decided as we decide it",
    ),
    (
        "a slot that weighs 2.7, by default",
        "HTCondor lets a group overshoot its quota by a match; here a quota is a promise",
    ),
    (
        "within a full group, its own quota less, fresh lists, by rank",
        "HTCondor lets a group preempt beyond its quota by rank; here a quota binds preemption, too",
    ),
];

/// An ad: expressions by attribute.
type Attributes = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Case {
    name: String,
    config: String,
    slots: Ads,
    jobs: Ads,
    priorities: serde_json::Value,
    unique: bool,
    /// Whether the order of the matches counts, because it is that of the submitter's jobs.
    #[serde(default)]
    ordered: bool,
    matches: Vec<Match>,
}

#[derive(Deserialize)]
struct Ads {
    all: Attributes,
    each: Vec<Each>,
}

#[derive(Clone, Deserialize)]
struct Each {
    /// How many procs the job has; `ProcId` counts from 0.
    #[serde(default)]
    procs: Option<u32>,
    #[serde(flatten)]
    attributes: Attributes,
}

#[derive(Deserialize)]
struct Match {
    #[serde(default)]
    job: String,
    slot: String,
    #[serde(default)]
    submitter: String,
    reason: String,
    #[serde(default)]
    preempts: Vec<String>,
}

/// A case of a wide job, and a machine full of narrow ones.
#[derive(Deserialize)]
struct PslotCase {
    name: String,
    config: String,
    slots: Vec<Each>,
    jobs: Vec<Each>,
    matches: Vec<Match>,
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: NegotiateArgs,
}

fn long_form(ads: &Ads) -> String {
    let mut text = String::new();
    for each in &ads.each {
        for proc in 0..each.procs.unwrap_or(1) {
            for (name, value) in ads.all.iter().chain(&each.attributes) {
                writeln!(text, "{name} = {value}").unwrap();
            }
            if ads.all.contains_key("JobStatus") {
                writeln!(text, "ProcId = {proc}").unwrap();
            }
            text.push('\n');
        }
    }
    text
}

/// The matches of `slotwright negotiate` for a case.
fn negotiate(case: &Case) -> Vec<Match> {
    let files = [
        ("--slots", long_form(&case.slots)),
        ("--jobs", long_form(&case.jobs)),
        ("-f", case.config.clone()),
        ("--priorities", case.priorities.to_string()),
    ];
    matches_of(&case.name, &files)
}

/// The matches of `slotwright negotiate` for files, given by the options that name them.
fn matches_of(case: &str, files: &[(&str, String)]) -> Vec<Match> {
    let directory = tempfile::tempdir().unwrap();
    let mut line = vec!["negotiate".to_owned(), "--now=1795000000".to_owned()];
    for (option, text) in files.iter().chain(&[("--matches", String::new())]) {
        let path = directory.path().join(option.trim_start_matches('-'));
        fs::write(&path, text).unwrap();
        line.extend([(*option).to_owned(), path.display().to_string()]);
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&Cli::parse_from(line).args, &mut "".as_bytes(), &mut out, &mut err).unwrap();
    assert_eq!(status, 0, "{case}: {}", String::from_utf8_lossy(&err));
    let lines = fs::read_to_string(directory.path().join("matches")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The part of the matches that must be the same in both answers: how often each submitter was matched for each reason
/// and, with `with_slots`, with which slots.
fn essence(matches: &[Match], with_slots: bool) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for found in matches {
        let submitter = found.submitter.split('@').next().unwrap();
        let mut key = format!("{submitter} {}", found.reason);
        if with_slots {
            write!(key, " {}", found.slot).unwrap();
        }
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// The counts that differ, as text.
fn difference(theirs: &BTreeMap<String, u32>, ours: &BTreeMap<String, u32>) -> String {
    let mut text = String::new();
    for key in theirs.keys().chain(ours.keys().filter(|key| !theirs.contains_key(*key))) {
        let count = |side: &BTreeMap<String, u32>| side.get(key).copied().unwrap_or(0);
        if count(theirs) != count(ours) {
            write!(text, "\n    {key}: HTCondor {}, we {}", count(theirs), count(ours)).unwrap();
        }
    }
    text
}

#[test]
fn cycles_are_decided_as_the_real_negotiator_decides_them() {
    let path = std::env::var("CYCLES_ORACLE").ok();
    let text = path.map_or_else(|| CASES.to_owned(), |path| fs::read_to_string(Path::new(&path)).unwrap());
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::<String, usize>::new());
    for case in &cases {
        let ours = negotiate(case);
        let order = |matches: &[Match]| -> Vec<String> {
            matches.iter().map(|found| found.job.clone()).filter(|_| case.ordered).collect()
        };
        let orders = [&case.matches, &ours].map(|matches| order(matches));
        if orders[0] != orders[1] {
            wrong.push(format!(
                "{}: the order of HTCondor is {:?}, ours {:?}",
                case.name, orders[0], orders[1]
            ));
        }
        let [theirs, ours] = [&case.matches, &ours].map(|matches| essence(matches, case.unique));
        let known = DIFFERENT.iter().find(|(name, _)| *name == case.name);
        match (theirs == ours, known) {
            (true, Some((_, why))) => {
                wrong.push(format!("{}: the same now, but said to differ: {why}", case.name));
            }
            (false, None) => wrong.push(format!("{}:{}", case.name, difference(&theirs, &ours))),
            _ => {}
        }
        for found in &case.matches {
            *kinds.entry(found.reason.clone()).or_default() += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    // The cases must cover every reason, because cases without preemption would prove little.
    for reason in ["NoPreemption", "Rank", "Priority"] {
        assert!(kinds.get(reason).is_some_and(|count| *count >= 20), "{kinds:?}");
    }
}

/// The part of a match under `ALLOW_PSLOT_PREEMPTION` that must be the same: the reason, and which dynamic slots are
/// preempted, or only how many if the machine ranks some alike.
fn essence_of_room(case: &PslotCase, matches: &[Match]) -> Vec<String> {
    let dynamic = case.slots.iter().filter(|slot| slot.attributes.contains_key("DynamicSlot"));
    let mut ranks: Vec<&String> = dynamic.filter_map(|slot| slot.attributes.get("CurrentRank")).collect();
    let dynamic = ranks.len();
    ranks.sort();
    ranks.dedup();
    let unique = ranks.len() == dynamic;
    let each = matches.iter().map(|found| {
        let mut preempts = found.preempts.clone();
        preempts.sort();
        let who = if unique { preempts.join(" ") } else { preempts.len().to_string() };
        format!("{} {} {who}", found.slot, found.reason)
    });
    each.collect()
}

#[test]
fn as_many_dynamic_slots_make_room_as_in_a_real_pool() {
    let cases: Vec<PslotCase> = serde_json::from_str(PSLOTS).unwrap();
    let mut preempted = 0;
    for case in &cases {
        let long = |each: &[Each]| long_form(&Ads { all: Attributes::new(), each: each.to_vec() });
        let files =
            [("--slots", long(&case.slots)), ("--jobs", long(&case.jobs)), ("-f", case.config.clone())];
        let ours = matches_of(&case.name, &files);
        preempted += case.matches.iter().map(|found| found.preempts.len()).sum::<usize>();
        let [theirs, ours] = [&case.matches, &ours].map(|matches| essence_of_room(case, matches));
        if case.name == "in vain" {
            // HTCondor preempts what it added before it found that the next alone is enough (docs/reference/differences.md).
            assert_eq!(
                theirs,
                ["slot1@127-0-0-1.oracle Rank slot1_1@127-0-0-1.oracle slot1_2@127-0-0-1.oracle"]
            );
            assert_eq!(ours, ["slot1@127-0-0-1.oracle Rank slot1_2@127-0-0-1.oracle"]);
            continue;
        }
        assert_eq!(theirs, ours, "{}: HTCondor, and we", case.name);
    }
    assert!(preempted >= 20, "{preempted}: cases in which nobody goes would prove little");
}
