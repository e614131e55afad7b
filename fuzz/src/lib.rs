//! Checks that the fuzz targets share.

pub mod grammar;
pub mod objects;

use classad::{Ad, Env, Expr, Limits, explain_match, symmetric_match};

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
