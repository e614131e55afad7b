//! Slots that somebody deletes, makes again or edits while the operator writes or deletes them.

use std::collections::VecDeque;
use std::sync::Mutex;

use http::{Request, Response};
use kube::client::Body;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::super::{Reply, Writer};
use super::{Arc, Cache, Clock, Effect, Task, Timestamp, Tools, plan, slot};
use crate::cache::CachedObject;
use crate::kinds::{self, Custom};
use model::pool::{Claim, ClaimPlan, Document, Outcome, Retry, SlotName};

/// The answers to give, each a status and an object, and the requests, each with its method and its body.
type Talk = Arc<Mutex<(VecDeque<(u16, Value)>, Vec<(String, Value)>)>>;

/// A writer at an API server that gives these answers.
fn writer(answers: Vec<(u16, Value)>) -> (Writer, Talk) {
    let talk: Talk = Arc::new(Mutex::new((answers.into(), Vec::new())));
    let heard = Arc::clone(&talk);
    let service = tower::service_fn(move |request: Request<Body>| {
        let talk = Arc::clone(&heard);
        async move {
            let method = request.method().to_string();
            let body = request.into_body().collect_bytes().await.unwrap();
            let mut talk = talk.lock().unwrap();
            talk.1.push((method, serde_json::from_slice(&body).unwrap_or_default()));
            let (code, answer) = talk.0.pop_front().expect("no more requests than answers");
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    let client = kube::Client::new(service, "ns");
    (Writer::new(Tools::new(client, Clock::set_to(Timestamp::UNIX_EPOCH), "me")), talk)
}

/// A refusal.
fn no(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}))
}

fn missing() -> (u16, Value) {
    no(404, "NotFound")
}

fn conflict() -> (u16, Value) {
    no(409, "Conflict")
}

/// The Slot as the API server has it, with this identity and this claim.
fn is(uid: &str, version: &str, claim: &Claim) -> (u16, Value) {
    let mut object = json!(kinds::slot::claimed(&slot(), &plan().resources, claim));
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!(version);
    (200, object)
}

/// The cache of an operator that has seen the Slot with this identity.
fn seen(uid: &str, version: &str) -> Cache {
    let mut cache = Cache::default();
    let metadata = ObjectMeta {
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_owned()),
        ..ObjectMeta::default()
    };
    cache.see(key(), CachedObject::new(&metadata, "null"));
    cache
}

fn key() -> crate::cache::ObjectKey {
    api::Slot::KIND.object("slot1-1.n1")
}

/// The calls of a task, each with its method and the identity that its body names, and the replies.
async fn perform(task: Task, cache: &Cache, answers: Vec<(u16, Value)>) -> (Vec<String>, Vec<Reply>) {
    let (mut writer, heard) = writer(answers);
    writer.submit(task, cache);
    let ended = timeout(Duration::from_mins(5), writer.finished()).await.expect("the task ends");
    let asked = heard.lock().unwrap().1.iter().map(line).collect();
    assert_eq!(heard.lock().unwrap().0.len(), 0, "answers that nobody asked for");
    (asked, ended.unwrap().1)
}

fn line((method, body): &(String, Value)) -> String {
    let named = [&body["preconditions"]["uid"], &body["metadata"]["resourceVersion"]];
    let named = named.into_iter().find_map(Value::as_str);
    named.map_or_else(|| method.clone(), |named| format!("{method} {named}"))
}

fn delete() -> Task {
    let effect = Effect::DeleteSlot { slot: slot(), claim: Some(plan().claim.id), before: Vec::new() };
    Task::Effect(effect, None)
}

fn write(claim: Claim) -> Task {
    let resources = plan().resources;
    Task::Effect(Effect::WriteSlot(Box::new(ClaimPlan { slot: slot(), resources, claim, again: true })), None)
}

/// The claim of the plan, as it serves proc 5.
fn next() -> Claim {
    let mut claim = plan().claim;
    claim.last.proc = 5;
    claim
}

fn of_another() -> Claim {
    Claim { id: "slot1_1@n1#9#9".into(), ..plan().claim }
}

/// The replies, in short.
fn told(replies: &[Reply]) -> Vec<String> {
    let short = |reply: &Reply| match reply {
        Reply::Outcome(Outcome::SlotDeleted { there, .. }) => format!("deleted {there}"),
        Reply::Outcome(Outcome::SlotWritten { .. }) => "written".to_owned(),
        Reply::Outcome(Outcome::SlotRefused { why, .. }) => format!("refused: {why}"),
        Reply::Outcome(Outcome::Failed(Retry::Slot(_))) => "again".to_owned(),
        Reply::Seen(_, known) => format!("seen {}", known.identity().uid),
        Reply::Forgotten(_, uid) => format!("forgotten {uid}"),
        Reply::Stale(_) => "stale".to_owned(),
        other => format!("{other:?}"),
    };
    replies.iter().map(short).collect()
}

