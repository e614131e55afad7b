//! The manual's examples, and what must hold of every division.

use proptest::prelude::*;

use super::*;
use classad::Ad;
use condor_config::{Host, Reader, Source};

pub(super) fn config(text: &str) -> Config {
    Reader::new(Host::none())
        .subsystem("STARTD")
        .read(&[Source::block("policy", text)])
        .into_config()
        .unwrap()
}

fn types(text: &str) -> SlotTypes {
    let reading = SlotTypes::read(&config(text));
    let mut errors = reading.faults.iter().filter(|fault| fault.severity == condor_config::Severity::Error);
    assert_eq!(errors.next(), None, "{text}");
    reading.types.unwrap()
}

fn faults(text: &str) -> Vec<String> {
    let reading = SlotTypes::read(&config(text));
    assert!(reading.types.is_none(), "{text}");
    reading.faults.iter().map(ToString::to_string).collect()
}

/// 4 cores and 256 MB, as in the manual's example.
fn machine() -> MachineTotals {
    MachineTotals {
        cpus: 4,
        memory_mib: 256,
        disk_kib: Some(1_000_000),
        swap_kib: Some(1000),
        custom: Vec::new(),
    }
}

fn gpus(devices: &[(&str, f64)]) -> CustomTotal {
    let device = |(id, capability): &(&str, f64)| Device {
        id: (*id).into(),
        properties: Ad::new().with("Capability", *capability),
    };
    CustomTotal {
        name: "GPUs".to_owned(),
        resource: "nvidia.com/gpu".into(),
        count: i64::try_from(devices.len()).unwrap(),
        devices: devices.iter().map(device).collect(),
    }
}

/// CPUs, memory, swap and disk of each slot.
fn shape(slots: &[LaidOutSlot]) -> Vec<(i64, i64, i64, i64)> {
    let shape = |slot: &LaidOutSlot| {
        let has = &slot.resources;
        (has.cpus, has.memory_mib, slot.swap_kib.unwrap(), has.disk_kib)
    };
    slots.iter().map(shape).collect()
}

fn refusal(text: &str, machine: &MachineTotals) -> String {
    types(text).lay_out(machine).unwrap_err().to_string()
}

#[test]
fn by_default_a_machine_is_one_partitionable_slot_with_everything() {
    let slots = types("").lay_out(&machine()).unwrap();
    assert_eq!(shape(&slots), [(4, 256, 1000, 1_000_000)]);
    assert_eq!((slots[0].slot, slots[0].slot_type, slots[0].kind), (1, 0, Kind::Partitionable));
    assert_eq!(types(""), SlotTypes::default());
}

#[test]
fn num_slots_divides_evenly() {
    let slots = types("NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\n").lay_out(&machine()).unwrap();
    assert_eq!(shape(&slots), [(2, 128, 500, 500_000), (2, 128, 500, 500_000)]);
    assert_eq!(slots[1].kind, Kind::Static);
    assert!(types("NUM_SLOTS = 0\n").lay_out(&machine()).unwrap().is_empty());
    // "If variable NUM_SLOTS is not defined, it defaults to the number of cores": where slots are static.
    assert_eq!(types("SLOT_TYPE_0_PARTITIONABLE = False\n").lay_out(&machine()).unwrap().len(), 4);
    // "NUM_SLOTS may not be used to make HTCondor advertise more slots than there are cores".
    assert_eq!(
        refusal("NUM_SLOTS = 5\n", &machine()),
        "slot1 (type 0): 4 of Cpus is left for the 5 slots that share it, less than 1 each; make fewer slots, or give the \
         others less"
    );
}

#[test]
fn the_manual_s_types_are_what_it_says() {
    let half = (2, 128, 250, 500_000);
    let quarter = (1, 64, 250, 250_000);
    for (shares, expected) in [
        ("cpus=2, ram=128, swap=25%, disk=1/2", half),
        ("cpus=1/2, memory=128, virt=25%, disk=50%", half),
        ("c=1/2, m=50%, v=1/4, disk=1/2", half),
        ("c=25%, m=64, v=1/4, d=25%", quarter),
        ("25%", quarter),
        ("1/4", quarter),
        // "the disk share is set to auto, number of cores is 1, and everything else is 50%"
        ("cpus=1, ram=1/2, swap=50%", (1, 128, 500, 1_000_000)),
        ("cpus=1, disk=auto, 50%", (1, 128, 500, 1_000_000)),
    ] {
        let text = format!("SLOT_TYPE_1 = {shares}\nNUM_SLOTS_TYPE_1 = 1\n");
        let slots = types(&text).lay_out(&machine()).unwrap();
        assert_eq!(shape(&slots), [expected], "{shares}");
    }
}

