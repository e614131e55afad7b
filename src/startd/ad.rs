//! The slot's ad: what matchmaking and policy see of a slot.
//!
//! Source: the manual's machine ClassAd attributes. Memory is in MiB and disk in KiB, as there.

use std::sync::{Arc, LazyLock};

use crate::classad::{Ad, Expr, Value};
use crate::pool::{
    DrainedFor, Draining, LastInput, Machine, Resources, Sensed, Slot, SlotName, Standard, Standing,
    StartdConfig, State, Time,
};

/// An expression of ours, which a test parses.
fn constant(text: &str) -> Expr {
    Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error))
}

static REQUIREMENTS: LazyLock<Expr> = LazyLock::new(|| constant("START && WithinResourceLimits"));
static FALSE: LazyLock<Expr> = LazyLock::new(|| constant("false"));
static TRUE: LazyLock<Expr> = LazyLock::new(|| constant("true"));
static CPUS: LazyLock<Expr> = LazyLock::new(|| constant("Cpus"));

/// What all slots of a machine share, before any policy.
pub fn machine_ad(machine: &Machine) -> Ad {
    machine.made_ad().unwrap_or_else(|| make_machine_ad(machine))
}

/// The ad of a standing slot; it and the machine's own are kept, so that neither is made again while nothing of the
/// machine has changed.
pub fn keep_slot_ad(machine: &mut Machine, id: u32, config: &Arc<StartdConfig>) -> Option<Ad> {
    let shared = machine.made_ad().unwrap_or_else(|| {
        let made = make_machine_ad(machine);
        machine.keep_ad(made.clone());
        made
    });
    let slot = machine.standing.get(&id)?;
    let available = machine.available_in(slot);
    if let Some(ad) = slot.made_ad(config, &shared, &available) {
        return Some(ad);
    }
    let mut ad = standing_slot_ad(shared.clone(), machine, slot, config);
    set_resources(&mut ad, "", &available);
    machine.standing.get_mut(&id)?.keep_ad(config, shared, available, ad.clone());
    Some(ad)
}

fn make_machine_ad(machine: &Machine) -> Ad {
    let facts = &machine.facts;
    let mut ad = Ad::new();
    ad.set("MyType", "Machine");
    ad.set("Machine", facts.name.as_str());
    ad.set("Arch", htcondor_arch(&facts.arch));
    ad.set("OpSys", &*facts.os.to_ascii_uppercase());
    ad.set("DetectedCpus", facts.allocatable.whole().cpus);
    ad.set("DetectedMemory", facts.allocatable.whole().memory_mib);
    set_resources(&mut ad, "Total", &machine.total);
    ad.set("MachineResources", &*machine_resources(&machine.total));
    ad.insert("NodeLabels", Expr::literal(Value::from(labels(machine))));
    ad.insert("WithinResourceLimits", within_resource_limits(&machine.total));
    ad.insert("Requirements", REQUIREMENTS.clone());
    if let Some(sensed) = &machine.sensed {
        set_sensed(&mut ad, sensed);
    }
    if let Some(draining) = &machine.draining {
        set_draining(&mut ad, draining);
    }
    ad
}

fn set_draining(ad: &mut Ad, draining: &Draining) {
    ad.set("Draining", true);
    ad.set("DrainReason", &*draining.reason);
    ad.set("LastDrainStartTime", draining.since.secs());
    match &draining.why {
        DrainedFor::Request(request) => ad.set("DrainingRequestId", &**request),
        DrainedFor::Cordon => ad.set("DrainingRequestId", "cordon"),
    }
    if draining.start.is_none() {
        ad.insert("Requirements", FALSE.clone());
    }
}

/// A slot's own ad over what its machine's slots share: what the policy says of it, and how large it is.
fn slot_ad(shared: Ad, machine: &Machine, config: &StartdConfig, id: u32, total: &Resources) -> Ad {
    let config = machine.slot_config(config, id);
    let mut ad = shared;
    set_resources(&mut ad, "TotalSlot", total);
    let meanwhile = machine.draining.as_ref().and_then(|draining| draining.start.clone());
    ad.insert("Start", meanwhile.or_else(|| config.policy.start.clone()).unwrap_or_else(|| TRUE.clone()));
    ad.insert("Rank", config.policy.rank.clone().unwrap_or_else(|| Expr::literal(0.0)));
    ad.insert("SlotWeight", config.slot_weight.clone().unwrap_or_else(|| CPUS.clone()));
    for (name, expr) in &config.attributes {
        ad.insert(name.as_str(), expr.clone());
    }
    set_resources(&mut ad, "", total);
    ad
}

