//! Policy Configuration, *condor_startd* policy: the examples of whole policies.

use classad::Value;

use super::support::{FRAGMENTS, NOW, eval, eval_in, holds, startd, value};

const MACROS: &str = "\
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
MachineBusy             = ($(CPUBusy) || $(KeyboardBusy)
";

#[test]
fn default_policy_macros_mean_what_the_list_above_them_says() {
    let config = startd(MACROS);
    let seconds = ["MINUTE", "HOUR", "StartIdleTime", "ContinueIdleTime", "MaxSuspendTime"];
    assert_eq!(seconds.map(|name| config.integer(name).unwrap().unwrap()), [60, 3600, 900, 300, 600]);
    assert_eq!(["BackgroundLoad", "HighLoad"].map(|name| value(&config, name)), ["0.3", "0.5"]);
    let slot = format!(
        "EnteredCurrentState = {}; EnteredCurrentActivity = {}; JobStart = {}; KeyboardIdle = 10; ConsoleIdle = 90; \
         LoadAvg = 1.5; CondorLoadAvg = 0.5",
        NOW - 1,
        NOW - 2,
        NOW - 3,
    );
    for (name, wanted) in [
        ("StateTimer", Value::Int(1)),
        ("ActivityTimer", Value::Int(2)),
        ("ActivationTimer", Value::Int(3)),
        ("NonCondorLoadAvg", Value::Real(1.0)),
        ("KeyboardBusy", Value::Bool(true)),
        ("KeyboardNotBusy", Value::Bool(false)),
        ("ConsoleBusy", Value::Bool(false)),
        ("CPUIdle", Value::Bool(false)),
        ("CPUBusy", Value::Bool(true)),
    ] {
        assert_eq!(eval(&config, name, &slot, ""), wanted, "{name}");
    }
}

/// The manual's MachineBusy lacks a parenthesis: it can be read as text, but not as an expression until the
/// parenthesis is added.
#[test]
fn default_policy_machine_busy_lacks_a_parenthesis() {
    let config = startd(MACROS);
    assert_eq!(value(&config, "MachineBusy"), "((LoadAvg - CondorLoadAvg) >= 0.5 || KeyboardIdle < 60");
    assert!(config.expr("MachineBusy").is_err());
    let closed = startd(&MACROS.replace("|| $(KeyboardBusy)\n", "|| $(KeyboardBusy))\n"));
    holds(
        &closed,
        "MachineBusy",
        &[
            ("KeyboardIdle = 10; LoadAvg = 0.0; CondorLoadAvg = 0.0", "", true),
            ("KeyboardIdle = 99; LoadAvg = 0.6; CondorLoadAvg = 0.0", "", true),
            ("KeyboardIdle = 99; LoadAvg = 0.6; CondorLoadAvg = 0.5", "", false),
        ],
    );
}

#[test]
fn default_policy_preemption_is_off_and_jobs_always_start() {
    let config = startd(
        "WANT_SUSPEND         = False
WANT_VACATE          = False
START                = True
SUSPEND              = False
CONTINUE             = True
PREEMPT              = False
# Kill jobs that take too long leaving gracefully.
MachineMaxVacateTime = 10 * $(MINUTE)
KILL                 = False
",
    );
    let names = ["WANT_SUSPEND", "WANT_VACATE", "START", "SUSPEND", "CONTINUE", "PREEMPT", "KILL"];
    let found = names.map(|name| config.boolean(name).unwrap().unwrap());
    assert_eq!(found, [false, false, true, false, true, false, false]);
    assert_eq!(config.integer("MachineMaxVacateTime").unwrap(), Some(600));
}

#[test]
fn test_job_policy_changes_what_was_configured_for_one_user() {
    let existing = "use POLICY : Desktop\n";
    let changed = format!(
        r#"{existing}
      START      = ($(START)) || Owner == "coltrane"
      SUSPEND    = ($(SUSPEND)) && Owner != "coltrane"
      CONTINUE   = $(CONTINUE)
      PREEMPT    = ($(PREEMPT)) && Owner != "coltrane"
      KILL       = $(KILL)
"#
    );
    let (before, after) = (startd(existing), startd(&changed));
    let busy = "KeyboardIdle = 1; LoadAvg = 3.0; CondorLoadAvg = 0.0; State = \"Owner\"; Activity = \"Suspended\"; \
                EnteredCurrentActivity = 0; SUSPEND = true; WANT_SUSPEND = false; CpuBusyValue = 0";
    let answers = |config, name, owner: &str| eval(config, name, busy, &format!("Owner = \"{owner}\""));
    assert_eq!(answers(&after, "START", "coltrane"), Value::Bool(true));
    for name in ["SUSPEND", "PREEMPT"] {
        assert_eq!(answers(&before, name, "coltrane"), Value::Bool(true), "{name}");
        assert_eq!(answers(&after, name, "coltrane"), Value::Bool(false), "{name}");
    }
    for name in ["START", "SUSPEND", "PREEMPT"] {
        assert_eq!(answers(&after, name, "tyner"), answers(&before, name, "tyner"), "{name}");
    }
    for name in ["CONTINUE", "KILL"] {
        assert_eq!(value(&after, name), value(&before, name), "{name}");
    }
}

const HOURS: &str = "\
WorkHours = ( (ClockMin >= 480 && ClockMin < 1020) && \\
              (ClockDay > 0 && ClockDay < 6) )
