//! Remarks about a configuration text: what its reader finds, what the knob table says about each name, and names that nothing
//! reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use condor_config::Severity;
use condor_config::knobs::{self, Class, Support};
use condor_config::templates;
use condor_config::{
    Config, Definition, Diagnostic, Host, Origin, Position, Reader, Reading, Source, ValueError,
};

use super::macros::{KNOWN, Macros};
use super::readers::{Live, Readers};
use super::unsensed::forms;
use super::{attributes, cron};
use crate::mistakes;
use crate::pool::slot_types::Fault;
use classad::Name;

/// An error or a warning about a text. A remark prints like `line 3, column 1: nothing reads STRAT: did you mean START?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A text with an error cannot be used.
    pub severity: Severity,
    /// The reason in one word, for conditions.
    pub reason: &'static str,
    /// The line in the text, from 1; 0 if the remark is not about a line.
    pub line: u32,
    /// The column in characters, from 1; 0 if the remark is not about a line.
    pub column: u32,
    /// The text for people: what is wrong, and what to do.
    pub message: String,
    /// The knob that the remark is about, if any.
    pub knob: Option<String>,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.message);
        }
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl Remark {
    pub(super) fn new(
        severity: Severity,
        reason: &'static str,
        position: &Position,
        message: String,
    ) -> Self {
        Self { severity, reason, line: position.line, column: position.column, message, knob: None }
    }

    /// The remark, as one about this knob.
    #[must_use]
    pub fn about(self, knob: &str) -> Self {
        Self { knob: Some(knob.to_owned()), ..self }
    }

    /// A remark about a place in the text.
    pub fn at(position: &Position, severity: Severity, message: String) -> Self {
        Self::new(severity, "ConfigurationWarning", position, message)
    }

    /// A remark of the configuration language, or of a module that reads part of the text.
    pub fn of_finding(found: &Diagnostic) -> Self {
        let reason = match found.severity {
            Severity::Error => "InvalidConfiguration",
            Severity::Warning => "ConfigurationWarning",
        };
        Self::new(found.severity, reason, &found.position, found.message.clone())
    }

    /// A remark about a knob that the text defines.
    pub fn of_knob(config: &Config, knob: &Definition, severity: Severity, message: String) -> Self {
        let found = Diagnostic { severity, position: config.position(knob), message };
        Self::of_finding(&found).about(&knob.name)
    }

    /// A remark about a fault of slot types.
    pub(super) fn of_fault(fault: &Fault) -> Self {
        let reason = if fault.severity == Severity::Error { "InvalidSlotType" } else { "SlotType" };
        Self::new(fault.severity, reason, &fault.position, fault.message.clone()).about(&fault.knob)
    }

    /// A remark about a value that cannot be used.
    pub fn of_value(error: &ValueError) -> Self {
        let (reason, message) = match error {
            ValueError::Expand(error) => ("InvalidConfiguration", error.fault.to_string()),
            ValueError::Expression { name, error, .. } => {
                ("InvalidExpression", format!("{name} is no expression: {}", error.fault()))
            }
            ValueError::Type { name, text, wanted, .. } => {
                let advice = if is_span(name, text) { SECONDS } else { "" };
                ("InvalidValue", format!("{name} is {text}, which is no {wanted}{advice}"))
            }
            ValueError::Range { message, .. } => ("InvalidValue", message.clone()),
        };
        Self::new(Severity::Error, reason, error.position(), message)
    }

    /// An error at a byte offset of the text.
    pub(super) fn at_offset(text: &str, offset: usize, reason: &'static str, message: String) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let line = u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX);
        let last = before.rsplit('\n').next().unwrap_or_default();
        let column = u32::try_from(last.chars().count() + 1).unwrap_or(u32::MAX);
        Self { severity: Severity::Error, reason, line, column, message, knob: None }
    }
}

/// The advice about a span of time that is written with a unit.
const SECONDS: &str = "; give seconds, such as 300, or 5 * $(MINUTE)";

/// Whether a text such as `5m` or `1 day` is a number with a unit, for a knob that counts seconds.
fn is_span(knob: &str, text: &str) -> bool {
    let is_of_seconds = knobs::find(knob).is_some_and(|knob| knob.unit == "seconds");
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit = |unit: &str| !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
    is_of_seconds && unit.len() < text.len() && is_unit(unit.trim())
}

impl From<&Fault> for Remark {
    /// The remark has no `knob`, although its message names one, so that [`sort`] treats it like [`Remark::of_value`].
    fn from(fault: &Fault) -> Self {
        Self::new(fault.severity, "InvalidValue", &fault.position, fault.message.clone())
    }
}

