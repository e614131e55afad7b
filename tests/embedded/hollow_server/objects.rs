//! Plain objects, lists, events, discovery.

use super::*;

#[tokio::test]
async fn objects_are_created_read_replaced_and_deleted() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    assert_eq!(made.namespace().as_deref(), Some("default"));
    assert_eq!(made.uid().map(|u| u.len()), Some(36));
    assert_eq!(made.creation_timestamp().map(|t| t.0.to_string()).as_deref(), Some(NOW));

    let again = status(maps.create(&PostParams::default(), &map("a", "1")).await);
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(again.message, r#"configmaps "a" already exists"#);

    let same = maps.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(
        same.resource_version(),
        made.resource_version(),
        "a write that changes nothing stores nothing"
    );
    let mut other = made.clone();
    other.data = Some(BTreeMap::from([("v".to_owned(), "2".to_owned())]));
    let other = maps.replace("a", &PostParams::default(), &other).await.unwrap();
    assert_ne!(other.resource_version(), made.resource_version());

    let stale = status(maps.replace("a", &PostParams::default(), &made).await);
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        stale.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    let gone = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(gone.right().is_some_and(|s| s.status == Some(kube::core::response::StatusSummary::Success)));
    let missing = status(maps.get("a").await);
    assert_eq!((missing.code, missing.message.as_str()), (404, r#"configmaps "a" not found"#));
}

#[tokio::test]
async fn names_are_generated_and_checked() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let stem: ConfigMap = as_kind(json!({"metadata": {"generateName": "g-"}}));
    let (a, b) = (
        maps.create(&PostParams::default(), &stem).await.unwrap(),
        maps.create(&PostParams::default(), &stem).await.unwrap(),
    );
    assert!(a.name_any().starts_with("g-") && a.name_any().len() == 7 && a.name_any() != b.name_any());
    let bad = status(maps.create(&PostParams::default(), &map("Bad_Name", "1")).await);
    assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
    assert!(bad.message.starts_with("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain"), "{}", bad.message);
    assert_eq!(bad.details.unwrap().causes[0].field, "metadata.name");
    let nowhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let missing = status(nowhere.create(&PostParams::default(), &map("a", "1")).await);
    assert_eq!((missing.code, missing.message.as_str()), (404, r#"namespaces "nowhere" not found"#));
}

#[tokio::test]
async fn patches_and_conflicts() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"w": "2", "v": null}}));
    let merged = maps.patch("a", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(merged.data, Some(BTreeMap::from([("w".to_owned(), "2".to_owned())])));
    let stale = Patch::Merge(json!({"metadata": {"resourceVersion": "1"}, "data": {"w": "3"}}));
    assert_eq!(status(maps.patch("a", &PatchParams::default(), &stale).await).code, 409);
    let missing = status(maps.patch("b", &PatchParams::default(), &merge).await);
    assert_eq!(missing.code, 404);
    let applied = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}}));
    let made = maps.patch("c", &PatchParams::apply("me"), &applied).await.unwrap();
    assert_eq!(made.data, Some(BTreeMap::from([("x".to_owned(), "1".to_owned())])));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &map("dry", "1")).await.unwrap();
    assert_eq!(status(maps.get("dry").await).code, 404);
}

#[tokio::test]
async fn lists_select_and_page_consistently() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for i in 0..7 {
        let name = format!("m{i}");
        maps.create(&PostParams::default(), &map(&name, if i % 2 == 0 { "even" } else { "odd" }))
            .await
            .unwrap();
    }
    let even = maps.list(&ListParams::default().labels("v in (even)")).await.unwrap();
    assert_eq!(even.items.len(), 4);
    let one = maps.list(&ListParams::default().fields("metadata.name=m3")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    let bad = status(maps.list(&ListParams::default().fields("spec.foo=1")).await);
    assert_eq!((bad.code, bad.message.as_str()), (400, "field label not supported: spec.foo"));

    let first = maps.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(4));
    // The pages of a list do not show changes that were made after the first page.
    maps.delete("m4", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &map("m9", "odd")).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = maps.list(&ListParams::default().limit(9).continue_token(&token)).await.unwrap();
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["m3", "m4", "m5", "m6"]);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    server.compact();
    let expired = status(maps.list(&ListParams::default().continue_token(&token)).await);
    assert_eq!((expired.code, expired.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn leases_and_counts() {
    let (server, _) = start().await;
    let client = Client::try_from(server.kube_config_as("elector/1").unwrap()).unwrap();
    let leases: Api<Lease> = Api::namespaced(client, "kube-system");
    let lease = as_kind(
        json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
        "renewTime": "2030-01-01T00:00:00.123456Z"}}),
    );
    let made: Lease = leases.create(&PostParams::default(), &lease).await.unwrap();
    leases.get("l").await.unwrap();
    assert!(made.spec.unwrap().renew_time.is_some());
    let counts = server.request_counts();
    let writes: u64 = counts
        .iter()
        .filter(|(k, _)| k.is_write() && k.client == "elector" && k.resource == "leases")
        .map(|(_, n)| n)
        .sum();
    assert_eq!(writes, 1);
    server.shutdown().await;
}

