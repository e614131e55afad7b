//! The knob table: every knob of the manual, its type and default, who reads it, and what it is here.
//!
//! ```
//! use condor_config::knobs::{self, Class, Support};
//!
//! let start = knobs::find("STARTD.Start").unwrap();
//! assert_eq!((start.name, start.support), ("START", Support::Honored));
//! assert_eq!(knobs::default_of(Some("STARTD"), "slot_weight"), Some("Cpus"));
//! assert!(matches!(knobs::classify("STRAT"), Class::Unknown { nearest: Some("START") }));
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | `knob` | what is said of a knob |
//! | `startd`, `slots`, `negotiator`, `groups`, `schedd`, `defrag`, `collector`, `daemons`, `macros` | the table |
//! | `defaults`, `unset` | every parameter HTCondor has, with its compiled-in default |
//! | `check` | whether a value suits its knob |
//! | `markdown` | `docs/reference/knobs.md` |

mod check;
mod collector;
mod daemons;
mod defaults;
mod defrag;
mod groups;
mod knob;
mod macros;
mod markdown;
mod name;
mod negotiator;
mod schedd;
mod slots;
mod startd;
mod unset;

pub use check::{Finding, Severity, check, unknown};
pub use knob::{Kind, Knob, Reader, Support};
pub use markdown::markdown;
pub use name::{Class, classify, find};

/// Every table. A knob is in one of them.
const TABLES: &[&[Knob]] = &[
    startd::KNOBS,
    slots::KNOBS,
    negotiator::KNOBS,
    groups::KNOBS,
    schedd::KNOBS,
    defrag::KNOBS,
    collector::KNOBS,
    daemons::KNOBS,
    macros::KNOBS,
];

/// Every knob there is, by table.
pub fn all() -> impl Iterator<Item = &'static Knob> {
    TABLES.iter().copied().flatten()
}

/// Every name that HTCondor knows a default of, raw, in the order of names without case. Empty: known and unset.
pub fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    defaults::DEFAULTS.iter().copied()
}

/// The compiled-in default of a knob, raw: what HTCondor's parameter table says for `SUBSYSTEM.NAME`, else for `NAME`.
/// Names are compared without case. `None`: no such knob, or one without a default.
pub fn default_of(subsystem: Option<&str>, name: &str) -> Option<&'static str> {
    subsystem
        .and_then(|subsystem| name::lookup(&[subsystem, ".", name]))
        .or_else(|| name::lookup(&[name]))
        .filter(|default| !default.is_empty())
}

#[cfg(test)]
mod tests;
