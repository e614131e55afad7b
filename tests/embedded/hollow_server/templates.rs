//! Pod templates of jobs: what pods have survives, and junk does not reach the store.

use super::*;

async fn jobs() -> (RunningServer, Api<DynamicObject>) {
    let (server, client) = start().await;
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let definition = api::definitions().into_iter().find(|crd| crd.spec.names.kind == "HTCJob").unwrap();
    let definition = crds.create(&PostParams::default(), &definition).await.unwrap();
    let name = definition.name_any();
    soon(wait::await_condition(crds, &name, wait::conditions::is_crd_established())).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(api::GROUP, api::VERSION, "HTCJob"));
    (server, Api::namespaced_with(client, "default", &kind))
}

fn rich() -> Value {
    serde_saphyr::from_str(include_str!("rich-template.yaml")).unwrap()
}

fn job(name: &str, template: Value) -> DynamicObject {
    as_kind(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"name": name}, "spec": {"template": template},
    }))
}

#[tokio::test]
async fn what_pods_have_survives() {
    let (_server, jobs) = jobs().await;
    let made = jobs.create(&PostParams::default(), &job("rich", rich())).await.unwrap();
    assert_eq!(made.data["spec"]["template"], rich(), "created");
    let apply = PatchParams::apply("test");
    let applied = jobs.patch("applied", &apply, &Patch::Apply(job("applied", rich()))).await.unwrap();
    assert_eq!(applied.data["spec"]["template"], rich(), "applied");
    // The client library reads all of it, too.
    let read: k8s_openapi::api::core::v1::PodTemplateSpec = as_kind(rich());
    assert_eq!(read.spec.unwrap().containers.len(), 1);
}

#[tokio::test]
async fn junk_is_pruned() {
    let (_server, jobs) = jobs().await;
    let mut template = rich();
    template["spec"]["junk"] = Value::Array(vec![json!({"": 0}); 50_000]);
    template["spec"]["containers"][0]["imagee"] = json!("x");
    template["spec"]["ephemeralContainers"] = json!([{"name": "debug"}]);
    let made = jobs.create(&PostParams::default(), &job("junk", template)).await.unwrap();
    assert_eq!(made.data["spec"]["template"], rich());
}

#[tokio::test]
async fn what_is_beyond_a_bound_is_refused() {
    let (_server, jobs) = jobs().await;
    let with = |pointer: &str, value: Value| {
        let mut template = rich();
        *template.pointer_mut(pointer).unwrap() = value;
        job("large", template)
    };
    let many: serde_json::Map<_, _> = (0..2_000).map(|n| (format!("l{n}"), json!("x"))).collect();
    let cases = [
        (
            with("/spec/containers/0/env", json!(vec![json!({"name": "A"}); 2_000])),
            "env",
            "at most 1024 items",
        ),
        (with("/spec/containers", json!(vec![json!({"name": "a"}); 65])), "containers", "at most 64 items"),
        (with("/spec/containers/0/image", json!("x".repeat(70_000))), "image", "65536"),
        (with("/metadata/labels", Value::Object(many)), "labels", "1024"),
        (with("/spec/containers/0/resources/requests/cpu", json!("1".repeat(200))), "cpu", "128"),
        (with("/spec/containers", json!("none")), "containers", "must be of type array"),
    ];
    for (object, field, why) in cases {
        let refused = status(jobs.create(&PostParams::default(), &object).await);
        assert_eq!(refused.code, 422, "{field}: {refused:?}");
        assert!(refused.message.contains(field) && refused.message.contains(why), "{}", refused.message);
    }
}
