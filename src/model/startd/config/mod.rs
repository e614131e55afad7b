//! Reads the startd's configuration from a policy's text: the knobs that the operator acts on, and remarks about the rest.
//!
//! A policy is for many machines, and its text may depend on the machine: `$(DETECTED_CPUS)` is the number of CPUs of the machine
//! for which the text is read. Therefore [`understand`] reads a text once, for a sample machine, to check it; if the text depends
//! on the machine, [`for_machine`] reads it again for each machine. Macros that have no value here are errors.
//!
//! The value of a knob or attribute for a slot depends on the slot's type and number: `SLOT_TYPE_1_START` overrides `START`, and
//! `SLOT1_Attr` overrides `Attr`.

mod attributes;
mod cron;
mod macros;
mod readers;
mod remarks;
mod suspension;
mod unsensed;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::pool::slot_types::{ConsumptionPolicy, RequestPolicy, SlotTypes};
use crate::pool::{Absence, CronPolicy, Latch, Machine, Policy, SlotConfig, StartdConfig};
use classad::Expr;
use condor_config::{Config, Host, Reader, Reading, Source, ValueError, knobs};

pub use attributes::{in_vain, of_policy};
pub use cron::unlisted_cron_job;
pub use macros::{KNOWN as MACHINE_MACROS, Macros, of_machine};
pub use readers::Readers;
pub use remarks::{Remark, Severity, of_file, of_text, sort};
pub use unsensed::start_not_reported;

/// The knobs of a text that the operator acts on. Fields whose knobs the text does not set are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextConfig {
    /// The configuration of all slots for which neither `types` nor `single` has an entry.
    pub slots: SlotConfig,
    /// The configuration of the slots of a type, by the type's number.
    pub types: BTreeMap<u32, SlotConfig>,
    /// The configuration of single slots, by the slot's number.
    pub single: BTreeMap<u32, SlotConfig>,
    /// `DEFAULT_DRAINING_START_EXPR`.
    pub draining_start: Option<Expr>,
    /// Slot types.
    pub division: SlotTypes,
    /// `STARTD_SLOT_ATTRS` with `SYSTEM_STARTD_SLOT_ATTRS`.
    pub slot_attrs: Vec<String>,
    /// `STARTD_JOB_ATTRS`.
    pub job_attrs: Vec<String>,
    /// `STARTD_PARTITIONABLE_SLOT_ATTRS`.
    pub child_attrs: Vec<String>,
    /// `UID_DOMAIN`.
    pub uid_domain: Option<Box<str>>,
    /// `FILESYSTEM_DOMAIN`.
    pub filesystem_domain: Option<Box<str>>,
    /// `SLOTS_CONNECTED_TO_KEYBOARD`.
    pub keyboard_slots: Option<u32>,
    /// `SLOTS_CONNECTED_TO_CONSOLE`.
    pub console_slots: Option<u32>,
    /// `DISCONNECTED_KEYBOARD_IDLE_BOOST`.
    pub idle_boost: Option<Duration>,
    /// `STARTD_CRON_JOBLIST` and what belongs to it.
    pub cron: Arc<CronPolicy>,
    /// `ABSENT_REQUIREMENTS` and what belongs to it.
    pub absence: Option<Arc<Absence>>,
}

/// The parts of the operator that act on a NodePolicy's text.
const READERS: &[knobs::Reader] = &[knobs::Reader::Startd, knobs::Reader::Collector];

/// The latch that the manual's policies read.
const CPU_BUSY: &str = "CpuBusy";

/// The greatest number of a slot that can have a configuration of its own.
const MAX_SLOTS: u32 = 4096;

/// The slots that a part of the configuration is for: all slots if no field is set.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    /// The slots of this type.
    slot_type: Option<u32>,
    /// The slot of this number.
    slot: Option<u32>,
}

/// The result of reading a text.
#[derive(Clone, Debug)]
pub struct Understood {
    /// The configuration; none if one of the remarks is an error.
    pub config: Option<TextConfig>,
    /// The remarks, in the order of the text.
    pub remarks: Vec<Remark>,
    /// Whether the text may give another configuration for another machine.
    pub by_machine: bool,
    /// The knobs and attributes of the text that a `NodePolicy` also has fields for, each with line and column.
    pub said: Vec<(String, u32, u32)>,
}

/// Reads a policy's text independently of any machine.
pub fn understand(text: &str) -> Understood {
    understand_beside(&[], text)
}

