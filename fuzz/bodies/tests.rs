//! Replays the kept corpora. A target that finds fault with one of its inputs panics.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

/// The inputs of a target's archive.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/{target}.tar.gz"));
    let directory = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(directory.path()).status();
    assert!(unpacked.unwrap().success(), "{}", archive.display());
    let entries = fs::read_dir(directory.path()).unwrap();
    entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

fn replay(target: &str) {
    let (_, body) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let inputs = corpus(target);
    assert!(!inputs.is_empty());
    inputs.iter().for_each(|input| body(input));
}

#[test]
fn every_target_has_a_body_and_a_corpus() {
    let stems = |directory: &str, end: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter_map(|name| name.strip_suffix(end).map(str::to_owned)).collect()
    };
    let bodies: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("../fuzz_targets", ".rs"), bodies);
    assert_eq!(stems("../corpus", ".tar.gz"), bodies);
}

#[test]
fn text_ends_where_utf_8_ends() {
    assert_eq!((text(b"a\xc3\xa9"), text(b"a\xff b"), text(b"\xc3")), ("a\u{e9}", "a", ""));
}

#[test]
fn classad_eval_finds_no_fault_with_its_corpus() {
    replay("classad_eval");
}

#[test]
fn classad_grammar_finds_no_fault_with_its_corpus() {
    replay("classad_grammar");
}

#[test]
fn classad_lexer_finds_no_fault_with_its_corpus() {
    replay("classad_lexer");
}

#[test]
fn classad_parser_finds_no_fault_with_its_corpus() {
    replay("classad_parser");
}

#[test]
fn config_expand_finds_no_fault_with_its_corpus() {
    replay("config_expand");
}

#[test]
fn config_read_finds_no_fault_with_its_corpus() {
    replay("config_read");
}

#[test]
fn history_file_finds_no_fault_with_its_corpus() {
    replay("history_file");
}

#[test]
fn objects_jobs_finds_no_fault_with_its_corpus() {
    replay("objects_jobs");
}

#[test]
fn objects_nodes_finds_no_fault_with_its_corpus() {
    replay("objects_nodes");
}

#[test]
fn slot_types_finds_no_fault_with_its_corpus() {
    replay("slot_types");
}

#[test]
fn submit_file_finds_no_fault_with_its_corpus() {
    replay("submit_file");
}

#[test]
fn tool_options_finds_no_fault_with_its_corpus() {
    replay("tool_options");
}

#[test]
fn trace_history_finds_no_fault_with_its_corpus() {
    replay("trace_history");
}

#[test]
fn trace_swf_finds_no_fault_with_its_corpus() {
    replay("trace_swf");
}

#[test]
fn transform_rules_finds_no_fault_with_its_corpus() {
    replay("transform_rules");
}

#[test]
fn user_map_finds_no_fault_with_its_corpus() {
    replay("user_map");
}

#[test]
fn webhook_review_finds_no_fault_with_its_corpus() {
    replay("webhook_review");
}