/// Sorts remarks into the order of the text, and removes repeated ones.
pub fn sort(remarks: &mut Vec<Remark>) {
    remarks.sort_by_key(|remark| (remark.line, remark.column, std::cmp::Reverse(remark.severity)));
    let mut seen = BTreeSet::new();
    // The knob table and the code that uses a value both report a value that cannot be used. The second remark, which has no
    // `knob`, is more exact, and replaces the first on the same line.
    let invalid = |remark: &Remark| matches!(remark.reason, "InvalidExpression" | "InvalidValue");
    let used = remarks.iter().filter(|remark| remark.knob.is_none() && invalid(remark));
    let lines: BTreeSet<u32> = used.map(|remark| remark.line).collect();
    remarks.retain(|remark| {
        let again = remark.knob.is_some() && invalid(remark) && lines.contains(&remark.line);
        !again && seen.insert((remark.line, remark.column, remark.message.clone()))
    });
}

/// Reads a text for a subsystem, independently of any machine. Returns what the text defines, and the remarks of the language and
/// the knob table. `readers` are the parts of the operator that act on the text.
pub fn of_text(subsystem: &str, readers: &[knobs::Reader], text: &str) -> (Reading, Vec<Remark>) {
    let reader = Reader::new(Host::none()).subsystem(subsystem).guarded();
    let reading = reader.read(&[Source::block("spec.config", text)]);
    let remarks = of_reading(text, &reading, Some(readers), &[]);
    (reading, remarks)
}

/// The remarks about a configuration file that belongs to no object: any daemon may read it.
pub fn of_file(text: &str) -> Vec<Remark> {
    let predefined = Macros::samples().first().map(Macros::pairs).unwrap_or_default();
    let host = Host { predefined, ..Host::none() };
    let reading = Reader::new(host).subsystem("STARTD").guarded().read(&[Source::new("", text)]);
    let mut remarks = of_reading(text, &reading, None, &[]);
    remarks.extend(cron::unlisted(&reading.config));
    sort(&mut remarks);
    remarks
}

/// The remarks of the language.
pub(super) fn of_diagnostics(reading: &Reading) -> Vec<Remark> {
    reading.diagnostics.iter().map(Remark::of_finding).collect()
}

/// The remarks of the language and, for each name, of the knob table. `readers` are the parts of the operator that act on the
/// text; none if any of them may. `beside` are the attributes that slots have besides those of the text. A value that nothing acts on
/// gives no errors, whatever it is.
pub(super) fn of_reading(
    text: &str,
    reading: &Reading,
    readers: Option<&[knobs::Reader]>,
    beside: &[&str],
) -> Vec<Remark> {
    let mut remarks = of_diagnostics(reading);
    let read = Readers::of(text, &reading.config);
    let live = Live::of(text, &reading.config, readers);
    let mut by_template: BTreeMap<(u32, u32, String), Vec<String>> = BTreeMap::new();
    for definition in reading.config.definitions() {
        let position = reading.config.position(definition);
        if reading.config.is_spent() {
            // The steps for all values together are used up: every further value would give the same remark.
            let message =
                "the values of this text together take too many steps to expand; nothing after this name was checked; \
                           use fewer references between values"
                    .to_owned();
            let name = &definition.name;
            remarks
                .push(Remark::new(Severity::Error, "InvalidConfiguration", &position, message).about(name));
            break;
        }
        match definition.origin {
            Origin::Predefined => {}
            Origin::Source => {
                let is_live = live.holds(&definition.name);
                let found = of_definition(&reading.config, definition, &position, &read, is_live, beside);
                remarks.extend(found.into_iter().filter(|it| is_live || it.severity != Severity::Error));
                remarks.extend(readers.and_then(|readers| of_others(&definition.name, &position, readers)));
            }
            Origin::Template(category, name) => {
                if is_planned(&definition.name) {
                    let key = (position.line, position.column, format!("use {category} : {name}"));
                    by_template.entry(key).or_default().push(definition.name.clone());
                }
            }
        }
    }
    for ((line, column, template), names) in by_template {
        let names = names.join(", ");
        let message = format!("{template} sets {names}, on which nothing acts yet");
        let (severity, reason) = (Severity::Warning, "KnobNotActedOn");
        remarks.push(Remark { severity, reason, line, column, message, knob: Some(names) });
    }
    remarks
}

fn is_planned(name: &str) -> bool {
    matches!(knobs::classify(name), Class::Knob(knob) if knob.support == Support::Planned)
}

