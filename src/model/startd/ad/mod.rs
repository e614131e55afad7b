//! The slot's ad: what matchmaking and policy see of a slot.
//!
//! Source: the manual's machine ClassAd attributes. Memory is in MiB and disk in KiB, as there.

mod consumption;
mod cron;
mod devices;
mod host;
mod idle;
mod latch;
mod machine;
mod rollup;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::pool::{
    Claim, LastAds, Latched, Load, Machine, MachineSlot, Phase, Pool, Resources, Slot, SlotConfig, SlotKind,
    SlotName, StartdConfig, State, Time, Unclaimed,
};
use classad::{Ad, Env, Expr, Value};
use condor_config::knobs::default_of;

use super::policy::running_job_ad;

pub use cron::{Broken, broken, goes_into, is_own};
pub(super) use latch::look as look_at_latches;
pub(super) use machine::htcondor_arch;

/// Parses an expression of the operator's own. Tests check that these expressions parse.
pub(super) fn constant(text: &str) -> Expr {
    Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error))
}

/// As [`constant`], for a text of which the machines of a pool have few variants, such as ClockMin, which depends on the time zone.
/// The ads of all machines share the expression, which would take kilobytes in each.
pub(super) fn shared(text: &str) -> Expr {
    /// The most texts that are remembered. The ads' expressions depend on the time zones and on the names of resources.
    const MOST: usize = 1_000;
    static KNOWN: Mutex<BTreeMap<Box<str>, Expr>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(expr) = known.get(text) {
        return expr.clone();
    }
    let expr = constant(text);
    if known.len() < MOST {
        known.insert(text.into(), expr.clone());
    }
    expr
}

static REQUIREMENTS: LazyLock<Expr> = LazyLock::new(|| constant("START && WithinResourceLimits"));
static FALSE: LazyLock<Expr> = LazyLock::new(|| constant("false"));
static TRUE: LazyLock<Expr> = LazyLock::new(|| constant("true"));
/// `SYSTEM_STARTD_JOB_ATTRS`.
static SYSTEM_JOB_ATTRS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = default_of(Some("STARTD"), "SYSTEM_STARTD_JOB_ATTRS").unwrap_or_default();
    names.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
});
static CPUS: LazyLock<Expr> = LazyLock::new(|| constant("Cpus"));

/// Attributes that each slot sets itself, whatever its policy says.
const OF_SLOTS: [&str; 10] = [
    "Activity",
    "Cpus",
    "Disk",
    "EnteredCurrentActivity",
    "EnteredCurrentState",
    "Memory",
    "Name",
    "SlotID",
    "SlotType",
    "State",
];

