//! Policy Configuration, *condor_startd* policy: ranks, states, macros, and whole policies.

use slotwright::classad::{Env, Expr, Value};

use crate::support::{MACROS, NOW, Policy, UNPRINTED, ad, assert_rank, value};

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
