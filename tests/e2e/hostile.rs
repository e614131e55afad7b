//! Objects that no client in Rust decodes as a whole: the operator is ready all the same, and runs others' jobs.

use hollow::nodes::shapes;
use http::Request;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::{Cluster, job};

/// Objects nested so deep that the embedded server's own decoder just takes them. A list or an event of a watch nests them
/// deeper.
const DEPTH: usize = 127;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inside, _| json!({ "f:a": inside }))
}

async fn post(cluster: &Cluster, path: &str, object: Value) {
    let request = Request::post(path).header("content-type", "application/json");
    cluster.client.request_text(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap();
}

fn pod(name: &str, managed: Value) -> Value {
    let mut entry = json!({"manager": "tenant", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {}, "time": "2026-11-23T00:00:00Z"});
    entry.as_object_mut().unwrap().extend(managed.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "managedFields": [entry]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// On the embedded server alone: clients of other tests would stumble over these objects.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_objects_stop_nobody() {
    if std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG").is_some() {
        return;
    }
    let mut cluster = Cluster::without_operator(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("hostile").await;
    let late = json!({"time": "9999-12-31T23:59:59Z"});
    post(&cluster, "/api/v1/namespaces/hostile/pods", pod("late", late.clone())).await;
    let deep = json!({"fieldsV1": nested(DEPTH - 5)});
    post(&cluster, "/api/v1/namespaces/hostile/pods", pod("deep", deep)).await;
    let jobs = "/apis/slotwright.dev/v1alpha1/namespaces/hostile/htcjobs";
    let junk = |o: &mut Value| o["spec"]["template"]["spec"]["junk"] = nested(DEPTH - 5);
    post(&cluster, jobs, job("hostile", "deep", 1, "100ms", junk)).await;
    let managed = json!([pod("", late)["metadata"]["managedFields"][0]]);
    let written_late = |o: &mut Value| o["metadata"]["managedFields"] = managed;
    post(&cluster, jobs, job("hostile", "late", 1, "100ms", written_late)).await;

    assert!(
        cluster.pods("hostile").list(&ListParams::default()).await.is_err(),
        "no typed client reads these"
    );
    cluster.start_operator();
    cluster.namespace("good").await;
    cluster.apply(job("good", "good", 3, "100ms", |_| {})).await;
    cluster.completed("good", "good").await;
    // The hostile jobs are jobs as well.
    let complete = async |name: &str| {
        let request = Request::get(format!("{jobs}/{name}")).body(Vec::new()).unwrap();
        let text = cluster.client.request_text(request).await.unwrap();
        text.contains(r#""summary":"Completed""#)
    };
    for name in ["deep", "late"] {
        crate::harness::eventually("the job has run", || complete(name)).await;
    }
    cluster.stop().await;
}