#[test]
fn the_same_memory_in_four_ways() {
    let machine = MachineTotals { memory_mib: 128, ..machine() };
    for share in ["64", "1/2", "50%", "auto"] {
        let text = format!("SLOT_TYPE_1 = mem={share}\nNUM_SLOTS_TYPE_1 = 2\n");
        let slots = types(&text).lay_out(&machine).unwrap();
        assert_eq!(
            slots.iter().map(|slot| slot.resources.memory_mib).collect::<Vec<_>>(),
            [64, 64],
            "{share}"
        );
    }
}

#[test]
fn the_rest_is_divided_evenly() {
    // "if one slot is defined to use 10% of the memory and the rest define it as auto [...], then the rest of the slots
    // will evenly divide 90% of the memory between themselves".
    let text = "SLOT_TYPE_1 = mem=10%\nNUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_2 = 2\n";
    let machine = MachineTotals { memory_mib: 1000, ..machine() };
    let slots = types(text).lay_out(&machine).unwrap();
    assert_eq!(slots.iter().map(|slot| slot.resources.memory_mib).collect::<Vec<_>>(), [100, 450, 450]);
}

#[test]
fn cogs_and_actuators() {
    let text = "MACHINE_RESOURCE_Cogs = 16\nMACHINE_RESOURCE_actuator = 8\n\
                SLOT_TYPE_1 = cogs=50%,actuator=6,50%\nSLOT_TYPE_1_PARTITIONABLE = TRUE\nNUM_SLOTS_TYPE_1 = 1\n\
                SLOT_TYPE_2 = cogs=25%,actuator=1,25%\nSLOT_TYPE_2_PARTITIONABLE = FALSE\nNUM_SLOTS_TYPE_2 = 2\n";
    let types = types(text);
    let custom = types.declared().iter().map(Declared::total).collect();
    let slots = types.lay_out(&MachineTotals { custom, ..machine() }).unwrap();
    assert_eq!(shape(&slots), [(2, 128, 500, 500_000), (1, 64, 250, 250_000), (1, 64, 250, 250_000)],);
    let has = |name| slots.iter().map(|slot| slot.resources.amount(name)).collect::<Vec<_>>();
    assert_eq!((has("Cogs"), has("actuator")), (vec![8, 4, 4], vec![6, 1, 1]));
    assert_eq!(
        slots.iter().map(|slot| slot.kind).collect::<Vec<_>>(),
        [Kind::Partitionable, Kind::Static, Kind::Static]
    );
    assert_eq!(slots.iter().map(|slot| slot.slot_type).collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn gpus_by_capability_and_by_id() {
    let text = "SLOT_TYPE_1 @=slot\n   GPUs = 2 : Capability >= 8.0\n   90%\n@slot\nSLOT_TYPE_1_PARTITIONABLE = TRUE\n\
                NUM_SLOTS_TYPE_1 = 1\n\
                SLOT_TYPE_2 @=slot\n   GPUs = 1 : \"GPU-6a96bd13\"\n   CPUs = 1\n   Memory = 10\n@slot\n\
                SLOT_TYPE_2_PARTITIONABLE = FALSE\nNUM_SLOTS_TYPE_2 = 1\n\
                SLOT_TYPE_3 = auto\nSLOT_TYPE_3_PARTITIONABLE = FALSE\nNUM_SLOTS_TYPE_3 = 2\n";
    let custom = gpus(&[("GPU-aaaa", 7.5), ("GPU-6a96bd13", 7.0), ("GPU-cccc", 8.0), ("GPU-dddd", 8.6)]);
    let machine = MachineTotals { cpus: 32, memory_mib: 10_000, custom: vec![custom], ..machine() };
    let slots = types(text).lay_out(&machine).unwrap();
    let devices = |slot: &LaidOutSlot| slot.resources.devices_of("nvidia.com/gpu").join(" ");
    assert_eq!(
        slots.iter().map(devices).collect::<Vec<_>>(),
        ["GPU-cccc GPU-dddd", "GPU-6a96bd13", "GPU-aaaa", ""]
    );
    assert_eq!(
        slots.iter().map(|slot| slot.resources.amount("nvidia.com/gpu")).collect::<Vec<_>>(),
        [2, 1, 1, 0]
    );
    assert!((slots[0].cpus - 28.8).abs() < 1e-9, "{}", slots[0].cpus);
    assert_eq!(slots.iter().map(|slot| slot.resources.cpus).collect::<Vec<_>>(), [28, 1, 1, 1]);

    let poor = MachineTotals {
        custom: vec![gpus(&[("GPU-aaaa", 7.5), ("GPU-6a96bd13", 7.0), ("c", 8.0)])],
        ..machine
    };
    assert_eq!(
        refusal(text, &poor),
        "slot1 (type 1) is to have 2 GPUs, and 1 of those that are free are what the type asks for"
    );
}

#[test]
fn templates_divide_machines() {
    let text = "use feature : PartitionableSlot(1, 50%)\nuse feature : StaticSlots(2, 2)\n";
    let slots = types(text).lay_out(&machine()).unwrap();
    assert_eq!(shape(&slots), [(2, 128, 500, 500_000), (1, 64, 250, 250_000), (1, 64, 250, 250_000)]);
    let kinds: Vec<Kind> = slots.iter().map(|slot| slot.kind).collect();
    assert_eq!(kinds, [Kind::Partitionable, Kind::Static, Kind::Static]);
}

#[test]
fn what_a_machine_has_not_is_refused_with_its_name() {
    for (text, refused) in [
        (
            "SLOT_TYPE_1 = mem=100\nNUM_SLOTS_TYPE_1 = 3\n",
            "SLOT_TYPE_1: slot 3 of the type is to have 100 of Memory, and the slots before it leave 56; give its slots less, \
             or make fewer of them",
        ),
        (
            "SLOT_TYPE_2 = gpus=1\nNUM_SLOTS_TYPE_2 = 1\n",
            "SLOT_TYPE_2 gives its slots 1 of gpus, which this machine does not have; a fraction of it, or 0, would be nothing \
             here",
        ),
        (
            "NUM_SLOTS_TYPE_1 = 4096\nNUM_SLOTS_TYPE_2 = 1\n",
            "4097 slots are more than the 4096 that a machine can have",
        ),
    ] {
        assert_eq!(refusal(text, &machine()), refused, "{text}");
    }
    // One configuration does for machines with and without GPUs.
    assert!(types("SLOT_TYPE_1 = gpus=50%\nNUM_SLOTS_TYPE_1 = 1\n").lay_out(&machine()).is_ok());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, fault) in [
        (
            "SLOT_TYPE_1 = cpus=2, mem=lots\nNUM_SLOTS_TYPE_1 = 1\n",
            "policy, line 1, column 23: SLOT_TYPE_1: lots is no share: expected a number, a percentage, a fraction, auto or \
             minimal",
        ),
        (
            "SLOT_TYPE_1 = 2\nNUM_SLOTS_TYPE_1 = 1\n",
            "policy, line 1, column 15: SLOT_TYPE_1: 2 is no share of every resource: write a percentage, a fraction, auto or \
             minimal, or name the resource as in cpus=2",
        ),
        (
            "SLOT_TYPE_1 = Cogs = 1\nNUM_SLOTS_TYPE_1 = 1\n",
            "policy, line 1, column 15: SLOT_TYPE_1: Cogs is no share: expected a number, a percentage, a fraction, auto or \
             minimal",
        ),
        (
            "SLOT_TYPE_1 @=end\n cpus = 1\n  GPUs = 1 : Capability >=\n@end\nNUM_SLOTS_TYPE_1 = 1\n",
            "policy, line 3, column 26: SLOT_TYPE_1: Capability >= is no constraint: expected an operand after '>=', found \
             end of input",
        ),
        (
            "SLOT_TYPE_1 @=end\n cpus = 1\n  GPUs = 1 : Capability => 8\n@end\nNUM_SLOTS_TYPE_1 = 1\n",
            "policy, line 3, column 25: SLOT_TYPE_1: Capability => 8 is no constraint: expected an operator or the end of the \
             expression, found '='; write >= to compare",
        ),
        ("NUM_SLOTS_TYPE_1 = x\n", "policy, line 1, column 20: NUM_SLOTS_TYPE_1 is x, which is no integer"),
        (
            "NUM_SLOTS = -1\n",
            "policy, line 1, column 13: NUM_SLOTS is -1: a machine can have 0 to 4096 slots",
        ),
        (
            "SLOT_TYPE_0 = auto\n",
            "policy, line 1, column 15: SLOT_TYPE_0 cannot be set: types are numbered from 1",
        ),
        (
            "MACHINE_RESOURCE_Memory = 5\n",
            "policy, line 1, column 27: MACHINE_RESOURCE_Memory: Memory is no name for a custom resource",
        ),
    ] {
        assert_eq!(faults(text)[0], fault, "{text}");
    }
}

#[test]
fn resources_are_declared_as_counts_or_ids() {
    let text = "MACHINE_RESOURCE_a = 2 + 3\nMACHINE_RESOURCE_b = x, y z\nOFFLINE_MACHINE_RESOURCE_b = y\n\
                MACHINE_RESOURCE_c = 2.5\nMACHINE_RESOURCE_d = 3\nOFFLINE_MACHINE_RESOURCE_d = 1\nMACHINE_RESOURCE_e = -1\n";
    let declared = |name: &str, quantity| Declared { name: name.to_owned(), quantity };
    let ids = ["x", "z"].map(str::to_owned).to_vec();
    let all = [
        declared("a", Quantity::Count(5)),
        declared("b", Quantity::Ids(ids)),
        declared("c", Quantity::Count(2)),
        declared("d", Quantity::Count(2)),
        declared("e", Quantity::Count(0)),
    ];
    assert_eq!(types(text).declared(), all);
    assert_eq!(types(&format!("{text}MACHINE_RESOURCE_NAMES = A other\n")).declared(), [all[0].clone()]);
}

#[test]
fn what_is_reserved_is_no_slot_s() {
    let slots = types("RESERVED_MEMORY = 56\nRESERVED_DISK = 100\n").lay_out(&machine()).unwrap();
    assert_eq!(shape(&slots), [(4, 200, 1000, 1_000_000 - 102_400)]);
}

#[test]
fn comments_and_order_do_not_make_other_types() {
    let one = types("SLOT_TYPE_1 = cpus=1, 50%\nNUM_SLOTS_TYPE_1 = 2\n");
    let other = types("# first\nNUM_SLOTS_TYPE_1 = 1+1\n\nSLOT_TYPE_1 = cpus = 1 ,50%\n");
    assert_eq!(one, other);
}

prop_compose! {
    fn any_share()(kind in 0..4, part in 0..130u32, amount in 0..40u32, tenth in 0..20u32) -> String {
        match kind {
            0 => "auto".to_owned(),
            1 => format!("{part}%"),
            2 => format!("{amount}.{tenth}"),
            _ => "minimal".to_owned(),
        }
    }
}

prop_compose! {
    fn any_type(number: u32)(
        count in 0..6u32,
        blanket in prop::sample::select(vec!["auto", "minimal", "25%", "1/3", "10%", "33.4%", "0%"]),
        shares in prop::collection::vec(
            (prop::sample::select(vec!["cpus", "mem", "disk", "swap", "cogs", "gpus"]), any_share()),
            0..5,
        ),
    ) -> String {
        let shares: Vec<String> = shares.iter().map(|(name, share)| format!(", {name}={share}")).collect();
        format!("NUM_SLOTS_TYPE_{number} = {count}\nSLOT_TYPE_{number} = {blanket}{}\n", shares.concat())
    }
}

proptest! {
    /// Invariant 1: the slots never add up to more than the machine, whatever a policy says.
    #[test]
    fn slots_never_add_up_to_more_than_the_machine(
        text in (any_type(1), any_type(2), any_type(3)).prop_map(|(a, b, c)| a + &b + &c),
        (cpus, memory_mib, disk_kib) in (0..40i64, 0..5000i64, 0..100_000i64),
        (cogs, gpu_count) in (0..30i64, 0..9usize),
    ) {
        let ids: Vec<String> = (0..gpu_count).map(|n| format!("GPU-{n}")).collect();
        let devices: Vec<(&str, f64)> = ids.iter().map(|id| (id.as_str(), 8.0)).collect();
        let cogs = Declared { name: "Cogs".to_owned(), quantity: Quantity::Count(cogs) }.total();
        let machine = MachineTotals {
            cpus, memory_mib, disk_kib: Some(disk_kib), swap_kib: Some(disk_kib), custom: vec![cogs.clone(), gpus(&devices)],
        };
        let types = types(&text);
        let Ok(slots) = types.lay_out(&machine) else { return Ok(()) };
        prop_assert_eq!(&slots, &types.lay_out(&machine).unwrap());
        let mut sum = Resources::default();
        let mut taken: Vec<crate::pool::DeviceId> = Vec::new();
        for (slot, number) in slots.iter().zip(1..) {
            prop_assert_eq!(slot.slot, number);
            prop_assert_eq!(&slot.resources, &slot.resources.clone().floor_at_zero());
            sum.add(&slot.resources);
            let own = slot.resources.devices_of("nvidia.com/gpu");
            prop_assert_eq!(i64::try_from(own.len()).unwrap(), slot.resources.amount("nvidia.com/gpu"));
            taken.extend(own.iter().cloned());
        }
        let has = Resources {
            cpus, memory_mib, disk_kib,
            extended: [("Cogs".into(), cogs.count), ("nvidia.com/gpu".into(), i64::try_from(gpu_count).unwrap())].into(),
            devices: [("nvidia.com/gpu".into(), ids.iter().map(|id| id.as_str().into()).collect())].into(),
        };
        prop_assert!(sum.fits_in(&has), "{} of {}", sum, has);
        prop_assert!(slots.iter().filter_map(|slot| slot.swap_kib).sum::<i64>() <= disk_kib);
        let given = taken.len();
        taken.sort();
        taken.dedup();
        prop_assert_eq!(taken.len(), given);
    }

    /// Any text of a type is read or refused, never both, and never ends in a panic.
    #[test]
    fn any_type_is_read_or_refused(text in "[a-z0-9=:%/., \"().>-]{0,40}") {
        let reading = SlotTypes::read(&config(&format!("SLOT_TYPE_1 = {text}\nNUM_SLOTS_TYPE_1 = 2\n")));
        let refused = reading.faults.iter().any(|fault| fault.severity == condor_config::Severity::Error);
        prop_assert_eq!(reading.types.is_none(), refused);
        if let Some(types) = reading.types {
            let _ = types.lay_out(&machine());
        }
    }
}

#[test]
fn types_that_fit_no_machine_are_warned_of() {
    let types = |first: &str, second: &str| {
        format!("SLOT_TYPE_1 = {first}\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_2 = {second}\nNUM_SLOTS_TYPE_2 = 2\n")
    };
    let warnings = |text: &str| -> Vec<String> {
        SlotTypes::read(&config(text)).faults.iter().map(ToString::to_string).collect()
    };
    for fitting in [
        types("50%", "25%"),
        types("cpus=1, memory=2048", "auto"),
        types("cpus=100%, 50%", "cpus=min, 25%"),
        types("33.4%", "33.4%"),
        types("gpus=1, 50%", "25%"),
        types("tpu=1, 50%", "25%"),
        "NUM_SLOTS = 3\n".to_owned(),
    ] {
        assert_eq!(warnings(&fitting), Vec::<String>::new(), "{fitting}");
    }
    let too_much = |line: u32, knob: &str, percent: u32, name: &str| {
        format!(
            "policy, line {line}, column {}: {knob}: the slots of all types together are to have {percent} % of {name}, which no machine \
             has: give them less, or make fewer of them",
            knob.len() + 4
        )
    };
    assert_eq!(warnings(&types("75%", "25%")), [too_much(3, "SLOT_TYPE_2", 125, "Cpus")]);
    assert_eq!(
        warnings(&types("cpus=1, mem=60%", "cpus=1, ram=1/4")),
        [too_much(3, "SLOT_TYPE_2", 110, "Memory")]
    );
    assert_eq!(
        warnings(&types("GPUs=100%, 1/2", "GPUs=50%, 1/4")),
        [too_much(3, "SLOT_TYPE_2", 200, "GPUs")]
    );
    assert_eq!(
        warnings(&types("100%", "cpus=1")),
        [
            "policy, line 3, column 15: SLOT_TYPE_2: the slots with a part of Memory take all of it, and leave nothing for those of \
          SLOT_TYPE_2, whose part is auto: give the others less"
        ]
    );
    assert_eq!(
        warnings(&types("gpu=1, 50%", "memroy=1, 25%")),
        [
            "policy, line 1, column 15: SLOT_TYPE_1: gpu is the name of a custom resource that a node may have; did you mean GPUs?",
            "policy, line 3, column 15: SLOT_TYPE_2: memroy is the name of a custom resource that a node may have; did you mean Memory?"
        ]
    );
}
