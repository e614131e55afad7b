//! Reads any text as a configuration of slot types. It must be read or refused with a reason, and the slots that it lays out
//! must never add up to more than the machine.

use arbitrary::{Arbitrary, Unstructured};
use classad::Ad;
use condor_config::{Host, Reader, Source};
use model::pool::Resources;
use model::startd::slot_types::{
    ConsumptionPolicy, CustomTotal, Declared, Device, MachineTotals, RequestPolicy, SlotTypes,
};

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let Ok(input) = <(u16, u32, u32, &str)>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let (cpus, memory, disk, text) = input;
    let config =
        Reader::new(Host::none()).subsystem("STARTD").guarded().read(&[Source::block("fuzz", text)]).config;
    let reading = SlotTypes::read(&config);
    for fault in &reading.faults {
        assert!(!fault.to_string().is_empty() && !fault.knob.is_empty());
    }
    let _ = RequestPolicy::read(&config, 1, &["GPUs"]);
    let _ = ConsumptionPolicy::read(&config, 1);
    let Some(types) = reading.types else {
        assert!(!reading.faults.is_empty());
        return;
    };
    let devices =
        ["GPU-a", "GPU-b"].map(|id| Device { id: id.into(), properties: Ad::new().with("Capability", 8.0) });
    let gpus = CustomTotal {
        name: "GPUs".to_owned(),
        resource: "nvidia.com/gpu".into(),
        count: 2,
        devices: devices.into(),
    };
    let declared = types.declared().iter().filter(|declared| !declared.name.eq_ignore_ascii_case("GPUs"));
    let custom: Vec<CustomTotal> = declared.map(Declared::total).chain([gpus]).collect();
    let machine = MachineTotals {
        cpus: i64::from(cpus),
        memory_mib: i64::from(memory),
        disk_kib: (disk > 0).then(|| i64::from(disk)),
        swap_kib: None,
        custom,
    };
    let Ok(slots) = types.lay_out(&machine) else { return };
    let mut sum = Resources::default();
    for slot in &slots {
        assert_eq!(slot.resources, slot.resources.clone().floor_at_zero());
        sum.add(&slot.resources);
    }
    let has = Resources {
        cpus: machine.cpus,
        memory_mib: machine.memory_mib,
        disk_kib: machine.disk_kib.unwrap_or(0),
        extended: machine.custom.iter().map(|custom| (custom.resource.clone(), custom.count)).collect(),
        devices: machine
            .custom
            .iter()
            .filter(|custom| !custom.devices.is_empty())
            .map(|custom| {
                (custom.resource.clone(), custom.devices.iter().map(|device| device.id.clone()).collect())
            })
            .collect(),
    };
    assert!(sum.fits_in(&has), "{sum} of {has}");
}
