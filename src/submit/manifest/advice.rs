//! Warnings and errors about the commands of a submit file.

use classad::{Expr, Value};
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

fn finding(cluster: &Cluster, written: &Written) -> Option<Diagnostic> {
    if let Some(finding) = of_attribute(written) {
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
