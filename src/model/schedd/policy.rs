//! Reads the schedd's configuration from a `SubmitPolicy`'s text: the knobs that the operator acts on, and remarks about the rest.

use std::sync::Arc;

use crate::pool::{JobDefaults, OwnerRule, SubmitConfig, SubmitRules};
use crate::startd::config::{Remark, Severity, of_text, sort};
use classad::Maps;
use condor_config::Config;
use condor_config::knobs::Reader;
use condor_config::user_map;

/// Reads a text for the subsystem `SCHEDD`. Returns the configuration, and the remarks in the order of the text. The configuration
/// is none if one of the remarks is an error.
pub fn understand(text: &str) -> (Option<SubmitConfig>, Vec<Remark>) {
    let (reading, mut remarks) = of_text("SCHEDD", &[Reader::Schedd, Reader::Submit], text);
    let defaults = JobDefaults::read(&reading.config);
    if let Err(faults) = &defaults {
        remarks.extend(faults.iter().map(Remark::of_value));
    }
    let (system, faults) = super::system_policy::read(&reading.config);
    remarks.extend(faults.iter().map(Remark::of_value));
    remarks.extend(half_listed(&reading.config));
    remarks.extend(super::user_maps::unknown(&reading.config));
    let config = Arc::new(reading.config);
    let mut findings = Vec::new();
    let maps = Maps::new(Arc::new(user_map::Maps::read(&config, &mut findings)));
    let rules = SubmitRules::new(text, &config, maps, &mut findings);
    remarks.extend(findings.iter().map(Remark::of_finding));
    sort(&mut remarks);
    let usable = remarks.iter().all(|remark| remark.severity != Severity::Error);
    let said = |defaults| SubmitConfig {
        job_defaults: Arc::new(defaults),
        rules: Arc::new(rules),
        owner: OwnerRule::default(),
        system: Arc::new(system),
    };
    (defaults.ok().filter(|_| usable).map(said), remarks)
}

/// The knobs that have a list of names, with the ends of the names of further knobs about each of the list.
const LISTS: [(&str, &[&str]); 6] = [
    ("SYSTEM_PERIODIC_HOLD", &["_REASON", "_SUBCODE"]),
    ("SYSTEM_PERIODIC_RELEASE", &["_REASON", "_SUBCODE"]),
    ("SYSTEM_PERIODIC_REMOVE", &["_REASON", "_SUBCODE"]),
    ("SYSTEM_PERIODIC_VACATE", &["_REASON", "_SUBCODE"]),
    ("JOB_TRANSFORM", &[]),
    ("SUBMIT_REQUIREMENT", &["_REASON", "_IS_WARNING"]),
];