/// Reads a policy's text as [`understand`] does, for slots that have these attributes besides those of the text.
pub fn understand_beside(attributes: &[&str], text: &str) -> Understood {
    let samples = Macros::samples();
    let Some((first, others)) = samples.split_first() else {
        return Understood { config: None, remarks: Vec::new(), by_machine: false, said: Vec::new() };
    };
    let reading = read(text, first);
    let mut remarks = remarks::of_reading(text, &reading, Some(READERS), attributes);
    let mut faults = Vec::new();
    let config = act_on(&reading.config, &mut faults);
    remarks.extend(faults);
    let live = readers::Live::of(text, &reading.config, Some(READERS));
    remarks.extend(macros::unknown(text, &reading.config, &live));
    remarks.extend(unsensed(&reading.config, &config));
    remarks::sort(&mut remarks);
    let usable = remarks.iter().all(|remark| remark.severity != Severity::Error);
    let other = |macros: &Macros| act_on(&read(text, macros).config, &mut Vec::new());
    let by_machine = macros::mentioned(text) || others.iter().any(|macros| other(macros) != config);
    let said = said_at(&reading.config, &config);
    Understood { config: usable.then_some(config), remarks, by_machine, said }
}

/// The configuration of one machine. `common` has the policy's fields, and the text if that depends on the machine; if it does
/// not, the result is `common`.
///
/// # Errors
/// The first value of the text that cannot be used on this machine, with its place.
pub fn for_machine(common: &StartdConfig, machine: &Macros) -> Result<Arc<StartdConfig>, String> {
    let Some(by_machine) = &common.by_machine else { return Ok(Arc::new(common.clone())) };
    let reading = read(&by_machine.text, machine);
    let mut faults: Vec<Remark> = remarks::of_diagnostics(&reading);
    let said = act_on(&reading.config, &mut faults);
    if let Some(fault) = faults.iter().find(|fault| fault.severity == Severity::Error) {
        return Err(fault.to_string());
    }
    let mut own = by_machine.fields.clone();
    said.put_into(&mut own);
    Ok(Arc::new(own))
}

impl TextConfig {
    /// Overrides a configuration with what the text says.
    pub fn put_into(self, config: &mut StartdConfig) {
        let fields = Arc::clone(&config.slots);
        let all = |said: BTreeMap<u32, SlotConfig>| {
            said.into_iter().map(|(key, said)| (key, Arc::new(over(said, &fields)))).collect()
        };
        config.types = all(self.types);
        config.single = all(self.single);
        config.slots = Arc::new(over(self.slots, &fields));
        config.draining_start = self.draining_start;
        config.division = self.division;
        (config.slot_attrs, config.job_attrs) = (self.slot_attrs, self.job_attrs);
        config.child_attrs = self.child_attrs;
        (config.uid_domain, config.filesystem_domain) = (self.uid_domain, self.filesystem_domain);
        (config.keyboard_slots, config.console_slots) = (self.keyboard_slots, self.console_slots);
        config.idle_boost = self.idle_boost.unwrap_or(config.idle_boost);
        config.cron = self.cron;
        config.absence = self.absence;
    }

    /// All configurations of slots in the text: that of all slots, those of types, those of single slots.
    fn all(&self) -> impl Iterator<Item = &SlotConfig> {
        [&self.slots].into_iter().chain(self.types.values()).chain(self.single.values())
    }
}

/// Overrides what the policy's fields say about a slot with what the text says.
fn over(said: SlotConfig, fields: &SlotConfig) -> SlotConfig {
    let kept = fields.attributes.iter().filter(|(name, _)| !publishes(&said, name));
    SlotConfig {
        attributes: kept.cloned().chain(said.attributes.iter().cloned()).collect(),
        policy: said.policy.over(&fields.policy),
        slot_weight: said.slot_weight.or_else(|| fields.slot_weight.clone()),
        requests: said.requests,
        consumption: said.consumption,
        latches: said.latches,
    }
}

/// Whether a slot's configuration publishes this attribute.
fn publishes(slot: &SlotConfig, name: &str) -> bool {
    slot.attributes.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
}

fn read(text: &str, macros: &Macros) -> Reading {
    let host = Host { predefined: macros.pairs(), ..Host::none() };
    Reader::new(host).subsystem("STARTD").guarded().read(&[Source::block("spec.config", text)])
}

