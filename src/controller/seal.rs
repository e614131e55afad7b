//! Who created a job, sealed into the job's annotation by the admission webhook.
//!
//! Only whoever has the key can make a seal that is believed: the operator's replicas, which read the key from the webhook's Secret.
//! A seal is for one name in one namespace, and for a short time: copied into another object, the seal says nothing. While no webhook
//! answers, the API server stores jobs without a seal, or with whatever their authors wrote, and such jobs are charged to their
//! namespaces.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::ResourceExt;
use ring::hmac;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::timeout;

use api::HTCJob;
use api::labels::SUBMITTED_BY;
use model::pool::{JobFacts, JobUid, RecordedOwner, Requester, Time};

/// How far the time of a seal and the creation of the object may be apart: the clocks of the API server and of the operator differ,
/// and other webhooks take time.
const APART: Duration = Duration::from_mins(1);

/// How long the operator waits for the key when it begins to lead. After that it goes on without: new jobs are charged to their
/// namespaces until the key is there.
const KEY_WITHIN: Duration = Duration::from_secs(30);

/// The length of a key, in bytes.
pub const KEY_BYTES: usize = 32;

/// The annotation's value, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SealValue {
    user: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    /// When the webhook saw the request, in seconds since 1970.
    at: i64,
    /// Whether the API server was still to make the object's name of `generateName`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    generated: bool,
    /// The HMAC over the other fields, the namespace and the name.
    mac: ByteString,
}

/// An HTCJob's annotation that says who created the job. The annotation is not believed yet.
#[derive(Clone, Debug)]
pub struct Seal {
    written: SealValue,
    /// `metadata.generateName`.
    generate_name: String,
}

/// The object that a seal is for.
struct Named<'a> {
    namespace: &'a str,
    /// The name, or what the name begins with if `generated`.
    name: &'a str,
    generated: bool,
}

/// A key. Its bytes are not shown.
#[derive(Clone)]
pub struct Key(Arc<hmac::Key>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The key of these bytes. `None` if there are too few of them.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= KEY_BYTES).then(|| Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, bytes))))
    }

    /// The annotation's value for an object that this requester creates now. `name` is empty while the API server has still to make the
    /// name of `generate_name`.
    pub fn seal(
        &self,
        requester: &Requester,
        (namespace, name, generate_name): (&str, &str, &str),
        now: Time,
    ) -> String {
        let generated = name.is_empty();
        let named = Named { namespace, name: if generated { generate_name } else { name }, generated };
        let mut written = SealValue {
            user: requester.user.to_string(),
            groups: requester.groups.iter().map(ToString::to_string).collect(),
            at: now.secs(),
            generated,
            mac: ByteString::default(),
        };
        written.mac = ByteString(hmac::sign(&self.0, &message(&written, &named)).as_ref().to_vec());
        serde_json::to_string(&written).unwrap_or_default()
    }

    fn made(&self, written: &SealValue, named: &Named<'_>) -> bool {
        hmac::verify(&self.0, &message(written, named), &written.mac.0).is_ok()
    }
}

/// The message of which the code is computed. Each part stands behind its length, so that no two seals have the same message.
fn message(written: &SealValue, named: &Named<'_>) -> Vec<u8> {
    let at = written.at.to_string();
    let fixed = [
        "slotwright.dev/submitted-by/1",
        named.namespace,
        named.name,
        if named.generated { "generated" } else { "" },
        &at,
    ];
    let parts =
        fixed.into_iter().chain([written.user.as_str()]).chain(written.groups.iter().map(String::as_str));
    parts.flat_map(|part| part.len().to_be_bytes().into_iter().chain(part.bytes())).collect()
}

impl Seal {
    /// The seal of a job, if its annotation has the form of one.
    pub fn of(job: &HTCJob) -> Option<Self> {
        let written = serde_json::from_str(job.annotations().get(SUBMITTED_BY)?).ok()?;
        Some(Self { written, generate_name: job.metadata.generate_name.clone().unwrap_or_default() })
    }
}

/// The seals of jobs that were new lately.
#[derive(Debug)]
struct Opened {
    /// The job of each seal, by the seal's code, and the time of the seal in seconds since 1970.
    jobs: BTreeMap<Vec<u8>, (JobUid, i64)>,
    /// The number of seals from which on old ones are forgotten: twice as many as were left the last time, so that a job costs
    /// the same however many there are.
    forget_from: usize,
}

/// The least number of remembered seals at which old ones are forgotten.
const FORGET_FROM: usize = 1024;

