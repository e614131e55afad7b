//! The values that a slot sees: a name may have a value of its own for a slot, or for a type of slots.
//!
//! There are two ways, which do not mix. A policy knob looks at the slot's type only. An attribute that a slot
//! publishes looks at the slot, then at its type.

use std::borrow::Cow;

use super::error::ExpandError;
use super::table::{Config, Found};
use super::text::Text;

/// The knobs that a type of slots may have for itself, as `SLOT_TYPE_<N>_<KNOB>`.
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
    "ISOWNER",
    "CPUBUSY",
    "STARTD_ATTRS",
    "PARTITIONABLE",
    "BACKFILL",
    "NAME_PREFIX",
    "CONSUMPTION_POLICY",
    "NUM_CLAIMS",
    "HIDDEN",
];

/// The default of `MAX_SLOT_TYPES`.
const USUAL_TYPES: u32 = 10;

impl Config {
    /// The highest number that a type of slots can have, whatever `MAX_SLOT_TYPES` says.
    pub const MOST_SLOT_TYPES: u32 = 1000;

    /// The highest number of a type of slots: `MAX_SLOT_TYPES`. HTCondor ignores what is set for types of higher numbers. A value
    /// that is no number counts as the default.
    pub fn last_slot_type(&self) -> u32 {
        let said = self.integer("MAX_SLOT_TYPES").ok().flatten();
        said.map_or(USUAL_TYPES, |last| {
            u32::try_from(last.max(0)).unwrap_or(u32::MAX).min(Self::MOST_SLOT_TYPES)
        })
    }

    /// The number of the type that a name is about, such as 3 for `SLOT_TYPE_3_START` and `NUM_SLOTS_TYPE_3`.
    pub fn slot_type_of(name: &str) -> Option<u32> {
        let after = |prefix: &str| {
            let (head, tail) = name.split_at_checked(prefix.len())?;
            head.eq_ignore_ascii_case(prefix).then_some(tail)
        };
        let rest = after("SLOT_TYPE_").or_else(|| after("NUM_SLOTS_TYPE_"))?;
        rest.split('_').next()?.parse().ok()
    }

    /// Whether a knob looks at the slot's type only, never at the slot.
    pub fn is_policy_knob(name: &str) -> bool {
        let plain = ["_VANILLA", "_VM"].into_iter().find_map(|end| {
            let (start, rest) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
            rest.eq_ignore_ascii_case(end).then_some(start)
        });
        let name = plain.unwrap_or(name);
        let request = name.get(..20).is_some_and(|start| start.eq_ignore_ascii_case("MODIFY_REQUEST_EXPR_"));
        request || POLICY_KNOBS.iter().any(|knob| knob.eq_ignore_ascii_case(name))
    }

    /// The value of a policy knob for a type of slots: of `SLOT_TYPE_<N>_<NAME>` if it is defined, even if it is
    /// empty, else of the knob itself.
    pub fn policy_text(&self, slot_type: Option<u32>, name: &str) -> Result<Option<Text>, ExpandError> {
        match self.of_type(slot_type, name) {
            Some((own, found)) => self.expand_found(&own, Some(found)),
            None => self.text(name),
        }
    }

    /// The value of an attribute for a slot: the first of `<PREFIX><SLOT>_<NAME>`, `SLOT_TYPE_<N>_<NAME>` and the name
    /// itself that is defined, even if it is empty. The prefix is STARTD_RESOURCE_PREFIX, by default `slot`.
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

    /// The value that a slot sees under a name: [`Config::policy_text`] for a policy knob, else
    /// [`Config::attribute_text`].
    pub fn slot_text(&self, slot: u32, name: &str) -> Result<Option<Text>, ExpandError> {
        let slot_type = self.type_of_slot(slot)?;
        if Self::is_policy_knob(name) {
            return self.policy_text(slot_type, name);
        }
        self.attribute_text(slot, slot_type, name)
    }

    /// As [`Config::slot_text`], but unexpanded.
    pub fn slot_raw(&self, slot: u32, name: &str) -> Result<Option<Cow<'_, str>>, ExpandError> {
        let slot_type = self.type_of_slot(slot)?;
        let own = if Self::is_policy_knob(name) {
            self.of_type(slot_type, name)
        } else {
            self.of_slot(slot, slot_type, name)?
        };
        Ok(own.map(|(_, found)| found).or_else(|| self.knob(name)).map(Found::raw))
    }

    /// The type of a slot: slots are numbered type by type, `NUM_SLOTS_TYPE_<N>` of each type. `None`: all types
    /// together have fewer slots.
    pub fn type_of_slot(&self, slot: u32) -> Result<Option<u32>, ExpandError> {
        let mut last = 0;
        for kind in 1..=self.last_slot_type() {
            // A value that is no number counts as 0; the readers of NUM_SLOTS_TYPE_N report it.
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