AfterHours = ( (ClockMin < 480 || ClockMin >= 1020) || \\
               (ClockDay == 0 || ClockDay == 6) )
";

/// Day of the week, minute of the day, and whether that is in work hours: 8:00 to 17:00, Monday to Friday.
const TIMES: [(i32, i32, bool); 7] = [
    (1, 479, false),
    (1, 480, true),
    (5, 1019, true),
    (5, 1020, false),
    (0, 600, false),
    (6, 600, false),
    (3, 0, false),
];

#[test]
fn time_of_day_policy_work_hours_are_eight_to_five_on_weekdays() {
    let config = startd(HOURS);
    for (day, minute, work) in TIMES {
        let clock = format!("ClockDay = {day}; ClockMin = {minute}");
        holds(&config, "WorkHours", &[(&clock, "", work)]);
        holds(&config, "AfterHours", &[(&clock, "", !work)]);
    }
}

#[test]
fn time_of_day_policy_jobs_stay_off_during_work_hours() {
    let config = startd(&format!(
        "{FRAGMENTS}{HOURS}
# Only start jobs after hours.
START = $(AfterHours)

# Consider the machine busy during work hours, or if the keyboard or
# CPU are busy.
MachineBusy = ( $(WorkHours) || $(CPUBusy) || $(KeyboardBusy) )
"
    ));
    for (day, minute, work) in TIMES {
        let clock = format!("ClockDay = {day}; ClockMin = {minute}; LoadAvg = 0.0; CondorLoadAvg = 0.0");
        holds(&config, "START", &[(&clock, "", !work)]);
        let (idle, used) = (format!("{clock}; KeyboardIdle = 99"), format!("{clock}; KeyboardIdle = 9"));
        holds(&config, "MachineBusy", &[(&idle, "", work), (&used, "", true)]);
    }
}

const DESKTOP: &str = r#"
# If "IsDesktop" is configured, make it an attribute of the machine ClassAd.
STARTD_ATTRS = IsDesktop

# Only consider starting jobs if:
# 1) the load average is low enough OR the machine is currently
#    running an HTCondor job
# 2) AND the user is not active (if a desktop)
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

MachineMaxVacateTime = 10 * $(MINUTE)
KILL = False
"#;

fn desktop_policy(local: &str) -> condor_config::Config {
    startd(&format!("{FRAGMENTS}{DESKTOP}{local}"))
}

#[test]
fn desktop_non_desktop_policy_is_toggled_by_one_line() {
    let (desktop, cluster) = (desktop_policy("IsDesktop = True\n"), desktop_policy(""));
    assert_eq!(desktop.boolean("IsDesktop").unwrap(), Some(true));
    assert_eq!(cluster.value("IsDesktop").unwrap(), None);
    assert_eq!(desktop.list("STARTD_ATTRS").unwrap(), ["IsDesktop"]);
}

