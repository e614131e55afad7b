//! Parts that all objects with configuration text share.

use std::sync::Arc;

use kube::ResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use classad::Expr;
use model::pool::{GoverningFacts, Problem, ValidSpec};
use model::schedd::bad_expression;
use model::startd::config::{Remark, Severity};

/// A spec that was read.
pub(super) struct Read<C, S = ()> {
    /// The nodes that the spec selects.
    pub(super) selection: S,
    /// The configuration, or every problem with it.
    pub(super) config: Result<Arc<C>, Vec<Problem>>,
    /// Warnings about what does nothing, if the spec has configuration text.
    pub(super) warnings: Option<Vec<Problem>>,
}

/// The pool's facts of an object with configuration text. If the spec cannot be used, the facts include the spec that
/// the status records as accepted.
pub(super) fn facts<Spec: Serialize + DeserializeOwned, C, S>(
    object: &impl ResourceExt,
    spec: &Spec,
    accepted: Option<&str>,
    read: impl Fn(&Spec) -> Read<C, S>,
) -> GoverningFacts<C, S> {
    let Read { selection, config, warnings } = read(spec);
    let recorded = || {
        let record = accepted?;
        let Read { selection, config, .. } = read(&serde_json::from_str(record).ok()?);
        Some(Box::new(ValidSpec { config: config.ok()?, text: record.into(), selection }))
    };
    GoverningFacts {
        name: object.name_any().into(),
        uid: object.uid().unwrap_or_default().into(),
        generation: object.meta().generation.unwrap_or(1),
        selection,
        recorded: if config.is_err() { recorded() } else { None },
        config,
        warnings,
        spec: serde_json::to_string(spec).unwrap_or_default().into(),
    }
}

/// The remarks about a text: its errors, and the rest, which are warnings.
pub(super) fn problems_of(remarks: &[Remark]) -> (Vec<Problem>, Vec<Problem>) {
    let problem = |remark: &Remark| Problem {
        reason: remark.reason,
        field: "spec.config".to_owned(),
        message: remark.to_string(),
    };
    let (errors, warnings): (Vec<&Remark>, Vec<&Remark>) =
        remarks.iter().partition(|remark| remark.severity == Severity::Error);
    (errors.into_iter().map(problem).collect(), warnings.into_iter().map(problem).collect())
}

/// Reads an expression, if one is given; if the expression cannot be read, that is one more problem.
pub(super) fn expression(field: &str, text: Option<&String>, problems: &mut Vec<Problem>) -> Option<Expr> {
    match Expr::parse(text?) {
        Ok(expr) => Some(expr),
        Err(error) => {
            problems.push(bad_expression(field, &error));
            None
        }
    }
}
