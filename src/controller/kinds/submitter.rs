//! Submitters: the accountant's names as object names, and accounts as statuses, which a new leader reads back.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::api::ObjectMeta;

use super::conditions::accepted;
use super::document::{count, rounded, size};
use super::fnv::fnv;
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::{kube_time, time, timestamp};
use api::{AccountCorrection, AccountStatus, Submitter, SubmitterSpec, SubmitterStatus};
use model::pool::accountant::{Account, Correction};
use model::pool::{
    Accounts, Document, Event, NegotiatorId, Pool, Submitter as Known, SubmitterFacts, SubmitterName, Time,
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
        Some(Self::KIND.object(object_name(name)))
    }

    fn render(pool: &Pool, name: &SubmitterName, old: &[Condition], now: Time) -> Rendered {
        let submitter = pool.submitters().get(name);
        submitter.map_or(Rendered::Nothing, |submitter| render(pool, submitter, old, now))
    }
}

/// The longest object name.
const LONGEST: usize = 253;

/// The object name of a submitter: the submitter's own name if that is valid. Otherwise every invalid character becomes
/// `-`, and a hash follows, so that two submitters never share an object.
fn object_name(name: &SubmitterName) -> String {
    let text = name.as_str();
    let plain: String = text.chars().map(|c| if valid(c) { c } else { '-' }).collect();
    let well_formed = plain.split('.').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    });
    if plain == text && well_formed && text.len() <= LONGEST {
        return plain;
    }
    let parts: Vec<&str> =
        plain.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty()).collect();
    let mut short = parts.join(".");
    short.truncate(LONGEST - 18);
    format!("{}-{:016x}", short.trim_end_matches(['-', '.']), stable_hash(text))
        .trim_start_matches('-')
        .to_owned()
}

fn valid(c: char) -> bool {
    matches!(c, 'a'..='z' | '0'..='9' | '-' | '.')
}

/// The hash of the text and a byte 255. Names of objects contain this hash: a build with another would lose the accounts of these
/// submitters.
fn stable_hash(text: &str) -> u64 {
    fnv(text.bytes().chain([0xff]))
}

/// Reads a Submitter for the pool. If the submitter's name is not a valid object name, the status gives the name.
pub fn facts(object: &Submitter) -> Option<SubmitterFacts> {
    let found = object.metadata.name.as_deref()?;
    let status = object.status.as_ref();
    let name: SubmitterName =
        status.map(|status| status.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(found).into();
    if object_name(&name) != found {
        return None;
    }
    Some(SubmitterFacts {
        name,
        generation: object.metadata.generation.unwrap_or(1),
        factor: object.spec.priority_factor.filter(|factor| *factor >= 1.0 && factor.is_finite()),
        ceiling: object.spec.ceiling.filter(|ceiling| *ceiling >= 0.0),
        floor: object.spec.floor.filter(|floor| *floor >= 0.0),
        correction: object.spec.correction.as_ref().map(correction),
        corrected: status.and_then(|status| status.corrected.as_deref()).map(Into::into),
        accounts: status.map(accounts).unwrap_or_default(),
    })
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

fn render(pool: &Pool, submitter: &Known, old: &[Condition], now: Time) -> Rendered {
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
        conditions: vec![accepted(old, &submitter.problems, generation, now)],
    };
    let metadata = ObjectMeta { name: Some(object_name(&submitter.name)), ..ObjectMeta::default() };
    Rendered::object(&Submitter { metadata, spec: SubmitterSpec::default(), status: None }, &status)
}

/// A submitter's account with a negotiator.
fn account(pool: &Pool, submitter: &Known, id: &NegotiatorId) -> AccountStatus {
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

    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in ["alice", "physics.higgs.alice", "a-b.c1"] {
            assert_eq!(object_name(&name.into()), name);
        }
    }

    #[test]
    fn other_names_get_a_hash() {
        // Objects of clusters have names with this hash.
        assert_eq!(stable_hash("alice@example.org"), 0xef1d_b6c3_f3db_8a2a);
        let names =
            ["group_physics.alice", "group-physics.alice", "Alice", "alice.", ".alice", "-", "", "a..b"];
        let objects: std::collections::BTreeSet<String> =
            names.iter().map(|name| object_name(&(*name).into())).collect();
        assert_eq!(objects.len(), names.len(), "{objects:?}");
    }

    const NOW: i64 = 1_700_000_000;

    fn pool(specs: &[(&str, Value)]) -> Pool {
        let mut pool = Pool::default();
        for (name, spec) in specs {
            see(&mut pool, name, spec);
        }
        pool.apply(Event::Synced, Time::from_secs(NOW));
        pool
    }

    fn see(pool: &mut Pool, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
                            "metadata": {"name": name, "uid": name}, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        pool.apply(Event::Negotiator(kinds::negotiator::facts(&object)), Time::from_secs(NOW));
    }

    fn status(pool: &Pool, document: &Document) -> Value {
        match kinds::render(pool, document, &Value::Null, Time::from_secs(NOW)) {
            Rendered::Status(status) | Rendered::Object { status, .. } => status,
            other => panic!("{other:?}"),
        }
    }

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

    proptest! {
        #[test]
        fn object_names_are_always_valid(name in ".{0,300}") {
            let object = object_name(&name.as_str().into());
            prop_assert!(!object.is_empty() && object.len() <= LONGEST, "{}", object);
            prop_assert!(object.split('.').all(|part| !part.is_empty()
                && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
                && !part.starts_with('-') && !part.ends_with('-')), "{}", object);
        }
    }
}
