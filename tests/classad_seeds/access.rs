//! Policy Configuration, for access points: transforms and requirements of submission.

use slotwright::classad::Value;

use crate::support::value;

#[test]
fn job_transforms() {
    assert_eq!(
        value("join(\".\",AcctGroup,Owner)", "AcctGroup = \"physics\", Owner = \"alice\"", ""),
        Value::from("physics.alice")
    );
    // There is no map of users here: docs/differences.md.
    assert_eq!(value("userMap(\"Groups\",Owner,AcctGroup)", "Owner = \"alice\"", ""), Value::Undefined);
    let requirements = "JobUniverse==5 && WantSL6 && DockerImage =?= undefined";
    let job = "JobUniverse = 5, WantSL6 = true";
    assert_eq!(value(requirements, job, ""), Value::Bool(true));
    assert_eq!(value(requirements, &format!("{job}, DockerImage = \"SL6\""), ""), Value::Bool(false));
    assert_eq!(
        value("TARGET.HasDocker && (TARGET.Memory > 1)", "", "HasDocker = true, Memory = 2"),
        Value::Bool(true)
    );
}

#[test]
fn submit_requirements() {
    let job = "JobUniverse = 1, RequestMemory = 100, Owner = \"chris\"";
    for text in ["JobUniverse != 1", "RequestMemory > 512", "Owner != \"chris\"", "RequestMemory > 1024"] {
        assert_eq!(value(text, "", job), Value::Bool(false), "{text}");
    }
    let reason = "strcat( \"The job only requested \", \
                  RequestMemory, \" Megabytes.  If that small amount is really enough, please contact ...\" )";
    let expected =
        "The job only requested 100 Megabytes.  If that small amount is really enough, please contact ...";
    assert_eq!(value(reason, "", job), Value::from(expected));
    for text in [
        "This pool does not accept standard universe jobs.",
        "As of <date>, the minimum requested memory will be 1024.",
    ] {
        assert_eq!(value(&format!("\"{text}\""), "", ""), Value::from(text));
    }
}
