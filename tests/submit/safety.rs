//! No text panics, and the same text gives the same answer.

use condor_config::{Host, Source};
use proptest::prelude::*;
use submit::manifest::{self, Settings};
use submit::{Options, World};

use crate::manifests;
use crate::place;

/// Makes the ads and HTCJobs of a submit file twice. Both results must be the same, and each finding must have a
/// line, unless it is the only one.
fn twice(text: &str) -> Result<(), TestCaseError> {
    let once = || {
        let submission = manifests::place().submit("any", text, &Options::default());
        let settings = Settings { image: Some("image".to_owned()), ..Settings::default() };
        let contents = |path: &str| manifests::place().content(path);
        let made = submission.cluster.as_ref().map(|cluster| manifest::jobs(cluster, &settings, &contents));
        let ads: Vec<String> = submission
            .cluster
            .iter()
            .flat_map(|cluster| &cluster.procs)
            .map(|proc| proc.ad.to_long())
            .collect();
        (submission.findings, ads, made.map(|made| (made.jobs, made.files, made.findings)))
    };
    let (findings, ads, made) = once();
    for finding in &findings {
        prop_assert!(finding.position.line > 0 || findings.len() == 1, "{finding}");
    }
    prop_assert_eq!((findings, ads, made), once());
    Ok(())
}

#[test]
fn a_name_without_a_value_is_told_of_with_its_line() {
    let text = "executable = sim.sh\nargumnets =\nhelper = $(helper)\nqueue\n";
    let found = manifests::place().submit("any", text, &Options::default()).findings;
    let lines: Vec<u32> = found.iter().map(|finding| finding.position.line).collect();
    assert_eq!(lines, [2, 3], "{found:?}");
}

#[test]
fn a_colon_alone_is_told_of_with_its_line() {
    let text = "executable = sim.sh\nif true\n :\n& = 1\nendif\nqueue\n";
    let submission = manifests::place().submit("any", text, &Options::default());
    let lines: Vec<u32> = submission.findings.iter().map(|finding| finding.position.line).collect();
    assert_eq!(lines, [3, 4], "{:?}", submission.findings);
}

/// HTCondor draws for each proc; one draw would give all procs of a Monte Carlo job the same seed.
#[test]
fn each_proc_has_random_values_of_its_own() {
    let text = "executable = sim.sh\nseed = $RANDOM_INTEGER(1,1000000)\narguments = $(seed) $RANDOM_CHOICE(a,b)\nqueue 4\n";
    let world = World { host: Host { seed: Some(7), ..Host::none() }, ..World::none() };
    let drawn = || -> Vec<String> {
        let cluster = submit::submit(&Source::new("any", text), &Options::default(), &world).cluster.unwrap();
        let own = |proc: &submit::Proc| proc.ad.get("Args").or(cluster.ad.get("Args")).unwrap().to_string();
        cluster.procs.iter().map(own).collect()
    };
    let procs = drawn();
    let mut different = procs.clone();
    different.sort();
    different.dedup();
    assert_eq!((procs.len(), different.len()), (4, 4), "{procs:?}");
    assert_eq!(procs, drawn(), "the same seed gives the same values");
}

/// `condor_submit` says "Extra data found after queue statement".
#[test]
fn what_stands_behind_the_last_queue_statement_is_refused() {
    for (behind, line) in [
        ("arguments = late\n", Some(5)),
        ("# a comment\n\nrequest_cpus = 2\n", Some(7)),
        ("\n# a comment\n", None),
    ] {
        let text = format!("executable = sim.sh\nqueue a from (\n1\n)\n{behind}");
        let submission = manifests::place().submit("any", &text, &Options::default());
        let error = submission.errors().next().map(|error| error.position.line);
        assert_eq!((error, submission.cluster.is_none()), (line, line.is_some()), "{behind:?}");
    }
    let closed = "executable = sim.sh\nif true\nqueue\nendif\n";
    assert!(manifests::place().submit("any", closed, &Options::default()).cluster.is_some());
    let command = "executable = sim.sh\nqueue a from ls -1 |\n";
    let submission = manifests::place().submit("any", command, &Options::default());
    assert!(submission.errors().any(|error| error.message.contains("'ls -1' is a command")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}") {
        twice(&text)?;
    }

    #[test]
    fn submit_files_with_something_else_in_them_are_read(
        number in 0_usize..10_000,
        at in 0.0_f64..1.0,
        cut in 0_usize..40,
        added in prop_oneof!["\\PC{0,6}", r#"[\\$()"'\[\]:,; =\n@#?&|<>!+-]{0,8}"#, "(queue|if|endif|\\$\\(Process\\)|in|from|\\(|\\)){1,3}"],
    ) {
        let files = place::files();
        let text = &files[number % files.len()].2;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
        let at = (text.len() as f64 * at) as usize;
        let start = text.floor_char_boundary(at);
        let end = text.ceil_char_boundary((start + cut).min(text.len()));
        twice(&format!("{}{added}{}", &text[..start], &text[end..]))?;
    }
}
