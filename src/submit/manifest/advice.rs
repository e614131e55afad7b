//! Warnings and errors about the commands of a submit file.

use classad::{Expr, Value};
use condor_config::{Diagnostic, Severity};

use crate::commands::{self, Command, Support};
use crate::file::{Cluster, Written};

/// Warnings of commands without effect, and errors of those that are refused.
pub(super) fn findings(cluster: &Cluster) -> Vec<Diagnostic> {
    cluster.written.iter().filter_map(|written| finding(cluster, written)).collect()
}

fn finding(cluster: &Cluster, written: &Written) -> Option<Diagnostic> {
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