fn of_definition(
    config: &Config,
    definition: &Definition,
    position: &Position,
    read: &Readers,
    is_live: bool,
    beside: &[&str],
) -> Vec<Remark> {
    let name = &definition.name;
    let is_read = read.reads(name);
    let value = match config.value_of(definition) {
        Ok(value) => value,
        // HTCondor's configuration has paths and addresses that no node has here. If nothing acts on such a value, it is no fault.
        Err(_) if !is_live => String::new(),
        Err(error) => return vec![Remark::of_value(&error.into())],
    };
    if let Some(remark) = of_type_out_of_range(config, name, position) {
        return vec![remark];
    }
    // HTCondor takes NAME_LIMIT for a limit when a job takes the limit. One to which the text itself refers serves as a macro.
    let is_macro = is_read && knobs::find(name).is_some_and(|knob| knob.name == "<name>_LIMIT");
    let checked = if is_macro { Vec::new() } else { knobs::check(name, &value) };
    let mut remarks: Vec<Remark> = checked
        .into_iter()
        // A knob that is meaningless here is not remarked on if the text itself refers to it: it then serves as a macro.
        .filter(|finding| !(is_read && finding.reason == "MeaninglessKnob"))
        .map(|finding| of_finding(config, name, position, finding))
        .collect();
    remarks.extend(attributes::of_knob(config, name, position, beside));
    remarks.extend(of_mistakes(config, name, &value, position));
    remarks.extend(of_undefined(config, definition, position));
    remarks.extend(of_kill(config, name, position));
    if !is_read {
        remarks.extend(knobs::unknown(name).map(|finding| {
            Remark::new(Severity::Warning, "UnknownKnob", position, finding.message).about(name)
        }));
    }
    remarks
}

/// Attributes that are known for any later time as soon as a job is asked to go.
const FORESEEN: &[&str] =
    &["CurrentTime", "EnteredCurrentActivity", "EnteredCurrentState", "MyCurrentTime", "Activity", "State"];

/// A remark if KILL looks at more than the time. The operator foresees when a KILL of the time alone becomes true, and gives the
/// pod that much grace. A kubelet that already ends a pod does not look at a shorter grace, so that only an agent can kill then.
fn of_kill(config: &Config, knob: &str, position: &Position) -> Option<Remark> {
    let upper = knob.to_ascii_uppercase();
    let plain = upper.strip_prefix("STARTD.").unwrap_or(&upper);
    let of_type =
        plain.strip_prefix("SLOT_TYPE_").and_then(|rest| rest.split_once('_')).map(|(_, name)| name);
    if !forms("KILL").any(|form| form == of_type.unwrap_or(plain)) {
        return None;
    }
    let references = config.expr(knob).ok()??.references();
    let names = references.my.iter().chain(&references.target).chain(&references.bare).map(Name::as_str);
    let unforeseen: BTreeSet<&str> =
        names.filter(|name| !FORESEEN.iter().any(|known| known.eq_ignore_ascii_case(name))).collect();
    (!unforeseen.is_empty()).then(|| {
        let names: Vec<&str> = unforeseen.into_iter().collect();
        let message = format!(
            "{knob} looks at {}: if that changes while a job vacates, only an agent on the node can kill the job; without one, the \
             job has its grace to the end; bound the grace by MachineMaxVacateTime",
            names.join(", ")
        );
        Remark::new(Severity::Warning, "KillNeedsAgent", position, message).about(knob)
    })
}

/// Remarks about parts of an expression that are error or undefined whatever the ads say.
fn of_mistakes(config: &Config, knob: &str, text: &str, position: &Position) -> Vec<Remark> {
    let is_expression = knobs::find(knob).is_some_and(|known| known.kind.is_expression());
    let expr = is_expression.then(|| config.expr(knob).ok()).flatten().flatten();
    let found = expr.map(|expr| mistakes::of(&expr, text)).unwrap_or_default();
    let of = |mistake| {
        Remark::new(Severity::Warning, "MistakenExpression", position, format!("{knob} {mistake}"))
            .about(knob)
    };
    found.into_iter().map(of).collect()
}

/// Remarks about macros in an expression that nothing defines. HTCondor puts nothing in their place, so that `START = $(MyStrat)` is no
/// START at all.
fn of_undefined(config: &Config, definition: &Definition, position: &Position) -> Vec<Remark> {
    let knob = definition.name.as_str();
    if !knobs::find(knob).is_some_and(|known| known.kind.is_expression()) {
        return Vec::new();
    }
    let raw = definition.raw();
    let parts = raw.split("$(").skip(1).zip(raw.split("$("));
    // $$(NAME) is an attribute of the machine, and $(NAME:default) has a default.
    let names =
        parts.filter(|(_, before)| !before.ends_with('$')).filter_map(|(part, _)| part.split_once(')'));
    let plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let known = |name: &str| {
        config.raw(name).is_some()
            || KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
            || name.bytes().all(|byte| byte.is_ascii_digit())
            || name.eq_ignore_ascii_case("DOLLAR")
    };
    let undefined: BTreeSet<&str> =
        names.map(|(name, _)| name).filter(|name| plain(name) && !known(name)).collect();
    let of = |name: &str| {
        let meant = nearest_definition(config, name);
        let hint = match meant {
            _ if is_fragment(name) => {
                format!("; a line 'use FEATURE : Policy_Expr_Fragments' before this one defines $({name})")
            }
            Some(meant) => format!("; did you mean $({meant})?"),
            None => String::new(),
        };
        let message =
            format!("{knob} refers to $({name}), which nothing defines: nothing stands in its place{hint}");
        Remark::new(Severity::Warning, "ConfigurationWarning", position, message).about(knob)
    };
    undefined.into_iter().map(of).collect()
}

