//! Startd Policy Configuration of version 6.6: the classic policy. The parts that the newer chapter has too (START,
//! RANK, the policy for test jobs) are in `execution.rs`.

use classad::Value;
use condor_config::Config;

use super::support::{NOW, eval, eval_in, holds, startd, value};

#[test]
fn the_start_expression_and_rank_are_printed_as_in_the_newer_chapter() {
    let config = startd(
        r#"        RANK = Owner == "coltrane" || Owner == "tyner" \
                     || Owner == "garrison" || Owner == "jones"
"#,
    );
    assert_eq!(eval(&config, "RANK", "", "Owner = \"jones\""), Value::Bool(true));
    assert_eq!(eval(&config, "RANK", "", "Owner = \"rollins\""), Value::Bool(false));
}

#[test]
fn owner_state_start_is_false_or_undefined_while_the_keyboard_is_used() {
    for (operator, wanted) in [("&&", Value::Bool(false)), ("||", Value::Undefined)] {
        let config = startd(&format!(
            "START = KeyboardIdle > 15 * $(MINUTE) {operator} Owner == \"coltrane\"\nIS_OWNER = (START =?= FALSE)\n"
        ));
        assert_eq!(eval(&config, "START", "KeyboardIdle = 34", ""), wanted, "{operator}");
        let is_owner = eval_in(&config, "IS_OWNER", &["START"], "KeyboardIdle = 34", "");
        assert_eq!(is_owner, Value::Bool(wanted == Value::Bool(false)), "{operator}");
    }
}

#[test]
fn unclaimed_state_benchmarks_run_every_four_hours() {
    let config = startd(
        "        BenchmarkTimer = (CurrentTime - LastBenchmark)
        RunBenchmarks = $(BenchmarkTimer) >= (4 * $(HOUR))
",
    );
    for (age, run) in [(4 * 3600, true), (4 * 3600 - 1, false)] {
        let slot = format!("CurrentTime = {NOW}; LastBenchmark = {}", NOW - age);
        assert_eq!(eval(&config, "RunBenchmarks", &slot, ""), Value::Bool(run), "{age}");
    }
}

const MACROS: &str = "\
MINUTE          = 60
HOUR            = (60 * $(MINUTE))
StateTimer      = (CurrentTime - EnteredCurrentState)
ActivityTimer   = (CurrentTime - EnteredCurrentActivity)
ActivationTimer = (CurrentTime - JobStart)
LastCkpt        = (CurrentTime - LastPeriodicCheckpoint)

NonCondorLoadAvg        = (LoadAvg - CondorLoadAvg)
BackgroundLoad          = 0.3
HighLoad                = 0.5
StartIdleTime           = 15 * $(MINUTE)
ContinueIdleTime        = 5 * $(MINUTE)
MaxSuspendTime          = 10 * $(MINUTE)
MaxVacateTime           = 10 * $(MINUTE)

