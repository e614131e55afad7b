//! Which slots a job may have, which it prefers, and what keeps it from the others.
//!
//! `cargo run -p slotwright-classad --example matchmaking`

use std::fmt::Write;

use classad::{Ad, Env, ParseError, explain_match};

const JOB: &str = r#"
RequestMemory = 2048
Owner = "anna"
Requirements = TARGET.Arch == "X86_64" && TARGET.Memory >= RequestMemory
Rank = TARGET.Mips
"#;

const SLOTS: &str = r#"
Name = "small"
Arch = "X86_64"
Memory = 1024
Requirements = true

Name = "private"
Arch = "X86_64"
Memory = 8192
Requirements = TARGET.Owner == "otto"

Name = "large"
Arch = "X86_64"
Memory = 8192
Mips = 20000
Requirements = TARGET.RequestMemory < 4096
"#;

fn main() -> Result<(), ParseError> {
    print!("{}", report(JOB, SLOTS)?);
    Ok(())
}

/// One line for each slot that matches, and one for each clause that keeps the job from a slot.
fn report(job: &str, slots: &str) -> Result<String, ParseError> {
    let job = Ad::parse_long(job)?;
    let env = Env::at(1_769_860_800);
    let mut report = String::new();
    for slot in Ad::parse_long_stream(slots)? {
        let name = slot.eval_attr("Name", None, &env);
        let explained = explain_match(&job, &slot, &env);
        if explained.matches() {
            // Writing to a string does not fail.
            let _ = writeln!(report, "{name} matches; the job ranks it {}", explained.my.rank);
        }
        for (side, who) in [(&explained.my, "the job"), (&explained.target, "the slot")] {
            for clause in side.failed() {
                let _ = writeln!(report, "{name} fails {who}: {clause}");
            }
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_names_what_matches_and_what_fails() {
        let report = super::report(super::JOB, super::SLOTS).unwrap();
        assert_eq!(
            report.lines().collect::<Vec<_>>(),
            [
                r#""small" fails the job: TARGET.Memory >= RequestMemory is false"#,
                r#""private" fails the slot: TARGET.Owner == "otto" is false"#,
                r#""large" matches; the job ranks it 20000"#,
            ]
        );
    }
}
