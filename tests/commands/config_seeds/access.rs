//! Policy Configuration, *condor_schedd* policy: transforms, requirements, warnings.

use classad::Value;
use condor_config::Config;

use super::support::{eval, holds, read_as, value};

fn schedd(text: &str) -> Config {
    read_as("SCHEDD", text)
}

/// The commands of a transform: its lines without comments. References that the job fills in stay.
fn commands(config: &Config, name: &str) -> Vec<String> {
    let raw = config.definition(name).unwrap().raw().into_owned();
    let lines = raw.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn job_transforms_are_applied_in_the_order_of_their_names() {
    let config = schedd(
        r#"JOB_TRANSFORM_NAMES = AssignGroup, SL6ToDocker

JOB_TRANSFORM_AssignGroup @=end
   # map Owner to group using the existing accounting group attribute as requested group
   EVALSET AcctGroup = userMap("Groups",Owner,AcctGroup)
   EVALSET AccountingGroup = join(".",AcctGroup,Owner)
@end

JOB_TRANSFORM_SL6ToDocker @=end
   # match only vanilla jobs that have WantSL6 and do not already have a DockerImage
   REQUIREMENTS JobUniverse==5 && WantSL6 && DockerImage =?= undefined
   SET  WantDocker = true
   SET  DockerImage = "SL6"
   SET  Requirements = TARGET.HasDocker && $(MY.Requirements)
@end
"#,
    );
    assert_eq!(config.list("JOB_TRANSFORM_NAMES").unwrap(), ["AssignGroup", "SL6ToDocker"]);
    assert_eq!(
        commands(&config, "JOB_TRANSFORM_AssignGroup"),
        [
            "EVALSET AcctGroup = userMap(\"Groups\",Owner,AcctGroup)",
            "EVALSET AccountingGroup = join(\".\",AcctGroup,Owner)"
        ]
    );
    assert_eq!(
        commands(&config, "JOB_TRANSFORM_SL6ToDocker"),
        [
            "REQUIREMENTS JobUniverse==5 && WantSL6 && DockerImage =?= undefined",
            "SET WantDocker = true",
            "SET DockerImage = \"SL6\"",
            "SET Requirements = TARGET.HasDocker && $(MY.Requirements)"
        ]
    );
}

const REQUIREMENTS: &str = r#"
SUBMIT_REQUIREMENT_NAMES = NotStandardUniverse, MinimalRequestMemory, NotChris
SUBMIT_REQUIREMENT_NotStandardUniverse = JobUniverse != 1
SUBMIT_REQUIREMENT_MinimalRequestMemory = RequestMemory > 512
SUBMIT_REQUIREMENT_NotChris = Owner != "chris"
"#;

const REASONS: &str = r#"
SUBMIT_REQUIREMENT_NotStandardUniverse_REASON = "This pool does not accept standard universe jobs."
SUBMIT_REQUIREMENT_MinimalRequestMemory_REASON = strcat( "The job only requested ", \
  RequestMemory, " Megabytes.  If that small amount is really enough, please contact ..." )
SUBMIT_REQUIREMENT_NotChris_REASON = "Chris, you may only submit jobs to the instructional pool."
"#;

/// The reason that the submitter is told: that of the first requirement, in the order of names, that is false.
fn refusal(config: &Config, job: &str) -> Option<Value> {
    let names = config.list("SUBMIT_REQUIREMENT_NAMES").unwrap();
    let failed = names
        .iter()
        .map(|name| format!("SUBMIT_REQUIREMENT_{name}"))
        .find(|requirement| eval(config, requirement, "Name = \"schedd\"", job) == Value::Bool(false))?;
    Some(eval(config, &format!("{failed}_REASON"), "Name = \"schedd\"", job))
}

#[test]
fn submit_requirements_have_names_in_their_order() {
    let names = schedd(REQUIREMENTS).list("SUBMIT_REQUIREMENT_NAMES").unwrap();
    assert_eq!(names, ["NotStandardUniverse", "MinimalRequestMemory", "NotChris"]);
}

#[test]
fn submit_requirements_refuse_what_they_are_named_after() {
    let config = schedd(REQUIREMENTS);
    for (name, job, met) in [
        ("NotStandardUniverse", "JobUniverse = 1", false),
        ("NotStandardUniverse", "JobUniverse = 5", true),
        ("MinimalRequestMemory", "RequestMemory = 512", false),
        ("MinimalRequestMemory", "RequestMemory = 513", true),
        ("NotChris", "Owner = \"chris\"", false),
        ("NotChris", "Owner = \"pat\"", true),
    ] {
        holds(&config, &format!("SUBMIT_REQUIREMENT_{name}"), &[("Name = \"schedd\"", job, met)]);
    }
}

#[test]
fn submit_requirements_give_the_reason_of_the_first_that_is_not_met() {
    let config = schedd(&format!("{REQUIREMENTS}{REASONS}"));
    let job = |universe, memory, owner| {
        format!("JobUniverse = {universe}; RequestMemory = {memory}; Owner = \"{owner}\"")
    };
    for (job, told) in [
        (job(1, 100, "chris"), Some("This pool does not accept standard universe jobs.")),
        (
            job(5, 100, "chris"),
            Some(
                "The job only requested 100 Megabytes.  If that small amount is really enough, please contact ...",
            ),
        ),
        (job(5, 1024, "chris"), Some("Chris, you may only submit jobs to the instructional pool.")),
        (job(5, 1024, "pat"), None),
    ] {
        assert_eq!(refusal(&config, &job).as_ref().map(|value| value.as_str().unwrap()), told, "{job}");
    }
}

#[test]
fn submit_warnings_go_before_the_requirements_and_refuse_nothing() {
    let config = schedd(&format!(
        "{REQUIREMENTS}{REASONS}{}",
        r#"
SUBMIT_REQUIREMENT_NAMES = OneGig $(SUBMIT_REQUIREMENT_NAMES)
SUBMIT_REQUIREMENT_OneGig = RequestMemory > 1024
SUBMIT_REQUIREMENT_OneGig_REASON = "As of <date>, the minimum requested memory will be 1024."
SUBMIT_REQUIREMENT_OneGig_IS_WARNING = TRUE
"#
    ));
    let names = config.list("SUBMIT_REQUIREMENT_NAMES").unwrap();
    assert_eq!(names, ["OneGig", "NotStandardUniverse", "MinimalRequestMemory", "NotChris"]);
    assert_eq!(config.boolean("SUBMIT_REQUIREMENT_OneGig_IS_WARNING").unwrap(), Some(true));
    // A job between 512 and 1024 sees the warning, and meets the other requirements.
    let job = "JobUniverse = 5; RequestMemory = 600; Owner = \"pat\"";
    assert_eq!(
        refusal(&config, job).unwrap().as_str(),
        Some("As of <date>, the minimum requested memory will be 1024.")
    );
    for name in &names[1..] {
        holds(&config, &format!("SUBMIT_REQUIREMENT_{name}"), &[("", job, true)]);
    }
    assert_eq!(value(&config, "SUBMIT_REQUIREMENT_NotChris"), "Owner != \"chris\"");
}
