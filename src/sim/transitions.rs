//! The transitions of slots between states and activities, each with its number in HTCondor's manual.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::books::seconds;
use super::report::{field, number};
use model::pool::{Noted, Time, pod_name};

/// The transitions of all slots, in the order in which the slots took them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// Every transition.
    pub all: Vec<Noted>,
    /// The texts of reasons: many transitions share one text.
    reasons: BTreeSet<Arc<str>>,
}

/// The header of the CSV.
const COLUMNS: &str = "time,slot,number,from,to,why,job\n";

impl Transitions {
    /// Appends transitions; all of them are later than those already here.
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

    /// The transitions as CSV, a line each: seconds since `start`; the slot; the transition's number; the
    /// `State/Activity` before and after; the reason; and the proc of the slot's claim, by the name of its pod.
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
