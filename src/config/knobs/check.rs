//! Checks whether a value suits its knob.

use super::knob::{Kind, Knob, Support};
use super::name::{Class, classify};
use crate::amount::amount;
use classad::{Env, Expr, Value};

/// How bad a finding about a knob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The assignment has no effect, which is harmless.
    Note,
    /// The assignment does not do what was probably meant.
    Warning,
    /// The value cannot be used.
    Error,
}

/// A finding about an assignment. The message names the knob and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad the finding is.
    pub severity: Severity,
    /// The kind of finding, for programs: `WrongType`, `OutOfRange`, `NotInForce`, `MappedKnob`, `MeaninglessKnob` or
    /// `UnknownKnob`.
    pub reason: &'static str,
    /// The finding, for people.
    pub message: String,
}

impl Finding {
    fn new(severity: Severity, reason: &'static str, message: String) -> Self {
        Self { severity, reason, message }
    }
}

/// The findings about assigning an expanded value to a name.
///
/// A name that means nothing to HTCondor gives no finding: it may be a macro of the author's own. [`unknown`] is for
/// such names that nothing refers to.
pub fn check(name: &str, value: &str) -> Vec<Finding> {
    match classify(name) {
        Class::Knob(knob) => {
            let mut findings = Vec::new();
            findings.extend(wrong_value(name, knob, value.trim()));
            findings.extend(support(name, knob));
            findings
        }
        Class::Parameter => vec![Finding::new(
            Severity::Note,
            "MeaninglessKnob",
            format!("{name} is a parameter of HTCondor's that has no effect here"),
        )],
        Class::Unknown { .. } => Vec::new(),
    }
}

/// The finding about a name that is assigned and that nothing reads. `None`: the name is a knob or a parameter of
/// HTCondor.
///
/// The caller has checked that no `$(NAME)` and no list of attributes refers to the name.
pub fn unknown(name: &str) -> Option<Finding> {
    let Class::Unknown { nearest } = classify(name) else { return None };
    let advice = match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => "remove it, or refer to it by $() or in STARTD_ATTRS".to_owned(),
    };
    Some(Finding::new(Severity::Warning, "UnknownKnob", format!("nothing reads {name}: {advice}")))
}

fn support(name: &str, knob: &Knob) -> Option<Finding> {
    let (severity, reason, message) = match knob.support {
        Support::Honored => return None,
        Support::Planned => {
            (Severity::Warning, "NotInForce", format!("{name} is understood, but nothing acts on it yet"))
        }
        Support::MappedTo(what) => {
            (Severity::Warning, "MappedKnob", format!("{name} has no effect here; use {what}"))
        }
        Support::Meaningless(why) => {
            (Severity::Note, "MeaninglessKnob", format!("{name} has no effect here: {why}"))
        }
    };
    Some(Finding::new(severity, reason, message))
}

/// A finding about the value. An empty value is always right: it unsets the knob.
fn wrong_value(name: &str, knob: &Knob, value: &str) -> Option<Finding> {
    if value.is_empty() {
        return None;
    }
    match knob.kind {
        Kind::List | Kind::Text | Kind::Transform | Kind::Shares => None,
        Kind::Expression => Expr::parse(value).err().map(|error| wrong_type(name, knob, &error.to_string())),
        Kind::Amount(base) if amount(value, base, false).is_some() => None,
        Kind::Amount(_) => Expr::parse(value).err().map(|error| {
            let why = format!("{error}; units are K, M, G and T, as in 2 GB");
            wrong_type(name, knob, &why)
        }),
        Kind::Boolean => boolean(value).err().map(|why| wrong_type(name, knob, &why)),
        Kind::Integer | Kind::Real => match number(value) {
            Err(why) => Some(wrong_type(name, knob, &why)),
            Ok(found) => knob
                .out_of_range(name, found)
                .map(|message| Finding::new(Severity::Error, "OutOfRange", message)),
        },
    }
}

fn wrong_type(name: &str, knob: &Knob, why: &str) -> Finding {
    let message = format!("{name} must be {}: {why}", knob.kind.described());
    Finding::new(Severity::Error, "WrongType", message)
}

impl Knob {
    /// The message for a number that the knob, written as `name`, does not allow; `None` if the knob allows it.
    pub(crate) fn out_of_range(&self, name: &str, found: f64) -> Option<String> {
        let (least, greatest) = self.range?;
        if found >= least && found <= greatest {
            return None;
        }
        let bound =
            if found > greatest { format!("at most {greatest}") } else { format!("at least {least}") };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        Some(format!("{name} must be {bound}{unit}, and is {found}"))
    }
}

/// Reads a boolean as HTCondor does: an expression that needs no ad. `yes` and `no` are not booleans.
fn boolean(text: &str) -> Result<bool, String> {
    let value = constant(text)?;
    value
        .as_bool_equiv()
        .ok_or_else(|| format!("{text} is of type {}; write True or False", value.type_name()))
}

/// Reads a number as HTCondor does: an expression that needs no ad.
fn number(text: &str) -> Result<f64, String> {
    let value = constant(text)?;
    value.as_number().ok_or_else(|| format!("{text} is of type {}", value.type_name()))
}

fn constant(text: &str) -> Result<Value, String> {
    let expr = Expr::parse(text).map_err(|error| error.to_string())?;
    Ok(expr.eval(None, None, &Env::at(0)))
}
