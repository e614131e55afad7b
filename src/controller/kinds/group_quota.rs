//! `GroupQuota`s: what an accounting group may use, and what it uses.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::conditions::accepted;
use super::document::{count, rounded, size};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::time;
use api::{GroupQuota, GroupQuotaStatus};
use model::decide::{quotas, rivalry};
use model::pool::{Document, Event, Group, Pool, Problem, Quota, Submitter, Time};

impl Custom for GroupQuota {
    type Kept = ();
    const KIND: Kind = Kind::of(&("GroupQuota", "groupquotas"));
    const STAGE: Stage = Stage::Settings;

    fn keep(_: &Self) {}

    fn there(quota: Self, (): &()) -> Vec<News> {
        told(Event::Group(facts(&quota)))
    }

    fn document(quota: &Self, (): &()) -> Option<Document> {
        Some(Document::Group(quota.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::GroupGone(names.name.as_str().into()))
    }
}

impl Shown for GroupQuota {
    type Subject = Arc<str>;

    fn subject(document: &Document) -> Option<&Arc<str>> {
        match document {
            Document::Group(object) => Some(object),
            _ => None,
        }
    }

    fn object(_: &Pool, object: &Arc<str>) -> Option<ObjectKey> {
        Some(Self::KIND.object(object.to_string()))
    }

    fn render(pool: &Pool, object: &Arc<str>, old: &[Condition], now: Time) -> Rendered {
        let group = pool.groups().get(object);
        group.map_or(Rendered::Nothing, |group| Rendered::status(&status(pool, group, old, now)))
    }
}

/// Reads a `GroupQuota` for the pool. A group without a quota has a quota of 0.
pub fn facts(object: &GroupQuota) -> Group {
    let spec = &object.spec;
    Group {
        object: object.name_any().into(),
        generation: object.metadata.generation.unwrap_or(1),
        created: object.metadata.creation_timestamp.as_ref().map(time),
        name: spec.group.clone().unwrap_or_else(|| object.name_any()).into(),
        owners: spec.owners.clone(),
        quota: match (spec.quota, spec.dynamic_quota) {
            (Some(quota), _) => Quota::Static(quota.max(0.0)),
            (None, Some(share)) => Quota::Dynamic(share.clamp(0.0, 1.0)),
            (None, None) => Quota::Static(0.0),
        },
        share_unused: spec.quota.is_some() && spec.dynamic_quota.is_some(),
        accept_surplus: spec.accept_surplus,
        autoregroup: spec.autoregroup,
        priority_factor: spec.priority_factor.filter(|factor| *factor >= 1.0),
    }
}

fn status(pool: &Pool, group: &Group, old: &[Condition], now: Time) -> GroupQuotaStatus {
    let found = quotas(pool, now);
    let (quotas, refused) = &*found;
    let problems: Vec<Problem> = refused
        .get(&group.object)
        .map(|why| Problem {
            reason: "GroupNotAccepted",
            field: "spec.group".to_owned(),
            message: why.clone(),
        })
        .into_iter()
        .collect();
    let rivalry = rivalry(pool, group).filter(|_| problems.is_empty());
    let name = group.name.as_str();
    let given = pool.given().groups.get(&name.to_ascii_lowercase()).copied().unwrap_or_default();
    let inside = |submitter: &&Submitter| submitter.group().is_some_and(|own| group.name.contains(&own));
    let (mut idle, mut running) = (0, 0);
    let queues = pool.queues();
    for key in pool.submitters().values().filter(inside).flat_map(|submitter| queues.of(&submitter.name)) {
        if let Some(cluster) = pool.jobs().get(&key.job().uid) {
            idle += size(cluster.idle.len());
            running += count(cluster.active.len());
        }
    }
    GroupQuotaStatus {
        observed_generation: Some(group.generation),
        group: group.name.to_string(),
        config_quota: match group.quota {
            Quota::Static(quota) | Quota::Dynamic(quota) => quota,
        },
        effective_quota: rounded(quotas.own(name).unwrap_or(0.0)),
        subtree_quota: rounded(quotas.of(name).unwrap_or(0.0)),
        requested: rounded(given.requested),
        allocated: rounded(given.allocated),
        weighted_resources_used: rounded(pool.in_use().subtree_with_all(&group.name)),
        idle,
        running,
        conditions: vec![in_force(accepted(old, &problems, group.generation, now), group, rivalry)],
    }
}

/// The warning that a group's spec gives two quotas, of which one has no effect.
pub fn unused_share(group: &Group) -> Option<Problem> {
    group.share_unused.then(|| Problem {
        reason: "QuotaUnused",
        field: "spec.dynamicQuota".to_owned(),
        message: "has no effect: where both quotas are given, the static one counts".to_owned(),
    })
}

/// The condition Accepted, which also says what of an accepted spec has no effect, and which other object declares the group.
fn in_force(mut accepted: Condition, group: &Group, rivalry: Option<String>) -> Condition {
    let unused = unused_share(group).filter(|_| accepted.status == "True");
    let unused = unused.map(|unused| format!("{} {}", unused.field, unused.message));
    for more in unused.into_iter().chain(rivalry) {
        accepted.message = format!("{}; {more}", accepted.message);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use kube_schema::StructuralSchema;
    use serde_json::json;

    use super::*;

    /// Two `*` in an entry are like no owner's name, and two managers of server-side apply may each add owners.
    #[test]
    fn owners_are_a_set_of_patterns_with_one_star() {
        let crds = api::definitions();
        let crd = crds.iter().find(|crd| crd.spec.names.kind == "GroupQuota").unwrap();
        let crd = serde_json::to_value(crd).unwrap();
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/owners";
        let schema = json!({"type": "object", "properties": {"owners": crd.pointer(path).unwrap()}});
        let schema = StructuralSchema::parse(&schema, "").unwrap();
        for (owners, taken) in [
            (json!(["*", "team-*", "*-dev", "a*b", "alice"]), true),
            (json!([]), true),
            (json!(["a*b*"]), false),
            (json!(["**"]), false),
            (json!(["alice", "bob", "alice"]), false),
        ] {
            assert_eq!(schema.validate(&json!({"owners": owners}), None).is_empty(), taken, "{owners}");
        }
    }

    #[test]
    fn a_static_quota_wins_over_a_dynamic_one_and_none_is_nothing() {
        for (spec, quota) in [
            (json!({"quota": 3, "dynamicQuota": 0.5}), Quota::Static(3.0)),
            (json!({"dynamicQuota": 0.5}), Quota::Dynamic(0.5)),
            (json!({}), Quota::Static(0.0)),
        ] {
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "g"}, "spec": spec});
            let group = facts(&serde_json::from_value(object).unwrap());
            assert_eq!(group.quota, quota);
            let both = in_force(accepted(&[], &[], 1, Time::default()), &group, None).message;
            assert_eq!(
                both.contains("spec.dynamicQuota has no effect"),
                quota == Quota::Static(3.0),
                "{both}"
            );
        }
    }
}
