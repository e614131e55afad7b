//! The content of a slot's ad.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::kit;
use crate::pool::{
    Activation, Assignment, Benchmarks, Capacity, JobKey, LastInput, PodRef, ReportFacts, Running, Sensed,
    SlotConfig, System, Usage,
};
use classad::{Env, symmetric_match};

fn machine() -> Machine {
    let mut facts = kit::machine("node1", 8, 16);
    facts.labels = Arc::new(BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), "a".to_owned())]));
    facts.allocatable.extended.insert("nvidia.com/gpu".into(), 2);
    Machine::new(facts, Capacity::default(), Time::from_secs(1_000))
}

fn ad_of(machine: &Machine, config: &StartdConfig) -> Ad {
    unclaimed_slot_ad(machine, &machine.machine_slots[&1], config)
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

/// A policy can give slots any attribute but those that each slot sets itself.
#[test]
fn what_slots_set_themselves_no_policy_replaces() {
    let mine = Value::from("mine");
    let slots = SlotConfig {
        attributes: OF_SLOTS
            .iter()
            .chain(&["Arch"])
            .map(|name| ((*name).to_owned(), Expr::literal("mine")))
            .collect(),
        ..SlotConfig::default()
    };
    let config: StartdConfig = slots.into();
    let machine = machine();
    let whole = ad_of(&machine, &config);
    let carved = carved_slot_ad(&whole, &machine, &machine.machine_slots[&1], &Resources::default());
    for ad in [whole, carved] {
        let replaced = |name: &str| ad.eval_attr(name, None, &Env::at(5_000)) == mine;
        for name in OF_SLOTS {
            assert!(ad.contains(name) && !replaced(name) && is_of_slots(&name.to_lowercase()), "{name}");
        }
        assert!(replaced("Arch") && !is_of_slots("Arch"));
    }
}

#[test]
fn what_is_sensed_of_the_owner_is_published_and_idle_times_grow() {
    let mut machine = machine();
    let value = |machine: &Machine, name: &str, now: i64| {
        ad_of(machine, &StartdConfig::default()).eval_attr(name, None, &Env::at(now))
    };
    assert!(value(&machine, "KeyboardIdle", 5_000).is_undefined());
    let (keyboard, console) = (LastInput::At(Time::from_secs(2_000)), LastInput::At(Time::from_secs(1_500)));
    machine.sensed = Some(Sensed { keyboard, console, owner_load: 0.25 });
    machine.machine_slots.get_mut(&1).unwrap().load.owner = 0.25;
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
        |machine| machine.machine_slots.get_mut(&1).unwrap().carved.cpus = 3,
        |machine| {
            machine.machine_slots.get_mut(&1).unwrap().dynamic.insert(1);
        },
        |machine| machine.machine_slots.get_mut(&1).unwrap().recall(State::Owner, Time::default()),
        |machine| machine.machine_slots.get_mut(&1).unwrap().recall(State::Owner, Time::from_secs(3_000)),
        |machine| machine.machine_slots.get_mut(&1).unwrap().total.cpus = 5,
        |machine| machine.facts.allocatable.milli_cpu = 9_000,
        Machine::recount,
        |machine| machine.facts.labels = Arc::new(BTreeMap::from([("zone".into(), "a".into())])),
    ];
    let mut last = LastAds::default();
    for change in changes {
        keep_slot_ad((&mut machine, &mut last), 1, &config);
        change(&mut machine);
        for config in [&config, &other] {
            let slot = &machine.machine_slots[&1];
            let mut fresh = machine_slot_ad(machine::make(&machine), &machine, slot, config);
            set_available(&mut fresh, &machine, &machine.available_in(slot));
            assert_eq!(ad_of(&machine, config), fresh);
            assert_eq!(keep_slot_ad((&mut machine, &mut last), 1, config), Some(fresh));
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
        ("[RequestCpus = 1; RequestMemory = 1; RequestDisk = 1; RequestGPUs = 2; Requirements = true]", true),
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

/// "The attributes that are included in the machine's ClassAd": those of the manual's list that a machine here can know, and
/// what newer startds publish beside them.
#[test]
fn every_machine_attribute_of_the_manual_that_can_be_known() {
    let mut machine = machine();
    machine.facts.system = System { image: "Ubuntu 24.04.1 LTS".into(), kernel: "6.8.0".into() };
    machine.report = Some(Arc::new(ReportFacts {
        benchmarks: Some(Benchmarks { mips: 1, kflops: 2, at: Time::from_secs(3) }),
        virtual_memory_kib: Some(4),
        ..ReportFacts::of(machine.facts.name.clone())
    }));
    let at = LastInput::At(Time::from_secs(2_000));
    machine.sensed = Some(Sensed { keyboard: at, console: at, owner_load: 0.25 });
    let ad = ad_of(&machine, &StartdConfig::default());
    for name in "Activity Arch ClockDay ClockMin CondorLoadAvg ConsoleIdle Cpus CurrentRank Disk EnteredCurrentActivity \
                 FileSystemDomain KeyboardIdle KFlops LoadAvg Machine Memory Mips MyType Name OpSys Requirements State \
                 TargetType UidDomain VirtualMemory"
        .split_whitespace()
    {
        assert!(ad.contains(name), "3.6.1: {name}");
    }
    for name in "DetectedCpus DetectedMemory EnteredCurrentState HasContainer HasDocker LastBenchmark MachineMaxVacateTime MachineResources \
                 MyCurrentTime NumDynamicSlots OpSysAndVer OpSysLegacy OpSysLongName OpSysMajorVer OpSysName \
                 OpSysShortName OpSysVer PartitionableSlot Rank RetirementTimeRemaining SlotID SlotType SlotTypeID \
                 SlotWeight Start TotalCondorLoadAvg TotalCpus TotalDisk TotalLoadAvg TotalMemory TotalSlotCpus \
                 TotalSlotDisk TotalSlotMemory TotalSlots TotalVirtualMemory UtsnameMachine UtsnameNodename \
                 UtsnameRelease UtsnameSysname WithinResourceLimits"
        .split_whitespace()
    {
        assert!(ad.contains(name), "{name}");
    }
}

/// "There are a few attributes that are automatically inserted into the machine ClassAd whenever a resource is in the Claimed
/// state."
#[test]
fn a_claimed_slot_says_whose_it_is() {
    let machine = machine();
    let claim = Claim {
        negotiator: crate::pool::NegotiatorId::Unnamed,
        regrouped: false,
        id: "c".into(),
        submitter: "physics.higgs.alice".into(),
        group: Some("physics.higgs".into()),
        weight: 1.0,
        limits: crate::pool::limits::Wants::default(),
        since: Time::from_secs(1),
        last: Assignment {
            job: JobKey { uid: "u".into(), namespace: "lab".into(), name: "pi".into() },
            cluster_id: 152,
            proc: 3,
        },
    };
    let name = SlotName { machine: "node1".into(), slot: 1, dynamic: Some(2) };
    let busy = State::Claimed(crate::pool::Claimed::Busy);
    let resources = Resources { cpus: 1, ..Resources::default() };
    let mut slot = Slot::new(name, resources, claim, Phase::starting(busy, Time::from_secs(1)));
    let pod = PodRef { namespace: "lab".into(), name: "pi-3".into(), uid: "p".into() };
    let started = Some(Time::from_secs(5));
    slot.set_activation(Activation::Active(Box::new(Running { started, ..Running::that_runs(pod) })));
    let config = StartdConfig { uid_domain: Some("lab.org".into()), ..StartdConfig::default() };
    let text = claimed_slot_ad(&machine, &config, &slot, None, &Env::at(0)).to_long();
    assert!(!text.contains("MemoryUsage"), "nobody tells what the job uses");
    for line in [
        "AccountingGroup = \"physics.higgs.alice\"",
        "DSlotID = 2",
        "GlobalJobId = \"lab#152.3#u\"",
        "JobId = \"152.3\"",
        "JobStart = 5",
        "ParentSlotId = 1",
        "RemoteGroup = \"physics.higgs\"",
        "RemoteAutoregroup = false",
        "RemoteNegotiatingGroup = \"physics.higgs\"",
        "RemoteOwner = \"alice\"",
        "RemoteScheddName = \"lab\"",
        "RemoteUser = \"physics.higgs.alice\"",
        "UidDomain = \"lab.org\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let mut machine = machine;
    let usage = Usage {
        memory_mib: Some(300),
        disk_kib: Some(70),
        cpus: Some(0.5),
        block_reads: Some(8),
        block_writes: Some(9),
        block_read_kib: Some(80),
        block_write_kib: Some(90),
        metrics: [("GPUsAverageUsage".into(), 0.75), ("StateUsage".into(), 2.0), ("CpusUsage".into(), 9.0)]
            .into(),
        ..Usage::default()
    };
    let report = ReportFacts { usage: [("p".into(), usage)].into(), ..ReportFacts::of("node1".into()) };
    (machine.agent, machine.report) = (true, Some(Arc::new(report)));
    let text = claimed_slot_ad(&machine, &config, &slot, None, &Env::at(0)).to_long();
    for line in [
        "MemoryUsage = 300",
        "CpusUsage = 0.5",
        "DiskUsage = 70",
        "BlockReads = 8",
        "BlockWrites = 9",
        "BlockReadKbytes = 80",
        "BlockWriteKbytes = 90",
        "GPUsAverageUsage = 0.75",
        "StateUsage = 2.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("ResidentSetSize"), "an amount that the agent does not know is left out");
    machine.agent = false;
    let text = claimed_slot_ad(&machine, &config, &slot, None, &Env::at(0)).to_long();
    assert!(!text.contains("MemoryUsage"), "what a silent agent told counts no longer");
}

/// Attributes that most machines share take memory once.
#[test]
fn machines_share_what_their_ads_have_in_common() {
    let (config, mut last) = (Arc::new(StartdConfig::default()), LastAds::default());
    let mut ad_of = |mut machine: Machine| keep_slot_ad((&mut machine, &mut last), 1, &config).unwrap();
    let ads = [
        ad_of(machine()),
        ad_of(Machine::new(kit::machine("node2", 8, 16), Capacity::default(), Time::default())),
    ];
    let address = |ad: &Ad, name: &str| ad.get(name).unwrap().address();
    // The first two are of the machine, and the third is of the slot.
    for (name, shared) in [("Arch", true), ("Machine", false), ("TotalSlots", true)] {
        assert_eq!(address(&ads[0], name) == address(&ads[1], name), shared, "{name}");
    }
}
