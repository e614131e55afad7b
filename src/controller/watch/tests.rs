//! Whole watches, against servers of a test.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::kinds::pod::SlimPod;
use api::ConcurrencyLimit;

fn served(client: Client, health: &Arc<Health>) -> Watching {
    Watching { client, clock: Clock::set_to(jiff::Timestamp::UNIX_EPOCH), health: Arc::clone(health) }
}

fn answer(code: u16, body: impl Into<Vec<u8>>) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.into())).unwrap()
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch=true"))
}

/// The answer of a server that has no lists in the form of a watch, if the request asks for one.
fn no_stream(request: &Request<Body>) -> Option<Response<Body>> {
    let asked = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents=true"));
    let invalid = json!({"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch"});
    asked.then(|| answer(422, invalid.to_string()))
}

/// The API server of a test has no such kind for the first minute.
fn without_kind_for_a_minute() -> Client {
    let began = tokio::time::Instant::now();
    let service = tower::service_fn(move |request: Request<Body>| async move {
        let there = began.elapsed().as_secs() >= 60;
        if let Some(refusal) = no_stream(&request).filter(|_| there) {
            return Ok(refusal);
        }
        let (code, body) = match (there, is_watch(&request)) {
            (false, _) => (
                404,
                json!({"kind": "Status", "status": "Failure", "code": 404,
                "message": "the server could not find the requested resource", "reason": "NotFound"}),
            ),
            (true, false) => (200, json!({"metadata": {"resourceVersion": "1"}, "items": []})),
            (true, true) => std::future::pending().await,
        };
        Ok::<_, std::convert::Infallible>(answer(code, body.to_string()))
    });
    Client::new(service, "ns")
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_missing_is_told_and_seen_soon_after_it_is_back() {
    let (out, mut seen) = mpsc::channel(10);
    let watching = served(without_kind_for_a_minute(), &Arc::default());
    let began = tokio::time::Instant::now();
    let watching = tokio::spawn(run::<ConcurrencyLimit>(watching, Pauses::new(7), out));
    let mut next = async || match seen.recv().await {
        Some(WatchMessage::Served(_, there)) => format!("served {there}"),
        Some(WatchMessage::All(_)) => "synced".to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(next().await, "served false");
    assert!(began.elapsed().as_secs() < 1, "readyz says so at once");
    assert_eq!(next().await, "synced");
    assert_eq!(next().await, "served true");
    assert!((60..=65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    watching.abort();
}

/// A text that must not reach the log.
const SECRET: &str = "hunter2";

fn deep(depth: usize) -> String {
    format!("{}1{}", r#"{"f:a":"#.repeat(depth), "}".repeat(depth))
}

/// A pod of a tenant, with a secret in its environment.
fn pod(name: &str, metadata: &str, more: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"1"{metadata}}},
            "spec":{{"nodeName":"n1","containers":[{{"name":"c","env":[{{"name":"A","value":"{SECRET}"}}]}}]{more}}}}}"#
    )
    .replace('\n', "")
}

