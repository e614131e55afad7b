//! Names: which knob a name sets, with its prefixes and variable parts.

use std::cmp::Ordering;

use super::defaults::DEFAULTS;
use super::knob::Knob;
use super::unset::UNSET;
use super::{TABLES, all};

/// Parameters of HTCondor with a variable part that have no effect here.
const PATTERNS: [&str; 23] = [
    "BENCHMARKS_<name>_<what>",
    "DOCKER_VOLUME_DIR_<name>",
    "JOB_ROUTER_POST_ROUTE_TRANSFORM_<name>",
    "JOB_ROUTER_PRE_ROUTE_TRANSFORM_<name>",
    "JOB_ROUTER_ROUTE_<name>",
    "SCHEDD_CRON_<name>_<what>",
    "SCHEDD_ROUND_ATTR_<attribute>",
    "SEC_<level>_AUTHENTICATION",
    "SEC_<level>_AUTHENTICATION_METHODS",
    "SEC_<level>_AUTHENTICATION_TIMEOUT",
    "SEC_<level>_CRYPTO_METHODS",
    "SEC_<level>_ENCRYPTION",
    "SEC_<level>_INTEGRITY",
    "SEC_<level>_NEGOTIATION",
    "SEC_<level>_SESSION_DURATION",
    "SEC_<level>_SESSION_LEASE",
    "SLOT<N>_CPU_AFFINITY",
    "SLOT<N>_JOB_HOOK_KEYWORD",
    "SLOT<slot>_USER",
    "SUBMIT_TEMPLATE_<name>",
    "<keyword>_HOOK_EVICT_CLAIM",
    "<keyword>_HOOK_JOB_<what>",
    "<keyword>_HOOK_PREPARE_<what>",
];

/// The longest name that is looked at, in bytes. Names may come from anybody, and patterns are tried at each place of
/// a name.
const LONGEST: usize = 1000;

/// The meaning of a name to HTCondor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class {
    /// The name sets a knob of the table.
    Knob(&'static Knob),
    /// The name is a parameter of HTCondor that has no effect in Slotwright.
    Parameter,
    /// The name means nothing to HTCondor.
    Unknown {
        /// The name that was perhaps meant.
        nearest: Option<&'static str>,
    },
}

/// The meaning of a name. Prefixes of subsystems and slot types are understood.
pub fn classify(name: &str) -> Class {
    match find(name) {
        Some(knob) => Class::Knob(knob),
        None if is_parameter(name) => Class::Parameter,
        None => Class::Unknown { nearest: nearest(name) },
    }
}

/// The knob that a name sets, such as `START`, `STARTD.START`, `SLOT_TYPE_2_START` or `GROUP_QUOTA_physics.hep`. Names
/// are compared without case. `None` for a name with more than two prefixes (`SUBSYSTEM.LOCAL.NAME`) or more than 1000
/// bytes.
pub fn find(name: &str) -> Option<&'static Knob> {
    if name.len() > LONGEST {
        return None;
    }
    let bare = |name: &str| name.find('.').map_or(name.len(), |dot| dot + 1);
    let first = name.get(bare(name)..).unwrap_or_default();
    let second = first.get(bare(first)..).unwrap_or_default();
    [name, first, second].into_iter().find_map(of_bare)
}

fn of_bare(name: &str) -> Option<&'static Knob> {
    exact(name)
        .or_else(|| of_slot_type(name))
        .or_else(|| if is_parameter(name) { None } else { by_pattern(name) })
}

/// Whether HTCondor has a parameter of this name, with or without a default. A prefix is ignored.
pub(super) fn is_parameter(name: &str) -> bool {
    let bare = name.rsplit_once('.').map_or(name, |(_, bare)| bare);
    lookup(&[bare]).is_some()
        || UNSET.binary_search_by(|known| compare(known, &[bare])).is_ok()
        || PATTERNS.iter().any(|pattern| fits(pattern, bare).is_some())
}

/// The default of the name that the parts make up together. Empty: HTCondor leaves the parameter unset. `None`: there
/// is no such parameter.
pub(super) fn lookup(parts: &[&str]) -> Option<&'static str> {
    let at = DEFAULTS.binary_search_by(|(known, _)| compare(known, parts)).ok()?;
    DEFAULTS.get(at).map(|(_, default)| *default)
}

/// Compares a name with parts of a name, without case and without joining the parts.
fn compare(known: &str, parts: &[&str]) -> Ordering {
    let folded = |byte: u8| byte.to_ascii_lowercase();
    known.bytes().map(folded).cmp(parts.iter().flat_map(|part| part.bytes()).map(folded))
}

fn exact(name: &str) -> Option<&'static Knob> {
    all().find(|knob| !knob.is_pattern() && knob.name.eq_ignore_ascii_case(name))
}

/// The knob after `SLOT_TYPE_<N>_`, if slot types may override it.
fn of_slot_type(name: &str) -> Option<&'static Knob> {
    let rest = strip_prefix(name, "SLOT_TYPE_")?;
    let (number, rest) = rest.split_once('_')?;
    if !is_number(number) {
        return None;
    }
    exact(rest).or_else(|| by_pattern(rest)).filter(|knob| knob.per_slot_type)
}

/// The pattern that fits the name with the shortest variable part.
fn by_pattern(name: &str) -> Option<&'static Knob> {
    let patterns = TABLES.iter().copied().flatten().filter(|knob| knob.is_pattern());
    patterns
        .filter_map(|knob| Some((fits(knob.name, name)?, knob)))
        .min_by_key(|(hole, _)| *hole)
        .map(|(_, knob)| knob)
}

/// How many bytes the variable parts of the pattern take. `None`: the pattern does not fit.
fn fits(pattern: &str, name: &str) -> Option<usize> {
    let Some((before, rest)) = pattern.split_once('<') else {
        return name.eq_ignore_ascii_case(pattern).then_some(0);
    };
    let (hole, after) = rest.split_once('>')?;
    let rest = strip_prefix(name, before)?;
    // The variable part ends where the literal text behind it occurs last, or at the end.
    let literal = after.split('<').next().unwrap_or_default();
    let at = if after.is_empty() { rest.len() } else { rfind(rest, literal)? };
    let (value, rest) = rest.split_at_checked(at)?;
    let right = if hole == "N" { is_number(value) } else { !value.is_empty() };
    right.then_some(value.len())?.checked_add(fits(after, rest)?)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn rfind(text: &str, wanted: &str) -> Option<usize> {
    (0..=text.len()).rev().find(|&at| {
        text.get(at..at.saturating_add(wanted.len())).is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

/// The known name that is the fewest edits away, if these are few enough for a typing error. Among equally near names,
/// a knob of the table goes before other parameters.
fn nearest(name: &str) -> Option<&'static str> {
    let bare = name.rsplit_once('.').map_or(name, |(_, bare)| bare).to_ascii_uppercase();
    let allowed = (bare.len() / 4).clamp(1, 3);
    let names = all().filter(|knob| !knob.is_pattern()).map(|knob| knob.name);
    let parameters = DEFAULTS.iter().map(|(name, _)| *name).filter(|name| !name.contains('.'));
    names
        .chain(parameters)
        .filter(|known| known.len().abs_diff(bare.len()) <= allowed)
        .map(|known| (strsim::osa_distance(&known.to_ascii_uppercase(), &bare), known))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}