/// A standing slot's ad: what is left to carve of a partitionable slot, or a static slot that nobody has claimed.
pub fn unclaimed_slot_ad(machine: &Machine, slot: &Standing, config: &StartdConfig) -> Ad {
    let shared = machine_ad(machine);
    let available = machine.available_in(slot);
    slot.made_ad(config, &shared, &available).unwrap_or_else(|| {
        let mut ad = standing_slot_ad(shared, machine, slot, config);
        set_resources(&mut ad, "", &available);
        ad
    })
}

/// A standing slot's ad as if nothing were claimed of the machine: what an idle machine would offer.
pub fn whole_slot_ad(machine: &Machine, slot: &Standing, config: &StartdConfig) -> Ad {
    standing_slot_ad(machine_ad(machine), machine, slot, config)
}

fn standing_slot_ad(shared: Ad, machine: &Machine, slot: &Standing, config: &StartdConfig) -> Ad {
    let mut ad = slot_ad(shared, machine, config, slot.id, &slot.total);
    set_name(&mut ad, &slot.name(&machine.facts.name));
    set_type(&mut ad, slot);
    set_state(&mut ad, slot.state, slot.entered_state, slot.entered_activity);
    match slot.kind {
        Standard::Partitionable => {
            ad.set("PartitionableSlot", true);
            ad.set("SlotType", "Partitionable");
            ad.set("NumDynamicSlots", i64::try_from(slot.dynamic.len()).unwrap_or(i64::MAX));
        }
        Standard::Static => ad.set("SlotType", "Static"),
    }
    ad
}

fn set_type(ad: &mut Ad, slot: &Standing) {
    if let Some(slot_type) = slot.slot_type {
        ad.set("SlotTypeID", i64::from(slot_type));
    }
}

/// A claimed slot's ad: that of a dynamic slot, or of a static one with its claim.
pub fn claimed_slot_ad(machine: &Machine, config: &StartdConfig, slot: &Slot) -> Ad {
    let mut ad = slot_ad(machine_ad(machine), machine, config, slot.name.slot, &slot.resources);
    set_name(&mut ad, &slot.name);
    if let Some(standing) = machine.standing.get(&slot.name.slot) {
        set_type(&mut ad, standing);
    }
    set_state(&mut ad, slot.state, slot.entered_state, slot.entered_activity);
    if slot.name.dynamic.is_some() {
        ad.set("DynamicSlot", true);
        ad.set("SlotType", "Dynamic");
    } else {
        ad.set("SlotType", "Static");
    }
    if matches!(slot.state, State::Matched | State::Preempting(_)) {
        // "the machine lies about its START expression while in this state": it takes no other match.
        ad.insert("Requirements", FALSE.clone());
    }
    ad.set("RemoteUser", slot.claim.submitter.as_str());
    if let Some(group) = &slot.claim.group {
        ad.set("AccountingGroup", group.as_str());
    }
    ad.set("JobId", &*slot.claim.job_id());
    super::policy::publish(&mut ad, &machine.slot_config(config, slot.name.slot).policy, slot);
    ad
}

/// What the owner does. Idle times grow by themselves, so that they stand in the ad as expressions. The load is the owner's
/// alone: that of the pool is left out of both attributes, whose difference is what policies look at.
fn set_sensed(ad: &mut Ad, sensed: &Sensed) {
    for (name, input) in [("KeyboardIdle", sensed.keyboard), ("ConsoleIdle", sensed.console)] {
        match input {
            LastInput::Ongoing => ad.set(name, 0_i64),
            LastInput::At(time) => ad.insert(name, constant(&format!("time() - {}", time.secs()))),
        }
    }
    ad.set("LoadAvg", sensed.owner_load);
    ad.set("CondorLoadAvg", 0.0);
}