#[tokio::test]
async fn events_are_one_store_behind_two_apis() {
    let (_server, client) = start().await;
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client.clone(), "default");
    let event = as_kind(json!({"metadata": {"name": "e"}, "eventTime": "2030-01-01T00:00:00.000000Z",
        "reason": "Matched", "note": "on n1", "type": "Normal", "action": "Match", "reportingController": "c",
        "reportingInstance": "i", "regarding": {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"}}));
    new.create(&PostParams::default(), &event).await.unwrap();
    let old: Api<CoreEvent> = Api::namespaced(client, "default");
    let found = old
        .list(&ListParams::default().fields("involvedObject.uid=u,involvedObject.kind=Pod"))
        .await
        .unwrap();
    assert_eq!(found.items[0].message.as_deref(), Some("on n1"));
    let found = new.list(&ListParams::default().fields("regarding.name=p")).await.unwrap();
    assert_eq!(found.items[0].note.as_deref(), Some("on n1"));
}

#[tokio::test]
async fn the_recorder_of_kube_writes_events() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let about = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let recorder = Recorder::new(client.clone(), "slotwright".into());
    let event = kube::runtime::events::Event {
        type_: EventType::Normal,
        reason: "Matched".to_owned(),
        note: Some("on n1".to_owned()),
        action: "Match".to_owned(),
        secondary: None,
    };
    for _ in 0..2 {
        recorder.publish(&event, &about.object_ref(&())).await.unwrap();
    }
    let events: Api<CoreEvent> = Api::namespaced(client, "default");
    let found = events.list(&ListParams::default().fields("involvedObject.name=a")).await.unwrap();
    assert_eq!(found.items.len(), 1, "the second is a series of the first");
    assert_eq!(found.items[0].series.as_ref().and_then(|s| s.count), Some(2));
    assert_eq!(found.items[0].message.as_deref(), Some("on n1"));
}

#[tokio::test]
async fn kube_discovers_what_is_served() {
    let (_server, client) = start().await;
    widgets(&client).await;
    let old = kube::Discovery::new(client.clone()).run().await.unwrap();
    let new = kube::Discovery::new(client).run_aggregated().await.unwrap();
    for discovery in [old, new] {
        let (resource, capabilities) =
            discovery.resolve_gvk(&GroupVersionKind::gvk("test.dev", "v1", "Widget")).unwrap();
        assert_eq!(resource.plural, "widgets");
        assert!(capabilities.supports_operation("watch"));
        assert!(discovery.resolve_gvk(&GroupVersionKind::gvk("", "v1", "Pod")).is_some());
    }
}

#[tokio::test]
async fn unknown_fields_warn_or_fail() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let uri = |strict: bool| {
        format!("/api/v1/namespaces/default/pods{}", if strict { "?fieldValidation=Strict" } else { "" })
    };
    let body = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"nodeNam": "n",
        "containers": [{"name": "c", "image": "i"}]}});
    let send = async |uri: String| {
        let request = http::Request::post(uri).header("content-type", "application/json");
        client.request::<Pod>(request.body(body.to_string().into_bytes()).unwrap()).await
    };
    let refused = status(send(uri(true)).await);
    assert_eq!(refused.code, 400);
    assert!(refused.message.contains("unknown field \"spec.nodeNam\""), "{}", refused.message);
    send(uri(false)).await.unwrap();
    assert_eq!(pods.get("p").await.unwrap().spec.unwrap().node_name, None);
}

#[tokio::test]
async fn old_events_are_forgotten() {
    let (_server, client) = start_with(ServerConfig { max_events: 2, ..fixed() }).await;
    let events: Api<CoreEvent> = Api::namespaced(client, "default");
    for name in ["e1", "e2", "e3"] {
        let event = as_kind(json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}));
        events.create(&PostParams::default(), &event).await.unwrap();
    }
    let left = events.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["e2", "e3"]);
}
