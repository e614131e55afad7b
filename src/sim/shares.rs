//! The slot weight that each submitter or group used, and the slot weight that it deserved while its procs waited.

use std::collections::HashSet;

use super::report::{Report, Table};

/// The slot weights of one submitter or group over time. `got` and `deserved` have the same times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Share {
    pub name: String,
    /// Slot weight in use.
    pub got: Vec<(f64, f64)>,
    /// The slot weight that it deserved at times when one of its procs waited; NaN at all other times, when it asked
    /// for no more than it had.
    pub deserved: Vec<(f64, f64)>,
}

/// Whose shares: those of submitters or those of accounting groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Submitters,
    Groups,
}

impl Whose {
    pub fn table(self) -> &'static str {
        match self {
            Self::Submitters => "submitters",
            Self::Groups => "groups",
        }
    }

    /// Whether `submitter` is the submitter `name`, or belongs to the group `name`: `physics.higgs.ann` belongs to
    /// `physics` and to `physics.higgs`.
    pub fn covers(self, name: &str, submitter: &str) -> bool {
        match self {
            Self::Submitters => name == submitter,
            Self::Groups => submitter.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')),
        }
    }
}

/// The shares of all submitters or groups, in the report's order.
pub(super) fn shares(report: &Report, whose: Whose) -> Vec<Share> {
    let Some(table) = report.table(whose.table()) else { return Vec::new() };
    let waiting = report.table(Whose::Submitters.table()).map(waiting).unwrap_or_default();
    let lines = table.series("got").into_iter().zip(table.series("deserved"));
    lines
        .map(|((key, got), (_, deserved))| {
            let name = key.map(|key| key.to_string()).unwrap_or_default();
            let mut times: HashSet<u64> = HashSet::new();
            for (submitter, waited) in &waiting {
                if whose.covers(&name, submitter) {
                    times.extend(waited);
                }
            }
            let asked = |(at, deserved): (f64, f64)| {
                (at, if times.contains(&at.to_bits()) { deserved } else { f64::NAN })
            };
            Share { name, got, deserved: deserved.into_iter().map(asked).collect() }
        })
        .collect()
}

/// For each submitter the times, as bits, at which procs wait.
fn waiting(submitters: &Table) -> Vec<(String, Vec<u64>)> {
    let times = |points: Vec<(f64, f64)>| {
        let waits = points.into_iter().filter(|(_, idle)| *idle > 0.0);
        waits.map(|(at, _)| at.to_bits()).collect()
    };
    let lines = submitters.series("idle").into_iter();
    lines.map(|(key, points)| (key.map(|key| key.to_string()).unwrap_or_default(), times(points))).collect()
}

/// The mean slot weights that a submitter or group used and deserved while its procs waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    pub got: f64,
    pub deserved: f64,
}

impl Share {
    /// The means over the times at which procs waited; `None` if none ever waited, or nothing was deserved.
    pub fn asked(&self) -> Option<Asked> {
        let both = || self.got.iter().zip(&self.deserved).filter(|(_, (_, deserved))| *deserved > 0.0);
        let count = super::number::real(both().count() as u64);
        let mean = |of: fn((f64, f64)) -> f64| {
            both().map(|((_, got), (_, deserved))| of((*got, *deserved))).sum::<f64>() / count
        };
        (count > 0.0).then(|| Asked { got: mean(|both| both.0), deserved: mean(|both| both.1) })
    }
}
