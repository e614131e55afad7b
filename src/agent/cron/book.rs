//! The ads that cron jobs have told, and what the report says of them. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::output::OutputAd;
use api::{NodeCronAutopublish, NodeCronJob, ReportedSlotAd};

/// The most ads with tags that are kept of one job.
const MAX_ADS: usize = 64;
/// The most attributes of all slots. The report has room for 256, of which some are the agent's own.
const MAX_ATTRIBUTES: usize = 200;
/// The most ads of some slots in the report.
const MAX_SLOT_ADS: usize = 64;
/// The most bytes of names and expressions in the report.
const MAX_BYTES: usize = 64 * 1024;
/// The message if the report has not room for all.
pub(super) const LEFT_OUT: &str = "the jobs say more than the report has room for: 64 ads with names of a job, 200 attributes of all slots, \
    64 ads of some slots, and 64 KiB in all; the rest is left out";

/// By these attributes an ad says into which slots' ads it goes.
const ADDRESS: [&str; 5] = ["SlotMergeConstraint", "SlotName", "Name", "SlotTypeId", "SlotId"];
/// A change of one of these attributes is reported at once, because a broken slot must take no jobs.
const URGENT: [&str; 2] = ["SlotBrokenReason", "SlotBrokenCode"];

/// Whether an attribute says into which slots' ads the others go.
pub(super) fn is_address(name: &str) -> bool {
    ADDRESS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The output of cron jobs, as the report has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Published {
    /// Attributes of all slots.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Attributes of some slots.
    pub(crate) slot_ads: Vec<ReportedSlotAd>,
    /// Whether something is left out for want of room.
    pub(super) left_out: bool,
}

/// The ads that are in force.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// In the manual's order: an ad replaces what those before it say. First the ads without tags, in the order of the jobs; then
    /// the others, in the order in which they came.
    ads: Vec<Entry>,
    /// Whether a job has told more ads than are kept of a job.
    full: bool,
}

#[derive(Debug)]
struct Entry {
    job: String,
    tag: Option<String>,
    slots: Vec<u32>,
    attributes: BTreeMap<String, String>,
}

impl Book {
    /// Keeps the ads of `jobs`, which are the jobs that the operator asks for now. Drops the ads of all other jobs.
    pub(super) fn keep(&mut self, jobs: &[NodeCronJob]) {
        self.full = false;
        let at = |name: &str| jobs.iter().position(|job| job.name == name);
        self.ads.retain(|entry| at(&entry.job).is_some());
        for entry in &mut self.ads {
            let job = jobs.iter().find(|job| job.name == entry.job);
            entry.slots = job.map(|job| job.slots.clone()).unwrap_or_default();
        }
        self.ads.sort_by_key(|entry| if entry.tag.is_none() { at(&entry.job) } else { Some(usize::MAX) });
    }

    /// A job tells an ad, which replaces its last of the same tag. Returns whether the report is to tell of it at once.
    pub(super) fn told(
        &mut self,
        job: &NodeCronJob,
        told: OutputAd,
        publish: NodeCronAutopublish,
        now: Timestamp,
    ) -> bool {
        let OutputAd { tag, update, mut attributes } = told;
        if publish == NodeCronAutopublish::Always {
            attributes.insert(format!("{}LastUpdate", job.prefix), now.as_second().to_string());
        }
        let known = self.ads.iter_mut().find(|entry| entry.job == job.name && entry.tag == tag);
        let urgent = |ad: &BTreeMap<String, String>| URGENT.map(|name| get(ad, name).cloned());
        let none = BTreeMap::new();
        let before = known.as_ref().map_or(&none, |entry| &entry.attributes);
        let (changed, breaks) = (*before != attributes, urgent(before) != urgent(&attributes));
        match known {
            Some(entry) => entry.attributes = attributes,
            None => self.add(Entry { job: job.name.clone(), tag, slots: job.slots.clone(), attributes }),
        }
        let published = match publish {
            NodeCronAutopublish::Never => false,
            NodeCronAutopublish::IfChanged => changed,
            NodeCronAutopublish::Always => true,
        };
        breaks || update.unwrap_or(published)
    }

    fn add(&mut self, entry: Entry) {
        if entry.tag.is_none() {
            let plain = self.ads.iter().take_while(|known| known.tag.is_none()).count();
            self.ads.insert(plain, entry);
            return;
        }
        let tagged = self.ads.iter().filter(|known| known.job == entry.job && known.tag.is_some());
        if tagged.count() < MAX_ADS {
            self.ads.push(entry);
        } else {
            self.full = true;
        }
    }

    /// The output for the report.
    pub(super) fn published(&self) -> Published {
        let mut published = Published { left_out: self.full, ..Published::default() };
        let mut room = MAX_BYTES;
        for entry in &self.ads {
            let bytes: usize = entry.attributes.iter().map(|(name, expr)| name.len() + expr.len()).sum();
            if bytes > room {
                published.left_out = true;
                continue;
            }
            room -= bytes;
            let addressed = ADDRESS.iter().any(|name| get(&entry.attributes, name).is_some());
            if addressed || !entry.slots.is_empty() {
                let ad = ReportedSlotAd { slots: entry.slots.clone(), attributes: entry.attributes.clone() };
                published.add_slot_ad(ad);
            } else {
                published.add(&entry.attributes);
            }
        }
        published
    }
}

impl Published {
    fn add(&mut self, attributes: &BTreeMap<String, String>) {
        for (name, expr) in attributes {
            self.attributes.retain(|known, _| !known.eq_ignore_ascii_case(name));
            if self.attributes.len() == MAX_ATTRIBUTES {
                self.left_out = true;
            } else {
                self.attributes.insert(name.clone(), expr.clone());
            }
        }
    }

    fn add_slot_ad(&mut self, ad: ReportedSlotAd) {
        if self.slot_ads.len() == MAX_SLOT_ADS {
            self.left_out = true;
        } else {
            self.slot_ads.push(ad);
        }
    }
}

fn get<'a>(attributes: &'a BTreeMap<String, String>, name: &str) -> Option<&'a String> {
    attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, expr)| expr)
}

#[cfg(test)]
mod tests;
