use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::kinds::job::facts;
use crate::seal::{KEY_BYTES, Key};
use api::labels::{CREATED_BY, SUBMITTED_BY};
use model::pool::Requester;

/// An API server that answers requests for the four objects with these answers, one after another, whatever object is
/// asked for. The last answer is given for ever.
#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<Vec<(u16, Value)>>>,
    requests: Arc<AtomicU32>,
}

impl Server {
    fn answering(answers: &[(u16, Value)]) -> Self {
        let answers = answers.iter().rev().cloned().collect();
        Self { answers: Arc::new(Mutex::new(answers)), requests: Arc::default() }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            let server = server.clone();
            async move {
                server.requests.fetch_add(1, Ordering::Relaxed);
                let mut answers = server.answers.lock().unwrap();
                let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
                let (code, body) = answer.unwrap();
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "ns")
    }

    fn creators(&self) -> Creators {
        let stamps = Stamps::by(Some("p".to_owned()));
        Creators::new(Seals::default(), stamps, self.client(), &Pauses::new(7))
    }
}

/// The answer about an object that was made at midnight, with a generation.
fn there(generation: i64) -> (u16, Value) {
    let metadata =
        json!({"name": "p", "generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z"});
    (200, json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "A", "metadata": metadata}))
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "words", "reason": reason}))
}

/// A job of the day before noon that alice created, with what its status says of the owner.
fn job(uid: &str, status: &Value) -> (Box<JobFacts>, CreatorAnnotations) {
    let job: HTCJob = serde_json::from_value(json!({
        "metadata": {"namespace": "lab", "name": uid, "uid": uid, "creationTimestamp": "2026-01-01T12:00:00Z",
                     "annotations": {CREATED_BY: "alice\nowner:physics"}},
        "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
        "status": status}))
    .unwrap();
    (Box::new(facts(&job).unwrap()), CreatorAnnotations::of(&job))
}

fn new(uid: &str) -> (Box<JobFacts>, CreatorAnnotations) {
    job(uid, &Value::Null)
}

fn look_at(
    creators: &mut Creators,
    (job, annotations): (Box<JobFacts>, CreatorAnnotations),
) -> Option<JobFacts> {
    creators.look_at(Stage::Jobs, job, annotations)
}

