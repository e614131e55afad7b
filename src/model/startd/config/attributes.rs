//! Remarks about the attributes that a text's expressions look at: misspelt names, attributes of the wrong ad, and attributes that no
//! slot has.

use std::collections::BTreeSet;

use super::remarks::{Remark, Severity};
use crate::attributes::absent;
use crate::mistakes;
use crate::startd::ad::is_of_slots;
use classad::{Expr, Name};
use condor_config::knobs;
use condor_config::{Config, Origin, Position};

/// The knobs that are evaluated with the slot as MY and the job as TARGET.
const POLICIES: [&str; 17] = [
    "CONTINUE",
    "IS_OWNER",
    "ISOWNER",
    "KILL",
    "MACHINEMAXVACATETIME",
    "MAXJOBRETIREMENTTIME",
    "PREEMPT",
    "RANK",
    "SLOT_WEIGHT",
    "START",
    "SUSPEND",
    "WANT_HOLD",
    "WANT_HOLD_REASON",
    "WANT_HOLD_SUBCODE",
    "WANT_SUSPEND",
    "WANT_VACATE",
    "DEFAULT_DRAINING_START_EXPR",
];

/// Whether a name is that of a policy: plain, for a type of slots, for one slot, or for a universe.
fn is_policy(knob: &str) -> bool {
    let upper = knob.to_ascii_uppercase();
    let plain = upper.strip_prefix("STARTD.").unwrap_or(&upper);
    let numbered = plain.strip_prefix("SLOT_TYPE_").or_else(|| plain.strip_prefix("SLOT"));
    let of_slot = numbered.and_then(|rest| rest.split_once('_'));
    let plain = match of_slot {
        Some((number, name)) if number.parse::<u32>().is_ok() => name,
        _ => plain,
    };
    let plain = plain.strip_suffix("_VANILLA").or_else(|| plain.strip_suffix("_VM")).unwrap_or(plain);
    POLICIES.contains(&plain)
}

/// The remarks about the attributes in a knob's expression. Names that the text defines, and those in `beside`, count as meant.
pub(super) fn of_knob(config: &Config, knob: &str, position: &Position, beside: &[&str]) -> Vec<Remark> {
    let is_expression = knobs::find(knob).is_some_and(|known| known.kind.is_expression());
    let Some(expr) = is_expression.then(|| config.expr(knob).ok()).flatten().flatten() else {
        return Vec::new();
    };
    let text = config.value(knob).ok().flatten().unwrap_or_default();
    let shown = config.list("STARTD_JOB_ATTRS").unwrap_or_default();
    let is_listed = |name: &str| {
        let is = |own: &str| own.eq_ignore_ascii_case(name);
        beside.iter().any(|own| is(own)) || shown.iter().any(|own| is(own))
    };
    let is_own = |name: &str| config.definition(name).is_some() || is_listed(name);
    // The host defines the macro ARCH, which is no attribute of the text's own.
    let is_given = |name: &str| {
        let definition = config.definition(name);
        is_listed(name) || definition.is_some_and(|definition| definition.origin != Origin::Predefined)
    };
    let remark = |reason, message: String| {
        Remark::new(Severity::Warning, reason, position, format!("{knob} {message}")).about(knob)
    };
    let mut told: Vec<Remark> = mistakes::misspelt(&expr, is_own)
        .into_iter()
        .map(|message| remark("UnlikelyAttribute", message))
        .collect();
    let texts =
        mistakes::unquoted(&expr, &text, is_own).into_iter().chain(mistakes::foreign(&expr, is_given));
    told.extend(texts.map(|message| remark("MistakenExpression", message)));
    if is_policy(knob) {
        // The programs of cron jobs may publish any attribute.
        let programs = config.definition("STARTD_CRON_JOBLIST").is_some();
        let is_own = |name: &str| programs || is_own(name);
        // A reason is a text.
        let is_reason = knob.to_ascii_uppercase().contains("REASON");
        let plain = mistakes::plain(&expr).filter(|_| !is_reason);
        told.extend(plain.map(|message| remark("MistakenExpression", message)));
        told.extend(
            of_policy(&expr, is_own).into_iter().map(|message| remark("MistakenExpression", message)),
        );
    }
    told
}

/// Says that an attribute which each slot sets itself has no effect, as the rest of a sentence that begins with the attribute. `None` for
/// other attributes.
pub fn in_vain(name: &str) -> Option<String> {
    let advice = if ["Cpus", "Memory", "Disk"].iter().any(|size| size.eq_ignore_ascii_case(name)) {
        ", or SLOT_TYPE_1 for the sizes of slots"
    } else {
        ""
    };
    let message = || format!("has no effect: each slot sets {name} itself; take another name{advice}");
    is_of_slots(name).then(message)
}

/// The remark that an attribute in `STARTD_ATTRS` has no effect, where the text defines the attribute.
pub(super) fn of_in_vain(config: &Config, name: &str) -> Option<Remark> {
    let (message, definition) = (in_vain(name)?, config.definition(name)?);
    Some(Remark::of_knob(config, definition, Severity::Warning, format!("the attribute {name} {message}")))
}

/// Says which attributes in a slot's policy are undefined in all likelihood: those that are looked for in the wrong ad, and those of
/// HTCondor's slots that no slot here has. `is_own` tells which attributes the configuration itself gives to slots.
pub fn of_policy(expr: &Expr, is_own: impl Fn(&str) -> bool) -> Vec<String> {
    let references = expr.references();
    let strange: BTreeSet<&str> = references
        .my
        .iter()
        .map(Name::as_str)
        .filter(|name| absent(name).is_some() && !is_own(name))
        .collect();
    let nobodys = strange.into_iter().map(|name| {
        format!(
            "looks at MY.{name}, which HTCondor's slots have, and no slot here unless a policy publishes it"
        )
    });
    mistakes::of_sides(&references, &is_own).into_iter().chain(nobodys).collect()
}