/// Remarks about lists that name a knob which nothing defines, and about knobs that no list names.
fn half_listed(config: &Config) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (knob, ends) in LISTS {
        let list = format!("{knob}_NAMES");
        let names = config.list(&list).unwrap_or_default();
        if knob.starts_with("SYSTEM")
            && let Some(definition) = config.definition(&list)
        {
            for name in names.iter().filter(|name| config.definition(&format!("{knob}_{name}")).is_none()) {
                let message = format!("{list} names {name}, and nothing defines {knob}_{name}");
                let position = config.position(definition);
                remarks.push(Remark::at(&position, Severity::Warning, message).about(&list));
            }
        }
        for definition in config.definitions() {
            let upper = definition.name.to_ascii_uppercase();
            let Some(name) = upper.strip_prefix(knob).and_then(|rest| rest.strip_prefix('_')) else {
                continue;
            };
            let is_further = ends.iter().any(|end| upper.ends_with(end));
            if name == "NAMES" || is_further || names.iter().any(|listed| listed.eq_ignore_ascii_case(name)) {
                continue;
            }
            let message = format!("{} has no effect, since {list} does not name it", definition.name);
            let position = config.position(definition);
            remarks.push(Remark::at(&position, Severity::Warning, message).about(&definition.name));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (bool, Vec<String>) {
        let (config, remarks) = understand(text);
        (config.is_some(), remarks.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_acted_on_leaves_nothing_to_say() {
        let text = "MB = 512\nJOB_DEFAULT_REQUESTMEMORY = $(MB)\nSCHEDD.JOB_DEFAULT_REQUESTCPUS = 2\n";
        let (config, remarks) = understand(text);
        assert_eq!(remarks, []);
        let record = config.unwrap().job_defaults.record();
        assert_eq!((record["RequestMemory"].as_str(), record["RequestCpus"].as_str()), ("512", "2"));
    }

    #[test]
    fn what_is_not_acted_on_is_said_so() {
        let text = "START = TARGET.x\nSYSTEM_ON_VACATE_COOL_DOWN = 5\nJOB_DEFAULT_REQUESTMEMRY = 1\n";
        assert_eq!(
            told(text),
            (
                true,
                vec![
                    "line 1, column 1: START has no effect here; say it in spec.config of a NodePolicy".to_owned(),
                    "line 2, column 1: SYSTEM_ON_VACATE_COOL_DOWN is understood, but nothing acts on it yet".to_owned(),
                    "line 3, column 1: nothing reads JOB_DEFAULT_REQUESTMEMRY: did you mean JOB_DEFAULT_REQUESTMEMORY?"
                        .to_owned(),
                ]
            )
        );
    }

    #[test]
    fn lists_and_what_they_name_belong_together() {
        let text = "SYSTEM_PERIODIC_HOLD_NAMES = Mem, Disk\nSYSTEM_PERIODIC_HOLD_Mem = false\nSYSTEM_PERIODIC_HOLD_Mem_REASON = \"m\"\n\
                    SYSTEM_PERIODIC_HOLD_REASON = \"all\"\nSYSTEM_PERIODIC_REMOVE_Old = true\nSUBMIT_REQUIREMENT_C = true\n";
        assert_eq!(
            told(text),
            (
                true,
                vec![
                    "line 1, column 1: SYSTEM_PERIODIC_HOLD_NAMES names Disk, and nothing defines SYSTEM_PERIODIC_HOLD_Disk".to_owned(),
                    "line 5, column 1: SYSTEM_PERIODIC_REMOVE_Old has no effect, since SYSTEM_PERIODIC_REMOVE_NAMES does not name it"
                        .to_owned(),
                    "line 6, column 1: SUBMIT_REQUIREMENT_C has no effect, since SUBMIT_REQUIREMENT_NAMES does not name it".to_owned(),
                ]
            )
        );
    }

    #[test]
    fn a_default_that_comes_to_no_amount_is_told() {
        for (value, fault) in [
            ("2 GB", None),
            ("128 + 64", None),
            ("ifThenElse(WantBig =?= true, 8192, 128)", None),
            ("\"much\"", Some("\"much\", which is no positive amount")),
            ("undefined", Some("undefined, which is no positive amount")),
            ("-5", Some("-5, which is no positive amount")),
        ] {
            let (usable, told) = told(&format!("JOB_DEFAULT_REQUESTMEMORY = {value}\n"));
            let line = |fault| format!("line 1, column 29: JOB_DEFAULT_REQUESTMEMORY is {fault}");
            assert_eq!((usable, told), (fault.is_none(), fault.into_iter().map(line).collect()), "{value}");
        }
    }

    #[test]
    fn a_text_that_cannot_be_used_names_knob_and_place() {
        let text =
            "JOB_DEFAULT_REQUESTCPUS = 1\nJOB_DEFAULT_REQUESTDISK = 3 *\nJOB_DEFAULT_LEASE_DURATION = -1\n";
        let (usable, told) = told(text);
        assert!(!usable);
        assert_eq!(
            told,
            [
                "line 2, column 29: JOB_DEFAULT_REQUESTDISK is no expression: expected an operand after '*', found end of \
                 input",
                "line 3, column 1: JOB_DEFAULT_LEASE_DURATION must be at least 0 seconds, and is -1",
            ]
        );
    }
}
