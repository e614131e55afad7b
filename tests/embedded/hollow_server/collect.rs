//! The garbage collector: dependents of deleted owners, and contents of deleted namespaces.

use super::*;

#[tokio::test]
async fn dependents_are_deleted_or_orphaned_after_their_owners() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let owned = |name: &str, owners: &[&ConfigMap]| -> ConfigMap {
        let refs: Vec<Value> = owners
            .iter()
            .map(|o| {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": o.name_any(), "uid": o.uid(),
                "blockOwnerDeletion": true})
            })
            .collect();
        as_kind(json!({"metadata": {"name": name, "ownerReferences": refs}}))
    };
    let gone = async |object: &ConfigMap| {
        let uid = object.uid().unwrap();
        let name = object.name_any();
        soon(wait::await_condition(maps.clone(), &name, wait::conditions::is_deleted(&uid))).await.unwrap();
    };
    let create = async |object: &ConfigMap| maps.create(&PostParams::default(), object).await.unwrap();
    let (a, b) = (create(&map("a", "1")).await, create(&map("b", "1")).await);
    let child = create(&owned("child", &[&a])).await;
    let shared = create(&owned("shared", &[&a, &b])).await;
    maps.delete("a", &DeleteParams::background()).await.unwrap();
    gone(&child).await;
    let left = maps.get("shared").await.unwrap();
    assert!(left.owner_references().iter().any(|o| o.name == "b"));

    let deep = create(&owned("deep", &[&shared])).await;
    maps.delete("b", &DeleteParams::foreground()).await.unwrap();
    gone(&b).await;
    gone(&deep).await;
    assert_eq!(status(maps.get("shared").await).code, 404);

    let c = create(&map("c", "1")).await;
    create(&owned("orphan", &[&c])).await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    maps.delete("c", &orphan).await.unwrap();
    gone(&c).await;
    assert!(maps.get("orphan").await.unwrap().owner_references().is_empty());
    // An owner that never existed counts as deleted.
    let late = create(&owned("late", &[&c])).await;
    gone(&late).await;
}

#[tokio::test]
async fn namespaces_are_emptied_before_they_are_removed() {
    let (_server, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces
        .create(&PostParams::default(), &as_kind(json!({"metadata": {"name": "team"}})))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "team");
    let mut kept = map("kept", "1");
    kept.metadata.finalizers = Some(vec!["a.io/b".to_owned()]);
    maps.create(&PostParams::default(), &kept).await.unwrap();
    maps.create(&PostParams::default(), &map("free", "1")).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let refused = status(maps.create(&PostParams::default(), &map("late", "1")).await);
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.ends_with("in namespace team because it is being terminated"),
        "{}",
        refused.message
    );
    maps.patch("kept", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": []}})))
        .await
        .unwrap();
    let uid = made.uid().unwrap();
    soon(wait::await_condition(namespaces, "team", wait::conditions::is_deleted(&uid))).await.unwrap();
}
