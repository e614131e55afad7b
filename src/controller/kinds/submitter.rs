//! Submitters: the accountant's names as object names, and accounts as statuses, which a new leader reads back.

mod in_vain;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::conditions::accepted;
use super::document::{count, rounded, size};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::{kube_time, time, timestamp};
use api::labels;
use api::names::submitter_object_name;
use api::{AccountCorrection, AccountStatus, Submitter, SubmitterSpec, SubmitterStatus};
use model::pool::accountant::{Account, Correction};
use model::pool::{
    Accounts, Document, Event, NegotiatorId, Pool, Problem, Submitter as KnownSubmitter, SubmitterFacts,
    SubmitterName, Time,
};

impl Custom for Submitter {
    /// The submitter's name, of which the object's follows.
    type Kept = Option<SubmitterName>;
    const KIND: Kind = Kind::of(&("Submitter", "submitters"));
    const STAGE: Stage = Stage::Submitters;

    fn keep(submitter: &Self) -> Self::Kept {
        facts(submitter).map(|facts| facts.name)
    }

    fn there(submitter: Self, _: &Self::Kept) -> Vec<News> {
        told(facts(&submitter).map(Event::Submitter))
    }

    fn document(_: &Self, name: &Self::Kept) -> Option<Document> {
        name.clone().map(Document::Submitter)
    }

    fn gone(_: &Names, name: Self::Kept) -> Vec<News> {
        told(name.map(Event::SubmitterGone))
    }
}

impl Shown for Submitter {
    type Subject = SubmitterName;