/// Reads the knobs that the operator acts on.
fn act_on(config: &Config, faults: &mut Vec<Remark>) -> TextConfig {
    let mut said = TextConfig { slots: slot(config, Of::default(), faults), ..TextConfig::default() };
    for slot_type in types(config) {
        let of = Of { slot_type: Some(slot_type), slot: None };
        said.types.insert(slot_type, slot(config, of, faults));
    }
    for id in single(config) {
        let of = Of { slot_type: ok(config.type_of_slot(id), faults).flatten(), slot: Some(id) };
        said.single.insert(id, slot(config, of, faults));
    }
    if setting_name(config, None, "DEFAULT_DRAINING_START_EXPR").is_some() {
        said.draining_start = ok(config.expr("DEFAULT_DRAINING_START_EXPR"), faults).flatten();
    }
    let division = SlotTypes::read(config);
    faults.extend(division.faults.iter().map(Remark::of_fault));
    said.division = division.types.unwrap_or_default();
    for knob in ["STARTD_SLOT_ATTRS", "SYSTEM_STARTD_SLOT_ATTRS"] {
        said.slot_attrs.extend(ok(config.list(knob), faults).unwrap_or_default());
    }
    said.job_attrs = ok(config.list("STARTD_JOB_ATTRS"), faults).unwrap_or_default();
    said.child_attrs = ok(config.list("STARTD_PARTITIONABLE_SLOT_ATTRS"), faults).unwrap_or_default();
    let mut domain = |knob: &str| {
        let name = setting_name(config, None, knob)?;
        ok(config.value(&name), faults).flatten().map(|value| value.trim().into())
    };
    said.uid_domain = domain("UID_DOMAIN");
    said.filesystem_domain = domain("FILESYSTEM_DOMAIN");
    let mut count = |knob: &str| {
        let found =
            setting_name(config, None, knob).and_then(|name| ok(config.integer(&name), faults).flatten());
        found.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    };
    said.keyboard_slots = count("SLOTS_CONNECTED_TO_KEYBOARD");
    said.console_slots = count("SLOTS_CONNECTED_TO_CONSOLE");
    said.idle_boost =
        count("DISCONNECTED_KEYBOARD_IDLE_BOOST").map(|seconds| Duration::from_secs(seconds.into()));
    said.cron = Arc::new(cron::read(config, faults));
    said.absence = absence(config, faults).map(Arc::new);
    // A knob for all slots is read again for each type and each single slot: its faults are reported once.
    let mut seen: Vec<Remark> = Vec::new();
    faults.retain(|fault| {
        !seen.contains(fault) && {
            seen.push(fault.clone());
            true
        }
    });
    said
}

/// Reads which machines stay listed after their nodes went, and for how long; `None` if `ABSENT_REQUIREMENTS` is not set.
fn absence(config: &Config, faults: &mut Vec<Remark>) -> Option<Absence> {
    let expires_after =
        ok(config.integer("ABSENT_EXPIRE_ADS_AFTER"), faults).flatten().unwrap_or(30 * 24 * 60 * 60);
    let expires_after =
        u64::try_from(expires_after).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let in_good_order = ok(config.boolean("EXPIRE_INVALIDATED_ADS"), faults).flatten().unwrap_or(false);
    let requirements = ok(config.expr("ABSENT_REQUIREMENTS"), faults).flatten()?;
    Some(Absence { requirements, expires_after, in_good_order })
}

/// The slot types of which there are slots.
fn types(config: &Config) -> impl Iterator<Item = u32> {
    (1..=config.last_slot_type()).filter(|kind| {
        config.integer(&format!("NUM_SLOTS_TYPE_{kind}")).ok().flatten().is_some_and(|count| count > 0)
    })
}

/// The numbers of the slots for which the text defines `SLOT<N>_<name>`.
fn single(config: &Config) -> BTreeSet<u32> {
    let number = |name: &str| {
        let rest = name.get(..4).filter(|head| head.eq_ignore_ascii_case("SLOT")).and(name.get(4..))?;
        let (digits, _) = rest.split_once('_')?;
        digits.parse().ok().filter(|number| (1..=MAX_SLOTS).contains(number) && !digits.starts_with('0'))
    };
    config.definitions().filter_map(|definition| number(&definition.name)).collect()
}

