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

#[tokio::test]
async fn versions_of_a_kind_share_their_objects() {
    let (_server, client) = start().await;
    let mut crd = widgets_crd();
    let mut old = crd.spec.versions[0].clone();
    old.name = "v1alpha1".to_owned();
    old.storage = false;
    crd.spec.versions.push(old);
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let gvk = GroupVersionKind::gvk("test.dev", "v1alpha1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "widgets");
    let old: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let new: Api<DynamicObject> = Api::namespaced_with(client, "default", &widget_resource());
    new.create(&PostParams::default(), &widget("a", &json!({"color": "red"}))).await.unwrap();
    let seen = old.get("a").await.unwrap();
    assert_eq!(seen.types.as_ref().map(|t| t.api_version.as_str()), Some("test.dev/v1alpha1"));
    let same = old.replace("a", &PostParams::default(), &seen).await.unwrap();
    assert_eq!(same.resource_version(), seen.resource_version());
    let green = Patch::Merge(json!({"spec": {"color": "green"}}));
    old.patch("a", &PatchParams::default(), &green).await.unwrap();
    let seen = new.get("a").await.unwrap();
    assert_eq!(seen.types.as_ref().map(|t| t.api_version.as_str()), Some("test.dev/v1"));
    assert_eq!((&seen.data["spec"]["color"], seen.metadata.generation), (&json!("green"), Some(2)));
}

#[tokio::test]
async fn rules_of_a_schema_are_enforced() {
    let (_server, client) = start().await;
    let mut crd = serde_json::to_value(widgets_crd()).unwrap();
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["x-kubernetes-validations"] =
        json!([{"rule": "self.color == oldSelf.color", "message": "the color stays"}]);
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &as_kind(crd)).await.unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &widget_resource());
    api.create(&PostParams::default(), &widget("a", &json!({"color": "red"}))).await.unwrap();
    let green = Patch::Merge(json!({"spec": {"color": "green"}}));
    let refused = status(api.patch("a", &PatchParams::default(), &green).await);
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("the color stays"), "{}", refused.message);
}

#[tokio::test]
async fn bad_definitions_are_refused() {
    let (_server, client) = start().await;
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let mut misnamed = widgets_crd();
    misnamed.metadata.name = Some("gadgets.test.dev".to_owned());
    let refused = status(crds.create(&PostParams::default(), &misnamed).await);
    assert!(refused.message.contains("must be spec.names.plural+\".\"+spec.group"), "{}", refused.message);
    let mut storeless = widgets_crd();
    storeless.spec.versions[0].storage = false;
    let refused = status(crds.create(&PostParams::default(), &storeless).await);
    assert!(refused.message.contains("exactly one version marked as storage"), "{}", refused.message);
}

#[tokio::test]
async fn a_definition_waits_for_its_objects() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let mut kept = widget("kept", &json!({"color": "red"}));
    kept.metadata.finalizers = Some(vec!["a.io/b".to_owned()]);
    api.create(&PostParams::default(), &kept).await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let uid = crds.get("widgets.test.dev").await.unwrap().uid().unwrap();
    crds.delete("widgets.test.dev", &DeleteParams::default()).await.unwrap();
    let late = status(api.create(&PostParams::default(), &widget("late", &json!({"color": "red"}))).await);
    assert_eq!((late.code, late.reason.as_str()), (405, "MethodNotAllowed"));
    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("kept", &PatchParams::default(), &freed).await.unwrap();
    soon(wait::await_condition(crds, "widgets.test.dev", wait::conditions::is_deleted(&uid))).await.unwrap();
}