#[test]
fn desktop_non_desktop_policy_start_minds_the_keyboard_of_desktops_only() {
    let config = desktop_policy("");
    let idle = "LoadAvg = 0.1; CondorLoadAvg = 0.0; State = \"Unclaimed\"";
    let busy = "LoadAvg = 2.0; CondorLoadAvg = 0.0; KeyboardIdle = 9999; State";
    holds(
        &config,
        "START",
        &[
            (&format!("{idle}; KeyboardIdle = 10"), "", true),
            (&format!("{idle}; KeyboardIdle = 10; IsDesktop = true"), "", false),
            (&format!("{idle}; KeyboardIdle = 901; IsDesktop = true"), "", true),
            (&format!("{busy} = \"Unclaimed\""), "", false),
            (&format!("{busy} = \"Claimed\""), "", true),
        ],
    );
}

#[test]
fn desktop_non_desktop_policy_suspends_and_continues() {
    let config = desktop_policy("");
    let run = |seconds: i64| format!("JobStart = {}", NOW - seconds);
    holds(
        &config,
        "SUSPEND",
        &[
            (&format!("CpuBusyTime = 121; KeyboardIdle = 99; {}", run(91)), "", true),
            (&format!("CpuBusyTime = 120; KeyboardIdle = 99; {}", run(91)), "", false),
            (&format!("CpuBusyTime = 121; KeyboardIdle = 99; {}", run(90)), "", false),
            (&format!("CpuBusyTime = 0; KeyboardIdle = 10; {}", run(5)), "", false),
            (&format!("CpuBusyTime = 0; KeyboardIdle = 10; IsDesktop = true; {}", run(5)), "", true),
        ],
    );
    let since = |seconds: i64, rest: &str| {
        format!("EnteredCurrentActivity = {}; LoadAvg = 0.0; CondorLoadAvg = 0.0; {rest}", NOW - seconds)
    };
    holds(
        &config,
        "CONTINUE",
        &[
            (&since(301, "KeyboardIdle = 0"), "", true),
            (&since(300, "KeyboardIdle = 0"), "", false),
            (&since(301, "KeyboardIdle = 300; IsDesktop = true"), "", false),
            (&since(301, "KeyboardIdle = 301; IsDesktop = true"), "", true),
        ],
    );
}

#[test]
fn desktop_non_desktop_policy_preempts_what_is_suspended_too_long() {
    let config = desktop_policy("");
    let slot = |activity: &str, seconds: i64| {
        format!(
            "Activity = \"{activity}\"; EnteredCurrentActivity = {}; CpuBusyTime = 0; KeyboardIdle = 10; LoadAvg = 0.0; \
             CondorLoadAvg = 0.0; JobStart = {}; IsDesktop = true",
            NOW - seconds,
            NOW - 1000
        )
    };
    let (vanilla, large) = ("JobUniverse = 5; ImageSize = 99999", "JobUniverse = 7; ImageSize = 99999");
    for (activity, seconds, job, leaves) in [
        ("Suspended", 601, vanilla, true),
        ("Suspended", 600, vanilla, false),
        ("Busy", 9999, vanilla, false), // it is suspended instead
        ("Busy", 1, large, true),       // neither small nor vanilla: it is not
    ] {
        let found = eval_in(&config, "PREEMPT", &["SUSPEND", "WANT_SUSPEND"], &slot(activity, seconds), job);
        assert_eq!(found, Value::Bool(leaves), "{activity} {seconds} {job}");
    }
    holds(&config, "WANT_VACATE", &[(&slot("Busy", 1), vanilla, true), (&slot("Busy", 1), large, true)]);
    assert_eq!(eval(&config, "MAXJOBRETIREMENTTIME", "", ""), Value::Int(0));
    assert_eq!(config.integer("MachineMaxVacateTime").unwrap(), Some(600));
    assert_eq!(config.boolean("KILL").unwrap(), Some(false));
}