    fn subject(document: &Document) -> Option<&SubmitterName> {
        match document {
            Document::Submitter(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &SubmitterName) -> Option<ObjectKey> {
        Some(Self::KIND.object(submitter_object_name(name.as_str())))
    }

    fn render(pool: &Pool, name: &SubmitterName, old: &[Condition], now: Time) -> Rendered {
        let submitter = pool.submitters().get(name);
        submitter.map_or(Rendered::Absent, |submitter| render(pool, submitter, old, now))
    }
}

/// Reads a Submitter for the pool. If no object may have the submitter's name, the spec or the status gives the name. The spec of an
/// object that is not named as its submitter's object must be is not in force.
///
/// `None` if the object cannot be a submitter's, or only a name that is not given yet could tell whose the object is.
pub fn facts(object: &Submitter) -> Option<SubmitterFacts> {
    let found = object.metadata.name.as_deref()?;
    let status = object.status.as_ref();
    let is_of = |name: &&str| submitter_object_name(name) == found;
    let said = object.spec.name.as_deref().filter(|name| !name.is_empty());
    let written = status.map(|status| status.name.as_str()).filter(|name| !name.is_empty());
    let name = said.filter(is_of).or(written).or_else(|| (!ends_in_hash(found)).then_some(found));
    let name = name.filter(is_of)?;
    let misnamed = said.filter(|said| !is_of(said)).map(|said| misnamed(said, name));
    let none = SubmitterSpec::default();
    let spec = if misnamed.is_some() { &none } else { &object.spec };
    Some(SubmitterFacts {
        name: name.into(),
        generation: object.metadata.generation.unwrap_or(1),
        made: object.labels().get(labels::MANAGED_BY).is_some_and(|by| by == labels::FIELD_MANAGER),
        misnamed,
        in_vain: in_vain::found(spec),
        factor: spec.priority_factor.filter(|factor| *factor >= 1.0 && factor.is_finite()),
        ceiling: spec.ceiling.filter(|ceiling| *ceiling >= 0.0),
        floor: spec.floor.filter(|floor| *floor >= 0.0),
        correction: spec.correction.as_ref().map(correction),
        corrected: status.and_then(|status| status.corrected.as_deref()).map(Into::into),
        accounts: status.map(accounts).unwrap_or_default(),
    })
}

/// Whether an object's name may be one that was made of a submitter's name. Such an object without a name in its spec or status was
/// restored without the status, or somebody forgot the name: the operator would begin an account of the hash.
fn ends_in_hash(object: &str) -> bool {
    let end = object.rsplit_once('-').map_or(object, |(_, end)| end);
    end.len() == 16 && end.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Why the spec of an object that names the submitter `said` is not in force, if the object is that of the submitter `is_of`.
fn misnamed(said: &str, is_of: &str) -> Problem {
    let right = submitter_object_name(said);
    Problem {
        reason: "MisnamedSubmitter",
        field: "spec.name".to_owned(),
        message: format!(
            "the Submitter of {said} must have the metadata.name {right}, and this one is the Submitter of {is_of}; give the object that \
             name"
        ),
    }
}

fn correction(given: &AccountCorrection) -> Correction {
    Correction {
        id: given.id.as_str().into(),
        negotiator: given.negotiator.as_deref().map(Into::into),
        real_priority: given.real_priority,
        accumulated_usage: given.accumulated_usage,
        weighted_accumulated_usage: given.weighted_accumulated_usage,
        begin_usage_time: given.begin_usage_time.as_ref().map(|t| time(t).secs()),
        last_usage_time: given.last_usage_time.as_ref().map(|t| time(t).secs()),
    }
}

/// The accounts in a status: one in fields of the status itself, with the negotiator that the status names, and those
/// with other negotiators.
fn accounts(status: &SubmitterStatus) -> Accounts {
    let first = AccountStatus {
        real_priority: status.real_priority,
        effective_priority: status.effective_priority,
        priority_factor: status.priority_factor,
        resources_used: status.resources_used,
        weighted_resources_used: status.weighted_resources_used,
        accumulated_usage: status.accumulated_usage,
        weighted_accumulated_usage: status.weighted_accumulated_usage,
        begin_usage_time: status.begin_usage_time.clone(),
        last_usage_time: status.last_usage_time.clone(),
        update_time: status.update_time.clone(),
    };
    let others = status.accounts.iter().map(|(name, other)| (Some(name.as_str()), other));
    let all = others.chain([(status.negotiator.as_deref(), &first)]);
    all.filter_map(|(name, one)| Some((NegotiatorId::from(name), recorded(one)?))).collect()
}

fn recorded(status: &AccountStatus) -> Option<Account> {
    let updated = status.update_time.as_ref()?;
    Some(Account {
        real_priority: status.real_priority,
        resources_used: u64::try_from(status.resources_used).unwrap_or(0),
        weighted_resources_used: status.weighted_resources_used,
        accumulated_usage: status.accumulated_usage,
        weighted_accumulated_usage: status.weighted_accumulated_usage,
        begin_usage_time: status.begin_usage_time.as_ref().map(|t| time(t).secs()),
        last_usage_time: status.last_usage_time.as_ref().map(|t| time(t).secs()),
        updated_at: updated.0.as_millisecond(),
    })
}

fn render(pool: &Pool, submitter: &KnownSubmitter, old: &[Condition], now: Time) -> Rendered {
    let (mut idle, mut running) = (0, 0);
    let queues = pool.queues();
    for cluster in queues.of(&submitter.name).filter_map(|key| pool.jobs().get(&key.job().uid)) {
        idle += size(cluster.idle.len());
        running += count(cluster.active.len());
    }
    let generation = submitter.generation.unwrap_or(1);
    let id = pool.first_negotiator();
    let first = account(pool, submitter, &id);
    let others = submitter.accounts.iter().filter(|(other, _)| **other != id);
    let status = SubmitterStatus {
        observed_generation: Some(generation),
        name: submitter.name.to_string(),
        negotiator: id.name().map(ToString::to_string),
        accounts: others
            .filter_map(|(id, _)| Some((id.name()?.to_string(), account(pool, submitter, id))))
            .collect(),
        real_priority: first.real_priority,
        effective_priority: first.effective_priority,
        priority_factor: first.priority_factor,
        resources_used: first.resources_used,
        weighted_resources_used: first.weighted_resources_used,
        accumulated_usage: first.accumulated_usage,
        weighted_accumulated_usage: first.weighted_accumulated_usage,
        weighted_usage_hours: rounded(first.weighted_accumulated_usage / 3600.0),
        begin_usage_time: first.begin_usage_time,
        last_usage_time: first.last_usage_time,
        update_time: first.update_time,
        corrected: submitter.corrected.as_deref().map(str::to_owned),
        idle,
        running,
        conditions: vec![in_vain::told(
            accepted(old, &submitter.problems, generation, now),
            &submitter.in_vain,
        )],
    };
    let name = submitter.name.as_str();
    let object = submitter_object_name(name);
    // An object that is restored without its status keeps the submitter's name by its spec.
    let spec = SubmitterSpec { name: (object != name).then(|| name.to_owned()), ..SubmitterSpec::default() };
    let made = [(labels::MANAGED_BY.to_owned(), labels::FIELD_MANAGER.to_owned())];
    let metadata = ObjectMeta { name: Some(object), labels: Some(made.into()), ..ObjectMeta::default() };
    Rendered::object(&Submitter { metadata, spec, status: None }, &status)
}

/// A submitter's account with a negotiator.
fn account(pool: &Pool, submitter: &KnownSubmitter, id: &NegotiatorId) -> AccountStatus {
    let account = submitter.account_with(id);
    let factor = pool.priority_factor(submitter, pool.config_of(id));
    let seconds = |secs: Option<i64>| secs.map(|secs| kube_time(Time::from_secs(secs)));
    AccountStatus {
        // A new leader reads this back. Rounding to a millionth changes no decision.
        real_priority: (account.real_priority * 1e6).round() / 1e6,
        effective_priority: rounded(account.effective_priority(factor)),
        priority_factor: factor,
        resources_used: size(account.resources_used),
        weighted_resources_used: account.weighted_resources_used,
        accumulated_usage: account.accumulated_usage,
        weighted_accumulated_usage: account.weighted_accumulated_usage,
        begin_usage_time: seconds(account.begin_usage_time),
        last_usage_time: seconds(account.last_usage_time),
        update_time: Some(MicroTime(timestamp(Time::from_millis(account.updated_at)))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::kinds;
    use crate::kinds::kit::{NOW, pool, status};
    use api::names::is_subdomain;

    use super::*;

    /// A new leader knows only as much of the accounts as the statuses say.
    #[test]
    fn accounts_are_read_as_they_were_written() {
        let mut pool = pool(&[]);
        let alice = SubmitterName::from("alice");
        let account = |pool: &mut Pool, name: Option<&str>, weight| {
            let now = Time::from_secs(NOW);
            pool.edit_submitter(&"alice".into(), now, |alice| {
                let account = alice.accounts.of_mut(&NegotiatorId::from(name), now);
                account.charge(weight, NOW * 1000, 3600.0);
            });
        };
        let written = |pool: &Pool| -> Submitter {
            let status = status(pool, &Document::Submitter("alice".into()));
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter",
                                "metadata": {"name": "alice"}, "spec": {}, "status": status});
            serde_json::from_value(object).unwrap()
        };
        account(&mut pool, None, 2.0);
        let alone = written(&pool);
        let read = facts(&alone).unwrap().accounts;
        assert_eq!(read, pool.submitters()[&alice].accounts);
        let before = alone.status.unwrap();
        assert_eq!(
            (before.negotiator, before.accounts.len(), before.weighted_resources_used),
            (None, 0, 2.0)
        );

        let mut pool = self::pool(&[("cpu", json!({})), ("gpu", json!({"defaultPriorityFactor": 10.0}))]);
        account(&mut pool, Some("cpu"), 3.0);
        account(&mut pool, Some("gpu"), 5.0);
        let several = written(&pool);
        let read = facts(&several).unwrap().accounts;
        assert_eq!(read, pool.submitters()[&alice].accounts);
        let status = several.status.unwrap();
        assert_eq!((status.negotiator.as_deref(), status.weighted_resources_used), (Some("cpu"), 3.0));
        let gpu = &status.accounts["gpu"];
        assert_eq!(
            (gpu.weighted_resources_used, gpu.effective_priority, gpu.priority_factor),
            (5.0, 5.0, 10.0)
        );
    }

    fn object(name: &str, spec: &Value, status: Option<&str>) -> Submitter {
        let status = status.map(|name| json!({"name": name}));
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter",
                            "metadata": {"name": name}, "spec": spec, "status": status});
        serde_json::from_value(object).unwrap()
    }

    /// Whose an object is, and whether its spec is in force.
    #[test]
    fn objects_name_their_submitters() {
        let hashed = &*submitter_object_name("alice_b");
        for (name, said, written, expected) in [
            ("alice", None, None, Some(("alice", true))),
            ("alice", Some("alice"), Some("alice"), Some(("alice", true))),
            (hashed, Some("alice_b"), None, Some(("alice_b", true))),
            (hashed, Some("alice_b"), Some("alice_b"), Some(("alice_b", true))),
            (hashed, None, Some("alice_b"), Some(("alice_b", true))),
            (hashed, None, None, None),
            (hashed, None, Some(hashed), Some((hashed, true))),
            (hashed, Some(hashed), None, Some((hashed, true))),
            (hashed, Some("alice_c"), Some("alice_b"), Some(("alice_b", false))),
            ("alice-b", Some("alice_b"), None, Some(("alice-b", false))),
            ("alice", Some("bob"), Some("alice"), Some(("alice", false))),
            ("alice", None, Some("bob"), None),
        ] {
            let spec = json!({"name": said, "priorityFactor": 7.0, "ceiling": 1.0, "floor": 1.0,
                              "correction": {"id": "1"}});
            let found = facts(&object(name, &spec, written));
            let seen = found.as_ref().map(|facts| {
                let in_force = facts.factor.is_some();
                assert_eq!(
                    [facts.ceiling.is_some(), facts.floor.is_some(), facts.correction.is_some()],
                    [in_force; 3]
                );
                assert_eq!(facts.misnamed.is_none(), in_force);
                (facts.name.as_str(), in_force)
            });
            assert_eq!(seen, expected, "{name} {said:?} {written:?}");
        }
        let said = facts(&object("alice-b", &json!({"name": "alice_b"}), None)).unwrap().misnamed.unwrap();
        assert_eq!(
            said.to_string(),
            format!(
                "spec.name: the Submitter of alice_b must have the metadata.name {hashed}, and this one is the Submitter of alice-b; \
                 give the object that name"
            )
        );
    }

    /// The operator makes for each submitter the object that people would make, and tells of one whose name is wrong.
    #[test]
    fn made_objects_name_submitters_whose_names_no_object_may_have() {
        let mut pool = pool(&[]);
        for (name, expected) in [("alice", None), ("group_physics.alice", Some("group_physics.alice"))] {
            pool.edit_submitter(&name.into(), Time::from_secs(NOW), |_| {});
            let document = Document::Submitter(name.into());
            let Rendered::Object { create, .. } =
                kinds::render(&pool, &document, &Value::Null, Time::from_secs(NOW))
            else {
                panic!("{name} has no object");
            };
            let made: Submitter = serde_json::from_value(create).unwrap();
            assert_eq!(made.spec.name.as_deref(), expected);
            let read = facts(&made).unwrap();
            assert_eq!((read.name.as_str(), read.made), (name, true));
        }
        let unknown = Document::Submitter("nobody".into());
        assert_eq!(kinds::render(&pool, &unknown, &Value::Null, Time::from_secs(NOW)), Rendered::Absent);
        let wrong = facts(&object("alice-b", &json!({"name": "alice_b"}), None)).unwrap();
        assert!(!wrong.made, "a person made the object");
        pool.apply(Event::Submitter(wrong), Time::from_secs(NOW));
        let accepted = &status(&pool, &Document::Submitter("alice-b".into()))["conditions"][0];
        assert_eq!(
            (&accepted["status"], &accepted["reason"]),
            (&json!("False"), &json!("MisnamedSubmitter"))
        );
    }

    proptest! {
        #[test]
        fn object_names_are_always_valid(name in ".{0,300}") {
            let object = submitter_object_name(&name);
            prop_assert!(is_subdomain(&object) && object.len() <= 253, "{}", object);
        }
    }
}
