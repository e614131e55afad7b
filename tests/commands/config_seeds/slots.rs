//! Policy Configuration, *condor_startd* policy: slots, how a machine is divided, and what a dynamic slot gets.
//!
//! Shares of a machine are compared as text here.

use classad::Value;
use condor_config::Config;
use condor_config::knobs::{self, Kind};

use super::support::{eval, holds, startd, value};

/// The types of the machine's slots, from slot 1 on.
fn types(config: &Config, count: u32) -> Vec<Option<u32>> {
    (1..=count).map(|slot| config.type_of_slot(slot).unwrap()).collect()
}

fn partitionable(config: &Config, slot_type: u32) -> Option<bool> {
    config.boolean(&format!("SLOT_TYPE_{slot_type}_PARTITIONABLE")).unwrap()
}

/// Checks definitions of `SLOT_TYPE_<N>`: each alone, and all together, when the last one of each name counts.
fn shares(definitions: &[(&str, &str)]) {
    for (name, wanted) in definitions {
        let config = startd(&format!("{name} = {wanted}\n"));
        assert_eq!(value(&config, name), *wanted);
        assert_eq!(knobs::find(name).unwrap().kind, Kind::Shares);
        assert!(knobs::check(name, wanted).iter().all(|finding| finding.severity != knobs::Severity::Error));
    }
    let lines: Vec<String> = definitions.iter().map(|(name, text)| format!("{name} = {text}\n")).collect();
    let config = startd(&lines.join("\n"));
    for (name, _) in definitions {
        let last = definitions.iter().rev().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(value(&config, name), last, "{name}");
    }
}

#[test]
fn dividing_system_resources_the_same_memory_in_four_ways() {
    shares(&[
        ("SLOT_TYPE_1", "mem=64"),
        ("SLOT_TYPE_1", "mem=1/2"),
        ("SLOT_TYPE_1", "mem=50%"),
        ("SLOT_TYPE_1", "mem=auto"),
    ]);
}

#[test]
fn dividing_system_resources_six_types_of_slots() {
    shares(&[
        ("SLOT_TYPE_1", "cpus=2, ram=128, swap=25%, disk=1/2"),
        ("SLOT_TYPE_2", "cpus=1/2, memory=128, virt=25%, disk=50%"),
        ("SLOT_TYPE_3", "c=1/2, m=50%, v=1/4, disk=1/2"),
        ("SLOT_TYPE_4", "c=25%, m=64, v=1/4, d=25%"),
        ("SLOT_TYPE_5", "25%"),
        ("SLOT_TYPE_6", "1/4"),
    ]);
}

#[test]
fn dividing_system_resources_what_is_not_listed_is_auto() {
    shares(&[("SLOT_TYPE_1", "cpus=1, ram=1/2, swap=50%"), ("SLOT_TYPE_1", "cpus=1, disk=auto, 50%")]);
}

#[test]
fn dividing_system_resources_static_slots_are_one_for_each_core_without_arguments() {
    let config = startd("use FEATURE : StaticSlots\n");
    assert_eq!(config.integer("NUM_SLOTS_TYPE_1").unwrap(), Some(4));
    assert_eq!(partitionable(&config, 1), Some(false));
    assert_eq!(types(&config, 5), [Some(1), Some(1), Some(1), Some(1), None]);
}

#[test]
fn dividing_system_resources_custom_resources_have_quantities() {
    let config = startd("MACHINE_RESOURCE_Cogs = 16\nMACHINE_RESOURCE_actuator = 8\n");
    assert_eq!(config.integer("MACHINE_RESOURCE_cogs").unwrap(), Some(16));
    assert_eq!(config.integer("MACHINE_RESOURCE_ACTUATOR").unwrap(), Some(8));
}

#[test]
fn dividing_system_resources_custom_resources_are_added_to_the_names_if_there_are_any() {
    let example = "if defined MACHINE_RESOURCE_NAMES
  MACHINE_RESOURCE_NAMES = $(MACHINE_RESOURCE_NAMES) Cogs actuator
endif
";
    assert_eq!(startd(example).value("MACHINE_RESOURCE_NAMES").unwrap(), None);
    let config = startd(&format!("MACHINE_RESOURCE_NAMES = GPUs\n{example}"));
    assert_eq!(config.list("MACHINE_RESOURCE_NAMES").unwrap(), ["GPUs", "Cogs", "actuator"]);
}

