//! Watch events of pods, some of which cannot be decoded.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::kinds::pod::SlimPod;
use crate::kinds::{News, Sighting};
use api::labels;
use model::pool::Event as PoolEvent;

fn item(object: &Value) -> Item<SlimPod> {
    serde_json::from_str(&object.to_string()).unwrap()
}

fn foreign(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": "1"}, "spec": {"nodeName": "n1"}})
}

fn ours(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "labels":
        {labels::JOB_UID: "job", labels::PROC: "1"}, "annotations": {labels::CLAIM: "c", labels::LEASE_SECONDS: "60"}},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
}

/// The same object as nobody can decode it.
fn broken(mut object: Value, version: &str) -> Value {
    object["spec"] = json!(7);
    object["metadata"]["resourceVersion"] = json!(version);
    object
}

fn told(seen: Vec<WatchMessage>) -> Vec<String> {
    let news = |sighting: Sighting| {
        let event = sighting.news.into_iter().find_map(|news| match news {
            News::Event(event) => Some(*event),
            News::Pod(facts) => Some(PoolEvent::Pod(Arc::unwrap_or_clone(facts))),
            _ => None,
        });
        match event.unwrap() {
            PoolEvent::ForeignPod { pod, .. } => format!("other {pod}"),
            PoolEvent::ForeignPodGone(uid) => format!("other gone {uid}"),
            PoolEvent::Pod(facts) => format!("proc {} {} of {}", facts.pod.uid, facts.proc, facts.claim),
            PoolEvent::PodGone(facts) => format!("proc gone {}", facts.pod.uid),
            other => panic!("{other:?}"),
        }
    };
    seen.into_iter()
        .map(|seen| match seen {
            WatchMessage::Object(sighting) => news(*sighting),
            WatchMessage::All(_) => "synced".to_owned(),
            WatchMessage::Served(_, there) => format!("served {there}"),
            WatchMessage::Undecodable(object) => format!("unread {}", object.name),
        })
        .collect()
}

/// The messages that follow from a list of these objects.
fn list(tracker: &mut Tracker<SlimPod>, objects: &[Value]) -> Vec<String> {
    let mut seen = tracker.observe(Event::Init);
    for object in objects {
        seen.extend(tracker.observe(Event::InitApply(item(object))));
    }
    seen.extend(tracker.observe(Event::InitDone));
    told(seen)
}

#[test]
fn what_vanished_during_a_disconnect_is_noticed() {
    let mut tracker = Tracker::default();
    let both = [foreign("a", "1"), foreign("b", "2")];
    assert_eq!(list(&mut tracker, &both), ["other 1", "other 2", "synced"]);
    assert_eq!(told(tracker.observe(Event::Apply(item(&foreign("c", "3"))))), ["other 3"]);
    let later = [foreign("a", "9"), foreign("c", "3")];
    assert_eq!(list(&mut tracker, &later), ["other gone 1", "other 9", "other 3", "other gone 2"]);
    assert_eq!(told(tracker.observe(Event::Delete(item(&foreign("c", "3"))))), ["other gone 3"]);
}

#[test]
fn what_cannot_be_decoded_is_told_once_and_stays_what_it_was() {
    let mut tracker = Tracker::default();
    assert_eq!(list(&mut tracker, &[ours("p")]), ["proc p 1 of c", "synced"]);
    assert_eq!(told(tracker.observe(Event::Apply(item(&broken(ours("p"), "2"))))), ["unread p"]);
    assert_eq!(tracker.undecodable(), 1);
    let hidden = [broken(ours("p"), "2"), broken(foreign("q", "3"), "5")];
    assert_eq!(
        list(&mut tracker, &hidden),
        ["unread q"],
        "a relist tells neither of an end nor the same again"
    );
    assert_eq!(list(&mut tracker, &[broken(ours("p"), "7")]), ["unread p"], "another version");
    assert_eq!(tracker.undecodable(), 1, "the other one is gone");
    assert_eq!(told(tracker.observe(Event::Apply(item(&ours("p"))))), ["proc p 1 of c"]);
    assert_eq!(tracker.undecodable(), 0);
    tracker.observe(Event::Apply(item(&broken(ours("p"), "9"))));
    assert_eq!(told(tracker.observe(Event::Delete(item(&broken(ours("p"), "10"))))), ["proc gone p"]);
    assert_eq!(tracker.undecodable(), 0);
}