/// Whether each slot sets this attribute itself, so that a policy gives the attribute in vain.
pub(super) fn is_of_slots(name: &str) -> bool {
    OF_SLOTS.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The ad that all slots of a machine share, without what any policy says.
pub fn machine_ad(machine: &Machine) -> Ad {
    machine.made_ad().unwrap_or_else(|| machine::make(machine))
}

/// The ad of a machine slot. The machine keeps this ad and the one that its slots share, so that neither is made again before
/// something about the machine changes. None if the machine has no such slot.
pub fn keep_slot_ad(
    (machine, last): (&mut Machine, &mut LastAds),
    id: u32,
    config: &Arc<StartdConfig>,
) -> Option<Ad> {
    let shared = keep_machine_ad((machine, last));
    let (slot, slots) = (machine.machine_slots.get(&id)?, machine.slot_count());
    let available = machine.available_in(slot);
    if let Some(ad) = slot.made_ad(config, &shared, slots, &available, &machine.expected) {
        return Some(ad);
    }
    let mut ad = machine_slot_ad(shared.clone(), machine, slot, config);
    set_available(&mut ad, machine, &available);
    last.take_slots(&mut ad);
    let expected = Arc::clone(&machine.expected);
    machine.machine_slots.get_mut(&id)?.keep_ad(config, shared, slots, available, expected, ad.clone());
    Some(ad)
}

/// The ad that all slots of a machine share. The machine keeps it for the slots whose ads are made next.
pub fn keep_machine_ad((machine, last): (&mut Machine, &mut LastAds)) -> Ad {
    machine.made_ad().unwrap_or_else(|| {
        let mut made = machine::make(machine);
        last.take_machines(&mut made);
        machine.keep_ad(made.clone());
        made
    })
}

/// Adds to the shared ad what is the slot's own: what the policy says about the slot, and the slot's size.
fn slot_ad(
    shared: Ad,
    machine: &Machine,
    startd: &StartdConfig,
    id: u32,
    total: &Resources,
    load: Load,
    latched: &[Latched],
) -> Ad {
    let mut ad = shared;
    idle::set(&mut ad, machine, startd, id, load);
    set_domains(&mut ad, startd);
    let config = machine.slot_config(startd, id);
    latch::publish(&mut ad, &config.latches, latched);
    set_resources_of(&mut ad, "TotalSlot", machine, total);
    ad.set("TotalSlots", count(machine.slot_count()));
    if let Some(vacate) = &config.policy.machine_max_vacate_time {
        ad.insert("MachineMaxVacateTime", vacate.clone());
    }
    if let Some(retirement) = &config.policy.max_job_retirement_time {
        ad.insert("MaxJobRetirementTime", retirement.clone());
    }
    // These attributes are the machine's, but they change with each job. They are not in the shared ad, so that it is made less
    // often.
    for (name, expr) in machine.expected.iter() {
        ad.insert(*name, expr.clone());
    }
    let meanwhile = machine.draining.as_ref().and_then(|draining| draining.start.clone());
    ad.insert("Start", meanwhile.unwrap_or_else(|| start(config)));
    ad.insert("Rank", config.policy.rank.clone().unwrap_or_else(|| Expr::literal(0.0)));
    ad.insert("SlotWeight", config.slot_weight.clone().unwrap_or_else(|| CPUS.clone()));
    // As in HTCondor, what a cron job says replaces a default in STARTD_ATTRS.
    for (name, expr) in config.attributes.iter().filter(|(name, _)| !cron::says(machine, name)) {
        ad.insert(name.as_str(), expr.clone());
    }
    if let Some(policy) = &config.consumption {
        consumption::set(&mut ad, machine, policy);
    }
    devices::set_assigned(&mut ad, machine, total);
    set_available(&mut ad, machine, total);
    ad
}

/// Sets what is left of a slot: amounts and devices.
fn set_available(ad: &mut Ad, machine: &Machine, available: &Resources) {
    set_resources_of(ad, "", machine, available);
    devices::set_available(ad, machine, available);
}

/// The ad of a machine slot: of what is left of a partitionable slot, or of a static slot that is not claimed.
pub fn unclaimed_slot_ad(machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> Ad {
    let shared = machine_ad(machine);
    let available = machine.available_in(slot);
    slot.made_ad(config, &shared, machine.slot_count(), &available, &machine.expected).unwrap_or_else(|| {
        let mut ad = machine_slot_ad(shared, machine, slot, config);
        set_available(&mut ad, machine, &available);
        ad
    })
}

/// The ad that a machine slot would have if nothing of the machine were claimed.
pub fn whole_slot_ad(machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> Ad {
    machine_slot_ad(machine_ad(machine), machine, slot, config)
}

/// The ad that a machine slot would have if nothing of the machine were claimed, and the machine were not drained.
pub fn undrained_slot_ad(machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> Ad {
    let mut ad = whole_slot_ad(machine, slot, config);
    if machine.draining.is_some() {
        ad.insert("Requirements", REQUIREMENTS.clone());
        ad.insert("Start", start(machine.slot_config(config, slot.id)));
        for drain in ["Draining", "DrainReason", "DrainingDeadline", "DrainingRequestId"] {
            ad.remove(drain);
        }
    }
    ad
}

/// START of a policy.
fn start(config: &SlotConfig) -> Expr {
    config.policy.start.clone().unwrap_or_else(|| TRUE.clone())
}

fn machine_slot_ad(shared: Ad, machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> Ad {
    let mut ad = slot_ad(shared, machine, config, slot.id, &slot.total, slot.load, &slot.latched);
    set_name(&mut ad, &slot.name(&machine.facts.name));
    set_type(&mut ad, slot);
    set_state(&mut ad, slot.state(), slot.phase());
    match slot.kind {
        SlotKind::Partitionable => {
            ad.set("PartitionableSlot", true);
            ad.set("SlotType", "Partitionable");
            ad.set("NumDynamicSlots", count(slot.dynamic.len()));
            if let Some(policy) = &machine.slot_config(config, slot.id).consumption {
                consumption::set_limits(&mut ad, machine, policy, slot.total.cpus);
            }
        }
        SlotKind::Static => ad.set("SlotType", "Static"),
    }
    cron::finish(&mut ad, machine, config, slot.id);
    ad
}

fn set_type(ad: &mut Ad, slot: &MachineSlot) {
    if let Some(slot_type) = slot.slot_type {
        ad.set("SlotTypeID", i64::from(slot_type));
    }
}

/// The ad of a dynamic slot that is carved from the partitionable slot with this ad, before the dynamic slot is claimed.
pub(super) fn carved_slot_ad(ad: &Ad, machine: &Machine, slot: &MachineSlot, resources: &Resources) -> Ad {
    let mut ad = ad.clone();
    for gone in ["PartitionableSlot", "NumDynamicSlots"] {
        ad.remove(gone);
    }
    let name = slot.name(&machine.facts.name);
    set_name(&mut ad, &SlotName { dynamic: Some(slot.free_dynamic_id()), ..name });
    set_dynamic(&mut ad, slot.id);
    set_resources_of(&mut ad, "TotalSlot", machine, resources);
    devices::set_assigned(&mut ad, machine, resources);
    set_available(&mut ad, machine, resources);
    set_state(&mut ad, State::Unclaimed(Unclaimed::Idle), slot.phase());
    ad
}

fn set_dynamic(ad: &mut Ad, parent: u32) {
    ad.set("DynamicSlot", true);
    ad.set("SlotType", "Dynamic");
    ad.set("ParentSlotId", i64::from(parent));
}

/// The ad of a claimed slot. While a job is there, the ad contains the job's attributes that `STARTD_JOB_ATTRS` names. The
/// retirement that the policy grants the job is evaluated in `env`.
pub fn claimed_slot_ad(
    machine: &Machine,
    config: &StartdConfig,
    slot: &Slot,
    job: Option<&Ad>,
    env: &Env,
) -> Ad {
    let policy = &machine.slot_config(config, slot.name().slot).policy;
    let granted = policy.max_job_retirement_time.as_ref();
    let looks_at_it = !config.job_attrs.is_empty() || granted.is_some_and(|expr| expr.as_literal().is_none());
    let running = job.filter(|_| looks_at_it).map(|job| running_job_ad(job, slot.running()));
    let job = running.as_ref().or(job);
    let (shared, latched) = (machine_ad(machine), slot.latched());
    let own = slot.name();
    let found = devices::found(machine, slot);
    let resources = found.as_ref().unwrap_or(slot.resources());
    let mut ad = slot_ad(shared, machine, config, own.slot, resources, slot.load(), latched);
    for name in config.job_attrs.iter().chain(SYSTEM_JOB_ATTRS.iter()) {
        if let Some(expr) = job.and_then(|job| job.get(name)) {
            ad.insert(name.as_str(), expr.clone());
        }
    }
    set_excess(&mut ad, machine);
    set_name(&mut ad, own);
    if let Some(machine_slot) = machine.machine_slots.get(&own.slot) {
        set_type(&mut ad, machine_slot);
    }
    set_state(&mut ad, slot.state(), slot.phase());
    if own.dynamic.is_some() {
        set_dynamic(&mut ad, own.slot);
    } else {
        ad.set("SlotType", "Static");
    }
    if matches!(slot.state(), State::Matched | State::Backfill(_) | State::Preempting(_)) {
        // The manual: "the machine lies about its START expression while in this state". The slot takes no other match.
        ad.insert("Requirements", FALSE.clone());
    }
    set_claim(&mut ad, slot.claim());
    set_usage(&mut ad, machine, slot);
    if let Some(draining) = &machine.draining {
        ad.set("AcceptedWhileDraining", slot.claim().since > draining.since);
    }
    super::policy::publish(&mut ad, policy, slot, job, env);
    cron::finish(&mut ad, machine, config, own.slot);
    ad
}

/// The whole ad of a slot, as `condor_status -l` shows it. The ad of a partitionable slot includes the lists about its dynamic
/// slots. None if there is no such slot.
pub fn published_ad(pool: &Pool, name: &SlotName, now: Time) -> Option<Ad> {
    let machine = pool.machines().get(&name.machine)?;
    let config = pool.startd(machine);
    if let Some(slot) = pool.slots().get(name) {
        return Some(claimed_slot_ad(
            machine,
            &config,
            slot,
            rollup::job_of(pool, name),
            &Env::at(now.secs()),
        ));
    }
    let slot = machine.machine_slots.get(&name.slot).filter(|_| name.dynamic.is_none())?;
    let mut ad = unclaimed_slot_ad(machine, slot, &config);
    if slot.kind == SlotKind::Partitionable {
        rollup::set(&mut ad, pool, machine, slot, now);
    }
    Some(ad)
}

/// Sets what the slot's job uses, if the machine's agent tells.
fn set_usage(ad: &mut Ad, machine: &Machine, slot: &Slot) {
    let report = machine.report.as_ref().filter(|_| machine.agent);
    let usage = slot.active().zip(report).and_then(|(running, report)| report.usage.get(&running.pod.uid));
    let Some(usage) = usage else { return };
    let amounts = [
        ("MemoryUsage", usage.memory_mib),
        ("ResidentSetSize", usage.resident_kib),
        ("DiskUsage", usage.disk_kib),
        ("BlockReads", usage.block_reads),
        ("BlockWrites", usage.block_writes),
        ("BlockReadKbytes", usage.block_read_kib),
        ("BlockWriteKbytes", usage.block_write_kib),
    ];
    for (name, amount) in amounts.into_iter().filter_map(|(name, amount)| Some((name, amount?))) {
        ad.set(name, amount);
    }
    if let Some(cpus) = usage.cpus {
        ad.set("CpusUsage", cpus);
    }
    // A resource may have a name of which the attribute is one that slots have by themselves.
    for (name, value) in usage.metrics.iter().filter(|(name, _)| !cron::is_own(name)) {
        ad.set(&**name, *value);
    }
}

/// Sets which submitter claimed the slot, and for which job.
fn set_claim(ad: &mut Ad, claim: &Claim) {
    let (submitter, namespace) = (claim.submitter.as_str(), &*claim.last.job.namespace);
    let owner = match &claim.group {
        Some(group) => submitter.strip_prefix(group.as_str()).and_then(|rest| rest.strip_prefix('.')),
        None => None,
    };
    ad.set("RemoteUser", submitter);
    ad.set("RemoteOwner", owner.unwrap_or(submitter));
    if let Some(group) = &claim.group {
        ad.set("AccountingGroup", submitter);
        ad.set("RemoteGroup", group.as_str());
    }
    let negotiated = claim.group.as_ref().filter(|_| !claim.regrouped);
    ad.set("RemoteNegotiatingGroup", negotiated.map_or("<none>", |group| group.as_str()));
    ad.set("RemoteAutoregroup", claim.regrouped);
    if !claim.limits.is_empty() {
        ad.set("MatchedConcurrencyLimits", &*claim.limits.to_string());
    }
    // A namespace stands for a schedd: it is a queue of its own.
    ad.set("RemoteScheddName", namespace);
    ad.set("JobId", &*claim.last.job_id());
    ad.set("GlobalJobId", &*format!("{namespace}#{}#{}", claim.last.job_id(), claim.last.job.uid.as_str()));
}

/// Sets `TotalExcess<R>`: how much the claimed slots have beyond what the node has for the pool, because pods outside the pool came
/// or the node shrank. No default expression reads these attributes; a policy's `PREEMPT` may.
fn set_excess(ad: &mut Ad, machine: &Machine) {
    let mut excess = machine.carved.clone();
    excess.subtract(&machine.total);
    set_resources(ad, "TotalExcess", &excess.floor_at_zero());
}

/// Sets the domains that the policy names. The shared ad has the machine's name for those that it does not name.
fn set_domains(ad: &mut Ad, config: &StartdConfig) {
    for (name, domain) in [("UidDomain", &config.uid_domain), ("FileSystemDomain", &config.filesystem_domain)]
    {
        if let Some(domain) = domain {
            ad.set(name, &**domain);
        }
    }
}

fn count(things: usize) -> i64 {
    i64::try_from(things).unwrap_or(i64::MAX)
}

fn set_name(ad: &mut Ad, name: &SlotName) {
    ad.set("Name", &*name.to_string());
    ad.set("SlotID", i64::from(name.slot));
    if let Some(dynamic) = name.dynamic {
        ad.set("DSlotID", i64::from(dynamic));
    }
}

/// Sets a state and activity, and since when `phase` says the slot is in them.
fn set_state(ad: &mut Ad, state: State, phase: &Phase) {
    ad.set("State", state.state());
    ad.set("Activity", state.activity());
    ad.set("EnteredCurrentState", phase.entered_state().secs());
    ad.set("EnteredCurrentActivity", phase.entered_activity().secs());
}

/// Sets the amounts of all resources. A resource that the machine has and the slot lacks is 0.
fn set_resources_of(ad: &mut Ad, prefix: &str, machine: &Machine, resources: &Resources) {
    for name in machine.total.by_classad_name().into_keys() {
        ad.set(format!("{prefix}{name}"), 0_i64);
    }
    set_resources(ad, prefix, resources);
}

fn set_resources(ad: &mut Ad, prefix: &str, resources: &Resources) {
    ad.set(&*format!("{prefix}Cpus"), resources.cpus);
    ad.set(&*format!("{prefix}Memory"), resources.memory_mib);
    ad.set(&*format!("{prefix}Disk"), resources.disk_kib);
    for (name, amount) in resources.by_classad_name() {
        ad.set(&*format!("{prefix}{name}"), amount);
    }
}

#[cfg(test)]
mod tests;
