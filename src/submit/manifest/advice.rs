//! Warnings and errors about the commands of a submit file.

use classad::{Ad, Expr, Name, Value};
use condor_config::{Diagnostic, Severity};

use super::spec::{SET_BY_OPERATOR, is_of_disk_usage};
use super::written;
use crate::commands::{self, Support};
use crate::file::{Cluster, WrittenCommand};
use crate::job::is_of_runs;

/// Warnings of commands without effect, and errors of those that are refused.
pub(super) fn findings(cluster: &Cluster) -> Vec<Diagnostic> {
    let of_commands = cluster.written.iter().filter_map(|written| finding(cluster, written));
    of_commands.chain(held_for_ever(cluster)).collect()
}

/// The warning of a periodic_release that never releases the procs, because `hold` counts as a person's hold.
fn held_for_ever(cluster: &Cluster) -> Option<Diagnostic> {
    let WrittenCommand { name, position } = written(cluster, "periodic_release")?;
    let is_held = |ad: &Ad| ad.get("JobStatus").and_then(Expr::as_literal) == Some(&Value::Int(HELD));
    cluster.procs.iter().any(|proc| is_held(&proc.ad)).then(|| {
        let message = format!(
            "{name}: does not release a job that hold = true holds, because that counts as a person's hold here (HoldReasonCode 1, \
             not 15): release the job with condor_release"
        );
        Diagnostic { severity: Severity::Warning, position: position.clone(), message }
    })
}

/// The JobStatus of a held proc.
const HELD: i64 = 5;

/// Attributes that say how a job's program is started, and the commands of which the pod is made.
const PROGRAM: [(&str, &str); 11] = [
    ("Args", "arguments"),
    ("Arguments", "arguments"),
    ("Cmd", "executable"),
    ("ContainerImage", "container_image"),
    ("DockerImage", "container_image"),
    ("Env", "environment"),
    ("Environment", "environment"),
    ("JobUniverse", "container_image"),
    ("SingularityImage", "container_image"),
    ("WantContainer", "container_image"),
    ("WantDocker", "container_image"),
];

/// The attribute that a line such as `+Owner = "bob"` gives.
fn attribute(written: &WrittenCommand) -> Option<&str> {
    let (start, name) = written.name.split_at_checked(3)?;
    start.eq_ignore_ascii_case("MY.").then_some(name)
}

/// The warning of a line such as `+Owner = "bob"` that does not do what it seems to do.
fn of_attribute(cluster: &Cluster, written: &WrittenCommand) -> Option<Diagnostic> {
    let name = attribute(written)?;
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    let program = PROGRAM.iter().find(|(known, _)| is(known)).filter(|_| !is_off(cluster, name));
    let why = if is("AcctGroupUser") {
        "has no effect: the namespace of a job says who is charged".to_owned()
    } else if is("AcctGroup") {
        "has no effect: write accounting_group".to_owned()
    } else if is("AccountingGroup") {
        without_group(cluster)?
    } else if SET_BY_OPERATOR.iter().any(|known| is(known)) {
        "has no effect: the operator sets this attribute of each job itself".to_owned()
    } else if let Some((_, command)) = program {
        format!("is only shown in the job's ad, and changes nothing in its pod: write {command}")
    } else {
        return None;
    };
    let message = format!("+{name} {why}");
    Some(Diagnostic { severity: Severity::Warning, position: written.position.clone(), message })
}

/// The message about an AccountingGroup that names no group.
fn without_group(cluster: &Cluster) -> Option<String> {
    let expr = cluster.ad.get("AccountingGroup")?;
    let group = expr.as_literal().and_then(Value::as_str);
    if group.is_some_and(|group| group.contains('.')) {
        return None;
    }
    let named = group.filter(|group| !group.is_empty()).unwrap_or("GROUP");
    Some(format!(
        "names no group, because {} is no text GROUP.USER: nobody but the namespace is charged; write accounting_group = {named}",
        expr.to_old()
    ))
}

