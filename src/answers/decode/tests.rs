//! Hostile objects among others.

use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchEvent;
use kube::core::ObjectList;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"f:a":"#.repeat(depth), "}".repeat(depth))
}

fn pod(name: &str, metadata: &str, rest: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"u-{name}"{metadata}}}{rest}}}"#)
}

fn list(items: &[String]) -> ObjectList<Item<Pod>> {
    let text = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#,
        items.join(",")
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn managed_fields_are_nobodys_business() {
    let deep = pod("deep", &format!(r#","managedFields":[{{"fieldsV1":{}}}]"#, nested(200)), "");
    let late = pod("late", r#","managedFields":[{"time":"9999-12-31T23:59:59Z"}]"#, "");
    for item in list(&[deep, late]).items {
        let pod = item.object().unwrap();
        assert!(pod.metadata.uid.is_some() && pod.metadata.managed_fields.is_none());
    }
}

#[test]
fn one_that_cannot_be_decoded_leaves_the_others() {
    let mut found = list(&[
        pod("good", "", ""),
        pod("wrong", "", r#","spec":{"containers":[{"name":"c","env":"SECRET"}]}"#),
        pod("odd", r#","labels":7"#, ""),
        "[]".to_owned(),
        pod("last", "", r#","status":{"phase":"Running"}"#),
    ])
    .items
    .into_iter();
    assert!(found.next().unwrap().object().is_ok());
    let wrong = found.next().unwrap();
    assert_eq!(wrong.metadata().name.as_deref(), Some("wrong"));
    let why = wrong.object().unwrap_err().to_string();
    assert!(why.contains("invalid type: string, expected") && !why.contains("SECRET"), "{why}");
    let odd = found.next().unwrap();
    assert_eq!(odd.metadata().uid.as_deref(), Some("u-odd"));
    assert!(odd.object().is_err());
    assert!(found.next().unwrap().object().is_err());
    assert!(found.next().unwrap().object().is_ok());
}

#[test]
fn times_beyond_the_calendar_are_its_last_moment() {
    let item = list(&[pod(
        "late",
        r#","creationTimestamp":null,"deletionTimestamp":"9999-12-31T23:59:59Z""#,
        r#","status":{"startTime":"9999-12-31T23:59:59Z","message":"9999-12-31 is far away"}"#,
    )])
    .items
    .remove(0);
    let pod = item.object().unwrap();
    assert_eq!(pod.metadata.creation_timestamp, None);
    assert_eq!(pod.metadata.deletion_timestamp.unwrap().0.as_second(), jiff::Timestamp::MAX.as_second());
    let status = pod.status.unwrap();
    assert_eq!(status.start_time.unwrap().0.to_string(), "9999-12-30T22:00:00Z");
    assert_eq!(status.message.as_deref(), Some("9999-12-31 is far away"));
}

#[test]
fn what_nests_without_end_is_skipped_where_nobody_reads_it() {
    let junk = format!(r#","spec":{{"containers":[],"junk":{}}}"#, nested(5000));
    assert!(list(&[pod("deep", "", &junk)]).items.remove(0).object().is_ok());
}

#[test]
fn a_reason_is_short() {
    let long = pod(
        "long",
        "",
        &format!(r#","spec":{{"containers":[{{"name":"c","tty":"{}"}}]}}"#, "x".repeat(5000)),
    );
    let why = list(&[long]).items.remove(0).object().unwrap_err().to_string();
    assert!(why.chars().count() <= LONGEST_REASON + 1, "{why}");
}

#[test]
fn an_event_of_a_watch_is_decoded_as_an_item_of_a_list() {
    let text = format!(r#"{{"type":"ADDED","object":{}}}"#, pod("wrong", "", r#","spec":7"#));
    let WatchEvent::Added(item) = serde_json::from_str::<WatchEvent<Item<Pod>>>(&text).unwrap() else {
        panic!("not added")
    };
    assert!(item.object().is_err());
}

#[test]
fn nothing_of_an_object_is_in_its_debug_form() {
    let item = list(&[pod("p", r#","labels":{"a":"SECRET"}"#, "")]).items.remove(0);
    assert_eq!(format!("{item:?}"), r#"Item { namespace: Some("ns"), name: Some("p"), .. }"#);
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof!["[a-z]{0,4}", Just("9999-12-31T23:59:59Z".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    let key = prop_oneof![
        Just("metadata"),
        Just("name"),
        Just("uid"),
        Just("labels"),
        Just("deletionTimestamp"),
        Just("finalizers"),
        Just("spec"),
        Just("status"),
        Just("containers"),
        Just("conditions"),
        Just("managedFields"),
        Just("x"),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|all| all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_list_of_anything_is_a_list(items in prop::collection::vec(json(), 0..6)) {
        let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
        prop_assert_eq!(list(&texts).items.len(), items.len());
    }
}