fn set_name(ad: &mut Ad, name: &SlotName) {
    ad.set("Name", &*name.to_string());
    ad.set("SlotID", i64::from(name.slot));
    if let Some(dynamic) = name.dynamic {
        ad.set("DSlotID", i64::from(dynamic));
    }
}

fn set_state(ad: &mut Ad, state: State, entered_state: Time, entered_activity: Time) {
    ad.set("State", state.state());
    ad.set("Activity", state.activity());
    ad.set("EnteredCurrentState", entered_state.secs());
    ad.set("EnteredCurrentActivity", entered_activity.secs());
}

fn set_resources(ad: &mut Ad, prefix: &str, resources: &Resources) {
    ad.set(&*format!("{prefix}Cpus"), resources.cpus);
    ad.set(&*format!("{prefix}Memory"), resources.memory_mib);
    ad.set(&*format!("{prefix}Disk"), resources.disk_kib);
    for (name, amount) in resources.by_classad_name() {
        ad.set(&*format!("{prefix}{name}"), amount);
    }
}

fn machine_resources(total: &Resources) -> String {
    let mut names = vec!["Cpus".to_owned(), "Memory".to_owned(), "Disk".to_owned()];
    names.extend(total.by_classad_name().into_keys());
    names.join(" ")
}

/// The node's labels as a nested ad: `TARGET.NodeLabels.'topology.kubernetes.io/zone'`.
fn labels(machine: &Machine) -> Ad {
    let mut ad = Ad::new();
    for (key, value) in machine.facts.labels.iter() {
        ad.set(key.as_str(), value.as_str());
    }
    ad
}

/// `HTCondor`'s name of an architecture.
pub(super) fn htcondor_arch(arch: &str) -> &str {
    match arch {
        "amd64" => "X86_64",
        "386" => "INTEL",
        "arm64" => "aarch64",
        other => other,
    }
}