#[tokio::test(start_paused = true)]
async fn only_the_slot_that_the_operator_has_seen_is_deleted() {
    let ours = plan().claim;
    for (cache, answers, asked, replies) in [
        (
            seen("u1", "7"),
            vec![is("u1", "8", &ours)],
            vec!["DELETE u1"],
            vec!["forgotten u1", "deleted true"],
        ),
        (seen("u1", "7"), vec![missing()], vec!["DELETE u1"], vec!["forgotten u1", "deleted false"]),
        (
            seen("u1", "7"),
            vec![conflict(), is("u2", "9", &of_another())],
            vec!["DELETE u1", "GET"],
            vec!["forgotten u1", "seen u2", "again"],
        ),
        (
            seen("u1", "7"),
            vec![conflict(), missing()],
            vec!["DELETE u1", "GET"],
            vec!["forgotten u1", "deleted false"],
        ),
        (seen("u1", "7"), vec![no(403, "Forbidden")], vec!["DELETE u1"], vec!["again"]),
        (Cache::default(), vec![missing()], vec!["GET"], vec!["deleted false"]),
        (Cache::default(), vec![is("u2", "9", &ours)], vec!["GET"], vec!["seen u2", "again"]),
    ] {
        let (calls, outcome) = perform(delete(), &cache, answers).await;
        assert_eq!(calls, asked);
        assert_eq!(told(&outcome), replies, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_written_over_the_slot_that_the_operator_has_seen() {
    let ours = plan().claim;
    let exists = || no(409, "AlreadyExists");
    let written = || vec!["seen u1", "written"];
    let refused = || vec!["refused: a Slot of that name carries another claim"];
    for (case, cache, answers, asked, replies) in [
        ("as seen", seen("u1", "7"), vec![is("u1", "8", &next())], vec!["PATCH 7"], written()),
        (
            "edited since",
            seen("u1", "7"),
            vec![
                conflict(),
                is("u1", "9", &of_another()),
                conflict(),
                is("u1", "10", &ours),
                is("u1", "11", &next()),
            ],
            vec!["PATCH 7", "GET", "PATCH 9", "GET", "PATCH 10"],
            written(),
        ),
        (
            "deleted",
            seen("u1", "7"),
            vec![missing(), is("u2", "9", &next())],
            vec!["PATCH 7", "POST"],
            vec!["seen u2", "written"],
        ),
        (
            "made again by somebody else",
            seen("u1", "7"),
            vec![conflict(), is("u2", "9", &of_another()), exists(), is("u2", "9", &of_another())],
            vec!["PATCH 7", "GET", "POST", "GET"],
            refused(),
        ),
        (
            "made again with the claim, as from a backup",
            seen("u1", "7"),
            vec![conflict(), is("u2", "9", &ours), exists(), is("u2", "9", &ours), is("u2", "10", &next())],
            vec!["PATCH 7", "GET", "POST", "GET", "PATCH 9"],
            vec!["seen u2", "written"],
        ),
        (
            "never seen, and another's",
            Cache::default(),
            vec![exists(), is("u2", "9", &of_another())],
            vec!["POST", "GET"],
            refused(),
        ),
        (
            "edited again and again",
            seen("u1", "0"),
            (1..=5).flat_map(|n| [conflict(), is("u1", &n.to_string(), &ours)]).collect(),
            vec!["PATCH 0", "GET", "PATCH 1", "GET", "PATCH 2", "GET", "PATCH 3", "GET", "PATCH 4", "GET"],
            vec!["refused: conflict: somebody else writes the Slot again and again"],
        ),
    ] {
        let (calls, outcome) = perform(write(next()), &cache, answers).await;
        assert_eq!(calls, asked, "{case}");
        assert_eq!(told(&outcome), replies, "{case}");
    }
}

/// The calls act on the object as the operator knows it when they begin, and not as it was when the deciders asked.
#[tokio::test(start_paused = true)]
async fn a_task_that_waited_acts_on_what_the_task_before_it_has_made() {
    let (mut writer, talk) =
        writer(vec![is("u1", "7", &plan().claim), is("u1", "8", &next()), is("u1", "9", &next())]);
    let mut cache = Cache::default();
    let (resources, claim) = (plan().resources, plan().claim);
    let make = Effect::WriteSlot(Box::new(ClaimPlan { slot: slot(), resources, claim, again: false }));
    for task in [Task::Effect(make, None), write(next()), delete()] {
        writer.submit(task, &cache);
    }
    for _ in 0..3 {
        let (ended, replies) = writer.finished().await.unwrap();
        for reply in replies {
            if let Reply::Seen(key, known) = reply {
                cache.see(key, known);
            }
        }
        writer.advance(ended, &cache);
    }
    let asked: Vec<String> = talk.lock().unwrap().1.iter().map(line).collect();
    assert_eq!(asked, ["POST", "PATCH 7", "DELETE u1"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_made_again_is_looked_at_again() {
    let task = || {
        let document = Document::Slot(SlotName::parse("slot2@n1").unwrap());
        Task::Delete { document, object: key(), uid: "u1".to_owned(), version: "7".to_owned() }
    };
    let answers = vec![conflict(), is("u2", "9", &of_another())];
    let (asked, replies) = perform(task(), &seen("u1", "7"), answers).await;
    assert_eq!(asked, ["DELETE u1", "GET"]);
    assert_eq!(told(&replies), ["forgotten u1", "seen u2", "stale"]);
}
