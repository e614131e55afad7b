//! Every ClassAd example that the manual prints: it parses, and means what the text beside it says. A test an
//! example, named by the manual's section. `../../shared/seeds`: chapter 0 is the current policy chapter (3 is the
//! same, rendered), 1 that of Condor 6, 2 the central manager's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use std::collections::BTreeMap;

use slotwright::classad::{Ad, Env, Expr, Value, rank};

/// 2026-01-31T12:00:00Z
const NOW: i64 = 1_769_860_800;

/// What the policies' macros stand for, as the manual's section "Macros" has them (chapter 0).
const MACROS: &str = r"
    MINUTE          = 60
    HOUR            = (60 * $(MINUTE))
    StateTimer      = (time() - EnteredCurrentState)
    ActivityTimer   = (time() - EnteredCurrentActivity)
    ActivationTimer = (time() - JobStart)
    NonCondorLoadAvg        = (LoadAvg - CondorLoadAvg)
    BackgroundLoad          = 0.3
    HighLoad                = 0.5
    StartIdleTime           = 15 * $(MINUTE)
    ContinueIdleTime        = 5 * $(MINUTE)
    MaxSuspendTime          = 10 * $(MINUTE)
    KeyboardBusy            = KeyboardIdle < $(MINUTE)
    ConsoleBusy             = (ConsoleIdle  < $(MINUTE))
    CPUIdle                = $(NonCondorLoadAvg) <= $(BackgroundLoad)
    CPUBusy                = $(NonCondorLoadAvg) >= $(HighLoad)
    KeyboardNotBusy         = ($(KeyboardBusy) == False)
";

/// Named by the examples, and printed nowhere in these chapters.
const UNPRINTED: &str = r"
    JustCpu   = ($(CPUBusy) && ($(KeyboardBusy) == False))
    SmallJob  = (TARGET.ImageSize < (15 * 1024))
    IsVanilla = (TARGET.JobUniverse == 5)
    IsPVM     = (TARGET.JobUniverse == 4)
    DETECTED_CORES = 2
";

/// Assignments as configuration has them: continued lines, and macros that are replaced by their text.
struct Policy(BTreeMap<String, String>);

impl Policy {
    fn new(texts: &[&str]) -> Self {
        let mut policy = Self(BTreeMap::new());
        for text in texts {
            let joined = text.replace("\\\n", " ");
            for line in
                joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
            {
                let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("no = in {line}"));
                let name = name.trim().to_owned();
                // A macro that names itself means its former value.
                let former = policy.0.get(&name).cloned().unwrap_or_default();
                let value = value.trim().replace(&format!("$({name})"), &former);
                policy.0.insert(name, value);
            }
        }
        policy
    }

    fn text(&self, name: &str) -> String {
        let mut text = self.0.get(name).unwrap_or_else(|| panic!("no {name}")).clone();
        while let Some((before, rest)) = text.split_once("$(") {
            let (inner, after) = rest.split_once(')').unwrap();
            text = format!("{before}{}{after}", self.0.get(inner).unwrap_or_else(|| panic!("no {inner}")));
        }
        text
    }

    fn expr(&self, name: &str) -> Expr {
        let text = self.text(name);
        Expr::parse(&text).unwrap_or_else(|error| panic!("{name} = {text}: {error}"))
    }

    /// The value of a policy expression for a slot and a job.
    fn eval(&self, name: &str, slot: &str, job: &str) -> String {
        self.expr(name).eval(Some(&ad(slot)), Some(&ad(job)), &Env::at(NOW)).to_string()
    }

    /// The same while there is no job.
    fn alone(&self, name: &str, slot: &str) -> String {
        self.expr(name).eval(Some(&ad(slot)), None, &Env::at(NOW)).to_string()
    }

    fn rank(&self, slot: &str, job: &str) -> f64 {
        let mut slot = ad(slot);
        slot.insert("Rank", self.expr("RANK"));
        rank(&slot, &ad(job), &Env::at(NOW))
    }
}

