//! Tests of the knob table.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::defaults::DEFAULTS;
use super::unset::UNSET;
use super::*;

fn named(name: &str) -> Option<&'static str> {
    find(name).map(|knob| knob.name)
}

#[test]
fn recorded_names_are_sorted_and_there_once() {
    let defaults: Vec<String> = DEFAULTS.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let unset: Vec<String> = UNSET.iter().map(|name| name.to_ascii_lowercase()).collect();
    for names in [&defaults, &unset] {
        assert!(names.is_sorted_by(|a, b| a < b));
    }
    let both: Vec<&String> = unset.iter().filter(|name| defaults.binary_search(name).is_ok()).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn no_knob_is_there_twice() {
    let mut seen = BTreeSet::new();
    for knob in all() {
        assert!(seen.insert(knob.name.to_ascii_lowercase()), "{}", knob.name);
    }
}

#[test]
fn every_knob_is_documented_and_found_by_its_name() {
    for knob in all() {
        let sample = knob.name.replace("<N>", "7").replace('<', "x").replace('>', "y");
        assert_eq!(named(&sample), Some(knob.name), "{sample}");
        assert!(knob.doc.ends_with('.') && !knob.doc.contains('\n'), "{}: {}", knob.name, knob.doc);
        assert!(!knob.readers.is_empty(), "{}", knob.name);
    }
}

#[test]
fn every_default_suits_its_knob() {
    for knob in all() {
        // Defaults of macros that refer to others are checked where they are expanded: tests/config_seeds.rs.
        let Some(default) = knob.default().filter(|default| !default.contains('$')) else { continue };
        let default = default.replace("<resource>", "Gpus");
        let wrong: Vec<Finding> = check(knob.name, &default)
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", knob.name);
    }
}

#[test]
fn a_fallback_is_only_for_what_the_table_of_htcondor_leaves_unset() {
    for knob in all().filter(|knob| knob.fallback.is_some()) {
        assert_eq!(default_of(None, knob.name), None, "{}", knob.name);
    }
}

#[test]
fn names_are_found_through_case_prefixes_slot_types_and_patterns() {
    for (name, knob) in [
        ("start", Some("START")),
        ("STARTD.START", Some("START")),
        ("NEGOTIATOR.EAST.NEGOTIATOR_INTERVAL", Some("NEGOTIATOR_INTERVAL")),
        ("SLOT_TYPE_2", Some("SLOT_TYPE_<N>")),
        ("SLOT_TYPE_12_PARTITIONABLE", Some("SLOT_TYPE_<N>_PARTITIONABLE")),
        ("slot_type_3_start", Some("START")),
        ("SLOT_TYPE_3_CONSUMPTION_GPUs", Some("CONSUMPTION_<resource>")),
        ("SLOT_TYPE_3_NEGOTIATOR_INTERVAL", None),
        ("SLOT_TYPE_1_SlotWeight", Some("SlotWeight")),
        ("SLOT_TYPE_X", None),
        ("SLOT1_STARTD_ATTRS", Some("SLOT<N>_STARTD_ATTRS")),
        ("GROUP_QUOTA_group_physics.hep", Some("GROUP_QUOTA_<group>")),
        ("GROUP_QUOTA_DYNAMIC_group_physics", Some("GROUP_QUOTA_DYNAMIC_<group>")),
        ("GROUP_ACCEPT_SURPLUS", Some("GROUP_ACCEPT_SURPLUS")),
        ("LARGE.SWLICENSE_LIMIT", Some("<name>_LIMIT")),
        ("CONCURRENCY_LIMIT_DEFAULT_LARGE", Some("CONCURRENCY_LIMIT_DEFAULT_<set>")),
        ("SUBMIT_REQUIREMENT_NotChris", Some("SUBMIT_REQUIREMENT_<name>")),
        ("SUBMIT_REQUIREMENT_NotChris_REASON", Some("SUBMIT_REQUIREMENT_<name>_REASON")),
        ("JOB_TRANSFORM_NAMES", Some("JOB_TRANSFORM_NAMES")),
        ("JOB_TRANSFORM_AssignGroup", Some("JOB_TRANSFORM_<name>")),
        ("MACHINE_RESOURCE_INVENTORY_GPUs", Some("MACHINE_RESOURCE_INVENTORY_<name>")),
        ("_LIMIT", None),
        ("AfterHours", None),
        ("", None),
    ] {
        assert_eq!(named(name), knob, "{name}");
    }
}

#[test]
fn a_hostile_name_costs_little() {
    let long = "a.".repeat(100_000);
    assert_eq!(classify(&long), Class::Unknown { nearest: None });
    assert_eq!(named(&format!("{long}START")), None);
    assert_eq!(named(&format!("GROUP_QUOTA_{long}x")), None);
    assert_eq!(named(&format!("GROUP_QUOTA_{}", "a.b".repeat(300))), Some("GROUP_QUOTA_<group>"));
}

/// Parameters whose names the daemons put together: qmgmt.cpp, condor_secman.cpp, os_proc.cpp, jic_shadow.cpp.
#[test]
fn parameters_with_a_variable_part_are_known() {
    for name in [
        "SCHEDD_ROUND_ATTR_RequestMemory",
        "SLOT1_USER",
        "SLOT1_2_USER",
        "SLOT3_CPU_AFFINITY",
        "SEC_WRITE_AUTHENTICATION",
        "SEC_DAEMON_INTEGRITY",
        "SEC_DAEMON_AUTHENTICATION_METHODS",
        "SEC_ADVERTISE_STARTD_ENCRYPTION",
        "SEC_CLIENT_CRYPTO_METHODS",
        "SEC_READ_SESSION_DURATION",
        "SCHEDD.SEC_WRITE_NEGOTIATION",
    ] {
        assert_eq!(classify(name), Class::Parameter, "{name}");
    }
    for name in ["SEC_WRITE_COLOR", "SLOTX_CPU_AFFINITY", "SCHEDD_ROUND_ATTR_"] {
        assert!(matches!(classify(name), Class::Unknown { .. }), "{name}");
    }
}

#[test]
fn a_parameter_of_htcondors_is_none_of_a_pattern() {
    assert_eq!(classify("ARC_GAHP_COMMAND_LIMIT"), Class::Parameter);
    assert_eq!(classify("STARTD.ALLOW_WRITE"), Class::Parameter);
}

#[test]
fn defaults_are_htcondors_by_subsystem() {
    for (subsystem, name, default) in [
        (None, "SLOT_WEIGHT", Some("Cpus")),
        (None, "slot_weight", Some("Cpus")),
        (None, "MINUTE", Some("60")),
        (None, "PID_SNAPSHOT_INTERVAL", Some("15")),
        (Some("master"), "PID_SNAPSHOT_INTERVAL", Some("60")),
        (Some("STARTD"), "PID_SNAPSHOT_INTERVAL", Some("15")),
        (None, "IsStartd", Some("false")),
        (Some("STARTD"), "IsStartd", Some("true")),
        (None, "ACCOUNTANT_HOST", None),
        (None, "NUM_SLOTS", None),
        (None, "no such", None),
    ] {
        assert_eq!(default_of(subsystem, name), default, "{subsystem:?} {name}");
    }
}

#[test]
fn slips_of_the_hand_are_told_from_macros_of_ones_own() {
    for (name, nearest) in [
        ("STRAT", Some("START")),
        ("PREMPT", Some("PREEMPT")),
        ("NEGOTIATOR_PRE_JOBRANK", Some("NEGOTIATOR_PRE_JOB_RANK")),
        ("STARTD.SLOT_WIEGHT", Some("SLOT_WEIGHT")),
        ("CLAIM_WORKLIVE", Some("CLAIM_WORKLIFE")),
        ("SCHEDD_LOGS", Some("SCHEDD_LOG")),
        ("AfterHours", None),
        ("x", None),
    ] {
        assert_eq!(classify(name), Class::Unknown { nearest }, "{name}");
    }
}

#[test]
fn values_are_held_to_type_and_range() {
    let errors = |name: &str, value: &str| -> Vec<String> {
        let findings = check(name, value).into_iter();
        findings
            .filter(|finding| finding.severity == Severity::Error)
            .map(|finding| finding.message)
            .collect()
    };
    for (name, value) in [
        ("START", "KeyboardIdle > 15 * 60"),
        ("START", ""),
        ("CLAIM_WORKLIFE", "20 * 60"),
        ("NEGOTIATOR_INTERVAL", "10 * 60"),
        ("ALLOW_PSLOT_PREEMPTION", "true"),
        ("ALLOW_PSLOT_PREEMPTION", "1"),
        ("XSW_LIMIT", "2.5"),
        ("GROUP_QUOTA_DYNAMIC_physics", "0.33"),
        ("SLOT_TYPE_1", "cpus=1/4, 25%"),
        ("no such", "==="),
    ] {
        assert!(errors(name, value).is_empty(), "{name} = {value}: {:?}", errors(name, value));
    }
    insta::assert_yaml_snapshot!(
        [
            ("START", "KeyboardIdle >"),
            ("SLOT_TYPE_2_START", "("),
            ("STARTD.CLAIM_WORKLIFE", "20 minutes"),
            ("NEGOTIATOR_INTERVAL", "soon"),
            ("NEGOTIATOR_INTERVAL", "-1"),
            ("GROUP_QUOTA_DYNAMIC_physics", "1.5"),
            ("ALLOW_PSLOT_PREEMPTION", "yes"),
            ("XSW_LIMIT", "\"3\""),
        ]
        .map(|(name, value)| (format!("{name} = {value}"), errors(name, value)))
    );
}

#[test]
fn a_knob_that_does_nothing_here_says_so() {
    insta::assert_yaml_snapshot!(
        [
            ("START", "True"),
            ("PREEMPT", "False"),
            ("NEGOTIATOR_INTERVAL", "60"),
            ("DAEMON_LIST", "MASTER, STARTD"),
            ("SCHEDD_LOG", "/var/log/SchedLog"),
            ("AfterHours", "True"),
        ]
        .map(|(name, value)| (name, check(name, value).into_iter().map(|f| f.message).collect::<Vec<_>>()))
    );
}

#[test]
fn a_name_that_nothing_reads_is_reported_with_the_nearest() {
    assert_eq!(unknown("START"), None);
    assert_eq!(unknown("SCHEDD_LOG"), None);
    insta::assert_yaml_snapshot!(
        ["STRAT", "AfterHours"].map(|name| unknown(name).map(|finding| finding.message))
    );
}

proptest! {
    #[test]
    fn any_name_and_value_is_classified_and_checked(name in ".{0,40}", value in ".{0,60}") {
        let _ = (classify(&name), check(&name, &value), unknown(&name));
    }

    #[test]
    fn a_prefix_or_another_case_changes_nothing(at in 0_usize..400, subsystem in "[A-Z]{3,9}") {
        let knob = all().filter(|knob| !knob.is_pattern()).nth(at % all().filter(|k| !k.is_pattern()).count()).unwrap();
        prop_assert_eq!(named(&format!("{subsystem}.{}", knob.name.to_lowercase())), Some(knob.name));
    }
}