/// A job may have a hundred thousand pods, and each would keep the job's namespace for itself.
#[test]
fn pods_of_one_job_keep_their_namespace_once() {
    let mut tracker = Tracker::<SlimPod>::default();
    let namespace = |seen: Vec<WatchMessage>| match seen.into_iter().next() {
        Some(WatchMessage::Object(sighting)) => match sighting.news.into_iter().next() {
            Some(News::Pod(facts)) => facts.pod.namespace.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let mut seen = |name| namespace(tracker.observe(Event::Apply(item(&ours(name)))));
    let (first, second, again) = (seen("p"), seen("q"), seen("p"));
    assert!(Arc::ptr_eq(&first, &second), "the neighbour's");
    assert!(Arc::ptr_eq(&first, &again), "the one from before");
}

/// A new leader takes a pod of the pool that cannot be decoded for one that lives: the slot of its claim is not free.
#[test]
fn a_pod_of_the_pool_is_known_by_its_metadata() {
    let mut tracker = Tracker::default();
    let hidden = [broken(ours("p"), "2"), broken(foreign("q", "3"), "5")];
    assert_eq!(list(&mut tracker, &hidden), ["proc p 1 of c", "unread p", "unread q", "synced"]);
    assert_eq!(told(tracker.observe(Event::Apply(item(&broken(ours("p"), "4"))))), ["unread p"]);
    assert_eq!(told(tracker.observe(Event::Apply(item(&ours("p"))))), ["proc p 1 of c"]);
    assert_eq!(told(tracker.observe(Event::Delete(item(&ours("p"))))), ["proc gone p"]);
}

#[test]
fn another_object_under_the_name_ends_the_first_though_nobody_can_decode_it() {
    let mut tracker = Tracker::default();
    list(&mut tracker, &[foreign("a", "1")]);
    let other = broken(foreign("a", "2"), "2");
    assert_eq!(list(&mut tracker, &[other]), ["other gone 1", "unread a"]);
}

#[test]
fn one_without_a_name_may_be_any() {
    let mut tracker = Tracker::default();
    list(&mut tracker, &[ours("p"), foreign("a", "1")]);
    let nameless = json!({"metadata": {"name": 7, "uid": "p"}});
    assert_eq!(list(&mut tracker, &[nameless.clone(), foreign("a", "1")]), ["unread ", "other 1"]);
    assert!(!tracker.take_doubt());
    assert!(told(tracker.observe(Event::Delete(item(&nameless)))).is_empty());
    assert!(tracker.take_doubt(), "a list has to tell what is there");
    assert_eq!(list(&mut tracker, &[foreign("a", "1")]), ["other 1", "proc gone p"]);
}

#[test]
fn a_pod_stays_what_it_was_known_as() {
    let mut tracker = Tracker::default();
    list(&mut tracker, &[ours("p")]);
    let stripped = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "p", "labels": {labels::PROC: "7"}},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}});
    assert_eq!(told(tracker.observe(Event::Apply(item(&stripped)))), ["proc p 1 of c"]);
    assert_eq!(list(&mut tracker, std::slice::from_ref(&stripped)), ["proc p 1 of c"]);
    assert_eq!(told(tracker.observe(Event::Delete(item(&stripped)))), ["proc gone p"]);
    let mut another = stripped;
    another["metadata"]["uid"] = json!("p2");
    assert_eq!(told(tracker.observe(Event::Apply(item(&another)))), ["other gone p2"]);
}

/// 50,000 pods of others. Run by hand: `cargo nextest run --run-ignored only -E 'test(many_pods)' --no-capture`.
#[test]
#[ignore = "measures memory"]
fn many_pods_take_little_memory() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4 / 1024
    };
    let before = resident();
    let mut tracker = Tracker::<SlimPod>::default();
    tracker.observe(Event::Init);
    for number in 0..50_000 {
        let uid = format!("0d1f7a52-6a6c-4f0b-9c1b-{number:012}");
        let mut pod = foreign(&format!("deployment-7d9fb6c8b5-{number}"), &uid);
        pod["metadata"]["namespace"] = json!(format!("namespace-{}", number % 100));
        pod["metadata"]["managedFields"] = json!([{"fieldsV1": {"f:spec": "x".repeat(2000)}}]);
        pod["spec"]["containers"] = json!([{"name": "c", "env": [{"name": "A", "value": "x".repeat(500)}]}]);
        drop(tracker.observe(Event::InitApply(item(&pod))));
    }
    tracker.observe(Event::InitDone);
    println!("50,000 pods: {} MiB", resident() - before);
}