/// An ad of attributes with commas between, none of which has one.
fn ad(text: &str) -> Ad {
    Ad::parse_long(&text.replace(", ", "\n")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn value(text: &str, my: &str, target: &str) -> Value {
    Expr::parse(text).unwrap().eval(Some(&ad(my)), Some(&ad(target)), &Env::at(NOW))
}

#[track_caller]
fn assert_rank(policy: &Policy, cases: &[(&str, f64)]) {
    for (job, expected) in cases {
        let found = policy.rank("", job);
        assert!((found - expected).abs() < f64::EPSILON, "{job}: {found}, not {expected}");
    }
}

#[test]
fn the_rank_expression_prefers_the_owners_of_the_group() {
    // Chapters 0, 1 and 3, "The RANK Expression".
    let policy = Policy::new(&[r#"
        RANK = Owner == "coltrane" || Owner == "tyner" \
            || Owner == "garrison" || Owner == "jones"
    "#]);
    assert_rank(&policy, &[("Owner = \"jones\"", 1.0), ("Owner = \"davis\"", 0.0), ("", 0.0)]);
}

#[test]
fn the_rank_expression_tells_who_of_the_group() {
    let policy = Policy::new(&[r#"
        RANK = (Owner == "coltrane") + (Owner == "tyner") \
            + ((Owner == "garrison") * 10) + (Owner == "jones")
    "#]);
    assert_rank(
        &policy,
        &[("Owner = \"jones\"", 1.0), ("Owner = \"garrison\"", 10.0), ("Owner = \"x\"", 0.0)],
    );
}

#[test]
fn the_rank_expression_needs_its_parentheses() {
    // "the + operator has higher default precedence than =="
    assert_eq!(value("Owner == \"a\" + Owner == \"b\"", "", "Owner = \"a\""), Value::Error);
}

#[test]
fn the_rank_expression_prefers_large_jobs() {
    assert_rank(
        &Policy::new(&["RANK = ImageSize"]),
        &[("ImageSize = 70000", 70_000.0), ("imagesize = 1", 1.0)],
    );
}

#[test]
fn the_rank_expression_prefers_the_owner_then_large_jobs() {
    // As it is printed, the string is multiplied: an error, in HTCondor too, and so no preference. The text
    // beside it means the comparison in parentheses.
    let printed = Policy::new(&["RANK = (Owner == \"coltrane\" * 1000000000000) + Imagesize"]);
    assert_eq!(printed.eval("RANK", "", "Owner = \"coltrane\", ImageSize = 5"), "error");
    assert_rank(&printed, &[("Owner = \"coltrane\", ImageSize = 5", 0.0)]);
    let meant = Policy::new(&["RANK = ((Owner == \"coltrane\") * 1000000000000) + Imagesize"]);
    assert_rank(
        &meant,
        &[("Owner = \"coltrane\", ImageSize = 5", 1e12 + 5.0), ("Owner = \"x\", ImageSize = 5", 5.0)],
    );
}

#[test]
fn owner_state_anything_and_false_is_false() {
    let policy = Policy::new(&[
        "MINUTE = 60",
        "START = KeyboardIdle > 15 * $(MINUTE) && Owner == \"coltrane\"",
        "IS_OWNER = (START =?= FALSE)",
    ]);
    assert_eq!(policy.alone("START", "KeyboardIdle = 34"), "false");
    let mut slot = ad("KeyboardIdle = 34");
    slot.insert("START", policy.expr("START"));
    assert_eq!(policy.expr("IS_OWNER").eval(Some(&slot), None, &Env::at(NOW)), Value::Bool(true));
    assert_eq!(policy.eval("START", "KeyboardIdle = 901", "Owner = \"coltrane\""), "true");
}

#[test]
fn owner_state_false_or_undefined_is_undefined() {
    let policy =
        Policy::new(&["MINUTE = 60", "START = KeyboardIdle > 15 * $(MINUTE) || Owner == \"coltrane\""]);
    assert_eq!(policy.alone("START", "KeyboardIdle = 34"), "undefined");
    assert_eq!(value("START =?= FALSE", "KeyboardIdle = 34", ""), Value::Bool(false));
    assert_eq!(policy.eval("START", "KeyboardIdle = 34", "Owner = \"coltrane\""), "true");
    assert_eq!(policy.eval("START", "KeyboardIdle = 34", "Owner = \"tyner\""), "false");
    assert_eq!(policy.eval("START", "KeyboardIdle = 901", "Owner = \"tyner\""), "true");
}

#[test]
fn unclaimed_state_run_benchmarks() {
    for now in ["time()", "CurrentTime"] {
        let policy = Policy::new(&[
            MACROS,
            &format!("BenchmarkTimer = ({now} - LastBenchmark)"),
            "RunBenchmarks = $(BenchmarkTimer) >= (4 * $(HOUR))",
        ]);
        for (ago, runs) in [(14_399, "false"), (14_400, "true")] {
            assert_eq!(policy.alone("RunBenchmarks", &format!("LastBenchmark = {}", NOW - ago)), runs);
        }
    }
}

#[test]
fn claimed_state_example_expressions() {
    let policy = Policy::new(&[
        MACROS,
        "WANT_SUSPEND = True",
        "WANT_VACATE = $(ActivationTimer) > 10 * $(MINUTE)",
        "SUSPEND = $(KeyboardBusy) || $(CPUBusy)",
        "WANT_SUSPEND_VANILLA    = True",
        "WANT_VACATE_VANILLA     = True",
        "SUSPEND_VANILLA = $(KeyboardBusy) || $(CPUBusy)",
    ]);
    let slot = |idle, load, start| {
        format!("KeyboardIdle = {idle}, LoadAvg = {load}, CondorLoadAvg = 0.1, JobStart = {}", NOW - start)
    };
    assert_eq!(policy.alone("WANT_VACATE", &slot(1, "0.1", 601)), "true");
    assert_eq!(policy.alone("WANT_VACATE", &slot(1, "0.1", 600)), "false");
    for name in ["SUSPEND", "SUSPEND_VANILLA"] {
        for (idle, load, suspends) in [(59, "0.1", "true"), (60, "0.1", "false"), (60, "0.7", "true")] {
            assert_eq!(policy.alone(name, &slot(idle, load, 0)), suspends, "{idle} {load}");
        }
    }
    assert_eq!(policy.alone("WANT_SUSPEND", "") + &policy.alone("WANT_VACATE_VANILLA", ""), "truetrue");
}

#[test]
fn macros_of_time_load_and_keyboard() {
    let policy = Policy::new(&[MACROS]);
    let slot = format!(
        "EnteredCurrentState = {}, EnteredCurrentActivity = {}, JobStart = {}, LoadAvg = 0.75, CondorLoadAvg = 0.25, \
         KeyboardIdle = 60, ConsoleIdle = 59",
        NOW - 1,
        NOW - 2,
        NOW - 3,
    );
    for (name, expected) in [
        ("HOUR", "3600"),
        ("StateTimer", "1"),
        ("ActivityTimer", "2"),
        ("ActivationTimer", "3"),
        ("NonCondorLoadAvg", "5.000000000000000E-01"),
        ("StartIdleTime", "900"),
        ("ContinueIdleTime", "300"),
        ("MaxSuspendTime", "600"),
        ("KeyboardBusy", "false"),
        ("ConsoleBusy", "true"),
        ("CPUIdle", "false"),
        ("CPUBusy", "true"),
        ("KeyboardNotBusy", "true"),
    ] {
        assert_eq!(policy.alone(name, &slot), expected, "{name}");
    }
}

#[test]
fn macros_machine_busy_is_printed_without_its_last_parenthesis() {
    // In three chapters. It is an error with its place; with the parenthesis it says what the text says.
    let policy = Policy::new(&[MACROS, "MachineBusy = ($(CPUBusy) || $(KeyboardBusy)"]);
    let error = Expr::parse(&policy.text("MachineBusy")).unwrap_err();
    assert_eq!((error.expected(), error.found()), ("')' or an operator", "end of input"));
    let policy = Policy::new(&[MACROS, "MachineBusy = ($(CPUBusy) || $(KeyboardBusy))"]);
    assert_eq!(policy.alone("MachineBusy", "LoadAvg = 0.1, CondorLoadAvg = 0.1, KeyboardIdle = 3"), "true");
}

#[test]
fn default_settings_never_preempt() {
    let policy = Policy::new(&[
        MACROS,
        "WANT_SUSPEND = False\nWANT_VACATE = False\nSTART = True\nSUSPEND = False\nCONTINUE = True\nPREEMPT = False",
        "MachineMaxVacateTime = 10 * $(MINUTE)\nKILL = False",
    ]);
    assert_eq!(policy.alone("START", ""), "true");
    assert_eq!(policy.alone("PREEMPT", ""), "false");
    assert_eq!(policy.alone("MachineMaxVacateTime", ""), "600");
}

#[test]
fn test_job_policy() {
    let policy = Policy::new(&[
        MACROS,
        "START = KeyboardIdle > $(StartIdleTime)\nSUSPEND = $(KeyboardBusy)\nCONTINUE = True\nPREEMPT = $(CPUBusy)\nKILL = False",
        r#"
        START      = ($(START)) || Owner == "coltrane"
        SUSPEND    = ($(SUSPEND)) && Owner != "coltrane"
        CONTINUE   = $(CONTINUE)
        PREEMPT    = ($(PREEMPT)) && Owner != "coltrane"
        KILL       = $(KILL)
        "#,
    ]);
    let busy = "KeyboardIdle = 1, LoadAvg = 2.0, CondorLoadAvg = 0.0";
    for (name, his, others) in
        [("START", "true", "false"), ("SUSPEND", "false", "true"), ("PREEMPT", "false", "true")]
    {
        assert_eq!(policy.eval(name, busy, "Owner = \"Coltrane\""), his, "{name}");
        assert_eq!(policy.eval(name, busy, "Owner = \"tyner\""), others, "{name}");
    }
}

#[test]
fn time_of_day_policy() {
    let policy = Policy::new(&[
        MACROS,
        r"
        WorkHours = ( (ClockMin >= 480 && ClockMin < 1020) && \
                      (ClockDay > 0 && ClockDay < 6) )
        AfterHours = ( (ClockMin < 480 || ClockMin >= 1020) || \
                       (ClockDay == 0 || ClockDay == 6) )
        START = $(AfterHours)
        MachineBusy = ( $(WorkHours) || $(CPUBusy) || $(KeyboardBusy) )
        OLD_START = $(AfterHours) && $(CPUIdle) && KeyboardIdle > $(StartIdleTime)
        WANT_SUSPEND = $(AfterHours)
        ",
    ]);
    let idle = "LoadAvg = 0.0, CondorLoadAvg = 0.0, KeyboardIdle = 7200";
    for (minute, day, work) in
        [(480, 1, true), (479, 1, false), (1019, 5, true), (1020, 5, false), (700, 0, false), (700, 6, false)]
    {
        let slot = format!("ClockMin = {minute}, ClockDay = {day}, {idle}");
        assert_eq!(policy.alone("WorkHours", &slot), work.to_string(), "{slot}");
        assert_eq!(policy.alone("MachineBusy", &slot), work.to_string(), "{slot}");
        for name in ["AfterHours", "START", "OLD_START", "WANT_SUSPEND"] {
            assert_eq!(policy.alone(name, &slot), (!work).to_string(), "{name} {slot}");
        }
    }
}

const DESKTOP: &str = r#"
    START = ( ($(CPUIdle) || (State != "Unclaimed" && State != "Owner")) \
              && (IsDesktop =!= True || (KeyboardIdle > $(StartIdleTime))) )
    WANT_SUSPEND = ( $(SmallJob) || $(JustCpu) \
                     || $(IsVanilla) )
    WANT_VACATE  = ( $(ActivationTimer) > 10 * $(MINUTE) \
                     || $(IsVanilla) )
    SUSPEND = ( ((CpuBusyTime > 2 * $(MINUTE)) && ($(ActivationTimer) > 90)) \
                || ( IsDesktop =?= True && $(KeyboardBusy) ) )
    CONTINUE = ( $(CPUIdle) && ($(ActivityTimer) > 300) \
                 && (IsDesktop =!= True || (KeyboardIdle > $(ContinueIdleTime))) )
    PREEMPT = ( ((Activity == "Suspended") && \
                ($(ActivityTimer) > $(MaxSuspendTime))) \
               || (SUSPEND && (WANT_SUSPEND == False)) )
    MAXJOBRETIREMENTTIME = (IsDesktop =!= True) * 0
"#;

#[test]
fn desktop_policy() {
    let policy = Policy::new(&[MACROS, UNPRINTED, DESKTOP]);
    let slot = |desktop: &str, keyboard: i32, state: &str| {
        let start = NOW - 100;
        format!(
            "{desktop}KeyboardIdle = {keyboard}, State = \"{state}\", LoadAvg = 1.0, CondorLoadAvg = 0.8, CpuBusyTime = 0, \
             JobStart = {start}, EnteredCurrentActivity = {}, Activity = \"Suspended\"",
            NOW - 601
        )
    };
    let (desktop, cluster) = ("IsDesktop = True, ", "");
    let job = "JobUniverse = 5, ImageSize = 20000";
    for (name, kind, keyboard, expected) in [
        ("START", desktop, 10, "false"),
        ("START", desktop, 901, "true"),
        ("START", cluster, 10, "true"),
        ("SUSPEND", desktop, 10, "true"),
        ("SUSPEND", cluster, 10, "false"),
        ("CONTINUE", desktop, 299, "false"),
        ("CONTINUE", desktop, 301, "true"),
        ("CONTINUE", cluster, 10, "true"),
        ("PREEMPT", cluster, 10, "true"),
        ("WANT_SUSPEND", cluster, 10, "true"),
        ("WANT_VACATE", cluster, 10, "true"),
        ("MAXJOBRETIREMENTTIME", desktop, 10, "0"),
    ] {
        assert_eq!(
            policy.eval(name, &slot(kind, keyboard, "Unclaimed"), job),
            expected,
            "{name} {kind}{keyboard}"
        );
    }
}

#[test]
fn desktop_policy_preempts_who_must_not_be_suspended() {
    let policy = Policy::new(&[MACROS, UNPRINTED, DESKTOP]);
    let mut slot = ad(&format!(
        "Activity = \"Busy\", EnteredCurrentActivity = {NOW}, WANT_SUSPEND = false, SUSPEND = true"
    ));
    assert_eq!(policy.expr("PREEMPT").eval(Some(&slot), None, &Env::at(NOW)), Value::Bool(true));
    slot.set("WANT_SUSPEND", true);
    assert_eq!(policy.expr("PREEMPT").eval(Some(&slot), None, &Env::at(NOW)), Value::Bool(false));
}

#[test]
fn job_suspension_policy() {
    // The closing parenthesis that eval's line lacks in print is added.
    let policy = Policy::new(&[
        UNPRINTED,
        r#"
        IsSuspendableSlot = SlotID > $(DETECTED_CORES)
        NonSuspendableSlotState = eval(strcat("slot",SlotID-$(DETECTED_CORES),"_State"))
        MyNonSuspendableSlotIsIdle = \
          (NonSuspendableSlotState =!= "Claimed" && NonSuspendableSlotState =!= "Preempting")
        START = \
          IsSuspendableSlot!=True && IsSuspendableJob=!=True || \
          IsSuspendableSlot && IsSuspendableJob==True && $(MyNonSuspendableSlotIsIdle)
        SUSPEND = \
          IsSuspendableSlot && $(MyNonSuspendableSlotIsIdle)!=True
        WANT_SUSPEND = $(SUSPEND)
        CONTINUE = ($(SUSPEND)) != True
        "#,
    ]);
    let eval = |name: &str, slot: &str, job: &str| {
        let mut slot = ad(slot);
        for advertised in ["IsSuspendableSlot", "NonSuspendableSlotState"] {
            slot.insert(advertised, policy.expr(advertised));
        }
        policy.expr(name).eval(Some(&slot), Some(&ad(job)), &Env::at(NOW)).to_string()
    };
    let (plain, suspendable) = ("", "IsSuspendableJob = True");
    let (slot1, slot3, slot3_busy) =
        ("SlotID = 1", "SlotID = 3, slot1_State = \"Unclaimed\"", "SlotID = 3, slot1_State = \"Claimed\"");
    for (name, slot, job, expected) in [
        ("NonSuspendableSlotState", slot3_busy, plain, "\"Claimed\""),
        ("START", slot1, plain, "true"),
        ("START", slot1, suspendable, "false"),
        ("START", slot3, suspendable, "true"),
        ("START", slot3_busy, suspendable, "false"),
        ("SUSPEND", slot3, suspendable, "false"),
        ("SUSPEND", slot3_busy, suspendable, "true"),
        ("SUSPEND", slot1, plain, "false"),
        ("WANT_SUSPEND", slot3_busy, suspendable, "true"),
        ("CONTINUE", slot3_busy, suspendable, "false"),
        ("CONTINUE", slot3, suspendable, "true"),
    ] {
        assert_eq!(eval(name, slot, job), expected, "{name} {slot} {job}");
    }
}

#[test]
fn interactive_jobs() {
    let policy = Policy::new(&[
        "RANK = ( (MY.SlotID == 1) && (TARGET.InteractiveJob =?= True) )",
        "START = ( (MY.SlotID == 1) && (TARGET.InteractiveJob =?= True) )",
    ]);
    let interactive = "InteractiveJob = True";
    assert!((policy.rank("SlotID = 1", interactive) - 1.0).abs() < f64::EPSILON);
    for (slot, job, starts) in [(1, interactive, "true"), (1, "", "false"), (2, interactive, "false")] {
        assert_eq!(policy.eval("START", &format!("SlotID = {slot}"), job), starts);
    }
}

#[test]
fn multi_core_machines_a_policy_by_slot() {
    let policy = Policy::new(&[r"
        SUSPEND = ( (SlotID == 1) && (PolicyForSlot1) ) || \
                  ( (SlotID == 2) && (PolicyForSlot2) )
    "]);
    for (id, expected) in [(1, "true"), (2, "false"), (3, "false")] {
        assert_eq!(
            policy.alone("SUSPEND", &format!("SlotID = {id}, PolicyForSlot1 = true, PolicyForSlot2 = false")),
            expected
        );
    }
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

#[test]
fn job_transforms() {
    assert_eq!(
        value("join(\".\",AcctGroup,Owner)", "AcctGroup = \"physics\", Owner = \"alice\"", ""),
        Value::from("physics.alice")
    );
    // There is no map of users here: docs/differences.md.
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

#[test]
fn condor_6_default_policy() {
    // Chapter 1, 3.6.9.1.
    let policy = Policy::new(&[
        &MACROS.replace("time()", "CurrentTime"),
        UNPRINTED,
        r#"
        MaxVacateTime = 10 * $(MINUTE)
        LastCkpt = (CurrentTime - LastPeriodicCheckpoint)
        WANT_SUSPEND       = ( $(SmallJob) || $(KeyboardNotBusy) \
                               || $(IsPVM) || $(IsVanilla) )
        WANT_VACATE        = ( $(ActivationTimer) > 10 * $(MINUTE) \
                               || $(IsPVM) || $(IsVanilla) )
        START        = ( (KeyboardIdle > $(StartIdleTime)) \
                          && ( $(CPUIdle) || \
                               (State != "Unclaimed" && State != "Owner")) )
        SUSPEND         = ( $(KeyboardBusy) || \
                         ( (CpuBusyTime > 2 * $(MINUTE)) \
                            && $(ActivationTimer) > 90 ) )
        CONTINUE        = ( $(CPUIdle) && ($(ActivityTimer) > 10) \
                          && (KeyboardIdle > $(ContinueIdleTime)) )
        PREEMPT         = ( ((Activity == "Suspended") && \
                            ($(ActivityTimer) > $(MaxSuspendTime))) \
                            || (SUSPEND && (WANT_SUSPEND == False)) )
        KILL            = $(ActivityTimer) > $(MaxVacateTime)
        PERIODIC_CHECKPOINT     = ( (ImageSize < 60000) && \
                                    ($(LastCkpt) > (6 * $(HOUR))) ) || \
                                  ( $(LastCkpt) > (12 * $(HOUR)) )
        MADISON_CHECKPOINT     = $(LastCkpt) > (3 * $(HOUR))
        "#,
    ]);
    let slot = |keyboard: i64, busy: i64, active: i64, checkpoint: i64| {
        format!(
            "KeyboardIdle = {keyboard}, State = \"Unclaimed\", LoadAvg = 0.3, CondorLoadAvg = 0.0, CpuBusyTime = {busy}, \
             JobStart = {}, EnteredCurrentActivity = {}, Activity = \"Suspended\", LastPeriodicCheckpoint = {}",
            NOW - 91,
            NOW - active,
            NOW - checkpoint
        )
    };
    let large = "ImageSize = 60000, JobUniverse = 1";
    let small = "ImageSize = 10000, JobUniverse = 1";
    for (name, slot, job, expected) in [
        ("START", slot(901, 0, 0, 0), large, "true"),
        ("START", slot(900, 0, 0, 0), large, "false"),
        ("SUSPEND", slot(59, 0, 0, 0), large, "true"),
        ("SUSPEND", slot(60, 121, 0, 0), large, "true"),
        ("SUSPEND", slot(60, 120, 0, 0), large, "false"),
        ("CONTINUE", slot(301, 0, 11, 0), large, "true"),
        ("CONTINUE", slot(301, 0, 10, 0), large, "false"),
        ("PREEMPT", slot(60, 0, 601, 0), large, "true"),
        ("KILL", slot(60, 0, 601, 0), large, "true"),
        ("KILL", slot(60, 0, 600, 0), large, "false"),
        ("WANT_SUSPEND", slot(59, 0, 0, 0), large, "false"),
        ("WANT_SUSPEND", slot(59, 0, 0, 0), small, "true"),
        ("WANT_VACATE", slot(59, 0, 0, 0), small, "false"),
        ("PERIODIC_CHECKPOINT", slot(0, 0, 0, 6 * 3600 + 1), small, "true"),
        ("PERIODIC_CHECKPOINT", slot(0, 0, 0, 6 * 3600 + 1), large, "false"),
        ("PERIODIC_CHECKPOINT", slot(0, 0, 0, 12 * 3600 + 1), large, "true"),
        ("MADISON_CHECKPOINT", slot(0, 0, 0, 3 * 3600 + 1), large, "true"),
    ] {
        assert_eq!(policy.eval(name, &slot, job), expected, "{name} {slot} {job}");
    }
}