/// `WithinResourceLimits`, the clause by which a slot refuses what it cannot hold. Disk is left out where the node
/// reports no ephemeral storage: there it is not managed.
fn within_resource_limits(total: &Resources) -> Expr {
    let mut clauses = vec![
        "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus".to_owned(),
        "MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory".to_owned(),
    ];
    if total.disk_kib > 0 {
        clauses.push("MY.Disk > 0 && TARGET.RequestDisk <= MY.Disk".to_owned());
    }
    for name in total.by_classad_name().into_keys() {
        clauses.push(format!("(TARGET.Request{name} is UNDEFINED || MY.{name} >= TARGET.Request{name})"));
    }
    constant(&clauses.join(" && "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::classad::{Env, symmetric_match};
    use crate::pool::{Capacity, MachineFacts, SlotConfig};

    fn machine() -> Machine {
        let facts = MachineFacts {
            name: "node1".into(),
            arch: "amd64".into(),
            os: "linux".into(),
            labels: Arc::new(BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), "a".to_owned())])),
            allocatable: Capacity {
                milli_cpu: 8_000,
                memory: 16 << 30,
                disk: 100 << 30,
                extended: BTreeMap::from([("nvidia.com/gpu".into(), 2)]),
            },
            ready: true,
            cordoned: false,
            taints: vec![],
        };
        Machine::new(facts, Capacity::default(), Time::from_secs(1_000))
    }

    fn ad_of(machine: &Machine, config: &StartdConfig) -> Ad {
        unclaimed_slot_ad(machine, &machine.standing[&1], config)
    }

    #[test]
    fn a_partitionable_slot_says_what_it_has() {
        let ad = ad_of(&machine(), &StartdConfig::default());
        let text = ad.to_long();
        for line in [
            "Name = \"slot1@node1\"",
            "Cpus = 8",
            "Memory = 16384",
            "TotalSlotCpus = 8",
            "GPUs = 2",
            "Arch = \"X86_64\"",
            "OpSys = \"LINUX\"",
            "PartitionableSlot = true",
            "MachineResources = \"Cpus Memory Disk GPUs\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_is_sensed_of_the_owner_is_published_and_idle_times_grow() {
        let mut machine = machine();
        let value = |machine: &Machine, name: &str, now: i64| {
            ad_of(machine, &StartdConfig::default()).eval_attr(name, None, &Env::at(now))
        };
        assert!(value(&machine, "KeyboardIdle", 5_000).is_undefined());
        let (keyboard, console) =
            (LastInput::At(Time::from_secs(2_000)), LastInput::At(Time::from_secs(1_500)));
        machine.sensed = Some(Sensed { keyboard, console, owner_load: 0.25 });
        assert_eq!(value(&machine, "KeyboardIdle", 5_000), Value::from(3_000_i64));
        assert_eq!(value(&machine, "ConsoleIdle", 5_000), Value::from(3_500_i64));
        assert_eq!(value(&machine, "LoadAvg", 5_000), Value::from(0.25));
        let (keyboard, console) = (LastInput::Ongoing, LastInput::Ongoing);
        machine.sensed = Some(Sensed { keyboard, console, owner_load: 1.0 });
        assert_eq!(value(&machine, "KeyboardIdle", 5_000), Value::from(0_i64));
    }

    #[test]
    fn an_ad_that_was_kept_is_the_one_that_would_be_made() {
        let config = Arc::new(StartdConfig::default());
        let policy = crate::pool::Policy { start: Some(FALSE.clone()), ..Default::default() };
        let other = Arc::new(SlotConfig { policy, ..SlotConfig::default() }.into());
        let mut machine = machine();
        let ongoing = LastInput::Ongoing;
        let changes: &[fn(&mut Machine)] = &[
            |_| {},
            |machine| machine.carved.cpus = 3,
            |machine| machine.standing.get_mut(&1).unwrap().carved.cpus = 3,
            |machine| {
                machine.standing.get_mut(&1).unwrap().dynamic.insert(1);
            },
            |machine| machine.standing.get_mut(&1).unwrap().state = State::Owner,
            |machine| machine.standing.get_mut(&1).unwrap().entered_state = Time::from_secs(3_000),
            |machine| machine.standing.get_mut(&1).unwrap().total.cpus = 5,
            |machine| machine.facts.allocatable.milli_cpu = 9_000,
            Machine::recount,
            |machine| machine.facts.labels = Arc::new(BTreeMap::from([("zone".into(), "a".into())])),
        ];
        for change in changes {
            keep_slot_ad(&mut machine, 1, &config);
            change(&mut machine);
            for config in [&config, &other] {
                let slot = &machine.standing[&1];
                let mut fresh = standing_slot_ad(make_machine_ad(&machine), &machine, slot, config);
                set_resources(&mut fresh, "", &machine.available_in(slot));
                assert_eq!(ad_of(&machine, config), fresh);
                assert_eq!(keep_slot_ad(&mut machine, 1, config), Some(fresh));
            }
        }
        machine.sensed = Some(Sensed { keyboard: ongoing, console: ongoing, owner_load: 1.0 });
        let ad = ad_of(&machine, &other);
        assert_eq!(ad.eval_attr("KeyboardIdle", None, &Env::at(0)), Value::from(0_i64));
    }

    #[test]
    fn what_does_not_fit_does_not_match() {
        let ad = ad_of(&machine(), &StartdConfig::default());
        for (job, fits) in [
            ("[RequestCpus = 8; RequestMemory = 16384; RequestDisk = 1; Requirements = true]", true),
            ("[RequestCpus = 9; RequestMemory = 1; RequestDisk = 1; Requirements = true]", false),
            ("[RequestCpus = 1; RequestMemory = 16385; RequestDisk = 1; Requirements = true]", false),
            ("[RequestCpus = 1; RequestMemory = 1; RequestDisk = 104857601; Requirements = true]", false),
            (
                "[RequestCpus = 1; RequestMemory = 1; RequestDisk = 1; RequestGPUs = 2; Requirements = true]",
                true,
            ),
            (
                "[RequestCpus = 1; RequestMemory = 1; RequestDisk = 1; RequestGPUs = 3; Requirements = true]",
                false,
            ),
            ("[RequestMemory = 1; RequestDisk = 1; Requirements = true]", false),
            (
                "[RequestCpus = 1; RequestMemory = 1; RequestDisk = 1; \
                 Requirements = TARGET.NodeLabels.'topology.kubernetes.io/zone' =?= \"a\"]",
                true,
            ),
        ] {
            let job = Ad::parse_new(job).unwrap();
            assert_eq!(symmetric_match(&job, &ad, &Env::at(2_000)), fits, "{job}");
        }
    }
}