#[test]
fn dividing_system_resources_one_partitionable_slot_and_two_static_ones() {
    let config = startd(
        "# declare one partitionable slot with half of the Cogs, 6 actuators, and
# 50% of all other resources:
SLOT_TYPE_1 = cogs=50%,actuator=6,50%
SLOT_TYPE_1_PARTITIONABLE = TRUE
NUM_SLOTS_TYPE_1 = 1

# declare two static slots, each with 25% of the Cogs, 1 actuator, and
# 25% of all other resources:
SLOT_TYPE_2 = cogs=25%,actuator=1,25%
SLOT_TYPE_2_PARTITIONABLE = FALSE
NUM_SLOTS_TYPE_2 = 2
",
    );
    assert_eq!(types(&config, 4), [Some(1), Some(2), Some(2), None]);
    assert_eq!([1, 2].map(|slot_type| partitionable(&config, slot_type)), [Some(true), Some(false)]);
    assert_eq!(config.list("SLOT_TYPE_1").unwrap(), ["cogs=50%", "actuator=6", "50%"]);
    assert_eq!(config.list("SLOT_TYPE_2").unwrap(), ["cogs=25%", "actuator=1", "25%"]);
}

#[test]
fn configuration_specific_to_multi_core_machines_each_slot_has_its_own_suspend() {
    let config = startd(
        "SUSPEND = ( (SlotID == 1) && (PolicyForSlot1) ) || \\
          ( (SlotID == 2) && (PolicyForSlot2) )
",
    );
    let policies = "PolicyForSlot1 = LoadAvg > 1; PolicyForSlot2 = LoadAvg > 2; LoadAvg = 1.5; SlotID";
    let slots = [1, 2, 3].map(|slot| format!("{policies} = {slot}"));
    holds(&config, "SUSPEND", &[(&slots[0], "", true), (&slots[1], "", false), (&slots[2], "", false)]);
}

#[test]
fn configuring_gpus_the_template_discovers_them() {
    let config = startd("use feature : GPUs\n");
    assert!(value(&config, "MACHINE_RESOURCE_INVENTORY_GPUs").contains("condor_gpu_discovery"));
    assert!(value(&config, "STARTD_CRON_JOBLIST").contains("GPUs_MONITOR"));
}

#[test]
fn configuring_gpus_more_arguments_are_passed_on() {
    let config = startd("use feature : GPUs\nGPU_DISCOVERY_EXTRA = -extra\n");
    assert!(value(&config, "MACHINE_RESOURCE_INVENTORY_GPUs").ends_with(" -extra"));
}

#[test]
fn configuring_gpus_a_constraint_chooses_the_devices_of_a_slot() {
    let config = startd(
        r#"SLOT_TYPE_1 @=slot
   GPUs = 2 : Capability >= 8.0
   90%
@slot
SLOT_TYPE_1_PARTITIONABLE = TRUE
NUM_SLOTS_TYPE_1 = 1

# declare a small static slot and assign it a specific GPU by id
SLOT_TYPE_2 @=slot
   GPUs = 1 : "GPU-6a96bd13"
   CPUs = 1
   Memory = 10
@slot
SLOT_TYPE_2_PARTITIONABLE = FALSE
NUM_SLOTS_TYPE_2 = 1

# declare two static slots that split up the remaining resources which may or may not include GPUs
SLOT_TYPE_3 = auto
SLOT_TYPE_3_PARTITIONABLE = FALSE
NUM_SLOTS_TYPE_3 = 2
"#,
    );
    let lines = |name| value(&config, name).lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines("SLOT_TYPE_1"), ["GPUs = 2 : Capability >= 8.0", "90%"]);
    assert_eq!(lines("SLOT_TYPE_2"), ["GPUs = 1 : \"GPU-6a96bd13\"", "CPUs = 1", "Memory = 10"]);
    assert_eq!(value(&config, "SLOT_TYPE_3"), "auto");
    assert_eq!(types(&config, 5), [Some(1), Some(2), Some(3), Some(3), None]);
    let whole = [1, 2, 3].map(|slot_type| partitionable(&config, slot_type));
    assert_eq!(whole, [Some(true), Some(false), Some(false)]);
}

/// The attributes that a slot publishes: the names that all slots publish, then its own.
fn published(config: &Config, slot: u32) -> Vec<String> {
    let mut names = config.list("STARTD_ATTRS").unwrap();
    names.extend(config.list(&format!("SLOT{slot}_STARTD_ATTRS")).unwrap());
    names
}

