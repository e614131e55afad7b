//! The manual's examples of ads, and of expressions that stand by themselves: they parse, and mean what the manual
//! says about them.
//!
//! Each example is one test, named by the manual's section. The examples are in `../../shared/seeds`: chapter 0 is the
//! current policy chapter (3 is the same, rendered), 1 is that of Condor 6, 2 is the central manager's. Policies,
//! which are configuration, are in `config_seeds`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use classad::{Ad, Env, Expr, Value};

/// 2026-01-31T12:00:00Z
const NOW: i64 = 1_769_860_800;

/// An ad of attributes with commas between them; no value may contain a comma.
fn ad(text: &str) -> Ad {
    Ad::parse_long(&text.replace(", ", "\n")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn value(text: &str, my: &str, target: &str) -> Value {
    Expr::parse(text).unwrap().eval(Some(&ad(my)), Some(&ad(target)), &Env::at(NOW))
}

#[test]
fn the_rank_expression_needs_its_parentheses() {
    // "the + operator has higher default precedence than =="
    assert_eq!(value("Owner == \"a\" + Owner == \"b\"", "", "Owner = \"a\""), Value::Error);
}

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
    // The rest of the disk is an expression, too.
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

#[test]
fn job_transforms() {
    assert_eq!(
        value("join(\".\",AcctGroup,Owner)", "AcctGroup = \"physics\", Owner = \"alice\"", ""),
        Value::from("physics.alice")
    );
    // The crate knows no maps of users: see docs/reference/differences.md.
    assert_eq!(value("userMap(\"Groups\",Owner,AcctGroup)", "Owner = \"alice\"", ""), Value::Undefined);
    let requirements = "JobUniverse==5 && WantSL6 && DockerImage =?= undefined";
    let job = "JobUniverse = 5, WantSL6 = true";
    assert_eq!(value(requirements, job, ""), Value::Bool(true));
    assert_eq!(value(requirements, &format!("{job}, DockerImage = \"SL6\""), ""), Value::Bool(false));
    assert_eq!(
        value("TARGET.HasDocker && (TARGET.Memory > 1)", "", "HasDocker = true, Memory = 2"),
        Value::Bool(true)
    );
}

#[test]
fn submit_requirements() {
    let job = "JobUniverse = 1, RequestMemory = 100, Owner = \"chris\"";
    for text in ["JobUniverse != 1", "RequestMemory > 512", "Owner != \"chris\"", "RequestMemory > 1024"] {
        assert_eq!(value(text, "", job), Value::Bool(false), "{text}");
    }
    let reason = "strcat( \"The job only requested \", \
                  RequestMemory, \" Megabytes.  If that small amount is really enough, please contact ...\" )";
    let expected =
        "The job only requested 100 Megabytes.  If that small amount is really enough, please contact ...";
    assert_eq!(value(reason, "", job), Value::from(expected));
    for text in [
        "This pool does not accept standard universe jobs.",
        "As of <date>, the minimum requested memory will be 1024.",
    ] {
        assert_eq!(value(&format!("\"{text}\""), "", ""), Value::from(text));
    }
}

#[test]
fn ephemeral_attributes_may_be_undefined() {
    // Chapter 2, "Ephemeral Attributes".
    assert_eq!(value("(RemoteUserPrio =?= UNDEFINED)", "", ""), Value::Bool(true));
    assert_eq!(value("(RemoteUserPrio =?= UNDEFINED)", "RemoteUserPrio = 0.5", ""), Value::Bool(false));
}

#[test]
fn concurrency_limits_of_the_matched_machine() {
    let machine = "NETWORK = \"NETWORK_A\"";
    assert_eq!(value("TARGET.NETWORK", "", machine), Value::from("NETWORK_A"));
    assert_eq!(value("strcat(\"SWX:2 \", TARGET.NETWORK)", "", machine), Value::from("SWX:2 NETWORK_A"));
}

#[test]
fn monitoring_a_metric_in_the_new_syntax() {
    let metric = Ad::parse_new(
        r#"
        [
          Name   = "JobsSubmitted";
          Desc   = "Number of jobs submitted";
          Units  = "jobs";
          TargetType = "Scheduler";
        ]"#,
    )
    .unwrap();
    assert_eq!(metric.len(), 4);
    assert_eq!(metric.eval_attr("desc", None, &Env::at(NOW)), Value::from("Number of jobs submitted"));
}

#[test]
fn condor_6_job_attributes() {
    // Chapter 1, 3.6.2.
    let job = format!(
        "EnteredCurrentStatus = {}, RemoteWallClockTime = 500, CumulativeSuspensionTime = 120",
        NOW - 30
    );
    assert_eq!(value("CurrentTime - EnteredCurrentStatus", &job, ""), Value::Int(30));
    assert_eq!(value("RemoteWallClockTime - CumulativeSuspensionTime", &job, ""), Value::Int(380));
    assert_eq!(value("name=?=\"vm1@full.hostname\"", "Name = \"vm1@full.hostname\"", ""), Value::Bool(true));
}
