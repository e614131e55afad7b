//! Who created a job, as the API server stamps it into the job's annotation by a `MutatingAdmissionPolicy` of the chart, which a
//! `ValidatingAdmissionPolicy` guards.
//!
//! Anybody can write the annotation while the policies are not in force. A stamp counts if all four objects (the policies and their
//! bindings) are there, none of their specs was ever edited, and the job was created more than [`MARGIN`] after the youngest of them:
//! then the policies were in force when the job was created, whatever happened before.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use crate::convert::{kube_time, time};
use api::HTCJob;
use api::labels::CREATED_BY;
use model::pool::{Requester, Time, UnknownCreator};

/// For how long the policies have to be there before the operator believes a stamp. An API server applies a new policy within seconds, and
/// a job's creation time may come from another API server, whose clock differs a little.
pub const MARGIN: Duration = Duration::from_mins(1);

/// An HTCJob's annotation that says who created the job. The annotation is not believed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(Requester);

impl Stamp {
    /// The stamp of a job.
    pub fn of(job: &HTCJob) -> Option<Self> {
        let mut lines = job.annotations().get(CREATED_BY)?.split('\n');
        Some(Self(Requester { user: lines.next()?.into(), groups: lines.map(Arc::from).collect() }))
    }
}

/// Whether the policies are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The policies are in force, and nobody has edited their specs. The time is when the youngest of the four objects
    /// was made.
    Since(Time),
    /// The policies are not in force, for this reason.
    Not(String),
}

impl Standing {
    /// Whether the policies of this name are in force. `found` has what the API server says of each object, with the object's kind.
    pub fn of<'a>(name: &str, found: impl IntoIterator<Item = (&'a str, Option<&'a ObjectMeta>)>) -> Self {
        let mut youngest = Time::default();
        for (kind, object) in found {
            let Some(object) = object else { return Self::Not(format!("there is no {kind} {name}")) };
            if object.deletion_timestamp.is_some() {
                return Self::Not(format!("the {kind} {name} is being deleted"));
            }
            if object.generation != Some(1) {
                return Self::Not(format!(
                    "the spec of the {kind} {name} was edited after it was made, so that no stamp is believed; an admin can delete \
                     the object and make it again"
                ));
            }
            let Some(created) = &object.creation_timestamp else {
                return Self::Not(format!("the {kind} {name} does not say when it was made"));
            };
            youngest = youngest.max(time(created));
        }
        Self::Since(youngest)
    }

    /// Who created a job that was created at this time and has this stamp.
    ///
    /// # Errors
    /// Why the stamp is not believed, or that there is none.
    pub fn judge(
        &self,
        name: &str,
        stamp: Option<&Stamp>,
        created: Time,
    ) -> Result<Requester, UnknownCreator> {
        let why = match (self, stamp) {
            (Self::Not(why), _) => why.clone(),
            (Self::Since(since), _) if created.secs() <= in_force(*since).secs() => format!(
                "the job was created before the admission policies {name} had been there for {} s, which was at {}",
                MARGIN.as_secs(),
                kube_time(in_force(*since)).0
            ),
            (Self::Since(_), Some(Stamp(requester))) => return Ok(requester.clone()),
            (Self::Since(_), None) => format!(
                "the job has no stamp that names its creator, although the admission policies {name} are there; an admin can find out \
                 why the API server does not act on them"
            ),
        };
        Err(UnknownCreator::because(&why))
    }
}

/// The time up to which stamps are not believed, if the youngest object was made at this time.
fn in_force(since: Time) -> Time {
    Time::from_secs(since.secs().saturating_add(MARGIN.as_secs().cast_signed()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KINDS: [&str; 4] = ["A", "B", "C", "D"];

    fn object(created: &str, edit: &Value) -> ObjectMeta {
        let mut object = json!({"name": "p", "generation": 1, "creationTimestamp": created});
        for (field, value) in edit.as_object().unwrap() {
            object[field] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    /// The standing when the last of four objects is edited so, or absent if `edit` is null.
    fn standing(edit: &Value) -> Standing {
        let mut objects = vec![Some(object("2026-01-01T00:00:00Z", &json!({}))); 3];
        objects.push((!edit.is_null()).then(|| object("2026-01-01T00:00:30Z", edit)));
        Standing::of("p", KINDS.into_iter().zip(objects.iter().map(Option::as_ref)))
    }

    fn stamp(text: &str) -> Option<Stamp> {
        let job = json!({"metadata": {"name": "x", "annotations": {CREATED_BY: text}},
                         "spec": {"template": {"spec": {"containers": []}}}});
        Stamp::of(&serde_json::from_value(job).unwrap())
    }

    /// 2026-01-01T00:00:30Z.
    const YOUNGEST: i64 = 1_767_225_630;

    #[test]
    fn the_policies_are_in_force_if_all_objects_are_there_as_they_were_made() {
        assert_eq!(standing(&json!({})), Standing::Since(Time::from_secs(YOUNGEST)));
        for (edit, why) in [
            (json!(null), "there is no D p"),
            (json!({"generation": 2}), "the spec of the D p was edited"),
            (json!({"generation": null}), "the spec of the D p was edited"),
            (json!({"deletionTimestamp": "2026-01-02T00:00:00Z"}), "the D p is being deleted"),
            (json!({"creationTimestamp": null}), "the D p does not say when it was made"),
        ] {
            let Standing::Not(found) = standing(&edit) else { panic!("{edit}") };
            assert!(found.starts_with(why), "{edit}: {found}");
        }
    }

    #[test]
    fn a_stamp_has_the_user_and_a_group_in_each_further_line() {
        for (text, user, groups) in [
            ("alice", "alice", &[][..]),
            ("alice\nowner:physics\na b", "alice", &["owner:physics", "a b"]),
            ("\nowner:physics", "", &["owner:physics"]),
            ("", "", &[]),
        ] {
            let groups = groups.iter().map(|group| Arc::from(*group)).collect();
            assert_eq!(stamp(text), Some(Stamp(Requester { user: user.into(), groups })), "{text:?}");
        }
    }

    #[test]
    fn a_stamp_is_believed_if_the_policies_were_in_force_when_the_job_was_created() {
        let alice = stamp("alice");
        for (standing, stamp, after, why) in [
            (standing(&json!({})), &alice, 61, None),
            (
                standing(&json!({})),
                &alice,
                60,
                Some(
                    "the job was created before the admission policies p had been there for 60 s, which was at 2026-01-01T00:01:30Z",
                ),
            ),
            (standing(&json!({})), &alice, -9999, Some("the job was created before")),
            (standing(&json!({})), &None, 61, Some("the job has no stamp that names its creator")),
            (standing(&json!(null)), &alice, 61, Some("there is no D p")),
            (standing(&json!({"generation": 3})), &alice, 61, Some("the spec of the D p was edited")),
        ] {
            let created = Time::from_secs(YOUNGEST + after);
            match (standing.judge("p", stamp.as_ref(), created), why) {
                (Ok(requester), None) => assert_eq!(&*requester.user, "alice"),
                (Err(found), Some(why)) => assert!(found.to_string().starts_with(why), "{found}"),
                (found, why) => panic!("{found:?}, expected {why:?}"),
            }
        }
    }
}
