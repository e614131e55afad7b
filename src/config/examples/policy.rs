//! The policy of a startd: its values, where they come from, and the findings about them.
//!
//! `cargo run -p slotwright-config --example policy`

use std::error::Error;
use std::fmt::Write;

use condor_config::{Host, Reader, Source, knobs};

const POLICY: &str = "\
NIGHT = (ClockMin < 6 * 60)
if version >= 8.1.6
  START = $(NIGHT) || Owner == \"anna\"
endif
CLAIM_WORKLIFE = $(HOUR) / 2
STARTD.HIBERNATE = \"S3\"
STRAT = True
";

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report(POLICY)?);
    Ok(())
}

/// A line for each value of the text, with its place, and a line for each finding about it.
fn report(policy: &str) -> Result<String, Box<dyn Error>> {
    let reader = Reader::new(Host::none()).subsystem("STARTD").guarded();
    let config = reader.read(&[Source::block("night.conf", policy)]).into_config()?;
    let mut report = String::new();
    for definition in config.definitions() {
        let position = config.position(definition);
        if &*position.file != "night.conf" {
            continue;
        }
        let value = config.value_of(definition)?;
        writeln!(report, "{position}: {} = {value}", definition.name)?;
        let unread = !policy.contains(&format!("$({})", definition.name));
        let findings = knobs::check(&definition.name, &value);
        for finding in findings.into_iter().chain(knobs::unknown(&definition.name).filter(|_| unread)) {
            writeln!(report, "  {:?}: {}", finding.severity, finding.message)?;
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_has_values_places_and_findings() {
        let report = super::report(super::POLICY).unwrap();
        assert_eq!(
            report.lines().collect::<Vec<_>>(),
            [
                "night.conf, line 5, column 1: CLAIM_WORKLIFE = 3600 / 2",
                "night.conf, line 1, column 1: NIGHT = (ClockMin < 6 * 60)",
                "night.conf, line 3, column 3: START = (ClockMin < 6 * 60) || Owner == \"anna\"",
                "night.conf, line 6, column 1: STARTD.HIBERNATE = \"S3\"",
                "  Note: STARTD.HIBERNATE is a parameter of HTCondor's that has no effect here",
                "night.conf, line 7, column 1: STRAT = True",
                "  Warning: nothing reads STRAT: did you mean START?",
            ]
        );
    }
}