/// The jobs that the answer is about, each with its creator's name or why nobody knows the creator.
async fn found(creators: &mut Creators) -> Vec<(String, String)> {
    let found = creators.found().await.unwrap_or_default();
    let creator = |job: &JobFacts| match &job.requester {
        Ok(requester) => requester.user.to_string(),
        Err(why) => why.to_string(),
    };
    found.iter().map(|(_, job)| (job.key.uid.to_string(), creator(job))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_job_waits_for_an_answer_to_a_question_that_was_asked_after_the_job_was_seen() {
    let server = Server::answering(&[there(1)]);
    let mut creators = server.creators();
    creators.wait().await;
    assert!(creators.found().await.is_none(), "no question is under way");
    assert!(look_at(&mut creators, new("a")).is_none());
    assert!(look_at(&mut creators, new("b")).is_none());
    assert!(look_at(&mut creators, new("c")).is_none());
    assert_eq!(found(&mut creators).await, pairs(&[("a", "alice")]));
    assert_eq!(found(&mut creators).await, pairs(&[("b", "alice"), ("c", "alice")]), "one question for both");
    assert_eq!(server.requests.load(Ordering::Relaxed), 3 * 4);
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_job_does_not_count() {
    // Asked at the start, all four objects were as they were made. Then somebody edited the second.
    let server = Server::answering(&[there(1), there(1), there(1), there(1), there(1), there(2)]);
    let mut creators = server.creators();
    creators.wait().await;
    look_at(&mut creators, new("a"));
    let found = found(&mut creators).await;
    assert!(
        found[0].1.starts_with("the spec of the MutatingAdmissionPolicyBinding p was edited"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_no_answer_and_what_the_operator_may_not_see_is_not_in_force() {
    let server = Server::answering(&[
        failure(500, "InternalError"),
        there(1),
        failure(503, "ServiceUnavailable"),
        there(1),
    ]);
    let mut creators = server.creators();
    look_at(&mut creators, new("a"));
    assert_eq!(found(&mut creators).await, pairs(&[("a", "alice")]));
    for (answer, why) in [
        (failure(403, "Forbidden"), "the operator may not get the MutatingAdmissionPolicy p: words"),
        (failure(404, "NotFound"), "there is no MutatingAdmissionPolicy p"),
    ] {
        let mut creators = Server::answering(&[answer]).creators();
        look_at(&mut creators, new("a"));
        assert_eq!(found(&mut creators).await, pairs(&[("a", why)]));
    }
}

/// Otherwise an older version of a job could be told after a newer one.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_gone_or_has_changed_waits_no_longer() {
    let mut creators = Server::answering(&[there(1)]).creators();
    creators.wait().await;
    for uid in ["a", "b", "c"] {
        assert!(look_at(&mut creators, new(uid)).is_none());
    }
    creators.forget(&"a".into());
    let recorded = json!({"observedGeneration": 1, "owner": "alice"});
    assert!(look_at(&mut creators, job("b", &recorded)).is_some(), "the owner is recorded");
    assert_eq!(found(&mut creators).await, []);
    assert_eq!(found(&mut creators).await, pairs(&[("c", "alice")]));
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_for_nothing_if_no_policies_are_named() {
    let server = Server::answering(&[there(1)]);
    let mut none = Creators::new(Seals::default(), Stamps::default(), server.client(), &Pauses::new(7));
    none.wait().await;
    let told = look_at(&mut none, new("a")).unwrap();
    assert_eq!(told.requester, Err(UnknownCreator::default()));
    assert_eq!(server.requests.load(Ordering::Relaxed), 0);
}

/// A job whose owner is recorded has its owner, and its pods may be told before the answer would come.
#[tokio::test(start_paused = true)]
async fn a_job_whose_owner_is_recorded_waits_for_nothing_and_says_what_was_last_known() {
    let mut creators = Server::answering(&[failure(404, "NotFound")]).creators();
    creators.wait().await;
    let told = look_at(&mut creators, job("a", &json!({"observedGeneration": 1, "owner": "namespace:lab"})))
        .unwrap();
    assert_eq!(told.requester.unwrap_err().to_string(), "there is no MutatingAdmissionPolicy p");
}

#[tokio::test(start_paused = true)]
async fn a_new_job_without_a_stamp_says_so() {
    let mut creators = Server::answering(&[there(1)]).creators();
    let (unstamped, _) = new("a");
    assert!(look_at(&mut creators, (unstamped, CreatorAnnotations::default())).is_none());
    let found = found(&mut creators).await;
    assert!(found[0].1.starts_with("the job has no stamp"), "{found:?}");
}

/// Only whoever has the key can have made the seal, whatever has become of the policies.
#[tokio::test(start_paused = true)]
async fn a_seal_wins() {
    let key = Key::new(&[7; KEY_BYTES]).unwrap();
    let carol = Requester { user: "carol".into(), groups: Vec::new() };
    let (facts, stamp) = new("a");
    let seal = key.seal(&carol, ("lab", "a", ""), facts.submitted);
    let sealed = json!({"metadata": {"annotations": {SUBMITTED_BY: seal}}, "spec": {"template": {}}});
    let annotations = CreatorAnnotations {
        seal: CreatorAnnotations::of(&serde_json::from_value(sealed).unwrap()).seal,
        ..stamp
    };
    let server = Server::answering(&[there(1)]);
    let stamps = Stamps::by(Some("p".to_owned()));
    let seals = Seals::by(watch::channel(Some(key)).1);
    let mut creators = Creators::new(seals, stamps, server.client(), &Pauses::new(7));
    let told = look_at(&mut creators, (facts, annotations)).unwrap();
    assert_eq!(told.requester, Ok(carol));
}