/// The custom resources whose requests the text modifies.
fn modified(config: &Config) -> BTreeSet<String> {
    const KNOB: &str = "MODIFY_REQUEST_EXPR_REQUEST";
    let of = |name: &str| {
        let name = name.to_ascii_uppercase();
        let resource = name.get(name.find(KNOB)? + KNOB.len()..)?.to_owned();
        (!["CPUS", "MEMORY", "DISK", ""].contains(&resource.as_str())).then_some(resource)
    };
    config.definitions().filter_map(|definition| of(&definition.name)).collect()
}

/// Reads the configuration of some slots.
fn slot(config: &Config, of: Of, faults: &mut Vec<Remark>) -> SlotConfig {
    let slot_type = of.slot_type;
    let (policy, unusable) = Policy::read(config, slot_type);
    faults.extend(unusable.iter().map(Remark::of_value));
    let mut said = SlotConfig { policy, ..SlotConfig::default() };
    if let Some(name) = weight_setting_name(config, slot_type) {
        said.slot_weight = ok(config.expr(&name), faults).flatten();
    }
    let custom = modified(config);
    let custom: Vec<&str> = custom.iter().map(String::as_str).collect();
    match RequestPolicy::read(config, slot_type.unwrap_or(0), &custom) {
        Ok(requests) => said.requests = Arc::new(requests),
        Err(wrong) => faults.extend(wrong.iter().map(Remark::of_fault)),
    }
    match ConsumptionPolicy::read(config, slot_type.unwrap_or(0)) {
        Ok(consumption) => said.consumption = consumption,
        Err(wrong) => faults.extend(wrong.iter().map(Remark::of_fault)),
    }
    said.latches = latches(config, slot_type, faults);
    for name in published(config, of, faults) {
        let text = config.attribute_text(of.slot.unwrap_or(0), slot_type, &name);
        let Some(text) = ok(text, faults).flatten() else {
            faults.extend(remarks::undefined_attribute(config, slot_type, &name));
            continue;
        };
        if let Some(expr) = ok(config.parse_expr(&name, &text), faults) {
            faults.extend(attributes::of_in_vain(config, &name));
            said.attributes.push((name, expr));
        }
    }
    said
}

/// The name under which the text sets a policy knob for slots of a type: the name with the type's prefix, or else the knob's own
/// name. None if the text does not set the knob.
pub(in crate::startd) fn setting_name(config: &Config, slot_type: Option<u32>, knob: &str) -> Option<String> {
    let of_type = slot_type.map(|kind| format!("SLOT_TYPE_{kind}_{knob}"));
    let own = [format!("STARTD.{knob}"), knob.to_owned()];
    of_type
        .filter(|name| config.definition(name).is_some())
        .or_else(|| own.iter().any(|name| config.definition(name).is_some()).then(|| knob.to_owned()))
}

/// [`setting_name`] for `SLOT_WEIGHT`, whose name with a type's prefix is `SLOT_TYPE_<N>_SlotWeight`.
fn weight_setting_name(config: &Config, slot_type: Option<u32>) -> Option<String> {
    let of_type = slot_type.map(|kind| format!("SLOT_TYPE_{kind}_SlotWeight"));
    of_type
        .filter(|name| config.definition(name).is_some())
        .or_else(|| setting_name(config, slot_type, "SLOT_WEIGHT"))
}

/// The names of the attributes that slots publish: those in `STARTD_ATTRS`, or in the type's list instead if there is one; those in
/// the single slot's list; those in `SYSTEM_STARTD_ATTRS`.
fn published(config: &Config, of: Of, faults: &mut Vec<Remark>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let main =
        setting_name(config, of.slot_type, "STARTD_ATTRS").unwrap_or_else(|| "STARTD_ATTRS".to_owned());
    // The default of SYSTEM_STARTD_ATTRS is not used: it is about the collector, and there is no collector here.
    let system = setting_name(config, None, "SYSTEM_STARTD_ATTRS");
    let own = of.slot.map(|slot| format!("SLOT{slot}_STARTD_ATTRS"));
    for list in [main].into_iter().chain(own).chain(system) {
        for name in ok(config.list(&list), faults).unwrap_or_default() {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                names.push(name);
            }
        }
    }
    names
}

