//! Warnings and errors about the commands of a submit file.

use classad::{Expr, Name, Value};
use condor_config::{Diagnostic, Severity};

use super::spec::SET_BY_OPERATOR;
use crate::commands::{self, Command, Support};
use crate::file::{Cluster, Written};

/// Warnings of commands without effect, and errors of those that are refused.
pub(super) fn findings(cluster: &Cluster) -> Vec<Diagnostic> {
    cluster.written.iter().filter_map(|written| finding(cluster, written)).collect()
}

/// Attributes that say how a job's program is started. The pod is made of the commands, and not of these attributes.
const PROGRAM: [&str; 6] = ["Args", "Arguments", "Env", "Environment", "JobUniverse", "ContainerImage"];

/// The warning of a line such as `+Owner = "bob"` that does not do what it seems to do.
fn of_attribute(written: &Written) -> Option<Diagnostic> {
    let (start, name) = written.name.split_at_checked(3)?;
    start.eq_ignore_ascii_case("MY.").then_some(())?;
    let is_in = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let why = if is_in(&["AcctGroupUser"]) {
        "has no effect: the namespace of a job says who is charged"
    } else if is_in(&SET_BY_OPERATOR) {
        "has no effect: the operator sets this attribute of each job itself"
    } else if is_in(&PROGRAM) {
        "is only shown in the job's ad: its pod is made of the commands, such as arguments and container_image"
    } else {
        return None;
    };
    let message = format!("+{name} {why}");
    Some(Diagnostic { severity: Severity::Warning, position: written.position.clone(), message })
}

/// Counts of a proc's runs: 0 at submission, and more later.
const OF_RUNS: [&str; 6] =
    ["JobRunCount", "NumHolds", "NumJobCompletions", "NumJobMatches", "NumJobStarts", "NumShadowStarts"];

/// The warning of a request that reads what is not known at submission: attributes of machines, or what runs leave in the ad.
fn of_request(cluster: &Cluster, written: &Written) -> Option<Diagnostic> {
    let name = written.name.strip_prefix("MY.").unwrap_or(&written.name);
    let attribute = name.replacen(['_'], "", 1);
    attribute.get(..7).filter(|start| start.eq_ignore_ascii_case("request"))?;
    let references = cluster.ad.get(&attribute)?.references();
    let own = references.bare.iter().chain(&references.my);
    let is_of_runs = |name: &Name| OF_RUNS.iter().any(|known| name.is(known));
    let is_known =
        |name: &Name| name.is("ProcId") || cluster.ad.get(name.as_str()).is_some() && !is_of_runs(name);
    let unknown = own.filter(|name| !is_known(name));
    let mut read: Vec<&str> = unknown.chain(&references.target).map(Name::as_str).collect();
    read.dedup();
    (!read.is_empty()).then(|| Diagnostic {
        severity: Severity::Warning,
        position: written.position.clone(),
        message: format!(
            "{name}: reads {}, which is known only later: the HTCJob requests what the expression is at submission, on every machine and \
             in every run; retry_request_memory and retry_request_disk request more after a run went over",
            read.join(" and ")
        ),
    })
}

fn finding(cluster: &Cluster, written: &Written) -> Option<Diagnostic> {
    if let Some(finding) = of_attribute(written).or_else(|| of_request(cluster, written)) {
        return Some(finding);
    }
    let command = commands::find(&written.name)?;
    let (severity, why) = match command.support {
        Support::Honored(_) => return None,
        Support::NoEffect(why) => (Severity::Warning, why),
        Support::Refused(why) => (Severity::Error, why),
    };
    if is_off(cluster, command) {
        return None;
    }
    let message = format!("{}: {why}", command.name);
    Some(Diagnostic { severity, position: written.position.clone(), message })
}

/// Whether the command only says that something is not wanted.
fn is_off(cluster: &Cluster, command: &Command) -> bool {
    let value = cluster.ad.get(command.attribute).and_then(Expr::as_literal);
    matches!(value, Some(Value::Bool(false)))
        || (command.name == "notification" && value == Some(&Value::Int(0)))
}
