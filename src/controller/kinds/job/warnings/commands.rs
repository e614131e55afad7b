//! Submit commands among the attributes of a job: a command has its effect in a submit file alone.

use submit::commands::{COMMANDS, Support};

/// Where files are that a program reads.
const FILES: &str = "the files by a ConfigMap or a volume of the template";

/// Commands that no attribute stands for in an HTCJob, each with what does. Those without a `_` are not likely anybody's own
/// attributes.
const INSTEAD: [(&str, &str); 44] = [
    ("accounting_group", "spec.accountingGroup"),
    ("arguments", "args of the container"),
    ("arguments2", "args of the container"),
    ("concurrency_limits", "spec.concurrencyLimits"),
    ("concurrency_limits_expr", "spec.concurrencyLimitsExpr"),
    ("container_image", "image of the container"),
    ("container_target_dir", "workingDir of the container"),
    ("cron_prep_time", "the attribute DeferralPrepTime"),
    ("cron_window", "the attribute DeferralWindow"),
    ("docker_image", "image of the container"),
    ("docker_override_entrypoint", "command of the container"),
    ("docker_pull_policy", "imagePullPolicy of the container"),
    ("environment", "env of the container"),
    ("environment2", "env of the container"),
    ("executable", "command of the container"),
    ("get_env", "env of the container"),
    ("getenv", "env of the container"),
    ("gpus_maximum_capability", "spec.requests.gpusMaximumCapability"),
    ("gpus_minimum_capability", "spec.requests.gpusMinimumCapability"),
    ("gpus_minimum_memory", "spec.requests.gpusMinimumMemory"),
    ("gpus_minimum_runtime", "spec.requests.gpusMinimumRuntime"),
    ("hold", "spec.hold"),
    ("initial_dir", "workingDir of the container"),
    ("initialdir", "workingDir of the container"),
    ("job_iwd", "workingDir of the container"),
    ("max_retries", "the attributes JobMaxRetries and OnExitRemove"),
    ("nice_user", "spec.accountingGroup: nice-user"),
    ("preferences", "spec.rank"),
    ("prio", "spec.priority"),
    ("priority", "spec.priority"),
    ("remote_initialdir", "workingDir of the container"),
    ("require_gpus", "spec.requests.requireGpus"),
    ("retry_request_disk", "the attribute TransformOnEvict"),
    ("retry_request_memory", "the attribute TransformOnEvict"),
    ("retry_request_memory_increase", "the attribute TransformOnEvict"),
    ("retry_request_memory_max", "the attribute TransformOnEvict"),
    ("retry_until", "the attribute OnExitRemove"),
    ("should_transfer_files", FILES),
    ("success_exit_code", "the attributes JobSuccessExitCode and OnExitRemove"),
    ("transfer_executable", FILES),
    ("transfer_input", FILES),
    ("transfer_input_files", FILES),
    ("transferinputfiles", FILES),
    ("universe", "no attribute: each job is of the vanilla universe"),
];

/// Returns why nothing acts on an attribute of this name if the name is a submit command's, and what to give instead. None for a name
/// that is the command's attribute as well, and for plain words, such as `log` and `output`, that may well be the author's own.
pub(super) fn why(name: &str) -> Option<String> {
    let command = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))?;
    let instead = INSTEAD.iter().find(|(known, _)| *known == command.name).map(|(_, instead)| *instead);
    let is_likely = name.contains('_') || instead.is_some();
    if !is_likely || command.attribute.eq_ignore_ascii_case(name) {
        return None;
    }
    let known = command.name;
    Some(match (command.support, instead) {
        (Support::NoEffect(why) | Support::Refused(why), _) => why.to_owned(),
        (Support::Honored(_), Some(instead)) => format!("{known} is a submit command; give {instead}"),
        (Support::Honored(_), None) if is_attribute(command.attribute) => {
            format!("{known} is a submit command; give the attribute {}", command.attribute)
        }
        (Support::Honored(_), None) => {
            format!("{known} is a submit command, which has its effect in a submit file alone; leave it out")
        }
    })
}

/// Whether a job's ad may have the attribute: the commands of how a submit file is read have names for attributes that no ad has.
fn is_attribute(attribute: &str) -> bool {
    !attribute.is_empty() && !attribute.starts_with("Submit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_in_the_table_is_one_that_has_an_effect() {
        for (name, _) in INSTEAD {
            let command = COMMANDS.iter().find(|command| command.name == name).unwrap();
            assert!(matches!(command.support, Support::Honored(_)), "{name}");
        }
    }

    #[test]
    fn a_command_is_told_with_what_to_give_instead() {
        for (name, expected) in [
            (
                "max_retries",
                Some("max_retries is a submit command; give the attributes JobMaxRetries and OnExitRemove"),
            ),
            ("Periodic_Hold", Some("periodic_hold is a submit command; give the attribute PeriodicHold")),
            ("Priority", Some("priority is a submit command; give spec.priority")),
            (
                "transfer_input_files",
                Some(
                    "transfer_input_files is a submit command; give the files by a ConfigMap or a volume of the template",
                ),
            ),
            ("kill_sig", Some("the image decides which signal ends the program")),
            (
                "skip_filechecks",
                Some(
                    "skip_filechecks is a submit command, which has its effect in a submit file alone; leave it out",
                ),
            ),
            ("PeriodicHold", None),
            ("x509userproxy", None),
            ("Output", None),
            ("my_attribute", None),
        ] {
            assert_eq!(why(name).as_deref(), expected, "{name}");
        }
    }
}
