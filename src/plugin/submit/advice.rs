//! The advice about HTCJobs: what the submission finds, and what `slotwright lint` and the operator would warn of later.

use std::sync::Arc;

use ::submit::Cluster as Jobs;
use ::submit::commands;
use ::submit::manifest::{self, Manifests};
use api::HTCJob;
use condor_config::{Diagnostic, Position, Severity};
use controller::kinds;
use model::pool::Problem;

use super::Request;

/// Warnings and errors, in the order of the file.
pub(super) fn of(request: &Request, jobs: &Jobs, manifests: &Manifests) -> Vec<Diagnostic> {
    let mut found = manifests.findings.clone();
    let read = |manifest: &serde_json::Value| serde_json::from_value::<HTCJob>(manifest.clone()).ok();
    for problem in manifests.jobs.iter().filter_map(read).flat_map(|job| kinds::job::warnings(&job)) {
        let warning = warning(request, jobs, &problem);
        let is_told = |known: &Diagnostic| {
            *known == warning || problem.reason == "AttributeNotActedOn" && known.position == warning.position
        };
        // The submission has doubled the dollars of a text that looks like a macro.
        if problem.reason != "SubmitMacro" && !found.iter().any(is_told) {
            found.push(warning);
        }
    }
    found.sort_by(|one, other| one.position.cmp(&other.position));
    found
}

/// The same for a dry run that prints ads. They are printed all the same, so that each error is a warning.
pub(super) fn of_dry_run(request: &Request, jobs: &Jobs, manifests: &Manifests) -> Vec<Diagnostic> {
    let warning = |finding: Diagnostic| match finding.severity {
        Severity::Error => Diagnostic {
            severity: Severity::Warning,
            message: format!("{} (a submission would be refused)", finding.message),
            ..finding
        },
        Severity::Warning => finding,
    };
    of(request, jobs, manifests).into_iter().map(warning).collect()
}

/// A warning about a field of an HTCJob, at the place of the command that gives the field, or in the template.
fn warning(request: &Request, jobs: &Jobs, problem: &Problem) -> Diagnostic {
    let Problem { field, message, .. } = problem;
    let message = &in_commands(message);
    let field = field.strip_prefix("spec.").unwrap_or(field);
    if let (Some(inside), Some(template)) = (field.strip_prefix("template."), &request.template) {
        let position = Position { file: Arc::from(template.as_str()), line: 0, column: 0 };
        let message = format!("{inside}: {message}");
        return Diagnostic { severity: Severity::Warning, position, message };
    }
    let attribute = field.strip_prefix("attributes").map(|rest| rest.trim_matches(['.', '[', ']']));
    let command = match (field, attribute) {
        (_, Some(name)) => {
            let command = commands::of_attribute(name).map(|command| command.name.to_owned());
            command.unwrap_or_else(|| format!("MY.{name}"))
        }
        ("concurrencyLimits", _) => "concurrency_limits".to_owned(),
        ("concurrencyLimitsExpr", _) => "concurrency_limits_expr".to_owned(),
        _ => field.to_owned(),
    };
    manifest::warning(jobs, &command, message)
}

/// Fields of an HTCJob, and the commands that give them. A name goes before another one that it begins with.
const FIELDS: [(&str, &str); 18] = [
    ("spec.accountingGroup", "accounting_group"),
    ("spec.concurrencyLimitsExpr", "concurrency_limits_expr"),
    ("spec.concurrencyLimits", "concurrency_limits"),
    ("spec.hold", "hold"),
    ("spec.priority", "priority"),
    ("spec.rank", "rank"),
    ("spec.requests.cpus", "request_cpus"),
    ("spec.requests.disk", "request_disk"),
    ("spec.requests.gpusMaximumCapability", "gpus_maximum_capability"),
    ("spec.requests.gpusMinimumCapability", "gpus_minimum_capability"),
    ("spec.requests.gpusMinimumMemory", "gpus_minimum_memory"),
    ("spec.requests.gpusMinimumRuntime", "gpus_minimum_runtime"),
    ("spec.requests.gpus", "request_gpus"),
    ("spec.requests.memory", "request_memory"),
    ("spec.requests.requireGpus", "require_gpus"),
    ("spec.requests.resources", "request_<resource>"),
    ("spec.requirements", "requirements"),
    ("spec.requests", "the commands that begin with request_"),
];

/// A message about an HTCJob in the words of a submit file.
fn in_commands(message: &str) -> String {
    FIELDS.iter().fold(message.to_owned(), |message, (field, command)| message.replace(field, command))
}

pub(super) fn is_unused(finding: &Diagnostic) -> bool {
    finding.message.contains("nothing refers to it") || finding.message.contains("is not used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_of_a_submit_file_is_answered_in_commands() {
        for (message, expected) in [
            (
                "no slot has CUDADriverVersion unless an admin adds it; use spec.requests.gpusMinimumRuntime",
                "no slot has CUDADriverVersion unless an admin adds it; use gpus_minimum_runtime",
            ),
            (
                "say in spec.rank which nodes; or in spec.requests",
                "say in rank which nodes; or in the commands that begin with request_",
            ),
            ("use spec.concurrencyLimitsExpr", "use concurrency_limits_expr"),
        ] {
            assert_eq!(in_commands(message), expected);
        }
        for (at, (field, _)) in FIELDS.iter().enumerate() {
            assert!(
                FIELDS.iter().skip(at + 1).all(|(later, _)| !later.starts_with(field)),
                "{field} hides a later field"
            );
        }
    }
}