impl Default for Opened {
    fn default() -> Self {
        Self { jobs: BTreeMap::new(), forget_from: FORGET_FROM }
    }
}

impl Opened {
    /// Whether no other job has had this seal. A seal that is older than twice [`APART`] is not of use to a new job, and is
    /// forgotten.
    fn is_first(&mut self, written: &SealValue, job: &JobUid) -> bool {
        if self.jobs.len() >= self.forget_from {
            let newest = self.jobs.values().map(|(_, at)| *at).max().unwrap_or_default();
            let horizon = newest.saturating_sub(2 * APART.as_secs().cast_signed());
            self.jobs.retain(|_, (_, at)| *at >= horizon);
            self.forget_from = FORGET_FROM.max(self.jobs.len().saturating_mul(2));
        }
        let (first, _) = self.jobs.entry(written.mac.0.clone()).or_insert_with(|| (job.clone(), written.at));
        first == job
    }
}

/// Opens seals: has the key, and remembers which seal was for which job.
#[derive(Clone, Debug, Default)]
pub struct Seals {
    /// The key, once the webhook's Secret is read. `None`: there is no webhook, and no seal is believed.
    key: Option<watch::Receiver<Option<Key>>>,
    opened: Arc<Mutex<Opened>>,
}

impl Seals {
    /// Seals that are made with this key, which may change.
    pub fn by(key: watch::Receiver<Option<Key>>) -> Self {
        Self { key: Some(key), opened: Arc::default() }
    }

    /// Waits until the key is there, for [`KEY_WITHIN`] at most.
    pub(crate) async fn wait(&self) {
        let Some(mut key) = self.key.clone() else { return };
        if timeout(KEY_WITHIN, key.wait_for(Option::is_some)).await.is_err() {
            tracing::error!(
                "the admission webhook's key is not there after {KEY_WITHIN:?}: new jobs are charged to their namespaces, whatever \
                 spec.owner of the SubmitPolicy says"
            );
        }
    }

