//! Custom resources and server-side apply.

use super::*;

#[tokio::test]
async fn custom_resources_are_served_defaulted_validated_and_scaled() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let made =
        api.create(&PostParams::default(), &widget("a", &json!({"color": "red", "junk": 1}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(made.metadata.generation, Some(1));

    let bad = status(api.create(&PostParams::default(), &widget("b", &json!({"color": "blue"}))).await);
    assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
    assert!(
        bad.message.starts_with("Widget.test.dev \"b\" is invalid: spec.color: Unsupported value"),
        "{}",
        bad.message
    );

    let ready = Patch::Merge(json!({"status": {"replicas": 5}, "spec": {"color": "green"}}));
    let changed = api.patch_status("a", &PatchParams::default(), &ready).await.unwrap();
    assert_eq!(changed.data["spec"]["color"], "red", "a status write leaves the spec");
    assert_eq!((changed.metadata.generation, &changed.data["status"]["replicas"]), (Some(1), &json!(5)));
    let changed = api.patch("a", &PatchParams::default(), &ready).await.unwrap();
    assert_eq!(changed.data["spec"]["color"], "green");
    assert_eq!(changed.metadata.generation, Some(2));

    let scale = api
        .patch_scale("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}})))
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(api.get("a").await.unwrap().data["spec"]["replicas"], 3);
    let green = api.list(&ListParams::default().fields("spec.color=green")).await.unwrap();
    assert_eq!(green.items.len(), 1);
    let mut unversioned = widget("a", &json!({"color": "red"}));
    unversioned.metadata.resource_version = None;
    assert_eq!(status(api.replace("a", &PostParams::default(), &unversioned).await).code, 422);

    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let uid = crds.get("widgets.test.dev").await.unwrap().uid().unwrap();
    crds.delete("widgets.test.dev", &DeleteParams::default()).await.unwrap();
    soon(wait::await_condition(crds, "widgets.test.dev", wait::conditions::is_deleted(&uid))).await.unwrap();
    assert_eq!(status(api.list(&ListParams::default()).await).code, 404);
}

#[tokio::test]
async fn server_side_apply_owns_fields() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let body =
        |spec: &Value| Patch::Apply(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "spec": spec}));
    let (me, other) = (PatchParams::apply("me"), PatchParams::apply("other"));
    let made = api.patch("a", &me, &body(&json!({"color": "red"}))).await.unwrap();
    assert_eq!(made.data["spec"]["replicas"], 1);
    let again = api.patch("a", &me, &body(&json!({"color": "red"}))).await.unwrap();
    assert_eq!(again.resource_version(), made.resource_version(), "nothing changed");
    let conflict = status(api.patch("a", &other, &body(&json!({"color": "green"}))).await);
    assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
    assert!(
        conflict.message.starts_with("Apply failed with 1 conflict: conflict with \"me\""),
        "{}",
        conflict.message
    );
    assert_eq!(conflict.details.unwrap().causes[0].reason, "FieldManagerConflict");
    let forced = api.patch("a", &other.clone().force(), &body(&json!({"color": "green"}))).await.unwrap();
    assert_eq!(forced.data["spec"]["color"], "green");
    let nameless = PatchParams { field_manager: None, ..PatchParams::default() };
    assert_eq!(status(api.patch("a", &nameless, &body(&json!({"color": "red"}))).await).code, 422);

    let report =
        Patch::Apply(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "status": {"replicas": 2}}));
    let reported = api.patch_status("a", &me, &report).await.unwrap();
    assert_eq!((&reported.data["status"]["replicas"], reported.metadata.generation), (&json!(2), Some(2)));
    let again = api.patch_status("a", &me, &report).await.unwrap();
    assert_eq!(again.resource_version(), reported.resource_version());
    let missing = status(api.patch_status("b", &me, &report).await);
    assert_eq!(missing.code, 404, "a status is not applied to what is not there");
}
