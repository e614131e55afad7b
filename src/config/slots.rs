//! What a slot sees: the same name can have a value of its own for a slot or for a type of slots.
//!
//! There are two ways, and they do not meet. Policy knobs look at the slot's type only. Attributes that a
//! slot publishes look at the slot, then at its type.

use std::borrow::Cow;

use super::error::ExpandError;
use super::table::{Config, Found};
use super::text::Text;

/// The knobs that a type of slots can have for itself, as `SLOT_TYPE_<N>_<KNOB>`.
const POLICY_KNOBS: &[&str] = &[
    "START",
    "SUSPEND",
    "CONTINUE",
    "PREEMPT",
    "KILL",
    "WANT_SUSPEND",
    "WANT_VACATE",
    "WANT_HOLD",
    "WANT_HOLD_REASON",
    "WANT_HOLD_SUBCODE",
    "CLAIM_WORKLIFE",
    "MAXJOBRETIREMENTTIME",
    "MACHINEMAXVACATETIME",
    "RUNBENCHMARKS",
    "RANK",
    "SLOTWEIGHT",
    "SLOT_WEIGHT",
    "IS_OWNER",
    "CPUBUSY",
    "STARTD_ATTRS",
    "PARTITIONABLE",
    "BACKFILL",
    "NAME_PREFIX",
    "CONSUMPTION_POLICY",
    "NUM_CLAIMS",
    "HIDDEN",
];

/// Types of slots that are looked at.
const MAX_TYPES: u32 = 64;

impl Config {
    /// Whether a knob is one that looks at the slot's type and never at the slot.
    pub fn is_policy_knob(name: &str) -> bool {
        let plain = ["_VANILLA", "_VM"].into_iter().find_map(|end| {
            let (start, rest) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
            rest.eq_ignore_ascii_case(end).then_some(start)
        });
        let name = plain.unwrap_or(name);
        let request = name.get(..20).is_some_and(|start| start.eq_ignore_ascii_case("MODIFY_REQUEST_EXPR_"));
        request || POLICY_KNOBS.iter().any(|knob| knob.eq_ignore_ascii_case(name))
    }

    /// A policy knob for a slot of a type: `SLOT_TYPE_<N>_<NAME>` where it is defined, even if it is empty, or
    /// else the knob.
    pub fn policy_text(&self, slot_type: Option<u32>, name: &str) -> Result<Option<Text>, ExpandError> {
        match self.of_type(slot_type, name) {
            Some((own, found)) => self.expand_found(&own, Some(found)),
            None => self.text(name),
        }
    }

    /// An attribute for a slot: `<PREFIX><SLOT>_<NAME>`, or else `SLOT_TYPE_<N>_<NAME>`, or else the name itself,
    /// the first of them that is defined, even if it is empty. The prefix is STARTD_RESOURCE_PREFIX, which is
    /// `slot` where it is not set.
    pub fn attribute_text(
        &self,
        slot: u32,
        slot_type: Option<u32>,
        name: &str,
    ) -> Result<Option<Text>, ExpandError> {
        match self.of_slot(slot, slot_type, name)? {
            Some((own, found)) => self.expand_found(&own, Some(found)),
            None => self.text(name),
        }
    }

    fn of_type(&self, slot_type: Option<u32>, name: &str) -> Option<(String, Found<'_>)> {
        self.defined(&format!("SLOT_TYPE_{}_{name}", slot_type?))
    }

    fn of_slot(
        &self,
        slot: u32,
        slot_type: Option<u32>,
        name: &str,
    ) -> Result<Option<(String, Found<'_>)>, ExpandError> {
        let prefix = self.value("STARTD_RESOURCE_PREFIX")?.unwrap_or_else(|| "SLOT".to_owned());
        let own = self.defined(&format!("{prefix}{slot}_{name}"));
        Ok(own.or_else(|| self.of_type(slot_type, name)))
    }

    /// What a slot sees under a name, whichever way the name takes.
    pub fn slot_text(&self, slot: u32, name: &str) -> Result<Option<Text>, ExpandError> {
        let slot_type = self.type_of_slot(slot)?;
        if Self::is_policy_knob(name) {
            return self.policy_text(slot_type, name);
        }
        self.attribute_text(slot, slot_type, name)
    }

    /// The same as it is written: the text of what [`Config::slot_text`] expands.
    pub fn slot_raw(&self, slot: u32, name: &str) -> Result<Option<Cow<'_, str>>, ExpandError> {
        let slot_type = self.type_of_slot(slot)?;
        let own = if Self::is_policy_knob(name) {
            self.of_type(slot_type, name)
        } else {
            self.of_slot(slot, slot_type, name)?
        };
        Ok(own.map(|(_, found)| found).or_else(|| self.knob(name)).map(Found::raw))
    }

    /// The type of a slot: slots are numbered type by type, `NUM_SLOTS_TYPE_<N>` of each. `None` where the types
    /// have fewer slots.
    pub fn type_of_slot(&self, slot: u32) -> Result<Option<u32>, ExpandError> {
        let mut last = 0;
        for kind in 1..=MAX_TYPES {
            // What cannot be read as a number counts none: reading says so elsewhere.
            let count = self.integer(&format!("NUM_SLOTS_TYPE_{kind}")).unwrap_or_default().unwrap_or(0);
            last += count.max(0);
            if i64::from(slot) <= last {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    fn defined(&self, name: &str) -> Option<(String, Found<'_>)> {
        self.knob(name).map(|found| (name.to_owned(), found))
    }
}