/// The hostile objects of the three shapes, and one that is like none that an API server stores.
fn hostile() -> Vec<String> {
    vec![
        pod("deep", &format!(r#","managedFields":[{{"manager":"x","fieldsV1":{}}}]"#, deep(200)), ""),
        pod("late", r#","managedFields":[{"manager":"x","time":"9999-12-31T23:59:59Z"}]"#, ""),
        pod("nested", "", &format!(r#","junk":{}"#, deep(400))),
        pod("wrong", "", r#","overhead":"hunter2""#),
    ]
}

/// The log as one text.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<String>>);

impl tracing::Subscriber for Logged {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{field}={value:?} ");
            }
        }
        let mut text = self.0.lock().unwrap();
        let _ = write!(text, "{}: ", event.metadata().target());
        event.record(&mut Text(&mut text));
        text.push('\n');
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A server that lists these texts once, and then answers a watch with this text.
fn server(list: String, events: String) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (list, events) = (list.clone(), events.clone());
        async move {
            let listed = || answer(200, if is_watch(&request) { events } else { list });
            Ok::<_, std::convert::Infallible>(no_stream(&request).unwrap_or_else(listed))
        }
    });
    Client::new(service, "ns")
}

fn list_of(items: &[String]) -> String {
    format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, items.join(","))
}

/// A server that forgets a list before the list's second page.
fn forgetful() -> Client {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        if let Some(refusal) = no_stream(&request) {
            return Ok(refusal);
        }
        let query = request.uri().query().unwrap_or_default();
        let expired = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
            "message": "The provided continue parameter is too old"});
        let (code, body) = match (is_watch(&request), query.contains("limit="), query.contains("continue=")) {
            (true, ..) => std::future::pending().await,
            (_, _, true) => (410, expired.to_string()),
            (_, true, _) => {
                let metadata = r#"{"resourceVersion":"7","continue":"next"}"#;
                (200, format!(r#"{{"metadata":{metadata},"items":[{}]}}"#, pod("first", "", "")))
            }
            (_, false, _) => (200, list_of(&[pod("first", "", ""), pod("second", "", "")])),
        };
        Ok::<_, std::convert::Infallible>(answer(code, body))
    });
    Client::new(service, "ns")
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_between_its_pages_is_read_in_one_answer() {
    let (out, mut seen) = mpsc::channel(10);
    let watching = tokio::spawn(run::<SlimPod>(served(forgetful(), &Arc::default()), Pauses::new(7), out));
    let all = async { while !matches!(seen.recv().await.unwrap(), WatchMessage::All(_)) {} };
    tokio::time::timeout(std::time::Duration::from_secs(10), all).await.expect("the list has an end");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn hostile_objects_stop_nothing_and_nothing_of_them_is_logged() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let mut items = hostile();
    items.push(pod("last", "", ""));
    let event = |pod: &String| format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n");
    let events = hostile().iter().map(event).collect::<Vec<_>>().concat();
    let health = Arc::new(Health::default());
    let (out, mut seen) = mpsc::channel(100);
    let watching = served(server(list_of(&items), events), &health);
    let watching = tokio::spawn(run::<SlimPod>(watching, Pauses::new(7), out));
    let (mut objects, mut undecodable) = (0, Vec::new());
    loop {
        match seen.recv().await.unwrap() {
            WatchMessage::Object(_) => objects += 1,
            WatchMessage::Undecodable(object) => undecodable.push(object.name),
            WatchMessage::All(_) => break,
            WatchMessage::Served(..) => panic!("the kind is there"),
        }
    }
    assert_eq!((objects, undecodable), (4, vec!["wrong".to_owned()]));
    for _ in 0..3 {
        assert!(
            matches!(seen.recv().await.unwrap(), WatchMessage::Object(_)),
            "the watch goes on, and tells nothing twice"
        );
    }
    let mut told = Vec::new();
    health
        .progress()
        .each(model::pool::Time::default(), |kind, stale, bad| told.push((kind, stale.as_secs(), bad)));
    assert_eq!(told, [("pods", 0, 1)]);
    watching.abort();
    let logged = logged.0.lock().unwrap();
    assert!(logged.contains("wrong") && !logged.contains(SECRET), "{logged}");
}

/// A server that answers each watch that begins with a list by this text, and lists by this list; other watches stay silent. Panics if
/// it is asked for objects that may be old.
fn streaming(text: String, list: String) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (text, list) = (text.clone(), list.clone());
        async move {
            let query = request.uri().query().unwrap_or_default();
            let text = match (is_watch(&request), query.contains("sendInitialEvents=true")) {
                (false, _) => Some(list),
                (true, false) => None,
                (true, true) => {
                    assert!(!query.contains("resourceVersion="), "{query}");
                    assert!(query.contains("resourceVersionMatch=NotOlderThan"), "{query}");
                    Some(text)
                }
            };
            match text {
                Some(text) => Ok::<_, std::convert::Infallible>(answer(200, text)),
                None => std::future::pending().await,
            }
        }
    });
    Client::new(service, "ns")
}

/// The bookmark at the end of a list in the form of a watch.
const END: &str = "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\
    \"resourceVersion\":\"9\",\"creationTimestamp\":null,\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n";
/// How a server ends a watch whose list it cannot send: its etcd does not say how far the cache is.
const NOT_FRESH: &str = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":500,\
    \"reason\":\"InternalError\",\"message\":\"not fresh\"}}\n";

