//! The acts that people write on a job's object, as JSON in an annotation.

use api::HTCJob;
use api::labels::ACTS;
use kube::ResourceExt;
use model::pool::{Act, Problem, Ranges, Verb, Whom};
use serde::Deserialize;

/// The longest annotation that is read, in bytes.
const LONGEST: usize = 64 << 10;
/// The most acts that an annotation may have. If it has more, none of them is carried out. Whoever writes an act
/// drops the acts that are done.
const MOST: usize = 32;

/// The annotation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    /// The uid of the job that is meant. A copy of the object is another job, to which nothing of this applies.
    #[serde(default)]
    job: Option<String>,
    acts: Vec<WrittenAct>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenAct {
    id: u64,
    act: String,
    /// Ranges such as 0-4,7. All procs, if there are none.
    #[serde(default)]
    procs: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    subcode: i64,
}

/// The acts that people wrote on a job; none if there is no such annotation.
///
/// # Errors
/// The problem with the annotation. Then none of its acts is carried out.
pub(super) fn acts(job: &HTCJob) -> Result<Vec<Act>, Problem> {
    let Some(text) = job.annotations().get(ACTS) else { return Ok(Vec::new()) };
    let problem = |message: String| Problem {
        reason: "InvalidActs",
        field: format!("metadata.annotations[{ACTS}]"),
        message: format!(
            "{message}; none of its acts is carried out: write acts with kubectl slotwright, or as jobs.md says"
        ),
    };
    if text.len() > LONGEST {
        return Err(problem(format!("has {} bytes, and may have {LONGEST}", text.len())));
    }
    let written: Written = serde_json::from_str(text).map_err(|error| problem(error.to_string()))?;
    if written.job.is_some_and(|uid| Some(uid) != job.metadata.uid) {
        return Ok(Vec::new());
    }
    if written.acts.len() > MOST {
        return Err(problem(format!("has {} acts, and may have {MOST}", written.acts.len())));
    }
    written.acts.into_iter().map(|act| understand(act).map_err(problem)).collect()
}

fn understand(written: WrittenAct) -> Result<Act, String> {
    let WrittenAct { id, act, procs, reason, subcode } = written;
    let verbs = || Verb::ALL.map(Verb::name).join(", ");
    let verb = Verb::named(&act).ok_or_else(|| format!("act {id}: {act:?} is none of {}", verbs()))?;
    if id == 0 || i64::try_from(id).is_err() {
        return Err(format!("act {id}: the number of an act is between 1 and {}", i64::MAX));
    }
    let whom = match procs {
        None => Whom::All,
        Some(procs) => Whom::Some(Ranges::parse(&procs).map_err(|error| format!("act {id}: {error}"))?),
    };
    let reason = reason.unwrap_or_else(|| "no reason was given".to_owned()).into();
    Ok(Act { id, verb, whom, reason, subcode })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(annotation: &str) -> Result<Vec<Act>, String> {
        let job = json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
            "metadata": {"name": "pi", "uid": "u1", "annotations": {ACTS: annotation}},
            "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
        });
        acts(&serde_json::from_value(job).unwrap()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn acts_are_read_from_an_annotation() {
        let text = r#"{"job": "u1", "acts": [
            {"id": 3, "act": "Hold", "procs": "0-4,7", "reason": "via condor_hold", "subcode": 9},
            {"id": 4, "act": "Remove"}]}"#;
        let all = of(text).unwrap();
        assert_eq!((all[0].id, all[0].verb, all[0].subcode), (3, Verb::Hold, 9));
        assert_eq!((all[0].whom.to_string(), &*all[0].reason), ("procs 0-4,7".to_owned(), "via condor_hold"));
        assert_eq!((all[1].verb, &all[1].whom), (Verb::Remove, &Whom::All));
    }

    /// Whoever copies a job's manifest, annotations and all, does not mean its acts.
    #[test]
    fn acts_of_another_job_are_not_this_job_s() {
        assert_eq!(of(r#"{"job": "u0", "acts": [{"id": 1, "act": "Remove"}]}"#), Ok(Vec::new()));
        assert_eq!(of(r#"{"acts": [{"id": 1, "act": "Remove"}]}"#).map(|acts| acts.len()), Ok(1));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (text, expected) in [
            ("nonsense", "expected"),
            (
                r#"{"acts": [{"id": 1, "act": "Explode"}]}"#,
                "\"Explode\" is none of Hold, Release, Remove, Vacate, VacateFast",
            ),
            (
                r#"{"acts": [{"id": 0, "act": "Hold"}]}"#,
                "the number of an act is between 1 and 9223372036854775807",
            ),
            (r#"{"acts": [{"id": 1, "act": "Hold", "procs": "4-2"}]}"#, "\"4-2\" is not a list of ranges"),
            (r#"{"acts": [{"id": 1, "act": "Hold", "colour": "red"}]}"#, "unknown field `colour`"),
        ] {
            let told = of(text).unwrap_err();
            assert!(told.contains(expected) && told.starts_with("metadata.annotations["), "{told}");
        }
    }
}
