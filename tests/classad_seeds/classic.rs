//! Startd Policy Configuration (6.6).

use slotwright::classad::Value;

use crate::support::{MACROS, NOW, Policy, UNPRINTED, value};

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
