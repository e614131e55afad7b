//! Holds the knob table to the seeds: no name of theirs may be missing, and sections are theirs.

use std::collections::BTreeMap;

use slotwright::config::knobs;

/// Each name that the seeds use, and the sections that do.
fn seeds() -> BTreeMap<&'static str, Vec<&'static str>> {
    let lines = include_str!("knobs/seeds.tsv").lines();
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, sections)| (name, sections.split("; ").collect()))
        .collect()
}

#[test]
fn no_knob_that_the_seeds_name_is_missing() {
    let missing: Vec<&str> = seeds().into_keys().filter(|name| knobs::find(name).is_none()).collect();
    assert!(seeds().len() > 200);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_name_of_the_seeds_says_which_section_it_is_from() {
    for (name, sections) in seeds() {
        let knob = knobs::find(name).expect(name);
        assert!(!knob.section.is_empty(), "{}", knob.name);
        // A pattern is named by one of its examples: its section need not be that of all of them.
        let known =
            sections.contains(&knob.section) || knob.is_pattern() || !knob.name.eq_ignore_ascii_case(name);
        assert!(known, "{name}: {} is not among {sections:?}", knob.section);
    }
}