/// The manual's NonSuspendableSlotState lacks a parenthesis; in this text it is added.
const SUSPENSION: &str = r#"
NUM_CPUS = $(DETECTED_CORES)*2
MEMORY = $(DETECTED_MEMORY)*2

IsSuspendableSlot = SlotID > $(DETECTED_CORES)

NonSuspendableSlotState = eval(strcat("slot",SlotID-$(DETECTED_CORES),"_State"))

STARTD_SLOT_ATTRS = $(STARTD_SLOT_ATTRS) State

STARTD_ATTRS = $(STARTD_ATTRS) IsSuspendableSlot NonSuspendableSlotState

MyNonSuspendableSlotIsIdle = \
  (NonSuspendableSlotState =!= "Claimed" && NonSuspendableSlotState =!= "Preempting")

# NonSuspendable slots are always willing to start jobs.
# Suspendable slots are only willing to start if the NonSuspendable slot is idle.
START = \
  IsSuspendableSlot!=True && IsSuspendableJob=!=True || \
  IsSuspendableSlot && IsSuspendableJob==True && $(MyNonSuspendableSlotIsIdle)

# Suspend the suspendable slot if the other slot is busy.
SUSPEND = \
  IsSuspendableSlot && $(MyNonSuspendableSlotIsIdle)!=True

WANT_SUSPEND = $(SUSPEND)

CONTINUE = ($(SUSPEND)) != True
"#;

#[test]
fn job_suspension_the_machine_has_two_slots_for_each_core() {
    let config = startd(SUSPENSION);
    assert_eq!(config.integer("NUM_CPUS").unwrap(), Some(8));
    assert_eq!(config.integer("MEMORY").unwrap(), Some(16384));
    assert_eq!(config.list("STARTD_ATTRS").unwrap(), ["IsSuspendableSlot", "NonSuspendableSlotState"]);
    assert_eq!(config.list("STARTD_SLOT_ATTRS").unwrap(), ["State"]);
    let printed = startd(&SUSPENSION.replace("\"_State\"))", "\"_State\")"));
    assert!(printed.expr("NonSuspendableSlotState").is_err());
}

#[test]
fn job_suspension_a_suspendable_job_makes_way_for_its_neighbor() {
    let config = startd(SUSPENSION);
    let slot = |id: i32, neighbor: &str| format!("SlotID = {id}; slot1_State = \"{neighbor}\"");
    let ask = |name, id, neighbor: &str, job: &str| {
        let published = ["IsSuspendableSlot", "NonSuspendableSlotState"];
        eval_in(&config, name, &published, &slot(id, neighbor), job).as_bool_equiv().unwrap_or(false)
    };
    let suspendable = "IsSuspendableJob = true";
    for (id, neighbor, job, starts) in [
        (1, "Claimed", "", true),
        (1, "Unclaimed", suspendable, false),
        (5, "Unclaimed", suspendable, true),
        (5, "Claimed", suspendable, false),
        (5, "Preempting", suspendable, false),
        (5, "Unclaimed", "", false),
    ] {
        assert_eq!(ask("START", id, neighbor, job), starts, "{id} {neighbor} {job}");
    }
    for (id, neighbor, suspends) in [(5, "Claimed", true), (5, "Unclaimed", false), (1, "Claimed", false)] {
        for (name, wanted) in [("SUSPEND", suspends), ("WANT_SUSPEND", suspends), ("CONTINUE", !suspends)] {
            assert_eq!(ask(name, id, neighbor, suspendable), wanted, "{name} {id} {neighbor}");
        }
    }
}

#[test]
fn interactive_jobs_are_preferred_by_slot_1_or_have_it_to_themselves() {
    let config = startd(
        "RANK = ( (MY.SlotID == 1) && (TARGET.InteractiveJob =?= True) )
START = ( (MY.SlotID == 1) && (TARGET.InteractiveJob =?= True) )
",
    );
    for name in ["RANK", "START"] {
        holds(
            &config,
            name,
            &[
                ("SlotID = 1", "InteractiveJob = true", true),
                ("SlotID = 1", "", false),
                ("SlotID = 2", "InteractiveJob = true", false),
            ],
        );
    }
}
