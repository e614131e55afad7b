//! Policy Configuration, slots: what they advertise, and what is asked of them.

use slotwright::classad::{Ad, Env, Expr, Value};

use crate::support::{NOW, ad, value};

#[test]
fn gpus_by_capability() {
    for (capability, expected) in [("8.0", true), ("7.5", false)] {
        assert_eq!(
            value("Capability >= 8.0", &format!("Capability = {capability}"), ""),
            Value::Bool(expected)
        );
    }
}

#[test]
fn startd_attrs_of_slots() {
    for (color, season) in [("blue", "spring"), ("green", "spring"), ("blue", "summer")] {
        let slot = Ad::parse_long(&format!(
            "    favorite_color = \"{color}\"\n    favorite_season = \"{season}\"\n"
        ))
        .unwrap();
        assert_eq!(slot.eval_attr("Favorite_Color", None, &Env::at(NOW)), Value::from(color));
        assert_eq!(slot.eval_attr("favorite_season", None, &Env::at(NOW)), Value::from(season));
    }
}

#[test]
fn partitionable_and_dynamic_slots_in_a_start_expression() {
    let [partitionable, dynamic] = [
        "PartitionableSlot = True\nSlotType = \"Partitionable\"\n",
        "DynamicSlot = True\nSlotType = \"Dynamic\"\n",
    ];
    let start = Expr::parse("PartitionableSlot =?= True || SlotType == \"partitionable\"").unwrap();
    for (text, expected) in [(partitionable, true), (dynamic, false)] {
        let slot = Ad::parse_long(text).unwrap();
        assert_eq!(start.eval(Some(&slot), None, &Env::at(NOW)), Value::Bool(expected));
    }
    // What is left of the disk is an expression, too.
    let left = ad("cpu = 7, memory = 9216, disk = BIG-10240, BIG = 100000");
    assert_eq!(left.eval_attr("disk", None, &Env::at(NOW)), Value::Int(89_760));
}

#[test]
fn defaults_of_requests() {
    let memory = "ifThenElse(MemoryUsage =!= UNDEFINED, MemoryUsage, 1)";
    assert_eq!(value(memory, "", ""), Value::Int(1));
    assert_eq!(value(memory, "MemoryUsage = 700", ""), Value::Int(700));
    assert_eq!(value("DiskUsage", "DiskUsage = 42", ""), Value::Int(42));
}

#[test]
fn requests_are_rounded_for_slots() {
    for (text, request, expected) in [
        ("quantize(RequestCpus, {1})", "RequestCpus = 3", 3),
        ("quantize(RequestMemory, {128})", "RequestMemory = 129", 256),
        ("quantize(RequestMemory, {128})", "RequestMemory = 1", 128),
        ("quantize(RequestDisk, {1024})", "RequestDisk = 10240", 10_240),
        ("quantize(target.RequestCpus,{1})", "RequestCpus = 2", 2),
        ("quantize(target.RequestMemory,{128})", "RequestMemory = 1000", 1024),
        ("quantize(target.RequestDisk,{1024})", "RequestDisk = 1025", 2048),
        ("TARGET.RequestCpus", "RequestCpus = 4", 4),
        ("TARGET.RequestGpu", "RequestGpu = 2", 2),
    ] {
        assert_eq!(value(text, "Cpus = 8", request), Value::Int(expected), "{text}");
    }
    assert_eq!(value("Cpus", "Cpus = 8", ""), Value::Int(8), "SLOT_WEIGHT");
}

#[test]
fn defrag_daemon_by_constraint() {
    assert_eq!(value("MyType == \"Defrag\"", "MyType = \"Defrag\"", ""), Value::Bool(true));
}
