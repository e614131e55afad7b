//! Watches and watchers.

use super::*;

fn watch_all() -> WatchParams {
    WatchParams::default().timeout(290)
}

#[tokio::test]
async fn watches_follow_a_selection() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let from = server.resource_version().to_string();
    let mut events = maps.watch(&watch_all().labels("v=1"), &from).await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("other", "2")).await.unwrap();
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let relabel = |v: &str| Patch::Merge(json!({"metadata": {"labels": {"v": v}}}));
    maps.patch("a", &PatchParams::default(), &relabel("2")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &relabel("1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut kinds = Vec::new();
    let mut versions = Vec::new();
    for _ in 0..4 {
        let (kind, object) = match next(&mut events).await.unwrap() {
            WatchEvent::Added(o) => ("added", o),
            WatchEvent::Modified(o) => ("modified", o),
            WatchEvent::Deleted(o) => ("deleted", o),
            other => panic!("{other:?}"),
        };
        kinds.push(kind);
        versions.push(object.resource_version().unwrap().parse::<u64>().unwrap());
    }
    assert_eq!(kinds, ["added", "deleted", "added", "deleted"]);
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    server.send_bookmarks();
    let Ok(WatchEvent::Bookmark(mark)) = next(&mut events).await else { panic!("no bookmark") };
    assert_eq!(mark.metadata.resource_version, server.resource_version().to_string());
    server.shutdown().await;
    assert!(soon(events.next()).await.is_none(), "shutdown ends the watch");
}

#[tokio::test]
async fn old_versions_are_gone() {
    let (server, client) = start_with(ServerConfig { history: 2, ..fixed() }).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let old = server.resource_version().to_string();
    for i in 0..4 {
        maps.create(&PostParams::default(), &map(&format!("m{i}"), "1")).await.unwrap();
    }
    let mut events = maps.watch(&watch_all(), &old).await.unwrap().boxed();
    let gone = match next(&mut events).await {
        Ok(WatchEvent::Error(status)) | Err(Error::Api(status)) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
    let far = (server.resource_version() + 100).to_string();
    let error = maps.watch(&watch_all(), &far).await.map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Api(s) if s.code == 504), "{error:?}");
}

fn describe(event: watcher::Event<ConfigMap>) -> String {
    match event {
        watcher::Event::Init => "init".to_owned(),
        watcher::Event::InitApply(o) => format!("init {}", o.name_any()),
        watcher::Event::InitDone => "done".to_owned(),
        watcher::Event::Apply(o) => format!("apply {}", o.name_any()),
        watcher::Event::Delete(o) => format!("delete {}", o.name_any()),
    }
}

async fn names_of_watcher(config: watcher::Config, client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let mut events = std::pin::pin!(watcher(maps.clone(), config));
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(describe(next(&mut events).await.unwrap()));
    }
    maps.create(&PostParams::default(), &map("b", "1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    for _ in 0..2 {
        seen.push(describe(next(&mut events).await.unwrap()));
    }
    assert_eq!(seen, ["init", "init a", "done", "apply b", "delete a"]);
    maps.delete("b", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn watchers_list_in_pages_and_as_a_stream() {
    let (_server, client) = start().await;
    names_of_watcher(watcher::Config::default().page_size(1), &client).await;
    names_of_watcher(watcher::Config::default().streaming_lists(), &client).await;
}

#[tokio::test]
async fn metadata_only() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let metas: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client, "default");
    assert_eq!(metas.get("a").await.unwrap().labels()["v"], "1");
    assert_eq!(metas.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let mut events = std::pin::pin!(watcher(metas, watcher::Config::default().streaming_lists()));
    assert!(matches!(next(&mut events).await, Ok(watcher::Event::Init)));
    let Ok(watcher::Event::InitApply(meta)) = next(&mut events).await else { panic!("no object") };
    assert_eq!(meta.name_any(), "a");
    assert!(matches!(next(&mut events).await, Ok(watcher::Event::InitDone)));
}
