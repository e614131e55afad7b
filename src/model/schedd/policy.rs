//! Reads the schedd's configuration from a `SubmitPolicy`'s text: the knobs that the operator acts on, and remarks about the rest.

use std::sync::Arc;

use crate::pool::{JobDefaults, OwnerRule, SubmitConfig, SubmitRules};
use crate::startd::config::{Remark, Severity, of_text, sort};
use classad::Maps;
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
