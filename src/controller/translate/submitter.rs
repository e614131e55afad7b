//! Submitters: the accountant's names as object names, and accounts read back by a new leader.

use std::hash::{Hash, Hasher};

use super::time;
use api::{AccountCorrection, AccountStatus, Submitter, SubmitterStatus};
use model::pool::accountant::{Correction, Record as Account};
use model::pool::{Accounts, NegotiatorId, SubmitterFacts, SubmitterName};

/// The longest object name.
const LONGEST: usize = 253;

/// The object name of a submitter: its own name where that is a valid one, otherwise with everything else made `-` and a
/// hash behind it, so that two submitters never share an object.
pub fn submitter_object_name(name: &SubmitterName) -> String {
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

/// FNV-1a: the same in every build, unlike the standard library's.
fn stable_hash(text: &str) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    text.hash(&mut hasher);
    hasher.finish()
}

/// What the pool knows of a Submitter. Its accountant's name is in the status where the object's name could not hold it.
pub fn submitter(object: &Submitter) -> Option<SubmitterFacts> {
    let object_name = object.metadata.name.as_deref()?;
    let status = object.status.as_ref();
    let name: SubmitterName = status
        .map(|status| status.name.as_str())
        .filter(|name| !name.is_empty())
        .unwrap_or(object_name)
        .into();
    if submitter_object_name(&name) != object_name {
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

/// The accounts that a status has: one in its own fields, with the negotiator that it names, and those with others.
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
    all.filter_map(|(name, one)| Some((NegotiatorId::from(name), account(one)?))).collect()
}

fn account(status: &AccountStatus) -> Option<Account> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in ["alice", "physics.higgs.alice", "a-b.c1"] {
            assert_eq!(submitter_object_name(&name.into()), name);
        }
    }

    #[test]
    fn other_names_get_a_hash() {
        let names =
            ["group_physics.alice", "group-physics.alice", "Alice", "alice.", ".alice", "-", "", "a..b"];
        let objects: std::collections::BTreeSet<String> =
            names.iter().map(|name| submitter_object_name(&(*name).into())).collect();
        assert_eq!(objects.len(), names.len(), "{objects:?}");
    }

    proptest! {
        #[test]
        fn object_names_are_always_valid(name in ".{0,300}") {
            let object = submitter_object_name(&name.as_str().into());
            prop_assert!(!object.is_empty() && object.len() <= LONGEST, "{}", object);
            prop_assert!(object.split('.').all(|part| !part.is_empty()
                && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
                && !part.starts_with('-') && !part.ends_with('-')), "{}", object);
        }
    }
}
