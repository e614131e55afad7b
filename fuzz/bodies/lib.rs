//! The fuzz targets' work on an input: a module for each target, and checks that targets share. Panics are findings.

pub mod classad_eval;
pub mod classad_grammar;
pub mod classad_lexer;
pub mod classad_parser;
pub mod config_expand;
pub mod config_read;
pub mod grammar;
pub mod history_file;
pub mod objects;
pub mod objects_jobs;
pub mod objects_nodes;
pub mod slot_types;
pub mod submit_file;
#[cfg(test)]
mod tests;
pub mod tool_options;
pub mod trace_history;
pub mod trace_swf;
pub mod transform_rules;
pub mod user_map;
pub mod webhook_review;

use classad::{Ad, Env, Expr, Limits, explain_match, symmetric_match};

/// The work of a target on an input.
pub type Body = fn(&[u8]);

/// Every target, by its name.
pub const TARGETS: [(&str, Body); 17] = [
    ("classad_eval", classad_eval::run),
    ("classad_grammar", |bytes| _ = classad_grammar::run(bytes)),
    ("classad_lexer", classad_lexer::run),
    ("classad_parser", classad_parser::run),
    ("config_expand", config_expand::run),
    ("config_read", config_read::run),
    ("history_file", history_file::run),
    ("objects_jobs", objects_jobs::run),
    ("objects_nodes", objects_nodes::run),
    ("slot_types", slot_types::run),
    ("submit_file", submit_file::run),
    ("tool_options", tool_options::run),
    ("trace_history", trace_history::run),
    ("trace_swf", trace_swf::run),
    ("transform_rules", transform_rules::run),
    ("user_map", user_map::run),
    ("webhook_review", webhook_review::run),
];

/// The text at the beginning of the bytes, as far as they are UTF-8.
pub fn text(bytes: &[u8]) -> &str {
    let valid = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    str::from_utf8(&bytes[..valid]).unwrap_or_default()
}

/// Evaluates an expression against two ads in every combination. Checks that evaluation ends soon and does not panic, that a
/// second evaluation gives the same value, and that the printed value can be parsed.
pub fn evaluate(my: Option<&Ad>, target: Option<&Ad>, expr: &Expr) {
    // The limit is lower than by default: the instrumented code is slow, and an input that reaches the limit must end soon.
    let limits = Limits { steps: 20_000, ..Limits::default() };
    let env = Env { limits, ..Env::at(1_769_860_800) };
    for (my, target) in [(my, target), (target, my), (my, None), (None, None)] {
        let outcome = expr.evaluate(my, target, &env);
        assert_eq!(expr.evaluate(my, target, &env), outcome);
        assert!(outcome.bound.is_none() || outcome.value.is_error());
        assert!(outcome.bound.is_some() || outcome.steps <= env.limits.steps);
        let printed = outcome.value.to_string();
        drop(outcome.value.clone());
        if let Err(error) = Expr::parse(&printed) {
            // A value may be nested more deeply than the parser allows.
            assert!(error.expected().contains("levels deep"), "{error}\n{printed}");
        }
    }
    if let (Some(my), Some(target)) = (my, target) {
        assert_eq!(symmetric_match(my, target, &env), explain_match(my, target, &env).matches());
        assert_eq!(symmetric_match(my, target, &env), symmetric_match(target, my, &env));
    }
}

/// Checks a trace: jobs are sorted by submission, the first is submitted at 0, each has a CPU, and skipped entries are sorted
/// by line.
pub fn sorted(trace: &sim::trace::Trace) {
    assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
    assert!(trace.jobs.first().is_none_or(|job| job.submitted == 0));
    assert!(trace.jobs.iter().all(|job| job.cpus > 0));
    assert!(trace.skipped.is_sorted_by_key(|skipped| skipped.line));
    for skipped in &trace.skipped {
        let _ = skipped.to_string();
    }
}
