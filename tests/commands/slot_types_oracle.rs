//! Compares our slots with how the real condor_startd divided machines, which `hack/oracle/slot_types.py` recorded.
//!
//! `SLOT_TYPES_ORACLE=FILE` compares another recording.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use std::collections::BTreeMap;

use classad::{Ad, Expr};
use condor_config::{Config, Host, Reader, Source};
use model::startd::slot_types::{CustomTotal, Declared, Device, MachineTotals, SlotTypes};
use serde_json::{Value as Json, json};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/slot_types.jsonl");
/// Lines of configuration that HTCondor takes and we refuse on purpose; `SlotTypes::read` says why.
const STRICTER: &str = include_str!("../oracle/slot_types-differences.txt");

fn read(text: &str) -> Config {
    Reader::new(Host::none()).subsystem("STARTD").read(&[Source::block("case", text)]).into_config().unwrap()
}

/// The machine that a case is about.
fn machine(case: &Json, config: &Config, types: &SlotTypes) -> MachineTotals {
    let knob = |name| config.integer(name).unwrap().unwrap();
    let mut custom: Vec<CustomTotal> = types.declared().iter().map(Declared::total).collect();
    if let Some(gpus) = case.get("gpus").and_then(Json::as_array) {
        let devices: Vec<Device> = gpus.iter().map(device).collect();
        let count = i64::try_from(devices.len()).unwrap();
        custom.push(CustomTotal { name: "GPUs".to_owned(), resource: "GPUs".into(), count, devices });
    }
    MachineTotals {
        cpus: knob("NUM_CPUS"),
        memory_mib: knob("MEMORY"),
        disk_kib: Some(knob("DISK")),
        swap_kib: case.get("swap").and_then(Json::as_i64),
        custom,
    }
}

fn device(gpu: &Json) -> Device {
    let properties = gpu.get(1).and_then(Json::as_object).unwrap();
    let ad: Ad = properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_string().parse::<Expr>().unwrap()))
        .collect();
    Device { id: gpu.get(0).and_then(Json::as_str).unwrap().into(), properties: ad }
}

/// Our slots in the form of the recording, or why there are none.
fn ours(case: &Json, config: &Config) -> Result<Json, String> {
    let reading = SlotTypes::read(config);
    let faults: Vec<String> = reading.faults.iter().map(ToString::to_string).collect();
    let types = reading.types.ok_or_else(|| faults.join("\n"))?;
    let slots = types.lay_out(&machine(case, config, &types)).map_err(|refusal| refusal.to_string())?;
    let slots = slots.iter().map(|slot| {
        let custom: BTreeMap<&str, i64> =
            slot.resources.extended.iter().map(|(name, count)| (&**name, *count)).collect();
        let devices: BTreeMap<&str, Vec<&str>> = slot
            .resources
            .devices
            .iter()
            .map(|(name, ids)| (&**name, ids.iter().map(|id| &**id).collect()))
            .collect();
        json!([
            slot.slot,
            slot.slot_type,
            slot.kind == model::startd::slot_types::Kind::Partitionable,
            format!("{:.2}", slot.cpus),
            slot.resources.memory_mib,
            slot.swap_kib.unwrap(),
            slot.resources.disk_kib,
            custom,
            devices,
        ])
    });
    Ok(slots.collect())
}

#[test]
fn recorded_slots_of_condor_startd() {
    let file = std::env::var("SLOT_TYPES_ORACLE").unwrap_or_else(|_| RECORDED.to_owned());
    let recorded = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (mut count, mut laid, mut stricter, mut wrong) = (0, 0, 0, Vec::new());
    for line in recorded.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let text = case.get("config").and_then(Json::as_str).unwrap();
        count += 1;
        let ours = ours(&case, &read(text));
        let theirs = case.get("slots");
        laid += usize::from(theirs.is_some());
        let same = match (&ours, theirs) {
            (Ok(ours), Some(theirs)) => ours == theirs,
            (Err(_), None) => true,
            (Err(_), Some(_)) if text.lines().any(|line| STRICTER.lines().any(|known| known == line)) => {
                stricter += 1;
                true
            }
            _ => false,
        };
        if !same {
            let theirs = theirs.or_else(|| case.get("refused")).unwrap();
            wrong.push(format!("{text}    ours   {ours:?}\n    theirs {theirs}"));
        }
    }
    assert!(count >= 100 && laid * 5 > count * 2, "{laid} of {count} cases in {file} have slots");
    assert!(stricter * 20 < count, "{stricter} of {count} are refused on purpose");
    let shown: Vec<&str> = wrong.iter().take(15).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {count} differ ({stricter} excused)\n{}", wrong.len(), shown.join("\n"));
}
