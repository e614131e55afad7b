//! Tests of the warnings about texts where others count.

use super::*;

#[test]
fn a_text_that_never_acts_is_told() {
    for (field, text, remedy) in [
        ("OnExitRemove", "ExitCode == 0", "take the double quotes away"),
        ("AllowedJobDuration", "3600", "take the double quotes away"),
        ("jobmaterializelimit", "5", "take the double quotes away"),
        ("DeferralTime", "in two hours", "write an expression"),
    ] {
        let attributes = json!({field: format!("\"{text}\"")});
        let expected = format!(
            "spec.attributes[{field}]: is the text \"{text}\", which is neither true nor a number; {remedy}"
        );
        assert_eq!(told(json!({"attributes": attributes})), [expected]);
    }
    let spec = json!({"requirements": "\"true\"", "rank": "\"Mips\""});
    let says = |field: &str, text: &str| {
        format!(
            "spec.{field}: is the text \"{text}\", which is neither true nor a number; take the double quotes away"
        )
    };
    assert_eq!(told(spec), [says("requirements", "true"), says("rank", "Mips")]);
}

#[test]
fn a_delay_that_is_cut_is_told() {
    let told = |text: &str| told(json!({"attributes": {"NextJobStartDelay": text}}));
    assert_eq!(
        told("3600"),
        [
            "spec.attributes[NextJobStartDelay]: 3600 seconds count as 600, which is the longest delay; write 600"
        ]
    );
    for fits in ["600", "-1", "JobPrio * 1000"] {
        assert_eq!(told(fits), [""; 0], "{fits}");
    }
}

#[test]
fn a_text_that_no_machine_has_is_told() {
    let spec =
        json!({"requirements": "TARGET.Arch == \"amd64\"", "attributes": {"PeriodicRemove": "Owner == bob"}});
    assert_eq!(
        told(spec),
        [
            "spec.requirements: compares Arch with \"amd64\", which no slot has unless an admin says so; write \"X86_64\"",
            "spec.attributes[PeriodicRemove]: compares Owner with bob, an attribute that neither nodes nor jobs have unless somebody adds \
             it; a text has double quotes: \"bob\"",
        ]
    );
}

#[test]
fn an_attribute_of_slots_in_the_jobs_own_ad_is_told() {
    let spec = json!({"requirements": "MY.Memory > 3 && MY.RequestMemory > 1 && MY.Cpus >= 4", "attributes": {"Cpus": "4"}});
    assert_eq!(
        told(spec),
        [
            "spec.requirements: looks at MY.Memory, which no job has unless its author adds it; did you mean TARGET.Memory?"
        ]
    );
}

#[test]
fn texts_that_are_meant_are_not_told() {
    for spec in [
        json!({"attributes": {"OnExitHoldReason": "\"look first\"", "PeriodicHoldReason": "\"x\"", "Note": "\"true\"", "CronMinute": "\"*/5\""}}),
        json!({"attributes": {"Friend": "\"bob\"", "PeriodicRemove": "Owner == friend", "DeferralTime": "time() + 60"}}),
        json!({"requirements": "TARGET.Arch == \"X86_64\" || TARGET.Arch == \"aarch64\"", "concurrencyLimitsExpr": "\"XSW\""}),
    ] {
        assert_eq!(told(spec.clone()), [""; 0], "{spec}");
    }
}
