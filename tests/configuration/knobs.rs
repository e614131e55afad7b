//! Compares the knob table with the manual's examples: every name that they use is in the table, with its section.

// A test states what it expects by panicking.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use condor_config::{Config, knobs};

/// Each name that the manual's examples use, with the sections that use it. Spellings of a name count as one; `<N>` is
/// a number.
fn seeds() -> BTreeMap<String, Vec<&'static str>> {
    let mut names: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for (name, sections) in include_str!("knobs/seeds.tsv").lines().filter_map(|line| line.split_once('\t')) {
        names.entry(name.to_ascii_uppercase().replace("<N>", "1")).or_default().extend(sections.split("; "));
    }
    names
}

#[test]
fn no_knob_that_the_seeds_name_is_missing() {
    let missing: Vec<String> = seeds().into_keys().filter(|name| knobs::find(name).is_none()).collect();
    assert!(seeds().len() > 200);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_knob_says_which_section_of_the_seeds_names_it() {
    for (name, sections) in seeds() {
        let knob = knobs::find(&name).expect(&name);
        assert!(!knob.section.is_empty(), "{}", knob.name);
        // Several examples name a pattern, whose section need not be that of all of them.
        let known =
            knob.is_pattern() || !knob.name.eq_ignore_ascii_case(&name) || sections.contains(&knob.section);
        assert!(known, "{name}: {} is not among {sections:?}", knob.section);
    }
}

#[test]
fn what_the_language_looks_up_by_slot_type_is_marked_so() {
    let unmarked: Vec<&str> = knobs::all()
        .filter(|knob| !knob.is_pattern() && Config::is_policy_knob(knob.name) && !knob.per_slot_type)
        .map(|knob| knob.name)
        .collect();
    assert!(unmarked.is_empty(), "{unmarked:?}");
}

#[test]
fn the_page_of_knobs_is_current() {
    let page = include_str!("../../docs/reference/knobs.md");
    assert!(page == knobs::markdown(), "run `make knobs` and commit the result");
}
