//! Submit requirements: the manual's examples, and what the schedd does with values that are no booleans.

use classad::{Ad, Env};
use condor_config::{Host, Reader, Source};
use transform::{Requirements, Verdict};

fn requirements(text: &str) -> (Requirements, Vec<String>) {
    let config = Reader::new(Host::none())
        .subsystem("SCHEDD")
        .read(&[Source::new("policy", text)])
        .into_config()
        .unwrap();
    let mut findings = Vec::new();
    let requirements = Requirements::of(&config, &mut findings);
    (requirements, findings.iter().map(ToString::to_string).collect())
}

fn check(text: &str, job: &str) -> Verdict {
    let (requirements, findings) = requirements(text);
    assert!(findings.is_empty(), "{findings:?}");
    requirements.check(&Ad::new(), &Ad::parse_long(job).unwrap(), &Env::at(0))
}

/// The name and the reason of the requirement that refuses a job.
fn refused(text: &str, job: &str) -> Option<(String, String)> {
    check(text, job).refused.map(|unmet| (unmet.name, unmet.reason))
}

const MANUAL: &str = "\
SUBMIT_REQUIREMENT_NAMES = NotStandardUniverse, MinimalRequestMemory, NotChris
SUBMIT_REQUIREMENT_NotStandardUniverse = JobUniverse != 1
SUBMIT_REQUIREMENT_MinimalRequestMemory = RequestMemory > 512
SUBMIT_REQUIREMENT_NotChris = Owner != \"chris\"
SUBMIT_REQUIREMENT_NotStandardUniverse_REASON = \"This pool does not accept standard universe jobs.\"
SUBMIT_REQUIREMENT_MinimalRequestMemory_REASON = strcat( \"The job only requested \", \\
  RequestMemory, \" Megabytes.  If that small amount is really enough, please contact ...\" )
SUBMIT_REQUIREMENT_NotChris_REASON = \"Chris, you may only submit jobs to the instructional pool.\"
";

#[test]
fn the_first_requirement_that_is_not_met_refuses() {
    let told = |job| refused(MANUAL, job).map(|(_, reason)| reason);
    assert_eq!(told("JobUniverse = 5\nRequestMemory = 1024\nOwner = \"alice\"\n"), None);
    let standard = "JobUniverse = 1\nRequestMemory = 1\nOwner = \"chris\"\n";
    assert_eq!(told(standard).unwrap(), "This pool does not accept standard universe jobs.");
    let small = "JobUniverse = 5\nRequestMemory = 100\nOwner = \"chris\"\n";
    let reason =
        "The job only requested 100 Megabytes.  If that small amount is really enough, please contact ...";
    assert_eq!(refused(MANUAL, small).unwrap(), ("MinimalRequestMemory".to_owned(), reason.to_owned()));
}

#[test]
fn a_warning_lets_the_job_go_on() {
    let text = format!(
        "{MANUAL}SUBMIT_REQUIREMENT_NAMES = OneGig $(SUBMIT_REQUIREMENT_NAMES)\nSUBMIT_REQUIREMENT_OneGig = RequestMemory > \
         1024\nSUBMIT_REQUIREMENT_OneGig_REASON = \"As of <date>, the minimum requested memory will be 1024.\"\n\
         SUBMIT_REQUIREMENT_OneGig_IS_WARNING = TRUE\n"
    );
    let verdict = check(&text, "JobUniverse = 5\nRequestMemory = 600\nOwner = \"alice\"\n");
    assert_eq!(verdict.refused, None);
    assert_eq!(verdict.warnings[0].reason, "As of <date>, the minimum requested memory will be 1024.");
    let refused = check(&text, "JobUniverse = 5\nRequestMemory = 100\nOwner = \"alice\"\n");
    assert_eq!((refused.warnings.len(), refused.refused.unwrap().name.as_str()), (1, "MinimalRequestMemory"));
}

#[test]
fn a_value_that_is_neither_boolean_nor_number_refuses() {
    for (value, expected) in [
        ("true", None),
        ("1", None),
        ("0.5", None),
        ("0", Some("Submit requirement R not met.")),
        ("false", Some("Submit requirement R not met.")),
        ("undefined", Some("Submit requirement R evaluated to non-boolean.")),
        ("NoSuchAttribute > 1", Some("Submit requirement R evaluated to non-boolean.")),
        ("error", Some("Submit requirement R evaluated to non-boolean.")),
        ("\"true\"", Some("Submit requirement R evaluated to non-boolean.")),
        ("{ true }", Some("Submit requirement R failed to evaluate.")),
    ] {
        let text = format!("SUBMIT_REQUIREMENT_NAMES = R\nSUBMIT_REQUIREMENT_R = {value}\n");
        let told = refused(&text, "").map(|(_, reason)| reason);
        assert_eq!(told.as_deref(), expected, "{value}");
        let warning = format!("{text}SUBMIT_REQUIREMENT_R_IS_WARNING = true\n");
        let non_boolean = expected.is_some_and(|expected| !expected.contains("not met"));
        assert_eq!(check(&warning, "").refused.is_some(), non_boolean, "{value} as a warning");
    }
}

#[test]
fn a_reason_that_is_no_string_is_replaced() {
    let text =
        "SUBMIT_REQUIREMENT_NAMES = R\nSUBMIT_REQUIREMENT_R = false\nSUBMIT_REQUIREMENT_R_REASON = NoSuch\n";
    assert_eq!(refused(text, "").unwrap().1, "Submit requirement R not met.");
}

#[test]
fn my_is_the_schedd_and_target_is_the_job() {
    let text =
        |condition: &str| format!("SUBMIT_REQUIREMENT_NAMES = R\nSUBMIT_REQUIREMENT_R = {condition}\n");
    let schedd = Ad::parse_long("A = 1\nOnly = 3\n").unwrap();
    let job = Ad::parse_long("A = 2\nB = A * 2\n").unwrap();
    for condition in [
        "A == 1",
        "MY.A == 1",
        "TARGET.A == 2",
        "B == 4",
        "Only == 3",
        "JOB.A == 2 && SCHEDD.A == 1",
        "JOB.B == 4",
    ] {
        let (requirements, findings) = requirements(&text(condition));
        assert!(findings.is_empty(), "{findings:?}");
        let verdict = requirements.check(&schedd, &job, &Env::at(0));
        assert_eq!(verdict.refused, None, "{condition}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let text = "SUBMIT_REQUIREMENT_NAMES = Gone Broken Odd NAMES\nSUBMIT_REQUIREMENT_Broken = Memory = 3\n\
                SUBMIT_REQUIREMENT_Odd = true\nSUBMIT_REQUIREMENT_Odd_IS_WARNING = perhaps\n\
                SUBMIT_REQUIREMENT_Odd_REASON = \"a\" b\n";
    let (_, findings) = requirements(text);
    for expected in [
        "warning: policy, line 1, column 28: SUBMIT_REQUIREMENT_NAMES names Gone, but SUBMIT_REQUIREMENT_Gone is not defined",
        "error: policy, line 2, column 36: SUBMIT_REQUIREMENT_Broken is no expression: expected an operator or the end of the \
         expression, found '='; write == to compare",
        "error: policy, line 4, column 37: SUBMIT_REQUIREMENT_Odd_IS_WARNING is perhaps, which is no boolean",
        "error: policy, line 5, column 37: SUBMIT_REQUIREMENT_Odd_REASON is no expression",
    ] {
        assert!(findings.iter().any(|finding| finding.starts_with(expected)), "{expected}: {findings:#?}");
    }
}

/// The answers of a real schedd, which `hack/oracle/submit_requirements.py` recorded.
#[test]
fn recorded_answers_of_a_schedd() {
    let recorded: serde_json::Value =
        serde_json::from_str(include_str!("../oracle/submit_requirements.json")).unwrap();
    let cases = recorded.as_array().unwrap();
    assert!(cases.len() > 90, "only {} cases", cases.len());
    let schedd = Ad::new().with("MyType", "Scheduler");
    for case in cases {
        let (mut text, mut names) = (Vec::new(), Vec::new());
        for (place, requirement) in case["requirements"].as_array().unwrap().iter().enumerate() {
            let knob = format!("SUBMIT_REQUIREMENT_R{place}");
            names.push(format!("R{place}"));
            let condition = requirement[0].as_str().unwrap();
            text.push(format!("{knob} = {condition}\n{knob}_IS_WARNING = {}\n", requirement[2]));
            text.extend(requirement[1].as_str().map(|reason| format!("{knob}_REASON = {reason}\n")));
        }
        text.push(format!("SUBMIT_REQUIREMENT_NAMES = {}\n", names.join(" ")));
        let text = text.concat();
        let attributes = case["job"].as_object().unwrap().iter();
        let lines: Vec<String> =
            attributes.map(|(name, value)| format!("{name} = {}\n", value.as_str().unwrap())).collect();
        let job = lines.concat();
        let (requirements, findings) = requirements(&text);
        assert!(findings.is_empty(), "{findings:?}");
        let job = Ad::parse_long(&job).unwrap().with("MyType", "Job");
        let Verdict { refused, warnings } = requirements.check(&schedd, &job, &Env::at(1));
        assert_eq!(refused.is_none(), case["accepted"] == true, "{text}");
        assert_eq!(refused.as_ref().map(|unmet| unmet.reason.as_str()), case["refused"].as_str(), "{text}");
        if refused.is_none() {
            let ours: Vec<&str> = warnings.iter().map(|unmet| unmet.reason.as_str()).collect();
            let theirs: Vec<&str> =
                case["warnings"].as_array().unwrap().iter().map(|told| told.as_str().unwrap()).collect();
            assert_eq!(ours, theirs, "{text}");
        }
    }
}
