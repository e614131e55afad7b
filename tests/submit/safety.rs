//! No text panics, and the same text gives the same answer.

use proptest::prelude::*;
use submit::Options;
use submit::manifest::{self, Settings};

use crate::manifests;
use crate::place;

/// Makes everything of a text, twice.
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
