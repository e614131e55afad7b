//! Policy Configuration, *condor_startd* policy: when jobs start, are suspended, and leave.

use classad::Value;

use super::support::{FRAGMENTS, NOW, eval, eval_in, holds, startd, value};

#[test]
fn the_start_expression_jobs_always_run_and_are_never_kicked_off() {
    let config = startd("START = True\nSUSPEND = False\nPREEMPT = False\nKILL = False\n");
    let found = ["START", "SUSPEND", "PREEMPT", "KILL"].map(|name| config.boolean(name).unwrap());
    assert_eq!(found, [Some(true), Some(false), Some(false), Some(false)]);
}

#[test]
fn the_rank_expression_anyone_of_the_group_is_preferred() {
    let config = startd(
        r#"RANK = Owner == "coltrane" || Owner == "tyner" \
    || Owner == "garrison" || Owner == "jones"
"#,
    );
    for (owner, rank) in
        [("coltrane", 1.0), ("tyner", 1.0), ("garrison", 1.0), ("jones", 1.0), ("rollins", 0.0)]
    {
        let found = eval(&config, "RANK", "", &format!("Owner = \"{owner}\""));
        assert_eq!(found.as_number(), Some(rank), "{owner}");
    }
}

#[test]
fn the_rank_expression_the_owner_of_the_machine_comes_first() {
    let config = startd(
        r#"RANK = (Owner == "coltrane") + (Owner == "tyner") \
    + ((Owner == "garrison") * 10) + (Owner == "jones")
"#,
    );
    for (owner, rank) in [("garrison", 10.0), ("jones", 1.0), ("coltrane", 1.0), ("rollins", 0.0)] {
        let found = eval(&config, "RANK", "", &format!("Owner = \"{owner}\""));
        assert_eq!(found.as_number(), Some(rank), "{owner}");
    }
}

#[test]
fn the_rank_expression_the_bigger_the_job_the_better() {
    let config = startd("RANK = ImageSize\n");
    assert_eq!(eval(&config, "RANK", "", "ImageSize = 4096"), Value::Int(4096));
}

/// In the expression as it is printed, the product binds to the string: HTCondor answers error, and ranks the job 0.
/// With parentheses around the comparison the expression means what the text says.
#[test]
fn the_rank_expression_coltranes_jobs_before_larger_ones() {
    let printed = startd("RANK = (Owner == \"coltrane\" * 1000000000000) + Imagesize\n");
    assert_eq!(eval(&printed, "RANK", "", "Owner = \"coltrane\"; ImageSize = 1"), Value::Error);
    let meant = startd("RANK = ((Owner == \"coltrane\") * 1000000000000) + Imagesize\n");
    let rank = |job: &str| eval(&meant, "RANK", "", job).as_number().unwrap();
    assert!(rank("Owner = \"coltrane\"; ImageSize = 1") > rank("Owner = \"tyner\"; ImageSize = 900000000"));
    assert!(rank("Owner = \"tyner\"; ImageSize = 2") > rank("Owner = \"tyner\"; ImageSize = 1"));
}

/// Without a job, Owner is undefined: FALSE && UNDEFINED is FALSE, FALSE || UNDEFINED is UNDEFINED.
#[test]
fn owner_state_start_of_the_desktop_template_keeps_the_machine_or_gives_it() {
    let with = |operator: &str| {
        startd(&format!(
            "use POLICY : Desktop\nSTART = KeyboardIdle > 15 * $(MINUTE) {operator} Owner == \"coltrane\"\n"
        ))
    };
    let is_owner = |operator: &str| eval_in(&with(operator), "IS_OWNER", &["START"], "KeyboardIdle = 34", "");
    assert_eq!(is_owner("&&"), Value::Bool(true));
    assert_eq!(is_owner("||"), Value::Bool(false));
    holds(
        &with("||"),
        "START",
        &[
            ("KeyboardIdle = 34", "Owner = \"coltrane\"", true),
            ("KeyboardIdle = 34", "Owner = \"tyner\"", false),
            ("KeyboardIdle = 901", "Owner = \"tyner\"", true),
        ],
    );
}

#[test]
fn unclaimed_state_the_desktop_template_owns_the_machine_while_start_is_false() {
    let config = startd("use POLICY : Desktop\n");
    assert_eq!(value(&config, "IS_OWNER"), "(START =?= False)");
    assert_eq!(value(&startd(""), "IS_OWNER"), "False");
}

#[test]
fn unclaimed_state_benchmarks_run_every_four_hours_and_at_once_if_never() {
    let config = startd("RunBenchmarks = (time() - LastBenchmark) >= (4 * $(HOUR))\n");
    for (age, run) in [(4 * 3600, true), (4 * 3600 - 1, false), (NOW, true)] {
        let found = eval(&config, "RUNBENCHMARKS", &format!("LastBenchmark = {}", NOW - age), "");
        assert_eq!(found, Value::Bool(run), "{age}");
    }
}

/// The line of three dots under each of the two printed lists stands for the rest of a configuration.
#[test]
fn claimed_state_vanilla_jobs_have_expressions_of_their_own() {
    let config = startd(&format!(
        "{FRAGMENTS}WANT_SUSPEND            = True
WANT_VACATE             = $(ActivationTimer) > 10 * $(MINUTE)
SUSPEND                 = $(KeyboardBusy) || $(CPUBusy)
WANT_SUSPEND_VANILLA    = True
WANT_VACATE_VANILLA     = True
SUSPEND_VANILLA         = $(KeyboardBusy) || $(CPUBusy)
"
    ));
    for name in ["WANT_SUSPEND", "WANT_SUSPEND_VANILLA", "WANT_VACATE_VANILLA"] {
        assert_eq!(config.boolean(name).unwrap(), Some(true), "{name}");
    }
    for (run, vacate) in [(600, false), (601, true)] {
        let found = eval(&config, "WANT_VACATE", &format!("JobStart = {}", NOW - run), "");
        assert_eq!(found, Value::Bool(vacate), "{run}");
    }
    for name in ["SUSPEND", "SUSPEND_VANILLA"] {
        holds(
            &config,
            name,
            &[
                ("KeyboardIdle = 59; LoadAvg = 0.0; CondorLoadAvg = 0.0", "", true),
                ("KeyboardIdle = 60; LoadAvg = 1.5; CondorLoadAvg = 1.0", "", true),
                ("KeyboardIdle = 60; LoadAvg = 1.4; CondorLoadAvg = 1.0", "", false),
            ],
        );
    }
}