/// The objects of which a watch tells until it has told all, and how long that takes.
async fn told(client: Client) -> (Vec<String>, Duration) {
    let health = Arc::new(Health::default());
    let (out, mut seen) = mpsc::channel(100);
    let began = tokio::time::Instant::now();
    let watching = tokio::spawn(run::<SlimPod>(served(client, &health), Pauses::new(7), out));
    let mut told = Vec::new();
    loop {
        match seen.recv().await.unwrap() {
            WatchMessage::Object(_) => told.push("object".to_owned()),
            WatchMessage::Undecodable(object) => told.push(object.name),
            WatchMessage::All(_) => break,
            WatchMessage::Served(..) => panic!("the kind is there"),
        }
    }
    let mut late = Vec::new();
    health.progress().each(model::pool::Time::default(), |kind, stale, bad| late.push((kind, stale, bad)));
    assert_eq!(late, [("pods", Duration::ZERO, 1)]);
    watching.abort();
    (told, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_list_in_the_form_of_a_watch_is_whole_with_its_bookmark() {
    let added = |pod: &String| format!("{{\"type\":\"ADDED\",\"object\":{pod}}}\n");
    let listed: String = hostile().iter().map(added).collect();
    let all = ["object", "object", "object", "wrong"].map(str::to_owned).to_vec();
    let other = "the watch was enough".to_owned();
    let whole = told(streaming(listed.clone() + END, other)).await;
    assert_eq!(whole, (all.clone(), Duration::ZERO));
    // Such a list may fail before its end. After a pause comes a list in pages.
    let twice = [all.clone(), all.iter().filter(|name| *name == "object").cloned().collect()].concat();
    for (failed, expected) in [(listed, twice), (String::new(), all.clone()), (NOT_FRESH.to_owned(), all)] {
        let (told, after) = told(streaming(failed, list_of(&hostile()))).await;
        assert_eq!(told, expected);
        assert!((Duration::from_millis(100)..Duration::from_secs(10)).contains(&after), "{after:?}");
    }
}

/// A list that is no JSON, or is cut off, is an error without its text. An event that is none loses nothing: a list follows.
#[tokio::test(start_paused = true)]
async fn what_is_no_json_is_not_logged_either() {
    let whole = list_of(&[pod("a", "", "")]);
    let cut = whole.get(..whole.len() - 9).unwrap().to_owned();
    let odd = format!("{{\"object\":{},\"type\":\"MODIFIED\"}}\n", pod("a", "", ""));
    for (list, events, lists) in [(cut, String::new(), false), (whole, odd, true)] {
        let logged = Logged::default();
        let guard = tracing::subscriber::set_default(logged.clone());
        let health = Arc::new(Health::default());
        let (out, mut seen) = mpsc::channel(100);
        let watching =
            tokio::spawn(run::<SlimPod>(served(server(list, events), &health), Pauses::new(7), out));
        if lists {
            for expected in ["object", "all", "object"] {
                let found = match seen.recv().await.unwrap() {
                    WatchMessage::Object(_) => "object",
                    WatchMessage::All(_) => "all",
                    _ => "other",
                };
                assert_eq!(found, expected);
            }
        } else {
            tokio::time::sleep(std::time::Duration::from_secs(100)).await;
            assert!(seen.try_recv().is_err());
            let now = model::pool::Time::from_secs(500);
            let complaint = health.progress().complaint(now).unwrap();
            assert!(
                complaint.contains("pods") && complaint.contains("no JSON") && !complaint.contains(SECRET)
            );
        }
        watching.abort();
        drop(guard);
        let logged = logged.0.lock().unwrap();
        assert!(logged.contains("a watch failed") && !logged.contains(SECRET), "{logged}");
    }
}

/// The same holds for answers to writes.
#[tokio::test]
async fn an_answer_to_a_write_that_cannot_be_decoded_is_an_answer() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    for body in hostile() {
        let pods: Api<Item<SlimPod>> = Api::namespaced(answers::guarded(server(body, String::new())), "ns");
        let patch = kube::api::Patch::Merge(Value::Null);
        let found = pods.patch("p", &kube::api::PatchParams::default(), &patch).await.unwrap();
        assert!(found.metadata().uid.is_some());
        assert!(answers::wire::remove(&pods, "p", &kube::api::DeleteParams::default()).await.is_ok());
    }
    let broken = answers::guarded(server(format!("<html>{SECRET}"), String::new()));
    let pods: Api<Item<SlimPod>> = Api::namespaced(broken, "ns");
    assert!(!pods.get("p").await.unwrap_err().to_string().contains(SECRET));
    let logged = logged.0.lock().unwrap();
    assert!(!logged.contains(SECRET), "{logged}");
}