/// Whether HTCondor's template of macros for policies defines a name. The policies of the manual refer to these macros.
fn is_fragment(name: &str) -> bool {
    let template = templates::find("FEATURE", "Policy_Expr_Fragments");
    let lines = template.into_iter().flat_map(|template| template.text.lines());
    lines.filter_map(|line| line.split_once('=')).any(|(left, _)| left.trim().eq_ignore_ascii_case(name))
}

/// The name that the text or HTCondor defines and that is the fewest edits away, if these are few.
fn nearest_definition<'c>(config: &'c Config, name: &str) -> Option<&'c str> {
    let upper = name.to_ascii_uppercase();
    let allowed = (name.len() / 4).clamp(1, 3);
    let known = config.names().into_iter().filter(|known| known.len().abs_diff(name.len()) <= allowed);
    known
        .map(|known| (strsim::osa_distance(&known.to_ascii_uppercase(), &upper), known))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}

/// A remark about a name that is for a type of slots above the last that there may be.
fn of_type_out_of_range(config: &Config, name: &str, position: &Position) -> Option<Remark> {
    let last = config.last_slot_type();
    let number = Config::slot_type_of(name).filter(|number| *number > last)?;
    let enough = number <= Config::MOST_SLOT_TYPES;
    let remedy = if enough { format!("MAX_SLOT_TYPES = {number}") } else { "a smaller number".to_owned() };
    let message =
        format!("{name} has no effect: the last slot type is {last} (MAX_SLOT_TYPES); say {remedy}");
    Some(Remark::new(Severity::Warning, "KnobNotActedOn", position, message).about(name))
}

/// A remark about a knob that the operator acts on, but not in this text.
fn of_others(name: &str, position: &Position, readers: &[knobs::Reader]) -> Option<Remark> {
    let knob = knobs::find(name).filter(|knob| knob.support == Support::Honored)?;
    let ours = |reader: &knobs::Reader| *reader == knobs::Reader::Macros || readers.contains(reader);
    if knob.readers.iter().any(ours) {
        return None;
    }
    let place = knob.readers.iter().find_map(|reader| reader.place())?;
    let message = format!("{name} has no effect here; say it in spec.config of {place}");
    Some(Remark::new(Severity::Warning, "KnobNotActedOn", position, message).about(name))
}

fn of_finding(config: &Config, name: &str, position: &Position, finding: knobs::Finding) -> Remark {
    let severity = match finding.severity {
        knobs::Severity::Error => Severity::Error,
        knobs::Severity::Warning | knobs::Severity::Note => Severity::Warning,
    };
    let reason = match finding.reason {
        "WrongType" | "OutOfRange" => "InvalidValue",
        "UnknownKnob" => "UnknownKnob",
        _ => "KnobNotActedOn",
    };
    let is_expression = knobs::find(name).is_some_and(|knob| knob.kind.is_expression());
    match config.expr(name) {
        // The error of the parser has the exact place in the text.
        Err(error) if is_expression && reason == "InvalidValue" => Remark::of_value(&error).about(name),
        _ => Remark::new(severity, reason, position, finding.message).about(name),
    }
}

/// A remark about an attribute that a list names and nothing defines.
pub(super) fn undefined_attribute(config: &Config, slot_type: Option<u32>, name: &str) -> Option<Remark> {
    let of_type = slot_type.map(|kind| format!("SLOT_TYPE_{kind}_STARTD_ATTRS"));
    let lists = ["STARTD_ATTRS", "STARTD.STARTD_ATTRS", "SLOT1_STARTD_ATTRS", "SYSTEM_STARTD_ATTRS"];
    let lists = of_type.into_iter().chain(lists.map(str::to_owned));
    // An attribute that is defined as nothing is left out on purpose.
    let dropped =
        [name.to_owned(), format!("SLOT1_{name}")].iter().any(|name| config.definition(name).is_some());
    let mut defined = lists.filter_map(|list| config.definition(&list));
    let list = defined.next().filter(|_| !dropped)?;
    let message = format!("{} names {name}, which nothing defines; define it, or take it out", list.name);
    let position = config.position(list);
    Some(Remark::new(Severity::Warning, "ConfigurationWarning", &position, message).about(name))
}