#[test]
fn configuring_startd_attrs_a_slot_adds_names_of_its_own() {
    let config = startd(
        "STARTD_ATTRS = favorite_color, favorite_season
SLOT1_STARTD_ATTRS = favorite_movie
SLOT2_STARTD_ATTRS = favorite_song
",
    );
    assert_eq!(published(&config, 1), ["favorite_color", "favorite_season", "favorite_movie"]);
    assert_eq!(published(&config, 2), ["favorite_color", "favorite_season", "favorite_song"]);
}

#[test]
fn configuring_startd_attrs_a_slot_has_a_value_of_its_own() {
    let config = startd(
        r#"favorite_color = "blue"
favorite_season = "spring"
STARTD_ATTRS = favorite_color, favorite_season
SLOT2_favorite_color = "green"
SLOT3_favorite_season = "summer"
"#,
    );
    for (slot, color, season) in [(1, "blue", "spring"), (2, "green", "spring"), (3, "blue", "summer")] {
        let found = published(&config, slot).into_iter().map(|name| {
            let text = config.attribute_text(slot, None, &name).unwrap().unwrap();
            text.as_str().into_owned()
        });
        let wanted = [color, season].map(|word| format!("\"{word}\""));
        assert_eq!(found.collect::<Vec<_>>(), wanted, "slot{slot}");
    }
}

#[test]
fn dynamic_provisioning_one_partitionable_slot_manages_the_machine() {
    let config =
        startd("NUM_SLOTS = 1\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = TRUE\n");
    assert_eq!(config.integer("NUM_SLOTS").unwrap(), Some(1));
    assert_eq!(types(&config, 2), [Some(1), None]);
    assert_eq!((value(&config, "SLOT_TYPE_1").as_str(), partitionable(&config, 1)), ("100%", Some(true)));
    // The template sets the same in one line.
    let template = startd("use FEATURE : PartitionableSlot\n");
    assert_eq!(value(&template, "SLOT_TYPE_1"), "100%");
    assert_eq!((types(&template, 2), partitionable(&template, 1)), (vec![Some(1), None], Some(true)));
}

#[test]
fn dynamic_provisioning_pslot_preemption_is_switched_on() {
    let config = startd("ALLOW_PSLOT_PREEMPTION = True\n");
    assert_eq!(config.boolean("ALLOW_PSLOT_PREEMPTION").unwrap(), Some(true));
}

#[test]
fn defaults_for_partitionable_slot_sizes_fill_in_what_a_job_does_not_ask_for() {
    let config = startd(
        "JOB_DEFAULT_REQUESTCPUS = 1
JOB_DEFAULT_REQUESTMEMORY = \\
    ifThenElse(MemoryUsage =!= UNDEFINED, MemoryUsage, 1)
JOB_DEFAULT_REQUESTDISK = DiskUsage
",
    );
    for (name, job, wanted) in [
        ("JOB_DEFAULT_REQUESTCPUS", "", 1),
        ("JOB_DEFAULT_REQUESTMEMORY", "", 1),
        ("JOB_DEFAULT_REQUESTMEMORY", "MemoryUsage = 2000", 2000),
        ("JOB_DEFAULT_REQUESTDISK", "DiskUsage = 70", 70),
    ] {
        assert_eq!(eval(&config, name, job, ""), Value::Int(wanted), "{name} {job}");
    }
}

#[test]
fn defaults_for_partitionable_slot_sizes_a_dynamic_slot_may_be_larger_than_the_request() {
    let example = "MODIFY_REQUEST_EXPR_REQUESTCPUS = quantize(RequestCpus, {1})
MODIFY_REQUEST_EXPR_REQUESTMEMORY = quantize(RequestMemory, {128})
MODIFY_REQUEST_EXPR_REQUESTDISK = quantize(RequestDisk, {1024})
";
    let config = startd(example);
    for (name, job, wanted) in [
        ("MODIFY_REQUEST_EXPR_REQUESTCPUS", "RequestCpus = 3", 3),
        ("MODIFY_REQUEST_EXPR_REQUESTMEMORY", "RequestMemory = 100", 128),
        ("MODIFY_REQUEST_EXPR_REQUESTMEMORY", "RequestMemory = 129", 256),
        ("MODIFY_REQUEST_EXPR_REQUESTDISK", "RequestDisk = 1025", 2048),
    ] {
        assert_eq!(eval(&config, name, job, ""), Value::Int(wanted), "{name} {job}");
        // The text says that these are the defaults. The newer default for disk depends on the slot too.
        if !name.ends_with("DISK") {
            assert_eq!(eval(&startd(""), name, job, ""), Value::Int(wanted), "{name} {job}");
        }
    }
}