KeyboardBusy            = KeyboardIdle < $(MINUTE)
ConsoleBusy             = (ConsoleIdle  < $(MINUTE))
CPUIdle                = $(NonCondorLoadAvg) <= $(BackgroundLoad)
CPUBusy                = $(NonCondorLoadAvg) >= $(HighLoad)
KeyboardNotBusy         = ($(KeyboardBusy) == False)
MachineBusy             = ($(CPUBusy) || $(KeyboardBusy)
";

/// The policy as it is printed, with a blank after the backslash of one line. HTCondor defined the macro IsPVM at
/// that time.
const POLICY: &str = "\
IsPVM = (TARGET.JobUniverse == 4)
WANT_SUSPEND       = ( $(SmallJob) || $(KeyboardNotBusy) \\
                       || $(IsPVM) || $(IsVanilla) )
WANT_VACATE        = ( $(ActivationTimer) > 10 * $(MINUTE) \\
                       || $(IsPVM) || $(IsVanilla) )
START        = ( (KeyboardIdle > $(StartIdleTime)) \\
                  && ( $(CPUIdle) || \\
                       (State != \"Unclaimed\" && State != \"Owner\")) )
SUSPEND         = ( $(KeyboardBusy) || \\
                 ( (CpuBusyTime > 2 * $(MINUTE)) \\
                    && $(ActivationTimer) > 90 ) )
CONTINUE        = ( $(CPUIdle) && ($(ActivityTimer) > 10) \\
                  && (KeyboardIdle > $(ContinueIdleTime)) )
PREEMPT\t        = ( ((Activity == \"Suspended\") && \\
                    ($(ActivityTimer) > $(MaxSuspendTime))) \\
                    || (SUSPEND && (WANT_SUSPEND == False)) )
KILL            = $(ActivityTimer) > $(MaxVacateTime)
PERIODIC_CHECKPOINT     = ( (ImageSize < 60000) && \\
                            ($(LastCkpt) > (6 * $(HOUR))) ) || \\ \n                          ( $(LastCkpt) > (12 * $(HOUR)) )
";

fn classic() -> Config {
    startd(&format!("{MACROS}{POLICY}"))
}

/// A slot whose state, activity and job began `seconds` ago.
fn slot(seconds: i64, rest: &str) -> String {
    let then = NOW - seconds;
    format!(
        "CurrentTime = {NOW}; EnteredCurrentState = {then}; EnteredCurrentActivity = {then}; JobStart = {then}; \
         LastPeriodicCheckpoint = {then}; {rest}"
    )
}

#[test]
fn policy_settings_the_macros_are_what_the_list_says() {
    let config = startd(MACROS);
    let seconds = ["StartIdleTime", "ContinueIdleTime", "MaxSuspendTime", "MaxVacateTime", "HOUR"];
    assert_eq!(seconds.map(|name| config.integer(name).unwrap().unwrap()), [900, 300, 600, 600, 3600]);
    for name in ["StateTimer", "ActivityTimer", "ActivationTimer", "LastCkpt"] {
        assert_eq!(eval(&config, name, &slot(7, ""), ""), Value::Int(7), "{name}");
    }
    // The manual's text lacks a parenthesis, as in the newer chapter.
    assert!(config.expr("MachineBusy").is_err());
    assert_eq!(value(&config, "MachineBusy"), "((LoadAvg - CondorLoadAvg) >= 0.5 || KeyboardIdle < 60");
}

#[test]
fn policy_settings_small_vanilla_and_pvm_jobs_are_suspended_and_vacated() {
    let config = classic();
    let large = "ImageSize = 99999; JobUniverse";
    for (universe, wanted) in [(5, true), (4, true), (7, false)] {
        let job = format!("{large} = {universe}");
        holds(&config, "WANT_SUSPEND", &[(&slot(5, "KeyboardIdle = 10"), &job, wanted)]);
        holds(&config, "WANT_VACATE", &[(&slot(600, ""), &job, wanted), (&slot(601, ""), &job, true)]);
    }
    let job = "ImageSize = 100; JobUniverse = 7";
    holds(&config, "WANT_SUSPEND", &[(&slot(5, "KeyboardIdle = 10"), job, true)]);
    holds(&config, "WANT_SUSPEND", &[(&slot(5, "KeyboardIdle = 60"), &format!("{large} = 7"), true)]);
}

#[test]
fn policy_settings_jobs_start_on_idle_machines_and_on_those_that_run_one() {
    let at = |keyboard: i32, load: f64, state: &str| {
        format!("KeyboardIdle = {keyboard}; LoadAvg = {load:?}; CondorLoadAvg = 0.0; State = \"{state}\"")
    };
    holds(
        &classic(),
        "START",
        &[
            (&at(901, 0.3, "Unclaimed"), "", true),
            (&at(900, 0.3, "Unclaimed"), "", false),
            (&at(901, 0.4, "Unclaimed"), "", false),
            (&at(901, 0.4, "Owner"), "", false),
            (&at(901, 0.4, "Claimed"), "", true),
        ],
    );
}

#[test]
fn policy_settings_a_used_keyboard_or_a_busy_cpu_suspends_a_job() {
    let config = classic();
    holds(
        &config,
        "SUSPEND",
        &[
            (&slot(1, "KeyboardIdle = 59; CpuBusyTime = 0"), "", true),
            (&slot(91, "KeyboardIdle = 60; CpuBusyTime = 121"), "", true),
            (&slot(90, "KeyboardIdle = 60; CpuBusyTime = 121"), "", false),
            (&slot(91, "KeyboardIdle = 60; CpuBusyTime = 120"), "", false),
        ],
    );
    let idle = "LoadAvg = 0.2; CondorLoadAvg = 0.0; KeyboardIdle";
    holds(
        &config,
        "CONTINUE",
        &[
            (&slot(11, &format!("{idle} = 301")), "", true),
            (&slot(10, &format!("{idle} = 301")), "", false),
            (&slot(11, &format!("{idle} = 300")), "", false),
        ],
    );
}

#[test]
fn policy_settings_jobs_suspended_too_long_are_preempted_and_killed() {
    let config = classic();
    let busy = "KeyboardIdle = 10; CpuBusyTime = 0; Activity";
    for (seconds, activity, job, leaves) in [
        (601, "Suspended", "ImageSize = 1; JobUniverse = 5", true),
        (600, "Suspended", "ImageSize = 1; JobUniverse = 5", false),
        (1, "Busy", "ImageSize = 99999; JobUniverse = 7", true),
        (1, "Busy", "ImageSize = 1; JobUniverse = 7", false),
    ] {
        let slot = slot(seconds, &format!("{busy} = \"{activity}\""));
        let found = eval_in(&config, "PREEMPT", &["SUSPEND", "WANT_SUSPEND"], &slot, job);
        assert_eq!(found, Value::Bool(leaves), "{seconds} {activity} {job}");
    }
    holds(&config, "KILL", &[(&slot(600, ""), "", false), (&slot(601, ""), "", true)]);
}

#[test]
fn policy_settings_small_jobs_checkpoint_every_six_hours_and_large_ones_every_twelve() {
    const HOURS: i64 = 3600;
    let config = classic();
    let (small, large) = ("ImageSize = 59999", "ImageSize = 60000");
    holds(
        &config,
        "PERIODIC_CHECKPOINT",
        &[
            (&slot(6 * HOURS + 1, ""), small, true),
            (&slot(6 * HOURS, ""), small, false),
            (&slot(6 * HOURS + 1, ""), large, false),
            (&slot(12 * HOURS + 1, ""), large, true),
        ],
    );
    let simple = startd(&format!("{MACROS}PERIODIC_CHECKPOINT     = $(LastCkpt) > (3 * $(HOUR))\n"));
    let cases = [(&*slot(3 * HOURS, ""), "", false), (&*slot(3 * HOURS + 1, ""), "", true)];
    holds(&simple, "PERIODIC_CHECKPOINT", &cases);
}

#[test]
fn policy_examples_test_jobs_run_whatever_happens() {
    let config = startd(&format!(
        "{MACROS}{POLICY}
        START      = ($(START)) || Owner == \"coltrane\"
        SUSPEND    = ($(SUSPEND)) && Owner != \"coltrane\"
        CONTINUE   = $(CONTINUE)
        PREEMPT    = ($(PREEMPT)) && Owner != \"coltrane\"
        KILL       = $(KILL)
"
    ));
    let used = slot(9999, "KeyboardIdle = 1; CpuBusyTime = 500; Activity = \"Suspended\"; State = \"Owner\"");
    for (name, coltrane, tyner) in
        [("START", true, false), ("SUSPEND", false, true), ("PREEMPT", false, true)]
    {
        for (owner, wanted) in [("coltrane", coltrane), ("tyner", tyner)] {
            holds(&config, name, &[(&used, &format!("Owner = \"{owner}\""), wanted)]);
        }
    }
    assert_eq!(
        ["CONTINUE", "KILL"].map(|name| value(&config, name)),
        ["CONTINUE", "KILL"].map(|name| value(&classic(), name))
    );
}

#[test]
fn policy_examples_jobs_stay_off_during_work_hours() {
    let config = startd(&format!(
        "{MACROS}{POLICY}
WorkHours = ( (ClockMin >= 480 && ClockMin < 1020) && \\
              (ClockDay > 0 && ClockDay < 6) ) \nAfterHours = ( (ClockMin < 480 || ClockMin >= 1020) || \\
               (ClockDay == 0 || ClockDay == 6) )

# Only start jobs after hours.
START = $(AfterHours) && $(CPUIdle) && KeyboardIdle > $(StartIdleTime)

# Consider the machine busy during work hours, or if the keyboard or
# CPU are busy.
MachineBusy = ( $(WorkHours) || $(CPUBusy) || $(KeyboardBusy) )

WANT_SUSPEND = $(AfterHours)
"
    ));
    for (day, minute, work) in [(1, 480, true), (1, 479, false), (5, 1020, false), (0, 700, false)] {
        let idle = format!(
            "ClockDay = {day}; ClockMin = {minute}; LoadAvg = 0.0; CondorLoadAvg = 0.0; KeyboardIdle = 901"
        );
        holds(&config, "START", &[(&idle, "", !work)]);
        holds(&config, "MachineBusy", &[(&idle, "", work)]);
        holds(&config, "WANT_SUSPEND", &[(&idle, "", !work)]);
    }
}
