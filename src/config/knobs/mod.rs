//! The knob table: every configuration variable of HTCondor's manual, with its type, its default, who reads it, and
//! what Slotwright does with it.
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
//! | module | holds |
//! | --- | --- |
//! | `knob` | the types of the table |
//! | `startd`, `cron`, `slots`, `negotiator`, `groups`, `schedd`, `defrag`, `collector`, `daemons`, `macros` | the table |
//! | `defaults`, `unset` | every parameter that HTCondor has, with its compiled-in default |
//! | `name` | which knob a name sets |
//! | `check` | whether a value suits its knob |
//! | `markdown` | the page `docs/reference/knobs.md` |

mod check;
mod collector;
mod cron;
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

/// All tables. A knob is in one of them only.
const TABLES: &[&[Knob]] = &[
    startd::KNOBS,
    cron::KNOBS,
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

/// Every parameter of HTCondor's table with its unexpanded default, sorted by name without case. An empty default
/// means unset.
pub fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    defaults::DEFAULTS.iter().copied()
}

/// The unexpanded default that HTCondor has compiled in for `SUBSYSTEM.NAME`, else for `NAME`. Names are compared
/// without case. `None`: there is no such parameter, or it is unset by default.
pub fn default_of(subsystem: Option<&str>, name: &str) -> Option<&'static str> {
    subsystem
        .and_then(|subsystem| name::lookup(&[subsystem, ".", name]))
        .or_else(|| name::lookup(&[name]))
        .filter(|default| !default.is_empty())
}

#[cfg(test)]
mod tests;
