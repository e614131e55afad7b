//! Remarks about attributes that only an agent on the node reports.

use std::collections::BTreeSet;

use super::remarks::{Remark, Severity};
use classad::{Expr, Name};
use condor_config::Config;

/// Attributes that only an agent on the node reports.
const SENSED: &[&str] =
    &["KeyboardIdle", "ConsoleIdle", "LoadAvg", "CondorLoadAvg", "TotalLoadAvg", "TotalCondorLoadAvg"];

/// Attributes of jobs, and of the slots that the jobs run in, that only an agent on the node reports.
const USAGE: &[&str] = &["CpusUsage", "DiskUsage", "ImageSize", "MemoryUsage", "ResidentSetSize"];

/// A remark if START reads an attribute that only agents report. On a node without an agent the attribute is undefined, and most
/// such START expressions are then never true.
pub(super) fn of_unsensed(
    config: &Config,
    knob: &str,
    start: &Expr,
    is_published: impl Fn(&str) -> bool,
) -> Option<Remark> {
    let position = config.position(config.definition(knob)?);
    let unknown = unreported(start, is_published, |name| config.expr(name).ok().flatten());
    (!unknown.is_empty()).then(|| {
        let message = format!("START {}", of_start(&unknown));
        Remark::new(Severity::Warning, "AttributeNotReported", &position, message).about("START")
    })
}

/// Says which attributes a field's START reads that only agents report, as the rest of a sentence that begins with the field. `published`
/// are the attributes that the policy publishes itself.
pub fn start_not_reported(start: &Expr, published: &[(String, Expr)]) -> Option<String> {
    let look =
        |name: &str| published.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, expr)| expr);
    let unknown = unreported(start, |name| look(name).is_some(), |name| look(name).cloned());
    (!unknown.is_empty()).then(|| of_start(&unknown))
}

fn of_start(unknown: &BTreeSet<String>) -> String {
    format!(
        "looks at {}, which only an agent reports: on a node without an agent that attribute is undefined, and a slot whose START is not \
         true takes no job; run agents, take the attribute out of START, or publish an attribute of this name by STARTD_ATTRS",
        listed(unknown)
    )
}

/// The knobs that do nothing on a node without an agent if they read an attribute that only agents report.
const POLICIES: [&str; 8] =
    ["IS_OWNER", "WANT_SUSPEND", "SUSPEND", "CONTINUE", "PREEMPT", "WANT_VACATE", "KILL", "WANT_HOLD"];

/// The names of a policy's knob: the plain one, and those for single universes.
pub(super) fn forms(policy: &'static str) -> impl Iterator<Item = String> {
    ["", "_VANILLA", "_VM"].into_iter().map(move |universe| format!("{policy}{universe}"))
}

/// A remark about knobs of one type of slots other than START that read attributes which only agents report. `name_of` says how the
/// text calls a knob; none if the text does not set it.
pub(super) fn of_unsensed_policies(
    config: &Config,
    name_of: impl Fn(&str) -> Option<String>,
    is_published: impl Fn(&str) -> bool,
) -> Option<Remark> {
    let (mut attributes, mut knobs, mut position) = (BTreeSet::new(), Vec::new(), None);
    for name in POLICIES.into_iter().flat_map(forms).filter_map(|form| name_of(&form)) {
        let Some(definition) = config.definition(&name) else { continue };
        let Ok(Some(expr)) = config.expr(&name) else { continue };
        let unknown = unreported(&expr, &is_published, |name| config.expr(name).ok().flatten());
        if !unknown.is_empty() {
            position = position.or_else(|| Some(config.position(definition)));
            attributes.extend(unknown);
            knobs.push(name);
        }
    }
    let position = position?;
    let look = if knobs.len() == 1 { "looks" } else { "look" };
    let message = format!(
        "{} {look} at {}, which only an agent reports: on a node without an agent, a clause about that attribute is undefined, which does \
         not count as true; run agents, or publish an attribute of this name by STARTD_ATTRS",
        knobs.join(", "),
        listed(&attributes)
    );
    Some(Remark::new(Severity::Warning, "AttributeNotReported", &position, message).about(knobs.first()?))
}

/// The attributes that an expression reads, that only agents report, and that the configuration does not publish itself. Attributes
/// that the configuration publishes are followed: the CpusUsage of HTCondor's template reads TotalLoadAvg.
fn unreported(
    expr: &Expr,
    is_published: impl Fn(&str) -> bool,
    look: impl Fn(&str) -> Option<Expr>,
) -> BTreeSet<String> {
    let is_of = |known: &[&str], name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let (mut unknown, mut followed, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![expr.clone()]);
    while let Some(expr) = open.pop() {
        let references = expr.references();
        let own = references.my.iter().chain(&references.bare).map(Name::as_str);
        let of_job = references.target.iter().map(Name::as_str).filter(|name| is_of(USAGE, name));
        for name in own.chain(of_job) {
            if !is_published(name) {
                let is_sensed = is_of(SENSED, name) || is_of(USAGE, name);
                unknown.extend(is_sensed.then(|| name.to_owned()));
            } else if followed.insert(name.to_ascii_lowercase()) {
                open.extend(look(name));
            }
        }
    }
    unknown
}

fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