    /// Who created a job, if the job's seal is genuine: made with the key, for this name, at the time of the job's creation, and for no
    /// other object before.
    pub(crate) fn opened(&self, seal: &Seal, job: &JobFacts) -> Option<Requester> {
        let written = &seal.written;
        let (name, begun) = (&*job.key.name, seal.generate_name.as_str());
        let bound = match written.generated {
            false => name,
            true if !begun.is_empty() && name.starts_with(begun) && name != begun => begun,
            true => return None,
        };
        let named = Named { namespace: &job.key.namespace, name: bound, generated: written.generated };
        let key = self.key.as_ref()?.borrow().clone()?;
        let apart = job.submitted.secs().abs_diff(written.at);
        let is_first = || self.opened.lock().is_ok_and(|mut opened| opened.is_first(written, &job.key.uid));
        // A job whose owner is recorded keeps the owner, whatever its seal says. The seal is used all the same, so that no copy of it
        // counts under this leader.
        let may_have = || is_first() || job.owner != RecordedOwner::New;
        if !key.made(written, &named) || apart > APART.as_secs() || !may_have() {
            return None;
        }
        let groups = written.groups.iter().map(|group| group.as_str().into()).collect();
        Some(Requester { user: written.user.as_str().into(), groups })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::job::facts;

    fn key() -> Key {
        Key::new(&[7; KEY_BYTES]).unwrap()
    }

    fn seals() -> Seals {
        Seals::by(watch::channel(Some(key())).1)
    }

    fn alice() -> Requester {
        Requester { user: "alice".into(), groups: vec!["owner:physics".into()] }
    }

    /// 2026-01-01T00:00:00Z.
    const CREATED: i64 = 1_767_225_600;

    fn job(metadata: &Value, seal: &str) -> HTCJob {
        let mut object = json!({"metadata": {"namespace": "lab", "name": "fit", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z",
                                             "annotations": {SUBMITTED_BY: seal}},
                                "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}});
        for (field, value) in metadata.as_object().unwrap() {
            object["metadata"][field] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn opened(seals: &Seals, metadata: &Value, seal: &str) -> Option<String> {
        let job = job(metadata, seal);
        let requester = seals.opened(&Seal::of(&job)?, &facts(&job).unwrap())?;
        Some(requester.user.to_string())
    }

    fn sealed_at(secs: i64) -> String {
        key().seal(&alice(), ("lab", "fit", ""), Time::from_secs(secs))
    }

    #[test]
    fn the_creator_is_known_by_the_seal() {
        let job = job(&json!({}), &sealed_at(CREATED));
        let known = seals().opened(&Seal::of(&job).unwrap(), &facts(&job).unwrap());
        assert_eq!(known, Some(alice()));
    }

    #[test]
    fn a_name_that_the_api_server_makes_is_known_by_its_beginning() {
        let seal = key().seal(&alice(), ("lab", "", "fit-"), Time::from_secs(CREATED));
        let generated = json!({"name": "fit-x7k2p", "generateName": "fit-"});
        assert_eq!(opened(&seals(), &generated, &seal).as_deref(), Some("alice"));
        for other in [
            json!({"name": "fit-x7k2p"}),
            json!({"name": "other", "generateName": "fit-"}),
            json!({"name": "fit-"}),
        ] {
            assert_eq!(opened(&seals(), &other, &seal), None, "{other}");
        }
        // A name that the author gave, beside a generateName that counts for nothing.
        let named = json!({"generateName": "x-"});
        assert_eq!(opened(&seals(), &named, &sealed_at(CREATED)).as_deref(), Some("alice"));
    }

    #[test]
    fn a_seal_that_is_copied_or_changed_says_nothing() {
        let seal = sealed_at(CREATED);
        for other in [
            json!({"name": "other"}),
            json!({"namespace": "elsewhere"}),
            json!({"creationTimestamp": "2026-01-01T00:02:00Z"}),
        ] {
            assert_eq!(opened(&seals(), &other, &seal), None, "{other}");
        }
        for changed in [
            seal.replace("alice", "bob"),
            seal.replace("owner:physics", "owner:biology"),
            seal.replace(&CREATED.to_string(), &(CREATED + 1).to_string()),
            seal.replace("\"at\"", "\"generated\":true,\"at\""),
            r#"{"user":"alice","at":1767225600,"mac":""}"#.to_owned(),
            r#"{"user":"alice","at":1767225600,"mac":"zz"}"#.to_owned(),
            r#"{"user":"alice","at":9223372036854775807,"mac":"00"}"#.to_owned(),
            "alice".to_owned(),
        ] {
            assert_ne!(changed, seal);
            assert_eq!(opened(&seals(), &json!({}), &changed), None, "{changed}");
        }
        let other =
            Key::new(&[8; KEY_BYTES]).unwrap().seal(&alice(), ("lab", "fit", ""), Time::from_secs(CREATED));
        assert_eq!(opened(&seals(), &json!({}), &other), None);
    }

    #[test]
    fn a_seal_is_for_one_object() {
        let (seals, seal) = (seals(), sealed_at(CREATED));
        for _ in 0..2 {
            assert!(opened(&seals, &json!({}), &seal).is_some(), "the same job may be seen again");
        }
        assert_eq!(opened(&seals, &json!({"uid": "u2"}), &seal), None);
    }

    /// An earlier leader has recorded the owner of the job that the seal was made for.
    #[test]
    fn a_seal_that_was_used_under_an_earlier_leader_is_used() {
        let (seals, seal) = (seals(), sealed_at(CREATED));
        let mut first = job(&json!({}), &seal);
        first.status =
            Some(serde_json::from_value(json!({"observedGeneration": 1, "owner": "alice"})).unwrap());
        let facts = facts(&first).unwrap();
        assert_ne!(facts.owner, RecordedOwner::New);
        assert_eq!(seals.opened(&Seal::of(&first).unwrap(), &facts), Some(alice()));
        assert_eq!(opened(&seals, &json!({"uid": "u2"}), &seal), None);
    }

    /// The operator sees all jobs when it starts, in any order, with seals of any age.
    #[test]
    fn old_seals_are_forgotten_and_new_ones_are_not() {
        let mut opened = Opened::default();
        let written = |number: i64, at: i64| SealValue {
            user: "alice".to_owned(),
            groups: Vec::new(),
            at,
            generated: false,
            mac: ByteString(number.to_be_bytes().to_vec()),
        };
        let last = i64::try_from(FORGET_FROM).unwrap() * 4;
        for at in 0..last {
            assert!(opened.is_first(&written(at, at), &"u1".into()));
        }
        assert!(opened.jobs.len() < FORGET_FROM * 2, "{}", opened.jobs.len());
        assert!(!opened.is_first(&written(last - 60, last - 60), &"u2".into()));
        assert!(!opened.is_first(&written(last - 1, last - 1), &"u2".into()));
    }

    #[test]
    fn without_a_key_nothing_is_believed() {
        let seal = sealed_at(CREATED);
        for seals in [Seals::default(), Seals::by(watch::channel(None).1)] {
            assert_eq!(opened(&seals, &json!({}), &seal), None);
        }
        assert!(Key::new(b"short").is_none());
    }
}