/// The latches of slots: the names in `STARTD_LATCH_EXPRS`, and `CpuBusy` even if it is not listed, because the manual defines
/// CPUBusyTime as "the time in seconds since CPUBusy became True". A listed name for which the text defines no expression is no
/// latch.
fn latches(config: &Config, slot_type: Option<u32>, faults: &mut Vec<Remark>) -> Vec<Latch> {
    let listed = ok(config.list("STARTD_LATCH_EXPRS"), faults).unwrap_or_default();
    let busy = (!listed.iter().any(|name| name.eq_ignore_ascii_case(CPU_BUSY))).then(|| CPU_BUSY.to_owned());
    let mut latches: Vec<Latch> = Vec::new();
    for (name, listed) in listed.into_iter().map(|name| (name, true)).chain(busy.map(|name| (name, false))) {
        let expr = setting_name(config, slot_type, &name).and_then(|said| config.expr(&said).ok().flatten());
        if let Some(expr) = expr
            && !latches.iter().any(|known| known.name.eq_ignore_ascii_case(&name))
        {
            latches.push(Latch { name: name.into(), expr, listed });
        }
    }
    latches
}

/// Returns the value; adds a remark if it cannot be used.
fn ok<T, E: Into<ValueError>>(found: Result<T, E>, faults: &mut Vec<Remark>) -> Option<T> {
    found.map_err(|error| faults.push(Remark::of_value(&error.into()))).ok()
}

/// Remarks about attributes that policies read and that only agents report, and about policies without the one that they need.
fn unsensed(config: &Config, said: &TextConfig) -> Vec<Remark> {
    let of_all = [(None, &said.slots)];
    let all = of_all.into_iter().chain(said.types.iter().map(|(slot_type, slot)| (Some(*slot_type), slot)));
    let of = |(slot_type, slot): (Option<u32>, &SlotConfig)| {
        let name = setting_name(config, slot_type, "START")?;
        let name = if config.definition(&name).is_some() { name } else { format!("STARTD.{name}") };
        let start = slot.policy.start.as_ref()?;
        unsensed::of_unsensed(config, &name, start, |attribute| publishes(slot, attribute))
    };
    let name_of = |slot_type: Option<u32>, knob: &str| {
        let name = setting_name(config, slot_type, knob)?;
        Some(if config.definition(&name).is_some() { name } else { format!("STARTD.{name}") })
    };
    let others = |(slot_type, slot): (Option<u32>, &SlotConfig)| {
        let is_published = |attribute: &str| publishes(slot, attribute);
        unsensed::of_unsensed_policies(config, |knob| name_of(slot_type, knob), is_published)
    };
    let suspension = |(slot_type, _): (Option<u32>, &SlotConfig)| {
        suspension::unwanted(config, |knob| name_of(slot_type, knob))
    };
    let each = |each| [of(each), others(each), suspension(each)];
    let mut remarks: Vec<Remark> = all.flat_map(each).flatten().collect();
    remarks.dedup();
    remarks
}

/// The places of the knobs and attributes that a `NodePolicy` also has fields for.
fn said_at(config: &Config, said: &TextConfig) -> Vec<(String, u32, u32)> {
    let named = |slot_type| {
        [
            ("START", setting_name(config, slot_type, "START")),
            ("SLOT_WEIGHT", weight_setting_name(config, slot_type)),
            ("CLAIM_WORKLIFE", setting_name(config, slot_type, "CLAIM_WORKLIFE")),
        ]
    };
    let named = [None].into_iter().chain(said.types.keys().copied().map(Some)).flat_map(named);
    let named = named.filter_map(|(called, name)| Some((called.to_owned(), name?)));
    let attributes =
        said.all().flat_map(|slot| &slot.attributes).map(|(name, _)| (name.clone(), name.clone()));
    named
        .chain(attributes)
        .map(|(called, name)| {
            let definition =
                config.definition(&name).or_else(|| config.definition(&format!("STARTD.{name}")));
            let place = definition.map(|definition| config.position(definition));
            (called, place.as_ref().map_or(0, |place| place.line), place.map_or(0, |place| place.column))
        })
        .collect()
}

/// Brings a machine's own configuration up to date, if its policy's text depends on the machine: reads the text again if the
/// policy or the machine's macros have changed.
pub fn review(common: &Arc<StartdConfig>, machine: &mut Machine) {
    if common.by_machine.is_none() {
        machine.own_config = None;
        return;
    }
    let macros = of_machine(machine);
    let same = machine
        .own_config
        .as_ref()
        .is_some_and(|own| Arc::ptr_eq(&own.of, common) && own.macros == macros.pairs());
    if !same {
        machine.own_config = Some(crate::pool::OwnConfig {
            of: common.clone(),
            macros: macros.pairs(),
            config: for_machine(common, &macros),
        });
    }
}

#[cfg(test)]
mod tests;