#[test]
fn enforcing_scratch_disk_usage_names_the_volumes() {
    let config = startd(
        "THINPOOL_VOLUME_GROUP_NAME = vgname\nTHINPOOL_NAME = htcondor\nSTARTD_ENFORCE_DISK_LIMITS = true\n",
    );
    assert_eq!(value(&config, "THINPOOL_VOLUME_GROUP_NAME"), "vgname");
    assert_eq!(value(&config, "THINPOOL_NAME"), "htcondor");
    assert_eq!(config.boolean("STARTD_ENFORCE_DISK_LIMITS").unwrap(), Some(true));
}

fn policy(config: &Config, slot_type: Option<u32>, name: &str) -> String {
    config.policy_text(slot_type, name).unwrap().map(|text| text.as_str().into_owned()).unwrap_or_default()
}

#[test]
fn consumption_policies_are_for_the_machine_or_for_a_type() {
    let machine = startd("CONSUMPTION_POLICY = True\n");
    assert_eq!(policy(&machine, Some(1), "CONSUMPTION_POLICY"), "True");
    let one_type = startd("SLOT_TYPE_2_CONSUMPTION_POLICY = True\n");
    assert_eq!(policy(&one_type, Some(2), "CONSUMPTION_POLICY"), "True");
    assert_eq!(policy(&one_type, Some(1), "CONSUMPTION_POLICY"), "false");
}

#[test]
fn consumption_policies_take_rounded_requests_by_default() {
    let example = "CONSUMPTION_CPUS = quantize(target.RequestCpus,{1})
CONSUMPTION_MEMORY = quantize(target.RequestMemory,{128})
CONSUMPTION_DISK = quantize(target.RequestDisk,{1024})
";
    let job = "RequestCpus = 2; RequestMemory = 300; RequestDisk = 1";
    for config in [startd(example), startd("")] {
        for (name, wanted) in
            [("CONSUMPTION_CPUS", 2), ("CONSUMPTION_MEMORY", 384), ("CONSUMPTION_DISK", 1024)]
        {
            assert_eq!(eval(&config, name, "Cpus = 8", job), Value::Int(wanted), "{name}");
        }
    }
}

#[test]
fn consumption_policies_charge_the_cores_that_were_asked_for() {
    let config = startd(
        "SLOT_TYPE_1 = cpus=8
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 1

SLOT_TYPE_1_CONSUMPTION_POLICY = True
SLOT_TYPE_1_CONSUMPTION_CPUS = TARGET.RequestCpus
SLOT_WEIGHT = Cpus
",
    );
    assert_eq!((types(&config, 2), partitionable(&config, 1)), (vec![Some(1), None], Some(true)));
    assert_eq!(policy(&config, Some(1), "CONSUMPTION_POLICY"), "True");
    assert_eq!(eval(&config, "SLOT_TYPE_1_CONSUMPTION_CPUS", "", "RequestCpus = 3"), Value::Int(3));
    assert_eq!(eval(&config, "SLOT_WEIGHT", "Cpus = 5", ""), Value::Int(5));
}

#[test]
fn consumption_policies_take_custom_resources_into_account() {
    let config = startd(
        "MACHINE_RESOURCE_NAMES = gpus
MACHINE_RESOURCE_gpus = 4
SLOT_TYPE_2 = cpus=8, gpus=4
SLOT_TYPE_2_PARTITIONABLE = True
NUM_SLOTS_TYPE_2 = 1

SLOT_TYPE_2_CONSUMPTION_POLICY = True
SLOT_TYPE_2_CONSUMPTION_gpus = TARGET.RequestGpu
SLOT_WEIGHT = Cpus
",
    );
    assert_eq!(config.list("MACHINE_RESOURCE_NAMES").unwrap(), ["gpus"]);
    assert_eq!(config.integer("MACHINE_RESOURCE_gpus").unwrap(), Some(4));
    assert_eq!((types(&config, 2), partitionable(&config, 2)), (vec![Some(2), None], Some(true)));
    assert_eq!(eval(&config, "SLOT_TYPE_2_CONSUMPTION_GPUS", "", "RequestGpu = 2"), Value::Int(2));
    assert_eq!(policy(&config, Some(2), "CONSUMPTION_POLICY"), "True");
}