/// The warning of a request that reads what is not known at submission: attributes of machines, or what runs leave in the ad.
fn of_request(cluster: &Cluster, written: &WrittenCommand) -> Option<Diagnostic> {
    let name = written.name.strip_prefix("MY.").unwrap_or(&written.name);
    let attribute = name.replacen(['_'], "", 1);
    attribute.get(..7).filter(|start| start.eq_ignore_ascii_case("request"))?;
    let references = cluster.ad.get(&attribute)?.references();
    if attribute.eq_ignore_ascii_case("RequestDisk") && is_of_disk_usage(cluster, &cluster.ad) {
        let message = format!(
            "{name}: reads DiskUsage, which grows with the job in HTCondor and is next to nothing at submission, so that the HTCJob \
             requests no disk, and gets the pool's default: write an amount, as in request_disk = 2G"
        );
        return Some(Diagnostic { severity: Severity::Warning, position: written.position.clone(), message });
    }
    let own = references.bare.iter().chain(&references.my);
    let is_known =
        |name: &Name| name.is("ProcId") || cluster.ad.get(name.as_str()).is_some() && !is_of_runs(name);
    let unknown = own.filter(|name| !is_known(name));
    let mut read: Vec<&str> = unknown.chain(&references.target).map(Name::as_str).collect();
    read.dedup();
    let more =
        ["memory", "disk"].into_iter().find(|resource| attribute.to_ascii_lowercase().ends_with(resource));
    let more = more.map(|resource| format!("; retry_request_{resource} requests more after a run went over"));
    (!read.is_empty()).then(|| Diagnostic {
        severity: Severity::Warning,
        position: written.position.clone(),
        message: format!(
            "{name}: reads {}, which is known only later: the HTCJob requests what the expression is at submission, on every machine and \
             in every run{}",
            read.join(" and "),
            more.unwrap_or_default()
        ),
    })
}

fn finding(cluster: &Cluster, written: &WrittenCommand) -> Option<Diagnostic> {
    if let Some(finding) = of_attribute(cluster, written).or_else(|| of_request(cluster, written)) {
        return Some(finding);
    }
    // An attribute has no command's name: +Rank is not rank, and +Log is an attribute of the user's own.
    let (command, name) = match attribute(written) {
        Some(name) => (commands::of_attribute(name)?, format!("+{name}")),
        None => commands::find(&written.name).map(|command| (command, command.name.to_owned()))?,
    };
    let (severity, why) = match command.support {
        Support::Honored(_) => return None,
        Support::NoEffect(why) => (Severity::Warning, why),
        Support::Refused(why) => (Severity::Error, why),
    };
    if is_off(cluster, command.attribute) {
        return None;
    }
    let message = format!("{name}: {why}");
    Some(Diagnostic { severity, position: written.position.clone(), message })
}

/// Bounds of a cluster, each of which the operator keeps for an HTCJob by itself.
const BOUNDS: [&str; 4] = ["max_materialize", "max_idle", "materialize_max_idle", "next_job_start_delay"];

/// Warnings of bounds that several HTCJobs multiply.
pub(super) fn bounds(cluster: &Cluster, jobs: usize) -> Vec<Diagnostic> {
    let bounds = BOUNDS.iter().filter_map(|command| written(cluster, command));
    let mut found: Vec<Diagnostic> = bounds
        .map(|WrittenCommand { name, position }| Diagnostic {
            severity: Severity::Warning,
            position: position.clone(),
            message: format!(
                "{name}: holds for each of the {jobs} HTCJobs of this file alone; concurrency_limits bind all of them together"
            ),
        })
        .collect();
    // Two of the commands set one attribute.
    found.dedup();
    found
}

/// Whether the attribute only says that something is not wanted, in all procs.
fn is_off(cluster: &Cluster, attribute: &str) -> bool {
    let is = |known: &str| attribute.eq_ignore_ascii_case(known);
    let says_no = |value: &Value| match value {
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0 && is("JobNotification"),
        value => value.as_str() == Some("") && is("TransferOutput"),
    };
    cluster.procs.iter().all(|proc| {
        let expr = proc.ad.get(attribute).or_else(|| cluster.ad.get(attribute));
        match expr {
            Some(expr) => expr.as_literal().is_some_and(says_no),
            // An empty list leaves no attribute.
            None => is("TransferOutput"),
        }
    })
}
