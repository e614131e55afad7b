//! What slots did: every transition between states and activities, with its number in the manual.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::books::seconds;
use super::report::{field, number};
use model::pool::{Noted, Time, pod_name};

/// Transitions in the order in which they were taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// Each of them.
    pub all: Vec<Noted>,
    /// Reasons are few and transitions many: equal ones are kept once.
    reasons: BTreeSet<Arc<str>>,
}

/// The header of the CSV.
const COLUMNS: &str = "time,slot,number,from,to,why,job\n";

impl Transitions {
    /// Adds some that were taken after all that are there.
    pub(super) fn extend(&mut self, noted: Vec<Noted>) {
        self.all.extend(noted.into_iter().map(|mut noted| {
            match self.reasons.get(&noted.taken.why) {
                Some(known) => noted.taken.why = Arc::clone(known),
                None => {
                    self.reasons.insert(Arc::clone(&noted.taken.why));
                }
            }
            noted
        }));
    }

    /// As CSV: the time in seconds since the start, the slot, the number, where it was and where it is then, each as
    /// `State/Activity`, why, and the proc of the slot's claim as its pod is called.
    pub fn csv(&self, start: Time) -> String {
        let mut text = String::from(COLUMNS);
        for noted in &self.all {
            number(&mut text, seconds(start, noted.taken.at));
            let (from, to) = (noted.from, noted.to);
            let _ = write!(
                text,
                ",{},{},{}/{},{}/{},",
                noted.slot,
                noted.taken.number,
                from.state(),
                from.activity(),
                to.state(),
                to.activity()
            );
            field(&mut text, &noted.taken.why);
            text.push(',');
            if let Some((job, proc)) = &noted.proc {
                field(&mut text, &pod_name(job, *proc));
            }
            text.push('\n');
        }
        text
    }
}
